/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/walk_run.h"

#include <stdio.h>

#include "base/order.h"
#include "base/random.h"

enum { STEPS = 4, PLACE = 512, EMPTY = -1 };
#define GONE INT64_MIN

typedef struct world {
  const walk *w;
  const plan *p;
  const trace *t;
  random_state r;
  int64_t *device, *host; /* labels */
  int64_t *writes;        /* of a unit: by ops before this one; n_ops + 1 a unit */
  int64_t ended[WALK_QUEUES], next[WALK_QUEUES];
  bool running[WALK_QUEUES];
  walk_fault *fault;
} world;

/* ---- labels ---- */

static int64_t writes_before (const world *x, int32_t unit, int32_t op) {
  return x->writes[(int64_t)unit * (x->t->n_ops + 1) + op];
}

/* A unit as it is before op `op` of a step; bytes that end with the step begin with a version of
   their own. */
static int64_t version (const world *x, int32_t unit, int32_t op, int64_t step) {
  int64_t all = writes_before (x, unit, x->t->n_ops);
  int64_t each = x->w->units.at[unit].persistent ? all : all + 1;
  return step * each + writes_before (x, unit, op);
}

static int64_t label (int32_t unit, int64_t place, int64_t v) {
  return (v + 8) << 40 | (int64_t)unit << 24 | place;
}

static int64_t being_written (const walk_item *it) {
  return -2 - ((int64_t)it->index * WALK_QUEUES + it->queue);
}

static void fail (world *x, const walk_item *it, int64_t step, const char *what, int64_t found,
                  int64_t wanted) {
  if (x->fault->found)
    return;
  x->fault->found = true;
  snprintf (x->fault->text, sizeof x->fault->text, "%s %d of step %d: %s has %llx, not %llx",
            walk_queue_names[it->queue], it->index, (int)step, what, (unsigned long long)found,
            (unsigned long long)wanted);
}

/* ---- where things lie, by the plan ---- */

static int32_t parts_of (const world *x, int32_t unit) {
  for (int32_t i = 0; i < x->p->n_moves; i++)
    if (x->p->moves[i].unit == unit)
      return x->p->moves[i].of;
  return 1;
}

static int32_t stay_of (const world *x, stay_kind kind, int32_t index, int32_t part) {
  for (int32_t i = 0; i < x->p->placement.n_stays; i++) {
    const stay *s = &x->p->placement.stays[i];
    if (s->kind == kind && s->index == index &&
        (kind == STAY_MOVE || kind == STAY_WORKSPACE || s->part == part))
      return i;
  }
  return -1;
}

/* The last copy in that is due at or before the op, in this step or in the one before; else where
   it was born. */
static int32_t stay_at (const world *x, int32_t unit, int32_t part, int32_t op) {
  int32_t best = -1, group = unit - x->t->n_tensors;
  int32_t birth =
      group < 0 ? stay_of (x, STAY_TENSOR, unit, part) : stay_of (x, STAY_GROUP, group, part);
  for (int pass = 0; pass < 2 && best < 0; pass++)
    for (int32_t i = 0; i < x->p->n_moves && (pass == 0 || birth < 0); i++) {
      const move *m = &x->p->moves[i];
      if (m->unit == unit && m->part == part && (m->in_before <= op || pass == 1) &&
          (best < 0 || m->in_before > x->p->moves[best].in_before))
        best = i;
    }
  return best >= 0 ? stay_of (x, STAY_MOVE, best, 0) : birth;
}

static int64_t *granule (const world *x, int32_t stay, int64_t k) {
  const placement *l = &x->p->placement;
  for (int32_t i = 0; stay >= 0 && i < l->stays[stay].n_runs; i++) {
    const granule_run *run = &l->runs[l->stays[stay].first_run + i];
    if (k < run->count)
      return &x->device[run->first + k];
    k -= run->count;
  }
  return NULL;
}

/* ---- looking and putting ---- */

typedef enum act { LOOK, PUT } act;

static void touch (world *x, const walk_item *it, int64_t step, act what, int64_t *at,
                   const char *whose, int64_t value) {
  if (at == NULL)
    fail (x, it, step, "no place", 0, value);
  else if (what == PUT)
    *at = value;
  else if (*at != value)
    fail (x, it, step, whose, *at, value);
}

/* Of this version; `mark` is put or looked for in place of the unit's own labels, unless it is 0.
 */
static void part_on_device (world *x, const walk_item *it, int64_t step, act what, int32_t stay,
                            int32_t unit, int32_t part, int64_t v, int64_t mark) {
  const unit_info *u = &x->w->units.at[unit];
  int32_t of = parts_of (x, unit);
  int64_t first = unit_part_first (u, part, of), end = unit_part_first (u, part + 1, of);
  for (int64_t g = first; g < end; g++)
    touch (x, it, step, what, granule (x, stay, g - first), "the device",
           mark ? mark : label (unit, g, v));
}

