#include "executor/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/blas.h"
#include "executor/ops_inner.h"
#include "tests/op_bench.h"
#include "tests/plain_conv.h"
#include "tests/suite.h"

/* ---- gradients against finite differences ---- */

typedef struct gradient_case {
  const char *name;
  compute c; /* forward; its batch is set later */
  compute_kind back[3];
  int n_back;
  const char *outs[2][2]; /* an output of the forward, and what its gradient is called */
  double low, high;       /* of the inputs */
  bool grid;              /* a kinked function: inputs far from the kinks */
  int64_t limit;
} gradient_case;

#define CONV(...) { .kind = COMPUTE_conv_fwd, .conv = { .groups = 1, __VA_ARGS__ } }
#define DECONV(...) { .kind = COMPUTE_deconv_fwd, .conv = { .groups = 1, __VA_ARGS__ } }
#define IN(c, d, h, w) .in_channels = c, .in_d = d, .in_h = h, .in_w = w
#define OUT(c, d, h, w) .out_channels = c, .out_d = d, .out_h = h, .out_w = w
#define KERNEL(d, h, w) .kernel_d = d, .kernel_h = h, .kernel_w = w
#define STRIDE(d, h, w) .stride_d = d, .stride_h = h, .stride_w = w
#define PAD(d, h, w) .pad_d = d, .pad_h = h, .pad_w = w
#define SPACE_IN(d, h, w) .in_d = d, .in_h = h, .in_w = w
#define SPACE_OUT(d, h, w) .out_d = d, .out_h = h, .out_w = w
#define BACK(...)           \
  .back = { __VA_ARGS__ }, \
  .n_back = sizeof (compute_kind[]){ __VA_ARGS__ } / sizeof (compute_kind)
#define CONV_BACK BACK (COMPUTE_conv_bwd_data, COMPUTE_conv_bwd_weights, COMPUTE_bias_bwd)
#define DECONV_BACK BACK (COMPUTE_deconv_bwd_data, COMPUTE_deconv_bwd_weights, COMPUTE_bias_bwd)
#define Y .outs = { { "y", "dy" } }
#define LOSS .outs = { { "loss", NULL } }

