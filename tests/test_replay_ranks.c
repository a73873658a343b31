/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several ranks replayed at once on the emulated devices of one host: seen equals predicted. */
#include "executor/replay/replay.h"
#include "tests/emu_case.h"
#include "tests/rank_case.h"
#include "tests/suite.h"

static replay_options on_virtual (void) {
  return (replay_options){
    .library = emu_case_path (), .emulated = true, .clock = EMU_VIRTUAL, .bytes = EMU_NONE
  };
}

typedef struct made_ranks {
  int32_t n;
  random_case cases[RANK_CASE_MOST];
  sim_job jobs[RANK_CASE_MOST];
  gpu_host host;
} made_ranks;

/* False: this seed makes no legal ranks. */
static bool make (uint64_t seed, int64_t factor, bool streams, arena *a, made_ranks *m) {
  random_state r = random_seed (seed);
  error err = { 0 };
  m->n = (int32_t)random_between (&r, 1, RANK_CASE_MOST);
  if (!rank_case_jobs (&r, m->n, factor, streams, m->cases, m->jobs, a))
    return false;
  ck_assert (rank_case_host (&r, &m->cases[0].plan->device, m->n, a, &m->host, &err));
  return true;
}

static void run (uint64_t seed, const made_ranks *m, const replay_options *o, arena *a,
                 replay_result *r) {
  error err = { 0 };
  int32_t broken;
  if (!replay_ranks (m->jobs, m->n, &m->host, o, a, r, &broken, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
}

/* Ops of several ranks that wait for each other, and ops side by side. */
static bool meets (const made_ranks *m) {
  bool all = m->n > 1;
  for (int32_t i = 0; i < m->n; i++) {
    bool any = false;
    for (int32_t k = 0; k < m->jobs[i].original->n_ops; k++)
      any |= m->jobs[i].original->ops[k].collective != COLLECTIVE_none;
    all &= any && trace_has_streams (m->jobs[i].original);
  }
  return all;
}

/* Moves of these plans slow each other down: there is something to share. */
static bool shares (const made_ranks *m) {
  int32_t n = 0;
  for (int32_t i = 0; i < m->n; i++)
    n += m->jobs[i].plan->n_moves > 0;
  return n > 1 && m->host.n_groups > 0;
}

static void as_predicted (int seed, const made_ranks *m, const replay_result *r) {
  for (int32_t i = 0; i < m->n; i++)
    ck_assert_msg (r[i].predicted.step_ns == r[i].seen.step_ns &&
                       r[i].predicted.settled == r[i].seen.settled && r[i].largest_ns == 0 &&
                       r[i].largest_copy_ns == 0,
                   "seed %d, rank %d of %d: predicted %lld (settled %d), seen %lld (%d); starts "
                   "of ops differ by %lld, copies by %lld",
                   seed, i, m->n, (long long)r[i].predicted.step_ns, r[i].predicted.settled,
                   (long long)r[i].seen.step_ns, r[i].seen.settled, (long long)r[i].largest_ns,
                   (long long)r[i].largest_copy_ns);
}

CLAIM (seen_equals_predicted_to_the_nanosecond_on_random_ranks) {
  int shared = 0;
  for (int seed = 1; seed <= suite_cases (400); seed++) {
    arena *a = arena_new (0);
    made_ranks m;
    replay_options o = on_virtual ();
    replay_result r[RANK_CASE_MOST];
    if (make ((uint64_t)seed, 1, false, a, &m)) {
      run ((uint64_t)seed, &m, &o, a, r);
      shared += shares (&m);
      as_predicted (seed, &m, r);
    }
    arena_free (a);
  }
  ck_assert_int_gt (shared, suite_cases (400) / 8);
}

CLAIM (seen_equals_predicted_with_streams_and_collectives) {
  int shared = 0;
  for (int seed = 1; seed <= suite_cases (400); seed++) {
    arena *a = arena_new (0);
    made_ranks m;
    replay_options o = on_virtual ();
    o.unchecked = true; /* nobody looks at bytes, and the streams race */
    replay_result r[RANK_CASE_MOST];
    if (make ((uint64_t)seed, 1, true, a, &m)) {
      run ((uint64_t)seed, &m, &o, a, r);
      shared += meets (&m) && shares (&m);
      as_predicted (seed, &m, r);
    }
    arena_free (a);
  }
  ck_assert_int_gt (shared, suite_cases (400) / 40);
}

CLAIM (every_byte_of_every_rank_is_where_it_should_be) {
  int moved = 0;
  for (int seed = 1; seed <= suite_cases (40); seed++) {
    arena *a = arena_new ((int64_t)1 << 30);
    made_ranks m;
    replay_options o = on_virtual ();
    replay_result r[RANK_CASE_MOST];
    o.bytes = EMU_ALL;
    o.verify = true;
    if (make ((uint64_t)seed, 8, false, a, &m)) {
      run ((uint64_t)seed, &m, &o, a, r);
      for (int32_t i = 0; i < m.n; i++) {
        ck_assert_uint_eq (r[i].found.count, 0);
        moved += m.jobs[i].plan->n_moves;
      }
    }
    arena_free (a);
  }
  ck_assert_int_gt (moved, 0);
}

/* A copy that rank 0 leaves out is found in its bytes, and the others' are right. */
CLAIM (a_copy_that_one_rank_loses_is_found) {
  int found = 0;
  for (int seed = 1; seed <= 40; seed++) {
    arena *a = arena_new ((int64_t)1 << 30);
    made_ranks m;
    replay_options o = on_virtual ();
    replay_result r[RANK_CASE_MOST];
    o.bytes = EMU_NONE;
    o.races = true;
    o.iterations = 4;
    o.lost_copy = 1;
    if (make ((uint64_t)seed, 1, false, a, &m) && m.n > 1 && m.jobs[0].plan->n_moves > 0) {
      run ((uint64_t)seed, &m, &o, a, r);
      ck_assert_int_gt (r[0].n_races, 0);
      found++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (found, 3);
}

/* A rank whose device breaks ends all of them, and its error is the one that is told. */
CLAIM (a_rank_that_fails_ends_the_others) {
  int failed = 0;
  for (int seed = 1; seed <= 40; seed++) {
    arena *a = arena_new (0);
    made_ranks m;
    replay_options o = on_virtual ();
    replay_result r[RANK_CASE_MOST];
    error err = { 0 };
    int32_t broken;
    o.failed_copy = 1;
    if (make ((uint64_t)seed, 1, false, a, &m) && m.n > 1 && m.jobs[0].plan->n_moves > 0) {
      ck_assert (!replay_ranks (m.jobs, m.n, &m.host, &o, a, r, &broken, &err));
      ck_assert_msg (strstr (err.text, "rank ") && strstr (err.text, "ECC"), "%s", err.text);
      failed++;
    }
    arena_free (a);
  }
  ck_assert_int_gt (failed, 3);
}

int main (void) {
  return suite_run ("replay_ranks", 120);
}
