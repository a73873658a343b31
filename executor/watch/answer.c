/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/answer.h"

#include <assert.h>
#include <string.h>

#include "executor/shim/step/block.h"
#include "trace/walk/walk.h"

typedef struct writer {
  const trace *trace;
  const plan *plan;
  const steps_map *map;
  walk walk;
  int64_t **home;  /* of each unit: a granule for each of its own */
  int64_t *offset; /* of each tensor: its first granule in its unit */
  const steps *steps;
  int64_t *beat; /* of each op of the rewritten step */
  int32_t *last; /* of each tensor of it: its last use; NO_OP */
  bytes words;
  int64_t rows;
  error *err;
} writer;

static bool put (writer *w, const int64_t *words, int64_t count) {
  return bytes_append (&w->words, words, count * (int64_t)sizeof *words, w->err);
}

static int64_t pages_of (const writer *w, int32_t x) {
  int64_t granule = w->plan->placement.granule_bytes;
  return (w->walk.rewritten->trace->tensors[x].bytes + granule - 1) / granule;
}

static int32_t unit_of (const writer *w, int32_t x) {
  int32_t group = w->walk.units.group_of[x];
  return group >= 0 ? w->walk.rewritten->trace->n_tensors + group : x;
}

/* ---- addresses ---- */

static bool find_parts (writer *w, arena *a) {
  const plan *p = w->plan;
  if (!ALLOC (a, w->home, w->walk.units.count + 1, w->err) ||
      !ALLOC (a, w->offset, w->walk.rewritten->trace->n_tensors + 1, w->err))
    return false;
  for (int32_t u = 0; u < w->walk.units.count; u++) {
    if (!ALLOC (a, w->home[u], w->walk.units.at[u].granules + 1, w->err))
      return false;
    for (int64_t g = 0; g < w->walk.units.at[u].granules; g++)
      w->home[u][g] = -1;
  }
  for (int32_t i = 0; i < p->n_groups; i++) {
    int64_t at = 0;
    for (int32_t k = 0; k < p->groups[i].count; k++) {
      int32_t x = p->groups[i].at[k];
      w->offset[x] = at;
      at += pages_of (w, x);
    }
  }
  return true;
}

static void set_homes (writer *w) {
  const placement *p = &w->plan->placement;
  for (int32_t i = 0; i < p->n_stays; i++) {
    const stay *s = &p->stays[i];
    if (s->kind == STAY_WORKSPACE)
      continue;
    const move *m = s->kind == STAY_MOVE ? &w->plan->moves[s->index] : NULL;
    int32_t u = m != NULL                ? m->unit
                : s->kind == STAY_TENSOR ? s->index
                                         : w->walk.rewritten->trace->n_tensors + s->index;
    int64_t g =
        unit_part_first (&w->walk.units.at[u], m != NULL ? m->part : s->part, w->walk.stays.of[u]);
    for (int32_t r = 0; r < s->n_runs; r++)
      for (int32_t k = 0; k < p->runs[s->first_run + r].count; k++)
        if (g < w->walk.units.at[u].granules)
          w->home[u][g++] = p->runs[s->first_run + r].first + k;
  }
}

static void mark (bool *used, const index_list *touched) {
  for (int32_t i = 0; i < touched->count; i++)
    used[touched->at[i]] = true;
}

static bool *used_tensors (const writer *w, arena *a) {
  const trace *t = w->walk.rewritten->trace; /* in which state that rests is unused */
  bool *used = NEW (a, t->n_tensors, bool, w->err);
  for (int32_t x = 0; used && x < t->n_tensors; x++)
    used[x] = t->tensors[x].persistent;
  for (int32_t k = 0; used && k < t->n_ops; k++) {
    mark (used, &t->ops[k].reads);
    mark (used, &t->ops[k].writes);
  }
  return used;
}

