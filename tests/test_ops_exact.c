/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops whose results are known by other means than differences. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "executor/ops/blas.h"
#include "tests/op_bench.h"
#include "tests/op_cases.h"
#include "tests/plain_conv.h"
#include "tests/suite.h"

#define IN(c, d, h, w) .in_channels = c, .in_d = d, .in_h = h, .in_w = w
#define OUT(c, d, h, w) .out_channels = c, .out_d = d, .out_h = h, .out_w = w
#define KERNEL(d, h, w) .kernel_d = d, .kernel_h = h, .kernel_w = w
#define STRIDE(d, h, w) .stride_d = d, .stride_h = h, .stride_w = w
#define PAD(d, h, w) .pad_d = d, .pad_h = h, .pad_w = w

CLAIM (running_statistics_follow_the_batch) {
  op_bench b;
  compute c = { .kind = COMPUTE_batchnorm_fwd,
                .batchnorm = { .batch = 3,
                               .channels = 2,
                               .inner = 5,
                               .eps_ppt = 10000000,
                               .momentum_ppm = 250000 } };
  op_bench_begin (&b, 21);
  op_bench_supply (&b, &c);
  op_bench_saved before = op_bench_save (&b);
  op_bench_run (&b, &c, 1, 2, 0);
  const bench_array *mean = op_bench_find (&b, "running_mean");
  const bench_array *variance = op_bench_find (&b, "running_var");
  const float *x = op_bench_find (&b, "x")->data;
  for (int k = 0; k < 2; k++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 15; i++)
      sum += x[i / 5 * 10 + k * 5 + i % 5];
    for (int i = 0; i < 15; i++)
      squares += pow (x[i / 5 * 10 + k * 5 + i % 5] - sum / 15, 2);
    double old_mean = before.data[mean - b.arrays][k], old = before.data[variance - b.arrays][k];
    ck_assert_double_eq_tol (((float *)mean->data)[k], 0.75 * old_mean + 0.25 * sum / 15, 1e-6);
    ck_assert_double_eq_tol (((float *)variance->data)[k], 0.75 * old + 0.25 * squares / 14, 1e-6);
  }
  op_bench_forget (&before);
  op_bench_end (&b);
}

/* ---- products ---- */

static void check_matmul (compute_matmul s) {
  op_bench b;
  compute c = { .kind = COMPUTE_matmul, .matmul = s };
  op_bench_begin (&b, 8);
  op_bench_supply (&b, &c);
  bench_array *out = op_bench_find (&b, "c");
  op_bench_saved before = op_bench_save (&b);
  op_bench_run (&b, &c, 2, 1, 0);
  const float *left = op_bench_find (&b, "a")->data;
  const float *right = s.b_in_a ? left : op_bench_find (&b, "b")->data;
  float *want = before.data[out - b.arrays];
  for (int64_t n = 0; n < s.batch; n++)
    for (int64_t h = 0; h < s.heads; h++)
      for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
          double sum = 0;
          for (int64_t k = 0; k < s.k; k++) {
            int64_t ai = s.transpose_a ? k : i, aj = s.transpose_a ? i : k;
            int64_t bi = s.transpose_b ? j : k, bj = s.transpose_b ? k : j;
            sum += (double)left[n * s.a_item + s.a_offset + h * s.a_head + ai * s.a_row + aj] *
                   right[n * s.b_item + s.b_offset + h * s.b_head + bi * s.b_row + bj];
          }
          want[n * s.c_item + s.c_offset + h * s.c_head + i * s.c_row + j] =
              (float)(sum / (s.root > 0 ? sqrt ((double)s.root) : 1));
        }
  ck_assert (op_bench_alike (out, want, 1e-5));
  op_bench_forget (&before);
  op_bench_end (&b);
}

