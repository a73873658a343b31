/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GPU's kernels, compiled for the host: each kind beside the CPU's own function of it, and
   networks that train by them on the emulated device. */
#include "executor/ops/bf16.h"
#include "executor/calculate/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/op_bench.h"
#include "tests/op_cases.h"
#include "tests/suite.h"
#include "tests/train_case.h"

/* ---- each kind ---- */

enum { STEP = 3, BATCH = 7 };
#define TOLERANCE 3e-5

/* A call as calculator_cuda makes it. */
static bool run_kernels (ops *unused, const ops_call *call, error *err) {
  (void)unused;
  return kernel_ops_run (call, 0, err);
}

/* With room for some sums in several parts. */
static bool run_with_workspace (ops *unused, const ops_call *call, error *err) {
  (void)unused;
  return kernel_ops_run (call, 1 << 16, err);
}

/* By the CPU whole, by the kernels in parts whose operands are cut elsewhere again. */
static void compare (op_bench *b, const compute *c, const char *name, bool seen[COMPUTE_KINDS]) {
  static const int64_t parts[] = { 1, 2, 7 }, cuts[] = { -1, 1, 4 };
  op_bench_supply (b, c);
  op_bench_saved before = op_bench_save (b);
  b->run = NULL;
  op_bench_run (b, c, 1, -1, STEP);
  op_bench_saved expected = op_bench_save (b);
  for (size_t k = 0; k < 9; k++) {
    b->run = k % 2 == 0 ? run_kernels : run_with_workspace;
    op_bench_restore (b, &before);
    op_bench_run (b, c, parts[k / 3], cuts[k % 3], STEP);
    for (int i = 0; i < expected.n; i++)
      ck_assert_msg (
          b->arrays[i].type == INDEX || b->arrays[i].type == BYTE
              ? memcmp (b->arrays[i].data, expected.data[i], (size_t)b->arrays[i].bytes) == 0
              : op_bench_alike (&b->arrays[i], expected.data[i], TOLERANCE),
          "%s (%s), %lld parts, cut at %lld: %s differs", name, compute_kind_names[c->kind],
          (long long)parts[k / 3], (long long)cuts[k % 3], b->arrays[i].name);
  }
  op_bench_restore (b, &expected);
  b->run = NULL;
  op_bench_forget (&before);
  op_bench_forget (&expected);
  seen[c->kind] = true;
}

static void compare_alone (const compute *c, void *to) {
  bool *seen = to;
  op_bench b;
  op_bench_begin (&b, 23);
  b.low = 0.1;
  b.high = 0.9;
  op_bench_supply (&b, c);
  compare (&b, c, "alone", seen);
  op_bench_end (&b);
}

/* Kinds that have no gradient of their own.  The rate is so high that an update left out is seen in
   bf16 as well. */
typedef void on_kind (const compute *c, void *context);

static void each_other (bool master, on_kind *each, void *context) {
  compute_update u = { .count = 37,
                       .rate_ppb = 100000000,
                       .decay_ppb = 100000,
                       .momentum_ppm = 900000,
                       .beta1_ppm = 900000,
                       .beta2_ppm = 999000,
                       .eps_ppt = 10000,
                       .master = master };
  static const compute_kind kinds[] = { COMPUTE_sgd, COMPUTE_momentum, COMPUTE_adam };
  for (int k = 0; k < 3; k++)
    each (&(compute){ .kind = kinds[k], .update = u }, context);
  each (&(compute){ .kind = COMPUTE_zero, .map = { .batch = 7, .size = 5 } }, context);
  each (&(compute){ .kind = COMPUTE_add, .map = { .batch = 7, .size = 5 } }, context);
  each (&(compute){ .kind = COMPUTE_transpose, .rows = { .batch = 7, .rows = 3, .width = 5 } },
        context);
  for (int t = 0; t < 4; t++) {
    compute_matmul m = { .batch = 7, .heads = 2, .m = 3, .n = 4, .k = 5, .root = 5 };
    m.transpose_a = t & 1;
    m.transpose_b = t >> 1;
    m.a_head = m.m * m.k;
    m.b_head = m.k * m.n;
    m.c_head = m.m * m.n;
    m.a_item = 2 * m.a_head;
    m.b_item = 2 * m.b_head;
    m.c_item = 2 * m.c_head;
    m.a_row = m.transpose_a ? m.m : m.k;
    m.b_row = m.transpose_b ? m.k : m.n;
    m.c_row = m.n;
    each (&(compute){ .kind = COMPUTE_matmul, .matmul = m }, context);
  }
}

