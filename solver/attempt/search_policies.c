/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/search_policies.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"

/* A policy at its standard options, or with some changed. `drops`: it may recompute. A fault's time
   is no plan's cost, so lru is run without it. */
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
  { .id = POLICY_tf_grappler },
  { .id = POLICY_vdnn_conv },
  { .id = POLICY_vdnn_conv, .n_set = 1, .set = { { POLICY_OPTION_vdnn_conv_sync, 0 } } },
  { .id = POLICY_vdnn_all },
  { .id = POLICY_vdnn_all, .n_set = 1, .set = { { POLICY_OPTION_vdnn_all_sync, 0 } } },
  { .id = POLICY_alvaro_earliest },
  { .id = POLICY_tf_latest },
  { .id = POLICY_tflms_v1 },
  { .id = POLICY_torchtune },
  { .id = POLICY_tensile }, /* it swaps first */
  { .id = POLICY_superneurons, .n_set = 1, .set = { { POLICY_OPTION_superneurons_recompute, 0 } } },
  { .id = POLICY_capuchin, .drops = true },
  { .id = POLICY_superneurons, .drops = true },
  { .id = POLICY_checkpoint, .drops = true },
  { .id = POLICY_knapsack, .drops = true },
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

/* ---- their moves as candidates ---- */

/* Policies move tensors, so theirs is the layout with the smallest groups. */
static const layout *layout_for (const search *s) {
  return &s->layouts[s->n_layouts - 1];
}

/* The unit's gap in which the move begins; NO_GAP where it has none that ends with or behind it. */
static int32_t gap_of (const gaps *g, const policy_move *m) {
  int32_t group = g->units->group_of[m->tensor];
  int32_t unit = group < 0 ? m->tensor : g->units->trace->n_tensors + group;
  bool wraps = m->in_before <= m->out_after;
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++) {
    const gap *at = &g->at[i];
    bool round = at->before <= at->after;
    if (at->unused)
      continue;
    if (round ? (wraps ? at->after <= m->out_after && m->in_before <= at->before
                       : at->after <= m->out_after || m->in_before <= at->before)
              : !wraps && at->after <= m->out_after && m->in_before <= at->before)
      return i;
  }
  return NO_GAP;
}

static bool keep_trial (search *s, const char *name, error *err) {
  s->trial.found_by = name;
  return search_try (s, err);
}

/* The moves themselves, with their triggers. */
static int64_t take_moves (search *s, const policy_choice *c) {
  const layout *l = layout_for (s);
  const gaps *g = &l->step.gaps;
  int64_t taken = 0;
  search_clear (&s->trial, l);
  for (int64_t i = 0; i < c->n_moves; i++) {
    const policy_move *m = &c->moves[i];
    int32_t at = gap_of (g, m);
    if (at == NO_GAP)
      continue;
    taken += s->trial.parts[at] == 0;
    s->trial.parts[at] = l->of[g->at[at].unit];
    int32_t before = g->at[at].before, wait = m->in_not_before;
    s->trial.not_before[at] = before != m->in_before ? NO_WAIT : wait > before ? before : wait;
  }
  return taken;
}

/* The same gaps, and what else the budget needs, with our own timings. */
static bool try_rounded (search *s, const char *name, error *err) {
  enum { EARLIES = TUNE_policies_early_ppm_last - TUNE_policies_early_ppm + 1 };
  const tuning *by = s->options->tuning;
  const layout *l = layout_for (s);
  const gaps *g = &l->step.gaps;
  arena_mark mark = arena_here (s->scratch);
  error why = { 0 };
  rounding r;
  double *share = NEW (s->scratch, g->count, double, err);
  if (!share)
    return false;
  for (int32_t i = 0; i < g->count; i++)
    share[i] = s->trial.parts[i] ? 1 : 0;
  round_request ask = { .gaps = g,
                        .of = l->of,
                        .device = s->options->device,
                        .start = ROUND_UP,
                        .shares = share,
                        .room_bytes = units_scale (g->room_bytes,
                                                   tuned (by, TUNE_policies_room_ppm), 1000000),
                        .tuning = by };
  bool fits = round_gaps (&ask, s->scratch, &r, &why);
  if (fits)
    memcpy (s->trial.parts, r.parts, (size_t)g->count * sizeof *r.parts);
  arena_back (s->scratch, mark);
  if (!fits)
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  for (int32_t i = 0; i < g->count; i++)
    s->trial.not_before[i] = NO_WAIT;
  bool ok = true;
  for (int j = 0; ok && j < EARLIES && !search_has_started (s); j++) {
    s->trial.early_ppm = tuned (by, TUNE_policies_early_ppm + (tuning_id)j);
    ok = keep_trial (s, name, err);
  }
  return ok;
}

static bool try_choice (search *s, const policy_choice *c, const char *name, error *err) {
  if (c->n_drops > 0 || take_moves (s, c) == 0)
    return true;
  s->trial.early_ppm = -1;
  return keep_trial (s, name, err) && (search_has_started (s) || try_rounded (s, name, err));
}

/* ---- all of them ---- */

static policy_request request_of (const trace *t, const solve_options *o) {
  return (policy_request){
    .trace = t, .device = o->device, .budget_bytes = o->budget_bytes, .host_bytes = o->host_bytes
  };
}