/* clang-format off */
static const gradient_case cases[] = {
  { "conv 3 x 2", CONV (IN (3, 1, 7, 6), OUT (5, 1, 3, 4), KERNEL (1, 3, 2), STRIDE (1, 2, 2),
                        PAD (0, 0, 1), .bias = 1), CONV_BACK, Y },
  { "conv 3 x 3 padded", CONV (IN (2, 1, 5, 9), OUT (3, 1, 5, 9), KERNEL (1, 3, 3),
                               STRIDE (1, 1, 1), PAD (0, 1, 1), .bias = 1), CONV_BACK, Y },
  { "conv of a point", CONV (IN (4, 1, 3, 5), OUT (7, 1, 3, 5), KERNEL (1, 1, 1), STRIDE (1, 1, 1),
                             .bias = 1), CONV_BACK, Y },
  { "conv of every other point", CONV (IN (3, 1, 5, 5), OUT (4, 1, 3, 3), KERNEL (1, 1, 1),
                                       STRIDE (1, 2, 2), .bias = 1), CONV_BACK, Y },
  { "conv with a stride beyond its kernel", CONV (IN (2, 1, 8, 11), OUT (3, 1, 3, 3),
      KERNEL (1, 2, 2), STRIDE (1, 3, 4), .bias = 1), CONV_BACK, Y },
  { "conv of groups", { .kind = COMPUTE_conv_fwd, .conv = { .groups = 2, IN (4, 1, 5, 4),
      OUT (6, 1, 5, 4), KERNEL (1, 3, 3), STRIDE (1, 1, 1), PAD (0, 1, 1), .bias = 1 } },
    CONV_BACK, Y },
  { "conv in three dimensions", CONV (IN (2, 4, 3, 5), OUT (3, 2, 3, 3), KERNEL (2, 3, 3),
      STRIDE (2, 1, 2), PAD (0, 1, 1), .bias = 1), CONV_BACK, Y },
  { "conv wider than its input", CONV (IN (2, 1, 2, 3), OUT (3, 1, 2, 3), KERNEL (1, 5, 7),
      STRIDE (1, 1, 1), PAD (0, 2, 3), .bias = 1), CONV_BACK, Y },
  { "deconv", DECONV (IN (3, 1, 3, 4), OUT (2, 1, 6, 8), KERNEL (1, 4, 4), STRIDE (1, 2, 2),
                      PAD (0, 1, 1), .bias = 1), DECONV_BACK, Y },
  { "deconv in three dimensions", DECONV (IN (3, 2, 3, 2), OUT (2, 4, 6, 4), KERNEL (2, 2, 2),
      STRIDE (2, 2, 2), .bias = 1), DECONV_BACK, Y },
  { "deconv from a point", DECONV (IN (5, 1, 1, 1), OUT (2, 1, 4, 4), KERNEL (1, 4, 4),
      STRIDE (1, 1, 1)), BACK (COMPUTE_deconv_bwd_data, COMPUTE_deconv_bwd_weights), Y },
  { "deconv of groups", { .kind = COMPUTE_deconv_fwd, .conv = { .groups = 3, IN (3, 1, 2, 3),
      OUT (6, 1, 5, 7), KERNEL (1, 3, 3), STRIDE (1, 2, 2), .bias = 1 } }, DECONV_BACK, Y },
  { "linear", { .kind = COMPUTE_linear_fwd, .linear = { .rows = 3, .in = 5, .out = 7, .bias = 1 } },
    BACK (COMPUTE_linear_bwd_data, COMPUTE_linear_bwd_weights, COMPUTE_bias_bwd), Y },
  { "attention", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 4, .kv_heads = 2,
      .queries = 5, .keys = 7, .width = 3 } }, BACK (COMPUTE_attention_bwd), Y },
  { "causal attention", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 2, .kv_heads = 2,
      .queries = 6, .keys = 6, .width = 5, .causal = 1, .packed = 1 } },
    BACK (COMPUTE_attention_bwd), Y },
  { "long attention with dropout", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 2,
      .kv_heads = 1, .queries = 67, .keys = 70, .width = 2, .causal = 1, .rate_ppm = 200000,
      .seed = 5, .offset = 11 } }, BACK (COMPUTE_attention_bwd), Y },
  { "repeat", { .kind = COMPUTE_repeat_fwd, .repeat = { .rows = 3, .kv_heads = 2, .copies = 3,
      .width = 2 } }, BACK (COMPUTE_repeat_bwd), Y },
  { "rotary", { .kind = COMPUTE_rotary_fwd, .rotary = { .rows = 5, .heads = 3, .width = 4,
      .theta = 100 } }, BACK (COMPUTE_rotary_bwd), .outs = { { "x", "dy" } } },
  { "max pool", { .kind = COMPUTE_maxpool_fwd, .pool = { .channels = 2, SPACE_IN (1, 7, 5),
      SPACE_OUT (1, 4, 3), KERNEL (1, 3, 3), STRIDE (1, 2, 2), PAD (0, 1, 1) } },
    BACK (COMPUTE_maxpool_bwd), Y, .grid = true },
  { "max pool in three dimensions", { .kind = COMPUTE_maxpool_fwd, .pool = { .channels = 2,
      SPACE_IN (4, 2, 6), SPACE_OUT (2, 1, 3), KERNEL (2, 2, 2), STRIDE (2, 2, 2) } },
    BACK (COMPUTE_maxpool_bwd), Y, .grid = true },
  { "average pool", { .kind = COMPUTE_avgpool_fwd, .pool = { .channels = 3, SPACE_IN (1, 5, 6),
      SPACE_OUT (1, 3, 3), KERNEL (1, 3, 2), STRIDE (1, 2, 2), PAD (0, 1, 0) } },
    BACK (COMPUTE_avgpool_bwd), Y },
  { "adaptive pool", { .kind = COMPUTE_adaptive_fwd, .pool = { .channels = 2, SPACE_IN (1, 5, 2),
      SPACE_OUT (1, 3, 7) } }, BACK (COMPUTE_adaptive_bwd), Y },
  { "crop", { .kind = COMPUTE_crop_fwd, .pool = { .channels = 2, SPACE_IN (3, 6, 5),
      SPACE_OUT (2, 3, 5) } }, BACK (COMPUTE_crop_bwd), Y },
  { "batch norm", { .kind = COMPUTE_batchnorm_fwd, .batchnorm = { .channels = 3, .inner = 4,
      .affine = 1, .eps_ppt = 10000000, .momentum_ppm = 100000 } }, BACK (COMPUTE_batchnorm_bwd), Y },
  { "plain batch norm", { .kind = COMPUTE_batchnorm_fwd, .batchnorm = { .channels = 2, .inner = 5,
      .eps_ppt = 1000000000 } }, BACK (COMPUTE_batchnorm_bwd), Y },
  { "layer norm", { .kind = COMPUTE_layernorm_fwd, .rownorm = { .rows = 3, .width = 7,
      .eps_ppt = 10000000 } }, BACK (COMPUTE_layernorm_bwd), Y },
  { "rms norm", { .kind = COMPUTE_rmsnorm_fwd, .rownorm = { .rows = 3, .width = 7,
      .eps_ppt = 10000000 } }, BACK (COMPUTE_rmsnorm_bwd), Y },
  { "relu", { .kind = COMPUTE_relu_fwd, .relu = { .size = 13, .slope_ppm = 0 } },
    BACK (COMPUTE_relu_bwd), Y, .grid = true },
  { "leaky relu", { .kind = COMPUTE_relu_fwd, .relu = { .size = 13, .slope_ppm = 200000 } },
    BACK (COMPUTE_relu_bwd), Y, .grid = true },
  { "tanh", { .kind = COMPUTE_tanh_fwd, .map = { .size = 13 } }, BACK (COMPUTE_tanh_bwd), Y },
  { "sigmoid", { .kind = COMPUTE_sigmoid_fwd, .map = { .size = 13 } }, BACK (COMPUTE_sigmoid_bwd),
    Y },
  { "swiglu", { .kind = COMPUTE_swiglu_fwd, .map = { .size = 13 } }, BACK (COMPUTE_swiglu_bwd), Y,
    .low = -3, .high = 3 },
  { "gelu", { .kind = COMPUTE_gelu_fwd, .gelu = { .size = 13 } }, BACK (COMPUTE_gelu_bwd), Y,
    .low = -3, .high = 3 },
  { "gelu by tanh", { .kind = COMPUTE_gelu_fwd, .gelu = { .size = 13, .tanh = 1 } },
    BACK (COMPUTE_gelu_bwd), Y, .low = -3, .high = 3 },
  { "dropout", { .kind = COMPUTE_dropout_fwd, .dropout = { .size = 17, .rate_ppm = 300000,
      .seed = 3, .offset = 100 } }, BACK (COMPUTE_dropout_bwd), Y },
  { "softmax", { .kind = COMPUTE_softmax_fwd, .softmax = { .heads = 2, .queries = 3,
      .columns = 5 } }, BACK (COMPUTE_softmax_bwd), Y },
  { "causal softmax", { .kind = COMPUTE_softmax_fwd, .softmax = { .heads = 2, .queries = 3,
      .columns = 5, .causal = 1 } }, BACK (COMPUTE_softmax_bwd), Y },
  { "entropy", { .kind = COMPUTE_entropy_fwd, .entropy = { .rows = 3, .classes = 6, .inner = 1,
      .weight_ppm = 300000 } }, BACK (COMPUTE_entropy_bwd), LOSS, .limit = 6 },
  { "entropy of voxels", { .kind = COMPUTE_entropy_fwd, .entropy = { .rows = 1, .classes = 3,
      .inner = 7 } }, BACK (COMPUTE_entropy_bwd), LOSS, .limit = 3 },
  { "binary entropy of 1", { .kind = COMPUTE_binary_fwd, .binary = { .size = 5, .label = 1 } },
    BACK (COMPUTE_binary_bwd), LOSS, .low = 0.2, .high = 0.8 },
  { "binary entropy of 0", { .kind = COMPUTE_binary_fwd, .binary = { .size = 5 } },
    BACK (COMPUTE_binary_bwd), LOSS, .low = 0.2, .high = 0.8 },
  { "embedding", { .kind = COMPUTE_embedding_fwd, .embedding = { .rows = 7, .width = 3,
      .table_rows = 4 } }, BACK (COMPUTE_embedding_bwd), Y, .limit = 4 },
  { "position", { .kind = COMPUTE_position_fwd, .position = { .rows = 3, .width = 5,
      .table_rows = 6 } }, BACK (COMPUTE_position_bwd), .outs = { { "x", "dy" } } },
  { "prepend", { .kind = COMPUTE_prepend_fwd, .rows = { .rows = 3, .width = 5 } },
    BACK (COMPUTE_prepend_bwd), Y },
  { "select", { .kind = COMPUTE_select_fwd, .rows = { .rows = 3, .width = 5, .row = 1 } },
    BACK (COMPUTE_select_bwd), Y },
  { "add a row", { .kind = COMPUTE_addrow_fwd, .rows = { .rows = 3, .width = 5 } },
    BACK (COMPUTE_addrow_bwd), Y },
  { "concat", { .kind = COMPUTE_concat_fwd, .concat = { .outer = 2, .sizes_count = 3,
      .sizes = { 3, 1, 4 } } }, BACK (COMPUTE_concat_bwd), Y },
  { "lstm", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 5, .has_dh = 1, .has_dc = 1 } },
    BACK (COMPUTE_lstm_bwd), .outs = { { "h", "dh" }, { "c", "dc" } } },
  { "lstm without what comes to c", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 3,
      .has_dh = 1 } }, BACK (COMPUTE_lstm_bwd), .outs = { { "h", "dh" } } },
  { "lstm without what comes to h", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 3,
      .has_dc = 1 } }, BACK (COMPUTE_lstm_bwd), .outs = { { "c", "dc" } } },
};
/* clang-format on */
enum { N_CASES = sizeof cases / sizeof cases[0], STEP = 3 };

