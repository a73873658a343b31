/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/answer.h"

#include <assert.h>
#include <string.h>

#include "executor/shim/block.h"
#include "trace/walk/walk.h"

typedef struct writer {
  const trace *trace;
  const plan *plan;
  const steps_map *map;
  walk walk;
  int64_t **home;   /* of each unit: a granule for each of its own */
  int64_t *offset;  /* of each tensor: its first granule in its unit */
  int64_t *leaving; /* of each tensor: the beat behind which it goes to the host; -1: it does not */
  bytes words;
  int64_t rows;
  error *err;
} writer;

static bool put (writer *w, const int64_t *words, int64_t count) {
  return bytes_append (&w->words, words, count * (int64_t)sizeof *words, w->err);
}

static int64_t pages_of (const writer *w, int32_t x) {
  int64_t granule = w->plan->placement.granule_bytes;
  return (w->trace->tensors[x].bytes + granule - 1) / granule;
}

static int32_t unit_of (const writer *w, int32_t x) {
  return w->walk.units.group_of[x] >= 0 ? w->trace->n_tensors + w->walk.units.group_of[x] : x;
}

/* ---- addresses ---- */

static bool find_parts (writer *w, arena *a) {
  const plan *p = w->plan;
  w->home = NEW (a, w->walk.units.count + 1, int64_t *, w->err);
  w->offset = NEW (a, w->trace->n_tensors + 1, int64_t, w->err);
  if (w->home == NULL || w->offset == NULL)
    return false;
  for (int32_t u = 0; u < w->walk.units.count; u++) {
    w->home[u] = NEW (a, w->walk.units.at[u].granules + 1, int64_t, w->err);
    if (w->home[u] == NULL)
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
                                         : w->trace->n_tensors + s->index;
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
  for (int32_t x = 0; x < w->trace->n_tensors; x++) {
    if (unit_of (w, x) != m->unit)
      continue;
    int64_t low = first - w->offset[x], high = end - w->offset[x];
    low = low > 0 ? low : 0;
    high = high < pages_of (w, x) ? high : pages_of (w, x);
    if (low >= high)
      continue;
    if (!put (w, head, n_head) || !put (w, (int64_t[]){ w->map->number[x], low, high - low }, 3))
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

/* Results that the next step frees go behind the op that uses them last. */
static bool find_leaving (writer *w, arena *a) {
  w->leaving = NEW (a, w->trace->n_tensors + 1, int64_t, w->err);
  for (int32_t x = 0; w->leaving != NULL && x < w->trace->n_tensors; x++) {
    w->leaving[x] = -1;
    for (int32_t k = 0; w->map->leaves[x] && k < w->trace->n_ops; k++)
      if (op_touches (&w->trace->ops[k], x))
        w->leaving[x] = w->map->beat[k];
  }
  return w->leaving != NULL;
}

static bool put_leaving (writer *w, int64_t beat) {
  for (int32_t x = 0; x < w->trace->n_tensors; x++)
    if (w->leaving[x] == beat) {
      if (!put (w, (int64_t[]){ beat, 0, w->map->number[x], 0, pages_of (w, x) }, 5))
        return false;
      w->rows++;
    }
  return true;
}

/* The copies that are issued behind the op of a beat: those of its step, then those of the next. */
static bool put_copies (writer *w, int64_t beat, bool next_step) {
  const walk *k = &w->walk;
  for (int32_t i = 0; i < k->n_items; i++) {
    const walk_item *it = &k->items[i];
    bool before = it->behind <= 0;
    if (it->queue == WALK_OPS || before != next_step ||
        w->map->beat[it->behind - 1 + (before ? w->trace->n_ops : 0)] != beat)
      continue;
    int64_t action = it->queue == WALK_INS ? ACTION_IN : ACTION_OUT;
    if (!put_part (w, &w->plan->moves[it->index], (int64_t[]){ beat, action }, 2))
      return false;
  }
  return true;
}

/* Moves without a copy: the host has the bytes from the copy before. */
static bool put_clean (writer *w, int64_t beat) {
  for (int32_t i = 0; i < w->plan->n_moves; i++) {
    const move *m = &w->plan->moves[i];
    if (m->clean && w->map->beat[m->out_after] == beat &&
        !put_part (w, m, (int64_t[]){ beat, ACTION_LEAVE }, 2))
      return false;
  }
  return true;
}

/* A copy in that waits for the step before alone is issued there, so that a program which waits
   between its steps does not keep it back. */
static bool put_actions (writer *w) {
  int64_t last = w->map->end - w->map->first;
  for (int64_t beat = 0; beat < last; beat++)
    if (!put_leaving (w, beat) || !put_clean (w, beat) || !put_copies (w, beat, false) ||
        !put_copies (w, beat, true))
      return false;
  return true;
}

static bool write_all (writer *w, arena *a) {
  int64_t head[PLAN_HEAD] = { PLAN_MAGIC, w->plan->predicted.step_ns };
  if (!put (w, head, PLAN_HEAD) || !put_homes (w, a, &head[2]))
    return false;
  head[3] = w->rows;
  w->rows = 0;
  if (!put_aways (w))
    return false;
  head[4] = w->rows;
  w->rows = 0;
  if (!find_leaving (w, a) || !put_actions (w))
    return false;
  head[5] = w->rows;
  memcpy (w->words.data, head, sizeof head);
  return true;
}

bool answer_text (const trace *t, const plan *p, const steps_map *map, arena *a, bytes *out,
                  error *err) {
  assert (t && p && map && map->n_tensors == t->n_tensors);
  writer w = { .trace = t, .plan = p, .map = map, .err = err };
  rewritten rw;
  if (p->n_sections > 0 || p->n_recomputes > 0 || !p->placement.same_places)
    return error_set (err, ERR_usage,
                      "a program cannot follow a plan that cuts ops, makes tensors again or moves "
                      "them to other places; make it with --same-places");
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
