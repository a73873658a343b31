/* Streams and events: a plan's program issued step after step, without the host waiting inside. */
#include "executor/replay_run.h"

#include <string.h>

static bool make_events (replay_state *s, CUevent **out, int64_t count, unsigned int flags,
                         arena *a, error *err) {
  *out = NEW (a, count, CUevent, err);
  if (*out == NULL)
    return false;
  for (int64_t i = 0; i < count; i++)
    if (!driver_ok (&s->driver, s->driver.event_create (&(*out)[i], flags), "cuEventCreate", err))
      return false;
  return true;
}

bool replay_prepare (replay_state *s, arena *a, error *err) {
  int64_t items = s->program.n_items;
  for (int q = 0; q < QUEUES; q++)
    if (!driver_ok (&s->driver, s->driver.stream_create (&s->stream[q], CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate", err))
      return false;
  s->times = NEW (a, 2 * s->timed * items, int64_t, err);
  return s->times != NULL &&
         make_events (s, &s->begin, s->timed * items, CU_EVENT_DEFAULT, a, err) &&
         make_events (s, &s->end, s->timed * items, CU_EVENT_DEFAULT, a, err) &&
         (s->steps == s->timed ||
          make_events (s, &s->ring, 3 * items, CU_EVENT_DISABLE_TIMING, a, err)) &&
         driver_ok (&s->driver, s->driver.event_create (&s->zero, CU_EVENT_DEFAULT),
                    "cuEventCreate", err);
}

/* The last steps are the timed ones. */
static int64_t timed_row (const replay_state *s, int32_t step) {
  return step - (s->steps - s->timed);
}

static CUevent end_of (const replay_state *s, int32_t step, int32_t place) {
  int64_t row = timed_row (s, step), n = s->program.n_items;
  return row >= 0 ? s->end[row * n + place] : s->ring[step % 3 * n + place];
}

static bool wait_for_all (replay_state *s, const program_item *i, int32_t step, error *err) {
  for (int32_t k = i->first_wait; k < i->first_wait + i->n_waits; k++) {
    const program_wait *w = &s->program.waits[k];
    if (step < w->lag)
      continue; /* of a step before the first: it has ended */
    if (++s->waits == s->options->lost_wait)
      continue;
    CUevent v = end_of (s, step - w->lag, s->program.place[w->queue][w->position]);
    if (!driver_ok (&s->driver, s->driver.stream_wait_event (s->stream[i->queue], v, 0),
                    "cuStreamWaitEvent", err))
      return false;
  }
  return true;
}

static bool run_op (replay_state *s, int32_t index, int32_t step, error *err) {
  const op *o = &s->rewritten->trace->ops[index];
  if (s->calculation != NULL)
    return calculate_launch (s->calculation, s->stream[QUEUE_OPS], index, step, err);
  if (!s->sees_bytes)
    return kernels_wait (&s->driver, &s->kernels, s->stream[QUEUE_OPS], o->ns, err);
  kernel_op k = { .operands = s->operands + s->op_offset[index],
                  .count = s->op_offset[index + 1] - s->op_offset[index],
                  .step = s->base + step,
                  .ns = o->ns,
                  .op = index,
                  .found = s->found };
  return kernels_touch (&s->driver, &s->kernels, s->stream[QUEUE_OPS], &k, err);
}

static bool run_copy (replay_state *s, int32_t index, bool out, error *err) {
  const move *m = &s->plan->moves[index];
  const room *r = &s->room;
  int64_t bytes =
      unit_part_bytes (&r->units.at[m->unit], s->plan->placement.granule_bytes, m->part, m->of);
  char *host = r->host + m->host_offset;
  if (++s->copies == s->options->lost_copy)
    return true;
  if (out) {
    CUdeviceptr from = r->stay_at[room_stay (r, m->unit, m->part, m->out_after)];
    return driver_ok (&s->driver,
                      s->driver.copy_out_async (host, from, (size_t)bytes, s->stream[QUEUE_OUTS]),
                      "cuMemcpyDtoHAsync", err);
  }
  CUdeviceptr to = r->stay_at[r->move_stay[index]];
  return driver_ok (&s->driver,
                    s->driver.copy_in_async (to, host, (size_t)bytes, s->stream[QUEUE_INS]),
                    "cuMemcpyHtoDAsync", err);
}

static bool record (replay_state *s, CUevent v, program_queue q, error *err) {
  return driver_ok (&s->driver, s->driver.event_record (v, s->stream[q]), "cuEventRecord", err);
}

static bool issue (replay_state *s, int32_t place, int32_t step, error *err) {
  const program_item *i = &s->program.items[place];
  int64_t row = timed_row (s, step), n = s->program.n_items;
  int64_t gap = i->queue == QUEUE_OPS ? s->rewritten->trace->ops[i->index].gap_ns : 0;
  if (gap > 0 && !kernels_wait (&s->driver, &s->kernels, s->stream[QUEUE_OPS], gap, err))
    return false;
  if (!wait_for_all (s, i, step, err) ||
      (row >= 0 && !record (s, s->begin[row * n + place], i->queue, err)))
    return false;
  if (i->queue == QUEUE_OPS ? !run_op (s, i->index, step, err)
                            : !run_copy (s, i->index, i->queue == QUEUE_OUTS, err))
    return false;
  if (row < 0 && !s->program.awaited[i->queue][i->position])
    return true;
  return record (s, end_of (s, step, place), i->queue, err);
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

bool replay_steps (replay_state *s, bool laden, error *err) {
  int32_t n = s->program.n_items;
  if (!record (s, s->zero, QUEUE_OPS, err) ||
      (laden && !driver_ok (&s->driver, s->hold (s->stream[QUEUE_OUTS], 1), EMU_HOLD, err)))
    return false;
  for (int32_t step = 0; step < s->steps; step++) {
    for (int32_t place = 0; place < n; place++)
      if (!issue (s, place, step, err))
        return false;
    if (s->calculation != NULL && !calculate_pace (s->calculation, s->stream[QUEUE_OPS], step, err))
      return false;
  }
  if (laden && (!driver_ok (&s->driver, s->advance (), EMU_ADVANCE, err) ||
                !driver_ok (&s->driver, s->hold (s->stream[QUEUE_OUTS], 0), EMU_HOLD, err)))
    return false;
  if (!driver_ok (&s->driver, s->driver.ctx_synchronize (), "a step", err))
    return false;
  for (int64_t i = 0; i < (int64_t)s->timed * n; i++)
    if (!time_of (s, s->begin[i], &s->times[2 * i], err) ||
        !time_of (s, s->end[i], &s->times[2 * i + 1], err))
      return false;
  return true;
}

static void drop_events (const replay_state *s, CUevent *v, int64_t count) {
  for (int64_t i = 0; v != NULL && i < count && v[i] != NULL; i++)
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
  if (s->options->calculation != NULL)
    calculate_close (s->options->calculation);
  room_close (&s->room);
  driver_stop (&s->driver);
}
