/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/replay/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "executor/driver/host.h"
#include "executor/link/link.h"
#include "executor/replay/run.h"
#include "executor/replay/steady.h"
#include "trace/check/check.h"
#include "trace/streams.h"

/* Waits reach back two steps at most and a move wraps around one boundary, so in the third step all
   waits have somebody to wait for, and what the fourth one reads went through a step of that kind:
   more steps repeat these. */
enum { VERIFIED_STEPS = 4, USUAL_STEPS = 10, LEAST_GRANULE = 4096 };

/* ---- starting ---- */

static bool find_entry (const driver *d, const char *name, void *out, error *err) {
  void *entry = driver_symbol (d, name);
  if (entry == NULL)
    return error_set (err, ERR_unreachable, "%s is not the emulator: it has no %s", d->path, name);
  memcpy (out, &entry, sizeof entry);
  return true;
}

/* Memory is the largest budget, so that one byte more than the plan's is refused. */
static int64_t emulated_bytes (const replay_team *t) {
  int64_t most = t->ranks->plan->device.granule_bytes; /* budgets are 0 without tensors */
  for (int32_t i = 0; i < t->n; i++)
    most = max_of (most, t->ranks[i].plan->budget_bytes);
  return most;
}

/* By the first rank, for all. */
static bool start_emulator (const replay_state *s, const gpu_host *h, error *err) {
  const replay_options *o = s->options;
  const device *dev = &s->plan->device;
  int64_t memory_bytes = emulated_bytes (s->team);
  emu_config c = { .cards = s->team->n,
                   .memory_bytes = memory_bytes,
                   .missing_bytes =
                       o->missing_bytes < memory_bytes ? o->missing_bytes : memory_bytes,
                   .granule_bytes = dev->granule_bytes,
                   .pinned_bytes = o->pinned_bytes,
                   .d2h_bytes_per_s = dev->link.d2h_bytes_per_s,
                   .h2d_bytes_per_s = dev->link.h2d_bytes_per_s,
                   .both_bytes_per_s = dev->link.both_bytes_per_s,
                   .copy_ns = dev->link.copy_ns,
                   .share_ppm = dev->share_ppm,
                   .clock = o->clock,
                   .bytes = o->bytes,
                   .races = o->races,
                   .owners = o->races && o->calculation == NULL,
                   .fuzz_ns = o->fuzz_ns,
                   .fuzz_seed = o->fuzz_seed,
                   .failed_copy = o->failed_copy };
  if (h != NULL)
    link_set_host (&c, h);
  emu_configure configure = NULL;
  return find_entry (&s->driver, EMU_CONFIGURE, &configure, err) &&
         driver_ok (&s->driver, configure (&c), EMU_CONFIGURE, err);
}

static bool find_entries (replay_state *s, error *err) {
  const replay_options *o = s->options;
  bool owners = o->races && o->calculation == NULL;
  return find_entry (&s->driver, EMU_ADVANCE, &s->advance, err) &&
         find_entry (&s->driver, EMU_HOLD, &s->hold, err) &&
         find_entry (&s->driver, EMU_EVENT_TIME, &s->event_time, err) &&
         find_entry (&s->driver, EMU_RACES, &s->races, err) &&
         (!o->races || (find_entry (&s->driver, EMU_ORDERED, &s->ordered, err) &&
                        find_entry (&s->driver, EMU_STREAM_COPIES, &s->stream_copies, err))) &&
         (!owners || find_entry (&s->driver, EMU_TAG, &s->tag, err));
}

static bool check_options (const replay_options *o, const plan *p, error *err) {
  if (o->iterations < 0 || o->iterations > REPLAY_MOST_STEPS)
    return error_set (err, ERR_usage, "%d iterations: from 1 to %d can be replayed", o->iterations,
                      REPLAY_MOST_STEPS);
  if (!o->emulated && (o->clock == EMU_VIRTUAL || o->bytes == EMU_NONE || o->races))
    return error_set (err, ERR_usage,
                      "a virtual clock, no bytes and the race checker are the emulator's; use "
                      "--driver emulated");
  if (o->calculation != NULL && (o->verify || (o->emulated && o->bytes == EMU_NONE)))
    return error_set (err, ERR_usage, "what is calculated stands in the bytes: do without %s",
                      o->verify ? "--verify, which puts patterns there" : "--bytes none");
  if (o->verify && o->bytes == EMU_NONE)
    return error_set (err, ERR_usage, "--verify looks at bytes; do without --bytes none");
  if (o->emulated && o->bytes == EMU_ALL && p->device.granule_bytes % LEAST_GRANULE != 0)
    return error_set (err, ERR_usage,
                      "bytes are emulated in granules of a multiple of %d, the device's have %lld; "
                      "use --bytes none",
                      LEAST_GRANULE, (long long)p->device.granule_bytes);
  return true;
}

