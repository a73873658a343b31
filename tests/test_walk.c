/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A walk is enough to carry a plan out: every item finds the bytes that it needs, of the right
   version, in the plan's places, however slow each queue is; its waits give the machine model's
   times; and a wait that is left out is seen. FERRY_CASES: how many seeds. */
#include <string.h>

#include "base/order.h"
#include "solver/solve.h"
#include "tests/ref_simulate.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "tests/walk_run.h"
#include "trace/check/check.h"

enum { CASES = 400, SOLVED = 200, RUNS = 6, TRIES = 64, GRANULE = 2048 };

typedef struct walked {
  const trace *trace;
  const plan *plan;
  rewritten rewritten;
  walk walk;
} walked;

static void walk_of (walked *k, arena *a) {
  error err = { 0 };
  ck_assert_msg (plan_rewrite (k->trace, k->plan, a, &k->rewritten, &err), "%s", err.text);
  ck_assert_msg (walk_make (&k->rewritten, k->plan, a, &k->walk, &err), "%s", err.text);
}

/* False: check refuses this seed's plan. */
static bool random_walk (uint64_t seed, arena *a, walked *k) {
  error err = { 0 };
  random_case c;
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING | CASE_ORDER,
                     .places = seed % 2 ? CASE_SHARED : CASE_APART };
  ck_assert_msg (random_case_make (&o, a, &c, &err), "%s", err.text);
  *k = (walked){ .trace = c.trace, .plan = c.plan };
  if (!check_plan (c.trace, c.plan, a, NULL, &err))
    return false;
  walk_of (k, a);
  return true;
}

/* A trace with a tensor that no op uses, so that state can rest, in less memory than it takes. */
static bool solved_walk (uint64_t seed, arena *a, walked *k) {
  error err = { 0 };
  random_case c;
  solution s;
  case_options o = { .seed = seed,
                     .features = CASE_WRAP | CASE_WORKSPACE | CASE_COPY_NS | CASE_GAPS |
                                 CASE_LIVES | CASE_PARTS | CASE_CLEAN };
  ck_assert_msg (random_case_make (&o, a, &c, &err), "%s", err.text);
  trace *t = NEW (a, 1, trace, &err);
  *t = *c.trace;
  t->tensors = NEW (a, t->n_tensors + 1, tensor, &err);
  memcpy (t->tensors, c.trace->tensors, (size_t)t->n_tensors * sizeof *t->tensors);
  t->tensors[t->n_tensors++] = (tensor){ .name = "idle",
                                         .bytes = 3 * GRANULE,
                                         .persistent = true,
                                         .born_before = NO_OP,
                                         .dies_after = NO_OP };
  device d = c.plan->device;
  d.memory_bytes = d.host_bytes = (int64_t)1 << 40;
  d.reserved_bytes = 0;
  d.granule_bytes = GRANULE;
  int64_t all = 0, largest = 0;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    all += t->tensors[i].bytes;
    largest = max_of (largest, t->tensors[i].bytes);
  }
  solve_options how = { .device = &d,
                        .budget_bytes = all / 2 / GRANULE * GRANULE + 2 * GRANULE,
                        .host_bytes = d.host_bytes,
                        .limit_ticks = 10000,
                        .placement = seed % 2 ? PLACES_ARENA : PLACES_GRANULES,
                        .seed = 5 };
  if (!solve (t, &how, a, &s, &err)) {
    ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
    return false;
  }
  ck_assert_msg (check_plan (t, s.plan, a, NULL, &err), "%s", err.text);
  *k = (walked){ .trace = t, .plan = s.plan };
  walk_of (k, a);
  return true;
}

static walk_fault fault_of (const walk *w, uint64_t seed, walk_queue slow, int32_t position,
                            arena *a) {
  error err = { 0 };
  walk_fault f;
  walk_run_options o = { .seed = seed, .slow = slow, .slow_position = position };
  ck_assert_msg (walk_run (w, &o, a, &f, &err), "%s", err.text);
  return f;
}

/* At any speed, and with each item once so slow that all else comes first. */
static void finds_all (const walked *k, uint64_t seed, arena *a) {
  for (int run = 0; run < RUNS; run++) {
    walk_fault f = fault_of (&k->walk, seed + (uint64_t)run, WALK_OPS, -1, a);
    ck_assert_msg (!f.found, "seed %d: %s", (int)seed, f.text);
  }
  for (int32_t i = 0; i < k->walk.n_items; i++) {
    const walk_item *it = &k->walk.items[i];
    walk_fault f = fault_of (&k->walk, seed, it->queue, it->position, a);
    ck_assert_msg (!f.found, "seed %d, slow: %s %d: %s", (int)seed, walk_queue_names[it->queue],
                   it->index, f.text);
  }
}

