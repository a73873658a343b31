/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bugs planted in plans that were right.  check judges whether what came out is a bug; then the
   race checker must find it in the replay's first run, without a byte behind the addresses, and
   must be silent where there is none.  The two have no line in common: check reads the plan, the
   race checker sees driver calls. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "executor/replay/replay.h"
#include "tests/emu_case.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

enum { LEAST_SEEDS = 300, MOST_SEEDS = 10000, LEAST_BUGS = 10, ARENA = 512 << 20 };

typedef bool plant (plan *p, random_state *r); /* false: there is nothing to plant it in */

static int32_t pick (random_state *r, int32_t count) {
  return (int32_t)random_between (r, 0, count - 1);
}

static bool drop_op_wait (plan *p, random_state *r) {
  if (p->n_op_waits == 0)
    return false;
  int32_t i = pick (r, p->n_op_waits);
  p->op_waits[i] = p->op_waits[--p->n_op_waits];
  return true;
}

static bool op_waits_for_the_out_before (plan *p, random_state *r) {
  if (p->n_op_waits == 0)
    return false;
  op_wait *w = &p->op_waits[pick (r, p->n_op_waits)];
  if (w->outs <= -p->n_outs)
    return false;
  w->outs--;
  return true;
}

static bool drop_in_ops (plan *p, random_state *r) {
  if (p->n_moves == 0)
    return false;
  move *m = &p->moves[pick (r, p->n_moves)];
  bool there = m->in_ops != NO_WAIT;
  m->in_ops = NO_WAIT;
  return there;
}

static bool in_waits_for_the_op_before (plan *p, random_state *r) {
  if (p->n_moves == 0)
    return false;
  move *m = &p->moves[pick (r, p->n_moves)];
  if (m->in_ops == NO_WAIT || m->in_ops <= 0)
    return false;
  m->in_ops--;
  return true;
}

static bool drop_in_outs (plan *p, random_state *r) {
  if (p->n_moves == 0)
    return false;
  move *m = &p->moves[pick (r, p->n_moves)];
  bool there = m->in_outs != NO_WAIT;
  m->in_outs = NO_WAIT;
  return there;
}

static bool in_waits_for_the_out_before (plan *p, random_state *r) {
  if (p->n_moves == 0)
    return false;
  move *m = &p->moves[pick (r, p->n_moves)];
  if (m->in_outs == NO_WAIT || m->in_outs <= -p->n_outs)
    return false;
  m->in_outs--;
  return true;
}

static bool swap_outs (plan *p, random_state *r) {
  if (p->n_outs < 2)
    return false;
  int32_t i = pick (r, p->n_outs - 1), kept = p->out_order[i];
  p->out_order[i] = p->out_order[i + 1];
  p->out_order[i + 1] = kept;
  return true;
}

static bool in_waits_for_the_step_before (plan *p, random_state *r) {
  if (p->n_moves == 0)
    return false;
  move *m = &p->moves[pick (r, p->n_moves)];
  if (m->in_outs == NO_WAIT || m->in_outs <= 0)
    return false;
  m->in_outs = 0;
  return true;
}

static bool two_owners_of_a_granule (plan *p, random_state *r) {
  placement *l = &p->placement;
  if (l->n_stays < 2)
    return false;
  stay *a = &l->stays[pick (r, l->n_stays)], *b = &l->stays[pick (r, l->n_stays)];
  granule_run *x = &l->runs[a->first_run], *y = &l->runs[b->first_run];
  if (a == b || x->count > y->count || x->first == y->first || a->n_runs > 1)
    return false;
  x->first = y->first;
  return true;
}

static bool two_users_of_host_bytes (plan *p, random_state *r) {
  if (p->n_moves < 2)
    return false;
  move *a = &p->moves[pick (r, p->n_moves)], *b = &p->moves[pick (r, p->n_moves)];
  if (a->host_offset == b->host_offset || a->clean || b->clean)
    return false;
  a->host_offset = b->host_offset;
  return true;
}

/* What makes a plan a race when it runs; other rules make it nonsense. */
static bool is_race (check_rule rule) {
  return rule == RULE_safe || rule == RULE_host_safe;
}

static bool make (uint64_t seed, arena *a, random_case *c) {
  error err = { 0 };
  case_options o = {
    .seed = seed, .features = CASE_EVERYTHING | CASE_ORDER, .places = CASE_SHARED, .factor = 1
  };
  check_rule broken;
  return random_case_make (&o, a, c, &err) && check_plan (c->trace, c->plan, a, &broken, &err);
}

typedef struct tally {
  int bugs, found, harmless, false_alarms;
  uint64_t missed, alarmed;
} tally;

static void replay_planted (uint64_t seed, const random_case *c, bool bug, arena *a, tally *t) {
  replay_options o = { .library = emu_case_path (),
                       .emulated = true,
                       .clock = EMU_VIRTUAL,
                       .bytes = EMU_NONE,
                       .iterations = 4,
                       .races = true,
                       .unchecked = true };
  replay_result r;
  error err = { 0 };
  if (!replay_run (c->trace, c->plan, &o, a, &r, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
  *(bug ? &t->bugs : &t->harmless) += 1;
  bool seen = r.n_races > 0;
  if (seen)
    *(bug ? &t->found : &t->false_alarms) += 1;
  if (bug && !seen)
    t->missed = seed;
  if (!bug && seen)
    t->alarmed = seed;
}

static void plant_everywhere (const char *name, plant *p) {
  tally t = { 0 };
  for (uint64_t seed = 1; seed <= MOST_SEEDS; seed++) {
    if (seed > LEAST_SEEDS && t.bugs >= LEAST_BUGS)
      break;
    arena *a = arena_new (ARENA);
    random_case c;
    random_state r = random_seed (seed);
    check_rule broken;
    error err = { 0 };
    if (make (seed, a, &c) && p (c.plan, &r)) {
      bool fine = check_plan (c.trace, c.plan, a, &broken, &err);
      if (fine || is_race (broken))
        replay_planted (seed, &c, !fine, a, &t);
    }
    arena_free (a);
  }
  ck_assert_msg (t.found == t.bugs, "%s: %d bugs, %d found; seed %llu is one that was missed", name,
                 t.bugs, t.found, (unsigned long long)t.missed);
  ck_assert_msg (t.false_alarms == 0, "%s: %d of %d harmless changes are called races, seed %llu",
                 name, t.false_alarms, t.harmless, (unsigned long long)t.alarmed);
  ck_assert_msg (t.bugs >= LEAST_BUGS, "%s: only %d bugs came out of %d seeds", name, t.bugs,
                 MOST_SEEDS);
}

static const struct {
  const char *name;
  plant *plant;
} bugs[] = {
  { "an op does not wait for an out", drop_op_wait },
  { "an op waits for the out before", op_waits_for_the_out_before },
  { "an in does not wait for ops", drop_in_ops },
  { "an in waits for the op before", in_waits_for_the_op_before },
  { "an in does not wait for outs", drop_in_outs },
  { "an in waits for the out before", in_waits_for_the_out_before },
  { "an out comes late", swap_outs },
  { "an in waits with the event of the step before", in_waits_for_the_step_before },
  { "a granule has two owners", two_owners_of_a_granule },
  { "host bytes have two users", two_users_of_host_bytes },
};

CLAIM (ten_planted_bugs_are_found_and_nothing_else) {
  for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++)
    plant_everywhere (bugs[i].name, bugs[i].plant);
}

int main (void) {
  return suite_run ("replay_bugs", 60);
}
