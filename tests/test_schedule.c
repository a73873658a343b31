/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whatever moves are wished, the plan that schedule makes passes check, simulates, and keeps the
   budget; what it calls impossible below a budget is possible at the budget that it names. */
#include <stdio.h>
#include <string.h>

#include "tests/random_case.h"
#include "tests/random_wishes.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { CASES = 400 };

typedef struct scheduled {
  arena *arena;
  random_case made;
  units units;
  wish *wishes;
  int32_t n_wishes;
  device device;
  schedule_options options;
  schedule_shortage shortage;
  error err;
} scheduled;

/* More granules than anything can need: all units and all workspaces at once. */
static int64_t plenty (const scheduled *s) {
  const trace *t = s->made.rewritten.trace;
  int64_t granule = s->options.granule_bytes, sum = s->units.pool_bytes / granule + 1;
  for (int32_t i = 0; i < s->units.count; i++)
    sum += s->units.at[i].granules;
  for (int32_t i = 0; i < t->n_ops; i++)
    sum += (t->ops[i].workspace_bytes + granule - 1) / granule;
  return 2 * sum;
}

static void set_up (scheduled *s, uint64_t seed) {
  *s = (scheduled){ .arena = arena_new (0) };
  random_state r = random_seed (seed * 7919);
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING,
                     .most_ops = (int32_t)(4 + seed % 37),
                     .most_tensors = (int32_t)(3 + seed % 19) };
  ck_assert_msg (random_case_make (&o, s->arena, &s->made, &s->err), "%s", s->err.text);
  const plan *p = s->made.plan;
  s->options = (schedule_options){
    .granule_bytes = p->placement.granule_bytes,
    .pool_below_bytes = seed % 2 ? 0 : p->placement.pool_below_bytes,
    .auto_clean = seed % 3 == 0,
    .host_bytes = (int64_t)1 << 50,
  };
  ck_assert (units_of (s->made.rewritten.trace, p->groups, p->n_groups, s->options.granule_bytes,
                       s->options.pool_below_bytes, s->arena, &s->units, &s->err));
  ck_assert (random_wishes (&s->units, &r, random_between (&r, 0, 1000000), s->arena, &s->wishes,
                            &s->n_wishes, &s->err));
  s->device = p->device;
  s->device.host_bytes = s->options.host_bytes;
  s->device.memory_bytes = s->device.reserved_bytes + plenty (s) * s->options.granule_bytes;
}

static plan *make (scheduled *s, int64_t budget_bytes) {
  const plan *p = s->made.plan;
  s->err = (error){ 0 };
  s->options.budget_bytes = budget_bytes;
  return schedule (&(schedule_request){ .original = s->made.trace,
                                        .rewritten = &s->made.rewritten,
                                        .sections = p->sections,
                                        .n_sections = p->n_sections,
                                        .recomputes = p->recomputes,
                                        .n_recomputes = p->n_recomputes,
                                        .groups = p->groups,
                                        .n_groups = p->n_groups,
                                        .device = &s->device,
                                        .wishes = s->wishes,
                                        .n_wishes = s->n_wishes,
                                        .options = &s->options },
                   s->arena, &s->shortage, &s->err);
}

static void is_legal (scheduled *s, const plan *p, uint64_t seed, predicted *cost) {
  char line[sizeof (error)];
  ck_assert_msg (check_plan (s->made.trace, p, s->arena, NULL, &s->err), "seed %d: %s", (int)seed,
                 error_line (&s->err, line, sizeof line));
  ck_assert_msg (simulate_plan (s->made.trace, p, s->arena, cost, &s->err), "seed %d: %s",
                 (int)seed, error_line (&s->err, line, sizeof line));
  ck_assert_int_le (cost->peak_bytes, s->options.budget_bytes);
}

CLAIM (a_plan_for_any_wishes_is_legal) {
  for (uint64_t seed = 0; seed < CASES; seed++) {
    scheduled s;
    predicted cost;
    set_up (&s, seed);
    plan *p = make (&s, plenty (&s) * s.options.granule_bytes);
    ck_assert_msg (p != NULL, "seed %d: %s", (int)seed, s.err.text);
    is_legal (&s, p, seed, &cost);
    p = make (&s, plenty (&s) / 4 * s.options.granule_bytes);
    if (p)
      is_legal (&s, p, seed, &cost);
    else
      ck_assert_int_eq (s.err.code, ERR_infeasible);
    arena_free (s.arena);
  }
}

/* Its op would wait for a copy in that waits for what runs behind that op. */
CLAIM (a_trigger_behind_its_op_is_refused) {
  scheduled s;
  char line[sizeof (error)], says[64];
  set_up (&s, 0);
  for (uint64_t seed = 1; s.n_wishes == 0; seed++) {
    arena_free (s.arena);
    set_up (&s, seed);
  }
  wish *w = &s.wishes[0];
  w->in_not_before = w->in_before + 1;
  snprintf (says, sizeof says, "wish 0: in before op %d, not before op %d", w->in_before,
            w->in_not_before);
  ck_assert (!make (&s, plenty (&s) * s.options.granule_bytes));
  ck_assert_int_eq (s.err.code, ERR_input);
  ck_assert_ptr_nonnull (strstr (error_line (&s.err, line, sizeof line), says));
  arena_free (s.arena);
}