/* Tensors of the pool get granules behind all others; those that nothing uses get none. */
static bool put_homes (writer *w, arena *a, int64_t *granules) {
  const bool *used = used_tensors (w, a);
  if (!used)
    return false;
  *granules = w->plan->placement.granules;
  for (int32_t x = 0; x < w->trace->n_tensors; x++) {
    int32_t u = unit_of (w, x);
    int64_t n = pages_of (w, x);
    bool pooled = w->walk.units.at[u].bytes == 0;
    if (pooled ? !used[x] : w->home[u][w->offset[x]] < 0)
      continue;
    if (!put (w, (int64_t[]){ w->map->number[x], n }, 2))
      return false;
    for (int64_t g = 0; g < n; g++) {
      int64_t home = pooled ? (*granules)++ : w->home[u][w->offset[x] + g];
      if (!put (w, &home, 1))
        return false;
    }
    w->rows++;
  }
  return true;
}

/* ---- moves ---- */

/* A part of a unit as ranges of its members' pages; `head` words come before each. */
static bool put_part (writer *w, const move *m, const int64_t *head, int64_t n_head) {
  const unit_info *u = &w->walk.units.at[m->unit];
  int64_t first = unit_part_first (u, m->part, m->of),
          end = unit_part_first (u, m->part + 1, m->of);
  const rewritten *rw = w->walk.rewritten;
  for (int32_t x = 0; x < rw->trace->n_tensors; x++) {
    if (unit_of (w, x) != m->unit)
      continue;
    int64_t low = first - w->offset[x], high = end - w->offset[x];
    low = low > 0 ? low : 0;
    high = high < pages_of (w, x) ? high : pages_of (w, x);
    if (low >= high)
      continue;
    int64_t number = w->map->number[rw->tensors[x].index];
    if (!put (w, head, n_head) || !put (w, (int64_t[]){ number, low, high - low }, 3))
      return false;
    w->rows++;
  }
  return true;
}

static bool put_aways (writer *w) {
  for (int32_t i = 0; i < w->plan->n_moves; i++)
    if (w->plan->moves[i].in_before <= w->plan->moves[i].out_after &&
        !put_part (w, &w->plan->moves[i], NULL, 0))
      return false;
  return true;
}

/* Beats of the rewritten ops: a copy is launched behind the op before it. */
static bool find_beats (writer *w, arena *a) {
  const rewritten *rw = w->walk.rewritten;
  int64_t beat = -1;
  if (!ALLOC (a, w->beat, rw->trace->n_ops + 1, w->err) ||
      !ALLOC (a, w->last, rw->trace->n_tensors + 1, w->err))
    return false;
  for (int32_t y = 0; y < rw->trace->n_tensors; y++)
    w->last[y] = NO_OP;
  for (int32_t k = 0; k < rw->trace->n_ops; k++) {
    const op *o = &rw->trace->ops[k];
    beat = w->beat[k] = rw->ops[k].copy ? beat : w->map->beat[rw->ops[k].index];
    for (int32_t i = 0; i < o->reads.count; i++)
      w->last[o->reads.at[i]] = k;
    for (int32_t i = 0; i < o->writes.count; i++)
      w->last[o->writes.at[i]] = k;
  }
  return true;
}

static bool put_row (writer *w, int64_t beat, int64_t action, int64_t x, int64_t y, int64_t z) {
  w->rows++;
  return put (w, (int64_t[]){ beat, action, x, y, z }, 5);
}

static bool put_whole (writer *w, int64_t beat, int64_t action, int32_t x) {
  return put_row (w, beat, action, w->map->number[x], 0, pages_of (w, x));
}

/* Results that the next step frees go behind the op that uses them last. */
static bool put_leaving (writer *w, int32_t k) {
  for (int32_t x = 0; x < w->trace->n_tensors; x++)
    if (w->map->leaves[x] && w->last[x] == k && !put_whole (w, w->beat[k], ACTION_OUT, x))
      return false;
  return true;
}

/* A copy that the program goes on with, as far as it is made again no more. */
static bool goes_on (const writer *w, int32_t y) {
  const rewritten *rw = w->walk.rewritten;
  int32_t x = rw->tensors[y].index;
  for (int32_t later = y + 1; later < rw->trace->n_tensors; later++)
    if (rw->tensors[later].index == x)
      return false;
  for (int32_t k = 0; rw->tensors[y].copy && k < rw->trace->n_ops; k++)
    if (!rw->ops[k].copy && op_touches (&rw->trace->ops[k], y))
      return true;
  return !rw->tensors[y].copy;
}