static compute with_batch (const compute *c, int64_t batch) {
  compute r = *c;
  r.at[0] = batch;
  return r;
}

static compute back_of (const compute *forward, compute_kind kind) {
  compute c = *forward;
  c.kind = kind;
  if (kind == COMPUTE_bias_bwd && forward->kind == COMPUTE_linear_fwd) {
    const compute_linear *s = &forward->linear;
    c.bias = (compute_bias){ s->batch, s->rows, s->out, 1, 0 };
  } else if (kind == COMPUTE_bias_bwd) {
    const compute_conv *s = &forward->conv;
    c.bias = (compute_bias){ s->batch, 1, s->out_channels, s->out_d * s->out_h * s->out_w, 0 };
  } else if (kind >= COMPUTE_conv_fwd && kind <= COMPUTE_deconv_bwd_weights) {
    c.conv.bias = 0;
  } else if (kind == COMPUTE_linear_bwd_data || kind == COMPUTE_linear_bwd_weights) {
    c.linear.bias = 0;
  }
  return c;
}

/* The operand of the forward whose gradient a result of the backward is; NULL: none. */
static bench_array *target_of (op_bench *b, const char *result) {
  static const char *const odd[][2] = {
    { "probability", "x" }, { "dy", "x" }, { "dgate", "gate_x" }, { "done", "one" }
  };
  bench_array *a = result[0] == 'd' ? op_bench_find (b, result + 1) : NULL;
  if (a != NULL && strcmp (result, "dy") != 0)
    return a;
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
    if (strcmp (odd[i][0], result) == 0)
      return op_bench_find (b, odd[i][1]);
  return NULL;
}