/* Before the first allocation, as far as it can be known. */
static bool check_host (const replay_options *o, int64_t host_bytes, int64_t device_bytes,
                        error *err) {
  if (o->bytes == EMU_NONE)
    return true;
  host_limits h = host_limits_read ();
  if (!host_has_room (&h, host_bytes + (o->emulated ? device_bytes : 0), err))
    return false;
  char need[UNITS_TEXT], limit[UNITS_TEXT];
  if (!o->emulated && host_bytes > h.lock_bytes)
    log_say (o->log, LOG_WARNING,
             "the plan pins %s on the host and the limit on locked memory is %s; if the driver "
             "refuses, raise it (ulimit -l)",
             units_bytes (need, host_bytes), units_bytes (limit, h.lock_bytes));
  return true;
}

static bool start (replay_state *s, const gpu_host *h, arena *a, error *err) {
  const replay_options *o = s->options;
  int32_t n = s->team->n;
  if (!driver_open (&s->driver, o->library, err) ||
      (o->emulated && s->rank == 0 && !start_emulator (s, h, err)) ||
      (o->emulated && !find_entries (s, err)))
    return false;
  if (!room_plan (&s->driver, s->rewritten, s->plan, a, &s->room, err) ||
      !check_host (o, n * s->room.host_bytes, n * s->room.device_bytes, err) ||
      !driver_start (&s->driver, s->rank, err) || !room_open (&s->room, a, err) ||
      !kernels_load (&s->driver, o->emulated, o->races, &s->kernels, err) ||
      !walk_make (s->rewritten, s->plan, a, &s->walk, err))
    return false;
  s->sees_bytes = o->verify || (o->races && o->calculation == NULL);
  if (!replay_prepare (s, a, err))
    return false;
  s->calculation = o->calculation;
  return s->calculation != NULL
             ? calculate_open (s->calculation, &s->driver, &s->room, o->races, s->steps, a, err)
             : !o->verify || replay_first_bytes (s, err);
}

/* ---- observations ---- */

static int64_t median (int64_t *v, int64_t n) {
  if (n == 0)
    return 0;
  qsort (v, (size_t)n, sizeof *v, order_int64);
  return v[n / 2];
}

static int64_t time_at (const replay_state *s, int32_t row, int32_t place, int end) {
  return s->times[2 * ((int64_t)row * s->walk.n_items + place) + end];
}

static int64_t step_start (const replay_state *s, int32_t row) {
  return s->starts[row];
}

/* From the second step on: the first one finds the machine empty. */
static bool median_step (const replay_state *s, arena *a, int64_t *ns, error *err) {
  arena_mark mark = arena_here (a);
  int64_t *v = NEW (a, s->timed, int64_t, err);
  if (v == NULL)
    return false;
  int32_t n = 0;
  for (int32_t i = s->timed > 2 ? 2 : 1; i < s->timed; i++)
    v[n++] = step_start (s, i) - step_start (s, i - 1);
  int32_t last = s->timed - 1, place = s->walk.place[WALK_OPS][s->rewritten->trace->n_ops - 1];
  *ns = n > 0 ? median (v, n) : time_at (s, last, place, 1) - step_start (s, last);
  arena_back (a, mark);
  return true;
}

