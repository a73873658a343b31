/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams and events: a plan's walk issued step after step, without the host waiting inside. */
#include "executor/replay/run.h"

#include <assert.h>
#include <string.h>

#include "executor/replay/steady.h"

static bool make_event (replay_state *s, CUevent *out, unsigned int flags, error *err) {
  return driver_ok (&s->driver, s->driver.event_create (out, flags), "cuEventCreate", err);
}

static int32_t begins_with (const replay_state *s, int32_t place) {
  return script_begins_with (&s->walk, s->rewritten, place);
}

/* The events of a timed step. */
static bool make_row (replay_state *s, int64_t row, error *err) {
  int64_t n = s->walk.n_items;
  for (int32_t place = 0; place < n; place++)
    if ((begins_with (s, place) < 0 &&
         !make_event (s, &s->begin[row * n + place], CU_EVENT_DEFAULT, err)) ||
        !make_event (s, &s->end[row * n + place], CU_EVENT_DEFAULT, err))
      return false;
  s->rows_made++;
  return true;
}

static bool make_events (replay_state *s, arena *a, error *err) {
  int64_t n = s->walk.n_items, ring = s->steps == s->timed ? 0 : 3 * n;
  if (!ALLOC (a, s->times, 2 * s->timed * n, err) || !ALLOC (a, s->starts, s->timed, err) ||
      !ALLOC (a, s->begin, s->timed * n, err) || !ALLOC (a, s->end, s->timed * n, err) ||
      !ALLOC (a, s->ring, ring, err))
    return false;
  for (int64_t i = 0; i < ring; i++)
    if (!make_event (s, &s->ring[i], CU_EVENT_DISABLE_TIMING, err))
      return false;
  /* They are made when they are needed if the run may end early. */
  while (!s->may_end_early && s->rows_made < s->timed)
    if (!make_row (s, s->rows_made, err))
      return false;
  return make_event (s, &s->zero, CU_EVENT_DEFAULT, err);
}

static bool make_scripts (replay_state *s, arena *a, error *err) {
  script_request q = { .walk = &s->walk,
                       .rewritten = s->rewritten,
                       .plan = s->plan,
                       .room = &s->room,
                       .kernels = &s->kernels,
                       .operands = s->operands,
                       .op_offset = s->op_offset,
                       .found = s->found,
                       .calculated = s->options->calculation != NULL,
                       .ended = s->ordered != NULL || s->team->n > 1 ||
                                trace_has_streams (s->rewritten->trace),
                       .meets = s->team->n > 1,
                       .meeting_of = s->meeting_of,
                       .step = &s->step };
  if (s->steps > s->timed && !script_make (&q, a, &s->plain, err))
    return false;
  q.timed = true;
  return script_make (&q, a, &s->timed_script, err);
}

/* The last op of each stream. */
static bool find_last (replay_state *s, arena *a, error *err) {
  const trace *t = s->rewritten->trace;
  int32_t n = trace_has_streams (t) ? t->n_streams : 1;
  if ((s->last_op = NEW (a, n, int32_t, err)) == NULL)
    return false;
  for (int32_t x = 0; x < n; x++) {
    int32_t k = t->n_ops - 1;
    while (k >= 0 && n > 1 && t->ops[k].stream != x)
      k--;
    if (k >= 0)
      s->last_op[s->n_last++] = k;
  }
  return true;
}

