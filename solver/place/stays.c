/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/stays.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"

int wish_compare (const wish *x, const wish *y) {
  if (x->unit != y->unit)
    return x->unit < y->unit ? -1 : 1;
  if (x->part != y->part)
    return x->part < y->part ? -1 : 1;
  return x->out_after < y->out_after ? -1 : x->out_after > y->out_after;
}

static int by_place (const void *a, const void *b, void *context) {
  const wish *moves = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return wish_compare (&moves[i], &moves[j]) ?: ORDER (i, j);
}

static int by_out (const void *a, const void *b, void *context) {
  const wish *moves = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return ORDER (moves[i].out_turn, moves[j].out_turn)
         ?: ORDER (moves[i].out_after, moves[j].out_after) ?: ORDER (i, j);
}

static int by_need (const void *a, const void *b, void *context) {
  const wish *moves = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return ORDER (moves[i].in_turn, moves[j].in_turn)
         ?: ORDER (moves[i].in_before, moves[j].in_before) ?: ORDER (i, j);
}

static bool takes_turns (const wish *moves, int32_t n_moves) {
  for (int32_t i = 0; i < n_moves; i++)
    if (moves[i].in_turn)
      return true;
  return false;
}

/* Sets the end of the stay that is for `op`: the next move of its part, cyclically, or its last
   use. */
static void set_end (const stays *l, timed_stay *x, const int32_t *sorted, int32_t first,
                     int32_t end, int32_t next, const unit_info *u) {
  if (next == end && !u->persistent) {
    x->end = u->last;
    return;
  }
  const wish *w = &l->moves[sorted[next == end ? first : next]];
  x->end_is_out = !w->clean;
  x->end = w->clean ? w->out_after : sorted[next == end ? first : next];
  x->end_wraps = w->out_after < x->op;
}

/* The stays of one part of one unit; its moves are sorted[first, end). */
static void add_part (stays *l, int32_t unit, int32_t part, int32_t of, const int32_t *sorted,
                      int32_t first, int32_t end) {
  const unit_info *u = &l->units->at[unit];
  bool grouped = unit >= l->trace->n_tensors;
  int32_t granules = (int32_t)(unit_part_first (u, part + 1, of) - unit_part_first (u, part, of));
  timed_stay born = { .kind = grouped ? STAY_GROUP : STAY_TENSOR,
                      .index = grouped ? unit - l->trace->n_tensors : unit,
                      .part = part,
                      .op = u->first,
                      .granules = granules };
  if (u->persistent)
    born.always = first == end;
  else
    set_end (l, &born, sorted, first, end, first, u);
  if (!u->persistent || born.always)
    l->at[l->count++] = born;
  for (int32_t i = first; i < end; i++) {
    int32_t m = sorted[i];
    timed_stay x = {
      .kind = STAY_MOVE, .index = m, .op = l->moves[m].in_before, .granules = granules
    };
    set_end (l, &x, sorted, first, end, i + 1, u);
    l->in_stay[m] = l->count;
    l->at[l->count++] = x;
  }
}

static void add_units (stays *l, const int32_t *sorted) {
  int32_t next = 0;
  for (int32_t unit = 0; unit < l->units->count; unit++) {
    if (l->units->at[unit].bytes == 0)
      continue;
    bool moved = next < l->n_moves && l->moves[sorted[next]].unit == unit;
    int32_t of = moved ? l->moves[sorted[next]].of : 1;
    for (int32_t part = 0; part < of; part++) {
      int32_t first = next;
      while (next < l->n_moves && l->moves[sorted[next]].unit == unit &&
             l->moves[sorted[next]].part == part)
        next++;
      add_part (l, unit, part, of, sorted, first, next);
    }
  }
  for (int32_t i = 0; i < l->trace->n_ops; i++)
    if (l->trace->ops[i].workspace_bytes > 0)
      l->at[l->count++] = (timed_stay){ .kind = STAY_WORKSPACE,
                                        .index = i,
                                        .op = i,
                                        .end = i,
                                        .granules = (int32_t)units_div_up (
                                            l->trace->ops[i].workspace_bytes, l->granule_bytes) };
}

static bool begins_with_op (const timed_stay *x) {
  return x->kind != STAY_MOVE && !x->always;
}

static bool ends_with_op (const timed_stay *x) {
  return !x->always && !x->end_is_out;
}

