/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Units, the pool and the placement's size, derived from the trace and the groups alone. */
#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "trace/check/inner.h"

enum { ARENA_STEP = 512 };

/* Sums stop here instead of running over. */
static const int64_t FULL = INT64_MAX / 4;

static int64_t add_bytes (int64_t sum, int64_t bytes) {
  return sum > FULL - bytes ? FULL : sum + bytes;
}

int64_t check_rounded (int64_t bytes, int64_t to) {
  assert (to > 0);
  return (bytes + to - 1) / to * to;
}

int64_t check_part_first (const check_unit *u, int64_t part) {
  return (int64_t)((__int128)part * u->granules / u->of);
}

int64_t check_part_bytes (const checker *c, const move *x) {
  const check_unit *u = &c->units[x->unit];
  int64_t granule = c->p->placement.granule_bytes;
  int64_t first = check_part_first (u, x->part), end = check_part_first (u, (int64_t)x->part + 1);
  return (end == u->granules ? u->bytes : end * granule) - first * granule;
}

static void touch (const index_list *list, bool *touched) {
  for (int32_t i = 0; i < list->count; i++)
    touched[list->at[i]] = true;
}

bool *check_used (checker *c, const trace *t) {
  bool *used = NEW (c->a, t->n_tensors, bool, c->err);
  for (int32_t k = 0; used && k < t->n_ops; k++) {
    touch (&t->ops[k].reads, used);
    touch (&t->ops[k].writes, used);
  }
  return used;
}

/* Which tensors are something: all but those that nothing uses and that do not persist. */
static bool *things (checker *c) {
  bool *thing = check_used (c, c->t);
  for (int32_t x = 0; thing && x < c->t->n_tensors; x++)
    thing[x] = thing[x] || c->t->tensors[x].persistent;
  return thing;
}

static bool add_group (checker *c, int32_t g, const bool *thing) {
  const index_list *group = &c->p->groups[g];
  check_unit *u = &c->units[c->t->n_tensors + g];
  if (group->count < 1)
    return check_breaks (c, RULE_group_member, "groups", g, NULL, "the group is empty");
  for (int32_t i = 0; i < group->count; i++) {
    int32_t x = group->at[i];
    if (x < 0 || x >= c->t->n_tensors)
      return check_breaks (c, RULE_group_member, "groups", g, NULL, "tensor %d is not in 0 to %d",
                           x, c->t->n_tensors - 1);
    if (c->unit_of[x] >= 0)
      return check_breaks (c, RULE_group_member, "groups", g, NULL,
                           "tensor %d is already in group %d", x, c->unit_of[x] - c->t->n_tensors);
    const tensor *y = &c->t->tensors[x];
    if (!thing[x])
      return check_breaks (c, RULE_group_nothing, "groups", g, NULL,
                           "nothing uses tensor %d, and it does not persist", x);
    if (i > 0 && y->persistent != u->persistent)
      return check_breaks (c, RULE_group_persistent, "groups", g, NULL,
                           "tensor %d %s, tensor %d does not agree", group->at[0],
                           u->persistent ? "is persistent" : "is not persistent", x);
    c->unit_of[x] = c->t->n_tensors + g;
    u->persistent = y->persistent;
    u->pinned = u->pinned || y->pinned;
    u->bytes = add_bytes (u->bytes, check_rounded (y->bytes, 512));
  }
  return true;
}

static bool place_tensors (checker *c, const bool *thing) {
  const placement *p = &c->p->placement;
  int64_t pool_bytes = 0;
  for (int32_t x = 0; x < c->t->n_tensors; x++) {
    const tensor *y = &c->t->tensors[x];
    if (!thing[x] || c->unit_of[x] >= 0)
      continue;
    if (y->bytes < p->pool_below_bytes)
      pool_bytes = add_bytes (pool_bytes, check_rounded (y->bytes, 512));
    else {
      c->unit_of[x] = x;
      c->units[x].bytes = y->bytes;
      c->units[x].persistent = y->persistent;
      c->units[x].pinned = y->pinned;
    }
  }
  if (p->pool_bytes != pool_bytes)
    return check_breaks (c, RULE_pool, "placement", -1, "pool_bytes",
                         "%lld, but the tensors below %lld bytes are %lld bytes",
                         (long long)p->pool_bytes, (long long)p->pool_below_bytes,
                         (long long)pool_bytes);
  for (int32_t u = 0; u < c->n_units; u++)
    c->units[u].granules =
        c->units[u].bytes / p->granule_bytes + (c->units[u].bytes % p->granule_bytes > 0);
  return true;
}

static int by_unit_and_op (const void *x, const void *y) {
  const check_use *a = x, *b = y;
  return ORDER (a->unit, b->unit) ?: ORDER (a->op, b->op);
}

/* Ops of other streams may begin before this one has ended: what it uses is there for them all. */
static int64_t add_use (checker *c, int64_t n, int32_t tensor, int32_t op, bool writes) {
  int32_t last = c->s.count > 1 ? c->s.held[op] : op;
  if (c->unit_of[tensor] < 0)
    return n;
  c->uses[n++] = (check_use){ c->unit_of[tensor], op, NO_OP, writes, false };
  if (last > op)
    c->uses[n++] = (check_use){ c->unit_of[tensor], last, NO_OP, false, true };
  return n;
}