/* The floor that an answer names is the least level of the moves; granules on a circle may need a
   few more, and then the second answer names the number that places took. */
CLAIM (the_named_budget_suffices) {
  int again = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    scheduled s;
    predicted cost;
    set_up (&s, seed);
    if (make (&s, 0)) {
      arena_free (s.arena);
      continue;
    }
    int tries = 0;
    plan *p = NULL;
    while (!p && tries++ < 4) {
      ck_assert_int_eq (s.err.code, ERR_infeasible);
      p = make (&s, s.shortage.needs_bytes);
    }
    ck_assert_msg (p != NULL, "seed %d: %s", (int)seed, s.err.text);
    is_legal (&s, p, seed, &cost);
    again += tries > 1;
    arena_free (s.arena);
  }
  ck_assert_int_le (again, CASES / 50);
}

CLAIM (the_same_wishes_make_the_same_bytes) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    bytes text[2];
    for (int i = 0; i < 2; i++) {
      scheduled s;
      set_up (&s, seed);
      plan *p = make (&s, plenty (&s) * s.options.granule_bytes);
      ck_assert (p && plan_text (p, false, &text[i], &s.err));
      arena_free (s.arena);
    }
    ck_assert_str_eq (text[0].data, text[1].data);
    bytes_free (&text[0]);
    bytes_free (&text[1]);
  }
}

CLAIM (every_failed_allocation_is_told) {
  scheduled s;
  bool made = false;
  for (int64_t n = 1; !made; n++) {
    ck_assert_int_lt (n, 10000);
    set_up (&s, 12);
    arena_fuse (s.arena, n);
    plan *p = make (&s, plenty (&s) * s.options.granule_bytes);
    made = p;
    if (!p)
      ck_assert_int_eq (s.err.code, ERR_memory);
    arena_free (s.arena);
  }
}

/* The simulator, with its timeline, on a plan with everything in it. */
CLAIM (every_failed_allocation_of_simulate_is_told) {
  for (int picture = 0; picture < 2; picture++) {
    bool done = false;
    for (int64_t n = 1; !done; n++) {
      scheduled s;
      timeline drawn;
      predicted cost;
      ck_assert_int_lt (n, 10000);
      set_up (&s, 12);
      sim_job job = { s.made.trace, &s.made.rewritten, s.made.plan };
      sim_options o = { .timeline_arena = picture ? s.arena : NULL };
      arena_fuse (s.arena, n);
      done = simulate (&job, 1, &o, s.arena, &cost, &drawn, &s.err);
      ck_assert (done || s.err.code == ERR_memory);
      arena_free (s.arena);
    }
  }
}

/* Each part has one set of granules, looked at here once more without check's help. */
static void has_same_places (const scheduled *s, const plan *p) {
  const placement *pl = &p->placement;
  ck_assert (pl->same_places);
  for (int32_t i = 0; i < pl->n_stays; i++)
    for (int32_t j = 0; j < i; j++) {
      const stay *pair[2] = { &pl->stays[i], &pl->stays[j] };
      int32_t unit[2], part[2];
      for (int k = 0; k < 2; k++) {
        const stay *x = pair[k];
        unit[k] = x->kind == STAY_MOVE        ? p->moves[x->index].unit
                  : x->kind == STAY_GROUP     ? s->made.rewritten.trace->n_tensors + x->index
                  : x->kind == STAY_WORKSPACE ? -1 - x->index
                                              : x->index;
        part[k] = x->kind == STAY_MOVE ? p->moves[x->index].part : x->part;
      }
      if (unit[0] != unit[1] || part[0] != part[1])
        continue;
      ck_assert_int_eq (pair[0]->n_runs, pair[1]->n_runs);
      ck_assert_mem_eq (pl->runs + pair[0]->first_run, pl->runs + pair[1]->first_run,
                        (size_t)pair[0]->n_runs * sizeof *pl->runs);
    }
}

CLAIM (asked_for_every_stay_of_a_part_has_the_same_granules) {
  int tight = 0, refused = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    scheduled s;
    predicted cost;
    set_up (&s, seed);
    s.options.same_places = true;
    plan *p = make (&s, plenty (&s) * s.options.granule_bytes);
    ck_assert_msg (p != NULL, "seed %d: %s", (int)seed, s.err.text);
    has_same_places (&s, p);
    is_legal (&s, p, seed, &cost);
    s.options.same_places = false;
    int64_t budget = cost.peak_bytes - (int64_t)(seed % 4) * s.options.granule_bytes;
    if (make (&s, budget)) {
      s.options.same_places = true;
      p = make (&s, budget);
      if (p) {
        has_same_places (&s, p);
        is_legal (&s, p, seed, &cost);
      }
      tight += p != NULL;
      refused += p == NULL;
    }
    arena_free (s.arena);
  }
  ck_assert_int_gt (tight, CASES / 4);
  ck_assert_int_gt (refused, 0); /* it is dearer in memory than free places */
}

int main (void) {
  return suite_run ("schedule", 60);
}