static bool keep_spans (const replay_state *s, arena *a, replay_result *out, error *err) {
  int32_t n_ops = s->rewritten->trace->n_ops, n_moves = s->plan->n_moves;
  out->timed = s->timed;
  if ((out->ops = NEW (a, (int64_t)s->timed * n_ops, span, err)) == NULL ||
      (out->outs = NEW (a, (int64_t)s->timed * n_moves, span, err)) == NULL ||
      (out->ins = NEW (a, (int64_t)s->timed * n_moves, span, err)) == NULL)
    return false;
  for (int64_t i = 0; i < (int64_t)s->timed * n_moves; i++)
    out->outs[i] = out->ins[i] = (span){ -1, -1 };
  for (int32_t row = 0; row < s->timed; row++)
    for (int32_t place = 0; place < s->walk.n_items; place++) {
      const walk_item *i = &s->walk.items[place];
      span *to = i->queue == WALK_OPS    ? &out->ops[(int64_t)row * n_ops + i->index]
                 : i->queue == WALK_OUTS ? &out->outs[(int64_t)row * n_moves + i->index]
                                         : &out->ins[(int64_t)row * n_moves + i->index];
      *to = (span){ time_at (s, row, place, 0), time_at (s, row, place, 1) };
    }
  return true;
}

/* ---- predicted beside seen ---- */

static int64_t distance (int64_t a, int64_t b) {
  return a > b ? a - b : b - a;
}

static void keep_worst (replay_result *out, const replay_difference *d) {
  int64_t far = distance (d->predicted_ns, d->seen_ns);
  int32_t i = out->n_worst;
  while (i > 0 && distance (out->worst[i - 1].predicted_ns, out->worst[i - 1].seen_ns) < far)
    i--;
  if (i == REPLAY_WORST)
    return;
  int32_t kept = out->n_worst < REPLAY_WORST ? out->n_worst : REPLAY_WORST - 1;
  memmove (out->worst + i + 1, out->worst + i, (size_t)(kept - i) * sizeof *d);
  out->worst[i] = *d;
  out->n_worst = kept + 1;
}

/* The start of op k after op 0 of its step: in one row, or the median over all but the first. */
static int64_t seen_start (const replay_state *s, int32_t op, int32_t row, int64_t *scratch) {
  int32_t place = s->walk.place[WALK_OPS][op];
  if (row >= 0)
    return time_at (s, row, place, 0) - step_start (s, row);
  int32_t n = 0;
  for (int32_t i = s->timed > 1 ? 1 : 0; i < s->timed; i++)
    scratch[n++] = time_at (s, i, place, 0) - step_start (s, i);
  return median (scratch, n);
}

static int64_t span_distance (const span *p, const replay_state *s, int32_t row, int32_t place) {
  int64_t zero = step_start (s, row);
  int64_t begin = distance (p->start_ns, time_at (s, row, place, 0) - zero);
  int64_t end = distance (p->end_ns, time_at (s, row, place, 1) - zero);
  return begin > end ? begin : end;
}

static bool compare (const replay_state *s, const timeline *expected, arena *a, replay_result *out,
                     error *err) {
  int32_t n_ops = s->rewritten->trace->n_ops;
  int64_t *far = NEW (a, n_ops, int64_t, err), *scratch = NEW (a, s->timed, int64_t, err);
  if (far == NULL || scratch == NULL)
    return false;
  int32_t row = out->exact && expected->step < s->timed ? expected->step : -1;
  for (int32_t k = 0; k < n_ops; k++) {
    replay_difference d = { k, expected->ops[k].start_ns - expected->ops[0].start_ns,
                            seen_start (s, k, row, scratch) };
    far[k] = distance (d.predicted_ns, d.seen_ns);
    out->largest_ns = far[k] > out->largest_ns ? far[k] : out->largest_ns;
    if (far[k] > 0)
      keep_worst (out, &d);
  }
  out->median_ns = median (far, n_ops);
  if (row >= 0) /* ranks may keep a distance from step to step */
    out->largest_ns =
        max_of (out->largest_ns, distance (expected->late_ns,
                                           step_start (s, row) - step_start (s->team->ranks, row)));
  for (int q = WALK_OUTS; q < WALK_QUEUES && row >= 0; q++)
    for (int32_t i = 0; i < s->walk.count[q]; i++) {
      int32_t place = s->walk.place[q][i], m = s->walk.items[place].index;
      int64_t ns =
          span_distance (q == WALK_OUTS ? &expected->outs[m] : &expected->ins[m], s, row, place);
      out->largest_copy_ns = ns > out->largest_copy_ns ? ns : out->largest_copy_ns;
    }
  return true;
}

