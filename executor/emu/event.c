/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events: a handle is a place and a generation, so that a destroyed one is known as such. */
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

EXPORT CUresult emuEventTime (CUevent event, int64_t *ns);
EXPORT CUresult emuOrdered (CUevent first, CUevent then, int *yes);

event *event_of (machine *m, CUevent handle) {
  uint64_t bits = (uintptr_t)handle;
  uint32_t index = (uint32_t)bits - 1;
  if (handle == NULL || index >= (uint32_t)m->n_events)
    return NULL;
  event *e = &m->events[index];
  return e->live && e->generation == (uint32_t)(bits >> 32) ? e : NULL;
}

static int32_t free_event (machine *m) {
  /* Events are mostly made at the start and live long, so the first free place is near the end. */
  for (int32_t i = m->n_events - 1; i >= 0 && i >= m->n_events - 64; i--)
    if (!m->events[i].live)
      return i;
  if (m->n_events == m->events_capacity) {
    int64_t capacity = m->events_capacity == 0 ? 64 : 2 * m->events_capacity;
    event *moved = realloc (m->events, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return -1;
    memset (moved + m->n_events, 0, (size_t)(capacity - m->n_events) * sizeof *moved);
    m->events = moved;
    m->events_capacity = capacity;
  }
  return m->n_events++;
}

CUresult cuEventCreate (CUevent *out, unsigned int flags) {
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL || flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  int32_t i = free_event (m);
  if (i < 0)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  event *e = &m->events[i];
  e->generation++;
  e->live = true;
  e->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  e->recorded = NULL;
  e->captured = 0;
  *out = (CUevent)(uintptr_t)((uint64_t)e->generation << 32 | (uint32_t)(i + 1));
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2 (CUevent handle) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  event *e = event_of (m, handle);
  if (e == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  command_drop (m, e->recorded);
  e->recorded = NULL;
  e->live = false;
  free (e->tips);
  e->tips = NULL;
  e->n_tips = 0;
  return machine_leave (m, CUDA_SUCCESS);
}

static machine *enter_event (CUevent handle, event **e, CUresult *refused) {
  machine *m = machine_enter (true, refused);
  if (m == NULL)
    return NULL;
  *e = event_of (m, handle);
  if (*e != NULL)
    return m;
  *refused = CUDA_ERROR_INVALID_HANDLE;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

static CUresult record (machine *m, event *e, stream *s) {
  if (s->capture != NULL)
    return capture_record (m, s, e);
  command *c = command_new (m, s, COMMAND_RECORD);
  if (c == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  command_hold (c);
  command_drop (m, e->recorded);
  e->recorded = c;
  e->captured = 0;
  return command_issue (m, c);
}

static CUresult await (machine *m, const event *e, stream *s) {
  if (s->capture != NULL || e->captured != 0)
    return capture_wait (m, s, e);
  machine_spend (m, m->config.event_ns / 2);
  return e->recorded == NULL ? CUDA_SUCCESS : command_await (m, s, e->recorded);
}

/* A destroyed one is nobody's wait. */
CUresult event_record_on (machine *m, CUevent handle, stream *s) {
  event *e = event_of (m, handle);
  return e == NULL ? CUDA_SUCCESS : record (m, e, s);
}

CUresult event_wait_on (machine *m, CUevent handle, stream *s) {
  const event *e = event_of (m, handle);
  return e == NULL ? CUDA_SUCCESS : await (m, e, s);
}

CUresult cuEventRecord (CUevent handle, CUstream on) {
  event *e;
  ENTER (m, enter_event (handle, &e, &refused));
  stream *s = stream_of (m, on);
  return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : record (m, e, s));
}

CUresult cuStreamWaitEvent (CUstream handle, CUevent awaited, unsigned int flags) {
  event *e;
  ENTER (m, enter_event (awaited, &e, &refused));
  stream *s = stream_of (m, handle);
  if (s == NULL || flags > 1)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE);
  return machine_leave (m, await (m, e, s));
}

/* Enters for a question to the host about an event, which a capture forbids. */
static machine *enter_asked (CUevent handle, event **e, CUresult *refused) {
  machine *m = machine_enter_uncaptured (refused);
  if (m == NULL)
    return NULL;
  *e = event_of (m, handle);
  if (*e != NULL && (*e)->captured == 0)
    return m;
  *refused = *e == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_CAPTURED_EVENT;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

CUresult cuEventQuery (CUevent handle) {
  event *e;
  ENTER (m, enter_asked (handle, &e, &refused));
  if (!command_asked (m, e->recorded))
    return machine_leave (m, CUDA_ERROR_NOT_READY);
  if (m->stuck != CUDA_SUCCESS)
    return machine_leave (m, m->stuck);
  return machine_leave (m, e->recorded == NULL ? CUDA_SUCCESS
                                               : command_host_sees (m, e->recorded->seen));
}

CUresult cuEventSynchronize (CUevent handle) {
  event *e;
  ENTER (m, enter_asked (handle, &e, &refused));
  command *c = e->recorded;
  if (c == NULL)
    return machine_leave (m, CUDA_SUCCESS);
  command_hold (c);
  CUresult r = command_finish (m, c);
  if (r == CUDA_SUCCESS)
    r = command_host_sees (m, c->seen);
  command_drop (m, c);
  return machine_leave (m, r);
}

CUresult cuEventElapsedTime_v2 (float *out, CUevent from, CUevent to) {
  event *a;
  ENTER (m, enter_event (from, &a, &refused));
  event *b = event_of (m, to);
  CUresult r = out == NULL                                  ? CUDA_ERROR_INVALID_VALUE
               : b == NULL || !a->timed || !b->timed        ? CUDA_ERROR_INVALID_HANDLE
               : a->recorded == NULL || b->recorded == NULL ? CUDA_ERROR_INVALID_HANDLE
               : !a->recorded->done || !b->recorded->done   ? CUDA_ERROR_NOT_READY
                                                            : CUDA_SUCCESS;
  if (r == CUDA_SUCCESS)
    *out = (float)((double)(b->recorded->end_ns - a->recorded->end_ns) / 1e6);
  return machine_leave (m, r);
}

CUresult emuEventTime (CUevent handle, int64_t *ns) {
  event *e;
  ENTER (m, enter_event (handle, &e, &refused));
  if (e->recorded == NULL || !e->recorded->done)
    return machine_leave (m,
                          e->recorded == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_READY);
  *ns = e->recorded->end_ns;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult emuOrdered (CUevent first, CUevent then, int *yes) {
  event *a;
  ENTER (m, enter_event (first, &a, &refused));
  const event *b = event_of (m, then);
  const command *x = a->recorded, *y = b == NULL ? NULL : b->recorded;
  if (x == NULL || y == NULL || x->seen == NULL || y->seen == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  *yes = race_clock_knows (y->seen, x->seen);
  return machine_leave (m, CUDA_SUCCESS);
}