CLAIM (every_item_of_a_random_plan_finds_what_it_needs) {
  int done = 0, remade = 0, cut = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    walked k;
    if (random_walk (seed, a, &k)) {
      finds_all (&k, seed, a);
      done += k.plan->n_moves > 0;
      remade += k.plan->n_recomputes > 0;
      cut += k.plan->n_sections > 0;
    }
    arena_free (a);
  }
  ck_assert_int_gt (done, suite_cases (CASES) / 3);
  ck_assert_int_gt (remade, suite_cases (CASES) / 20);
  ck_assert_int_gt (cut, suite_cases (CASES) / 20);
}

CLAIM (every_item_of_a_solved_plan_finds_what_it_needs) {
  int arenas = 0, granules = 0, resting = 0;
  for (uint64_t seed = 1; seed <= SOLVED; seed++) {
    arena *a = arena_new (0);
    walked k;
    if (solved_walk (seed, a, &k)) {
      finds_all (&k, seed, a);
      bool one = k.plan->placement.kind == PLACEMENT_ARENA;
      arenas += one && k.plan->n_moves > 0;
      granules += !one && k.plan->n_moves > 0;
      resting += k.plan->n_resting > 0;
    }
    arena_free (a);
  }
  ck_assert_int_gt (arenas, 5);
  ck_assert_int_gt (granules, 5);
  ck_assert_int_gt (resting, 5);
}

/* ---- order of issue ---- */

CLAIM (whatever_is_waited_for_is_issued_before) {
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    walked k;
    bool made = random_walk (seed, a, &k);
    int32_t ops = 0, next[WALK_QUEUES] = { 0, 0, 0 };
    for (int32_t i = 0; made && i < k.walk.n_items; i++) {
      const walk_item *it = &k.walk.items[i];
      ck_assert_int_eq (it->position, next[it->queue]++);
      ck_assert_int_gt (it->behind, -k.walk.count[WALK_OPS]);
      ck_assert_int_le (it->behind, ops);
      for (int32_t d = it->first_demand; d < it->first_demand + it->n_demands; d++) {
        const walk_wait *w = &k.walk.demands[d];
        const walk_item *awaited = &k.walk.items[k.walk.place[w->queue][w->position]];
        ck_assert (w->lag > 0 || awaited < it);
        /* `behind` is enough for a thread that issues copies as it comes to ops. */
        int32_t at =
            awaited->behind + (awaited->queue == WALK_OPS) - w->lag * k.walk.count[WALK_OPS];
        ck_assert (it->queue == WALK_OPS || at <= it->behind);
      }
      ops += it->queue == WALK_OPS;
    }
    arena_free (a);
  }
}

/* ---- times ---- */

static int64_t time_of (const ref_run *r, const walk *w, walk_queue queue, int32_t position,
                        int32_t step, bool end) {
  const ref_step *s = r->steps[step];
  int32_t index = w->items[w->place[queue][position]].index;
  return queue == WALK_OPS    ? (end ? s->op_end : s->op_start)[index]
         : queue == WALK_OUTS ? (end ? s->out_end : s->out_start)[index]
                              : (end ? s->in_end : s->in_start)[index];
}

/* The moment from which on nothing that the walk names keeps the item back. */
static int64_t ready_ns (const ref_run *r, const walk *w, const walk_item *it, int32_t step) {
  int32_t last = it->position == 0;
  int64_t at = step < last
                   ? 0
                   : time_of (r, w, it->queue, last ? w->count[it->queue] - 1 : it->position - 1,
                              step - last, true);
  if (it->queue == WALK_OPS)
    at += w->rewritten->trace->ops[it->index].gap_ns;
  for (int32_t i = it->first_wait; i < it->first_wait + it->n_waits; i++) {
    const walk_wait *v = &w->waits[i];
    if (step >= v->lag)
      at = max_of (at, time_of (r, w, v->queue, v->position, step - v->lag, true));
  }
  return at;
}

