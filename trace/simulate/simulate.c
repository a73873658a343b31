/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules around the event loop: when a step counts as steady, and what is reported. */
#include "trace/simulate/simulate.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/rewrite/resting.h"
#include "trace/simulate/lanes.h"
#include "trace/simulate/run.h"
#include "trace/simulate/timeline.h"
#include "trace/unit.h"

enum { HOST_PLACE = 512, LAST_DIFFERENCES = 8, FIRST_JOB_STEP = 16, LAST_JOB_STEP = 32 };
enum { MOST_EVENTS = 1 << 28 };

/* ---- the steady state of one job, or of ranks that keep together ---- */

typedef struct steady {
  int32_t looked;      /* steps whose state has been compared */
  int32_t first, last; /* two steps of equal state, or -1 */
} steady;

static bool settled_or_over (const sim_run *r, void *context) {
  steady *s = context;
  int32_t done = SIM_STEPS;
  for (int32_t i = 0; i < r->n_lanes; i++)
    done = r->lanes[i].steps_done < done ? r->lanes[i].steps_done : done;
  for (; s->looked < done; s->looked++)
    for (int32_t i = 0; i < s->looked; i++)
      if (sim_same_state (r, i, s->looked)) {
        s->first = i;
        s->last = s->looked;
        return true;
      }
  return s->looked >= SIM_STEPS;
}

/* The period of one run, and whether it repeated; *step is one of its steady steps. */
static bool run_once (sim_run *r, int64_t *step_ns, bool *repeated, int32_t *step, error *err) {
  steady s = { 0, -1, -1 };
  if (!sim_run_until (r, settled_or_over, &s, err))
    return false;
  const int64_t *starts = r->lanes[0].starts_ns;
  *repeated = s.first >= 0;
  if (*repeated) {
    *step_ns = units_div_up (starts[s.last] - starts[s.first], s.last - s.first);
    *step = s.first;
    return true;
  }
  *step_ns = 0;
  for (int i = SIM_STEPS - LAST_DIFFERENCES; i < SIM_STEPS; i++)
    if (starts[i] - starts[i - 1] > *step_ns) {
      *step_ns = starts[i] - starts[i - 1];
      *step = i - 1;
    }
  return true;
}

static bool step_started (const sim_run *r, void *context) {
  const sim_record *to = context;
  const sim_lane *lane = &r->lanes[to->lane];
  return lane->steps_done > to->step && lane->starts_ns[to->step + 1] >= 0;
}

/* The run again, up to the step that is shown, with its times written down. */
static bool draw (sim_run *r, const sim_job *job, int32_t lane, int32_t step, arena *a,
                  timeline *out, error *err) {
  *out = (timeline){ .step = step };
  sim_record record = { .lane = lane, .step = step };
  const plan *p = job->plan;
  units u;
  if (!timeline_begin (job, a, out, err) ||
      !units_of (job->rewritten->trace, p->groups, p->n_groups, p->placement.granule_bytes,
                 p->placement.pool_below_bytes, a, &u, err))
    return false;
  record.ops = out->ops;
  record.outs = out->outs;
  record.ins = out->ins;
  r->record = &record;
  bool ok = sim_run_until (r, step_started, &record, err);
  r->record = NULL;
  const int64_t *starts = r->lanes[lane].starts_ns;
  out->late_ns = starts[step] - r->lanes->starts_ns[step];
  return ok &&
         timeline_finish (job, &u, starts[step], starts[step + 1] - starts[step], a, out, err);
}

static bool keep_together (sim_run *r, const sim_job *jobs, const sim_options *o, predicted *out,
                           timeline *drawn, error *err) {
  int32_t step = 0, laden_step = 0;
  bool laden = false;
  if (!run_once (r, &out->step_ns, &out->settled, &step, err))
    return false;
  if (!out->settled) {
    int64_t laden_ns = 0;
    r->laden = true;
    if (!run_once (r, &laden_ns, &out->settled, &laden_step, err))
      return false;
    laden = laden_ns > out->step_ns;
    if (laden) {
      out->step_ns = laden_ns;
      step = laden_step;
    }
  }
  r->laden = laden;
  for (int32_t i = 0; i < r->n_lanes; i++) {
    out[i].step_ns = out->step_ns;
    out[i].settled = out->settled;
    if (o->timeline_arena && !draw (r, &jobs[i], i, step, o->timeline_arena, &drawn[i], err))
      return false;
  }
  return true;
}

