/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/policy_case.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/solve.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

/* ---- what is planned ---- */

/* Anything that a trace may hold. */
static trace *any_trace (uint64_t seed, policy_case *x, error *err) {
  case_options o = { .seed = seed,
                     .features = CASE_EVERYTHING,
                     .most_ops = (int32_t)(4 + seed % 37),
                     .most_tensors = (int32_t)(3 + seed % 19) };
  if (!random_case_make (&o, x->arena, &x->made, err))
    return NULL;
  x->device = x->made.plan->device;
  /* Half of the ops are a forward pass, so that there is something to decide. */
  trace *t = x->made.trace;
  for (int32_t k = 0; k < t->n_ops; k++)
    t->ops[k].phase = 2 * k < t->n_ops ? OP_FORWARD : OP_BACKWARD;
  return t;
}

enum { GRANULE = 4096, MOST_LAYERS = 10 };

static int64_t some_bytes (random_state *r) {
  return random_chance (r, 200000) ? random_between (r, 1, GRANULE)
                                   : random_between (r, 1, 40) * GRANULE;
}

/* A network of layers, each of which reads the one before it and perhaps another, back through all
   of them, and an update: what policies were made for. */
static trace *network (uint64_t seed, policy_case *x, error *err) {
  static const char *const names[] = { "conv", "relu", "fc", "bn" };
  random_state random = random_seed (seed), *r = &random;
  trace_builder *b = build_new (x->arena, "network", 1, err);
  int32_t n = (int32_t)random_between (r, 3, MOST_LAYERS);
  int32_t out[MOST_LAYERS + 1], weight[MOST_LAYERS], skip[MOST_LAYERS], grad[MOST_LAYERS];
  char name[32];
  if (!b)
    return NULL;
  out[0] = build_tensor (b, "input", some_bytes (r), TENSOR_INPUT);
  for (int32_t i = 0; i < n; i++) {
    weight[i] =
        random_chance (r, 600000) ? build_tensor (b, "", some_bytes (r), TENSOR_PARAMETER) : -1;
    skip[i] = i > 1 && random_chance (r, 250000) ? out[random_between (r, 0, i - 1)] : -1;
    out[i + 1] = build_tensor (b, "", some_bytes (r), TENSOR_ACTIVATION);
    snprintf (name, sizeof name, "%s%d", names[random_between (r, 0, 3)], i);
    build_op (b, name, OP_FORWARD, random_between (r, 1, 60) * 1000);
    build_read (b, out[i]);
    if (weight[i] >= 0)
      build_read (b, weight[i]);
    if (skip[i] >= 0)
      build_read (b, skip[i]);
    build_write (b, out[i + 1]);
  }
  int32_t above = build_tensor (b, "", some_bytes (r), TENSOR_GRADIENT);
  build_op (b, "loss", OP_FORWARD, 1000);
  build_read (b, out[n]);
  build_write (b, above);
  for (int32_t i = n - 1; i >= 0; i--) {
    int32_t below = build_tensor (b, "", some_bytes (r), TENSOR_GRADIENT);
    snprintf (name, sizeof name, "back%d", i);
    build_op (b, name, OP_BACKWARD, random_between (r, 1, 90) * 1000);
    build_read (b, above);
    build_read (b, out[random_chance (r, 500000) ? i : i + 1]);
    if (skip[i] >= 0)
      build_read (b, skip[i]);
    build_write (b, below);
    if (weight[i] >= 0) {
      build_read (b, weight[i]);
      build_write (b, grad[i] = build_tensor (b, "", some_bytes (r), TENSOR_GRADIENT));
    }
    above = below;
  }
  for (int32_t i = 0; i < n; i++) {
    if (weight[i] < 0)
      continue;
    build_op (b, "update", OP_UPDATE, random_between (r, 1, 10) * 1000);
    build_read (b, grad[i]);
    build_read (b, weight[i]);
    build_write (b, weight[i]);
  }
  int64_t rate = random_between (r, 1, 40) * 100000000;
  x->device = (device){ .name = "some",
                        .granule_bytes = GRANULE,
                        .link = { rate, rate, 2 * rate, random_between (r, 0, 5000) },
                        .share_ppm = 1000000 };
  return build_finish (b, err);
}

bool policy_case_make (uint64_t seed, policy_case *out, error *err) {
  *out = (policy_case){ .arena = arena_new (0) };
  if (!out->arena)
    return error_set (err, ERR_memory, "out of memory");
  trace *t = out->trace = seed % 2 ? network (seed, out, err) : any_trace (seed, out, err);
  policy_view v;
  out->device.memory_bytes = out->device.host_bytes = (int64_t)1 << 50;
  if (!t || !policy_view_build (t, &out->device, 0, 0, out->arena, &v, err))
    return false;
  out->peak_bytes = v.res[view_peak (&v, v.res)];
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t set = view_working_set (&v, k, true) + v.pool_bytes;
    out->floor_bytes = set > out->floor_bytes ? set : out->floor_bytes;
  }
  return true;
}

