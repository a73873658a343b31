/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/op_bench.h"
#include "tests/op_cases.h"
#include "tests/suite.h"

/* ---- gradients against finite differences ---- */

enum { STEP = 3 };

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
  const op_bench_saved *inputs;
} differing;

static double moved (const differing *d, bench_array *x, const float *way, double by) {
  op_bench_restore (d->b, d->inputs);
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
  op_bench_restore (d->b, d->inputs);
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
  compute c = op_with_batch (&g->c, batch);
  op_case_begin (&b, g, &c);
  supply_gradients (&b, g, &c);
  op_bench_saved inputs = op_bench_save (&b);
  differing d = { &b, g, &c, &inputs };
  for (int k = 0; k < g->n_back; k++) {
    compute back = op_back_of (&c, g->back[k]);
    operand o[COMPUTE_MOST_OPERANDS];
    char name[24];
    int n = compute_operands (&back, o);
    op_bench_restore (&b, &inputs);
    op_bench_run (&b, &c, 1, -1, STEP);
    op_bench_run (&b, &back, 1, -1, STEP);
    int checked = 0;
    op_bench_saved results = op_bench_save (&b);
    for (int i = 0; i < n; i++) {
      op_bench_name (o, n, i, name);
      bench_array *x = target_of (&b, name);
      if (!operand_writes (&o[i]) || x == NULL)
        continue;
      differs (&d, x, results.data[op_bench_find (&b, name) - b.arrays], name);
      checked++;
    }
    ck_assert_msg (checked > 0, "%s: %s gives no gradient", g->name, compute_kind_names[back.kind]);
    op_bench_forget (&results);
  }
  op_bench_forget (&inputs);
  op_bench_end (&b);
}

CLAIM (gradients_are_those_of_finite_differences) {
  for (int i = 0; i < op_cases_count; i++)
    for (int64_t batch = 1; batch <= 5; batch += 2)
      if (batch > 1 || op_cases[i].c.kind != COMPUTE_batchnorm_fwd ||
          op_cases[i].c.batchnorm.inner > 1)
        check_gradients (&op_cases[i], batch);
}

/* ---- parts ---- */

static void run_both (op_bench *b, const gradient_case *g, const compute *c,
                      const op_bench_saved *inputs, int64_t parts, int64_t cut) {
  op_bench_restore (b, inputs);
  op_bench_run (b, c, parts, cut, STEP);
  for (int k = 0; k < g->n_back; k++) {
    compute back = op_back_of (c, g->back[k]);
    op_bench_run (b, &back, parts, cut, STEP);
  }
}

CLAIM (parts_and_pieces_give_what_the_whole_gives) {
  static const int64_t parts[] = { 1, 2, 3, 7 }, cuts[] = { -1, 1, 3, 4 };
  for (int i = 0; i < op_cases_count; i++) {
    const gradient_case *g = &op_cases[i];
    op_bench b;
    compute c = op_with_batch (&g->c, 7);
    op_case_begin (&b, g, &c);
    supply_gradients (&b, g, &c);
    op_bench_saved inputs = op_bench_save (&b);
    run_both (&b, g, &c, &inputs, 1, -1);
    op_bench_saved whole = op_bench_save (&b);
    for (int k = 0; k < 16; k++) {
      run_both (&b, g, &c, &inputs, parts[k / 4], cuts[k % 4]);
      for (int x = 0; x < whole.n; x++)
        ck_assert_msg (op_bench_alike (&b.arrays[x], whole.data[x], 1e-5),
                       "%s, %lld parts: %s differs", g->name, (long long)parts[k / 4],
                       b.arrays[x].name);
      op_bench_saved once = op_bench_save (&b);
      run_both (&b, g, &c, &inputs, parts[k / 4], cuts[k % 4]);
      for (int x = 0; x < whole.n; x++)
        ck_assert_mem_eq (b.arrays[x].data, once.data[x], (size_t)b.arrays[x].bytes);
      op_bench_forget (&once);
    }
    op_bench_forget (&whole);
    op_bench_forget (&inputs);
    op_bench_end (&b);
  }
}

/* ---- what is added to, what stands in place ---- */