/* The host has a card and pinned memory for each rank or job. */
static bool ranks_fit (const sim_options *o, const sim_job *jobs, int32_t n, const predicted *out,
                       error *err) {
  const gpu_host *h = o->host;
  const char *what = o->apart ? "jobs" : "ranks";
  char a[UNITS_TEXT], b[UNITS_TEXT];
  __int128 pinned = 0;
  if (n > h->n_cards)
    return error_set (err, ERR_usage, "%d %s on %s: it has %d cards", n, what, h->name, h->n_cards);
  for (int32_t i = 0; i < n; i++) {
    pinned += out[i].host_peak_bytes;
    if (strcmp (jobs[i].plan->device.name, jobs->plan->device.name) != 0)
      return error_set (err, ERR_input, "of %s, %d is planned for device %s, 0 for %s", what, i,
                        jobs[i].plan->device.name, jobs->plan->device.name);
  }
  return pinned <= h->pinned_bytes ||
         error_set (err, ERR_infeasible,
                    "%d %s pin %s together, of %s at most %s may be pinned: give fewer or a larger "
                    "budget",
                    n, what, units_bytes (a, pinned > INT64_MAX ? INT64_MAX : (int64_t)pinned),
                    h->name, units_bytes (b, h->pinned_bytes));
}

/* ---- several jobs ---- */

/* Also true where a short job has run for so long beside a long one that it would never end. */
static bool all_ran (const sim_run *r, void *context) {
  const int64_t *most_events = context;
  if (r->events > *most_events)
    return true;
  for (int32_t i = 0; i < r->n_lanes; i++)
    if (r->lanes[i].starts_ns[LAST_JOB_STEP] < 0)
      return false;
  return true;
}

static bool all_take_time (const sim_job *jobs, int32_t n, error *err) {
  for (int32_t i = 0; i < n; i++)
    if (trace_total_ns (jobs[i].rewritten->trace) == 0)
      return error_set (err, ERR_input, "job %d has no duration: it cannot share a card or a link",
                        i);
  return true;
}

static bool jobs_fit (const sim_job *jobs, int32_t n, error *err) {
  const device *first = &jobs[0].plan->device;
  __int128 need = 0;
  for (int32_t i = 0; i < n; i++) {
    const device *d = &jobs[i].plan->device;
    if (strcmp (d->name, first->name) != 0)
      return error_set (err, ERR_input, "job %d is planned for device %s, job 0 for %s", i, d->name,
                        first->name);
    need += jobs[i].plan->budget_bytes + first->reserved_bytes;
  }
  if (need > first->memory_bytes) {
    char a[UNITS_TEXT], b[UNITS_TEXT];
    return error_set (err, ERR_infeasible, "%d jobs need %s together, the device has %s", n,
                      units_bytes (a, need > INT64_MAX ? INT64_MAX : (int64_t)need),
                      units_bytes (b, first->memory_bytes));
  }
  return true;
}

static bool many_jobs (sim_run *r, const sim_job *jobs, const sim_options *o, predicted *out,
                       timeline *drawn, error *err) {
  int64_t most_events = o->most_events ? o->most_events : MOST_EVENTS;
  for (int32_t i = 0; i < r->n_lanes; i++) /* jobs alike end, however many their ops */
    most_events +=
        (int64_t)SIM_STEPS * 8 * (r->lanes[i].n_ops + r->lanes[i].n_outs + r->lanes[i].n_ins);
  if (!all_take_time (jobs, r->n_lanes, err) || (!r->host && !jobs_fit (jobs, r->n_lanes, err)) ||
      !sim_run_until (r, all_ran, &most_events, err))
    return false;
  for (int32_t i = 0; i < r->n_lanes; i++) {
    const int64_t *starts = r->lanes[i].starts_ns;
    if (starts[LAST_JOB_STEP] < 0)
      return error_set (err, ERR_input,
                        "job %d has too long a step to be simulated beside the others", i);
    out[i].step_ns = units_div_up (starts[LAST_JOB_STEP] - starts[FIRST_JOB_STEP],
                                   LAST_JOB_STEP - FIRST_JOB_STEP);
    out[i].settled = false;
  }
  for (int32_t i = 0; o->timeline_arena && i < r->n_lanes; i++)
    if (!draw (r, &jobs[i], i, FIRST_JOB_STEP, o->timeline_arena, &drawn[i], err))
      return false;
  return true;
}

