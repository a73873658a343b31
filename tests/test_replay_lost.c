/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waits and copies left out of a replay, one in a run, each of the run in turn: --races sees every
   wait, as what it does not wait for no other wait implies; with --verify it sees every copy.
   FERRY_CASES: how many plans. */
#include <stdio.h>

#include "executor/replay/replay.h"
#include "tests/emu_case.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

enum { PLANS = 24, STEPS = 4, MOST_WAITS = 150, ARENA = 512 << 20 };

typedef struct tally {
  int plans;
  int64_t tried, seen, plan_waits, waits;
} tally;

static bool make (uint64_t seed, int64_t factor, arena *a, random_case *c) {
  error err = { 0 };
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING | CASE_ORDER,
                     .places = seed % 3 == 0 ? CASE_APART : CASE_SHARED,
                     .factor = factor };
  check_rule broken;
  return random_case_make (&o, a, c, &err) && check_plan (c->trace, c->plan, a, &broken, &err) &&
         c->plan->n_moves > 0;
}

static replay_options options (bool bytes) {
  return (replay_options){ .library = emu_case_path (),
                           .emulated = true,
                           .clock = EMU_VIRTUAL,
                           .bytes = bytes ? EMU_ALL : EMU_NONE,
                           .verify = bytes,
                           .races = true,
                           .iterations = STEPS };
}

static replay_result run (uint64_t seed, const random_case *c, const replay_options *o, arena *a) {
  error err = { 0 };
  replay_result r;
  if (!replay_run (c->trace, c->plan, o, a, &r, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
  return r;
}

/* With one left out after the other; `which` points into `o`. */
static void leave_out_each (uint64_t seed, const random_case *c, replay_options *o, int64_t *which,
                            int64_t count, arena *a, tally *t) {
  for (*which = 1; *which <= count; ++*which) {
    arena_mark mark = arena_here (a);
    replay_result r = run (seed, c, o, a);
    bool seen = r.n_races > 0 || r.found.count > 0;
    t->tried++;
    t->seen += seen;
    ck_assert_msg (seen, "seed %llu: without %lld of %lld nothing was seen",
                   (unsigned long long)seed, (long long)*which, (long long)count);
    arena_back (a, mark);
  }
  *which = 0;
}

static void try_seed (uint64_t seed, bool copies, tally *t) {
  arena *a = arena_new (ARENA);
  random_case c;
  if (make (seed, copies ? 8 : 1, a, &c)) {
    replay_options o = options (copies);
    replay_result r = run (seed, &c, &o, a);
    ck_assert_msg (r.n_races == 0 && r.found.count == 0, "seed %llu: %s", (unsigned long long)seed,
                   r.races[0].text);
    int64_t count = copies ? r.issued_copies : r.issued_waits;
    if (count <= MOST_WAITS) {
      t->plans++;
      t->plan_waits += r.plan_waits;
      t->waits += r.waits;
      leave_out_each (seed, &c, &o, copies ? &o.lost_copy : &o.lost_wait, count, a, t);
    }
  }
  arena_free (a);
}

CLAIM (every_wait_that_is_left_out_is_seen) {
  tally t = { 0 };
  for (uint64_t seed = 1; t.plans < suite_cases (PLANS); seed++)
    try_seed (seed, false, &t);
  printf ("waits: %lld of %lld left out were seen; %lld a step of the %lld of %d plans are made\n",
          (long long)t.seen, (long long)t.tried, (long long)t.waits, (long long)t.plan_waits,
          t.plans);
  ck_assert_int_gt (t.tried, 20 * t.plans);
  ck_assert_msg (t.waits < t.plan_waits * 9 / 10, "what others imply is waited for");
}

CLAIM (every_copy_that_is_left_out_is_seen) {
  tally t = { 0 };
  for (uint64_t seed = 1; t.plans < suite_cases (PLANS) / 3; seed++)
    try_seed (seed, true, &t);
  printf ("copies: %lld of %lld left out were seen, of %d plans\n", (long long)t.seen,
          (long long)t.tried, t.plans);
  ck_assert_int_gt (t.tried, 10 * t.plans);
}

int main (void) {
  return suite_run ("replay_lost", 120);
}
