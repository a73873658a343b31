/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demands of an arena beside those of all places: nothing is mapped there, so a stay is one
   stretch of it, and an op finds the parts of a unit in one piece. */
#include "trace/check/inner.h"

typedef struct finding {
  checker *c;
  int32_t *born;     /* per part of all units: the row of its birth; -1: none */
  int64_t *first;    /* per unit: its parts' place in born */
  int32_t *of_moves; /* per move: its row */
} finding;

static bool list_rows (finding *f) {
  checker *c = f->c;
  const placement *p = &c->p->placement;
  int64_t parts = 0;
  if (!ALLOC (c->a, f->first, c->n_units, c->err) ||
      !ALLOC (c->a, f->of_moves, c->p->n_moves, c->err))
    return false;
  for (int32_t u = 0; u < c->n_units; u++) {
    f->first[u] = parts;
    parts += c->units[u].of;
  }
  if (!(f->born = NEW (c->a, parts, int32_t, c->err)))
    return false;
  for (int64_t i = 0; i < parts; i++)
    f->born[i] = -1;
  for (int32_t i = 0; i < p->n_stays; i++) {
    const stay *x = &p->stays[i];
    int32_t unit = x->kind == STAY_GROUP ? c->t->n_tensors + x->index : x->index;
    if (x->kind == STAY_MOVE)
      f->of_moves[x->index] = i;
    else if (x->kind != STAY_WORKSPACE)
      f->born[f->first[unit] + x->part] = i;
  }
  return true;
}

/* The row in which op `op` finds the part whose moves are by_part[begin, end): that of the latest
   move that is back by then, else that of its birth; what persists may have come back in the step
   before. */
static int32_t row_at (const finding *f, int32_t unit, int32_t part, int32_t begin, int32_t end,
                       int32_t op) {
  const checker *c = f->c;
  int32_t back = -1, last = -1;
  for (int32_t i = begin; i < end; i++) {
    int32_t m = c->by_part[i], in = c->p->moves[m].in_before;
    if (in <= op && (back < 0 || in > c->p->moves[back].in_before))
      back = m;
    if (last < 0 || in > c->p->moves[last].in_before)
      last = m;
  }
  if (back < 0 && c->units[unit].persistent)
    back = last;
  return back >= 0 ? f->of_moves[back] : f->born[f->first[unit] + part];
}

/* At one op, all parts of a unit. */
static bool in_one_piece (const finding *f, int32_t unit, int32_t op) {
  checker *c = f->c;
  const check_unit *u = &c->units[unit];
  const placement *p = &c->p->placement;
  int32_t begin = u->first_move, all = u->first_move + u->n_moves;
  int64_t base = 0;
  for (int32_t part = 0; part < u->of; part++) {
    int32_t end = begin;
    while (end < all && c->p->moves[c->by_part[end]].part == part)
      end++;
    int32_t row = row_at (f, unit, part, begin, end, op);
    int64_t at = p->runs[p->stays[row].first_run].first - check_part_first (u, part);
    if (part > 0 && at != base)
      return check_breaks (c, RULE_stay_beside, "placement/stays", row, "runs",
                           "op %d uses unit %d, whose parts before lie so that this one begins at "
                           "%lld",
                           op, unit, (long long)(base + check_part_first (u, part)));
    base = at;
    begin = end;
  }
  return true;
}

bool check_arena (checker *c) {
  const placement *p = &c->p->placement;
  finding f = { .c = c };
  if (p->kind != PLACEMENT_ARENA)
    return true;
  if (p->same_places)
    return check_breaks (c, RULE_stay_same, "placement", -1, "same_places",
                         "an arena cannot promise it; only granules can");
  for (int32_t i = 0; i < p->n_stays; i++)
    if (p->stays[i].n_runs != 1)
      return check_breaks (c, RULE_stay_whole, "placement/stays", i, "runs",
                           "%d stretches, but a stay in an arena is one", p->stays[i].n_runs);
  if (!list_rows (&f))
    return false;
  for (int32_t u = 0; u < c->n_units; u++)
    for (int32_t i = 0; c->units[u].of > 1 && i < c->units[u].n_uses; i++)
      if (!in_one_piece (&f, u, c->uses[c->units[u].first_use + i].op))
        return false;
  return true;
}
