/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The zoo: published sizes and flops, what may be asked of it, and the device files. */
#include <string.h>

#include "tests/zoo_case.h"
#include "trace/rewrite/rewrite.h"

/* ---- published figures ---- */

/* Parameters: torchvision's documentation (num_params of the weights), the counts that PyTorch
   reports for the published checkpoints of Hugging Face and of the DCGAN example, imgclsmob's for
   ResNet-200, and the text of Cicek et al. 2016.  OverFeat: 145 million in Sermanet et al. 2013,
   counted here by hand: 34,944 + 614,656 + 1,180,160 + 4,719,616 + 9,438,208 + 113,249,280 +
   12,587,008 + 4,097,000. Multiplications of one image, in millions: torchvision's `_ops`, rounded
   there. */
static const struct published {
  const char *name;
  int64_t parameters, millions;
} published[] = {
  { "alexnet", 61100840, 714 },      { "vgg16", 138357544, 15470 },
  { "vgg19", 143667240, 19632 },     { "overfeat", 145920872, 0 },
  { "resnet18", 11689512, 1814 },    { "resnet34", 21797672, 3664 },
  { "resnet50", 25557032, 4089 },    { "resnet101", 44549160, 7801 },
  { "resnet152", 60192808, 11514 },  { "resnet200", 64673832, 0 },
  { "googlenet", 6624904, 1498 },    { "inception3", 27161264, 5713 },
  { "densenet121", 7978856, 2834 },  { "unet3d", 19069955, 0 },
  { "dcgan", 3576704 + 2765568, 0 }, { "bert-base", 109482240, 0 },
  { "bert-large", 335141888, 0 },    { "gpt2", 124439808, 0 },
  { "gpt2-medium", 354823168, 0 },   { "gpt2-large", 774030080, 0 },
  { "gpt2-xl", 1557611200, 0 },      { "llama-1b", 1235814400, 0 },
  { "llama-7b", 6738415616, 0 },     { "vit-b", 86567656, 17564 },
  { "vit-l", 304326632, 61555 },
};
enum { N_PUBLISHED = sizeof published / sizeof published[0] };

CLAIM_EACH (parameters_are_the_published_number, 0, N_PUBLISHED) {
  const struct published *p = &published[_i];
  zoo_request r = { .name = p->name, .batch = 1, .device = &card };
  const trace *t = made (&r);
  ck_assert_int_eq (zoo_parameters (t), p->parameters);
  int64_t bytes = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].kind == TENSOR_PARAMETER)
      bytes += t->tensors[i].bytes;
  ck_assert_int_eq (bytes, 4 * p->parameters);
}

CLAIM (the_list_states_what_is_built) {
  int count;
  const zoo_network *list = zoo_list (&count);
  for (int i = 0; i < count; i++) {
    int64_t known = 0;
    for (int k = 0; k < N_PUBLISHED; k++)
      if (strcmp (published[k].name, list[i].name) == 0)
        known = published[k].parameters;
    if (list[i].parameters > 0)
      ck_assert_int_eq (list[i].parameters, known);
    ck_assert_int_eq (list[i].parameters > 0, list[i].source != NULL);
  }
}

CLAIM_EACH (forward_flops_are_the_published_number, 0, N_PUBLISHED) {
  const struct published *p = &published[_i];
  if (p->millions == 0)
    return;
  zoo_request r = { .name = p->name, .batch = 3, .explicit_attention = true, .device = &card };
  const trace *t = made (&r);
  int64_t flops = 0;
  for (int32_t i = 0; i < t->n_ops; i++) {
    compute c = read_compute (t, i);
    bool extra = strncmp (t->ops[i].name, "aux.", 4) == 0; /* not there when the figure was taken */
    if (t->ops[i].phase == OP_FORWARD && compute_is_product (&c) && !extra)
      flops += compute_flops (&c);
  }
  int64_t per_image = flops / 3 / 2;
  ck_assert_int_eq ((per_image + 500000) / 1000000, p->millions);
}

/* ---- what may be asked ---- */

CLAIM (bfloat_halves_activations_and_keeps_a_master_copy) {
  zoo_request r = { .name = "resnet50", .batch = 8, .optimizer = ZOO_ADAM, .device = &card };
  int64_t bytes[2][TENSOR_KINDS] = { 0 };
  for (int half = 0; half < 2; half++) {
    r.dtype = half ? DTYPE_BF16 : DTYPE_FP32;
    const trace *t = made (&r);
    for (int32_t i = 0; i < t->n_tensors; i++)
      bytes[half][t->tensors[i].kind] += t->tensors[i].bytes;
  }
  ck_assert_int_eq (bytes[0][TENSOR_PARAMETER], 2 * bytes[1][TENSOR_PARAMETER]);
  ck_assert_int_lt (bytes[1][TENSOR_ACTIVATION], bytes[0][TENSOR_ACTIVATION] * 51 / 100);
  ck_assert_int_eq (bytes[1][TENSOR_OPTIMIZER],
                    bytes[0][TENSOR_OPTIMIZER] + bytes[0][TENSOR_PARAMETER]);
}

CLAIM (the_same_request_makes_the_same_trace) {
  static const char *const names[] = { "resnet50", "gpt2", "seq2seq", "dcgan" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char first[TRACE_DIGEST], second[TRACE_DIGEST], other[TRACE_DIGEST];
    zoo_request r = { .name = names[i], .batch = 4, .device = &card };
    ck_assert (trace_digest (made (&r), first, &err));
    ck_assert (trace_digest (made (&r), second, &err));
    r.batch = 5;
    ck_assert (trace_digest (made (&r), other, &err));
    ck_assert_str_eq (first, second);
    ck_assert_str_ne (first, other);
  }
}

