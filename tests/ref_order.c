/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ref_order.h"

#include <string.h>

#include "tests/ref_rewrite.h"

int32_t *ref_order (const trace *t, const plan *p, arena *a, error *err) {
  int32_t *order = NEW (a, t->n_ops, int32_t, err), n = 0;
  for (int32_t r = 0; order && r < p->n_order; r++)
    for (int32_t i = 0; i < p->order[r].count; i++) {
      int32_t k = p->order[r].first + i;
      if (k < 0 || k >= t->n_ops || n == t->n_ops)
        return NULL;
      for (int32_t j = 0; j < n; j++)
        if (order[j] == k)
          return NULL;
      order[n++] = k;
    }
  return n == t->n_ops ? order : NULL;
}

static bool writes (const trace *t, int32_t k, int32_t x) {
  return list_has (&t->ops[k].writes, x) || t->tensors[x].born_before == k;
}

static bool uses_it (const trace *t, int32_t k, int32_t x) {
  return writes (t, k, x) || list_has (&t->ops[k].reads, x) || t->tensors[x].dies_after == k;
}

bool ref_order_keeps (const trace *t, const int32_t *order) {
  for (int32_t i = 0; i < t->n_ops; i++)
    for (int32_t j = i + 1; j < t->n_ops; j++) {
      int32_t k = order[i], l = order[j];
      for (int32_t x = 0; k > l && x < t->n_tensors; x++)
        if (uses_it (t, k, x) && uses_it (t, l, x) && (writes (t, k, x) || writes (t, l, x)))
          return false;
    }
  return true;
}

static int32_t place_of (const int32_t *order, int32_t op) {
  int32_t i = 0;
  while (order[i] != op)
    i++;
  return i;
}

static trace *ordered (const trace *t, const int32_t *order, arena *a, error *err) {
  trace *to = NEW (a, 1, trace, err);
  op *ops = NEW (a, t->n_ops, op, err);
  tensor *tensors = NEW (a, t->n_tensors, tensor, err);
  int64_t *samples = NEW (a, (int64_t)t->n_ops * t->n_samples, int64_t, err);
  if (!to || !ops || !tensors || !samples)
    return NULL;
  for (int32_t i = 0; i < t->n_ops; i++) {
    ops[i] = t->ops[order[i]];
    for (int32_t s = 0; s < t->n_samples; s++)
      samples[(int64_t)s * t->n_ops + i] = t->ns_samples[(int64_t)s * t->n_ops + order[i]];
  }
  for (int32_t x = 0; x < t->n_tensors; x++) {
    tensors[x] = t->tensors[x];
    if (tensors[x].born_before != NO_OP)
      tensors[x].born_before = place_of (order, tensors[x].born_before);
    if (tensors[x].dies_after != NO_OP)
      tensors[x].dies_after = place_of (order, tensors[x].dies_after);
    for (int32_t i = tensors[x].dies_after + 1; tensors[x].dies_after != NO_OP && i < t->n_ops; i++)
      if (op_touches (&ops[i], x) || tensors[x].born_before == i)
        tensors[x].dies_after = NO_OP;
  }
  *to = *t;
  to->ops = ops;
  to->tensors = tensors;
  to->ns_samples = samples;
  return to;
}

static trace *rested (const trace *t, const plan *p, arena *a, error *err) {
  trace *to = NEW (a, 1, trace, err);
  tensor *tensors = NEW (a, t->n_tensors, tensor, err);
  if (!to || !tensors)
    return NULL;
  for (int32_t x = 0; x < t->n_tensors; x++)
    tensors[x] = t->tensors[x];
  for (int32_t i = 0; i < p->n_resting; i++)
    tensors[p->resting[i]].persistent = false;
  *to = *t;
  to->tensors = tensors;
  return to;
}

bool ref_plan_rewrite (const trace *t, const plan *p, arena *a, rewritten *out, error *err) {
  const trace *from = p->n_resting ? rested (t, p, a, err) : t;
  if (!from)
    return false;
  int32_t *order = NULL;
  if (p->n_order) {
    order = ref_order (from, p, a, err);
    if (!order || !ref_order_keeps (from, order) || !(from = ordered (from, order, a, err)))
      return error_set (err, ERR_input, "the order is refused");
  }
  if (!ref_rewrite (from, p->sections, p->n_sections, p->recomputes, p->n_recomputes,
                    p->device.section_ns, a, out, err))
    return false;
  origin *ops = NEW (a, out->trace->n_ops, origin, err);
  for (int32_t i = 0; ops && i < out->trace->n_ops; i++) {
    ops[i] = out->ops[i];
    if (order)
      ops[i].index = order[ops[i].index];
  }
  out->ops = ops;
  return ops;
}
