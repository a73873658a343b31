/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/ops/bind.h"

#include <assert.h>

/* The lists of the op, taken from their fronts. */
typedef struct lists {
  const rewritten *r;
  const op *o;
  int32_t reads, writes; /* taken so far */
  error *err;
} lists;

static bool odd (const lists *l, const operand *x) {
  return error_set (l->err, ERR_input, "op %.80s: its tensors do not fit operand %s of what it is",
                    l->o->name, x->name);
}

/* The next tensor of the operand, and how many of its items; false where there is none. */
static bool take (lists *l, const operand *x, int32_t *tensor) {
  bool reads = operand_reads (x), writes = operand_writes (x);
  if ((reads && l->reads == l->o->reads.count) || (writes && l->writes == l->o->writes.count))
    return odd (l, x);
  *tensor = reads ? l->o->reads.at[l->reads++] : l->o->writes.at[l->writes];
  if (writes && l->o->writes.at[l->writes++] != *tensor)
    return odd (l, x);
  return true;
}

static bool put (lists *l, const operand *x, int64_t batch, ops_binding *b, int32_t *count) {
  int64_t at = x->item ? b->first_item : 0, end = x->item ? b->end_item : 1;
  int64_t each_bytes = x->item ? x->bytes / batch : x->bytes;
  while (at < end) {
    int32_t t = -1;
    if (!take (l, x, &t))
      return false;
    const origin *from = &l->r->tensors[t];
    int64_t items = x->item ? from->end_item - from->first_item : 1;
    if ((x->item && from->first_item != at) || items < 1 || items > end - at ||
        l->r->trace->tensors[t].bytes != items * each_bytes)
      return odd (l, x);
    b->tensors[*count] = t;
    b->pieces[(*count)++].items = items;
    at += items;
  }
  return true;
}

bool ops_bind (const rewritten *r, int32_t i, arena *a, ops_binding *out, error *err) {
  assert (i >= 0 && i < r->trace->n_ops && out);
  lists l = { .r = r, .o = &r->trace->ops[i], .err = err };
  const origin *from = &r->ops[i];
  operand x[COMPUTE_MOST_OPERANDS];
  *out = (ops_binding){ .copy = from->copy };
  if (l.o->compute == NULL)
    return error_set (err, ERR_input,
                      "op %d (%.80s) does not say what it calculates: traces of `ferry zoo` do", i,
                      l.o->name);
  if (!compute_parse (l.o->compute, &out->c, err))
    return false;
  int64_t batch = compute_batch (&out->c);
  bool whole = compute_parts (&out->c) == 1; /* its batch may be another one, or none */
  out->first_item = whole ? 0 : from->first_item;
  out->end_item = whole ? batch : from->end_item;
  out->n_operands = compute_operands (&out->c, x);
  int32_t most = l.o->reads.count + l.o->writes.count;
  if (!ALLOC (a, out->offset, out->n_operands + 1, err) ||
      !ALLOC (a, out->tensors, most + 1, err) || !ALLOC (a, out->pieces, most + 1, err) ||
      !ALLOC (a, out->operands, out->n_operands + 1, err))
    return false;
  int32_t count = 0;
  for (int32_t k = 0; k < out->n_operands; k++) {
    bool absent = x[k].use == ABSENT || (x[k].use == SIDE && out->copy);
    out->offset[k] = count;
    if (!absent && !put (&l, &x[k], batch, out, &count))
      return false;
    out->operands[k] = (ops_operand){ out->pieces + out->offset[k], count - out->offset[k] };
  }
  out->offset[out->n_operands] = count;
  /* A later part also reads, behind all else, what it adds to. */
  for (int32_t k = 0; k < out->n_operands && out->first_item > 0; k++)
    if (x[k].use == WRITE && !x[k].item && l.reads < l.o->reads.count &&
        l.o->reads.at[l.reads] == out->tensors[out->offset[k]])
      l.reads++;
  if (l.reads != l.o->reads.count || l.writes != l.o->writes.count)
    return error_set (err, ERR_input, "op %.80s touches tensors that %s has no operand for",
                      l.o->name, compute_kind_names[out->c.kind]);
  return true;
}

ops_call ops_bound (const ops_binding *b, void *const *data, int64_t step) {
  for (int32_t i = 0; i < b->offset[b->n_operands]; i++)
    b->pieces[i].data = data[b->tensors[i]];
  return ops_bound_there (b, step);
}

ops_call ops_bound_there (const ops_binding *b, int64_t step) {
  return (ops_call){ &b->c, b->first_item, b->end_item, step, b->copy, b->operands, b->n_operands };
}

double ops_loss (const ops_call *call) {
  int at = call->c->kind == COMPUTE_entropy_fwd ? 3 : call->c->kind == COMPUTE_binary_fwd ? 1 : -1;
  double sum = 0;
  if (at < 0 || call->copy)
    return 0;
  for (int32_t i = 0; i < call->operands[at].count; i++)
    for (int64_t k = 0; k < call->operands[at].pieces[i].items; k++)
      sum += ((const float *)call->operands[at].pieces[i].data)[k];
  return sum;
}
