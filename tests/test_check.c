/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules of check that no file can break, since its reader refuses such a plan; and allocations that
   fail.  The other rules are broken one by one in tests/cases/check-rules. */
#include <string.h>

#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

typedef struct fixture {
  trace *trace;
  plan *plan;
} fixture;

static void load (fixture *f, arena *a) {
  error err = { 0 };
  const char *folder = getenv ("srcdir");
  char path[4096];
  read_options o = { .strict = true };
  snprintf (path, sizeof path, "%s/tests/cases/check-rules/trace.json", folder ? folder : ".");
  f->trace = trace_load (path, &o, a, &err);
  snprintf (path, sizeof path, "%s/tests/cases/check-rules/plan.json", folder ? folder : ".");
  f->plan = plan_load (path, &o, a, &err);
  ck_assert_msg (f->trace && f->plan, "%s", err.text);
}

static move *move_of (plan *p, int32_t i) {
  return (move *)&p->moves[i];
}

static granule_run *run_of (plan *p, int32_t i) {
  return (granule_run *)&p->placement.runs[i];
}

/* clang-format off */
static void slow_link (plan *p) { p->device.link.h2d_bytes_per_s = 999999; }
static void odd_device_granule (plan *p) { p->device.granule_bytes = 513; }
static void no_share (plan *p) { p->device.share_ppm = 0; }
static void no_granule (plan *p) { p->placement.granule_bytes = 0; }
static void move_negative (plan *p) { move_of (p, 5)->unit = -1; }
static void of_zero (plan *p) { move_of (p, 0)->of = 0; }
static void part_negative (plan *p) { move_of (p, 2)->part = -1; }
static void op_negative (plan *p) { move_of (p, 1)->out_after = -1; }
static void run_negative (plan *p) { run_of (p, 12)->first = -1; }
static void runs_beyond (plan *p) { ((stay *)p->placement.stays)[13].n_runs = 2; }
static void negative_offset (plan *p) { move_of (p, 2)->host_offset = -512; }
static int32_t one[] = { -1, 1000000, 0 };
static void rest (plan *p, int i) { p->resting = &one[i]; p->n_resting = 1; }
static void rest_negative (plan *p) { rest (p, 0); }
static void rest_beyond (plan *p) { rest (p, 1); }
static void rest_used (plan *p) { rest (p, 2); }

static const struct {
  check_rule rule;
  const char *where;
  void (*change) (plan *p);
} breaks[] = {
  { RULE_device, "/device/link/h2d_bytes_per_s", slow_link },
  { RULE_device, "/device/granule_bytes", odd_device_granule },
  { RULE_device, "/device/share_ppm", no_share },
  { RULE_granule_size, "/placement/granule_bytes", no_granule },
  { RULE_move_unit, "/moves/5/unit", move_negative },
  { RULE_move_of, "/moves/0/of", of_zero },
  { RULE_move_part, "/moves/2/part", part_negative },
  { RULE_move_range, "/moves/1/out_after", op_negative },
  { RULE_stay_runs, "/placement/stays/12/runs", run_negative },
  { RULE_stay_runs, "/placement/stays/13/runs", runs_beyond },
  { RULE_host_offset, "/moves/2/host_offset", negative_offset },
  { RULE_resting, "/resting/0", rest_negative },
  { RULE_resting, "/resting/0", rest_beyond },
  { RULE_resting, "/resting/0", rest_used },
};
/* clang-format on */
enum { BREAKS = sizeof breaks / sizeof *breaks };

CLAIM (a_broken_rule_is_named_with_its_place) {
  for (int i = -1; i < BREAKS; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    check_rule rule;
    fixture f;
    load (&f, a);
    if (i >= 0)
      breaks[i].change (f.plan);
    bool good = check_plan (f.trace, f.plan, a, &rule, &err);
    ck_assert_msg (good == (i < 0), "row %d: %s", i, err.text);
    ck_assert_int_eq (rule, i < 0 ? CHECK_RULES : breaks[i].rule);
    if (i >= 0)
      ck_assert_str_eq (err.where, breaks[i].where);
    arena_free (a);
  }
}

CLAIM (every_rule_has_a_sentence) {
  for (int rule = 0; rule < CHECK_RULES; rule++)
    ck_assert_int_gt (strlen (check_rule_says ((check_rule)rule)), 10);
}

/* Which allocation fails decides nothing but that the answer is "out of memory". */
static void fail_each_allocation (const trace *t, const plan *p) {
  bool done = false;
  for (int64_t n = 1; !done; n++) {
    arena *a = arena_new (0);
    error err = { 0 };
    check_rule rule;
    arena_fuse (a, n);
    done = check_plan (t, p, a, &rule, &err);
    ck_assert_msg (done || err.code == ERR_memory, "allocation %lld: %s", (long long)n, err.text);
    ck_assert_int_eq (rule, CHECK_RULES);
    ck_assert_int_eq (arena_used_bytes (a), 0);
    ck_assert_int_lt (n, 100000);
    arena_free (a);
  }
}

CLAIM (any_allocation_that_fails_is_told_as_such_and_leaks_nothing) {
  arena *kept = arena_new (0);
  fixture f;
  load (&f, kept);
  fail_each_allocation (f.trace, f.plan);
  arena_free (kept);
  for (uint64_t seed = 0; seed < 20; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options o = { .seed = seed,
                       .features = CASE_EVERYTHING | CASE_ORDER,
                       .places = CASE_SHARED };
    ck_assert (random_case_make (&o, a, &c, &err));
    fail_each_allocation (c.trace, c.plan);
    arena_free (a);
  }
}

int main (void) {
  return suite_run ("check", 60);
}