/* The inputs of the forward as they were, for ops that update them. */
typedef struct saved {
  float *data[BENCH_ARRAYS];
  int n;
} saved;

static saved save (const op_bench *b) {
  saved s = { .n = b->n };
  for (int i = 0; i < b->n; i++) {
    s.data[i] = malloc ((size_t)b->arrays[i].bytes);
    memcpy (s.data[i], b->arrays[i].data, (size_t)b->arrays[i].bytes);
  }
  return s;
}

static void restore (op_bench *b, const saved *s) {
  for (int i = 0; i < s->n; i++)
    memcpy (b->arrays[i].data, s->data[i], (size_t)b->arrays[i].bytes);
}

static void forget (saved *s) {
  for (int i = 0; i < s->n; i++)
    free (s->data[i]);
}

/* What the gradients are of: the outputs times fixed numbers. */
static double objective (op_bench *b, const gradient_case *g) {
  double sum = 0;
  for (int o = 0; o < 2 && g->outs[o][0] != NULL; o++) {
    const bench_array *y = op_bench_find (b, g->outs[o][0]);
    const bench_array *dy = g->outs[o][1] ? op_bench_find (b, g->outs[o][1]) : NULL;
    for (int64_t i = 0; i < y->count; i++)
      sum += (double)((float *)y->data)[i] * (dy ? ((float *)dy->data)[i] : 1);
  }
  return sum;
}

typedef struct differing {
  op_bench *b;
  const gradient_case *g;
  const compute *c;
  const saved *inputs;
} differing;

static double moved (const differing *d, bench_array *x, const float *way, double by) {
  restore (d->b, d->inputs);
  for (int64_t i = 0; i < x->count; i++)
    ((float *)x->data)[i] += (float)by * way[i];
  op_bench_run (d->b, d->c, 1, -1, STEP);
  return objective (d->b, d->g);
}

static void differs (const differing *d, bench_array *x, const float *gradient, const char *name) {
  float *way = malloc ((size_t)x->bytes);
  double h = d->g->grid ? 0.004 : 0.008;
  for (int turn = 0; turn < 3; turn++) {
    double told = 0, norm = 0;
    for (int64_t i = 0; i < x->count; i++) {
      way[i] = turn > 0 || i == x->count / 2 ? (random_next (&d->b->random) & 1 ? 1 : -1) : 0;
      told += (double)gradient[i] * way[i];
      norm += (double)gradient[i] * gradient[i];
    }
    double seen = (moved (d, x, way, h) - moved (d, x, way, -h)) / (2 * h);
    ck_assert_msg (fabs (seen - told) <= 4e-3 * sqrt (norm) + 2e-4,
                   "%s, batch %lld, %s: the gradient says %g, differences %g", d->g->name,
                   (long long)d->c->at[0], name, told, seen);
  }
  free (way);
  restore (d->b, d->inputs);
}

static void begin (op_bench *b, const gradient_case *g, const compute *c) {
  op_bench_begin (b, 17);
  b->grid = g->grid;
  if (g->high > g->low) {
    b->low = g->low;
    b->high = g->high;
  }
  b->limit = g->limit > 0 ? g->limit : 1;
  op_bench_supply (b, c);
}

