/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waits between streams by the profiler's synchronization events.  All calls of the host that put
   work or waits on streams are gone through in order, and each stream has a clock: the last run of
   every stream that whatever is launched there next comes behind.  A record keeps the clock of its
   stream; who waits for it takes that over, a stream for itself, the host for all streams.

   Where the file does not say what is waited for, it is all that was launched so far: too much
   does no harm, since no run is taken that had not ended when its waiter began. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/calls.h"
#include "trace/import/kineto/kineto.h"

/* ---- events of the file ---- */

static sync_kind kind_of (slice name) {
  return slice_is (name, "Stream Wait Event") ? SYNC_WAIT
         : slice_is (name, "Event Sync")      ? SYNC_EVENT
         : slice_is (name, "Stream Sync")     ? SYNC_STREAM
                                              : SYNC_ALL;
}

bool kineto_keep_sync (import_job *job, kineto *k, int64_t *room, slice name, kineto_sync s) {
  s.kind = (uint8_t)kind_of (name);
  if (!GROW (job->scratch, k->syncs, room, (int64_t)k->n_syncs + 1, job->err))
    return false;
  k->syncs[k->n_syncs++] = s;
  return true;
}

launch_effect kineto_effect (slice name) {
  bool now = !slice_holds (name, "Async");
  if (slice_holds (name, "StreamWaitEvent") || slice_holds (name, "Synchronize"))
    return EFFECT_SYNC;
  return now && (slice_holds (name, "Memcpy") || slice_holds (name, "Free")) ? EFFECT_BLOCKS
                                                                             : EFFECT_NONE;
}

/* ---- calls in order ---- */

/* At one time, with one correlation: in this order. */
typedef enum call_kind { CALL_LAUNCH, CALL_RECORD, CALL_SYNC, CALL_UNTOLD } call_kind;

typedef struct call {
  int64_t at_ns, correlation;
  int32_t index; /* a GPU event, a record, a synchronization event, or nothing */
  call_kind kind;
} call;

static int by_call (const void *a, const void *b) {
  const call *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (x->correlation, y->correlation)
         ?: ORDER (x->kind, y->kind) ?: ORDER (x->index, y->index);
}

typedef struct clocks {
  import_job *job;
  const kineto *k;
  const kineto_iteration *it;
  const int32_t *run_of; /* per GPU event its run, or NONE */
  int32_t *exact;        /* per run and stream */
  int32_t queue[MOST_STREAMS][MOST_STREAMS];
  int32_t host[MOST_STREAMS]; /* per stream: the last run that the host has waited for */
  id_map launches, records;   /* by correlation */
  int64_t *record_stream;     /* per record, as the file names it */
  int32_t *record_clock;      /* per record its clock, once it is there */
  bool *recorded;
  call *calls;
  int64_t n_calls;
  bool timeless; /* some synchronization has neither a call nor a time */
} clocks;

static void add_call (clocks *c, call_kind kind, int32_t index, int64_t at_ns, int64_t corr) {
  c->calls[c->n_calls++] = (call){ at_ns, corr, index, kind };
}

static bool map_launches (clocks *c) {
  for (int32_t i = 0; i < c->k->n_launches; i++) {
    int32_t *at = id_map_at (&c->launches, c->k->launches[i].correlation, c->job->err);
    if (!at)
      return false;
    if (*at < 0)
      *at = i;
  }
  return true;
}

/* The event's record, unless the file lacks its call: it may have been made before the profile. */
static bool add_record (clocks *c, const kineto_sync *s) {
  int32_t launch = s->record > 0 ? id_map_find (&c->launches, s->record) : NONE;
  if (launch < 0)
    return true;
  int32_t n = (int32_t)c->records.count, *at = id_map_at (&c->records, s->record, c->job->err);
  if (!at)
    return false;
  if (*at < 0) {
    *at = n;
    c->record_stream[n] = s->on_stream;
    add_call (c, CALL_RECORD, n, c->k->launches[launch].at_ns, s->record);
  }
  return true;
}

static bool list_calls (clocks *c) {
  const kineto *k = c->k;
  bool *told = NEW (c->job->scratch, k->n_launches, bool, c->job->err);
  if (!told || !map_launches (c))
    return false;
  for (int32_t i = 0; i < k->n_gpu; i++)
    if (c->run_of[i] != NONE && k->gpu[i].launch != NONE)
      add_call (c, CALL_LAUNCH, i, k->launches[k->gpu[i].launch].at_ns, k->gpu[i].correlation);
  for (int32_t i = 0; i < k->n_syncs; i++) {
    const kineto_sync *s = &k->syncs[i];
    int32_t launch = s->correlation > 0 ? id_map_find (&c->launches, s->correlation) : NONE;
    if (launch >= 0)
      told[launch] = true;
    c->timeless |= launch < 0 && s->at_ns < 0;
    add_call (c, CALL_SYNC, i, launch >= 0 ? k->launches[launch].at_ns : s->at_ns, s->correlation);
    if (!add_record (c, s))
      return false;
  }
  for (int32_t i = 0; i < k->n_launches; i++)
    if (k->launches[i].effect == EFFECT_BLOCKS ||
        (k->launches[i].effect == EFFECT_SYNC && !told[i]))
      add_call (c, CALL_UNTOLD, 0, k->launches[i].at_ns, k->launches[i].correlation);
  if (c->n_calls)
    qsort (c->calls, (size_t)c->n_calls, sizeof *c->calls, by_call);
  return true;
}

