/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/record/order.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- events, and waits for them ---- */

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

void order_forget (order *o, CUevent event) {
  forget (mark_of (o, event), event);
}

void order_mark (order *o, CUevent event, int32_t bit) {
  mark *m = mark_of (o, event);
  add_stream (o, &m->at, bit);
  if (bit == MANY_STREAMS)
    return;
  memcpy (m->known, o->known[bit], sizeof m->known);
  m->known[bit] = o->last[bit];
}

void order_wait (order *o, int32_t bit, CUevent event) {
  const mark *m = mark_of (o, event);
  add_all (&o->stream[bit], &m->at);
  for (int i = 0; bit != MANY_STREAMS && i < STREAMS; i++)
    if (m->known[i] > o->known[bit][i])
      o->known[bit][i] = m->known[i];
}

void order_host_event (order *o, CUevent event) {
  add_all (&o->host, &mark_of (o, event)->at);
}

void order_host_stream (order *o, int32_t bit) {
  if (o->last[bit] > o->told[bit] || o->stream[bit].n > 0)
    add_stream (o, &o->host, bit);
  o->told[bit] = o->last[bit];
}

void order_device (order *o) {
  for (int32_t i = 0; i < STREAMS; i++)
    order_host_stream (o, i);
  o->device = true;
}
