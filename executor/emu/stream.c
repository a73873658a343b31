/* Streams, events, and how a command gets from a call to its stream. */
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

EXPORT CUresult emuEventTime (CUevent event, int64_t *ns);
EXPORT CUresult emuAdvance (void);
EXPORT CUresult emuHold (CUstream handle, int on);

void command_hold (command *c) {
  c->refs++;
}

void command_drop (command *c) {
  if (--c->refs > 0)
    return;
  if (c->kind == COMMAND_WAIT)
    command_drop (c->as.target);
  if (c->kind == COMMAND_KERNEL)
    free (c->as.run.params);
  if (c->kind == COMMAND_COPY)
    free (c->as.copy.staged);
  race_clock_free (c->seen);
  free (c->touches);
  free (c);
}

command *command_new (machine *m, stream *s, command_kind kind) {
  command *c = calloc (1, sizeof *c);
  if (c == NULL)
    return NULL;
  c->kind = (uint8_t)kind;
  c->stream = s;
  c->refs = 1; /* the queue's */
  c->issued_ns = machine_now (m);
  return c;
}

static void queue (stream *s, command *c) {
  c->sequence = ++s->issued;
  if (s->tail != NULL)
    s->tail->next = c;
  else
    s->head = c;
  s->tail = c;
  if (s->last != NULL)
    command_drop (s->last);
  command_hold (c);
  s->last = c;
}

static bool queue_wait (machine *m, stream *s, command *target) {
  command *w = command_new (m, s, COMMAND_WAIT);
  if (w == NULL)
    return false;
  w->as.target = target;
  command_hold (target);
  queue (s, w);
  return true;
}

/* What a legacy stream joins: it waits for all blocking ones, and they for it. */
static bool join_legacy (machine *m, stream *s) {
  if ((s->flags & CU_STREAM_NON_BLOCKING) != 0)
    return true;
  for (int32_t i = 0; i < m->n_streams; i++) {
    stream *o = m->streams[i];
    if (o == s || o->last == NULL || (o->flags & CU_STREAM_NON_BLOCKING) != 0)
      continue;
    if (!s->legacy && !o->legacy)
      continue;
    if (!o->last->done && !queue_wait (m, s, o->last))
      return false;
    if (m->races != NULL && !race_clock_join (s->seen, o->seen))
      return false;
  }
  return true;
}

typedef struct watched {
  machine *m;
  command *c;
  bool failed;
} watched;

static const char *name_of (const command *c) {
  static const char *const copies[] = { "copy to host", "copy to device",
                                        "copy within the device" };
  switch ((command_kind)c->kind) {
  case COMMAND_KERNEL:
    return c->as.run.kernel->told.name;
  case COMMAND_COPY:
    return copies[c->direction];
  case COMMAND_SET:
    return "memset";
  case COMMAND_FREE:
    return "free";
  default:
    return "allocation";
  }
}

static void watch_piece (void *context, int64_t place, int64_t bytes, bool writes) {
  watched *w = context;
  race_access by = { w->c->stream->actor, w->c->sequence, name_of (w->c) };
  if (!race_touch (w->m->races, w->c->stream->seen, by, place, bytes, writes))
    w->failed = true;
}

static bool watch (machine *m, command *c) {
  stream *s = c->stream;
  host *h = machine_host (m);
  if (h == NULL || !race_clock_join (s->seen, h->seen) ||
      !race_clock_set (s->seen, s->actor, c->sequence))
    return false;
  if (c->kind == COMMAND_WAIT && !race_clock_join (s->seen, c->as.target->seen))
    return false;
  if (c->kind == COMMAND_RECORD) {
    c->seen = race_clock_new ();
    if (c->seen == NULL || !race_clock_join (c->seen, s->seen))
      return false;
  }
  watched w = { m, c, false };
  for (int32_t i = 0; i < c->n_touches; i++)
    memory_places (m, &c->touches[i], watch_piece, &w);
  return !w.failed;
}