CLAIM (products_of_activations_find_their_operands) {
  for (int ta = 0; ta < 2; ta++)
    for (int tb = 0; tb < 2; tb++)
      check_matmul ((compute_matmul){ .batch = 3,
                                      .heads = 2,
                                      .m = 4,
                                      .n = 5,
                                      .k = 3,
                                      .transpose_a = ta,
                                      .transpose_b = tb,
                                      .root = 7,
                                      .a_item = 60,
                                      .a_offset = 2,
                                      .a_head = 25,
                                      .a_row = 6,
                                      .b_item = 70,
                                      .b_offset = 1,
                                      .b_head = 33,
                                      .b_row = 6,
                                      .c_item = 41,
                                      .c_head = 20,
                                      .c_row = 5 });
  /* Packed queries, keys and values: rows of 3 x 2 heads of 4. */
  check_matmul ((compute_matmul){ .batch = 3,
                                  .heads = 2,
                                  .m = 5,
                                  .n = 5,
                                  .k = 4,
                                  .transpose_b = 1,
                                  .root = 4,
                                  .a_item = 120,
                                  .a_head = 4,
                                  .a_row = 24,
                                  .b_item = 120,
                                  .b_offset = 8,
                                  .b_head = 4,
                                  .b_row = 24,
                                  .c_item = 50,
                                  .c_head = 25,
                                  .c_row = 5,
                                  .b_in_a = 1 });
  check_matmul ((compute_matmul){ .batch = 3,
                                  .heads = 2,
                                  .m = 5,
                                  .n = 4,
                                  .k = 5,
                                  .root = 4,
                                  .a_item = 50,
                                  .a_head = 25,
                                  .a_row = 5,
                                  .b_item = 40,
                                  .b_head = 4,
                                  .b_row = 8,
                                  .c_item = 120,
                                  .c_offset = 16,
                                  .c_head = 4,
                                  .c_row = 24,
                                  .update_c = 1 });
}

static void check_conv (compute_conv s) {
  compute c = { .kind = COMPUTE_conv_fwd, .conv = s };
  op_bench b;
  op_bench_begin (&b, 9);
  op_bench_run (&b, &c, 1, -1, 0);
  const float *x = op_bench_find (&b, "x")->data, *w = op_bench_find (&b, "w")->data;
  bench_array *y = op_bench_find (&b, "y");
  float *want = malloc ((size_t)y->bytes);
  plain_conv (&s, x, w, s.bias ? op_bench_find (&b, "b")->data : NULL, want);
  ck_assert (op_bench_alike (y, want, 1e-5));
  free (want);
  compute data = op_back_of (&c, COMPUTE_conv_bwd_data);
  op_bench_run (&b, &data, 1, -1, 0);
  bench_array *dx = op_bench_find (&b, "dx");
  want = malloc ((size_t)dx->bytes);
  plain_conv_data (&s, op_bench_find (&b, "dy")->data, w, want);
  ck_assert (op_bench_alike (dx, want, 1e-5));
  free (want);
  compute weights = op_back_of (&c, COMPUTE_conv_bwd_weights);
  op_bench_run (&b, &weights, 1, -1, 0);
  bench_array *dw = op_bench_find (&b, "dw");
  want = malloc ((size_t)dw->bytes);
  plain_conv_weights (&s, x, op_bench_find (&b, "dy")->data, want);
  ck_assert (op_bench_alike (dw, want, 2e-5));
  free (want);
  op_bench_end (&b);
}

CLAIM (convolution_is_that_of_plain_loops) {
  for (int i = 0; i < op_cases_count; i++)
    if (op_cases[i].c.kind == COMPUTE_conv_fwd)
      check_conv (op_with_batch (&op_cases[i].c, 3).conv);
  /* Many tiles of lines in an item, and several items in a tile with a smaller one at the end. */
  check_conv ((compute_conv){ .batch = 2,
                              .groups = 1,
                              IN (24, 1, 61, 67),
                              OUT (5, 1, 61, 67),
                              KERNEL (1, 3, 3),
                              STRIDE (1, 1, 1),
                              PAD (0, 1, 1),
                              .bias = 1 });
  check_conv ((compute_conv){ .batch = 7,
                              .groups = 1,
                              IN (64, 1, 11, 11),
                              OUT (3, 1, 11, 11),
                              KERNEL (1, 5, 5),
                              STRIDE (1, 1, 1),
                              PAD (0, 2, 2) });
}