static void part_on_host (world *x, const walk_item *it, int64_t step, act what, const move *m,
                          int64_t v, int64_t mark) {
  const unit_info *u = &x->w->units.at[m->unit];
  int64_t bytes = unit_part_bytes (u, x->p->placement.granule_bytes, m->part, m->of);
  for (int64_t k = 0; k * PLACE < bytes; k++) {
    int64_t *at = &x->host[m->host_offset / PLACE + k],
            own = label (m->unit, m->part * 4096 + k, v);
    if (*at == EMPTY && what == LOOK && v == 0 && (m->clean || m->in_before <= m->out_after))
      *at = own; /* the host has what was there before the first step */
    touch (x, it, step, what, at, "the host", mark ? mark : own);
  }
}

static void whole_unit (world *x, const walk_item *it, int64_t step, act what, int32_t unit,
                        int64_t v, int64_t mark) {
  for (int32_t part = 0; part < parts_of (x, unit); part++)
    part_on_device (x, it, step, what, stay_at (x, unit, part, it->index), unit, part, v, mark);
}

static void workspace (world *x, const walk_item *it, int64_t step, act what) {
  int32_t stay = stay_of (x, STAY_WORKSPACE, it->index, 0);
  const placement *l = &x->p->placement;
  if (it->stay != stay)
    fail (x, it, step, "the walk's workspace", it->stay, stay);
  for (int64_t k = 0; stay >= 0 && k < stay_granules (l, &l->stays[stay]); k++)
    touch (x, it, step, what, granule (x, stay, k), "the workspace", being_written (it));
}

/* ---- items ---- */

static void op_on_unit (world *x, const walk_item *it, int64_t step, bool end, int32_t unit,
                        const use *use) {
  const unit_info *u = &x->w->units.at[unit];
  int64_t before = version (x, unit, it->index, step),
          behind = version (x, unit, it->index + 1, step);
  bool born = !u->persistent && u->first == use->op, writes = behind != before;
  if (!end) {
    if (!born)
      whole_unit (x, it, step, LOOK, unit, before, 0);
    if (born || writes)
      whole_unit (x, it, step, PUT, unit, before, writes ? being_written (it) : 0);
  } else {
    whole_unit (x, it, step, LOOK, unit, before, writes ? being_written (it) : 0);
    whole_unit (x, it, step, PUT, unit, behind, 0);
  }
}

/* What is dropped without a copy, or dead, is no longer there. */
static void leave (world *x, const walk_item *it, int64_t step) {
  const units *u = &x->w->units;
  for (int32_t i = 0; i < x->p->n_moves; i++) {
    const move *m = &x->p->moves[i];
    if (m->clean && m->out_after == it->index)
      part_on_device (x, it, step, PUT, stay_at (x, m->unit, m->part, it->index), m->unit, m->part,
                      0, GONE);
  }
  for (int32_t i = 0; i < u->count; i++)
    if (u->at[i].bytes > 0 && !u->at[i].persistent && u->at[i].last == it->index)
      whole_unit (x, it, step, PUT, i, 0, GONE);
}

static void do_op (world *x, const walk_item *it, int64_t step, bool end) {
  const units *u = &x->w->units;
  for (int32_t i = 0; i < u->count; i++)
    for (int32_t k = u->use_offset[i]; u->at[i].bytes > 0 && k < u->use_offset[i + 1]; k++)
      if (u->uses[k].op == it->index)
        op_on_unit (x, it, step, end, i, &u->uses[k]);
  workspace (x, it, step, end ? LOOK : PUT);
  if (end)
    leave (x, it, step);
}

static void do_out (world *x, const walk_item *it, int64_t step, bool end) {
  const move *m = &x->p->moves[it->index];
  int64_t v = version (x, m->unit, m->out_after + 1, step);
  int32_t stay = stay_at (x, m->unit, m->part, m->out_after);
  if (it->stay != stay)
    fail (x, it, step, "the walk's place", it->stay, stay);
  part_on_device (x, it, step, LOOK, stay, m->unit, m->part, v, 0);
  if (end)
    part_on_host (x, it, step, LOOK, m, v, being_written (it));
  part_on_host (x, it, step, PUT, m, v, end ? 0 : being_written (it));
  if (end)
    part_on_device (x, it, step, PUT, stay, m->unit, m->part, v, GONE);
}

/* The host's copy is kept for clean moves only. */
static bool serves_again (const world *x, const move *m) {
  for (int32_t i = 0; i < x->p->n_moves; i++)
    if (x->p->moves[i].unit == m->unit && x->p->moves[i].part == m->part && x->p->moves[i].clean)
      return true;
  return false;
}

static void do_in (world *x, const walk_item *it, int64_t step, bool end) {
  const move *m = &x->p->moves[it->index];
  bool wraps = m->in_before <= m->out_after;
  int64_t v = version (x, m->unit, m->out_after + 1, step - wraps);
  int32_t stay = stay_of (x, STAY_MOVE, it->index, 0);
  if (it->stay != stay)
    fail (x, it, step, "the walk's place", it->stay, stay);
  part_on_host (x, it, step, LOOK, m, v, 0);
  if (end)
    part_on_device (x, it, step, LOOK, stay, m->unit, m->part, v, being_written (it));
  part_on_device (x, it, step, PUT, stay, m->unit, m->part, v, end ? 0 : being_written (it));
  if (end && !serves_again (x, m))
    part_on_host (x, it, step, PUT, m, v, GONE);
}