bool replay_prepare (replay_state *s, arena *a, error *err) {
  int32_t n = script_streams (s->rewritten->trace);
  if ((s->stream = NEW (a, n, CUstream, err)) == NULL)
    return false;
  for (int32_t q = 0; q < n; q++)
    if (!driver_ok (&s->driver, s->driver.stream_create (&s->stream[q], CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate", err))
      return false;
  if (!find_last (s, a, err) || (s->sees_bytes && !replay_operands (s, a, err)))
    return false;
  return make_scripts (s, a, err) && make_events (s, a, err) && replay_make_arrivals (s, err);
}

/* The last steps are the timed ones. */
static int64_t timed_row (const replay_state *s, int32_t step) {
  return step - (s->steps - s->timed);
}

const CUevent *replay_ends (const replay_state *s, int32_t step) {
  assert (step >= 0);
  int64_t row = timed_row (s, step), n = s->walk.n_items;
  return row >= 0 ? s->end + row * n : s->ring + step % 3 * n;
}

static const char *const call_names[] = {
  [SCRIPT_LAUNCH] = "cuLaunchKernel",    [SCRIPT_WAIT] = "cuStreamWaitEvent",
  [SCRIPT_MEET] = "cuStreamWaitEvent",   [SCRIPT_COLLECTIVE] = "",
  [SCRIPT_BEGIN] = "cuEventRecord",      [SCRIPT_END] = "cuEventRecord",
  [SCRIPT_OUT] = "cuMemcpyDtoHAsync",    [SCRIPT_IN] = "cuMemcpyHtoDAsync",
  [SCRIPT_CALCULATE] = "cuLaunchKernel",
};

static CUresult issue_launches (const driver *d, CUstream on, kernel_launch *l, int32_t count) {
  for (kernel_launch *end = l + count; l < end; l++) {
    CUresult r = d->launch (l->function, l->blocks, 1, 1, l->threads, 1, 1, 0, on, l->params, NULL);
    if (r != CUDA_SUCCESS)
      return r;
  }
  return CUDA_SUCCESS;
}

static CUresult issue_copy (replay_state *s, const script_call *c, const script_copy *x) {
  CUstream on = s->stream[c->stream];
  if (++s->copies == s->options->lost_copy)
    return CUDA_SUCCESS;
  CUresult r = s->tag == NULL ? CUDA_SUCCESS : s->tag (x->owner);
  if (r == CUDA_SUCCESS)
    r = c->kind == SCRIPT_OUT ? s->driver.copy_out_async (x->host, x->device, x->bytes, on)
                              : s->driver.copy_in_async (x->device, x->host, x->bytes, on);
  return r != CUDA_SUCCESS || s->tag == NULL ? r : s->tag (0);
}

/* The others have issued the step before and nothing of the next but one. */
static CUresult wait_for_ranks (const replay_state *s, CUstream on, int32_t step) {
  for (int32_t i = 0; step > 0 && i < s->team->n; i++) {
    const replay_state *other = &s->team->ranks[i];
    for (int32_t x = 0; i != s->rank && x < other->n_last; x++) {
      int32_t last = other->walk.place[WALK_OPS][other->last_op[x]];
      CUresult r = s->driver.stream_wait_event (on, replay_ends (other, step - 1)[last], 0);
      if (r != CUDA_SUCCESS)
        return r;
    }
  }
  return CUDA_SUCCESS;
}

static bool issue_step (replay_state *s, int32_t step, error *err) {
  int64_t row = timed_row (s, step);
  const script *p = row < 0 ? &s->plain : &s->timed_script;
  const CUevent *begins = row < 0 ? NULL : s->begin + row * s->walk.n_items, *ends[3];
  for (int32_t lag = 0; lag < 3; lag++)
    ends[lag] = step < lag ? NULL : replay_ends (s, step - lag);
  s->step = s->base + step;
  for (const script_call *c = p->calls; c < p->calls + p->n_calls; c++) {
    CUstream on = s->stream[c->stream];
    CUresult r = CUDA_SUCCESS;
    switch (c->kind) {
    case SCRIPT_LAUNCH:
      r = issue_launches (&s->driver, on, p->launches + c->first, c->count);
      break;
    case SCRIPT_CALCULATE:
      if (s->calculation == NULL)
        r = issue_launches (&s->driver, on, p->launches + c->first, 1);
      else if (!calculate_launch (s->calculation, on, c->place, step, err))
        return false;
      break;
    case SCRIPT_WAIT:
      /* Waits for a step before the first have ended. */
      if (ends[c->lag] != NULL && ++s->waits != s->options->lost_wait)
        r = s->driver.stream_wait_event (on, ends[c->lag][c->place], 0);
      break;
    case SCRIPT_MEET:
      r = wait_for_ranks (s, on, step);
      break;
    case SCRIPT_COLLECTIVE:
      if (!replay_arrive (s, on, c->place, step, err))
        return false;
      break;
    case SCRIPT_BEGIN:
      r = s->driver.event_record (begins[c->place], on);
      break;
    case SCRIPT_END:
      r = s->driver.event_record (ends[0][c->place], on);
      break;
    case SCRIPT_OUT:
    case SCRIPT_IN:
      r = issue_copy (s, c, p->copies + c->first);
      break;
    }
    if (r != CUDA_SUCCESS)
      return driver_ok (&s->driver, r, call_names[c->kind], err);
  }
  return true;
}

static bool time_of (replay_state *s, CUevent v, int64_t *ns, error *err) {
  if (s->event_time != NULL)
    return driver_ok (&s->driver, s->event_time (v, ns), EMU_EVENT_TIME, err);
  float ms = 0;
  if (!driver_ok (&s->driver, s->driver.event_elapsed (&ms, s->zero, v), "cuEventElapsedTime", err))
    return false;
  *ns = (int64_t)((double)ms * 1e6);
  return true;
}

static bool read_row (replay_state *s, int64_t row, error *err) {
  int64_t n = s->walk.n_items;
  const CUevent *begins = s->begin + row * n, *ends = s->end + row * n;
  for (int32_t place = 0; place < n; place++) {
    int64_t *to = &s->times[2 * (row * n + place)];
    int32_t before = begins_with (s, place);
    if (before >= 0 && s->walk.place[WALK_OPS][0] != place)
      to[0] = s->times[2 * (row * n + before) + 1];
    else if (!time_of (s, begins[place], &to[0], err))
      return false;
    if (!time_of (s, ends[place], &to[1], err))
      return false;
  }
  s->starts[row] = s->times[2 * (row * n + s->walk.place[WALK_OPS][0])];
  return true;
}

/* Nothing runs on the virtual clock before the host waits, and the commands of many steps are a lot
   of memory. An item waits, through others, for an op of its own step or the one before, so who
   waits here for a step long issued delays nothing. The race checker would take it for an order. */
static bool let_run (replay_state *s, int32_t step, error *err) {
  int64_t row = timed_row (s, step) - 2, n = s->walk.n_items;
  if (row < 0)
    return true;
  int32_t last = s->walk.place[WALK_OPS][s->rewritten->trace->n_ops - 1];
  return driver_ok (&s->driver, s->driver.event_synchronize (s->end[row * n + last]), "a step",
                    err);
}

/* A copy is waited for by an op of its step or the next, so where step - 2 has run its ops, step -
   3 is over with all its copies. */
static bool repeats (replay_state *s, int32_t step, bool *yes, error *err) {
  *yes = false;
  if ((step >= 3 && !read_row (s, step - 3, err)) || !replay_meet (s, err))
    return false;
  if (step >= 3 && step + 1 >= s->least_steps)
    replay_steady (s->team, step - 2, yes);
  return true;
}

/* The virtual clock goes on while all ranks have issued, and none issues: whichever thread is
   first, all find the same. */
static bool pace (replay_state *s, int32_t step, error *err) {
  bool enough = false;
  if (!replay_meet (s, err) || !let_run (s, step, err) ||
      (s->may_end_early ? !repeats (s, step, &enough, err) : !replay_meet (s, err)))
    return false;
  if (enough)
    s->steps = s->timed = step + 1;
  return true;
}

static bool issue_steps (replay_state *s, bool laden, error *err) {
  bool paced =
      s->options->emulated && s->options->clock == EMU_VIRTUAL && !laden && !s->options->races;
  for (int32_t step = 0; step < s->steps; step++) {
    if (timed_row (s, step) >= s->rows_made && !make_row (s, s->rows_made, err))
      return false;
    if (!replay_meet (s, err) || !issue_step (s, step, err) ||
        (s->ordered != NULL && !replay_see_calls (s, step, err)) ||
        (paced && !pace (s, step, err)) ||
        (s->calculation != NULL &&
         !calculate_pace (s->calculation, s->stream[WALK_OPS], step, err)))
      return false;
  }
  return replay_meet (s, err);
}

/* All that can happen without copies out happens, then those of all ranks begin. */
static bool let_out (replay_state *s, error *err) {
  return driver_ok (&s->driver, s->advance (), EMU_ADVANCE, err) && replay_meet (s, err) &&
         driver_ok (&s->driver, s->hold (s->stream[WALK_OUTS], 0), EMU_HOLD, err) &&
         replay_meet (s, err);
}

bool replay_steps (replay_state *s, bool laden, error *err) {
  if (!driver_ok (&s->driver, s->driver.event_record (s->zero, s->stream[WALK_OPS]),
                  "cuEventRecord", err) ||
      (laden && !driver_ok (&s->driver, s->hold (s->stream[WALK_OUTS], 1), EMU_HOLD, err)) ||
      !issue_steps (s, laden, err))
    return false;
  if ((laden && !let_out (s, err)) ||
      !driver_ok (&s->driver, s->driver.ctx_synchronize (), "a step", err))
    return false;
  for (int64_t row = 0; row < s->timed; row++)
    if (!read_row (s, row, err))
      return false;
  return true;
}

static void drop_events (const replay_state *s, CUevent *v, int64_t count) {
  for (int64_t i = 0; v != NULL && i < count; i++)
    if (v[i] != NULL)
      s->driver.event_destroy (v[i]);
}

void replay_put_away (replay_state *s) {
  if (s->driver.context == NULL)
    return;
  s->driver.ctx_set_current (s->driver.context);
  int64_t items = s->walk.n_items;
  s->driver.ctx_synchronize ();
  for (int32_t q = 0; s->stream != NULL && q < script_streams (s->rewritten->trace); q++)
    if (s->stream[q] != NULL)
      s->driver.stream_destroy (s->stream[q]);
  replay_drop_arrivals (s);
  drop_events (s, s->begin, s->rows_made * items);
  drop_events (s, s->end, s->rows_made * items);
  drop_events (s, s->ring, s->steps == s->timed ? 0 : 3 * items);
  if (s->zero != NULL)
    s->driver.event_destroy (s->zero);
  if (s->found != NULL)
    s->driver.mem_free_host (s->found);
  if (s->options->calculation != NULL)
    calculate_close (s->options->calculation);
  room_close (&s->room);
  driver_stop (&s->driver);
}
