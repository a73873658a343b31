/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replay: predicted equals seen on the virtual clock, every byte is where it should be, and what is
   missing in a plan is found. */
#include <stdio.h>
#include <string.h>

#include "executor/replay/replay.h"
#include "tests/emu_case.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"

enum { EXACT_CASES = 600, BYTE_CASES = 120, FUZZED_CASES = 40, ARENA = 512 << 20 };

static replay_options on_virtual (void) {
  return (replay_options){
    .library = emu_case_path (), .emulated = true, .clock = EMU_VIRTUAL, .bytes = EMU_NONE
  };
}

/* False: this seed's plan is refused by check. */
static bool make (uint64_t seed, int64_t factor, arena *a, random_case *c) {
  error err = { 0 };
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING | CASE_ORDER,
                     .places = seed % 3 == 0 ? CASE_APART : CASE_SHARED,
                     .factor = factor };
  if (!random_case_make (&o, a, c, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
  check_rule broken;
  return check_plan (c->trace, c->plan, a, &broken, &err);
}

static void run (uint64_t seed, const random_case *c, const replay_options *o, arena *a,
                 replay_result *r) {
  error err = { 0 };
  if (!replay_run (c->trace, c->plan, o, a, r, &err))
    ck_abort_msg ("seed %llu: %s", (unsigned long long)seed, err.text);
}

static void expect_equal (uint64_t seed, const replay_result *r) {
  const predicted *p = &r->predicted, *s = &r->seen;
  ck_assert_msg (p->step_ns == s->step_ns && p->settled == s->settled && r->largest_ns == 0 &&
                     r->largest_copy_ns == 0 && r->n_worst == 0,
                 "seed %llu: predicted %lld (settled %d), seen %lld (%d); starts of ops differ by "
                 "%lld, copies by %lld",
                 (unsigned long long)seed, (long long)p->step_ns, p->settled, (long long)s->step_ns,
                 s->settled, (long long)r->largest_ns, (long long)r->largest_copy_ns);
  ck_assert_int_eq (p->peak_bytes, s->peak_bytes);
  ck_assert_int_eq (p->host_peak_bytes, s->host_peak_bytes);
  ck_assert_int_eq (p->d2h_bytes, s->d2h_bytes);
  ck_assert_int_eq (p->h2d_bytes, s->h2d_bytes);
  ck_assert_int_eq (p->stall_ns, s->stall_ns);
}

/* What a set of cases must have contained for a claim about it to be one. */
typedef struct kinds {
  int cases, moves, clean, wraps, parts, groups, pools, sections, recomputes;
} kinds;

static void count_kinds (const plan *p, kinds *k) {
  k->cases++;
  for (int32_t i = 0; i < p->n_moves; i++) {
    k->moves++;
    k->clean += p->moves[i].clean;
    k->wraps += p->moves[i].in_before <= p->moves[i].out_after;
    k->parts += p->moves[i].of > 1;
  }
  k->groups += p->n_groups;
  k->pools += p->placement.pool_bytes > 0;
  k->sections += p->n_sections;
  k->recomputes += p->n_recomputes;
}

static void expect_kinds (const kinds *k, int least) {
  ck_assert_int_ge (k->moves, least);
  ck_assert_int_ge (k->clean, least);
  ck_assert_int_ge (k->wraps, least);
  ck_assert_int_ge (k->parts, least);
  ck_assert_int_ge (k->groups, least);
  ck_assert_int_ge (k->pools, least);
  ck_assert_int_ge (k->sections, least);
  ck_assert_int_ge (k->recomputes, least);
}

CLAIM (predicted_equals_seen_to_the_nanosecond) {
  kinds k = { 0 };
  for (uint64_t seed = 1; k.cases < EXACT_CASES; seed++) {
    arena *a = arena_new (ARENA);
    random_case c;
    replay_options o = on_virtual ();
    replay_result r;
    ck_assert_uint_lt (seed, 20 * EXACT_CASES);
    if (make (seed, 1, a, &c)) {
      run (seed, &c, &o, a, &r);
      expect_equal (seed, &r);
      count_kinds (c.plan, &k);
    }
    arena_free (a);
  }
  expect_kinds (&k, 20);
}

/* Copies out take 1/1000 more than a step's ops: the backlog grows for hundreds of steps, so 32 of
   them do not repeat, and a laden start finds the figure.  Ten ops of 100 us; tensor 0 leaves after
   op 0 until op 9, tensor 1 lives on and leaves after op 5 until op 3 of the next step. */
static trace *slow_trace (arena *a, error *err) {
  trace_builder *b = build_new (a, "slow", 1, err);
  ck_assert_ptr_nonnull (b);
  build_source (b, "test", "");
  build_tensor (b, "short", 400000, TENSOR_ACTIVATION);
  build_tensor (b, "long", 601000, TENSOR_PARAMETER);
  for (int k = 0; k < 10; k++) {
    build_op (b, "op", OP_FORWARD, 100000);
    if (k == 0)
      build_write (b, 0);
    if (k == 9)
      build_read (b, 0);
    if (k == 5)
      build_write (b, 1);
    if (k == 3)
      build_read (b, 1);
  }
  return build_finish (b, err);
}

CLAIM (a_backlog_that_builds_up_slowly_is_seen_by_a_laden_run) {
  error err = { 0 };
  arena *a = arena_new (ARENA);
  trace *t = slow_trace (a, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  char digest[TRACE_DIGEST];
  ck_assert (trace_digest (t, digest, &err));
  move moves[2] = { { .unit = 0, .of = 1, .out_after = 0, .in_before = 9 },
                    { .unit = 1, .of = 1, .out_after = 5, .in_before = 3, .host_offset = 400384 } };
  for (int i = 0; i < 2; i++)
    moves[i].in_ops = moves[i].in_outs = NO_WAIT;
  int32_t out_order[2] = { 0, 1 }, in_order[2] = { 1, 0 };
  stay stays[3] = { { STAY_TENSOR, 0, 0, 0, 1 },
                    { STAY_MOVE, 0, 0, 1, 1 },
                    { STAY_MOVE, 1, 0, 2, 1 } };
  granule_run runs[3] = { { 0, 98 }, { 98, 98 }, { 196, 147 } };
  plan p = { .trace_digest = digest,
             .device = { .name = "slow",
                         .memory_bytes = 2000000,
                         .granule_bytes = 4096,
                         .link = { 1000000000, 100000000000, 101000000000, 0 },
                         .host_bytes = 2000000,
                         .share_ppm = 1000000 },
             .budget_bytes = 343 * 4096,
             .host_bytes = 1002000,
             .moves = moves,
             .n_moves = 2,
             .out_order = out_order,
             .n_outs = 2,
             .in_order = in_order,
             .n_ins = 2,
             .placement = { .granule_bytes = 4096,
                            .granules = 343,
                            .stays = stays,
                            .n_stays = 3,
                            .runs = runs,
                            .n_runs = 3 } };
  replay_options o = on_virtual ();
  replay_result r;
  if (!replay_run (t, &p, &o, a, &r, &err))
    ck_abort_msg ("%s %s", err.where, err.text);
  expect_equal (0, &r);
  ck_assert (r.laden);
  ck_assert_int_eq (r.seen.compute_ns, 1000000);
  ck_assert_int_gt (r.seen.step_ns, 1000000);
  arena_free (a);
}

static void expect_bytes (uint64_t seed, const replay_result *r) {
  ck_assert_msg (r->found.count == 0,
                 "seed %llu: %llu words differ, the first at byte %lld of tensor %lld, op %lld, "
                 "step %lld",
                 (unsigned long long)seed, (unsigned long long)r->found.count,
                 (long long)r->found.offset, (long long)r->found.tensor, (long long)r->found.op,
                 (long long)r->found.step);
  ck_assert_msg (r->n_races == 0, "seed %llu: %s", (unsigned long long)seed, r->races[0].text);
}

CLAIM (every_byte_is_where_it_should_be_and_nothing_races) {
  kinds k = { 0 };
  for (uint64_t seed = 1; k.cases < BYTE_CASES; seed++) {
    arena *a = arena_new (ARENA);
    random_case c;
    replay_options o = on_virtual ();
    o.bytes = EMU_ALL;
    o.verify = o.races = true;
    o.iterations = 6;
    replay_result r;
    if (make (seed, 8, a, &c)) {
      run (seed, &c, &o, a, &r);
      expect_bytes (seed, &r);
      count_kinds (c.plan, &k);
    }
    arena_free (a);
  }
  expect_kinds (&k, 5);
}

CLAIM (whatever_the_delays_the_bytes_are_right) {
  int done = 0;
  for (uint64_t seed = 1; done < FUZZED_CASES; seed++) {
    arena *a = arena_new (ARENA);
    random_case c;
    replay_options o = on_virtual ();
    o.bytes = EMU_ALL;
    o.verify = true;
    o.iterations = 5;
    o.fuzz_ns = 30000;
    o.fuzz_seed = seed;
    replay_result r;
    if (make (seed, 8, a, &c) && c.plan->n_moves > 2) {
      run (seed, &c, &o, a, &r);
      expect_bytes (seed, &r);
      done++;
    }
    arena_free (a);
  }
}

CLAIM (real_threads_carry_the_same_bytes) {
  int done = 0;
  for (uint64_t seed = 1; done < 25; seed++) {
    arena *a = arena_new (ARENA);
    random_case c;
    replay_options o = on_virtual ();
    o.clock = EMU_REAL;
    o.bytes = EMU_ALL;
    o.verify = o.races = true;
    o.iterations = 4;
    o.fuzz_ns = done % 2 == 0 ? 100000 : 0;
    o.fuzz_seed = seed;
    replay_result r;
    if (make (seed, 8, a, &c) && c.plan->n_moves > 2) {
      run (seed, &c, &o, a, &r);
      expect_bytes (seed, &r);
      done++;
    }
    arena_free (a);
  }
}

/* ---- what goes wrong ---- */

static void expect_fault (const replay_options *o, error_code code, const char *says) {
  for (uint64_t seed = 1;; seed++) {
    arena *a = arena_new (ARENA);
    random_case c;
    replay_result r;
    error err = { 0 };
    bool fits = make (seed, 8, a, &c) && c.plan->n_moves > 2;
    if (fits) {
      ck_assert (!replay_run (c.trace, c.plan, o, a, &r, &err));
      ck_assert_msg (err.code == code && strstr (err.text, says) != NULL, "%s: %s",
                     error_name (err.code), err.text);
    }
    arena_free (a);
    if (fits)
      return;
  }
}

CLAIM (each_fault_is_one_clear_line) {
  replay_options o = on_virtual (), x = o;
  x.failed_copy = 2;
  expect_fault (&x, ERR_device, "a step: CUDA_ERROR_ECC_UNCORRECTABLE (214)");
  x = o;
  x.missing_bytes = 4096;
  x.bytes = EMU_ALL;
  expect_fault (&x, ERR_device, "the device has no room for the plan's");
  x = o;
  x.pinned_bytes = 512;
  expect_fault (&x, ERR_device, "out of memory on the host: the plan needs");
  x = o;
  x.library = "libno-such-driver.so";
  expect_fault (&x, ERR_unreachable, "no driver: ");
  x = o;
  x.library = "libm.so.6";
  expect_fault (&x, ERR_unreachable, "libm.so.6 has no cuInit");
  x = o;
  x.verify = true;
  expect_fault (&x, ERR_usage, "--verify looks at bytes");
  x = o;
  x.iterations = REPLAY_MOST_STEPS + 1;
  expect_fault (&x, ERR_usage, "can be replayed");
  x = o;
  x.emulated = false;
  expect_fault (&x, ERR_usage, "use --driver emulated");
}

CLAIM (a_plan_for_another_trace_is_refused_before_it_starts) {
  arena *a = arena_new (ARENA);
  random_case one, other;
  replay_options o = on_virtual ();
  replay_result r;
  error err = { 0 };
  ck_assert (make (1, 1, a, &one) && make (2, 1, a, &other));
  ck_assert (!replay_run (one.trace, other.plan, &o, a, &r, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  arena_free (a);
}

CLAIM (what_happened_is_a_chrome_trace_and_a_report) {
  arena *a = arena_new (ARENA);
  random_case c;
  replay_options o = on_virtual ();
  replay_result r;
  error err = { 0 };
  bytes text = { 0 };
  uint64_t seed = 1;
  while (!make (seed, 1, a, &c) || c.plan->n_moves == 0)
    seed++;
  run (seed, &c, &o, a, &r);
  ck_assert (replay_chrome (&(sim_job){ .plan = c.plan }, &r, 1, &text, &err));
  json_document *d = json_open (text.data, text.size, &err);
  ck_assert_ptr_nonnull (d);
  json root = json_root (d), events = json_member (&root, "traceEvents");
  ck_assert_uint_eq (json_count (&events),
                     3 + (size_t)r.timed *
                             (size_t)(r.rewritten.trace->n_ops + c.plan->n_outs + c.plan->n_ins));
  json_close (d);
  bytes_free (&text);
  text = (bytes){ 0 };
  ck_assert (replay_json (&r, &text, &err));
  d = json_open (text.data, text.size, &err);
  ck_assert_ptr_nonnull (d);
  json_close (d);
  bytes_free (&text);
  arena_free (a);
}

/* Loose, since the machine may be busy; `make bench` gives the figure. */
CLAIM (the_real_clock_is_not_ahead_of_the_prediction) {
  arena *a = arena_new (ARENA);
  error err = { 0 };
  trace_builder *b = build_new (a, "even", 1, &err);
  build_source (b, "test", "");
  build_tensor (b, "x", 1 << 20, TENSOR_ACTIVATION);
  for (int k = 0; k < 10; k++) {
    build_op (b, "op", OP_FORWARD, 10000000);
    build_write (b, 0);
  }
  trace *t = build_finish (b, &err);
  ck_assert_ptr_nonnull (t);
  char digest[TRACE_DIGEST];
  ck_assert (trace_digest (t, digest, &err));
  stay s = { STAY_TENSOR, 0, 0, 0, 1 };
  granule_run g = { 0, 256 };
  plan p = { .trace_digest = digest,
             .device = { .name = "even",
                         .memory_bytes = 2 << 20,
                         .granule_bytes = 4096,
                         .link = { 1000000000, 1000000000, 2000000000, 0 },
                         .share_ppm = 1000000 },
             .budget_bytes = 1 << 20,
             .placement = { .granule_bytes = 4096,
                            .granules = 256,
                            .stays = &s,
                            .n_stays = 1,
                            .runs = &g,
                            .n_runs = 1 } };
  replay_options o = on_virtual ();
  o.clock = EMU_REAL;
  o.bytes = EMU_ALL;
  o.iterations = 6;
  replay_result r;
  if (!replay_run (t, &p, &o, a, &r, &err))
    ck_abort_msg ("%s %s", err.where, err.text);
  ck_assert_int_eq (r.predicted.step_ns, 100000000);
  /* no upper limit: what a busy machine adds is no mistake; `ferry replay --clock real` measures */
  ck_assert_int_ge (r.seen.step_ns, 90000000);
  arena_free (a);
}

int main (void) {
  return suite_run ("replay", 60);
}