/* The place of the program's own op in the rewritten step. */
static int32_t place_of (const writer *w, int32_t op) {
  const rewritten *rw = w->walk.rewritten;
  int32_t k = 0;
  while (rw->ops[k].copy || rw->ops[k].index != op)
    k++;
  return k;
}

/* The program frees the tensor while this one stands for it, and a copy of an op reads it later. */
static bool is_kept (const writer *w, int32_t y) {
  const rewritten *rw = w->walk.rewritten;
  int32_t x = rw->tensors[y].index, first = 0;
  int32_t dies = w->trace->tensors[x].dies_after;
  for (int32_t k = 0; k < w->trace->n_ops; k++)
    if (op_touches (&w->trace->ops[k], x))
      dies = k > dies ? k : dies;
  if (w->trace->tensors[x].persistent || dies == NO_OP || !rw->ops[w->last[y]].copy)
    return false;
  while (!op_touches (&rw->trace->ops[first], y))
    first++;
  int32_t end = place_of (w, dies);
  return first <= end && end < w->last[y];
}

static bool put_drops (writer *w, int32_t k) {
  const rewritten *rw = w->walk.rewritten;
  for (int32_t y = 0; w->plan->n_recomputes > 0 && y < rw->trace->n_tensors; y++) {
    int32_t x = rw->tensors[y].index;
    if (w->last[y] != k)
      continue;
    bool kept = is_kept (w, y);
    if ((kept || (rw->trace->tensors[y].twin > 0 && !goes_on (w, y))) &&
        !put_whole (w, w->beat[k], kept ? ACTION_GIVE : ACTION_DROP, x))
      return false;
  }
  return true;
}

/* For each tensor of the op, as its beat has them, in two bits: it is read; written; both. */
static int64_t uses_mask (const writer *w, int32_t k) {
  const beat *e = beats_at (&w->steps->beats, w->map->first + w->map->beat[k]);
  const op *o = &w->trace->ops[k];
  int64_t mask = 0;
  for (int32_t i = 0; i < e->n_refs; i++)
    for (int32_t x = 0; x < w->trace->n_tensors; x++)
      if (w->map->number[x] == beats_ref (&w->steps->beats, e, i) && list_has (&o->writes, x))
        mask |= (int64_t)(list_has (&o->reads, x) ? USE_CHANGES : USE_WRITES) << 2 * i;
  return mask;
}

static bool put_again (writer *w, int32_t k) {
  const rewritten *rw = w->walk.rewritten;
  int32_t from = rw->ops[k].index;
  return !rw->ops[k].copy ||
         put_row (w, w->beat[k], ACTION_AGAIN, w->map->beat[from],
                  w->walk.items[w->walk.place[WALK_OPS][k]].remake, uses_mask (w, from));
}

/* The copies that are issued behind an op: those of its step, then those of the next. */
static bool put_copies (writer *w, int32_t op, bool next_step) {
  const walk *k = &w->walk;
  int32_t n_ops = k->rewritten->trace->n_ops;
  for (int32_t i = 0; i < k->n_items; i++) {
    const walk_item *it = &k->items[i];
    bool before = it->behind <= 0;
    if (it->queue == WALK_OPS || before != next_step || it->behind - 1 + (before ? n_ops : 0) != op)
      continue;
    int64_t action = it->queue == WALK_INS ? ACTION_IN : ACTION_OUT;
    if (!put_part (w, &w->plan->moves[it->index], (int64_t[]){ w->beat[op], action }, 2))
      return false;
  }
  return true;
}

/* Moves without a copy: the host has the bytes from the copy before. */
static bool put_clean (writer *w, int32_t k) {
  for (int32_t i = 0; i < w->plan->n_moves; i++) {
    const move *m = &w->plan->moves[i];
    if (m->clean && m->out_after == k &&
        !put_part (w, m, (int64_t[]){ w->beat[k], ACTION_LEAVE }, 2))
      return false;
  }
  return true;
}

/* A copy in that waits for the step before alone is issued there, so that a program which waits
   between its steps does not keep it back. */
