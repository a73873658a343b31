/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/op_bench.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void op_bench_begin (op_bench *b, uint64_t seed) {
  error err = { 0 };
  *b = (op_bench){ .random = random_seed (seed), .low = -1, .high = 1, .limit = 1 };
  b->ops = ops_new (&err);
  ck_assert_ptr_nonnull (b->ops);
}

void op_bench_end (op_bench *b) {
  for (int i = 0; i < b->n; i++)
    free (b->arrays[i].data);
  ops_free (b->ops);
}

bench_array *op_bench_find (op_bench *b, const char *name) {
  for (int i = 0; i < b->n; i++)
    if (strcmp (b->arrays[i].name, name) == 0)
      return &b->arrays[i];
  return NULL;
}

bench_array *op_bench_add (op_bench *b, const char *name, const operand *like) {
  ck_assert_int_lt (b->n, BENCH_ARRAYS);
  bench_array *a = &b->arrays[b->n++];
  *a = (bench_array){ .count = like->elements, .bytes = like->bytes, .type = like->type };
  snprintf (a->name, sizeof a->name, "%s", name);
  /* Room for random numbers in fp32, also where those of the op are smaller. */
  size_t room = (size_t)(a->bytes > 4 * a->count ? a->bytes : 4 * a->count);
  a->data = malloc (room);
  memset (a->data, 0xff, room);
  return a;
}

/* On the grid each value is 0.03 from the next and 0.015 or more from 0, in a random order. */
void op_bench_randomize (op_bench *b, bench_array *a) {
  float *x = a->data;
  for (int64_t i = 0; i < a->count; i++)
    if (a->type == INDEX)
      ((int32_t *)a->data)[i] = (int32_t)random_between (&b->random, 0, b->limit - 1);
    else if (b->grid)
      x[i] = 0.03f * (float)(i - a->count / 2) + 0.015f;
    else
      x[i] = (float)(b->low +
                     (b->high - b->low) * 1e-6 * (double)random_between (&b->random, 0, 1000000));
  for (int64_t i = a->count - 1; b->grid && a->type != INDEX && i > 0; i--) {
    int64_t j = random_between (&b->random, 0, i);
    float other = x[j];
    x[j] = x[i];
    x[i] = other;
  }
}

void op_bench_name (const operand *o, int n, int i, char name[24]) {
  int before = 0, all = 0;
  for (int j = 0; j < n; j++)
    if (strcmp (o[j].name, o[i].name) == 0) {
      before += j < i;
      all++;
    }
  if (before == 0)
    snprintf (name, 24, "%s", o[i].name);
  else
    snprintf (name, 24, "%.10s%d", o[i].name, before);
}

void op_bench_supply (op_bench *b, const compute *c) {
  operand o[COMPUTE_MOST_OPERANDS];
  char name[24];
  int n = compute_operands (c, o);
  for (int i = 0; i < n; i++) {
    op_bench_name (o, n, i, name);
    if (o[i].use == ABSENT || op_bench_find (b, name) != NULL)
      continue;
    bench_array *a = op_bench_add (b, name, &o[i]);
    if (operand_reads (&o[i]))
      op_bench_randomize (b, a);
  }
}

/* ---- one part ---- */

typedef struct part {
  const compute *c;
  operand o[COMPUTE_MOST_OPERANDS];
  bench_array *arrays[COMPUTE_MOST_OPERANDS];
  ops_piece pieces[COMPUTE_MOST_OPERANDS][2];
  ops_operand operands[COMPUTE_MOST_OPERANDS];
  int n;
  int64_t first, end, cut;
} part;

/* Copies items between the arrays and the pieces. */
static void move (const part *p, int i, bool back) {
  int64_t item_bytes = p->arrays[i]->bytes / compute_batch (p->c), at = p->first;
  for (int32_t k = 0; k < p->operands[i].count; k++) {
    char *there = p->pieces[i][k].data, *here = (char *)p->arrays[i]->data + at * item_bytes;
    size_t size = (size_t)(p->pieces[i][k].items * item_bytes);
    memcpy (back ? here : there, back ? there : here, size);
    at += p->pieces[i][k].items;
  }
}

