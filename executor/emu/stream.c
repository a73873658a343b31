/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams: made, waited for, asked, put away. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

EXPORT CUresult emuAdvance (void);
EXPORT CUresult emuHold (CUstream handle, int on);
EXPORT CUresult emuStreamCopies (CUstream handle, int64_t *count);

stream *stream_add (machine *m, int32_t on, unsigned int flags) {
  assert (on >= 0);
  stream **moved = realloc (m->streams, (size_t)(m->n_streams + 1) * sizeof *moved);
  if (moved == NULL)
    return NULL;
  m->streams = moved;
  stream *s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->card = on;
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
  } mine[EMU_CARDS];
  int32_t on = contexts_card (m);
  if (mine[on].generation != m->generation) {
    mine[on].s = stream_add (m, on, CU_STREAM_DEFAULT);
    mine[on].generation = mine[on].s == NULL ? 0 : m->generation;
  }
  return mine[on].s;
}

stream *stream_of (machine *m, CUstream handle) {
  if (handle == NULL || handle == CU_STREAM_LEGACY)
    return m->streams[contexts_card (m)];
  if (handle == CU_STREAM_PER_THREAD)
    return own_stream (m);
  for (int32_t i = m->n_cards; i < m->n_streams; i++)
    if ((CUstream)m->streams[i] == handle)
      return m->streams[i];
  return NULL;
}

CUresult cuStreamCreateWithPriority (CUstream *out, unsigned int flags, int priority) {
  (void)priority; /* kernels do not take each other's time here, so there is nothing to prefer */
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = (CUstream)stream_add (m, contexts_card (m), flags);
  return machine_leave (m, *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuStreamCreate (CUstream *out, unsigned int flags) {
  return cuStreamCreateWithPriority (out, flags, 0);
}

void stream_remove (machine *m, stream *s) {
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
  command_drop (m, s->last);
  race_clock_free (s->seen);
  free (s->tips);
  free (s);
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
  if (s->capture != NULL)
    return machine_leave (m, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  stream_remove (m, s);
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

/* Nobody can wait for what is only captured. */
static bool is_captured (const machine *m, const stream *s) {
  return s->capture != NULL ? capture_any (m, true) : capture_is_implicit (m, s);
}

CUresult cuStreamSynchronize (CUstream handle) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
  if (is_captured (m, s))
    return machine_leave (m, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUresult r = CUDA_SUCCESS;
  /* To wait for the legacy stream is to wait for what it would join. */
  for (int32_t i = 0; s->legacy && i < m->n_streams && r == CUDA_SUCCESS; i++)
    if (m->streams[i]->card == s->card && (m->streams[i]->flags & CU_STREAM_NON_BLOCKING) == 0)
      r = stream_finish (m, m->streams[i]);
  if (r == CUDA_SUCCESS)
    r = stream_finish (m, s);
  return machine_leave (m, r);
}

CUresult cuStreamQuery (CUstream handle) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
  if (is_captured (m, s))
    return machine_leave (m, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (!command_asked (m, s->last))
    return machine_leave (m, CUDA_ERROR_NOT_READY);
  return machine_leave (m, m->stuck != CUDA_SUCCESS ? m->stuck : command_host_sees (m, s->seen));
}

CUresult cuStreamGetCtx (CUstream handle, CUcontext *out) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
  if (out != NULL)
    *out = (CUcontext)&m->cards[s->card];
  return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

static CUresult issue_host (CUstream handle, CUhostFn function, CUstreamCallback callback,
                            void *user) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
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
  ENTER (m, machine_enter (true, &refused));
  if (m->config.clock != EMU_VIRTUAL)
    return machine_leave (m, CUDA_ERROR_NOT_SUPPORTED);
  while (virtual_step (m))
    ;
  machine_catch_up (m);
  return machine_leave (m, m->stuck);
}

CUresult emuHold (CUstream handle, int on) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
  s->held = on != 0;
  pthread_cond_broadcast (&m->changed);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult emuStreamCopies (CUstream handle, int64_t *count) {
  stream *s;
  ENTER (m, enter_stream (handle, &s, &refused));
  *count = s->copies;
  return machine_leave (m, CUDA_SUCCESS);
}