static bool put_actions (writer *w) {
  for (int32_t k = 0; k < w->walk.rewritten->trace->n_ops; k++)
    if (!put_again (w, k) || !put_leaving (w, k) || !put_clean (w, k) || !put_drops (w, k) ||
        !put_copies (w, k, false) || !put_copies (w, k, true))
      return false;
  return true;
}

/* ---- made again where it was ---- */

static bool is_written_between (const writer *w, int32_t x, int32_t from, int32_t to) {
  for (int32_t k = from + 1; k < to; k++)
    if (list_has (&w->trace->ops[k].writes, x))
      return true;
  return false;
}

static int32_t last_writer (const writer *w, const recompute *r, int32_t x) {
  int32_t last = NO_OP;
  for (int32_t i = 0; i < r->ops.count; i++)
    if (list_has (&w->trace->ops[r->ops.at[i]].writes, x))
      last = r->ops.at[i];
  return last;
}

/* An entry writes the bytes that are there, wherever the program leaves the plan: nothing has
   written it since. */
static bool keeps_versions (const writer *w, const recompute *r) {
  for (int32_t i = 0; i < r->ops.count; i++) {
    const index_list *all = &w->trace->ops[r->ops.at[i]].writes;
    for (int32_t j = 0; j < all->count; j++) {
      int32_t x = all->at[j];
      if (w->map->leaves[x] || w->trace->tensors[x].persistent || w->trace->tensors[x].pinned ||
          is_written_between (w, x, last_writer (w, r, x), r->before))
        return false;
    }
  }
  return true;
}

/* A copy has the granules of the tensor that it is a copy of, or both are of the pool. */
static bool keeps_place (const writer *w, int32_t y) {
  int32_t x = w->walk.rewritten->tensors[y].index, n = w->walk.rewritten->trace->n_tensors;
  const unit_info *own = &w->walk.units.at[y], *first = &w->walk.units.at[x];
  if (unit_of (w, y) >= n || unit_of (w, x) >= n || own->granules != first->granules)
    return false;
  for (int64_t g = 0; g < own->granules; g++)
    if (w->home[y][g] != w->home[x][g])
      return false;
  return true;
}

static bool can_make_again (const writer *w) {
  const rewritten *rw = w->walk.rewritten;
  bool good = true;
  for (int32_t i = 0; good && i < w->plan->n_recomputes; i++)
    good = keeps_versions (w, &w->plan->recomputes[i]);
  for (int32_t y = w->trace->n_tensors; good && y < rw->trace->n_tensors; y++)
    good = keeps_place (w, y);
  return good || error_set (w->err, ERR_infeasible,
                            "the plan makes a tensor again where another one is, or another "
                            "version of it");
}

static bool write_all (writer *w, arena *a) {
  int64_t head[PLAN_HEAD] = { PLAN_MAGIC, w->plan->predicted.step_ns };
  if (!find_beats (w, a) || !can_make_again (w) || !put (w, head, PLAN_HEAD) ||
      !put_homes (w, a, &head[2]))
    return false;
  head[3] = w->rows;
  w->rows = 0;
  if (!put_aways (w))
    return false;
  head[4] = w->rows;
  w->rows = 0;
  if (!put_actions (w))
    return false;
  head[5] = w->rows;
  memcpy (w->words.data, head, sizeof head);
  return true;
}

bool answer_text (const answer_question *q, arena *a, bytes *out, error *err) {
  const trace *t = q->trace;
  const plan *p = q->plan;
  assert (t && p && q->map && q->map->n_tensors == t->n_tensors);
  writer w = { .trace = t, .plan = p, .map = q->map, .steps = q->steps, .err = err };
  rewritten rw;
  if (p->n_sections > 0 || p->n_order > 0 || !p->placement.same_places)
    return error_set (err, ERR_usage,
                      "a program cannot follow a plan that cuts ops, runs them in another order or "
                      "moves tensors to other places; make it with --same-places");
  if (!plan_rewrite (t, p, a, &rw, err) || !walk_make (&rw, p, a, &w.walk, err) ||
      !find_parts (&w, a))
    return false;
  set_homes (&w);
  if (write_all (&w, a)) {
    *out = w.words;
    return true;
  }
  bytes_free (&w.words);
  return false;
}