CLAIM (transposed_convolution_is_that_of_plain_loops) {
  for (int i = 0; i < op_cases_count; i++) {
    compute c = op_with_batch (&op_cases[i].c, 3);
    op_bench b;
    if (c.kind != COMPUTE_deconv_fwd)
      continue;
    op_bench_begin (&b, 10);
    op_bench_run (&b, &c, 1, -1, 0);
    bench_array *y = op_bench_find (&b, "y");
    float *want = malloc ((size_t)y->bytes);
    plain_deconv (&c.conv, op_bench_find (&b, "x")->data, op_bench_find (&b, "w")->data,
                  c.conv.bias ? op_bench_find (&b, "b")->data : NULL, want);
    ck_assert_msg (op_bench_alike (y, want, 1e-5), "%s", op_cases[i].name);
    free (want);
    op_bench_end (&b);
  }
}

CLAIM (our_own_product_is_that_of_the_library) {
  static const int64_t sizes[][3] = { { 1, 1, 1 },      { 5, 7, 3 },   { 64, 256, 256 },
                                      { 65, 257, 300 }, { 3, 1, 700 }, { 130, 9, 17 } };
  random_state r = random_seed (4);
  blas library;
  blas_open (&library);
  for (int i = 0; i < 24; i++) {
    const int64_t *s = sizes[i / 4];
    bool ta = i & 1, tb = i & 2;
    blas_product p = { s[0],
                       s[1],
                       s[2],
                       ta,
                       tb,
                       (ta ? s[0] : s[2]) + 1,
                       (tb ? s[2] : s[1]) + 2,
                       s[1] + 3,
                       0.5f,
                       i % 3 == 0 ? 0 : 1 };
    float *m[4];
    int64_t counts[] = { (ta ? s[2] : s[0]) * p.a_row, (tb ? s[1] : s[2]) * p.b_row, s[0] * p.c_row,
                         s[0] * p.c_row };
    for (int k = 0; k < 4; k++) {
      m[k] = malloc ((size_t)counts[k] * sizeof (float));
      for (int64_t j = 0; j < counts[k]; j++)
        m[k][j] = k == 3 ? m[2][j] : (float)random_between (&r, -999, 999) / 999;
      if (k == 2 && p.beta == 0)
        for (int64_t j = 0; j < counts[k]; j++)
          m[k][j] = j % p.c_row < s[1] ? NAN : 7; /* what is not read may be anything */
    }
    blas_sgemm (&library, &p, m[0], m[1], m[2]);
    blas_own_sgemm (&p, m[0], m[1], m[3]);
    for (int64_t j = 0; j < counts[2]; j++)
      ck_assert_float_eq_tol (m[2][j], m[3][j], 1e-4f);
    for (int k = 0; k < 4; k++)
      free (m[k]);
  }
}