/* ---- the report ---- */

static bool static_figures (const sim_job *job, const sim_lane *lane, predicted *out, error *err) {
  const plan *p = job->plan;
  const placement *pl = &p->placement;
  *out = (predicted){ .compute_ns = trace_total_ns (job->rewritten->trace) };
  out->baseline_ns =
      job->original == job->rewritten->trace ? out->compute_ns : trace_total_ns (job->original);
  int64_t granules = pl->granules + units_div_up (pl->pool_bytes, pl->granule_bytes);
  /* An arena is taken in one piece, in whole granules of the device; of granules they are some. */
  if (__builtin_mul_overflow (granules, pl->granule_bytes, &out->peak_bytes) ||
      __builtin_mul_overflow (units_div_up (out->peak_bytes, p->device.granule_bytes),
                              p->device.granule_bytes, &out->peak_bytes))
    return error_at (err, ERR_input, "/placement/granules", "%lld granules of %lld bytes",
                     (long long)granules, (long long)pl->granule_bytes);
  int64_t end = 0;
  for (int32_t i = 0; i < lane->n_ins; i++) { /* every move comes in */
    end = max_of (end, p->moves[lane->ins[i].move].host_offset + lane->ins[i].bytes);
    out->h2d_bytes += lane->ins[i].bytes;
  }
  out->host_peak_bytes = units_div_up (end, HOST_PLACE) * HOST_PLACE;
  out->host_peak_bytes += resting_bytes (job->original, p);
  for (int32_t i = 0; i < lane->n_outs; i++)
    out->d2h_bytes += lane->outs[i].bytes;
  return true;
}

bool simulate (const sim_job *jobs, int32_t n_jobs, const sim_options *options, arena *scratch,
               predicted *out, timeline *timelines, error *err) {
  static const sim_options plain = { 0 };
  const sim_options *o = options ? options : &plain;
  assert (n_jobs >= 1 && (!o->timeline_arena || timelines) && !(o->host && o->turns));
  arena_mark mark = arena_here (scratch);
  const device *d = &jobs[0].plan->device;
  const device_link *link = o->host ? &o->host->link : &d->link;
  bool one = n_jobs == 1 && !o->host, together = o->host && (!o->apart || n_jobs == 1);
  sim_run r = { .n_lanes = n_jobs,
                .host = o->host,
                .together = together,
                .rates = device_rates (link, one ? d->share_ppm : 1000000),
                .copy_ns = link->copy_ns,
                .turns = o->turns };
  r.lanes = NEW (scratch, n_jobs, sim_lane, err);
  bool ok = r.lanes;
  for (int32_t i = 0; ok && i < n_jobs; i++)
    ok = lane_of_job (&jobs[i], scratch, &r.lanes[i], err) &&
         static_figures (&jobs[i], &r.lanes[i], &out[i], err);
  ok = ok && (!o->host || (ranks_fit (o, jobs, n_jobs, out, err) &&
                           (!together || lanes_meet (&r, jobs, scratch, err))));
  ok = ok && (one || together ? keep_together (&r, jobs, o, out, timelines, err)
                              : many_jobs (&r, jobs, o, out, timelines, err));
  for (int32_t i = 0; ok && i < n_jobs; i++)
    out[i].stall_ns = out[i].step_ns - out[i].compute_ns;
  if (o->events)
    *o->events += r.events;
  /* The timelines may live in the same arena. */
  if (o->timeline_arena != scratch)
    arena_back (scratch, mark);
  return ok;
}

bool simulate_plan (const trace *t, const plan *p, arena *scratch, predicted *out, error *err) {
  assert (t && p && out);
  arena_mark mark = arena_here (scratch);
  rewritten rw;
  bool ok = plan_rewrite (t, p, scratch, &rw, err);
  sim_job job = { t, &rw, p };
  ok = ok && simulate (&job, 1, NULL, scratch, out, NULL, err);
  arena_back (scratch, mark);
  return ok;
}
