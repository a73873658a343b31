/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/order.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/again.h"
#include "executor/shim/capture.h"
#include "executor/shim/record.h"
#include "executor/shim/wraps.h"

enum { MARKED = 4096, EDGES = 1 << 15, WAITS = 8 };

typedef struct waits {
  int64_t behind[WAITS];
  int32_t n;
} waits;

/* An event's last record: behind what it is. */
typedef struct mark {
  CUevent event;
  waits at;
  int64_t known[STREAMS]; /* the newest beat of each stream that it is behind; -1: none */
} mark;

struct order {
  mark marked[MARKED];             /* two of one row: the newer */
  int64_t known[STREAMS][STREAMS]; /* of what comes next in each stream, by the program's events */
  int64_t last[STREAMS];           /* the newest beat of each stream; -1: none */
  int64_t told[STREAMS];           /* up to there the host has waited for the stream */
  waits stream[STREAMS], host;
  bool device;             /* the host's waits were for all there is */
  order_edge edges[EDGES]; /* the newest */
  int64_t n_edges;
};

order *order_new (void) {
  order *o = calloc (1, sizeof *o);
  for (int i = 0; o != NULL && i < STREAMS; i++)
    order_stream_ended (o, i);
  return o;
}

void order_stream_ended (order *o, int32_t bit) {
  o->last[bit] = o->told[bit] = -1;
  o->stream[bit].n = 0;
  for (int i = 0; i < STREAMS; i++)
    o->known[bit][i] = -1;
}

bool order_is_behind (const order *o, int32_t bit, int32_t of, int64_t beat) {
  return of >= 0 && o->known[bit][of] >= beat;
}

/* Too many: the oldest is the one that matters least. */
static void add (waits *w, int64_t behind) {
  int32_t to = 0;
  if (behind < 0)
    return;
  for (int32_t i = 0; i < w->n; i++)
    if (w->behind[i] == behind)
      return;
  if (w->n < WAITS)
    to = w->n++;
  else
    for (int32_t i = 1; i < WAITS; i++)
      to = w->behind[i] < w->behind[to] ? i : to;
  w->behind[to] = behind;
}

static void add_all (waits *w, const waits *from) {
  for (int32_t i = 0; i < from->n; i++)
    add (w, from->behind[i]);
}

/* The stream's newest op, and whatever its next one has to wait for. */
static void add_stream (const order *o, waits *w, int32_t bit) {
  add_all (w, &o->stream[bit]);
  add (w, o->last[bit]);
}

static void put (order *o, int64_t beat, waits *w, bool host) {
  for (int32_t i = 0; i < w->n; i++)
    o->edges[o->n_edges++ % EDGES] = (order_edge){ beat, w->behind[i], host, host && o->device };
  w->n = 0;
}

void order_op (order *o, int64_t beat, int32_t bit) {
  put (o, beat, &o->host, true);
  o->device = false;
  put (o, beat, &o->stream[bit], false);
  o->last[bit] = beat;
}

void order_waited (order *o, int64_t beat) {
  o->edges[o->n_edges++ % EDGES] = (order_edge){ beat, beat, true, false };
}

const order_edge *order_next (const order *o, int64_t first, int64_t end, int64_t *at) {
  int64_t from = o->n_edges > EDGES ? o->n_edges - EDGES : 0;
  for (*at = *at > from ? *at : from; *at < o->n_edges; ++*at) {
    const order_edge *e = &o->edges[*at % EDGES];
    if (e->beat >= first && e->beat < end) {
      ++*at;
      return e;
    }
  }
  return NULL;
}

/* ---- the program's calls ---- */

/* Before the first tensor there is no order to know. */
static bool enter (shim **s) {
  const shim *there = shim_of_process ();
  return there != NULL && there->started && shim_enter (s);
}

static void forget (mark *m, CUevent event) {
  m->event = event;
  m->at.n = 0;
  for (int i = 0; i < STREAMS; i++)
    m->known[i] = -1;
}

static mark *mark_of (order *o, CUevent event) {
  mark *m = &o->marked[(shim_mix (0, (uintptr_t)event) >> 32) % MARKED];
  if (m->event != event)
    forget (m, event);
  return m;
}

/* Recorded, unless `r` says otherwise: the event is behind all that its stream is. */
static CUresult note_record (shim *s, CUevent event, CUstream stream, CUresult r) {
  int32_t bit = stream_bit (s, stream);
  mark *m = mark_of (s->order, event);
  forget (m, event);
  if (capture_has (s, stream))
    return shim_leave (s, r);
  if (r == CUDA_SUCCESS)
    add_stream (s->order, &m->at, bit);
  if (bit != MANY_STREAMS && r == CUDA_SUCCESS) {
    memcpy (m->known, s->order->known[bit], sizeof m->known);
    m->known[bit] = s->order->last[bit];
  }
  return shim_leave (s, r);
}

