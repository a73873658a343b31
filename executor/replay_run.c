/* Streams and events: a plan's program issued step after step, without the host waiting inside. */
#include "executor/replay_run.h"

#include <string.h>

static bool make_event (replay_state *s, CUevent *out, unsigned int flags, error *err) {
  return driver_ok (&s->driver, s->driver.event_create (out, flags), "cuEventCreate", err);
}

static bool make_events (replay_state *s, CUevent **out, int64_t count, unsigned int flags,
                         arena *a, error *err) {
  *out = NEW (a, count, CUevent, err);
  if (*out == NULL)
    return false;
  for (int64_t i = 0; i < count; i++)
    if (!make_event (s, &(*out)[i], flags, err))
      return false;
  return true;
}

static int32_t begins_with (const replay_state *s, int32_t place) {
  return script_begins_with (&s->program, s->rewritten, place);
}

static bool make_begins (replay_state *s, arena *a, error *err) {
  int64_t n = s->program.n_items;
  s->begin = NEW (a, s->timed * n, CUevent, err);
  if (s->begin == NULL)
    return false;
  for (int32_t place = 0; place < n; place++)
    for (int64_t row = 0; row < s->timed && begins_with (s, place) < 0; row++)
      if (!make_event (s, &s->begin[row * n + place], CU_EVENT_DEFAULT, err))
        return false;
  return true;
}

static bool make_scripts (replay_state *s, arena *a, error *err) {
  script_request q = { .program = &s->program,
                       .rewritten = s->rewritten,
                       .plan = s->plan,
                       .room = &s->room,
                       .kernels = &s->kernels,
                       .operands = s->operands,
                       .op_offset = s->op_offset,
                       .found = s->found,
                       .step = &s->step };
  if (s->steps > s->timed && !script_make (&q, a, &s->plain, err))
    return false;
  q.timed = true;
  return script_make (&q, a, &s->timed_script, err);
}