static int64_t list_uses (checker *c) {
  int64_t n = 0;
  for (int32_t k = 0; k < c->n_ops; k++) {
    const op *x = &c->t->ops[k];
    for (int32_t i = 0; i < x->reads.count; i++)
      n = add_use (c, n, x->reads.at[i], k, false);
    for (int32_t i = 0; i < x->writes.count; i++)
      n = add_use (c, n, x->writes.at[i], k, true);
  }
  for (int32_t x = 0; x < c->t->n_tensors; x++) {
    const tensor *y = &c->t->tensors[x];
    if (y->born_before != NO_OP)
      n = add_use (c, n, x, y->born_before, true);
    if (y->dies_after != NO_OP)
      n = add_use (c, n, x, y->dies_after, false);
  }
  return n;
}

/* One use per unit and op, in order. */
static bool gather_uses (checker *c) {
  int64_t most = 2 * (int64_t)c->t->n_tensors, kept = 0;
  for (int32_t k = 0; k < c->n_ops; k++)
    most += (int64_t)c->t->ops[k].reads.count + c->t->ops[k].writes.count;
  if (c->s.count > 1)
    most *= 2; /* and once more where they are held */
  if (most > INT32_MAX)
    return error_set (c->err, ERR_limit, "%lld uses are more than check can count",
                      (long long)most);
  if (!(c->uses = NEW (c->a, most, check_use, c->err)))
    return false;
  int64_t n = list_uses (c);
  qsort (c->uses, (size_t)n, sizeof *c->uses, by_unit_and_op);
  for (int64_t i = 0; i < n; i++)
    if (kept > 0 && by_unit_and_op (&c->uses[kept - 1], &c->uses[i]) == 0) {
      c->uses[kept - 1].writes |= c->uses[i].writes;
      c->uses[kept - 1].held &= c->uses[i].held;
    } else
      c->uses[kept++] = c->uses[i];
  for (int32_t u = 0; u < c->n_units; u++)
    c->units[u].first = c->units[u].last = NO_OP;
  for (int32_t i = 0; i < kept; i++) {
    check_unit *u = &c->units[c->uses[i].unit];
    if (u->n_uses++ == 0) {
      u->first_use = i;
      u->first = c->uses[i].op;
    }
    u->last = c->uses[i].op;
    u->written = u->written || c->uses[i].writes;
  }
  for (int64_t i = kept - 1; i >= 0; i--) {
    check_use *x = &c->uses[i];
    if (x->writes)
      x->next_write = x->op;
    else if (i + 1 < kept && x[1].unit == x->unit)
      x->next_write = x[1].next_write;
  }
  return true;
}

static bool size_fits (checker *c) {
  const placement *p = &c->p->placement;
  int64_t pool = p->pool_bytes / p->granule_bytes + (p->pool_bytes % p->granule_bytes > 0);
  int64_t whole = c->p->device.granule_bytes; /* in which an arena is taken */
  __int128 peak = ((__int128)p->granules + pool) * p->granule_bytes;
  peak = (peak + whole - 1) / whole * whole;
  if (p->granules < 0)
    return check_breaks (c, RULE_peak, "placement", -1, "granules", "%d is negative", p->granules);
  if (peak > c->p->budget_bytes)
    return check_breaks (c, RULE_peak, "placement", -1, "granules",
                         "%d granules and %lld for the pool, of %lld bytes, exceed the budget of "
                         "%lld bytes",
                         p->granules, (long long)pool, (long long)p->granule_bytes,
                         (long long)c->p->budget_bytes);
  return true;
}

bool check_units (checker *c) {
  const placement *p = &c->p->placement;
  if (p->kind == PLACEMENT_ARENA && p->granule_bytes != ARENA_STEP)
    return check_breaks (c, RULE_granule_size, "placement", -1, "granule_bytes",
                         "%lld, but the steps of an arena are %d bytes",
                         (long long)p->granule_bytes, ARENA_STEP);
  if (p->kind != PLACEMENT_ARENA &&
      (p->granule_bytes < 1 || p->granule_bytes % c->p->device.granule_bytes))
    return check_breaks (c, RULE_granule_size, "placement", -1, "granule_bytes",
                         "%lld is not a multiple of the device's %lld", (long long)p->granule_bytes,
                         (long long)c->p->device.granule_bytes);
  bool *thing = things (c);
  if (!thing)
    return false;
  if (c->t->n_tensors > INT32_MAX - 1 - c->p->n_groups)
    return error_set (c->err, ERR_limit, "too many tensors and groups");
  c->n_units = c->t->n_tensors + c->p->n_groups;
  if (!ALLOC (c->a, c->units, c->n_units, c->err) ||
      !ALLOC (c->a, c->unit_of, c->t->n_tensors, c->err))
    return false;
  for (int32_t x = 0; x < c->t->n_tensors; x++)
    c->unit_of[x] = -1;
  for (int32_t g = 0; g < c->p->n_groups; g++)
    if (!add_group (c, g, thing))
      return false;
  return place_tensors (c, thing) && gather_uses (c) && size_fits (c);
}