/* How many items begin at another moment than the walk's waits say. */
static int32_t others (const ref_run *r, const walk *w) {
  int32_t found = 0;
  for (int32_t step = 0; step < 8; step++)
    for (int32_t i = 0; i < w->n_items; i++) {
      const walk_item *it = &w->items[i];
      found += time_of (r, w, it->queue, it->position, step, false) != ready_ns (r, w, it, step);
    }
  return found;
}

/* One wait less, of those that are issued. */
static walk without (const walk *w, int32_t item, int32_t wait, arena *a) {
  error err = { 0 };
  walk less = *w;
  const walk_item *last = &w->items[w->n_items - 1];
  int32_t n = last->first_wait + last->n_waits;
  less.items = NEW (a, w->n_items, walk_item, &err);
  less.waits = NEW (a, n, walk_wait, &err);
  ck_assert (less.items && less.waits);
  memcpy (less.items, w->items, (size_t)w->n_items * sizeof *w->items);
  memcpy (less.waits, w->waits, (size_t)n * sizeof *w->waits);
  walk_item *it = &less.items[item];
  less.waits[wait] = less.waits[it->first_wait + --it->n_waits];
  return less;
}

CLAIM (the_times_of_the_machine_model_follow_from_the_waits) {
  int seen = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    walked k;
    ref_answer r;
    if (random_walk (seed, a, &k)) {
      ck_assert (ref_simulate (&(ref_job){ k.trace, k.plan }, 1, false, a, &r, &err));
      ck_assert_msg (others (&r.runs[0], &k.walk) == 0, "seed %d", (int)seed);
      for (int32_t i = 0; i < k.walk.n_items; i++)
        for (int32_t j = 0; j < k.walk.items[i].n_waits; j++) {
          walk less = without (&k.walk, i, k.walk.items[i].first_wait + j, a);
          seen += others (&r.runs[0], &less) > 0;
        }
    }
    arena_free (a);
  }
  ck_assert_int_gt (seen, suite_cases (CASES));
}

/* ---- waits that are left out ---- */

static bool serves_again (const walk *w, int32_t unit) {
  for (int32_t i = 0; i < w->plan->n_moves; i++)
    if (w->plan->moves[i].unit == unit && w->plan->moves[i].clean)
      return true;
  return false;
}

static bool uses_unit (const walk *w, int32_t op, int32_t unit) {
  const units *u = &w->units;
  for (int32_t i = u->use_offset[unit]; i < u->use_offset[unit + 1]; i++)
    if (u->uses[i].op == op)
      return true;
  return false;
}

/* An op may not begin before what it uses has come in, nor a copy in before its own copy out;
   but where the host keeps a copy for clean moves the bytes may be there already. */
static bool must_be_seen (const walk *w, const walk_item *it, const walk_wait *v) {
  if (v->queue == WALK_OPS || it->queue == WALK_OUTS)
    return false;
  int32_t index = w->items[w->place[v->queue][v->position]].index,
          unit = w->plan->moves[index].unit;
  return it->queue == WALK_OPS ? v->queue == WALK_INS && uses_unit (w, it->index, unit)
                               : index == it->index && !serves_again (w, unit);
}

CLAIM (a_wait_that_is_left_out_is_seen) {
  int needed = 0, seen = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    walked k;
    bool made = random_walk (seed, a, &k);
    for (int32_t i = 0; made && i < k.walk.n_items; i++)
      for (int32_t j = 0; j < k.walk.items[i].n_waits; j++) {
        const walk_item *it = &k.walk.items[i];
        const walk_wait v = k.walk.waits[it->first_wait + j];
        walk less = without (&k.walk, i, it->first_wait + j, a);
        bool must = must_be_seen (&k.walk, it, &v);
        walk_fault f = { .found = false };
        for (uint64_t run = 0; !f.found && run < (must ? TRIES : 1); run++)
          f = fault_of (&less, seed + run, v.queue, v.position, a);
        ck_assert_msg (f.found || !must, "seed %d: %s %d runs without its wait for %s %d",
                       (int)seed, walk_queue_names[it->queue], it->index, walk_queue_names[v.queue],
                       v.position);
        needed += must;
        seen += f.found && !must;
      }
    arena_free (a);
  }
  ck_assert_int_gt (needed, suite_cases (CASES) / 2);
  ck_assert_int_gt (seen, suite_cases (CASES) / 8); /* of memory that is used again */
}

int main (void) {
  return suite_run ("walk", 120);
}