/* ---- clocks ---- */

static void learn (const clocks *c, int32_t *to, const int32_t *from) {
  for (int32_t s = 0; s < c->it->n_streams; s++)
    to[s] = from[s] > to[s] ? from[s] : to[s];
}

/* A stream without ops has no clock: then that of all streams together. */
static void read_clock (const clocks *c, int64_t stream, int32_t *out) {
  int32_t at = kineto_stream_number (c->it, stream);
  memcpy (out, c->host, sizeof c->host);
  for (int32_t s = 0; s < c->it->n_streams; s++)
    if (s == at || at == c->it->n_streams)
      learn (c, out, c->queue[s]);
}

static void launch (clocks *c, int32_t gpu) {
  const kineto_gpu *g = &c->k->gpu[gpu];
  int32_t run = c->run_of[gpu], stream = c->it->runs[run].stream;
  int32_t *queue = c->queue[stream];
  learn (c, queue, c->host);
  learn (c, &c->exact[(int64_t)run * c->it->n_streams], queue);
  queue[stream] = run > queue[stream] ? run : queue[stream];
  /* Such a copy has ended when its call returns. */
  if (g->kind == GPU_MEMCPY && slice_holds (c->k->names.texts[g->name], "> Pageable"))
    learn (c, c->host, queue);
}

static void synchronize (clocks *c, const kineto_sync *s) {
  enum { ANY = -1 };
  int32_t now[MOST_STREAMS], record = NONE;
  if (s->kind == SYNC_WAIT || s->kind == SYNC_EVENT) {
    record = s->record > 0 ? id_map_find (&c->records, s->record) : NONE;
    read_clock (c, s->on_stream, now);
  } else
    read_clock (c, s->kind == SYNC_STREAM ? s->stream : ANY, now);
  const int32_t *what = record >= 0 && c->recorded[record]
                            ? &c->record_clock[(int64_t)record * c->it->n_streams]
                            : now;
  int32_t at = s->kind == SYNC_WAIT ? kineto_stream_number (c->it, s->stream) : NONE;
  if (s->kind != SYNC_WAIT || s->stream < 0)
    learn (c, c->host, what);
  else if (at < c->it->n_streams)
    learn (c, c->queue[at], what);
}

static void go_through (clocks *c) {
  int32_t n = c->it->n_streams, now[MOST_STREAMS];
  for (int64_t i = 0; i < c->n_calls; i++) {
    const call *x = &c->calls[i];
    if (x->kind == CALL_LAUNCH)
      launch (c, x->index);
    else if (x->kind == CALL_SYNC)
      synchronize (c, &c->k->syncs[x->index]);
    else {
      read_clock (c, x->kind == CALL_RECORD ? c->record_stream[x->index] : NONE, now);
      if (x->kind == CALL_UNTOLD)
        learn (c, c->host, now);
      else {
        memcpy (&c->record_clock[(int64_t)x->index * n], now, (size_t)n * sizeof *now);
        c->recorded[x->index] = true;
      }
    }
  }
}

/* ---- files that do not tell ---- */

/* NULL: every wait is in the file. */
static const char *not_told (const clocks *c, bool *failed) {
  const kineto *k = c->k;
  int64_t *stream = NEW (c->job->scratch, k->n_launches, int64_t, c->job->err);
  *failed = !stream;
  if (!stream || k->n_syncs == 0)
    return "the file has no events of synchronization (enable_cuda_sync_events)";
  for (int32_t i = 0; i < k->n_launches; i++)
    stream[i] = -1;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device != c->it->device)
      return "the file is of several devices, whose streams may have one number";
    if (g->launch == NONE)
      continue;
    if (stream[g->launch] >= 0 && stream[g->launch] != g->stream)
      return "a CUDA graph ran on several streams";
    stream[g->launch] = g->stream;
  }
  return NULL;
}

bool kineto_exact_waits (import_job *job, const kineto *k, kineto_iteration *it,
                         const int32_t *run_of, int32_t *exact) {
  bool failed;
  clocks *c = NEW (job->scratch, 1, clocks, job->err);
  if (!c)
    return false;
  *c = (clocks){ .job = job, .k = k, .it = it, .run_of = run_of, .exact = exact };
  it->untold = not_told (c, &failed);
  if (failed || it->untold)
    return !failed;
  int64_t n = k->n_syncs, most = (int64_t)k->n_gpu + k->n_launches + 2 * n;
  c->launches = id_map_new (job->scratch);
  c->records = id_map_new (job->scratch);
  if (!ALLOC (job->scratch, c->record_stream, n, job->err) ||
      !ALLOC (job->scratch, c->record_clock, n * it->n_streams, job->err) ||
      !ALLOC (job->scratch, c->recorded, n, job->err) ||
      !ALLOC (job->scratch, c->calls, most, job->err) || !list_calls (c))
    return false;
  memset (c->queue, 0xff, sizeof c->queue);
  memset (c->host, 0xff, sizeof c->host);
  go_through (c);
  if (c->timeless)
    it->untold = "an event of synchronization has neither a call nor a time";
  return true;
}