CLAIM (every_kernel_gives_what_the_cpu_gives) {
  bool seen[COMPUTE_KINDS] = { false };
  for (int i = 0; i < op_cases_count; i++) {
    const gradient_case *g = &op_cases[i];
    op_bench b;
    compute c = op_with_batch (&g->c, BATCH);
    op_case_begin (&b, g, &c);
    compare (&b, &c, g->name, seen);
    for (int k = 0; k < g->n_back; k++) {
      compute back = op_back_of (&c, g->back[k]);
      compare (&b, &back, g->name, seen);
    }
    op_bench_end (&b);
  }
  each_other (false, compare_alone, seen);
  for (int i = 0; i < COMPUTE_KINDS; i++)
    ck_assert_msg (seen[i], "%s is not tried", compute_kind_names[i]);
}

/* ---- bf16 ---- */

enum { BF16_PARTS = 3 };
#define BF16_TOLERANCE 0.02

/* What the op reads, rounded, so that both types read the same numbers. */
static void round_all (op_bench *b, const compute *c) {
  operand o[COMPUTE_MOST_OPERANDS];
  char name[24];
  int n = compute_operands (c, o);
  for (int i = 0; i < n; i++) {
    op_bench_name (o, n, i, name);
    bench_array *x = o[i].use == ABSENT ? NULL : op_bench_find (b, name);
    for (int64_t k = 0; x != NULL && x->type == DATA && k < x->count; k++)
      ((float *)x->data)[k] = bf16_number (bf16_of (((float *)x->data)[k]));
  }
}

static bool is_wide (const bench_array *x) {
  return x->bytes == 4 * x->count;
}

static void copy_array (const bench_array *from, bench_array *to) {
  if (is_wide (to) || to->type == BYTE) {
    memcpy (to->data, from->data, (size_t)to->bytes);
    return;
  }
  for (int64_t k = 0; k < from->count; k++)
    ((uint16_t *)to->data)[k] = bf16_of (((const float *)from->data)[k]);
}

/* How many of the numbers in bf16 were compared, and how many are within half a unit of the last
   place of the largest. */
typedef struct nearness {
  int64_t all, within_half;
} nearness;

static bool nearly (const bench_array *expected, const bench_array *got, double wide_tolerance,
                    nearness *near) {
  double most = 0, tolerance = is_wide (got) ? wide_tolerance : BF16_TOLERANCE;
  if (got->type == BYTE || got->type == INDEX)
    return memcmp (expected->data, got->data, (size_t)got->bytes) == 0;
  const float *want = expected->data;
  for (int64_t k = 0; k < got->count; k++)
    most = fmax (most, fabs (want[k]));
  for (int64_t k = 0; k < got->count; k++) {
    float x = is_wide (got) ? ((const float *)got->data)[k]
                            : bf16_number (((const uint16_t *)got->data)[k]);
    double far = fabs ((double)x - want[k]);
    if (!(far <= tolerance * most) && !(isnan (x) && isnan (want[k])))
      return false;
    near->all += !is_wide (got) && !isnan (x);
    near->within_half += !is_wide (got) && far <= most / 256;
  }
  return true;
}

static void compare_bf16 (op_bench *b, const compute *c, const char *name, double wide_tolerance,
                          nearness *near) {
  op_bench narrow;
  compute half = *c;
  half.dtype = DTYPE_BF16;
  op_bench_supply (b, c);
  round_all (b, c);
  op_bench_begin (&narrow, 5);
  op_bench_supply (&narrow, &half);
  for (int i = 0; i < narrow.n; i++)
    copy_array (op_bench_find (b, narrow.arrays[i].name), &narrow.arrays[i]);
  b->run = NULL;
  op_bench_run (b, c, 1, -1, STEP);
  narrow.run = run_with_workspace;
  op_bench_run (&narrow, &half, BF16_PARTS, 4, STEP);
  for (int i = 0; i < narrow.n; i++)
    ck_assert_msg (
        nearly (op_bench_find (b, narrow.arrays[i].name), &narrow.arrays[i], wide_tolerance, near),
        "%s (%s): %s differs", name, compute_kind_names[c->kind], narrow.arrays[i].name);
  op_bench_end (&narrow);
}

/* What an update keeps in fp32 is not rounded. */
static void compare_bf16_alone (const compute *c, void *near) {
  op_bench b;
  op_bench_begin (&b, 23);
  b.low = 0.1;
  b.high = 0.9;
  compare_bf16 (&b, c, "alone", TOLERANCE, near);
  op_bench_end (&b);
}