int64_t policy_case_budget (const policy_case *x, int percent) {
  return x->floor_bytes + (x->peak_bytes - x->floor_bytes) * percent / 100;
}

/* ---- ours ---- */

typedef struct ours {
  bool fits;
  int64_t step_ns, bound_ns;
  const char *text; /* of the plan */
} ours;

static bool solve_ours (policy_case *x, int64_t budget_bytes, int64_t ticks, recompute_mode mode,
                        ours *out, error *err) {
  solution s;
  error why = { 0 };
  solve_options o = { .device = &x->device,
                      .budget_bytes = budget_bytes,
                      .host_bytes = x->device.host_bytes,
                      .limit_ticks = ticks,
                      .seed = 1,
                      .recompute = mode };
  *out = (ours){ .step_ns = INT64_MAX, .text = "" };
  if (!solve (x->trace, &o, x->arena, &s, &why))
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  bytes text = { 0 };
  *out = (ours){ .fits = true,
                 .step_ns = s.plan->predicted.step_ns,
                 .bound_ns = s.bound.lower_bound_ns };
  if (check_plan (x->trace, s.plan, x->arena, NULL, err) && plan_text (s.plan, false, &text, err))
    out->text = arena_string_n (x->arena, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return out->text;
}

/* ---- theirs ---- */

static const char *judge_answer (policy_case *x, int64_t budget_bytes, const policy_answer *a,
                                 error *err) {
  predicted cost;
  error why = { 0 };
  if (!a->fits)
    return a->plan || !a->note || a->reached_bytes <= budget_bytes
               ? arena_format (x->arena, err, "%s does not say what it reaches", a->label)
               : NULL;
  if (!check_plan (x->trace, a->plan, x->arena, NULL, &why) ||
      !simulate_plan (x->trace, a->plan, x->arena, &cost, &why))
    return arena_format (x->arena, err, "%s: %s", a->label, why.text);
  if (cost.step_ns != a->cost.step_ns || cost.peak_bytes > budget_bytes)
    return arena_format (x->arena, err, "%s costs something else", a->label);
  return NULL;
}

static bool plan_bytes (policy_case *x, const policy_answer *a, const char **out, error *err) {
  bytes text = { 0 };
  *out = "";
  if (a->fits && plan_text (a->plan, false, &text, err))
    *out = arena_string_n (x->arena, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return *out && !err->code;
}

static bool judge_policy (policy_case *x, policy_id id, int64_t budget_bytes, const ours *swaps,
                          const ours *all, policy_tally *tally, const char **why, error *err) {
  policy_answer a[2];
  const char *text[2];
  policy_request r = { .trace = x->trace,
                       .device = &x->device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = x->device.host_bytes };
  for (int i = 0; i < 2; i++)
    if (!policy_run (id, &r, x->arena, &a[i], err) || !plan_bytes (x, &a[i], &text[i], err))
      return false;
  tally->answers++;
  tally->fits += a[0].fits;
  tally->dropped += a[0].fits && a[0].drops > 0;
  *why = judge_answer (x, budget_bytes, &a[0], err);
  if (!*why && strcmp (text[0], text[1]) != 0)
    *why = arena_format (x->arena, err, "%s says something else the second time", a[0].label);
  if (*why || !a[0].fits)
    return !err->code;
  const ours *beside = a[0].drops ? all : swaps;
  if (beside->step_ns > a[0].cost.step_ns)
    *why = arena_format (x->arena, err, "%s is faster: %lld ns, ours %lld ns", a[0].label,
                         (long long)a[0].cost.step_ns, (long long)beside->step_ns);
  if (a[0].cost.step_ns < beside->bound_ns)
    *why = arena_format (x->arena, err, "%s is below the bound", a[0].label);
  return !err->code;
}

bool policy_case_judge (policy_case *x, int percent, int64_t ticks, policy_tally *tally,
                        const char **why, error *err) {
  static const recompute_mode modes[] = { RECOMPUTE_OFF, RECOMPUTE_AUTO };
  int64_t budget = policy_case_budget (x, percent);
  ours mine[2], again;
  *why = NULL;
  for (int i = 0; i < 2 && !*why; i++) {
    if (!solve_ours (x, budget, ticks, modes[i], &mine[i], err) ||
        !solve_ours (x, budget, ticks, modes[i], &again, err))
      return false;
    if (strcmp (mine[i].text, again.text) != 0)
      *why = "ours is another plan the second time";
    else if (mine[i].fits && mine[i].step_ns < mine[i].bound_ns)
      *why = "ours is below its bound";
    tally->ours += mine[i].fits;
  }
  if (!*why && mine[1].step_ns > mine[0].step_ns)
    *why = "with recomputing allowed ours is slower";
  for (int i = 0; i < POLICIES && !*why; i++)
    if (!judge_policy (x, (policy_id)i, budget, &mine[0], &mine[1], tally, why, err))
      return false;
  return true;
}