static bool index_rows (const stays *l, bool (*wanted) (const timed_stay *), bool by_end, arena *a,
                        row_list *out, int64_t **granules, error *err) {
  int32_t n = l->trace->n_ops;
  out->offset = NEW (a, (int64_t)n + 1, int32_t, err);
  out->at = NEW (a, l->count, int32_t, err);
  int32_t *next = NEW (a, n, int32_t, err);
  if (!ALLOC (a, *granules, n, err) || !out->offset || !out->at || !next)
    return false;
  for (int32_t i = 0; i < l->count; i++)
    if (wanted (&l->at[i]))
      out->offset[(by_end ? l->at[i].end : l->at[i].op) + 1]++;
  for (int32_t k = 0; k < n; k++) {
    out->offset[k + 1] += out->offset[k];
    next[k] = out->offset[k];
  }
  for (int32_t i = 0; i < l->count; i++)
    if (wanted (&l->at[i])) {
      int32_t k = by_end ? l->at[i].end : l->at[i].op;
      out->at[next[k]++] = i;
      (*granules)[k] += l->at[i].granules;
    }
  return true;
}

/* A stay counts from its op to the op that ends it or releases it to the link, both included. */
static void count_level (stays *l) {
  int32_t n = l->trace->n_ops;
  for (int32_t i = 0; i < l->count; i++) {
    const timed_stay *x = &l->at[i];
    int32_t last = x->end_is_out ? l->moves[x->end].out_after : x->end;
    if (x->always || x->end_wraps)
      l->level[0] += x->granules;
    if (x->always)
      continue;
    l->level[x->op] += x->granules;
    if (last + 1 < n)
      l->level[last + 1] -= x->granules;
  }
  for (int32_t k = 1; k < n; k++)
    l->level[k] += l->level[k - 1];
}

bool stays_build (stays *out, arena *a, error *err) {
  const trace *t = out->trace;
  const units *u = out->units;
  const wish *moves = out->moves;
  int32_t n_moves = out->n_moves;
  assert (t && u && out->device && out->granule_bytes > 0 && !out->at);
  out->by_need = !takes_turns (moves, n_moves);
  int64_t most = (int64_t)t->n_ops + u->count + n_moves;
  for (int32_t i = 0; i < n_moves; i++)
    most += moves[i].of; /* parts that stay put */
  out->at = NEW (a, most, timed_stay, err);
  out->in_stay = NEW (a, n_moves, int32_t, err);
  out->out_stay = NEW (a, n_moves, int32_t, err);
  out->out_order = NEW (a, n_moves, int32_t, err);
  out->in_order = NEW (a, n_moves, int32_t, err);
  out->out_place = NEW (a, n_moves, int32_t, err);
  out->bytes = NEW (a, n_moves, int64_t, err);
  out->level = NEW (a, t->n_ops, int64_t, err);
  out->start_ns = NEW (a, t->n_ops, int64_t, err);
  out->start_order = NEW (a, t->n_ops, int64_t, err);
  out->end_order = NEW (a, t->n_ops, int64_t, err);
  int32_t *sorted = NEW (a, n_moves, int32_t, err);
  if (!out->at || !out->in_stay || !out->out_stay || !out->out_order || !out->in_order ||
      !out->out_place || !out->bytes || !out->level || !out->start_ns || !out->start_order ||
      !out->end_order || !sorted)
    return false;
  for (int32_t i = 0; i < n_moves; i++) {
    const wish *w = &moves[i];
    out->bytes[i] = unit_part_bytes (&u->at[w->unit], out->granule_bytes, w->part, w->of);
    sorted[i] = out->in_order[i] = i;
    if (!moves[i].clean)
      out->out_order[out->n_outs++] = i;
  }
  void *context = (void *)(uintptr_t)moves;
  qsort_r (sorted, (size_t)n_moves, sizeof *sorted, by_place, context);
  qsort_r (out->out_order, (size_t)out->n_outs, sizeof *sorted, by_out, context);
  qsort_r (out->in_order, (size_t)n_moves, sizeof *sorted, by_need, context);
  for (int32_t i = 0; i < out->n_outs; i++)
    out->out_place[out->out_order[i]] = i;
  add_units (out, sorted);
  assert (out->count <= most);
  for (int32_t i = 0; i < out->count; i++)
    if (out->at[i].end_is_out)
      out->out_stay[out->at[i].end] = i;
  count_level (out);
  return index_rows (out, begins_with_op, false, a, &out->births, &out->born, err) &&
         index_rows (out, ends_with_op, true, a, &out->ends, &out->ended, err);
}
