/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/calculate/calculate.h"

#include <assert.h>
#include <string.h>

/* ---- ops and their inputs ---- */

static bool is_input (const calculation *c, int32_t tensor) {
  const room *r = c->room;
  return !r->rewritten->trace->tensors[tensor].persistent && uses_count (&r->uses, tensor) > 0 &&
         feed_is_input (c->feed, r->rewritten->tensors[tensor].index);
}

/* The step's data is there from a tensor's birth on, which need not be an op that reads it. */
static bool find_inputs (calculation *c, error *err) {
  const room *r = c->room;
  int32_t n = r->rewritten->trace->n_tensors, count = 0;
  for (int32_t x = 0; x < n; x++)
    if (is_input (c, x)) {
      c->ops[uses_first (&r->uses, x)].n_inputs++;
      count++;
    }
  calculate_input *next = NEW (c->arena, count, calculate_input, err);
  if (next == NULL)
    return false;
  for (int32_t i = 0; i < r->rewritten->trace->n_ops; i++) {
    c->ops[i].inputs = next;
    next += c->ops[i].n_inputs;
    c->ops[i].n_inputs = 0;
  }
  for (int32_t x = 0; x < n; x++)
    if (is_input (c, x)) {
      int32_t k = uses_first (&r->uses, x);
      const origin *from = &r->rewritten->tensors[x];
      c->ops[k].inputs[c->ops[k].n_inputs++] =
          (calculate_input){ from->index, from->first_item, from->end_item,
                             (void *)(uintptr_t)views_at (&c->views, x, k),
                             r->rewritten->trace->tensors[x].bytes };
    }
  return true;
}

static bool make_op (calculation *c, int32_t i, error *err) {
  calculate_op *o = &c->ops[i];
  const op *from = &c->room->rewritten->trace->ops[i];
  *o = (calculate_op){ .index = i, .ns = from->ns };
  if (!ops_bind (c->room->rewritten, i, c->arena, &o->binding, err))
    return false;
  const ops_binding *b = &o->binding;
  for (int32_t j = 0; j < b->offset[b->n_operands]; j++)
    b->pieces[j].data = (void *)(uintptr_t)views_at (&c->views, b->tensors[j], i);
  return true;
}

/* ---- values ---- */

static bool first_values (calculation *c, error *err) {
  const rewritten *r = c->room->rewritten;
  c->values = NEW (c->arena, r->trace->n_tensors, void *, err);
  for (int32_t x = 0; c->values != NULL && x < r->trace->n_tensors; x++) {
    if (!r->trace->tensors[x].persistent)
      continue;
    if ((c->values[x] = NEW (c->arena, r->trace->tensors[x].bytes, char, err)) == NULL)
      return false;
    feed_initial (c->feed, r->tensors[x].index, c->values[x]);
  }
  return c->values != NULL;
}

static void *value_at (const calculation *c, int32_t tensor, const stretch *s) {
  return (char *)c->values[tensor] + s->offset;
}

static bool put_device (void *context, int32_t tensor, const stretch *s, error *err) {
  const calculation *c = context;
  return driver_ok (
      c->driver, c->driver->copy_in ((CUdeviceptr)s->at, value_at (c, tensor, s), (size_t)s->bytes),
      "cuMemcpyHtoD", err);
}

static bool put_host (void *context, int32_t tensor, const stretch *s, error *err) {
  (void)err;
  memcpy ((void *)(uintptr_t)s->at, value_at (context, tensor, s), (size_t)s->bytes);
  return true;
}

static bool get_device (void *context, int32_t tensor, const stretch *s, error *err) {
  const calculation *c = context;
  return driver_ok (
      c->driver,
      c->driver->copy_out (value_at (c, tensor, s), (CUdeviceptr)s->at, (size_t)s->bytes),
      "cuMemcpyDtoH", err);
}

static bool get_host (void *context, int32_t tensor, const stretch *s, error *err) {
  (void)err;
  memcpy (value_at (context, tensor, s), (const void *)(uintptr_t)s->at, (size_t)s->bytes);
  return true;
}

/* ---- the run ---- */

bool calculate_open (calculation *c, const driver *d, const room *r, bool declare, int32_t steps,
                     arena *a, error *err) {
  assert (c && d && r && steps > 0);
  c->driver = d;
  c->room = r;
  c->arena = a;
  c->steps = steps;
  int32_t n_ops = r->rewritten->trace->n_ops;
  if ((c->ops = NEW (a, n_ops, calculate_op, err)) == NULL ||
      (c->losses = NEW (a, steps, double, err)) == NULL ||
      (c->feed = feed_new (c->trace, &c->input, a, err)) == NULL ||
      !views_open (r, a, &c->views, err))
    return false;
  for (int32_t i = 0; i < n_ops; i++)
    if (!make_op (c, i, err))
      return false;
  if (!find_inputs (c, err))
    return false;
  for (int i = 0; i < CALCULATE_AHEAD; i++)
    if (!driver_ok (d, d->event_create (&c->ended[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate",
                    err))
      return false;
  /* A copy of pageable memory may return before it has arrived, and streams that block nobody do
     not wait for it. */
  return c->by->open (c, declare, err) && first_values (c, err) &&
         room_between (r, put_device, put_host, c, err) &&
         driver_ok (d, d->ctx_synchronize (), "cuCtxSynchronize", err);
}

static bool draws_numbers (const compute *c) {
  return c->kind == COMPUTE_dropout_fwd ||
         (c->kind == COMPUTE_attention_fwd && c->attention.rate_ppm > 0);
}

bool calculate_launch (calculation *c, CUstream s, int32_t op, int32_t step, error *err) {
  assert (op >= 0 && op < c->room->rewritten->trace->n_ops && step >= 0 && step < c->steps);
  const calculate_op *o = &c->ops[op];
  int64_t counter = step;
  if (o->binding.copy && draws_numbers (&o->binding.c) && ++c->copies == c->spoiled_copy)
    counter++;
  return c->by->launch (c, s, o, step, counter, err);
}

static bool tell (calculation *c, int32_t end, error *err) {
  for (; c->told < end; c->told++)
    if (c->on_step != NULL && !c->on_step (c->context, c->told, c->losses[c->told], err))
      return false;
  return true;
}

bool calculate_pace (calculation *c, CUstream s, int32_t step, error *err) {
  assert (step >= 0 && step < c->steps);
  CUevent *e = &c->ended[step % CALCULATE_AHEAD], *oldest = &c->ended[(step + 1) % CALCULATE_AHEAD];
  if (!driver_ok (c->driver, c->driver->event_record (*e, s), "cuEventRecord", err))
    return false;
  int32_t first = step + 1 - CALCULATE_AHEAD; /* that is still under way */
  if (first < 0)
    return true;
  return driver_ok (c->driver, c->driver->event_synchronize (*oldest), "a step", err) &&
         tell (c, first + 1, err);
}

bool calculate_end (calculation *c, error *err) {
  if (c->failed.code != ERR_none) {
    *err = c->failed;
    return false;
  }
  return tell (c, c->steps, err) && room_between (c->room, NULL, get_host, c, err) &&
         room_between (c->room, get_device, NULL, c, err);
}

void calculate_close (calculation *c) {
  if (c->driver == NULL)
    return;
  for (int i = 0; i < CALCULATE_AHEAD; i++)
    if (c->ended[i] != NULL)
      c->driver->event_destroy (c->ended[i]);
  if (c->own != NULL)
    c->by->close (c);
  if (c->views.room != NULL)
    views_close (&c->views);
  c->driver = NULL;
}