CLAIM (every_kernel_in_bf16_gives_what_fp32_gives_but_for_rounding) {
  nearness near = { 0 };
  for (int i = 0; i < op_cases_count; i++) {
    const gradient_case *g = &op_cases[i];
    op_bench b;
    compute c = op_with_batch (&g->c, BATCH);
    op_case_begin (&b, g, &c);
    compare_bf16 (&b, &c, g->name, BF16_TOLERANCE, &near);
    for (int k = 0; k < g->n_back; k++) {
      compute back = op_back_of (&c, g->back[k]);
      compare_bf16 (&b, &back, g->name, BF16_TOLERANCE, &near);
    }
    op_bench_end (&b);
  }
  each_other (true, compare_bf16_alone, &near);
  ck_assert_msg (near.within_half * 1000 >= near.all * 999, "%lld of %lld are within half a unit",
                 (long long)near.within_half, (long long)near.all);
}

CLAIM (bf16_is_rounded_to_the_nearest_and_ties_to_even) {
  static const struct {
    float x, y;
  } cases[] = { { 1, 1 },
                { 1.00390625f, 1 },         /* a tie, down to even */
                { 1.01171875f, 1.015625f }, /* a tie, up to even */
                { 1.003907f, 1.0078125f },  /* above the tie */
                { -1.01171875f, -1.015625f },
                { 3.3961776e38f, INFINITY } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    ck_assert_float_eq (bf16_number (bf16_of (cases[i].x)), cases[i].y);
  ck_assert (isnan (bf16_number (bf16_of (NAN))));
  for (uint32_t i = 0; i < 65536; i++) /* all of them stay what they are */
    ck_assert (isnan (bf16_number ((uint16_t)i)) || bf16_of (bf16_number ((uint16_t)i)) == i);
}

/* ---- whole networks ---- */

enum { STEPS = 2 };

static bool soaks (void) {
  return getenv ("FERRY_SOAK") != NULL;
}

typedef struct listened {
  double far; /* the largest of |loss - unswapped| / unswapped */
} listened;

static void on_step (void *context, const train_step *s) {
  listened *l = context;
  double far = fabs (s->loss - s->unswapped) / fabs (s->unswapped);
  if (!(far <= l->far))
    l->far = far;
}

static train_result train (train_case *c, train_room room, bool compared, listened *l) {
  error err = { 0 };
  train_result r;
  train_options o = train_case_options (STEPS);
  o.kernels = true;
  o.compare = compared;
  o.on_step = compared ? on_step : NULL;
  o.context = l;
  if (!train_run (c->trace, train_case_plan (c, room), &o, c->a, &r, &err))
    ck_abort_msg ("%s: %s", c->trace->name, err.text);
  return r;
}

/* Every second network kept and made again, the others cut, or all of it mixed; FERRY_SOAK asks
   for all ways of each. */
static bool is_tried (int net, train_mode mode) {
  if (soaks ())
    return true;
  if (net % 2 == 0)
    return mode == SWAPPED || mode == MADE_AGAIN;
  return mode == (net % 4 == 1 ? MIXED : CUT);
}

/* Kernels do not round as the CPU does, but under every plan as under any other. */
CLAIM_EACH (a_network_learns_the_same_bits_by_kernels_under_every_plan, 0, SMALL_NETS) {
  char kept[SHA256_TEXT] = "";
  for (int mode = 0; mode < TRAIN_MODES; mode++) {
    train_case c;
    listened l = { 0 };
    if (!is_tried (_i, (train_mode)mode))
      continue;
    train_case_open (&c, &small_nets[_i], (train_mode)mode);
    bool once = mode == MADE_AGAIN && !soaks (); /* what is kept was compared already */
    train_result floor = train (&c, FLOOR, false, NULL);
    train_result ample = once ? floor : train (&c, AMPLE, true, &l);
    ck_assert_msg (l.far < 1e-4, "%s, %s: a loss is %g from the CPU's", small_nets[_i].name,
                   train_mode_names[mode], l.far);
    ck_assert_msg (strcmp (ample.digest, floor.digest) == 0, "%s, %s: other bits at the floor",
                   small_nets[_i].name, train_mode_names[mode]);
    if (mode == SWAPPED)
      memcpy (kept, ample.digest, SHA256_TEXT);
    if (mode == MADE_AGAIN)
      ck_assert_msg (strcmp (ample.digest, kept) == 0, "%s: other bits where things are made again",
                     small_nets[_i].name);
    train_case_close (&c);
  }
}

int main (void) {
  return suite_run ("kernels", 120);
}
