/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ask.h"

#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"
#include "solver/placed.h"
#include "solver/recompute/recompute.h"
#include "solver/refusal.h"
#include "solver/sections/sections.h"
#include "solver/solve.h"

enum { QUICK_TICKS = 20000, LOOSE_PPM = 1000000000, TRIES = 8, HALVINGS = 3 };

static int64_t free_bytes (const device *d) {
  return d->memory_bytes - d->reserved_bytes;
}

static int64_t reserve_at (const ask *q, int64_t bytes) {
  return q->reserve_ppm < 0 ? q->reserve_bytes : reserve_of (bytes, q->reserve_ppm);
}

int64_t ask_with_reserve (const ask *q, int64_t bytes) {
  return q->reserve_ppm < 0 ? bytes + q->reserve_bytes : reserve_onto (bytes, q->reserve_ppm);
}

ask ask_default (const trace *t, const device *d) {
  ask q = { .device = *d,
            .asked_bytes = d->memory_bytes - d->reserved_bytes,
            .reserve_ppm = reserve_ppm (t),
            .options = { .host_bytes = d->host_bytes, .seed = 1, .placement = PLACES_AUTO } };
  allowed all = allowed_by (t);
  allowed_into (&all, &q.options);
  q.reserve_bytes = reserve_at (&q, q.asked_bytes);
  q.options.budget_bytes = q.asked_bytes - q.reserve_bytes;
  return q;
}

bool ask_room (const device *d, int64_t budget_bytes, error *err) {
  char want[UNITS_TEXT], have[UNITS_TEXT];
  int64_t free = free_bytes (d);
  if (budget_bytes < 0 || budget_bytes > free)
    return strcmp (units_bytes (want, budget_bytes), units_bytes (have, free)) != 0
               ? error_set (err, ERR_usage, "the budget is %s, but %s leaves %s free", want,
                            d->name, have)
               : error_set (err, ERR_usage, "the budget is %lldB, but %s leaves %lldB free",
                            (long long)budget_bytes, d->name, (long long)free);
  return true;
}

bool ask_budget (ask *q, int64_t asked_bytes, error *err) {
  char want[UNITS_TEXT], have[UNITS_TEXT];
  if (!ask_room (&q->device, asked_bytes, err))
    return false;
  q->asked_bytes = asked_bytes;
  q->reserve_bytes = reserve_at (q, asked_bytes);
  if (q->reserve_bytes < 0 || q->reserve_bytes > asked_bytes)
    return error_set (err, ERR_usage, "the reserve of %s is more than the budget of %s",
                      units_bytes (want, q->reserve_bytes), units_bytes (have, asked_bytes));
  if (asked_bytes > 0 && q->reserve_bytes == asked_bytes)
    return error_set (err, ERR_usage, "the reserve of %s leaves nothing of the budget",
                      units_bytes (want, q->reserve_bytes));
  q->options.budget_bytes = asked_bytes - q->reserve_bytes;
  return true;
}

bool ask_host (const device *d, int64_t host_bytes, error *err) {
  char want[UNITS_TEXT], have[UNITS_TEXT];
  if (host_bytes < 0 || host_bytes > d->host_bytes)
    return error_set (err, ERR_usage, "%s of the host are asked for, but the host of %s has %s",
                      units_bytes (want, host_bytes), d->name, units_bytes (have, d->host_bytes));
  return true;
}

static bool stays_anywhere (const solve_options *o) {
  return !o->same_places && o->placement != PLACES_ARENA;
}

/* ---- the smallest budget ---- */

static bool is_stopped (const ask *q) {
  return q->options.stop && q->options.stop (q->options.stop_context);
}

/* A few ticks, and any plan of whole ops will do. */
static solve_options quick_options (const ask *q) {
  solve_options how = q->options;
  how.device = &q->device;
  how.limit_ticks = QUICK_TICKS;
  how.gap_ppm = LOOSE_PPM;
  how.keep_proof = false;
  allowed_into (&(allowed)SWAPS_ALONE, &how);
  if (q->options.recompute == RECOMPUTE_ONLY)
    how.recompute = RECOMPUTE_ONLY;
  return how;
}

/* True if any plan of whole ops is found at all. */
static bool fits_in (const trace *t, const ask *q, int64_t bytes, bool *fits, error *err) {
  solution s;
  error why = { 0 };
  solve_options how = quick_options (q);
  how.budget_bytes = bytes;
  how.program = NULL;
  how.log = NULL;
  arena *a = arena_new (0);
  if (!a)
    return error_memory (err);
  *fits = solve (t, &how, a, &s, &why);
  arena_free (a);
  if (*fits || why.code == ERR_infeasible || why.code == ERR_limit)
    return true;
  *err = why;
  return false;
}

