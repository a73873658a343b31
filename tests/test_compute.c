/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an op calculates, as text and back, and how long that takes by the roofline. */
#include <string.h>

#include "tests/zoo_case.h"
#include "trace/roofline.h"

CLAIM (what_is_written_is_read_again) {
  static const char *const names[] = { "inception3", "unet3d", "seq2seq", "llama-1b", "bert-base" };
  bool seen[COMPUTE_KINDS] = { false };
  for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
    zoo_request r = { .name = names[i / 2],
                      .batch = 3,
                      .explicit_attention = i % 2,
                      .depth_divisor = 4,
                      .device = &card };
    const trace *t = made (&r);
    for (int32_t k = 0; k < t->n_ops; k++) {
      compute c = read_compute (t, k);
      const char *again = compute_text (&c, room, &err);
      ck_assert_ptr_nonnull (again);
      ck_assert_str_eq (again, t->ops[k].compute);
      seen[c.kind] = true;
    }
  }
  ck_assert (seen[COMPUTE_concat_fwd] && seen[COMPUTE_deconv_bwd_weights] &&
             seen[COMPUTE_attention_bwd] && seen[COMPUTE_matmul] && seen[COMPUTE_repeat_bwd]);
}

CLAIM (every_kind_is_made_by_some_network) {
  bool seen[COMPUTE_KINDS] = { false };
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < ZOO_OPTIMIZERS; k++) {
      zoo_request r = { .name = list[i].name,
                        .batch = 1,
                        .optimizer = (zoo_optimizer)k,
                        .explicit_attention = k == 1,
                        .depth_divisor = 50,
                        .device = &card };
      const trace *t = made (&r);
      for (int32_t o = 0; o < t->n_ops; o++)
        seen[read_compute (t, o).kind] = true;
    }
  for (int i = 0; i < COMPUTE_KINDS; i++)
    if (i != COMPUTE_adaptive_fwd && i != COMPUTE_adaptive_bwd)
      ck_assert_msg (seen[i], "nobody makes %s", compute_kind_names[i]);
}

CLAIM (a_bad_compute_is_refused) {
  static const char *const bad[] = {
    "{\"dtype\":\"fp32\",\"kind\":\"cov_fwd\"}",
    "{\"kind\":\"add\",\"batch\":1,\"size\":1}",
    "{\"dtype\":\"fp64\",\"kind\":\"add\",\"batch\":1,\"size\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":0,\"size\":4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":-4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":4,\"sise\":4}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":4503599627370496,\"size\":4503599627370496}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1,\"sizes\":[3,0]}",
    "{\"dtype\":\"fp32\",\"kind\":\"concat_fwd\",\"batch\":1,\"outer\":1,\"sizes\":[]}",
    "{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1.5,\"size\":4}",
    "[]",
    /* the second head would end behind the item */
    "{\"dtype\":\"fp32\",\"kind\":\"matmul\",\"batch\":1,\"heads\":2,\"m\":2,\"n\":2,\"k\":2,"
    "\"a_item\":7,\"a_head\":4,\"a_row\":2,\"b_item\":8,\"b_head\":4,\"b_row\":2,"
    "\"c_item\":8,\"c_head\":4,\"c_row\":2}",
    "{\"dtype\":\"fp32\",\"kind\":\"select_fwd\",\"batch\":1,\"rows\":2,\"width\":1,\"row\":2}",
    ("{\"dtype\":\"fp32\",\"kind\":\"rotary_fwd\",\"batch\":1,\"rows\":2,\"heads\":1,"
     "\"width\":3,\"theta\":10000}"),
  };
  compute c;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    err = (error){ 0 };
    ck_assert_msg (!compute_parse (bad[i], &c, &err), "%s is taken", bad[i]);
    ck_assert_int_eq (err.code, ERR_input);
  }
  err = (error){ 0 };
  ck_assert (
      compute_parse ("{\"dtype\":\"fp32\",\"kind\":\"add\",\"batch\":1,\"size\":4}", &c, &err));
}

/* By hand: 2 x 4 x 1000 x 500 x 250 = 10^9 flops at 20 x 10^12 are 50,000 ns; the bytes, 4 x (4 x
   500 x 1000 + 250 x 500 + ... ), take less. */
CLAIM (times_are_the_roofline_by_hand) {
  device d = card;
  compute c = { .kind = COMPUTE_linear_fwd, .dtype = DTYPE_FP32 };
  c.linear = (compute_linear){ .batch = 4, .rows = 1000, .in = 500, .out = 250 };
  int64_t ns;
  ck_assert_int_eq (compute_flops (&c), 1000000000);
  ck_assert_int_eq (compute_bytes (&c), 4 * (4 * 1000 * 500 + 500 * 250 + 4 * 1000 * 250));
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 50000);
  d.roofline.efficiency_ppm = 600000;
  d.roofline.op_ns = 7;
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 83334 + 7); /* 83333.3 rounded up */
  /* 12,000,000 bytes both ways at 1555 GB/s: 7717.04 ns */
  d = card;
  c = (compute){ .kind = COMPUTE_relu_fwd };
  c.relu = (compute_relu){ .batch = 3, .size = 500000, .in_place = 1 };
  ck_assert_int_eq (compute_bytes (&c), 12000000);
  ck_assert (roofline_ns (&d, &c, &ns, &err));
  ck_assert_int_eq (ns, 7718);
  d.roofline.bf16_flops = 0;
  c = (compute){ .kind = COMPUTE_linear_fwd, .dtype = DTYPE_BF16 };
  c.linear = (compute_linear){ .batch = 4, .rows = 1000, .in = 500, .out = 250 };
  ck_assert (!roofline_ns (&d, &c, &ns, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "bf16"));
}

int main (void) {
  return suite_run_with ("compute", zoo_set_up, zoo_tear_down, 60);
}