/* A change of this digest is a change of every plan made for such traces: it must be meant. */
CLAIM (the_digest_of_a_known_trace_stays) {
  char digest[TRACE_DIGEST];
  zoo_request r = { .name = "vgg16", .batch = 4, .optimizer = ZOO_MOMENTUM, .device = &card };
  ck_assert (trace_digest (made (&r), digest, &err));
  ck_assert_str_eq (digest,
                    "sha256:ec29f5d7bee744f13b61743936e3b372f893423d7c12fb97c1b75f72f9153aee");
  r = (zoo_request){ .name = "seq2seq", .batch = 2, .seq = 4, .device = &card };
  ck_assert (trace_digest (made (&r), digest, &err));
  ck_assert_str_eq (digest,
                    "sha256:2b4029ca9a1cdb726729d17cdf96365478c2c1691db073691b73b5790d13640a");
}

CLAIM (a_request_that_makes_no_sense_is_told_so) {
  static const struct {
    zoo_request r;
    const char *says;
  } cases[] = {
    { { .name = "vgg17", .batch = 1 }, "no network is called" },
    { { .name = "resnet51", .batch = 1 }, "no network is called" },
    { { .name = "resnet", .batch = 1 }, "no network is called" },
    { { .name = "vgg16", .batch = 0 }, "batch" },
    { { .name = "vgg16", .batch = 1, .image = 16 }, "larger --image" },
    { { .name = "vgg16", .batch = 1, .seq = 16 }, "--seq" },
    { { .name = "gpt2", .batch = 1, .image = 16 }, "--image" },
    { { .name = "gpt2", .batch = 1, .seq = 1025 }, "1024 positions" },
    { { .name = "dcgan", .batch = 1, .image = 48 }, "must be" },
    { { .name = "unet3d", .batch = 1, .image = 20 }, "multiple of 8" },
    { { .name = "unet3d", .batch = 65536, .image = 4096 }, "elements" },
    { { .name = "vgg16", .batch = 65536, .image = 65536 }, "elements" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    zoo_request r = cases[i].r;
    r.device = &card;
    err = (error){ 0 };
    ck_assert_msg (zoo_trace (&r, room, &err) == NULL, "%s is built", r.name);
    ck_assert_msg (strstr (err.text, cases[i].says) != NULL, "%s: %s", r.name, told ());
    ck_assert_int_eq (err.code, ERR_usage);
  }
}

CLAIM (an_allocation_that_fails_is_only_an_error) {
  for (int64_t fuse = 1; fuse < 4000; fuse += fuse < 200 ? 1 : 37) {
    arena *a = arena_new (0);
    ck_assert_ptr_nonnull (a);
    arena_fuse (a, fuse);
    err = (error){ 0 };
    zoo_request r = { .name = "seq2seq", .batch = 1, .seq = 3, .device = &card };
    if (zoo_trace (&r, a, &err) == NULL)
      ck_assert_int_eq (err.code, ERR_memory);
    arena_free (a);
  }
}

/* ---- sections ---- */

static int32_t first_of (const trace *t, op_phase phase) {
  int32_t i = 0;
  while (i < t->n_ops && t->ops[i].phase != phase)
    i++;
  return i;
}

CLAIM (a_network_without_batch_norm_can_be_cut_as_a_whole) {
  static const char *const names[] = { "vgg16", "gpt2", "charrnn", "llama-1b", "vit-b" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    zoo_request r = { .name = names[i], .batch = 6, .depth_divisor = 8, .device = &card };
    r.seq = strcmp (names[i], "charrnn") == 0 ? 5 : 0;
    const trace *t = made (&r);
    for (int32_t k = 0; k < first_of (t, OP_UPDATE); k++)
      ck_assert_msg (t->ops[k].parts == 6, "%s runs once", t->ops[k].name);
    section whole = { 0, first_of (t, OP_UPDATE), 3, SECTION_DEPTH };
    rewritten out;
    ck_assert_msg (
        trace_rewrite (t, &(rewriting){ .sections = &whole, .n_sections = 1 }, room, &out, &err),
        "%s: %s", r.name, told ());
    ck_assert_int_eq (out.trace->n_ops, t->n_ops + 2 * whole.end);
  }
}

CLAIM (batch_norm_needs_the_whole_batch) {
  zoo_request r = { .name = "resnet18", .batch = 6, .device = &card };
  const trace *t = made (&r);
  for (int32_t k = 0; k < first_of (t, OP_UPDATE); k++)
    ck_assert_int_eq (t->ops[k].parts, strstr (t->ops[k].name, "batchnorm") != NULL ? 1 : 6);
}

/* ---- device files ---- */

CLAIM (every_shipped_device_can_be_read) {
  static const char *const names[] = { "titanx-pascal", "titanx-maxwell", "m40",         "p100",
                                       "p100-nvlink",   "v100",           "v100-nvlink", "a100-40",
                                       "a100-80",       "h100-pcie",      "h100-sxm",    "h200",
                                       "rtx4090",       "gh200" };
  const char *source = getenv ("srcdir");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    device d;
    read_options strict = { .strict = true };
    const char *path = arena_format (room, &err, "%s/data/devices/%s.json",
                                     source != NULL ? source : ".", names[i]);
    ck_assert_ptr_nonnull (path);
    ck_assert_msg (device_load (path, &strict, room, &d, &err), "%s: %s", path, told ());
    ck_assert_str_eq (d.name, names[i]);
    ck_assert (d.has_roofline && d.link.both_bytes_per_s >= d.link.h2d_bytes_per_s);
    zoo_request r = { .name = "alexnet", .batch = 8, .device = &d };
    ck_assert_int_gt (trace_total_ns (made (&r)), 0);
  }
}

int main (void) {
  return suite_run_with ("zoo", zoo_set_up, zoo_tear_down, 60);
}
