/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/rewrite/rewrite.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/rewrite/emit.h"
#include "trace/rewrite/order.h"
#include "trace/rewrite/resting.h"

int64_t emit_share (int64_t x, int64_t first, int64_t end, int64_t batch) {
  assert (batch > 0 && first >= 0 && first <= end && end <= batch);
  return units_scale (x, end, batch) - units_scale (x, first, batch);
}

static bool grow (emit *e, void *things, int64_t *room, int64_t need, size_t size) {
  void **table = things;
  void *moved = arena_grow (e->arena, *table, room, need, size, e->err);
  if (moved)
    *table = moved;
  return moved;
}

bool emit_begin (emit *e, const trace *from, const origin *origins, arena *a, error *err) {
  *e = (emit){ .arena = a, .err = err, .from = from };
  if (!ALLOC (a, e->made, 1, err))
    return false;
  *e->made = *from;
  e->made->n_ops = e->made->n_tensors = 0;
  e->made->ops = NULL;
  e->made->tensors = NULL;
  for (int32_t i = 0; i < from->n_tensors; i++) {
    origin whole = { .index = i, .first_item = 0, .end_item = from->batch };
    if (emit_tensor (e, &from->tensors[i], origins ? origins[i] : whole) < 0)
      return false;
  }
  return true;
}

int32_t emit_tensor (emit *e, const tensor *like, origin from) {
  trace *t = e->made;
  int64_t need = (int64_t)t->n_tensors + 1;
  if (need > INT32_MAX / 4) {
    error_set (e->err, ERR_input, "the rewritten trace has too many tensors");
    return -1;
  }
  if (!grow (e, &t->tensors, &e->tensor_room, need, sizeof *t->tensors) ||
      !grow (e, &e->tensors, &e->tensor_origin_room, need, sizeof *e->tensors))
    return -1;
  t->tensors[t->n_tensors] = *like;
  e->tensors[t->n_tensors] = from;
  return t->n_tensors++;
}

bool emit_op (emit *e, const op *like, origin from, int32_t of, int64_t first, int64_t end,
              int64_t batch, int64_t extra_ns) {
  assert (of >= 0 && of < e->from->n_ops);
  trace *t = e->made;
  int64_t need = (int64_t)t->n_ops + 1, samples = e->from->n_samples;
  if (need > INT32_MAX / 4)
    return error_set (e->err, ERR_input, "the rewritten trace has too many ops");
  if (!grow (e, &t->ops, &e->op_room, need, sizeof *t->ops) ||
      !grow (e, &e->ops, &e->op_origin_room, need, sizeof *e->ops) ||
      !grow (e, &e->rows, &e->rows_room, need, sizeof *e->rows) ||
      (samples && !grow (e, &e->samples, &e->samples_room, need * samples, sizeof *e->samples)))
    return false;
  for (int64_t s = 0; s < samples; s++)
    e->samples[t->n_ops * samples + s] =
        emit_share (e->from->ns_samples[s * e->from->n_ops + of], first, end, batch) + extra_ns;
  t->ops[t->n_ops] = *like;
  e->ops[t->n_ops] = from;
  for (int which = EMIT_READS; which <= EMIT_AFTER; which++) {
    e->rows[t->n_ops].first[which] = e->pool_used;
    e->rows[t->n_ops].count[which] = 0;
  }
  t->n_ops++;
  return true;
}

bool emit_index (emit *e, int which, int32_t index) {
  assert (e->made->n_ops > 0 && which >= EMIT_READS && which <= EMIT_AFTER);
  struct emit_rows *rows = &e->rows[e->made->n_ops - 1];
  if (!grow (e, &e->pool, &e->pool_room, e->pool_used + 1, sizeof *e->pool))
    return false;
  e->pool[e->pool_used++] = index;
  rows->count[which]++;
  for (int later = which + 1; later <= EMIT_AFTER; later++)
    rows->first[later] = e->pool_used;
  return true;
}