static bool may_lie_in_arena (const ask *q) {
  const solve_options *o = &q->options;
  return o->placement == PLACES_AUTO ? placed_suits_arena (o)
                                     : o->placement == PLACES_ARENA && !o->same_places;
}

static bool floors_of (const trace *t, const ask *q, int64_t *least, int64_t *granules,
                       error *err) {
  memory_floor of_bytes, of_granules;
  arena *scratch = arena_made (err);
  bool ok = scratch && floor_least (t, &q->device, scratch, &of_bytes, err) &&
            floor_of (t, &q->device, scratch, &of_granules, err) &&
            sections_lower (t, &q->options, scratch, &of_bytes.bytes, err);
  arena_free (scratch);
  if (!ok)
    return false;
  *least = of_bytes.bytes;
  *granules = of_granules.bytes;
  return true;
}

/* Ever more above the least, and the floor of whole granules among them; none above `most`. */
static int budgets_to_try (int64_t least, int64_t granules, int64_t granule, int64_t most,
                           int64_t bytes[TRIES + 1]) {
  int n = 0;
  for (int i = 0; i < TRIES && (!n || bytes[n - 1] < most); i++) {
    int64_t next = min_of (least + (i ? granule << (2 * i - 2) : 0), most);
    if (least < granules && granules < next)
      bytes[n++] = granules;
    granules = granules <= next ? 0 : granules;
    bytes[n++] = next;
  }
  return n;
}

/* The bytes in which nothing has to move, if tensors may lie anywhere. */
static bool find_needs (const trace *t, const ask *q, int64_t *bytes, error *err) {
  needs n;
  *bytes = INT64_MAX;
  if (!stays_anywhere (&q->options))
    return true;
  arena *scratch = arena_made (err);
  bool ok = scratch && needs_of (t, &q->device, scratch, &n, err);
  arena_free (scratch);
  if (ok)
    *bytes = n.bytes;
  return ok;
}

/* Half way to what was too little, a few times. */
static bool come_nearer (const trace *t, const ask *q, int64_t none_bytes, int64_t *found_bytes,
                         error *err) {
  int64_t granule = q->device.granule_bytes;
  for (int i = 0; i < HALVINGS && !is_stopped (q); i++) {
    bool fits;
    int64_t next = (none_bytes + *found_bytes) / 2 / granule * granule;
    if (next <= none_bytes || *found_bytes - none_bytes < *found_bytes / 64)
      break;
    if (!fits_in (t, q, next, &fits, err))
      return false;
    *(fits ? found_bytes : &none_bytes) = next;
  }
  return true;
}

/* A few quick searches, from the floor upward, or from the budget in which nothing was found. */
static bool find_least (const trace *t, const ask *q, ask_least *out, error *err) {
  int64_t least, granules, most, bytes[TRIES + 1], granule = q->device.granule_bytes;
  bool fits = false;
  *out = (ask_least){ 0 };
  if (!floors_of (t, q, &least, &granules, err) || !find_needs (t, q, &most, err))
    return false;
  out->floor_bytes = ask_with_reserve (q, least);
  out->reserve_bytes = out->floor_bytes - least;
  int64_t above = (q->options.budget_bytes / granule + 1) * granule;
  int n = budgets_to_try (least > above ? least : above, granules, granule, most, bytes);
  int64_t found_bytes = 0, none_bytes = above - granule;
  for (int i = 0; i < n && !fits && !is_stopped (q); i++) {
    if (ask_with_reserve (q, bytes[i]) > free_bytes (&q->device))
      break;
    fits = bytes[i] == most;
    if (!fits && !fits_in (t, q, bytes[i], &fits, err))
      return false;
    *(fits ? &found_bytes : &none_bytes) = bytes[i];
  }
  if (fits && !come_nearer (t, q, none_bytes > least ? none_bytes : least, &found_bytes, err))
    return false;
  out->found_bytes = fits ? ask_with_reserve (q, found_bytes) : 0;
  return true;
}

static bool refuse_with_floor (const trace *t, ask *q, bool open, error *err) {
  error fresh = { 0 };
  ask_least least;
  if (!find_least (t, q, &least, &fresh))
    return error_set (err, fresh.code, "%s", fresh.text);
  q->least = least;
  floor_request r = { .budget_bytes = q->options.budget_bytes,
                      .host_bytes = q->options.host_bytes,
                      .open = open,
                      .in_parts = q->options.sections != SECTIONS_OFF,
                      .drops = q->options.recompute != RECOMPUTE_OFF,
                      .stays = q->options.recompute == RECOMPUTE_ONLY,
                      .asked_bytes = q->asked_bytes,
                      .least_bytes = least.floor_bytes,
                      .reserve_bytes = least.reserve_bytes,
                      .found_bytes = least.found_bytes };
  bool below = q->options.budget_bytes < least.floor_bytes - least.reserve_bytes;
  device counted = below || may_lie_in_arena (q) ? floor_device (&q->device) : q->device;
  return floor_refuse (t, &counted, &r, err);
}