bool replay_prepare (replay_state *s, arena *a, error *err) {
  int64_t items = s->program.n_items;
  for (int q = 0; q < QUEUES; q++)
    if (!driver_ok (&s->driver, s->driver.stream_create (&s->stream[q], CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate", err))
      return false;
  if (s->sees_bytes && !replay_operands (s, a, err))
    return false;
  s->times = NEW (a, 2 * s->timed * items, int64_t, err);
  return s->times != NULL && make_scripts (s, a, err) && make_begins (s, a, err) &&
         make_events (s, &s->end, s->timed * items, CU_EVENT_DEFAULT, a, err) &&
         (s->steps == s->timed ||
          make_events (s, &s->ring, 3 * items, CU_EVENT_DISABLE_TIMING, a, err)) &&
         make_event (s, &s->zero, CU_EVENT_DEFAULT, err);
}

/* The last steps are the timed ones. */
static int64_t timed_row (const replay_state *s, int32_t step) {
  return step - (s->steps - s->timed);
}

/* The events behind the items of a step that has begun. */
static const CUevent *ends_of (const replay_state *s, int32_t step) {
  int64_t row = timed_row (s, step), n = s->program.n_items;
  return row >= 0 ? s->end + row * n : s->ring + step % 3 * n;
}

static const char *const call_names[] = {
  [SCRIPT_LAUNCH] = "cuLaunchKernel", [SCRIPT_WAIT] = "cuStreamWaitEvent",
  [SCRIPT_BEGIN] = "cuEventRecord",   [SCRIPT_END] = "cuEventRecord",
  [SCRIPT_OUT] = "cuMemcpyDtoHAsync", [SCRIPT_IN] = "cuMemcpyHtoDAsync",
};

static CUresult issue_launches (const driver *d, CUstream on, kernel_launch *l, int32_t count) {
  for (kernel_launch *end = l + count; l < end; l++) {
    CUresult r = d->launch (l->function, l->blocks, 1, 1, l->threads, 1, 1, 0, on, l->params, NULL);
    if (r != CUDA_SUCCESS)
      return r;
  }
  return CUDA_SUCCESS;
}

static CUresult issue_copy (const replay_state *s, const script_call *c, const script_copy *x) {
  CUstream on = s->stream[c->queue];
  CUresult r = s->tag == NULL ? CUDA_SUCCESS : s->tag (x->owner);
  if (r == CUDA_SUCCESS)
    r = c->kind == SCRIPT_OUT ? s->driver.copy_out_async (x->host, x->device, x->bytes, on)
                              : s->driver.copy_in_async (x->device, x->host, x->bytes, on);
  return r != CUDA_SUCCESS || s->tag == NULL ? r : s->tag (0);
}

static bool issue_step (replay_state *s, int32_t step, error *err) {
  int64_t row = timed_row (s, step);
  const script *p = row < 0 ? &s->plain : &s->timed_script;
  const CUevent *begins = row < 0 ? NULL : s->begin + row * s->program.n_items, *ends[3];
  for (int32_t lag = 0; lag < 3; lag++)
    ends[lag] = step < lag ? NULL : ends_of (s, step - lag);
  s->step = s->base + step;
  for (const script_call *c = p->calls; c < p->calls + p->n_calls; c++) {
    CUstream on = s->stream[c->queue];
    CUresult r = CUDA_SUCCESS;
    switch (c->kind) {
    case SCRIPT_LAUNCH:
      r = issue_launches (&s->driver, on, p->launches + c->first, c->count);
      break;
    case SCRIPT_WAIT:
      /* of a step before the first: it has ended */
      r = ends[c->lag] == NULL ? CUDA_SUCCESS
                               : s->driver.stream_wait_event (on, ends[c->lag][c->place], 0);
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

static bool read_times (replay_state *s, error *err) {
  int64_t n = s->program.n_items;
  for (int64_t row = 0; row < s->timed; row++)
    for (int32_t place = 0; place < n; place++) {
      int64_t *to = &s->times[2 * (row * n + place)];
      int32_t before = begins_with (s, place);
      CUevent begin = before < 0 ? s->begin[row * n + place] : s->end[row * n + before];
      if (!time_of (s, begin, &to[0], err) || !time_of (s, s->end[row * n + place], &to[1], err))
        return false;
    }
  return true;
}

bool replay_steps (replay_state *s, bool laden, error *err) {
  if (!driver_ok (&s->driver, s->driver.event_record (s->zero, s->stream[QUEUE_OPS]),
                  "cuEventRecord", err) ||
      (laden && !driver_ok (&s->driver, s->hold (s->stream[QUEUE_OUTS], 1), EMU_HOLD, err)))
    return false;
  for (int32_t step = 0; step < s->steps; step++)
    if (!issue_step (s, step, err))
      return false;
  if (laden && (!driver_ok (&s->driver, s->advance (), EMU_ADVANCE, err) ||
                !driver_ok (&s->driver, s->hold (s->stream[QUEUE_OUTS], 0), EMU_HOLD, err)))
    return false;
  return driver_ok (&s->driver, s->driver.ctx_synchronize (), "a step", err) && read_times (s, err);
}

static void drop_events (const replay_state *s, CUevent *v, int64_t count) {
  for (int64_t i = 0; v != NULL && i < count; i++)
    if (v[i] != NULL)
      s->driver.event_destroy (v[i]);
}

void replay_put_away (replay_state *s) {
  if (s->driver.context == NULL)
    return;
  int64_t items = s->program.n_items;
  s->driver.ctx_synchronize ();
  for (int q = 0; q < QUEUES; q++)
    if (s->stream[q] != NULL)
      s->driver.stream_destroy (s->stream[q]);
  drop_events (s, s->begin, s->timed * items);
  drop_events (s, s->end, s->timed * items);
  drop_events (s, s->ring, 3 * items);
  if (s->zero != NULL)
    s->driver.event_destroy (s->zero);
  if (s->found != NULL)
    s->driver.mem_free_host (s->found);
  room_close (&s->room);
  driver_stop (&s->driver);
}