bool emit_end (emit *e, rewritten *out) {
  trace *t = e->made;
  for (int32_t i = 0; i < t->n_ops; i++) {
    index_list *lists[] = { &t->ops[i].reads, &t->ops[i].writes, &t->ops[i].side,
                            &t->ops[i].after };
    for (int which = EMIT_READS; which <= EMIT_AFTER; which++)
      *lists[which] = (index_list){ e->pool ? e->pool + e->rows[i].first[which] : NULL,
                                    e->rows[i].count[which] };
    t->ops[i].digested = t->ops[i].unknown = (index_list){ 0 };
  }
  if (t->n_samples) {
    if (!ALLOC (e->arena, t->ns_samples, (int64_t)t->n_samples * t->n_ops, e->err))
      return false;
    for (int32_t s = 0; s < t->n_samples; s++)
      for (int32_t i = 0; i < t->n_ops; i++)
        t->ns_samples[(int64_t)s * t->n_ops + i] = e->samples[(int64_t)i * t->n_samples + s];
  }
  if (trace_sum_ns (t) > MOST_NS)
    return error_set (e->err, ERR_infeasible,
                      "the ops, with those that are made again, sum to over 2^53 ns");
  *out = (rewritten){ t, e->ops, e->tensors };
  return true;
}

/* Nothing to rewrite: the trace itself, each row its own origin. */
static bool identity (const trace *t, arena *a, rewritten *out, error *err) {
  origin *ops = NEW (a, t->n_ops, origin, err);
  origin *tensors = NEW (a, t->n_tensors, origin, err);
  if (!ops || !tensors)
    return false;
  for (int32_t i = 0; i < t->n_ops; i++)
    ops[i] = (origin){ .index = i, .end_item = t->batch };
  for (int32_t i = 0; i < t->n_tensors; i++)
    tensors[i] = (origin){ .index = i, .end_item = t->batch };
  *out = (rewritten){ t, ops, tensors };
  return true;
}

bool trace_rewrite (const trace *t, const rewriting *r, arena *a, rewritten *out, error *err) {
  assert (t && r && out);
  rewritten cut;
  bool ok = r->n_sections
                ? rewrite_sections (t, r->sections, r->n_sections, r->section_ns, a, &cut, err)
                : identity (t, a, &cut, err);
  if (!ok)
    return false;
  *out = cut;
  return !r->n_recomputes || rewrite_recompute (&cut, r->recomputes, r->n_recomputes, a, out, err);
}

/* Origins in the trace as it is, of ops that were named by their places in an order. */
static bool name_ops (const int32_t *order, arena *a, rewritten *r, error *err) {
  origin *ops = NEW (a, r->trace->n_ops, origin, err);
  for (int32_t i = 0; ops && i < r->trace->n_ops; i++) {
    ops[i] = r->ops[i];
    ops[i].index = order[ops[i].index];
  }
  r->ops = ops;
  return ops;
}

static bool rewrite_some (const trace *t, const plan *p, int32_t n_recomputes, arena *a,
                          rewritten *out, error *err) {
  rewriting r = { p->sections, p->recomputes, p->n_sections, n_recomputes, p->device.section_ns };
  const trace *kept, *ordered;
  int32_t *order;
  return trace_rest (t, p->resting, p->n_resting, a, &kept, err) &&
         trace_reorder (kept, p->order, p->n_order, a, &ordered, &order, err) &&
         trace_rewrite (ordered, &r, a, out, err) && (!order || name_ops (order, a, out, err));
}

bool plan_rewrite (const trace *t, const plan *p, arena *a, rewritten *out, error *err) {
  return rewrite_some (t, p, p->n_recomputes, a, out, err);
}

bool plan_cut (const trace *t, const plan *p, arena *a, rewritten *out, error *err) {
  return rewrite_some (t, p, 0, a, out, err);
}
