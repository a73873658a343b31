/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/any_cell.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/units.h"
#include "solver/flow/step.h"
#include "solver/options/allowed.h"
#include "tests/bench/bench.h"
#include "tests/bench/solve_cases.h"
#include "trace/simulate/lost.h"
#include "trace/zoo/zoo.h"

enum { MOST_OPS = 3000, TRIES = 200 };
#define SMALLEST_BYTES ((int64_t)500000000)
#define LARGEST_BYTES ((int64_t)60000000000)

static const char *const cards[] = {
  "a100-40", "a100-80", "gh200", "h100-pcie",      "h100-sxm",    "h200",        "m40",
  "p100",    "rtx4090", "v100",  "titanx-maxwell", "v100-nvlink", "p100-nvlink", "titanx-pascal"
};
enum { CARDS = sizeof cards / sizeof *cards };

static const struct {
  compute_dtype type;
  const char *name;
} types[] = { { DTYPE_FP32, "fp32" }, { DTYPE_TF32, "tf32" }, { DTYPE_BF16, "bf16" } };
static const struct {
  zoo_optimizer optimizer;
  const char *name;
} optimizers[] = { { ZOO_SGD, "sgd" }, { ZOO_MOMENTUM, "momentum" }, { ZOO_ADAM, "adam" } };

static bool peak_of (const trace *t, arena *a, int64_t *bytes, error *err) {
  arena_mark mark = arena_here (a);
  counted_step *step = NEW (a, 1, counted_step, err);
  bool ok = step && step_count_bytes (t, INT64_MAX / 8, a, step, err);
  *bytes = ok ? step->gaps.peak_bytes : 0;
  arena_back (a, mark);
  return ok;
}

/* The batch that makes about so many bytes; *fits is false where none does. */
static bool grow (zoo_request *r, int64_t want, arena *a, any_cell *out, bool *fits, error *err) {
  *fits = false;
  for (r->batch = 1; r->batch <= 4096; r->batch *= 2) {
    arena_mark mark = arena_here (a);
    error why = { 0 }; /* the device may know no rate for the type */
    trace *t = zoo_trace (r, a, &why);
    int64_t peak;
    if (!t)
      return true;
    if (!peak_of (t, a, &peak, err))
      return false;
    if (t->n_ops > MOST_OPS || peak > LARGEST_BYTES)
      return true;
    if (peak >= want && peak >= SMALLEST_BYTES) {
      out->trace = t;
      out->peak_bytes = peak;
      *fits = true;
      return true;
    }
    arena_back (a, mark);
  }
  return true;
}

static bool draw_once (random_state *s, const char *devices, arena *a, any_cell *out, bool *fits,
                       error *err) {
  char path[4096];
  int n;
  const zoo_network *networks = zoo_list (&n);
  const zoo_network *network = &networks[random_between (s, 0, n - 1)];
  const char *card = cards[random_between (s, 0, CARDS - 1)];
  int type = (int)random_between (s, 0, 2), optimizer = (int)random_between (s, 0, 2);
  int64_t want = SMALLEST_BYTES << random_between (s, 0, 6);
  *out = (any_cell){ .percent = (int)random_between (s, 35, 90) };
  out->drops = random_chance (s, 500000);
  snprintf (path, sizeof path, "%s/%s.json", devices, card);
  if (!device_load (path, NULL, a, &out->device, err))
    return false;
  zoo_request r = { .name = network->name,
                    .dtype = types[type].type,
                    .optimizer = optimizers[optimizer].optimizer,
                    .device = &out->device };
  if (!grow (&r, want, a, out, fits, err) || !*fits)
    return !err->code;
  snprintf (out->name, sizeof out->name, "%s batch %lld %s %s %s", network->name,
            (long long)r.batch, types[type].name, optimizers[optimizer].name, card);
  out->budget_bytes = out->peak_bytes / 100 * out->percent;
  int64_t need = out->budget_bytes + out->device.reserved_bytes;
  out->device.memory_bytes = out->device.memory_bytes > need ? out->device.memory_bytes : need;
  return true;
}

/* ---- fine-tuning ---- */

static bool draw_tuning (random_state *s, const char *devices, arena *a, any_cell *out, bool *fits,
                         error *err) {
  static const char *const networks[] = { "bert-base",  "bert-large", "gpt2",     "gpt2-medium",
                                          "gpt2-large", "gpt2-xl",    "llama-1b", "llama-7b",
                                          "vit-b",      "vit-l" };
  static const char *const modern[] = { "rtx4090", "rtx5090",  "l40s", "a100-40",
                                        "a100-80", "h100-sxm", "h200", "b200" };
  enum { NETWORKS = sizeof networks / sizeof *networks, MODERN = sizeof modern / sizeof *modern };
  char path[4096];
  const char *network = networks[random_between (s, 0, NETWORKS - 1)];
  const char *card = modern[random_between (s, 0, MODERN - 1)];
  int64_t batch = random_between (s, 1, 8);
  *out = (any_cell){ .percent = (int)random_between (s, 30, 80), .drops = true };
  *fits = false;
  snprintf (path, sizeof path, "%s/%s.json", devices, card);
  if (!device_load (path, NULL, a, &out->device, err))
    return false;
  zoo_request r = { .name = network,
                    .batch = batch,
                    .dtype = DTYPE_BF16,
                    .optimizer = ZOO_ADAM,
                    .device = &out->device };
  out->trace = zoo_trace (&r, a, err);
  if (!out->trace || !peak_of (out->trace, a, &out->peak_bytes, err))
    return false;
  snprintf (out->name, sizeof out->name, "%s batch %lld bf16 adam %s", network, (long long)batch,
            card);
  out->budget_bytes = out->peak_bytes / 100 * out->percent;
  *fits = out->budget_bytes <= out->device.memory_bytes - out->device.reserved_bytes;
  return true;
}

