/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/search/published.h"

#include <assert.h>

#include "solver/attempt/attempt.h"
#include "solver/search/search.h"

/* A policy at its standard options, or with some changed. `drops`: it may recompute. A fault's time
   is no plan's cost, so lru is run without it. Absent are those that were the fastest of all in
   none of 8,000 random questions: tf-grappler, tflms-v1, vdnn-all, and vdnn-conv as published. */
typedef struct attempt {
  policy_id id;
  bool drops;
  int n_set;
  struct {
    policy_option option;
    int64_t value;
  } set[2];
} attempt;

static const attempt attempts[] = {
  { .id = POLICY_autoswap, .n_set = 1, .set = { { POLICY_OPTION_autoswap_score, 0 } } },
  { .id = POLICY_autoswap, .n_set = 1, .set = { { POLICY_OPTION_autoswap_score, 1 } } },
  { .id = POLICY_autoswap, .n_set = 1, .set = { { POLICY_OPTION_autoswap_score, 2 } } },
  { .id = POLICY_autoswap, .n_set = 1, .set = { { POLICY_OPTION_autoswap_score, 3 } } },
  { .id = POLICY_autoswap, .n_set = 1, .set = { { POLICY_OPTION_autoswap_score, 4 } } },
  { .id = POLICY_greedy_largest },
  { .id = POLICY_swapadvisor },
  { .id = POLICY_g10 },
  { .id = POLICY_meng },
  { .id = POLICY_flashneuron },
  { .id = POLICY_tflms_v2 },
  { .id = POLICY_lru, .n_set = 1, .set = { { POLICY_OPTION_lru_fault, 0 } } },
  { .id = POLICY_lru,
    .n_set = 2,
    .set = { { POLICY_OPTION_lru_fault, 0 }, { POLICY_OPTION_lru_ahead, 8 } } },
  { .id = POLICY_capuchin, .n_set = 1, .set = { { POLICY_OPTION_capuchin_recompute, 0 } } },
  { .id = POLICY_vdnn_conv, .n_set = 1, .set = { { POLICY_OPTION_vdnn_conv_sync, 0 } } },
  { .id = POLICY_alvaro_earliest },
  { .id = POLICY_tf_latest },
  { .id = POLICY_torchtune },
  { .id = POLICY_tensile }, /* it swaps first */
  { .id = POLICY_superneurons, .n_set = 1, .set = { { POLICY_OPTION_superneurons_recompute, 0 } } },
  { .id = POLICY_capuchin, .drops = true },
  { .id = POLICY_superneurons, .drops = true },
  { .id = POLICY_checkpoint, .drops = true },
  { .id = POLICY_knapsack, .drops = true },
  { .id = POLICY_dtr, .drops = true },
  { .id = POLICY_dtr, .drops = true, .n_set = 1, .set = { { POLICY_OPTION_dtr_cost, 2 } } },
};

enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

static bool run_attempt (const attempt *at, policy_request r, arena *a, policy_answer *out,
                         error *err) {
  error why = { 0 };
  policy_values values = policy_standard ();
  for (int i = 0; i < at->n_set; i++)
    values.at[at->set[i].option] = at->set[i].value;
  r.values = &values;
  r.only_fits = true;
  if (policy_run (at->id, &r, a, out, &why))
    return true;
  *out = (policy_answer){ 0 }; /* a mistake in a policy is no reason to have no plan of ours */
  return why.code == ERR_internal || error_set (err, why.code, "%s", why.text);
}

static policy_request request_of (const trace *t, const solve_options *o) {
  return (policy_request){ .trace = t,
                           .device = o->device,
                           .budget_bytes = o->budget_bytes,
                           .host_bytes = o->host_bytes,
                           .stop = o->stop,
                           .stop_context = o->stop_context };
}

static bool is_allowed (const attempt *at, const policy_answer *a, const solve_options *o) {
  switch (o->recompute) {
  case RECOMPUTE_OFF:
  case RECOMPUTE_CHEAP:
    return a->drops == 0;
  case RECOMPUTE_AUTO:
    return true;
  case RECOMPUTE_ONLY:
    return at->drops && a->moves == 0;
  }
  return false;
}