CUresult command_issue (machine *m, command *c) {
  if (!join_legacy (m, c->stream)) {
    command_drop (c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  queue (c->stream, c);
  if (m->races != NULL && !watch (m, c))
    machine_fail (m, CUDA_ERROR_OUT_OF_MEMORY);
  if (m->config.clock == EMU_REAL)
    pthread_cond_broadcast (&m->changed);
  return m->stuck;
}

void command_done (machine *m, command *c) {
  stream *s = c->stream;
  c->end_ns = machine_now (m);
  c->done = true;
  s->head = c->next;
  if (s->head == NULL)
    s->tail = NULL;
  command_drop (c);
  if (m->config.clock == EMU_REAL)
    pthread_cond_broadcast (&m->changed);
}

CUresult command_finish (machine *m, command *c) {
  command_hold (c);
  bool hangs = false;
  while (!c->done && !hangs)
    if (m->config.clock == EMU_VIRTUAL)
      hangs = !virtual_step (m);
    else
      pthread_cond_wait (&m->changed, &m->lock);
  command_drop (c);
  return m->stuck != CUDA_SUCCESS ? m->stuck : hangs ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
}

static CUresult host_sees (machine *m, const race_clock *seen) {
  if (m->races == NULL)
    return CUDA_SUCCESS;
  host *h = machine_host (m);
  return h != NULL && race_clock_join (h->seen, seen) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult stream_finish (machine *m, stream *s) {
  CUresult r = s->last == NULL ? m->stuck : command_finish (m, s->last);
  return r == CUDA_SUCCESS ? host_sees (m, s->seen) : r;
}

/* ---- streams ---- */

stream *stream_add (machine *m, unsigned int flags) {
  stream **moved = realloc (m->streams, (size_t)(m->n_streams + 1) * sizeof *moved);
  if (moved == NULL)
    return NULL;
  m->streams = moved;
  stream *s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->flags = flags;
  s->actor = m->n_actors++;
  if (m->races != NULL || m->config.races)
    s->seen = race_clock_new ();
  m->streams[m->n_streams] = s;
  if (m->config.clock == EMU_REAL) {
    void **both = malloc (2 * sizeof *both);
    if (both != NULL) {
      both[0] = m;
      both[1] = s;
      s->has_thread = pthread_create (&s->thread, NULL, real_work, both) == 0;
    }
  }
  if ((m->config.races && s->seen == NULL) || (m->config.clock == EMU_REAL && !s->has_thread)) {
    race_clock_free (s->seen);
    free (s);
    return NULL;
  }
  m->n_streams++;
  return s;
}

static stream *own_stream (machine *m) {
  static _Thread_local struct {
    uint32_t generation;
    stream *s;
  } mine;
  if (mine.generation != m->generation) {
    mine.s = stream_add (m, CU_STREAM_DEFAULT);
    mine.generation = mine.s == NULL ? 0 : m->generation;
  }
  return mine.s;
}

stream *stream_of (machine *m, CUstream handle) {
  if (handle == NULL || handle == CU_STREAM_LEGACY)
    return m->streams[0];
  if (handle == CU_STREAM_PER_THREAD)
    return own_stream (m);
  for (int32_t i = 1; i < m->n_streams; i++)
    if ((CUstream)m->streams[i] == handle)
      return m->streams[i];
  return NULL;
}

CUresult cuStreamCreateWithPriority (CUstream *out, unsigned int flags, int priority) {
  (void)priority; /* kernels do not take each other's time here, so there is nothing to prefer */
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = (CUstream)stream_add (m, flags);
  return machine_leave (m, *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuStreamCreate (CUstream *out, unsigned int flags) {
  return cuStreamCreateWithPriority (out, flags, 0);
}

/* Returns once the work is done: a driver returns at once and finishes it in the background, which
   a program cannot tell but by the clock. */
CUresult cuStreamDestroy_v2 (CUstream handle) {
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  stream *s = handle == NULL ? NULL : stream_of (m, handle);
  if (s == NULL || s->legacy || handle == CU_STREAM_PER_THREAD)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (s->last != NULL)
    (void)command_finish (m, s->last);
  s->closing = true;
  pthread_cond_broadcast (&m->changed);
  if (s->has_thread) {
    pthread_mutex_unlock (&m->lock);
    pthread_join (s->thread, NULL);
    pthread_mutex_lock (&m->lock);
  }
  while (s->head != NULL)
    command_done (m, s->head);
  int32_t i = 0;
  while (m->streams[i] != s)
    i++;
  memmove (m->streams + i, m->streams + i + 1, (size_t)(m->n_streams - i - 1) * sizeof (stream *));
  m->n_streams--;
  if (s->last != NULL)
    command_drop (s->last);
  race_clock_free (s->seen);
  free (s);
  return machine_leave (m, CUDA_SUCCESS);
}

/* Enters with a stream; NULL and the reason otherwise. */
static machine *enter_stream (CUstream handle, stream **s, CUresult *refused) {
  machine *m = machine_enter (true, refused);
  if (m == NULL)
    return NULL;
  *s = stream_of (m, handle);
  if (*s != NULL)
    return m;
  *refused = CUDA_ERROR_INVALID_HANDLE;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

CUresult cuStreamSynchronize (CUstream handle) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  CUresult r = CUDA_SUCCESS;
  /* To wait for the legacy stream is to wait for what it would join. */
  for (int32_t i = 0; s->legacy && i < m->n_streams && r == CUDA_SUCCESS; i++)
    if ((m->streams[i]->flags & CU_STREAM_NON_BLOCKING) == 0)
      r = stream_finish (m, m->streams[i]);
  if (r == CUDA_SUCCESS)
    r = stream_finish (m, s);
  return machine_leave (m, r);
}

/* A question lets the virtual clock go on by one step, or a loop of questions would never end. */
static bool is_done (machine *m, const command *c) {
  if (c == NULL || c->done)
    return true;
  if (m->config.clock == EMU_VIRTUAL)
    (void)virtual_step (m);
  return c->done;
}

CUresult cuStreamQuery (CUstream handle) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  if (!is_done (m, s->last))
    return machine_leave (m, CUDA_ERROR_NOT_READY);
  return machine_leave (m, m->stuck != CUDA_SUCCESS ? m->stuck : host_sees (m, s->seen));
}

CUresult cuStreamGetCtx (CUstream handle, CUcontext *out) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  if (out != NULL)
    *out = (CUcontext)m;
  return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing (CUstream handle, CUstreamCaptureStatus *out) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  if (out != NULL)
    *out = CU_STREAM_CAPTURE_STATUS_NONE;
  return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

static CUresult issue_host (CUstream handle, CUhostFn function, CUstreamCallback callback,
                            void *user) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  command *c = function == NULL && callback == NULL ? NULL : command_new (m, s, COMMAND_HOST);
  if (c == NULL)
    return machine_leave (m, function == NULL && callback == NULL ? CUDA_ERROR_INVALID_VALUE
                                                                  : CUDA_ERROR_OUT_OF_MEMORY);
  c->as.host.function = function;
  c->as.host.callback = callback;
  c->as.host.user = user;
  return machine_leave (m, command_issue (m, c));
}

CUresult cuLaunchHostFunc (CUstream handle, CUhostFn function, void *user) {
  return issue_host (handle, function, NULL, user);
}

CUresult cuStreamAddCallback (CUstream handle, CUstreamCallback callback, void *user,
                              unsigned int flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : issue_host (handle, NULL, callback, user);
}

CUresult emuAdvance (void) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (m->config.clock != EMU_VIRTUAL)
    return machine_leave (m, CUDA_ERROR_NOT_SUPPORTED);
  while (virtual_step (m))
    ;
  return machine_leave (m, m->stuck);
}

CUresult emuHold (CUstream handle, int on) {
  CUresult refused;
  stream *s;
  machine *m = enter_stream (handle, &s, &refused);
  if (m == NULL)
    return refused;
  s->held = on != 0;
  pthread_cond_broadcast (&m->changed);
  return machine_leave (m, CUDA_SUCCESS);
}

/* ---- events: a handle is a place and a generation, so that a destroyed one is known as such ----
 */

static event *event_of (machine *m, CUevent handle) {
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
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
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
  if (e->recorded != NULL)
    command_drop (e->recorded);
  e->recorded = NULL;
  e->live = false;
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

CUresult cuEventRecord (CUevent handle, CUstream on) {
  CUresult refused;
  event *e;
  machine *m = enter_event (handle, &e, &refused);
  if (m == NULL)
    return refused;
  stream *s = stream_of (m, on);
  command *c = s == NULL ? NULL : command_new (m, s, COMMAND_RECORD);
  if (c == NULL)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OUT_OF_MEMORY);
  command_hold (c);
  if (e->recorded != NULL)
    command_drop (e->recorded);
  e->recorded = c;
  return machine_leave (m, command_issue (m, c));
}

CUresult cuStreamWaitEvent (CUstream handle, CUevent awaited, unsigned int flags) {
  CUresult refused;
  event *e;
  machine *m = enter_event (awaited, &e, &refused);
  if (m == NULL)
    return refused;
  stream *s = stream_of (m, handle);
  if (s == NULL || flags > 1)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE);
  if (e->recorded == NULL)
    return machine_leave (m, CUDA_SUCCESS);
  command *c = command_new (m, s, COMMAND_WAIT);
  if (c == NULL)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  c->as.target = e->recorded;
  command_hold (e->recorded);
  return machine_leave (m, command_issue (m, c));
}

CUresult cuEventQuery (CUevent handle) {
  CUresult refused;
  event *e;
  machine *m = enter_event (handle, &e, &refused);
  if (m == NULL)
    return refused;
  if (!is_done (m, e->recorded))
    return machine_leave (m, CUDA_ERROR_NOT_READY);
  if (m->stuck != CUDA_SUCCESS)
    return machine_leave (m, m->stuck);
  return machine_leave (m, e->recorded == NULL ? CUDA_SUCCESS : host_sees (m, e->recorded->seen));
}

CUresult cuEventSynchronize (CUevent handle) {
  CUresult refused;
  event *e;
  machine *m = enter_event (handle, &e, &refused);
  if (m == NULL)
    return refused;
  command *c = e->recorded;
  if (c == NULL)
    return machine_leave (m, CUDA_SUCCESS);
  command_hold (c);
  CUresult r = command_finish (m, c);
  if (r == CUDA_SUCCESS)
    r = host_sees (m, c->seen);
  command_drop (c);
  return machine_leave (m, r);
}

CUresult cuEventElapsedTime_v2 (float *out, CUevent from, CUevent to) {
  CUresult refused;
  event *a;
  machine *m = enter_event (from, &a, &refused);
  if (m == NULL)
    return refused;
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
  CUresult refused;
  event *e;
  machine *m = enter_event (handle, &e, &refused);
  if (m == NULL)
    return refused;
  if (e->recorded == NULL || !e->recorded->done)
    return machine_leave (m,
                          e->recorded == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_READY);
  *ns = e->recorded->end_ns;
  return machine_leave (m, CUDA_SUCCESS);
}