bool any_draw_tuning (uint64_t seed, int index, const char *devices, arena *a, any_cell *out,
                      error *err) {
  random_state s = random_seed (random_mix (random_mix (1, (int64_t)seed), index));
  bool fits = false;
  for (int i = 0; i < TRIES && !fits; i++)
    if (!draw_tuning (&s, devices, a, out, &fits, err))
      return false;
  return fits || error_set (err, ERR_internal, "no cell was found for index %d", index);
}

bool any_draw (uint64_t seed, int index, const char *devices, arena *a, any_cell *out, error *err) {
  random_state s = random_seed (random_mix (random_mix (0, (int64_t)seed), index));
  bool fits = false;
  for (int i = 0; i < TRIES && !fits; i++)
    if (!draw_once (&s, devices, a, out, &fits, err))
      return false;
  return fits || error_set (err, ERR_internal, "no cell was found for index %d", index);
}

int any_fixed_count (void) {
  return SOLVE_NETWORKS * SOLVE_LINKS * SOLVE_PERCENTS;
}

bool any_fixed (int index, arena *a, any_cell *out, error *err) {
  const solve_network *n = &solve_networks[index / (SOLVE_LINKS * SOLVE_PERCENTS)];
  int64_t link = solve_links[index / SOLVE_PERCENTS % SOLVE_LINKS];
  *out =
      (any_cell){ .device = solve_card (link), .percent = solve_percents[index % SOLVE_PERCENTS] };
  out->trace = solve_trace (n, &out->device, a, err);
  if (!out->trace || !peak_of (out->trace, a, &out->peak_bytes, err))
    return false;
  out->budget_bytes = out->peak_bytes / 100 * out->percent;
  snprintf (out->name, sizeof out->name, "%s %lld GB/s", n->name, (long long)link);
  return true;
}

/* What places lose at the fullest moment. */
static bool lost_of (const trace *t, const plan *p, arena *a, any_answer *out, error *err) {
  int64_t bytes;
  if (!lost_bytes (t, p, a, &bytes, err))
    return false;
  out->lost = 100 * (double)bytes / (double)p->predicted.peak_bytes;
  out->in_arena = p->placement.kind == PLACEMENT_ARENA;
  return true;
}

bool any_solve (const any_cell *c, int64_t limit_ticks, const tuning *by, any_answer *out,
                error *err) {
  *out = (any_answer){ 0 };
  error why = { 0 };
  solution s;
  solve_options o = { .device = &c->device,
                      .same_places = c->same_places,
                      .placement = c->in_arena ? PLACES_ARENA : PLACES_AUTO,
                      .budget_bytes = c->budget_bytes,
                      .host_bytes = c->device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = limit_ticks,
                      .level = c->level,
                      .seed = 1,
                      .stats = &out->stats,
                      .tuning = by };
  allowed may = c->drops ? allowed_by (c->trace) : (allowed)SWAPS_ALONE;
  allowed_into (&may, &o);
  arena *a = arena_made (err);
  if (!a)
    return false;
  double from = bench_cpu_s ();
  out->fits = solve (c->trace, &o, a, &s, &why);
  out->seconds = bench_cpu_s () - from;
  if (out->fits && !lost_of (c->trace, s.plan, a, out, err))
    return false;
  if (out->fits) {
    out->step_ns = s.plan->predicted.step_ns;
    out->bound_ns = s.bound.lower_bound_ns;
    out->ticks = s.ticks;
    out->gap = 100 * s.plan->certificate.gap;
    snprintf (out->why, sizeof out->why, "found by %s, bound by %s, %s",
              s.plan->certificate.found_by, s.plan->certificate.bound_by,
              s.plan->certificate.limit_met ? s.plan->certificate.limit_met : "near enough");
  } else {
    snprintf (out->why, sizeof out->why, "%.120s", why.text);
  }
  arena_free (a);
  return out->fits || why.code == ERR_infeasible || why.code == ERR_limit ||
         error_set (err, why.code, "%s: %s", c->name, why.text);
}

static int by_value (const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double any_percentile (double *values, int count, int percent) {
  if (count == 0)
    return 0;
  qsort (values, (size_t)count, sizeof *values, by_value);
  return values[(count - 1) * percent / 100];
}
