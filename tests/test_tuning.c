/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every number of tuning.def can be set within its range and not beyond; every strategy can be
   switched off, and does something where it is on. */
#include <string.h>

#include "solver/flow/step.h"
#include "solver/solve.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

static bool read (tuning *t, error *err, const char *format, const char *name, long long value) {
  char text[128];
  snprintf (text, sizeof text, format, name, value);
  *err = (error){ 0 };
  return tuning_read (t, text, err);
}

CLAIM (each_number_takes_its_range_and_nothing_else) {
  int rows = 0;
  for (const tuning_row *r = tuning_rows; r->name; r++, rows++) {
    error err;
    const char *format = r->count > 1 ? "%s.0=%lld" : "%s=%lld";
    for (int32_t i = 0; i < r->count; i++)
      ck_assert_msg (tuning_shipped.at[r->first + i] >= r->least &&
                         tuning_shipped.at[r->first + i] <= r->most,
                     "%s is shipped beyond its range", r->name);
    tuning t = tuning_shipped;
    ck_assert (read (&t, &err, format, r->name, r->least) && t.at[r->first] == r->least);
    ck_assert (read (&t, &err, format, r->name, r->most) && t.at[r->first] == r->most);
    ck_assert (!read (&t, &err, format, r->name, r->least - 1) && err.code == ERR_usage);
    ck_assert (!read (&t, &err, format, r->name, r->most + 1) && strstr (err.text, r->name));
    ck_assert_int_eq (t.at[r->first], r->most);
  }
  ck_assert_int_gt (rows, 100);
}

CLAIM (a_name_is_said_once) {
  for (const tuning_row *r = tuning_rows; r->name; r++) {
    for (const tuning_row *x = tuning_rows; x < r; x++)
      ck_assert_str_ne (r->name, x->name);
    for (int i = 0; i < STRATEGIES; i++)
      ck_assert_str_ne (r->name, strategy_rows[i].name);
    ck_assert (r->why[0]);
  }
  for (int i = 0; i < STRATEGIES; i++)
    for (int k = 0; k < i; k++)
      ck_assert_str_ne (strategy_rows[i].name, strategy_rows[k].name);
}

CLAIM (a_mistake_is_one_message_that_names_it) {
  static const char *const wrong[][2] = {
    { "walk", "NAME=VALUE" },
    { "walk=2", "walk is a strategy" },
    { "nosuch=1", "nosuch" },
    { "walk_idle=x", "walk_idle=x" },
    { "walk_idle.1=5", "one number" },
    { "rounding_room_ppm=1000000", "rounding_room_ppm.0" },
    { "rounding_room_ppm.2=1000000", "rounding_room_ppm" },
    { "rounding_room_ppm.x=1", "which of its numbers" },
    { "walk_idle=0", "between" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tuning t = tuning_shipped;
    error err = { 0 };
    ck_assert (!tuning_read (&t, wrong[i][0], &err));
    ck_assert_msg (strstr (err.text, wrong[i][1]), "%s: %s", wrong[i][0], err.text);
    ck_assert_mem_eq (&t, &tuning_shipped, sizeof t);
  }
}

/* Questions that between them run every strategy but `follow`, which curves ask for. */
typedef struct question {
  int percent;
  recompute_mode recompute;
  sections_mode sections;
} question;

static const question questions[] = {
  { 60, RECOMPUTE_OFF, SECTIONS_OFF },   { 50, RECOMPUTE_AUTO, SECTIONS_OFF },
  { 85, RECOMPUTE_ONLY, SECTIONS_OFF },  { 45, RECOMPUTE_AUTO, SECTIONS_AUTO },
  { 100, RECOMPUTE_AUTO, SECTIONS_OFF }, { 36, RECOMPUTE_OFF, SECTIONS_OFF },
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static const device card = { .name = "tuned",
                             .memory_bytes = (int64_t)1 << 40,
                             .granule_bytes = 1 << 18,
                             .link = { 3000000000, 3000000000, 6000000000, 10000 },
                             .host_bytes = (int64_t)1 << 40,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 7000000000000,
                                           .memory_bytes_per_s = 288000000000 } };

/* Of each strategy, a question that runs it. */
static int question_of (int strategy) {
  const char *stage = strategy_rows[strategy].stage;
  return strategy == STRATEGY_ATTEMPT_still ? 2 : strcmp (stage, "ATTEMPT") == 0 ? 0 : 1;
}

static bool ask (int which, const tuning *by, search_stats *stats) {
  const question *q = &questions[which];
  arena *a = arena_new (0);
  error err = { 0 };
  zoo_request r = { .name = "alexnet", .batch = 64, .width_divisor = 4, .device = &card };
  trace *t = zoo_trace (&r, a, &err);
  counted_step *step = NEW (a, 1, counted_step, &err);
  ck_assert (t && step && step_count_bytes (t, INT64_MAX / 8, a, step, &err));
  solve_options o = { .device = &card,
                      .budget_bytes = step->gaps.peak_bytes / 100 * q->percent,
                      .host_bytes = card.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = 100000,
                      .recompute = q->recompute,
                      .sections = q->sections,
                      .tuning = by,
                      .stats = stats };
  solution s;
  bool ok = solve (t, &o, a, &s, &err);
  ck_assert_msg (ok || err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
  ck_assert (!ok || check_plan (t, s.plan, a, NULL, &err));
  arena_free (a);
  return ok;
}

CLAIM (each_strategy_can_be_switched_off) {
  search_stats full = { 0 };
  for (int q = 0; q < QUESTIONS; q++)
    ask (q, NULL, &full);
  for (int i = 0; i < STRATEGIES; i++) {
    tuning t = tuning_shipped;
    error err;
    const char *name = strategy_rows[i].name;
    search_stats without = { 0 };
    ck_assert (read (&t, &err, "%s=%lld", name, 0) && t.off[i]);
    ask (question_of (i), &t, &without);
    ck_assert_msg (!without.of[i].tried && !without.of[i].won && !without.of[i].spent,
                   "%s is off and was tried", name);
    ck_assert (read (&t, &err, "%s=%lld", name, 1) && !t.off[i]);
  }
  static const strategy_id seen[] = {
    STRATEGY_ATTEMPT_still, STRATEGY_ATTEMPT_first,  STRATEGY_ATTEMPT_others,
    STRATEGY_ATTEMPT_walk,  STRATEGY_DROPS_prefixes, STRATEGY_DROPS_segments,
    STRATEGY_DROPS_climb,   STRATEGY_SEARCH_cuts,    STRATEGY_SEARCH_program_sets,
    STRATEGY_SEARCH_drops,
  };
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
    ck_assert_msg (full.of[seen[i]].tried + full.of[seen[i]].spent, "%s did nothing",
                   strategy_rows[seen[i]].name);
}

CLAIM (a_number_changes_what_is_tried) {
  search_stats usual = { 0 }, few = { 0 };
  tuning t = tuning_shipped;
  error err = { 0 };
  ck_assert (tuning_read (&t, "walk_end=1", &err));
  ask (0, NULL, &usual);
  ask (0, &t, &few);
  ck_assert_int_lt (few.of[STRATEGY_ATTEMPT_walk].tried, usual.of[STRATEGY_ATTEMPT_walk].tried);
}

int main (void) {
  return suite_run ("tuning", 300);
}