CUresult wrap_event_record (CUevent event, CUstream stream) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->event_record (event, stream);
  return note_record (s, event, stream, s->real.event_record (event, stream));
}

CUresult wrap_event_record_ptsz (CUevent event, CUstream stream) {
  return wrap_event_record (event, own_stream (stream));
}

CUresult wrap_event_record_flags (CUevent event, CUstream stream, unsigned int flags) {
  CUresult (*real) (CUevent, CUstream, unsigned int) = shim_symbol ("cuEventRecordWithFlags");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  shim *s;
  if (!enter (&s))
    return real (event, stream, flags);
  return note_record (s, event, stream, real (event, stream, flags));
}

CUresult wrap_event_record_flags_ptsz (CUevent event, CUstream stream, unsigned int flags) {
  return wrap_event_record_flags (event, own_stream (stream), flags);
}

void order_forget (order *o, CUevent event) {
  forget (mark_of (o, event), event);
}

/* Another may get its handle. */
CUresult wrap_event_destroy (CUevent event) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->event_destroy (event);
  forget (mark_of (s->order, event), event);
  return shim_leave (s, s->real.event_destroy (event));
}

CUresult wrap_stream_wait (CUstream stream, CUevent event, unsigned int flags) {
  shim *s;
  if (!enter (&s))
    return shim_real ()->stream_wait_event (stream, event, flags);
  if (s->captured > 0 && !capture_has (s, stream))
    stream_hand_over (s, stream); /* it may be captured from here on */
  CUresult r = s->real.stream_wait_event (stream, event, flags);
  if (capture_has (s, stream))
    return shim_leave (s, r);
  int32_t bit = stream_bit (s, stream);
  const mark *m = mark_of (s->order, event);
  if (r == CUDA_SUCCESS)
    add_all (&s->order->stream[bit], &m->at);
  for (int i = 0; r == CUDA_SUCCESS && bit != MANY_STREAMS && i < STREAMS; i++)
    if (m->known[i] > s->order->known[bit][i])
      s->order->known[bit][i] = m->known[i];
  return shim_leave (s, r);
}

CUresult wrap_stream_wait_ptsz (CUstream stream, CUevent event, unsigned int flags) {
  return wrap_stream_wait (own_stream (stream), event, flags);
}

/* ---- the host's waits ---- */

static void note_stream (order *o, int32_t bit) {
  if (o->last[bit] > o->told[bit] || o->stream[bit].n > 0)
    add_stream (o, &o->host, bit);
  o->told[bit] = o->last[bit];
}

void order_device (order *o) {
  for (int32_t i = 0; i < STREAMS; i++)
    note_stream (o, i);
  o->device = true;
}

/* In a profile, the times of what is done. */
static CUresult after_wait (CUresult r, CUstream stream, CUevent event, bool all) {
  shim *s;
  if (r != CUDA_SUCCESS || !enter (&s))
    return shim_look (r);
  if (event != NULL)
    add_all (&s->order->host, &mark_of (s->order, event)->at);
  else if (!all)
    note_stream (s->order, stream_bit (s, stream));
  else
    order_device (s->order);
  again_look (s, false);
  record_harvest (s);
  return shim_leave (s, r);
}

/* The driver waits, without the lock; a handler that ends the program meanwhile must not. */
#define WAITED(call)                 \
  bool was = shim_set_inside (true); \
  CUresult r = call;                 \
  (void)shim_set_inside (was)

CUresult wrap_stream_sync (CUstream stream) {
  WAITED (shim_real ()->stream_synchronize (stream));
  return after_wait (r, stream, NULL, false);
}

CUresult wrap_stream_sync_ptsz (CUstream stream) {
  return wrap_stream_sync (own_stream (stream));
}

CUresult wrap_event_sync (CUevent event) {
  WAITED (shim_real ()->event_synchronize (event));
  return after_wait (r, NULL, event, false);
}

CUresult wrap_ctx_sync (void) {
  WAITED (shim_real ()->ctx_synchronize ());
  return after_wait (r, NULL, NULL, true);
}

CUresult wrap_ctx_sync_of (CUcontext context) {
  CUresult (*real) (CUcontext) = shim_symbol ("cuCtxSynchronize_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  WAITED (real (context));
  return after_wait (r, NULL, NULL, true);
}
