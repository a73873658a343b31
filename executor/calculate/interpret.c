/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/calculate/interpret.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "executor/gpu/kernel_ops.h"
#include "executor/ops/bind.h"

struct interpreter {
  const trace *t;
  const rewritten *r;
  interpret_options o;
  feed *feed;
  ops *ops;
  ops_binding *bindings;
  void **data; /* per tensor of the rewritten trace */
};

/* ---- making ---- */

static bool make_buffer (interpreter *p, int32_t tensor, error *err) {
  int64_t bytes = p->r->trace->tensors[tensor].bytes;
  if (p->data[tensor] != NULL)
    return true;
  p->data[tensor] = aligned_alloc (64, (size_t)((bytes + 63) / 64 * 64));
  if (p->data[tensor] == NULL)
    return error_set (err, ERR_memory, "no memory for %lld bytes of tensor %d (%.80s)",
                      (long long)bytes, tensor, p->r->trace->tensors[tensor].name);
  if (p->r->trace->tensors[tensor].persistent)
    feed_initial (p->feed, p->r->tensors[tensor].index, p->data[tensor]);
  return true;
}

static bool make_all (interpreter *p, arena *a, error *err) {
  const trace *t = p->r->trace;
  p->feed = feed_new (p->t, &p->o.feed, a, err);
  p->ops = ops_new (err);
  if (!ALLOC (a, p->bindings, t->n_ops, err) || !ALLOC (a, p->data, t->n_tensors, err) ||
      !p->feed || !p->ops)
    return false;
  for (int32_t i = 0; i < t->n_ops; i++) {
    ops_binding *b = &p->bindings[i];
    if (!ops_bind (p->r, i, a, b, err))
      return false;
    for (int32_t j = 0; j < b->offset[b->n_operands]; j++)
      if (!make_buffer (p, b->tensors[j], err))
        return false;
  }
  return true;
}

interpreter *interpret_new (const trace *t, const rewritten *r, const interpret_options *o,
                            arena *a, error *err) {
  interpreter *p = NEW (a, 1, interpreter, err);
  if (p == NULL)
    return NULL;
  *p = (interpreter){ .t = t, .r = r, .o = *o };
  if (make_all (p, a, err))
    return p;
  interpret_free (p);
  return NULL;
}

void interpret_free (interpreter *p) {
  if (p == NULL)
    return;
  for (int32_t i = 0; p->data != NULL && i < p->r->trace->n_tensors; i++)
    free (p->data[i]);
  ops_free (p->ops);
}

/* ---- a step ---- */

static void fill_buffers (interpreter *p, int64_t step) {
  for (int32_t i = 0; i < p->r->trace->n_tensors; i++) {
    const tensor *t = &p->r->trace->tensors[i];
    const origin *from = &p->r->tensors[i];
    if (p->data[i] == NULL || t->persistent)
      continue;
    if (feed_is_input (p->feed, from->index))
      feed_input (p->feed, from->index, step, from->first_item, from->end_item, p->data[i]);
    else
      memset (p->data[i], 0xff, (size_t)t->bytes); /* NaN, whatever stands there */
  }
}

bool interpret_step (interpreter *p, int64_t step, double *loss, error *err) {
  assert (step >= 0 && loss);
  *loss = 0;
  fill_buffers (p, step);
  for (int32_t i = 0; i < p->r->trace->n_ops; i++) {
    ops_call call = ops_bound (&p->bindings[i], p->data, step);
    if (p->o.look != NULL && !p->o.look (p->o.context, i, &call))
      continue;
    if (!(p->o.kernels ? kernel_ops_run (&call, p->r->trace->ops[i].workspace_bytes, err)
                       : ops_run (p->ops, &call, err)))
      return false;
    *loss += ops_loss (&call);
  }
  return true;
}

/* ---- looking at it ---- */

void *interpret_data (interpreter *p, int32_t tensor) {
  assert (tensor >= 0 && tensor < p->r->trace->n_tensors);
  return p->data[tensor];
}

void interpret_digest (const interpreter *p, char digest[SHA256_TEXT]) {
  sha256 s;
  sha256_start (&s);
  for (int32_t i = 0; i < p->r->trace->n_tensors; i++) {
    const tensor *t = &p->r->trace->tensors[i];
    if (t->persistent && p->data[i] != NULL)
      sha256_add (&s, p->data[i], (size_t)t->bytes);
  }
  sha256_text (&s, digest);
}
