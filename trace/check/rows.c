/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stays: one row each, and when each begins and ends. */
#include "base/order.h"
#include "trace/check/inner.h"

enum { NO_ROW = -1 };

static int64_t over_granules (const checker *c, int64_t bytes) {
  int64_t granule = c->p->placement.granule_bytes;
  return bytes / granule + (bytes % granule > 0);
}

/* The end of a stay that move `next` ends, `steps` later. */
static check_end leaves_with (const checker *c, int32_t next, int32_t steps) {
  if (c->p->moves[next].clean)
    return (check_end){ false, c->p->moves[next].out_after, steps };
  return (check_end){ true, c->out_place[next], steps };
}

/* The first move of a part; -1: it has none. Parts of a unit stand in order in by_part. */
static int32_t first_move_of (const checker *c, const check_unit *u, int32_t part) {
  int32_t end = u->first_move + u->n_moves;
  int32_t low = FIRST_WHERE (i, u->first_move, end, c->p->moves[c->by_part[i]].part >= part);
  return low < end && c->p->moves[c->by_part[low]].part == part ? c->by_part[low] : -1;
}

static int64_t part_granules (const check_unit *u, int32_t part) {
  return check_part_first (u, (int64_t)part + 1) - check_part_first (u, part);
}

static bool born_here (checker *c, int32_t row) {
  const stay *x = &c->p->placement.stays[row];
  bool group = x->kind == STAY_GROUP;
  int32_t count = group ? c->p->n_groups : c->t->n_tensors;
  int32_t unit = group ? c->t->n_tensors + x->index : x->index;
  const char *field = group ? "group" : "tensor";
  if (x->index < 0 || x->index >= count || c->units[unit].bytes == 0)
    return check_breaks (c, RULE_stay_row, "placement/stays", row, field,
                         "%d is not a unit: there is none, or nothing uses it, or it lies in the "
                         "pool or in a group",
                         x->index);
  const check_unit *u = &c->units[unit];
  if (x->part < 0 || x->part >= u->of)
    return check_breaks (c, RULE_stay_row, "placement/stays", row, "part", "%d is not in 0 to %d",
                         x->part, u->of - 1);
  int32_t move = first_move_of (c, u, x->part);
  if (u->persistent && move >= 0)
    return check_breaks (c, RULE_stay_row, "placement/stays", row, field,
                         "part %d of %s %d persists and moves, so it is never born: only its moves "
                         "have rows",
                         x->part, field, x->index);
  check_stay *y = &c->stays[row];
  *y = (check_stay){ .op = u->persistent ? NO_OP : u->first, .in = -1 };
  y->granules = part_granules (u, x->part);
  if (move >= 0)
    y->end = leaves_with (c, move, 0);
  else
    y->end = (check_end){ false, u->last, 0 };
  return true;
}

static bool comes_back (checker *c, int32_t row) {
  const stay *x = &c->p->placement.stays[row];
  if (x->index < 0 || x->index >= c->p->n_moves)
    return check_breaks (c, RULE_stay_row, "placement/stays", row, "move", "%d is not in 0 to %d",
                         x->index, c->p->n_moves - 1);
  const move *y = &c->p->moves[x->index];
  const check_unit *u = &c->units[y->unit];
  int32_t next = check_next_move (c, x->index);
  bool is_last = c->rank[next] <= c->rank[x->index];
  check_stay *z = &c->stays[row];
  *z = (check_stay){ .op = y->in_before, .in = c->in_place[x->index] };
  z->granules = part_granules (u, y->part);
  if (is_last && !u->persistent)
    z->end = (check_end){ false, u->last, 0 };
  else
    z->end = leaves_with (c, next, c->p->moves[next].out_after < y->in_before);
  return true;
}

static bool works (checker *c, int32_t row) {
  int32_t k = c->p->placement.stays[row].index;
  if (k < 0 || k >= c->n_ops || c->t->ops[k].workspace_bytes == 0)
    return check_breaks (c, RULE_stay_row, "placement/stays", row, "workspace",
                         "%d is not an op that has workspace", k);
  c->stays[row] = (check_stay){ .op = k, .in = -1, .end = { false, k, 0 } };
  c->stays[row].granules = over_granules (c, c->t->ops[k].workspace_bytes);
  return true;
}