/* The gradients that come to the outputs. */
static void supply_gradients (op_bench *b, const gradient_case *g, const compute *c) {
  operand o[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (c, o);
  b->grid = false;
  b->low = -1;
  b->high = 1;
  for (int k = 0; k < 2 && g->outs[k][1] != NULL; k++)
    for (int i = 0; i < n; i++)
      if (strcmp (o[i].name, g->outs[k][0]) == 0)
        op_bench_randomize (b, op_bench_add (b, g->outs[k][1], &o[i]));
}

static void check_gradients (const gradient_case *g, int64_t batch) {
  op_bench b;
  compute c = with_batch (&g->c, batch);
  begin (&b, g, &c);
  supply_gradients (&b, g, &c);
  saved inputs = save (&b);
  differing d = { &b, g, &c, &inputs };
  for (int k = 0; k < g->n_back; k++) {
    compute back = back_of (&c, g->back[k]);
    operand o[COMPUTE_MOST_OPERANDS];
    char name[24];
    int n = compute_operands (&back, o);
    restore (&b, &inputs);
    op_bench_run (&b, &c, 1, -1, STEP);
    op_bench_run (&b, &back, 1, -1, STEP);
    int checked = 0;
    saved results = save (&b);
    for (int i = 0; i < n; i++) {
      op_bench_name (o, n, i, name);
      bench_array *x = target_of (&b, name);
      if (!operand_writes (&o[i]) || x == NULL)
        continue;
      differs (&d, x, results.data[op_bench_find (&b, name) - b.arrays], name);
      checked++;
    }
    ck_assert_msg (checked > 0, "%s: %s gives no gradient", g->name,
                   compute_kind_names[back.kind]);
    forget (&results);
  }
  forget (&inputs);
  op_bench_end (&b);
}

START_TEST (gradients_are_those_of_finite_differences) {
  for (int i = 0; i < N_CASES; i++)
    for (int64_t batch = 1; batch <= 5; batch += 2)
      if (batch > 1 || cases[i].c.kind != COMPUTE_batchnorm_fwd || cases[i].c.batchnorm.inner > 1)
        check_gradients (&cases[i], batch);
}
END_TEST

/* ---- parts ---- */

static bool alike (const bench_array *a, const float *expected, double tolerance) {
  const float *x = a->data;
  if (a->type == BYTE || a->type == INDEX)
    return memcmp (a->data, expected, (size_t)a->bytes) == 0;
  double most = 0;
  for (int64_t i = 0; i < a->count; i++)
    most = fmax (most, fabs (expected[i]));
  for (int64_t i = 0; i < a->count; i++) /* NaN must be NaN: what nobody writes */
    if (!(fabs ((double)x[i] - expected[i]) <= tolerance * most) &&
        !(isnan (x[i]) && isnan (expected[i])))
      return false;
  return true;
}

static void run_both (op_bench *b, const gradient_case *g, const compute *c, const saved *inputs,
                      int64_t parts, int64_t cut) {
  restore (b, inputs);
  op_bench_run (b, c, parts, cut, STEP);
  for (int k = 0; k < g->n_back; k++) {
    compute back = back_of (c, g->back[k]);
    op_bench_run (b, &back, parts, cut, STEP);
  }
}

START_TEST (parts_and_pieces_give_what_the_whole_gives) {
  static const int64_t parts[] = { 1, 2, 3, 7 }, cuts[] = { -1, 1, 3, 4 };
  for (int i = 0; i < N_CASES; i++) {
    const gradient_case *g = &cases[i];
    op_bench b;
    compute c = with_batch (&g->c, 7);
    begin (&b, g, &c);
    supply_gradients (&b, g, &c);
    saved inputs = save (&b);
    run_both (&b, g, &c, &inputs, 1, -1);
    saved whole = save (&b);
    for (int k = 0; k < 16; k++) {
      run_both (&b, g, &c, &inputs, parts[k / 4], cuts[k % 4]);
      for (int x = 0; x < whole.n; x++)
        ck_assert_msg (alike (&b.arrays[x], whole.data[x], 1e-5), "%s, %lld parts: %s differs",
                       g->name, (long long)parts[k / 4], b.arrays[x].name);
      saved once = save (&b);
      run_both (&b, g, &c, &inputs, parts[k / 4], cuts[k % 4]);
      for (int x = 0; x < whole.n; x++)
        ck_assert_mem_eq (b.arrays[x].data, once.data[x], (size_t)b.arrays[x].bytes);
      forget (&once);
    }
    forget (&whole);
    forget (&inputs);
    op_bench_end (&b);
  }
}
END_TEST

/* ---- what is added to, what stands in place ---- */

START_TEST (a_gradient_can_be_added_to_another) {
  int tried = 0;
  for (int i = 0; i < N_CASES; i++)
    for (int k = 0; k < cases[i].n_back; k++) {
      op_bench b;
      compute c = with_batch (&cases[i].c, 3), back = back_of (&c, cases[i].back[k]), more = back;
      const char *const names[] = { "dw", "db", "dtable", "dtoken" };
      if (back.kind <= COMPUTE_deconv_bwd_weights)
        more.conv.accumulate = 1;
      else if (back.kind == COMPUTE_linear_bwd_weights)
        more.linear.accumulate = 1;
      else if (back.kind == COMPUTE_bias_bwd)
        more.bias.accumulate = 1;
      else if (back.kind == COMPUTE_batchnorm_bwd)
        more.batchnorm.accumulate = 1;
      else if (back.kind == COMPUTE_layernorm_bwd || back.kind == COMPUTE_rmsnorm_bwd)
        more.rownorm.accumulate = 1;
      else if (back.kind == COMPUTE_embedding_bwd)
        more.embedding.accumulate = 1;
      else if (back.kind == COMPUTE_position_bwd)
        more.position.accumulate = 1;
      else if (back.kind == COMPUTE_prepend_bwd)
        more.rows.accumulate = 1;
      else
        continue;
      begin (&b, &cases[i], &c);
      supply_gradients (&b, &cases[i], &c);
      op_bench_run (&b, &c, 1, -1, STEP);
      op_bench_run (&b, &back, 2, -1, STEP);
      saved once = save (&b);
      op_bench_run (&b, &more, 2, -1, STEP);
      for (int x = 0; x < b.n; x++)
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
          if (strcmp (b.arrays[x].name, names[j]) == 0) {
            for (int64_t at = 0; at < b.arrays[x].count; at++)
              once.data[x][at] *= 2;
            ck_assert_msg (alike (&b.arrays[x], once.data[x], 1e-5), "%s: %s", cases[i].name,
                           names[j]);
            tried++;
          }
      forget (&once);
      op_bench_end (&b);
    }
  ck_assert_int_gt (tried, 25);
}
END_TEST

/* Sets in_place where the kind has it. */
static bool put_in_place (compute *c) {
  int64_t *field = NULL;
  switch (c->kind) {
  case COMPUTE_relu_fwd:
  case COMPUTE_relu_bwd:
    field = &c->relu.in_place;
    break;
  case COMPUTE_tanh_fwd:
  case COMPUTE_tanh_bwd:
  case COMPUTE_sigmoid_fwd:
  case COMPUTE_sigmoid_bwd:
  case COMPUTE_add:
    field = &c->map.in_place;
    break;
  case COMPUTE_gelu_bwd:
    field = &c->gelu.in_place;
    break;
  case COMPUTE_dropout_bwd:
    field = &c->dropout.in_place;
    break;
  case COMPUTE_softmax_fwd:
  case COMPUTE_softmax_bwd:
    field = &c->softmax.in_place;
    break;
  case COMPUTE_batchnorm_bwd:
    field = &c->batchnorm.in_place;
    break;
  default:
    return false;
  }
  *field = 1;
  return true;
}

static void check_in_place (op_bench *b, const compute *c, const char *from, const char *to) {
  compute there = *c;
  if (!put_in_place (&there))
    return;
  op_bench_run (b, c, 2, -1, STEP);
  op_bench_run (b, &there, 2, -1, STEP);
  const bench_array *x = op_bench_find (b, from), *y = op_bench_find (b, to);
  ck_assert_mem_eq (x->data, y->data, (size_t)x->bytes);
}

START_TEST (in_place_gives_the_same) {
  for (int i = 0; i < N_CASES; i++) {
    op_bench b;
    compute c = with_batch (&cases[i].c, 3), back = back_of (&c, cases[i].back[0]);
    begin (&b, &cases[i], &c);
    supply_gradients (&b, &cases[i], &c);
    op_bench_run (&b, &c, 1, -1, STEP);
    check_in_place (&b, &back, "dy", "dx");
    check_in_place (&b, &c, "x", "y");
    op_bench_end (&b);
  }
}
END_TEST

START_TEST (sums_zeros_and_turned_rows_are_what_they_say) {
  op_bench b;
  op_bench_begin (&b, 5);
  compute c = { .kind = COMPUTE_add, .map = { 3, 7, 0 } };
  op_bench_run (&b, &c, 2, -1, 0);
  const float *x = op_bench_find (&b, "a")->data, *y = op_bench_find (&b, "b")->data;
  const float *sum = op_bench_find (&b, "y")->data;
  for (int i = 0; i < 21; i++)
    ck_assert_float_eq (sum[i], x[i] + y[i]);
  check_in_place (&b, &c, "a", "y");
  c.kind = COMPUTE_zero;
  op_bench_run (&b, &c, 3, -1, 0);
  for (int i = 0; i < 21; i++)
    ck_assert_float_eq (sum[i], 0);
  op_bench_end (&b);

  op_bench_begin (&b, 6);
  c = (compute){ .kind = COMPUTE_transpose, .rows = { .batch = 3, .rows = 2, .width = 5 } };
  op_bench_run (&b, &c, 2, -1, 0);
  x = op_bench_find (&b, "x")->data;
  y = op_bench_find (&b, "y")->data;
  for (int i = 0; i < 3; i++)
    for (int r = 0; r < 2; r++)
      for (int k = 0; k < 5; k++)
        ck_assert_float_eq (y[i * 10 + k * 2 + r], x[i * 10 + r * 5 + k]);
  op_bench_end (&b);
}
END_TEST

START_TEST (running_statistics_follow_the_batch) {
  op_bench b;
  compute c = { .kind = COMPUTE_batchnorm_fwd,
                .batchnorm = { .batch = 3, .channels = 2, .inner = 5, .eps_ppt = 10000000,
                               .momentum_ppm = 250000 } };
  op_bench_begin (&b, 21);
  op_bench_supply (&b, &c);
  saved before = save (&b);
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
  forget (&before);
  op_bench_end (&b);
}
END_TEST

/* ---- products ---- */

static void check_matmul (compute_matmul s) {
  op_bench b;
  compute c = { .kind = COMPUTE_matmul, .matmul = s };
  op_bench_begin (&b, 8);
  op_bench_supply (&b, &c);
  bench_array *out = op_bench_find (&b, "c");
  saved before = save (&b);
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
  ck_assert (alike (out, want, 1e-5));
  forget (&before);
  op_bench_end (&b);
}

START_TEST (products_of_activations_find_their_operands) {
  for (int ta = 0; ta < 2; ta++)
    for (int tb = 0; tb < 2; tb++)
      check_matmul ((compute_matmul){ .batch = 3, .heads = 2, .m = 4, .n = 5, .k = 3,
                                      .transpose_a = ta, .transpose_b = tb, .root = 7,
                                      .a_item = 60, .a_offset = 2, .a_head = 25, .a_row = 6,
                                      .b_item = 70, .b_offset = 1, .b_head = 33, .b_row = 6,
                                      .c_item = 41, .c_head = 20, .c_row = 5 });
  /* Packed queries, keys and values: rows of 3 x 2 heads of 4. */
  check_matmul ((compute_matmul){ .batch = 3, .heads = 2, .m = 5, .n = 5, .k = 4,
                                  .transpose_b = 1, .root = 4, .a_item = 120, .a_head = 4,
                                  .a_row = 24, .b_item = 120, .b_offset = 8, .b_head = 4,
                                  .b_row = 24, .c_item = 50, .c_head = 25, .c_row = 5,
                                  .b_in_a = 1 });
  check_matmul ((compute_matmul){ .batch = 3, .heads = 2, .m = 5, .n = 4, .k = 5, .root = 4,
                                  .a_item = 50, .a_head = 25, .a_row = 5, .b_item = 40,
                                  .b_head = 4, .b_row = 8, .c_item = 120, .c_offset = 16,
                                  .c_head = 4, .c_row = 24, .update_c = 1 });
}
END_TEST

static void check_conv (compute_conv s) {
  compute c = { .kind = COMPUTE_conv_fwd, .conv = s };
  op_bench b;
  op_bench_begin (&b, 9);
  op_bench_run (&b, &c, 1, -1, 0);
  const float *x = op_bench_find (&b, "x")->data, *w = op_bench_find (&b, "w")->data;
  bench_array *y = op_bench_find (&b, "y");
  float *want = malloc ((size_t)y->bytes);
  plain_conv (&s, x, w, s.bias ? op_bench_find (&b, "b")->data : NULL, want);
  ck_assert (alike (y, want, 1e-5));
  free (want);
  compute data = back_of (&c, COMPUTE_conv_bwd_data);
  op_bench_run (&b, &data, 1, -1, 0);
  bench_array *dx = op_bench_find (&b, "dx");
  want = malloc ((size_t)dx->bytes);
  plain_conv_data (&s, op_bench_find (&b, "dy")->data, w, want);
  ck_assert (alike (dx, want, 1e-5));
  free (want);
  compute weights = back_of (&c, COMPUTE_conv_bwd_weights);
  op_bench_run (&b, &weights, 1, -1, 0);
  bench_array *dw = op_bench_find (&b, "dw");
  want = malloc ((size_t)dw->bytes);
  plain_conv_weights (&s, x, op_bench_find (&b, "dy")->data, want);
  ck_assert (alike (dw, want, 2e-5));
  free (want);
  op_bench_end (&b);
}

START_TEST (convolution_is_that_of_plain_loops) {
  for (int i = 0; i < N_CASES; i++)
    if (cases[i].c.kind == COMPUTE_conv_fwd)
      check_conv (with_batch (&cases[i].c, 3).conv);
  /* Many tiles of lines in an item, and several items in a tile with a smaller one at the end. */
  check_conv ((compute_conv){ .batch = 2, .groups = 1, IN (24, 1, 61, 67), OUT (5, 1, 61, 67),
                              KERNEL (1, 3, 3), STRIDE (1, 1, 1), PAD (0, 1, 1), .bias = 1 });
  check_conv ((compute_conv){ .batch = 7, .groups = 1, IN (64, 1, 11, 11), OUT (3, 1, 11, 11),
                              KERNEL (1, 5, 5), STRIDE (1, 1, 1), PAD (0, 2, 2) });
}
END_TEST

START_TEST (transposed_convolution_is_that_of_plain_loops) {
  for (int i = 0; i < N_CASES; i++) {
    compute c = with_batch (&cases[i].c, 3);
    op_bench b;
    if (c.kind != COMPUTE_deconv_fwd)
      continue;
    op_bench_begin (&b, 10);
    op_bench_run (&b, &c, 1, -1, 0);
    bench_array *y = op_bench_find (&b, "y");
    float *want = malloc ((size_t)y->bytes);
    plain_deconv (&c.conv, op_bench_find (&b, "x")->data, op_bench_find (&b, "w")->data,
                  c.conv.bias ? op_bench_find (&b, "b")->data : NULL, want);
    ck_assert_msg (alike (y, want, 1e-5), "%s", cases[i].name);
    free (want);
    op_bench_end (&b);
  }
}
END_TEST

START_TEST (our_own_product_is_that_of_the_library) {
  static const int64_t sizes[][3] = { { 1, 1, 1 }, { 5, 7, 3 }, { 64, 256, 256 }, { 65, 257, 300 },
                                      { 3, 1, 700 }, { 130, 9, 17 } };
  random_state r = random_seed (4);
  for (int i = 0; i < 24; i++) {
    const int64_t *s = sizes[i / 4];
    bool ta = i & 1, tb = i & 2;
    blas_product p = { s[0], s[1], s[2], ta, tb, (ta ? s[0] : s[2]) + 1, (tb ? s[2] : s[1]) + 2,
                       s[1] + 3, 0.5f, i % 3 == 0 ? 0 : 1 };
    float *m[4];
    int64_t counts[] = { (ta ? s[2] : s[0]) * p.a_row, (tb ? s[1] : s[2]) * p.b_row,
                         s[0] * p.c_row, s[0] * p.c_row };
    for (int k = 0; k < 4; k++) {
      m[k] = malloc ((size_t)counts[k] * sizeof (float));
      for (int64_t j = 0; j < counts[k]; j++)
        m[k][j] = k == 3 ? m[2][j] : (float)random_between (&r, -999, 999) / 999;
      if (k == 2 && p.beta == 0)
        for (int64_t j = 0; j < counts[k]; j++)
          m[k][j] = j % p.c_row < s[1] ? NAN : 7; /* what is not read may be anything */
    }
    blas_sgemm (&p, m[0], m[1], m[2]);
    blas_own_sgemm (&p, m[0], m[1], m[3]);
    for (int64_t j = 0; j < counts[2]; j++)
      ck_assert_float_eq_tol (m[2][j], m[3][j], 1e-4f);
    for (int k = 0; k < 4; k++)
      free (m[k]);
  }
}
END_TEST

/* ---- random numbers ---- */

START_TEST (dropout_depends_on_seed_step_and_place_only) {
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
END_TEST

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

START_TEST (updates_follow_their_formulae) {
  for (int master = 0; master < 2; master++) {
    check_update ((compute){ .kind = COMPUTE_sgd,
                             .update = { .count = 9, .rate_ppb = 100000000,
                                         .decay_ppb = 50000000, .master = master } });
    check_update ((compute){ .kind = COMPUTE_momentum,
                             .update = { .count = 9, .rate_ppb = 100000000,
                                         .decay_ppb = 50000000, .momentum_ppm = 900000,
                                         .master = master } });
    check_update ((compute){ .kind = COMPUTE_adam,
                             .update = { .count = 9, .rate_ppb = 100000000,
                                         .decay_ppb = 50000000, .beta1_ppm = 900000,
                                         .beta2_ppm = 990000, .eps_ppt = 10000,
                                         .master = master } });
  }
}
END_TEST

/* ---- calls that make no sense ---- */

START_TEST (a_wrong_call_is_told) {
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
END_TEST

START_TEST (no_kind_is_left_out) {
  static const compute_kind elsewhere[] = { COMPUTE_add,  COMPUTE_zero,     COMPUTE_transpose,
                                            COMPUTE_sgd,  COMPUTE_momentum, COMPUTE_adam,
                                            COMPUTE_matmul };
  bool tested[COMPUTE_KINDS] = { false };
  for (int i = 0; i < N_CASES; i++) {
    tested[cases[i].c.kind] = true;
    for (int k = 0; k < cases[i].n_back; k++)
      tested[cases[i].back[k]] = true;
  }
  for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
    tested[elsewhere[i]] = true;
  for (int i = 0; i < COMPUTE_KINDS; i++)
    ck_assert_msg (tested[i], "%s has no test", compute_kind_names[i]);
}
END_TEST

int main (void) {
  const TTest *tests[] = { gradients_are_those_of_finite_differences,
                           parts_and_pieces_give_what_the_whole_gives,
                           a_gradient_can_be_added_to_another,
                           in_place_gives_the_same,
                           sums_zeros_and_turned_rows_are_what_they_say,
                           running_statistics_follow_the_batch,
                           products_of_activations_find_their_operands,
                           convolution_is_that_of_plain_loops,
                           transposed_convolution_is_that_of_plain_loops,
                           our_own_product_is_that_of_the_library,
                           dropout_depends_on_seed_step_and_place_only,
                           updates_follow_their_formulae,
                           a_wrong_call_is_told,
                           no_kind_is_left_out,
                           NULL };
  return suite_run ("ops", tests, 60);
}