static void lay_out (part *p, int i) {
  int64_t item_bytes = p->arrays[i]->bytes / compute_batch (p->c);
  /* Operands are cut at different items. */
  int64_t cut = p->cut + (i % 2), bounds[] = { p->first, cut, p->end };
  bool two = cut > p->first && cut < p->end;
  if (!two)
    bounds[1] = p->end;
  for (int32_t k = 0; k < 1 + two; k++) {
    p->pieces[i][k].items = bounds[k + 1] - bounds[k];
    p->pieces[i][k].data = malloc ((size_t)(p->pieces[i][k].items * item_bytes));
  }
  p->operands[i] = (ops_operand){ p->pieces[i], 1 + two };
  move (p, i, false);
}

static void run_part (op_bench *b, part *p, int64_t step) {
  error err = { 0 };
  for (int i = 0; i < p->n; i++) {
    p->operands[i] = (ops_operand){ NULL, 0 };
    if (p->o[i].use == ABSENT)
      continue;
    if (p->o[i].item) {
      lay_out (p, i);
      continue;
    }
    p->pieces[i][0] = (ops_piece){ p->arrays[i]->data, 1 };
    p->operands[i] = (ops_operand){ p->pieces[i], 1 };
  }
  ops_call call = { p->c, p->first, p->end, step, false, p->operands, p->n };
  ck_assert_msg ((b->run == NULL ? ops_run : b->run) (b->ops, &call, &err), "%s: %s",
                 compute_kind_names[p->c->kind], err.text);
  for (int i = 0; i < p->n; i++)
    if (p->o[i].use != ABSENT && p->o[i].item) {
      if (operand_writes (&p->o[i]))
        move (p, i, true);
      for (int32_t k = 0; k < p->operands[i].count; k++)
        free (p->pieces[i][k].data);
    }
}

void op_bench_run (op_bench *b, const compute *c, int64_t parts, int64_t cut, int64_t step) {
  part p = { .c = c, .cut = cut };
  char name[24];
  p.n = compute_operands (c, p.o);
  op_bench_supply (b, c);
  for (int i = 0; i < p.n; i++) {
    op_bench_name (p.o, p.n, i, name);
    p.arrays[i] = op_bench_find (b, name);
    if (p.o[i].use == ABSENT)
      continue;
    ck_assert_int_eq (p.arrays[i]->bytes, p.o[i].bytes);
    if (p.o[i].use == WRITE)
      memset (p.arrays[i]->data, 0xff, (size_t)p.arrays[i]->bytes);
  }
  int64_t batch = compute_batch (c);
  if (parts > compute_parts (c))
    parts = compute_parts (c);
  for (int64_t i = 0; i < parts; i++) {
    p.first = i * batch / parts;
    p.end = (i + 1) * batch / parts;
    run_part (b, &p, step);
  }
}

/* ---- what the arrays hold ---- */

op_bench_saved op_bench_save (const op_bench *b) {
  op_bench_saved s = { .n = b->n };
  for (int i = 0; i < b->n; i++) {
    s.data[i] = malloc ((size_t)b->arrays[i].bytes);
    memcpy (s.data[i], b->arrays[i].data, (size_t)b->arrays[i].bytes);
  }
  return s;
}

void op_bench_restore (op_bench *b, const op_bench_saved *s) {
  for (int i = 0; i < s->n; i++)
    memcpy (b->arrays[i].data, s->data[i], (size_t)b->arrays[i].bytes);
}

void op_bench_forget (op_bench_saved *s) {
  for (int i = 0; i < s->n; i++)
    free (s->data[i]);
}

bool op_bench_alike (const bench_array *a, const float *expected, double tolerance) {
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