static void do_item (world *x, walk_queue queue, bool end) {
  static void (*const act[]) (world *, const walk_item *, int64_t, bool) = {
    [WALK_OPS] = do_op, [WALK_OUTS] = do_out, [WALK_INS] = do_in
  };
  int64_t n = x->w->count[queue], step = x->next[queue] / n;
  act[queue](x, &x->w->items[x->w->place[queue][x->next[queue] % n]], step, end);
  x->running[queue] = !end;
  if (end)
    x->ended[queue] = ++x->next[queue];
}

/* ---- queues ---- */

static bool may_start (const world *x, walk_queue queue) {
  int64_t n = x->w->count[queue];
  if (n == 0 || x->next[queue] == STEPS * n)
    return false;
  const walk_item *it = &x->w->items[x->w->place[queue][x->next[queue] % n]];
  for (int32_t i = it->first_wait; i < it->first_wait + it->n_waits; i++) {
    const walk_wait *v = &x->w->waits[i];
    int64_t step = x->next[queue] / n - v->lag;
    if (step >= 0 && x->ended[v->queue] <= step * x->w->count[v->queue] + v->position)
      return false;
  }
  return true;
}

static void run_queues (world *x, const walk_run_options *o) {
  while (!x->fault->found) {
    walk_queue can[WALK_QUEUES];
    int32_t n = 0;
    bool slow = false, over = true;
    for (walk_queue q = WALK_OPS; q < WALK_QUEUES; q++) {
      int64_t count = x->w->count[q];
      over = over && x->next[q] == STEPS * count;
      if (x->running[q] && o->slow == q && x->next[q] % count == o->slow_position)
        slow = true;
      else if (x->running[q] || may_start (x, q))
        can[n++] = q;
    }
    if (n == 0 && !slow) {
      x->fault->found = !over;
      snprintf (x->fault->text, sizeof x->fault->text, "the queues hang");
      return;
    }
    walk_queue q = n == 0 ? o->slow : can[random_between (&x->r, 0, n - 1)];
    do_item (x, q, x->running[q]);
  }
}

/* What outlives a step and is not away lies where the last op of a step finds it. */
static void put_first (world *x) {
  const walk_item none = { .queue = WALK_OPS, .index = -1 };
  for (int32_t u = 0; u < x->w->units.count; u++)
    for (int32_t part = 0; part < parts_of (x, u); part++) {
      bool away = !x->w->units.at[u].persistent || x->w->units.at[u].bytes == 0;
      for (int32_t i = 0; i < x->p->n_moves; i++) {
        const move *m = &x->p->moves[i];
        away = away || (m->unit == u && m->part == part && m->in_before <= m->out_after);
      }
      if (!away)
        part_on_device (x, &none, 0, PUT, stay_at (x, u, part, x->t->n_ops), u, part, 0, 0);
    }
}

static bool count_writes (world *x, arena *a, error *err) {
  int64_t n = (int64_t)x->t->n_ops + 1;
  const units *u = &x->w->units;
  if ((x->writes = NEW (a, n * u->count, int64_t, err)) == NULL)
    return false;
  for (int32_t k = 0; k < x->t->n_ops; k++) {
    const index_list *list = &x->t->ops[k].writes;
    for (int32_t i = 0; i < list->count; i++) {
      int32_t group = u->group_of[list->at[i]];
      x->writes[(group < 0 ? list->at[i] : x->t->n_tensors + group) * n + k + 1] = 1;
    }
  }
  for (int32_t i = 0; i < u->count; i++)
    for (int64_t k = 1; k < n; k++)
      x->writes[i * n + k] += x->writes[i * n + k - 1];
  return true;
}

static int64_t host_places (const walk *w) {
  int64_t most = 0;
  for (int32_t i = 0; i < w->plan->n_moves; i++) {
    const move *m = &w->plan->moves[i];
    most = max_of (most, m->host_offset + w->units.at[m->unit].bytes);
  }
  return most / PLACE + 1;
}

bool walk_run (const walk *w, const walk_run_options *o, arena *a, walk_fault *out, error *err) {
  arena_mark mark = arena_here (a);
  world x = {
    .w = w, .p = w->plan, .t = w->rewritten->trace, .r = random_seed (o->seed), .fault = out
  };
  int64_t places = host_places (w);
  *out = (walk_fault){ .found = false };
  bool ok = (x.device = NEW (a, w->plan->placement.granules, int64_t, err)) != NULL &&
            (x.host = NEW (a, places, int64_t, err)) != NULL && count_writes (&x, a, err);
  if (ok) {
    for (int32_t i = 0; i < w->plan->placement.granules; i++)
      x.device[i] = EMPTY;
    for (int64_t i = 0; i < places; i++)
      x.host[i] = EMPTY;
    put_first (&x);
    run_queues (&x, o);
  }
  arena_back (a, mark);
  return ok;
}