CLAIM (a_gradient_can_be_added_to_another) {
  int tried = 0;
  for (int i = 0; i < op_cases_count; i++)
    for (int k = 0; k < op_cases[i].n_back; k++) {
      op_bench b;
      compute c = op_with_batch (&op_cases[i].c, 3), back = op_back_of (&c, op_cases[i].back[k]),
              more = back;
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
      op_case_begin (&b, &op_cases[i], &c);
      supply_gradients (&b, &op_cases[i], &c);
      op_bench_run (&b, &c, 1, -1, STEP);
      op_bench_run (&b, &back, 2, -1, STEP);
      op_bench_saved once = op_bench_save (&b);
      op_bench_run (&b, &more, 2, -1, STEP);
      for (int x = 0; x < b.n; x++)
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
          if (strcmp (b.arrays[x].name, names[j]) == 0) {
            for (int64_t at = 0; at < b.arrays[x].count; at++)
              once.data[x][at] *= 2;
            ck_assert_msg (op_bench_alike (&b.arrays[x], once.data[x], 1e-5), "%s: %s",
                           op_cases[i].name, names[j]);
            tried++;
          }
      op_bench_forget (&once);
      op_bench_end (&b);
    }
  ck_assert_int_gt (tried, 25);
}

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

CLAIM (in_place_gives_the_same) {
  for (int i = 0; i < op_cases_count; i++) {
    op_bench b;
    compute c = op_with_batch (&op_cases[i].c, 3), back = op_back_of (&c, op_cases[i].back[0]);
    op_case_begin (&b, &op_cases[i], &c);
    supply_gradients (&b, &op_cases[i], &c);
    op_bench_run (&b, &c, 1, -1, STEP);
    check_in_place (&b, &back, "dy", "dx");
    check_in_place (&b, &c, "x", "y");
    op_bench_end (&b);
  }
}

CLAIM (sums_zeros_and_turned_rows_are_what_they_say) {
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

CLAIM (no_kind_is_left_out) {
  static const compute_kind elsewhere[] = { COMPUTE_add,   COMPUTE_zero,     COMPUTE_transpose,
                                            COMPUTE_sgd,   COMPUTE_momentum, COMPUTE_adam,
                                            COMPUTE_matmul };
  bool tested[COMPUTE_KINDS] = { false };
  for (int i = 0; i < op_cases_count; i++) {
    tested[op_cases[i].c.kind] = true;
    for (int k = 0; k < op_cases[i].n_back; k++)
      tested[op_cases[i].back[k]] = true;
  }
  for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
    tested[elsewhere[i]] = true;
  for (int i = 0; i < COMPUTE_KINDS; i++)
    ck_assert_msg (tested[i], "%s has no test", compute_kind_names[i]);
}

/* What the table calls the backward of a kind is what its gradients were tested with, and nothing
   is a backward of nothing. */
CLAIM (the_table_names_the_backward_that_was_tested) {
  bool named[COMPUTE_KINDS] = { false };
  compute_kind back[COMPUTE_MOST_BACK];
  for (int i = 0; i < COMPUTE_KINDS; i++) {
    int n = compute_back_of ((compute_kind)i, back);
    ck_assert_msg ((n > 0) == (compute_way_of ((compute_kind)i) == WAY_FORWARD), "%s",
                   compute_kind_names[i]);
    for (int k = 0; k < n; k++)
      named[back[k]] = true;
  }
  for (int i = 0; i < COMPUTE_KINDS; i++)
    ck_assert_msg (named[i] || compute_way_of ((compute_kind)i) != WAY_BACKWARD,
                   "%s is the backward of nothing", compute_kind_names[i]);
  for (int i = 0; i < op_cases_count; i++)
    for (int k = 0; k < op_cases[i].n_back; k++) {
      bool found = false;
      for (int j = 0, n = compute_back_of (op_cases[i].c.kind, back); j < n; j++)
        found |= back[j] == op_cases[i].back[k];
      ck_assert_msg (found, "%s is not named as a backward of %s",
                     compute_kind_names[op_cases[i].back[k]],
                     compute_kind_names[op_cases[i].c.kind]);
    }
}

int main (void) {
  return suite_run ("ops", 60);
}
