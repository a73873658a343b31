/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/ops/ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "executor/ops/inner.h"

struct ops {
  blas blas;
  float *scratch;
  int64_t scratch_floats;
};

ops *ops_new (error *err) {
  ops *o = calloc (1, sizeof *o);
  if (o == NULL)
    error_set (err, ERR_memory, "no memory to calculate in");
  else
    blas_open (&o->blas);
  return o;
}

void ops_free (ops *o) {
  if (o != NULL)
    free (o->scratch);
  free (o);
}

/* ---- requests of the functions ---- */

float *ops_scratch (const work *k, int64_t count) {
  assert (count >= 0);
  ops *o = k->o;
  if (count > o->scratch_floats) {
    free (o->scratch);
    o->scratch = NULL;
    o->scratch_floats = 0;
    if (count < INT64_MAX / 8)
      o->scratch = aligned_alloc (64, (size_t)((count * 4 + 63) / 64 * 64));
    if (o->scratch == NULL) {
      error_set (k->err, ERR_memory, "no memory for %lld numbers that %s works with",
                 (long long)count, compute_kind_names[k->c->kind]);
      return NULL;
    }
    o->scratch_floats = count;
  }
  return o->scratch;
}

float *ops_item (const work *k, int operand, int64_t item) {
  assert (operand >= 0 && operand < COMPUTE_MOST_OPERANDS && item >= 0);
  const ops_operand *p = &k->call->operands[operand];
  for (int32_t i = 0; i < p->count; item -= p->pieces[i++].items)
    if (item < p->pieces[i].items)
      return (float *)p->pieces[i].data + item * k->elements[operand];
  return NULL;
}

bool ops_in_range (const work *k, const int32_t *index, int64_t count, int64_t limit) {
  assert (index || count == 0);
  for (int64_t i = 0; i < count; i++)
    if (index[i] < 0 || index[i] >= limit)
      return error_set (k->err, ERR_input, "a token or class %d: there are %lld", index[i],
                        (long long)limit);
  return true;
}

uint64_t ops_random (int64_t seed, int64_t step, int64_t n) {
  random_state key = random_seed ((uint64_t)seed);
  key.state = random_next (&key) ^ (uint64_t)step;
  random_state stream = random_seed (random_next (&key) + (uint64_t)n * 0x9e3779b97f4a7c15u);
  return random_next (&stream);
}

bool ops_keeps (uint64_t random, int64_t rate_ppm) {
  return (int64_t)((random >> 32) * 1000000 >> 32) >= rate_ppm;
}

/* ---- the table ---- */

typedef enum op_how { ITEMS, BATCH, ONCE } op_how;

static const struct row {
  void (*run) (const work *k);
  op_how how;
} rows[COMPUTE_KINDS] = {
#define COMPUTE(kind, shape, how, ...) { op_##kind, how },
#include "trace/compute.def"
};

/* ---- stretches ---- */

/* The current place in the pieces of each operand. */
typedef struct places {
  int32_t piece[COMPUTE_MOST_OPERANDS];
  int64_t item[COMPUTE_MOST_OPERANDS]; /* within that piece */
} places;

/* Items until a piece ends somewhere, but no more than `left`; sets k->at. */
static int64_t stretch (work *k, const operand *o, int n, const places *p, int64_t left) {
  for (int i = 0; i < n; i++) {
    const ops_operand *x = &k->call->operands[i];
    if (!o[i].item || x->count == 0)
      continue;
    const ops_piece *piece = &x->pieces[p->piece[i]];
    if (piece->items - p->item[i] < left)
      left = piece->items - p->item[i];
    int64_t item_bytes = k->elements[i] * compute_element_bytes (k->c->dtype, o[i].type);
    k->at[i] = (char *)piece->data + p->item[i] * item_bytes;
  }
  return left;
}

static void go_on (const ops_call *call, const operand *o, int n, places *p, int64_t items) {
  for (int i = 0; i < n; i++) {
    const ops_operand *x = &call->operands[i];
    if (!o[i].item || x->count == 0)
      continue;
    p->item[i] += items;
    if (p->item[i] == x->pieces[p->piece[i]].items) {
      p->piece[i]++;
      p->item[i] = 0;
    }
  }
}

static void run_items (work *k, const operand *o, int n) {
  const ops_call *call = k->call;
  places p = { 0 };
  for (int64_t at = call->first_item; at < call->end_item && !k->err->code; at += k->items) {
    k->first_item = at;
    k->items = stretch (k, o, n, &p, call->end_item - at);
    rows[k->c->kind].run (k);
    go_on (call, o, n, &p, k->items);
  }
}

/* ---- a call ---- */

static bool fits (const ops_call *call, const operand *o, int i) {
  const ops_operand *x = &call->operands[i];
  int64_t items = 0, want = o->item ? call->end_item - call->first_item : 1;
  if (o->use == ABSENT || (o->use == SIDE && call->copy))
    return x->count == 0;
  for (int32_t p = 0; p < x->count; p++) {
    if (x->pieces[p].items < 1 || x->pieces[p].data == NULL)
      return false;
    items += x->pieces[p].items;
  }
  return items == want && (o->item || x->count == 1);
}

static bool check_call (const ops_call *call, const operand *o, int n, error *err) {
  const char *kind = compute_kind_names[call->c->kind];
  int64_t batch = compute_batch (call->c);
  if (call->c->dtype == DTYPE_BF16)
    return error_set (err, ERR_input, "%s in bf16: the CPU calculates in fp32 only", kind);
  if (n != call->n_operands)
    return error_set (err, ERR_internal, "%s has %d operands, not %d", kind, n, call->n_operands);
  if (call->first_item < 0 || call->first_item >= call->end_item || call->end_item > batch ||
      (rows[call->c->kind].how != ITEMS && call->end_item - call->first_item != batch))
    return error_set (err, ERR_internal, "%s cannot do items %lld to %lld of %lld", kind,
                      (long long)call->first_item, (long long)call->end_item, (long long)batch);
  for (int i = 0; i < n; i++)
    if (!fits (call, &o[i], i))
      return error_set (err, ERR_internal, "operand %s of %s does not have items %lld to %lld",
                        o[i].name, kind, (long long)call->first_item, (long long)call->end_item);
  return true;
}

bool ops_run (ops *o, const ops_call *call, error *err) {
  operand operands[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (call->c, operands);
  if (!check_call (call, operands, n, err))
    return false;
  work k = { .c = call->c, .call = call, .o = o, .blas = &o->blas, .err = err, .step = call->step };
  for (int i = 0; i < n; i++) {
    const operand *x = &operands[i];
    k.elements[i] = x->item ? x->elements / compute_batch (call->c) : x->elements;
    if (x->item || call->operands[i].count == 0)
      continue;
    k.at[i] = call->operands[i].pieces[0].data;
    if (x->use == WRITE && call->first_item == 0)
      memset (k.at[i], 0, (size_t)x->bytes);
  }
  k.items = call->end_item;
  if (rows[call->c->kind].how == ITEMS)
    run_items (&k, operands, n);
  else
    rows[call->c->kind].run (&k);
  return !err->code;
}