static void count_bytes (const replay_state *s, predicted *seen) {
  for (int32_t q = WALK_OUTS; q < WALK_QUEUES; q++)
    for (int32_t i = 0; i < s->walk.count[q]; i++) {
      const move *m = &s->plan->moves[s->walk.items[s->walk.place[q][i]].index];
      int64_t n = unit_part_bytes (&s->room.units.at[m->unit], s->plan->placement.granule_bytes,
                                   m->part, m->of);
      *(q == WALK_OUTS ? &seen->d2h_bytes : &seen->h2d_bytes) += n;
    }
}

/* The times of a second run, or those of the first again. */
typedef struct row_times {
  int64_t *times, *starts;
} row_times;

static bool run_laden (replay_team *t, arena *a, row_times *first, error *err) {
  for (int32_t i = 0; i < t->n; i++) {
    replay_state *s = &t->ranks[i];
    first[i] = (row_times){ s->times, s->starts };
    s->base = s->steps;
    if ((s->times = NEW (a, 2 * (int64_t)s->timed * s->walk.n_items, int64_t, err)) == NULL ||
        (s->starts = NEW (a, s->timed, int64_t, err)) == NULL)
      return false;
  }
  return replay_together (t, true, err);
}

/* A backlog may build up more slowly than 32 steps show: once more, with it there from the start.
 */
static bool watch_laden (replay_team *t, arena *a, replay_result *out, error *err) {
  row_times first[HOST_MOST_CARDS];
  bool settled;
  if (!run_laden (t, a, first, err))
    return false;
  int64_t ns = replay_steady (t, t->ranks->timed, &settled);
  for (int32_t i = 0; i < t->n; i++) {
    replay_state *s = &t->ranks[i];
    out[i].laden = ns > out[i].seen.step_ns;
    out[i].seen.settled = settled;
    if (out[i].laden)
      out[i].seen.step_ns = ns;
    else {
      s->times = first[i].times;
      s->starts = first[i].starts;
    }
  }
  return true;
}

static bool watch (replay_team *t, arena *a, replay_result *out, error *err) {
  replay_state *s = t->ranks;
  if (!replay_together (t, false, err) ||
      (s->calculation != NULL && !calculate_end (s->calculation, err)))
    return false;
  s->calculation = NULL; /* trained; what follows is about time alone */
  if (!out->exact) {
    bool good = true;
    for (int32_t i = 0; good && i < t->n; i++)
      good = median_step (&t->ranks[i], a, &out[i].seen.step_ns, err);
    return good;
  }
  bool settled;
  int64_t ns = replay_steady (t, s->timed, &settled);
  for (int32_t i = 0; i < t->n; i++) {
    out[i].seen.step_ns = ns;
    out[i].seen.settled = settled;
  }
  return settled || s->steps < STEADY_STEPS || watch_laden (t, a, out, err);
}

static bool predict (const sim_job *jobs, int32_t n, const gpu_host *h, arena *a,
                     replay_result *out, timeline *expected, error *err) {
  predicted costs[HOST_MOST_CARDS];
  sim_options o = { .host = h, .timeline_arena = a };
  if (!simulate (jobs, n, &o, a, costs, expected, err))
    return false;
  for (int32_t i = 0; i < n; i++)
    out[i].predicted = costs[i];
  return true;
}

static bool finish (replay_state *s, const timeline *expected, arena *a, replay_result *out,
                    error *err) {
  predicted *seen = &out->seen;
  if (!driver_ok (&s->driver, s->driver.ctx_set_current (s->driver.context), "cuCtxSetCurrent",
                  err))
    return false;
  seen->compute_ns = out->predicted.compute_ns;
  seen->baseline_ns = out->predicted.baseline_ns;
  seen->stall_ns = seen->step_ns - seen->compute_ns;
  seen->peak_bytes = out->device_bytes = s->room.device_bytes;
  seen->host_peak_bytes = out->host_bytes = s->room.host_bytes;
  out->steps = s->steps;
  const walk_item *last = &s->walk.items[s->walk.n_items - 1];
  out->plan_waits = last->first_demand + last->n_demands;
  out->waits = last->first_wait + last->n_waits;
  out->issued_waits = s->waits;
  out->issued_copies = s->copies;
  count_bytes (s, seen);
  int n_races = 0;
  if (s->races != NULL && s->rank == 0 && /* it knows those of all devices */
      !driver_ok (&s->driver, s->races (out->races, REPLAY_RACES, &n_races), EMU_RACES, err))
    return false;
  for (int32_t i = 0; i < s->n_missing && n_races + i < REPLAY_RACES; i++)
    out->races[n_races + i] = s->missing[i];
  out->n_races = n_races + s->n_missing;
  if (s->options->verify && !replay_last_bytes (s, err))
    return false;
  if (s->options->verify)
    out->found = *s->found;
  return keep_spans (s, a, out, err) && compare (s, expected, a, out, err);
}

