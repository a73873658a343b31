/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An op is carried past its neighbours one by one, until it meets one that it depends on; each time
   the two ops that change sides are counted anew, so a place costs what these two touch.  What is
   counted is how many bytes lie over the budget, for how long, with everything on the device: bytes
   that would have to be somewhere else. */
#include "solver/order/climb.h"

#include "trace/rewrite/order.h"
#include "trace/uses.h"

typedef __int128 area; /* bytes over the budget, times nanoseconds */

typedef struct climbing {
  const trace *t;
  const climb_options *o;
  uses uses;
  int32_t *order, *place;
  int64_t *live; /* per place: bytes that are there when its op starts, without what it makes */
  bool *wall;    /* per op: nothing passes it */
  int64_t ticks;
} climbing;

/* ---- one op ---- */

static bool is_first (const climbing *c, int32_t k, int32_t x) {
  for (int32_t i = c->uses.offset[x]; i < c->uses.offset[x + 1]; i++)
    if (c->place[c->uses.at[i].op] < c->place[k])
      return false;
  return true;
}

static bool is_last (const climbing *c, int32_t k, int32_t x) {
  for (int32_t i = c->uses.offset[x]; i < c->uses.offset[x + 1]; i++)
    if (c->place[c->uses.at[i].op] > c->place[k])
      return false;
  return true;
}

/* Bytes that an op makes and that end with it; of `other` too: those that end with either. */
typedef struct ends {
  int64_t born, dead, shared;
} ends;

static void count_end (const climbing *c, int32_t k, int32_t other, int32_t x, ends *e) {
  const tensor *y = &c->t->tensors[x];
  if (y->persistent)
    return;
  e->born += is_first (c, k, x) ? y->bytes : 0;
  if (!is_last (c, k, x))
    return;
  e->dead += y->bytes;
  e->shared += other != NO_OP && op_touches (&c->t->ops[other], x) ? y->bytes : 0;
}

static ends ends_of (const climbing *c, int32_t k, int32_t other) {
  const op *o = &c->t->ops[k];
  ends e = { 0 };
  for (int32_t i = 0; i < o->reads.count; i++)
    count_end (c, k, other, o->reads.at[i], &e);
  for (int32_t i = 0; i < o->writes.count; i++)
    if (!list_has (&o->reads, o->writes.at[i]))
      count_end (c, k, other, o->writes.at[i], &e);
  return e;
}

static area over (const climbing *c, int32_t k, int64_t live_bytes) {
  int64_t bytes = live_bytes + c->t->ops[k].workspace_bytes - c->o->budget_bytes;
  return bytes <= 0 ? 0 : (area)bytes * (c->t->ops[k].ns + c->t->ops[k].gap_ns + 1);
}

/* ---- two neighbours ---- */

static bool depend (const climbing *c, int32_t k, int32_t l) {
  const op *x = &c->t->ops[k], *y = &c->t->ops[l];
  for (int32_t i = 0; i < x->writes.count; i++)
    if (op_touches (y, x->writes.at[i]))
      return true;
  for (int32_t i = 0; i < y->writes.count; i++)
    if (list_has (&x->reads, y->writes.at[i]))
      return true;
  return false;
}

/* The op at `at` and the next one change sides; what that adds to the sum. */
static area exchange (climbing *c, int32_t at) {
  int32_t k = c->order[at], l = c->order[at + 1];
  ends x = ends_of (c, k, NO_OP), y = ends_of (c, l, k);
  int64_t before = c->live[at], between = before + y.born - (y.dead - y.shared);
  area was = over (c, k, before + x.born) + over (c, l, c->live[at + 1] + y.born);
  area is = over (c, l, before + y.born) + over (c, k, between + x.born);
  c->live[at + 1] = between;
  c->order[at] = l;
  c->order[at + 1] = k;
  c->place[l] = at;
  c->place[k] = at + 1;
  c->ticks++;
  return is - was;
}

/* Carries the op as far as it goes, and back to the best place on the way. */
static area carry (climbing *c, int32_t k, int32_t step) {
  area sum = 0, best = 0;
  int32_t from = c->place[k], to = from, at = from;
  for (;;) {
    int32_t next = at + step;
    if (next < 0 || next >= c->t->n_ops || c->wall[c->order[next]] || depend (c, k, c->order[next]))
      break;
    sum += exchange (c, step < 0 ? next : at);
    at = next;
    if (sum < best) {
      best = sum;
      to = at;
    }
  }
  for (; at != to; at -= step)
    exchange (c, step < 0 ? at : at - 1);
  return best;
}

/* ---- all of them ---- */

static bool is_over (const climbing *c) {
  return c->ticks >= c->o->limit_ticks || (c->o->stop && c->o->stop (c->o->stop_context));
}

/* An op that a tensor is born before, or dies after, is one of its users; one that writes nothing
   is there for something that the trace does not say. */
static void find_walls (climbing *c) {
  const trace *t = c->t;
  for (int32_t k = 0; k < t->n_ops; k++)
    c->wall[k] = t->ops[k].writes.count == 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const tensor *y = &t->tensors[x];
    if (y->born_before != NO_OP)
      c->wall[y->born_before] = true;
    if (y->dies_after != NO_OP)
      c->wall[y->dies_after] = true;
  }
}

static bool start_climb (climbing *c, arena *a, error *err) {
  const trace *t = c->t;
  if (!ALLOC (a, c->order, t->n_ops, err) || !ALLOC (a, c->place, t->n_ops, err) ||
      !ALLOC (a, c->live, (int64_t)t->n_ops + 1, err) || !ALLOC (a, c->wall, t->n_ops, err) ||
      !uses_of (t, a, &c->uses, err))
    return false;
  find_walls (c);
  for (int32_t k = 0; k < t->n_ops; k++)
    c->order[k] = c->place[k] = k;
  for (int32_t x = 0; x < t->n_tensors; x++)
    c->live[0] += t->tensors[x].persistent ? t->tensors[x].bytes : 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    ends e = ends_of (c, k, NO_OP);
    c->live[k + 1] = c->live[k] + e.born - e.dead;
  }
  return true;
}

bool order_climb (const trace *t, const climb_options *o, arena *a, op_run **runs, int32_t *n_runs,
                  int64_t *ticks, error *err) {
  climbing c = { .t = t, .o = o };
  *runs = NULL;
  *n_runs = 0;
  if (!start_climb (&c, a, err))
    return false;
  bool better = true;
  while (better && !is_over (&c)) {
    better = false;
    for (int32_t k = 0; k < t->n_ops && !is_over (&c); k++)
      if (!c.wall[k])
        better |= carry (&c, k, -1) + carry (&c, k, 1) < 0;
  }
  *ticks += c.ticks;
  return order_runs (c.order, t->n_ops, a, runs, n_runs, err);
}