/* A decision, a schedule and a simulation, counted like a candidate's. */
static int64_t ticks_of (const search *s, const policy_answer *a) {
  return 16 * ((int64_t)s->layouts->step.gaps.n_ops + 2 * a->moves);
}

static bool is_rewritten (const search *s) {
  return s->variant->n_sections > 0 || s->variant->n_recomputes > 0;
}

/* Every policy that only swaps decides on the search's rewritten trace; its moves are tried as they
   are and rounded to what the budget needs, and the best trial is kept. Nothing is tried where the
   search is over already, or where the trace is too large for rules that look at all pairs. */
bool search_policies (search *s, error *err) {
  assert (s->policies.which < 0);
  const trace *t = s->rewritten->trace;
  const tuning *by = s->options->tuning;
  policies_found *found = &s->policies;
  /* if our own is good enough they could only shave off a little, which must not cost much */
  int64_t most =
      tuned (by, s->best.step_ns <= s->enough_ns ? TUNE_policies_few_ops : TUNE_policies_ops);
  if (t->n_ops > most || s->best.step_ns <= s->lower_bound_ns)
    return true;
  arena *a = arena_made (err);
  bool ok = a != NULL;
  char digest[TRACE_DIGEST];
  policy_request r = request_of (t, s->options);
  r.trace_digest = digest;
  ok = ok && trace_digest (t, digest, err);
  for (int32_t i = 0; ok && i < ATTEMPTS && !s->stopped; i++) {
    policy_answer answer;
    arena_mark mark = arena_here (a);
    if (attempts[i].drops)
      continue;
    /* that no policy is faster is promised of the trace as it is; on others they are starts */
    if (is_rewritten (s) && (s->ticks >= s->limit_ticks || search_is_over (s)))
      break;
    ok = run_attempt (&attempts[i], r, a, &answer, err);
    if (ok) {
      found->tried++;
      s->ticks += ticks_of (s, &answer);
      if (answer.fits && !answer.drops && answer.cost.step_ns < found->step_ns) {
        found->which = i;
        found->step_ns = answer.cost.step_ns;
      }
      if (!search_has_started (s))
        ok = try_choice (s, &answer.choice, policy_at (attempts[i].id)->name, err);
    }
    arena_back (a, mark);
  }
  arena_free (a);
  return ok;
}

bool search_policies_plan (search *s, const policies_found *found, plan **out,
                           const char **found_by, error *err) {
  policy_answer answer;
  policy_request r = request_of (s->rewritten->trace, s->options);
  if (found->which < 0 || found->step_ns >= s->best.step_ns)
    return true;
  if (!run_attempt (&attempts[found->which], r, s->arena, &answer, err))
    return false;
  plan *p = answer.plan;
  if (!p)
    return error_set (err, ERR_internal, "a policy's plan cannot be made again");
  char *digest = arena_string (s->arena, s->digest, err);
  if (!digest)
    return false;
  p->trace_digest = digest;
  p->sections = s->variant->sections;
  p->n_sections = s->variant->n_sections;
  p->recomputes = s->variant->recomputes;
  p->n_recomputes = s->variant->n_recomputes;
  p->predicted.baseline_ns = trace_total_ns (s->trace); /* it saw the rewritten one alone */
  *out = p;
  *found_by = answer.label;
  return true;
}

/* ---- on the trace as it is ---- */

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
static bool fastest (const trace *t, const solve_options *o, bool swaps, arena *a,
                     policy_answer *out, error *err) {
  int32_t best = -1;
  int64_t best_ns = INT64_MAX;
  *out = (policy_answer){ 0 };
  if (t->n_ops > tuned (o->tuning, TUNE_policies_ops))
    return true;
  arena *scratch = arena_made (err);
  char digest[TRACE_DIGEST];
  policy_request r = request_of (t, o);
  bool ok = scratch && trace_digest (t, digest, err);
  r.trace_digest = digest;
  for (int32_t i = 0; ok && i < ATTEMPTS; i++) {
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

bool policies_fastest (const trace *t, const solve_options *o, arena *a, policy_answer *out,
                       error *err) {
  return fastest (t, o, true, a, out, err);
}

bool policies_take (const trace *t, const solve_options *o, int64_t gap_ppm, arena *a, solution *s,
                    error *err) {
  assert (s->plan && s->plan->certificate.bound_by);
  policy_answer answer;
  const certificate *had = &s->plan->certificate;
  bool swaps = o->recompute != RECOMPUTE_ONLY && s->plain_bound_ns < s->plan->predicted.step_ns;
  bool over = o->stop && o->stop (o->stop_context);
  if (over || s->plan->predicted.step_ns <= s->bound.lower_bound_ns)
    return true;
  if (!fastest (t, o, swaps, a, &answer, err))
    return false;
  if (!answer.plan || answer.cost.step_ns >= s->plan->predicted.step_ns)
    return true;
  certified c = { .lower_bound_ns = had->lower_bound_ns,
                  .bound_by = had->bound_by,
                  .covers = had->covers,
                  .found_by = answer.label,
                  .proof = had->proof,
                  .limit_met = had->limit_met };
  c.enough_ns = solve_enough_ns (gap_ppm, s->bound.lower_bound_ns);
  solve_write_certificate (answer.plan, &c);
  s->plan = answer.plan;
  return true;
}
