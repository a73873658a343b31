/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces that others recorded on GPUs: planned by a published policy at four budgets, and replayed
   on the virtual clock without bytes, predicted equals seen.  FERRY_REAL_TRACES says where they
   lie. */
#include <stdio.h>

#include "executor/replay/replay.h"
#include "solver/policy/policy.h"
#include "tests/emu_case.h"
#include "tests/suite.h"
#include "trace/import/import.h"

enum { BUDGETS = 4 };

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)1 << 42,
                             .granule_bytes = 2 << 20,
                             .link = { 12000000000, 12000000000, 22000000000, 10000 },
                             .host_bytes = (int64_t)1 << 42,
                             .section_ns = 10000,
                             .share_ppm = 1000000 };

static trace *import (const char *const *names, int n, arena *a) {
  char paths[2][600];
  const char *at[2] = { paths[0], paths[1] };
  error err = { 0 };
  import_report report;
  trace *t;
  for (int i = 0; i < n; i++)
    snprintf (paths[i], sizeof paths[i], "%s/%s", getenv ("FERRY_REAL_TRACES"), names[i]);
  if (!import_files (at, n, NULL, a, &t, &report, &err))
    ck_abort_msg ("%s: %s", names[0], err.text);
  ck_assert_msg (trace_is_plannable (t), "%s is not plannable", names[0]);
  return t;
}

static int64_t peak_of (const trace *t, arena *a) {
  policy_view v;
  error err = { 0 };
  if (!policy_view_build (t, &card, 0, 0, a, &v, &err))
    ck_abort_msg ("%s: %s", t->name, err.text);
  return v.res[view_peak (&v, v.res)];
}

/* Moves of the plan; -1: the policy found none in so little. */
static int64_t replay_at (const trace *t, int64_t budget, arena *a) {
  error err = { 0 };
  policy_values values = policy_standard ();
  policy_request q = { .trace = t,
                       .device = &card,
                       .budget_bytes = budget,
                       .host_bytes = card.host_bytes,
                       .values = &values };
  policy_answer answer;
  if (!policy_run (policy_named ("capuchin"), &q, a, &answer, &err))
    ck_abort_msg ("%s: %s", t->name, err.text);
  if (!answer.fits || answer.plan == NULL)
    return -1;
  replay_options o = {
    .library = emu_case_path (), .emulated = true, .clock = EMU_VIRTUAL, .bytes = EMU_NONE
  };
  replay_result r;
  if (!replay_run (t, answer.plan, &o, a, &r, &err))
    ck_abort_msg ("%s: %s", t->name, err.text);
  ck_assert_msg (r.predicted.step_ns == r.seen.step_ns && r.largest_ns == 0 &&
                     r.largest_copy_ns == 0 && r.predicted.settled == r.seen.settled,
                 "%s in %lld: predicted %lld, seen %lld, starts differ by %lld", t->name,
                 (long long)budget, (long long)r.predicted.step_ns, (long long)r.seen.step_ns,
                 (long long)r.largest_ns);
  printf ("%s in %lld bytes: %lld ns predicted and seen, %d moves\n", t->name, (long long)budget,
          (long long)r.seen.step_ns, answer.plan->n_moves);
  return answer.plan->n_moves;
}

CLAIM_EACH (a_recorded_step_takes_what_was_predicted, 0, 5) {
  static const char *const files[][2] = { { "kineto/resnet50_v100_b32_step6.kineto.json.gz" },
                                          { "kineto/hta_ddp2_v100_step3.kineto.json.gz" },
                                          { "et_kineto/dlrm_8gpu_rank0.et.json.gz",
                                            "et_kineto/dlrm_8gpu_rank0.kineto.json.gz" },
                                          { "g10/bert_base_b256.json" },
                                          { "g10/resnet152_b256.json" } };
  static const int64_t percents[BUDGETS] = { 120, 90, 75, 60 };
  const char *const *names = files[_i];
  arena *a = arena_new (0);
  trace *t = import (names, names[1] != NULL ? 2 : 1, a);
  int64_t peak = peak_of (t, a), plans = 0;
  for (int i = 0; i < BUDGETS; i++)
    plans += replay_at (t, peak / 100 * percents[i], a) >= 0;
  ck_assert_int_gt (plans, 0);
  arena_free (a);
}

int main (void) {
  return suite_run_real ("replay real", 60);
}