/* swaps: those that drop nothing as well. */
static bool fastest (const trace *t, const solve_options *o, bool swaps, int64_t most_ops, arena *a,
                     policy_answer *out, error *err) {
  int32_t best = -1;
  int64_t best_ns = INT64_MAX;
  *out = (policy_answer){ 0 };
  if (t->n_ops > most_ops)
    return true;
  arena *scratch = arena_made (err);
  char digest[TRACE_DIGEST];
  policy_request r = request_of (t, o);
  bool ok = scratch && trace_digest (t, digest, err);
  r.trace_digest = digest;
  for (int32_t i = 0; ok && i < ATTEMPTS && !solve_stops (o); i++) {
    policy_answer answer;
    arena_mark mark = arena_here (scratch);
    if (attempts[i].drops ? o->recompute != RECOMPUTE_AUTO && o->recompute != RECOMPUTE_ONLY
                          : !swaps)
      continue;
    ok = run_attempt (&attempts[i], r, scratch, &answer, err);
    if (ok && answer.fits && is_allowed (&attempts[i], &answer, o) &&
        answer.cost.step_ns < best_ns) {
      best = i;
      best_ns = answer.cost.step_ns;
    }
    arena_back (scratch, mark);
  }
  arena_free (scratch);
  r.trace_digest = NULL;
  return ok && (best < 0 || run_attempt (&attempts[best], r, a, out, err));
}

bool published_fastest (const trace *t, const solve_options *o, arena *a, policy_answer *out,
                        error *err) {
  return fastest (t, o, true, tuned (o->tuning, TUNE_policies_ops), a, out, err);
}

/* If our own is good enough they could only shave off a little, which must not cost much. */
static int64_t most_ops (const solve_request *q, const solution *s) {
  const solve_options *o = q->options;
  bool enough = s->plan->predicted.step_ns <= solve_enough_of (&q->effort, s->bound.lower_bound_ns);
  bool swaps = !o->sections && !o->recompute;
  return tuned (o->tuning, enough && swaps ? TUNE_policies_few_ops : TUNE_policies_ops);
}

bool published_take (const solve_request *q, solution *s, arena *a, error *err) {
  assert (s->plan && s->plan->certificate.bound_by);
  const solve_options *o = q->options;
  const effort *e = &q->effort;
  policy_answer answer;
  const certificate *had = &s->plan->certificate;
  bool swaps = o->recompute != RECOMPUTE_ONLY && s->plain_bound_ns < s->plan->predicted.step_ns;
  int64_t most_ns = e->enough_ns > s->bound.lower_bound_ns ? e->enough_ns : s->bound.lower_bound_ns;
  if (solve_stops (o) || s->plan->predicted.step_ns <= most_ns)
    return true;
  if (!fastest (q->trace, o, swaps, most_ops (q, s), a, &answer, err))
    return false;
  if (!answer.plan || answer.cost.step_ns >= s->plan->predicted.step_ns)
    return true;
  certified c = { .lower_bound_ns = had->lower_bound_ns,
                  .bound_by = had->bound_by,
                  .cover = had->cover,
                  .found_by = answer.label,
                  .proof = had->proof,
                  .limit_met = had->limit_met };
  c.enough_ns = solve_enough_of (e, s->bound.lower_bound_ns);
  solve_write_certificate (answer.plan, &c);
  s->plan = answer.plan;
  return true;
}

bool published_alone (const trace *t, const solve_options *o, arena *a, solution *s, error *err) {
  policy_answer answer;
  *s = (solution){ 0 };
  if (!published_fastest (t, o, a, &answer, err))
    return false;
  if (!answer.plan)
    return true;
  s->plan = answer.plan;
  if (!attempt_bound (t, o, a, &s->bound, err) ||
      !solve_certify (t, o, answer.label, s->plan, a, err))
    return false;
  certificate *c = &s->plan->certificate;
  s->bound.lower_bound_ns = c->lower_bound_ns;
  s->bound.by = c->bound_by;
  s->bound.proof = c->proof;
  return true;
}