/* ---- solving ---- */

/* If all fits, nothing is searched: no plan is faster than compute. */
static bool keep_all (const trace *t, const ask *q, arena *a, solution *out, bool *done,
                      error *err) {
  plan *p;
  solve_options how = q->options;
  *done = false;
  if (!stays_anywhere (&how) || how.noise_percent || trace_has_streams (t))
    return true;
  if (!needs_plan (t, &q->device, a, &p, err))
    return false;
  if (p->predicted.peak_bytes > how.budget_bytes)
    return true;
  p->budget_bytes = how.budget_bytes;
  p->host_bytes = how.host_bytes;
  allowed_into (&(allowed)SWAPS_ALONE, &how);
  if (!solve_certify (t, &how, "nothing has to move", p, a, err))
    return false;
  *done = p->predicted.step_ns <= p->certificate.lower_bound_ns;
  *out = (solution){ .plan = p,
                     .candidates = 1,
                     .bound = { .lower_bound_ns = p->certificate.lower_bound_ns,
                                .by = p->certificate.bound_by } };
  return true;
}

/* A search that had no time rules nothing out but what whole ops need, and only of whole ops. */
static bool say_stopped (const ask *q, const error *why, error *err) {
  char budget[UNITS_TEXT];
  allowed x = allowed_of (&q->options);
  if (why->code != ERR_infeasible || !allowed_rewrites (&x))
    return error_set (err, why->code, "%s", why->text);
  return error_set (err, ERR_limit,
                    "the search was stopped before it had a plan in %s, and none is ruled out; "
                    "give it more time, or more memory",
                    units_bytes (budget, q->options.budget_bytes));
}

/* The plan that a few ticks give, whoever wants to stop: an answer to a question that was
   interrupted before it had any. */
static bool solve_at_once (const trace *t, const ask *q, arena *a, solution *out, error *err) {
  solve_options how = quick_options (q);
  error why = { 0 };
  how.stop = NULL;
  if (!solve (t, &how, a, out, &why))
    return say_stopped (q, &why, err);
  out->plan->certificate.limit_met = "stopped";
  return true;
}

/* All that is on the device lies in granules, and there is not one. */
static bool holds_nothing (const ask *q) {
  return q->options.budget_bytes < q->device.granule_bytes;
}

bool ask_solve (const trace *t, ask *q, arena *a, solution *out, error *err) {
  bool done;
  error why = { 0 };
  q->options.device = &q->device;
  if (!keep_all (t, q, a, out, &done, err))
    return false;
  if (!done && refusal_outlives (t, q->options.budget_bytes, q->options.host_bytes))
    return refuse_with_floor (t, q, false, err);
  if (done || solve (t, &q->options, a, out, &why))
    return true;
  if (is_stopped (q) && (why.code == ERR_infeasible || why.code == ERR_limit) &&
      q->options.recompute != RECOMPUTE_ONLY)
    return solve_at_once (t, q, a, out, err);
  if (is_stopped (q))
    return say_stopped (q, &why, err);
  *err = why;
  bool is_no = why.code == ERR_infeasible || holds_nothing (q);
  return (is_no || why.code == ERR_limit) && refuse_with_floor (t, q, !is_no, err);
}

/* ---- other ways that might do better ---- */

bool ask_others_of (const trace *t, const ask *q, const allowed *most, int64_t step_ns,
                    ask_other out[ASK_OTHERS], int *count, error *err) {
  int64_t compute_ns = trace_total_ns (t), drops_ns = compute_ns;
  solve_options how = q->options;
  how.device = &q->device;
  *count = 0;
  if (trace_has_streams (t) || step_ns <= solve_enough_ns (how.gap_ppm, compute_ns))
    return true;
  if (how.recompute == RECOMPUTE_OFF && most->recompute != RECOMPUTE_OFF) {
    how.recompute = RECOMPUTE_AUTO;
    /* the bound of drops is of whole ops as they stand */
    if (how.sections == SECTIONS_OFF && how.order == ORDER_AS_IS) {
      arena *scratch = arena_new (0);
      bool ok =
          scratch ? recompute_bound (t, NULL, &how, scratch, &drops_ns, err) : error_memory (err);
      arena_free (scratch);
      if (!ok)
        return false;
    }
    drops_ns = max_of (drops_ns, compute_ns);
    if (drops_ns < INT64_MAX && step_ns > solve_enough_ns (how.gap_ppm, drops_ns))
      out[(*count)++] = (ask_other){ "--recompute auto", drops_ns };
  }
  if (how.sections == SECTIONS_OFF && most->sections != SECTIONS_OFF)
    out[(*count)++] = (ask_other){ "--sections auto", compute_ns };
  return true;
}
