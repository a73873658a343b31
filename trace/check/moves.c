/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Moves: of what, and when. */
#include <stdlib.h>

#include "base/order.h"
#include "trace/check/inner.h"

static bool names_part (checker *c, int32_t i) {
  const move *x = &c->p->moves[i];
  if (x->unit < 0 || x->unit >= c->n_units || c->units[x->unit].bytes == 0)
    return check_breaks (c, RULE_move_unit, "moves", i, "unit",
                         "%d is no unit: units are the %d tensors that are neither nothing nor in "
                         "the pool or a group, and from there on the %d groups",
                         x->unit, c->t->n_tensors, c->p->n_groups);
  check_unit *u = &c->units[x->unit];
  if (u->pinned)
    return check_breaks (c, RULE_move_pinned, "moves", i, "unit", "unit %d is pinned", x->unit);
  if (x->of < 1 || x->of > u->granules)
    return check_breaks (c, RULE_move_of, "moves", i, "of", "%d is not in 1 to %lld, the granules",
                         x->of, (long long)u->granules);
  if (u->of && u->of != x->of)
    return check_breaks (c, RULE_move_of, "moves", i, "of",
                         "%d, but another move of unit %d has %d", x->of, x->unit, u->of);
  u->of = x->of;
  if (x->part < 0 || x->part >= x->of)
    return check_breaks (c, RULE_move_part, "moves", i, "part", "%d is not in 0 to %d", x->part,
                         x->of - 1);
  return true;
}

static bool in_life (checker *c, int32_t i) {
  const move *x = &c->p->moves[i];
  const check_unit *u = &c->units[x->unit];
  int32_t last = c->n_ops - 1;
  if (x->out_after < 0 || x->out_after > last)
    return check_breaks (c, RULE_move_range, "moves", i, "out_after", "%d is not in 0 to %d",
                         x->out_after, last);
  if (x->in_before < 0 || x->in_before > last)
    return check_breaks (c, RULE_move_range, "moves", i, "in_before", "%d is not in 0 to %d",
                         x->in_before, last);
  if (u->persistent)
    return true;
  if (check_wraps (x))
    return check_breaks (c, RULE_move_range, "moves", i, "in_before",
                         "%d is not after op %d; only a persistent unit may wrap", x->in_before,
                         x->out_after);
  if (x->out_after < u->first || x->in_before > u->last)
    return check_breaks (
        c, RULE_move_range, "moves", i, x->out_after < u->first ? "out_after" : "in_before",
        "out after op %d and in before op %d is not within the unit's life, ops %d "
        "to %d",
        x->out_after, x->in_before, u->first, u->last);
  return true;
}

int32_t check_use_after (const checker *c, const check_unit *u, int32_t after) {
  return FIRST_WHERE (i, u->first_use, u->first_use + u->n_uses, c->uses[i].op > after);
}

static bool not_in_use (checker *c, int32_t i) {
  const move *x = &c->p->moves[i];
  const check_unit *u = &c->units[x->unit];
  int32_t at = check_use_after (c, u, x->out_after), end = u->first_use + u->n_uses;
  int32_t used = at < end ? c->uses[at].op : c->n_ops;
  if (check_wraps (x) && used == c->n_ops)
    used = u->n_uses && u->first < x->in_before ? u->first : c->n_ops;
  else if (!check_wraps (x) && used >= x->in_before)
    used = c->n_ops;
  if (used < c->n_ops)
    return check_breaks (c, RULE_move_away, "moves", i, check_wraps (x) ? "in_before" : "out_after",
                         "op %d uses unit %d, which is away after op %d until op %d", used, x->unit,
                         x->out_after, x->in_before);
  return true;
}

typedef struct sorted_move {
  int32_t unit, part, out_after, index;
} sorted_move;

static int by_time_in_part (const void *x, const void *y) {
  const sorted_move *a = x, *b = y;
  return ORDER (a->unit, b->unit) ?: ORDER (a->part, b->part) ?: ORDER (a->out_after, b->out_after)
         ?: ORDER (a->index, b->index);
}

static bool sort_moves (checker *c) {
  int32_t n = c->p->n_moves;
  arena_mark mark;
  if (!ALLOC (c->a, c->by_part, n, c->err) || !ALLOC (c->a, c->rank, n, c->err))
    return false;
  mark = arena_here (c->a);
  sorted_move *sorted = NEW (c->a, n, sorted_move, c->err);
  if (!sorted)
    return false;
  for (int32_t i = 0; i < n; i++) {
    const move *x = &c->p->moves[i];
    sorted[i] = (sorted_move){ x->unit, x->part, x->out_after, i };
  }
  qsort (sorted, (size_t)n, sizeof *sorted, by_time_in_part);
  for (int32_t i = 0; i < n; i++) {
    check_unit *u = &c->units[sorted[i].unit];
    c->by_part[i] = sorted[i].index;
    c->rank[sorted[i].index] = i;
    if (u->n_moves++ == 0)
      u->first_move = i;
  }
  arena_back (c->a, mark);
  return true;
}

static bool same_part (const checker *c, int32_t rank, const move *x) {
  if (rank < 0 || rank >= c->p->n_moves)
    return false;
  const move *y = &c->p->moves[c->by_part[rank]];
  return y->unit == x->unit && y->part == x->part;
}

static int32_t *part_begins (checker *c) {
  int32_t *begin = NEW (c->a, c->p->n_moves, int32_t, c->err);
  for (int32_t i = 0; begin && i < c->p->n_moves; i++)
    begin[i] = same_part (c, i - 1, &c->p->moves[c->by_part[i]]) ? begin[i - 1] : i;
  return begin;
}

int32_t check_next_move (const checker *c, int32_t i) {
  int32_t rank = c->rank[i];
  if (same_part (c, rank + 1, &c->p->moves[i]))
    return c->by_part[rank + 1];
  return c->by_part[c->begins[rank]];
}

static bool back_in_time (checker *c, int32_t i) {
  const move *x = &c->p->moves[i];
  int32_t j = check_next_move (c, i);
  const move *y = &c->p->moves[j];
  int64_t back = (int64_t)x->in_before + (check_wraps (x) ? c->n_ops : 0);
  int64_t out = (int64_t)y->out_after + (c->rank[j] <= c->rank[i] ? c->n_ops : 0);
  if (back > out)
    return check_breaks (c, RULE_move_overlap, "moves", i, "in_before",
                         "back before op %d, but move %d takes the part out after op %d",
                         x->in_before, j, y->out_after);
  return true;
}

bool check_moves (checker *c) {
  for (int32_t i = 0; i < c->p->n_moves; i++)
    if (!names_part (c, i) || !in_life (c, i) || !not_in_use (c, i))
      return false;
  for (int32_t u = 0; u < c->n_units; u++)
    if (!c->units[u].of)
      c->units[u].of = 1;
  if (!sort_moves (c) || !(c->begins = part_begins (c)))
    return false;
  for (int32_t i = 0; i < c->p->n_moves; i++)
    if (!back_in_time (c, i))
      return false;
  return true;
}