static bool describe (checker *c, int32_t row) {
  switch (c->p->placement.stays[row].kind) {
  case STAY_TENSOR:
  case STAY_GROUP:
    return born_here (c, row);
  case STAY_MOVE:
    return comes_back (c, row);
  case STAY_WORKSPACE:
    return works (c, row);
  }
  return check_breaks (c, RULE_stay_row, "placement/stays", row, NULL, "a stay of no known kind");
}

/* The rows of all parts of all units in one table, then those of moves, then of ops. */
typedef struct row_table {
  int64_t *unit_first;
  int64_t moves_first, ops_first, count;
  int32_t *row;
} row_table;

static int64_t slot_of (const checker *c, const row_table *r, const stay *x) {
  switch (x->kind) {
  case STAY_MOVE:
    return r->moves_first + x->index;
  case STAY_WORKSPACE:
    return r->ops_first + x->index;
  case STAY_GROUP:
    return r->unit_first[c->t->n_tensors + x->index] + x->part;
  default:
    return r->unit_first[x->index] + x->part;
  }
}

/* Every part has a row of its own or of its moves, so a plan of few rows has few parts: the table
   cannot be made huge by an `of`. */
static bool table_new (checker *c, row_table *r) {
  const placement *p = &c->p->placement;
  int64_t parts = 0;
  if (!(r->unit_first = NEW (c->a, c->n_units, int64_t, c->err)))
    return false;
  for (int32_t u = 0; u < c->n_units; u++) {
    r->unit_first[u] = parts;
    parts += c->units[u].bytes > 0 ? c->units[u].of : 0;
  }
  if (parts > (int64_t)p->n_stays + c->p->n_moves)
    return check_breaks (c, RULE_stay_missing, "placement", -1, "stays",
                         "%d rows and %d moves are too few for the %lld parts of all units",
                         p->n_stays, c->p->n_moves, (long long)parts);
  r->moves_first = parts;
  r->ops_first = parts + c->p->n_moves;
  r->count = r->ops_first + c->n_ops;
  if (!(r->row = NEW (c->a, r->count, int32_t, c->err)))
    return false;
  for (int64_t i = 0; i < r->count; i++)
    r->row[i] = NO_ROW;
  return true;
}

static bool none_missing (checker *c, const row_table *r) {
  for (int32_t u = 0; u < c->n_units; u++) {
    const check_unit *x = &c->units[u];
    for (int32_t part = 0; x->bytes && part < x->of; part++)
      if (r->row[r->unit_first[u] + part] == NO_ROW &&
          !(x->persistent && first_move_of (c, x, part) >= 0))
        return check_breaks (c, RULE_stay_missing, "placement", -1, "stays",
                             "part %d of %s %d has no row", part,
                             u < c->t->n_tensors ? "tensor" : "group",
                             u < c->t->n_tensors ? u : u - c->t->n_tensors);
  }
  for (int32_t i = 0; i < c->p->n_moves; i++)
    if (r->row[r->moves_first + i] == NO_ROW)
      return check_breaks (c, RULE_stay_missing, "placement", -1, "stays", "move %d has no row", i);
  for (int32_t k = 0; k < c->n_ops; k++)
    if (r->row[r->ops_first + k] == NO_ROW && c->t->ops[k].workspace_bytes > 0)
      return check_breaks (c, RULE_stay_missing, "placement", -1, "stays",
                           "the workspace of op %d has no row", k);
  return true;
}

bool check_rows (checker *c) {
  const placement *p = &c->p->placement;
  row_table r = { 0 };
  if (!(c->stays = NEW (c->a, p->n_stays, check_stay, c->err)) || !table_new (c, &r))
    return false;
  for (int32_t i = 0; i < p->n_stays; i++) {
    if (!describe (c, i))
      return false;
    int32_t *row = &r.row[slot_of (c, &r, &p->stays[i])];
    if (*row != NO_ROW)
      return check_breaks (c, RULE_stay_twice, "placement/stays", i, NULL,
                           "row %d is of the same stay", *row);
    *row = i;
  }
  return none_missing (c, &r);
}