/* The door does not ask for this. */
static int threads_now (void) {
  void *library = dlopen ("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  ck_assert_ptr_nonnull (library);
  int (*ask) (void);
  *(void **)&ask = dlsym (library, "openblas_get_num_threads");
  ck_assert_ptr_nonnull (ask);
  return ask ();
}

/* Large enough that OpenBLAS would share it out. */
CLAIM (the_number_of_threads_changes_no_bit) {
  compute c = { .kind = COMPUTE_linear_fwd,
                .linear = { .batch = 301, .rows = 1, .in = 517, .out = 403 } };
  op_bench b;
  op_bench_begin (&b, 15);
  op_bench_run (&b, &c, 1, -1, 0);
  op_bench_saved one = op_bench_save (&b);
  blas library;
  blas_open (&library);
  if (library.set_threads != NULL)
    library.set_threads (3);
  op_bench_run (&b, &c, 1, -1, 0);
  const bench_array *y = op_bench_find (&b, "y");
  ck_assert_mem_eq (y->data, one.data[y - b.arrays], (size_t)y->bytes);
  if (library.set_threads != NULL)
    ck_assert_int_eq (threads_now (), 1);
  op_bench_forget (&one);
  op_bench_end (&b);
}

/* A plan puts a tensor anywhere; numbers in odd places must give the same bits. */
CLAIM (where_operands_lie_changes_no_bit) {
  random_state r = random_seed (14);
  blas library;
  blas_open (&library);
  for (int i = 0; i < 300; i++) {
    int64_t m = random_between (&r, 1, 90), n = random_between (&r, 1, 90);
    int64_t k = random_between (&r, 1, i < 250 ? 90 : 900), rows = m > k ? m : k;
    int64_t row = (m > n ? m : n) > k ? (m > n ? m : n) : k, count = (rows + n) * row;
    blas_product p = { m, n, k, i & 1, i & 2, row, row, row, 0.7f, i % 3 == 0 };
    float *at[4][3];
    for (int x = 0; x < 3; x++)
      for (int odd = 0; odd < 4; odd++) {
        at[odd][x] = malloc ((size_t)(count + 4) * sizeof (float));
        for (int64_t j = 0; j < count; j++)
          at[odd][x][odd + j] = odd > 0 ? at[0][x][j] : (float)random_between (&r, -99, 99) / 7;
      }
    for (int odd = 0; odd < 4; odd++) {
      blas_sgemm (&library, &p, at[odd][0] + odd, at[odd][1] + odd, at[odd][2] + odd);
      ck_assert_mem_eq (at[odd][2] + odd, at[0][2], (size_t)count * sizeof (float));
    }
    for (int x = 0; x < 12; x++)
      free (at[x / 3][x % 3]);
  }
}

/* ---- random numbers ---- */

CLAIM (dropout_depends_on_seed_step_and_place_only) {
  op_bench b;
  compute c = { .kind = COMPUTE_dropout_fwd,
                .dropout = { .batch = 5, .size = 1000, .rate_ppm = 300000, .seed = 9 } };
  op_bench_begin (&b, 3);
  op_bench_run (&b, &c, 1, -1, 4);
  bench_array *mask = op_bench_find (&b, "mask");
  uint8_t first[5000], *now = mask->data;
  memcpy (first, now, sizeof first);
  int kept = 0;
  for (int i = 0; i < 5000; i++)
    kept += first[i];
  ck_assert_int_gt (kept, 3500 - 150); /* 4.6 deviations */
  ck_assert_int_lt (kept, 3500 + 150);
  op_bench_run (&b, &c, 3, 2, 4);
  ck_assert_mem_eq (now, first, sizeof first);
  op_bench_run (&b, &c, 1, -1, 5);
  ck_assert_mem_ne (now, first, sizeof first);
  c.dropout.seed = 10;
  op_bench_run (&b, &c, 1, -1, 4);
  ck_assert_mem_ne (now, first, sizeof first);
  c.dropout.seed = 9;
  c.dropout.offset = 1000; /* one item further on in the stream */
  op_bench_run (&b, &c, 1, -1, 4);
  ck_assert_mem_eq (now, first + 1000, 4000);
  op_bench_end (&b);
}

/* ---- updates ---- */

static void check_update (compute c) {
  op_bench b;
  op_bench_begin (&b, 12);
  op_bench_supply (&b, &c);
  bench_array *w = op_bench_find (&b, "w"), *g = op_bench_find (&b, "g");
  bench_array *m = op_bench_find (&b, "m"), *v = op_bench_find (&b, "v");
  bench_array *main = op_bench_find (&b, "main");
  double weight[9], first[9] = { 0 }, second[9] = { 0 };
  const compute_update *s = &c.update;
  double rate = (double)s->rate_ppb * 1e-9, decay = (double)s->decay_ppb * 1e-9;
  for (int i = 0; i < 9; i++) {
    weight[i] = ((float *)(main ? main : w)->data)[i];
    if (m)
      ((float *)m->data)[i] = 0;
    if (v)
      ((float *)v->data)[i] = 0;
  }
  for (int step = 0; step < 3; step++) {
    op_bench_randomize (&b, g);
    op_bench_run (&b, &c, 1, -1, step);
    for (int i = 0; i < 9; i++) {
      double gradient = ((float *)g->data)[i];
      double b1 = (double)s->beta1_ppm * 1e-6, b2 = (double)s->beta2_ppm * 1e-6;
      if (c.kind == COMPUTE_adam) {
        first[i] = b1 * first[i] + (1 - b1) * gradient;
        second[i] = b2 * second[i] + (1 - b2) * gradient * gradient;
        double mean = first[i] / (1 - pow (b1, step + 1));
        double root = sqrt (second[i] / (1 - pow (b2, step + 1)));
        weight[i] -= rate * (mean / (root + (double)s->eps_ppt * 1e-12) + decay * weight[i]);
      } else {
        first[i] = (double)s->momentum_ppm * 1e-6 * first[i] + gradient + decay * weight[i];
        weight[i] -= rate * first[i];
      }
      ck_assert_double_eq_tol (((float *)w->data)[i], weight[i], 1e-6);
    }
  }
  op_bench_end (&b);
}

CLAIM (updates_follow_their_formulae) {
  for (int master = 0; master < 2; master++) {
    check_update ((compute){
        .kind = COMPUTE_sgd,
        .update = { .count = 9, .rate_ppb = 100000000, .decay_ppb = 50000000, .master = master } });
    check_update ((compute){ .kind = COMPUTE_momentum,
                             .update = { .count = 9,
                                         .rate_ppb = 100000000,
                                         .decay_ppb = 50000000,
                                         .momentum_ppm = 900000,
                                         .master = master } });
    check_update ((compute){ .kind = COMPUTE_adam,
                             .update = { .count = 9,
                                         .rate_ppb = 100000000,
                                         .decay_ppb = 50000000,
                                         .beta1_ppm = 900000,
                                         .beta2_ppm = 990000,
                                         .eps_ppt = 10000,
                                         .master = master } });
  }
}

/* ---- calls that make no sense ---- */

CLAIM (a_wrong_call_is_told) {
  ops_piece x = { (float[4]){ 0 }, 2 }, t = { (int32_t[2]){ 1, 5 }, 2 }, y = { (float[8]){ 0 }, 2 };
  ops_operand three[] = { { &t, 1 }, { &x, 1 }, { &y, 1 } };
  compute c = { .kind = COMPUTE_embedding_fwd,
                .embedding = { .batch = 2, .rows = 1, .width = 2, .table_rows = 2 } };
  error err = { 0 };
  ops *o = ops_new (&err);
  ops_piece table = { (float[4]){ 0 }, 1 };
  three[1].pieces = &table;
  ops_call call = { &c, 0, 2, 0, false, three, 3 };
  ck_assert (!ops_run (o, &call, &err));
  ck_says (&err, "a token or class 5: there are 2");
  err = (error){ 0 };
  call.end_item = 1;
  ck_assert (!ops_run (o, &call, &err));
  ck_says (&err, "operand token of embedding_fwd does not have items 0 to 1");
  err = (error){ 0 };
  call.end_item = 3;
  ck_assert (!ops_run (o, &call, &err));
  ck_says (&err, "embedding_fwd cannot do items 0 to 3 of 2");
  err = (error){ 0 };
  c.dtype = DTYPE_BF16;
  ck_assert (!ops_run (o, &call, &err));
  ck_says (&err, "embedding_fwd in bf16: the CPU calculates in fp32 only");
  ops_free (o);
}

int main (void) {
  return suite_run ("ops_exact", 60);
}