/* On the virtual clock a step that repeats an earlier one says all that later ones would. */
static void set_length (replay_state *s, bool exact, const timeline *expected) {
  const replay_options *o = s->options;
  s->steps = o->iterations > 0 ? o->iterations
             : exact           ? STEADY_STEPS
             : o->verify       ? VERIFIED_STEPS
                               : USUAL_STEPS;
  s->timed = s->steps < REPLAY_TIMED ? s->steps : REPLAY_TIMED;
  s->may_end_early = exact && o->iterations == 0 && !o->races && o->calculation == NULL;
  s->least_steps =
      o->verify && VERIFIED_STEPS > expected->step ? VERIFIED_STEPS : expected->step + 1;
}

/* ---- all ranks ---- */

/* The ranks with the same plan of the same trace have one rewritten trace. */
static bool rewrite (const sim_job *jobs, int32_t i, const replay_options *o, arena *a,
                     replay_result *out, error *err) {
  check_rule broken;
  for (int32_t k = 0; k < i; k++)
    if (jobs[k].plan == jobs[i].plan && jobs[k].original == jobs[i].original) {
      out[i].rewritten = out[k].rewritten;
      return true;
    }
  return (o->calculation == NULL ||
          streams_must_be_one (jobs[i].original, "a replay that calculates", err)) &&
         check_options (o, jobs[i].plan, err) &&
         (o->unchecked || check_plan (jobs[i].original, jobs[i].plan, a, &broken, err)) &&
         plan_rewrite (jobs[i].original, jobs[i].plan, a, &out[i].rewritten, err);
}

static bool run_team (replay_team *t, const gpu_host *h, const timeline *expected, arena *a,
                      replay_result *out, error *err) {
  bool good = true;
  for (int32_t i = 0; good && i < t->n; i++) {
    set_length (&t->ranks[i], out->exact, &expected[i]);
    good = start (&t->ranks[i], h, a, err);
  }
  good = good && watch (t, a, out, err);
  for (int32_t i = 0; good && i < t->n; i++)
    good = finish (&t->ranks[i], &expected[i], a, &out[i], err);
  for (int32_t i = 0; i < t->n; i++)
    replay_put_away (&t->ranks[i]);
  return good;
}

bool replay_ranks (const sim_job *jobs, int32_t n, const gpu_host *h, const replay_options *o,
                   arena *a, replay_result *out, int32_t *broken, error *err) {
  assert (jobs && n > 0 && n <= HOST_MOST_CARDS && (h || n == 1) && o && out);
  replay_state states[HOST_MOST_CARDS];
  sim_job made[HOST_MOST_CARDS];
  timeline expected[HOST_MOST_CARDS];
  replay_team team;
  if (n > 1 && o->calculation != NULL)
    return error_set (err, ERR_usage, "what ops calculate is looked at on one rank");
  for (int32_t i = 0; i < n; i++) {
    *broken = i;
    out[i] = (replay_result){ .exact = o->emulated && o->clock == EMU_VIRTUAL && o->fuzz_ns == 0 };
    if (!rewrite (jobs, i, o, a, out, err))
      return false;
    made[i] = (sim_job){ jobs[i].original, &out[i].rewritten, jobs[i].plan };
    states[i] = (replay_state){
      .team = &team, .rank = i, .plan = jobs[i].plan, .rewritten = &out[i].rewritten, .options = o
    };
  }
  if (!predict (made, n, h, a, out, expected, err))
    return false;
  replay_team_init (&team, states, n);
  bool good = replay_find_meetings (&team, a, err) && run_team (&team, h, expected, a, out, err);
  replay_team_end (&team);
  return good;
}

bool replay_run (const trace *t, const plan *p, const replay_options *o, arena *a,
                 replay_result *out, error *err) {
  assert (t && p && o && out);
  sim_job job = { .original = t, .plan = p };
  int32_t broken;
  return replay_ranks (&job, 1, NULL, o, a, out, &broken, err);
}
