/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops of all streams.  Few files say what an op waits for (waits.c), but what it waited for had
   ended when it began, and was launched before it.  Without better it counts as waiting for all
   such work: no wait is missed, some are made up.  Starts and ends stay as they were seen.

   An op is one run of kernels only while no work of another stream begins or ends between them:
   else that work might be waited for by its later kernels, or wait for its earlier ones. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

/* ---- numbers of streams ---- */

int32_t kineto_stream_number (const kineto_iteration *it, int64_t stream) {
  int32_t at = 0;
  while (at < it->n_streams && it->streams[at] != stream)
    at++;
  return at;
}

typedef struct begun {
  int64_t stream, start_ns;
} begun;

static int by_start (const void *a, const void *b) {
  const begun *x = a, *y = b;
  return ORDER (x->start_ns, y->start_ns) ?: ORDER (x->stream, y->stream);
}

bool kineto_number_streams (import_job *job, const kineto *k, kineto_iteration *it) {
  int32_t n = 0;
  begun *rows = NEW (job->scratch, k->n_gpu, begun, job->err);
  if (!rows)
    return false;
  for (int32_t i = 0; i < k->n_gpu; i++)
    if (k->gpu[i].device == it->device && kineto_in_window (k, &k->gpu[i], it->window))
      rows[n++] = (begun){ k->gpu[i].stream, k->gpu[i].start_ns };
  if (n)
    qsort (rows, (size_t)n, sizeof *rows, by_start);
  it->streams[0] = it->stream;
  it->n_streams = 1;
  for (int32_t i = 0; i < n; i++) {
    int32_t at = kineto_stream_number (it, rows[i].stream);
    if (at == MOST_STREAMS)
      return error_set (job->err, ERR_limit,
                        "the step runs on more than %d streams; --streams compute takes one",
                        MOST_STREAMS);
    it->streams[at] = rows[i].stream;
    it->n_streams = (int32_t)max_of (it->n_streams, at + 1);
  }
  return true;
}

/* ---- cuts of runs ---- */

static int by_time (const void *a, const void *b) {
  const kineto_moment *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (x->stream, y->stream);
}

void kineto_sort_moments (kineto_moment *rows, int32_t n) {
  assert (n >= 0 && (rows || n == 0));
  if (n)
    qsort (rows, (size_t)n, sizeof *rows, by_time);
  for (int32_t i = n - 1; i >= 0; i--)
    rows[i].other = i + 1 < n && rows[i + 1].stream == rows[i].stream ? rows[i + 1].other : i + 1;
}

/* A moment of another stream in [from, to). */
static bool any_within (const kineto_moment *rows, int32_t n, int32_t stream, int64_t from,
                        int64_t to) {
  int32_t low = FIRST_WHERE (i, 0, n, rows[i].at_ns >= from);
  if (low < n && rows[low].stream == stream)
    low = rows[low].other;
  return low < n && rows[low].at_ns < to;
}

bool kineto_is_cut (const kineto_moments *m, int32_t stream, const kineto_moment last[2],
                    int64_t start_ns, int64_t end_ns) {
  return any_within (m->ends, m->count, stream, last[0].at_ns + 1, start_ns + 1) ||
         any_within (m->starts, m->count, stream, min_of (last[1].at_ns, end_ns),
                     max_of (last[1].at_ns, end_ns));
}

/* ---- the list ---- */

static int by_begin (const void *a, const void *b) {
  const kineto_run *x = a, *y = b;
  return ORDER (x->begin_ns, y->begin_ns) ?: ORDER (x->stream, y->stream)
         ?: ORDER (x->place, y->place);
}

typedef struct ended {
  int64_t end_ns;
  int32_t run;
} ended;

static int by_end (const void *a, const void *b) {
  const ended *x = a, *y = b;
  return ORDER (x->end_ns, y->end_ns) ?: ORDER (x->run, y->run);
}

typedef struct listing {
  kineto_iteration *it;
  ended *ended;
  int32_t n_ended;                           /* of these, before the run at hand began */
  int32_t latest[MOST_STREAMS];              /* the last of them on each stream, or NONE */
  int32_t newest[MOST_STREAMS];              /* the last run so far of each stream, or NONE */
  int32_t known[MOST_STREAMS][MOST_STREAMS]; /* per stream: which run of each it waited for */
  int32_t *previous;                         /* per run: the one before it on its stream */
  int64_t *end_ns;                           /* per run: when it ends if nothing stalls */
} listing;

/* The last run of a stream that had ended and was launched before; where launches are not known, or
   many were launched since, the last that had ended. */
static int32_t waited_for (const listing *l, int32_t k, int32_t stream) {
  enum { MOST_BACK = 64 };
  const kineto_run *runs = l->it->runs;
  int32_t at = l->latest[stream];
  for (int i = 0; i < MOST_BACK && at != NONE; i++, at = l->previous[at])
    if (!runs[k].launched || !runs[at].launched ||
        runs[at].first_launch_ns <= runs[k].last_launch_ns)
      return at;
  return at == NONE ? NONE : l->latest[stream];
}

static void see_run (listing *l, int32_t k) {
  kineto_iteration *it = l->it;
  kineto_run *r = &it->runs[k];
  l->previous[k] = l->newest[r->stream];
  l->newest[r->stream] = k;
  for (; l->n_ended < it->n_runs && l->ended[l->n_ended].end_ns <= r->begin_ns &&
         l->ended[l->n_ended].run < k;
       l->n_ended++) {
    int32_t run = l->ended[l->n_ended].run, *last = &l->latest[it->runs[run].stream];
    *last = (int32_t)max_of (*last, run);
  }
  for (int32_t s = 0; s < it->n_streams; s++)
    it->seen[(int64_t)k * it->n_streams + s] = s == r->stream ? NONE : waited_for (l, k, s);
}

static void list_run (listing *l, int32_t k) {
  kineto_iteration *it = l->it;
  kineto_run *r = &it->runs[k];
  int32_t *known = l->known[r->stream], before = l->previous[k] = l->newest[r->stream];
  int64_t from_ns = before == NONE ? it->first_ns : l->end_ns[before];
  it->after_first[k + 1] = it->after_first[k];
  for (int32_t s = 0; s < it->n_streams; s++) {
    int32_t at = it->waits[(int64_t)k * it->n_streams + s];
    if (at <= known[s])
      continue;
    known[s] = at;
    it->after[it->after_first[k + 1]++] = at;
    from_ns = max_of (from_ns, l->end_ns[at]);
  }
  r->gap_ns = max_of (r->start_ns - from_ns, 0);
  l->end_ns[k] = from_ns + r->gap_ns + r->ns;
  l->newest[r->stream] = k;
}

/* Idle time between the kernels of the last run comes before the first ones of the next step. */
static void put_tail (const listing *l) {
  kineto_iteration *it = l->it;
  int64_t path_ns = it->first_ns, end_ns = it->first_ns;
  for (int32_t k = 0; k < it->n_runs; k++) {
    path_ns = max_of (path_ns, l->end_ns[k]);
    end_ns = max_of (end_ns, it->runs[k].end_ns);
  }
  int64_t tail_ns = max_of (end_ns - path_ns, 0);
  it->span_ns = path_ns + tail_ns - it->first_ns;
  for (int32_t k = 0; k < it->n_runs; k++)
    if (l->previous[k] == NONE && it->after_first[k] == it->after_first[k + 1])
      it->runs[k].gap_ns += tail_ns;
}

static listing *listing_new (import_job *job, kineto_iteration *it) {
  listing *l = NEW (job->scratch, 1, listing, job->err);
  if (!l)
    return NULL;
  *l = (listing){ .it = it,
                  .ended = NEW (job->scratch, it->n_runs, ended, job->err),
                  .previous = NEW (job->scratch, it->n_runs, int32_t, job->err),
                  .end_ns = NEW (job->scratch, it->n_runs, int64_t, job->err) };
  memset (l->latest, 0xff, sizeof l->latest);
  memset (l->newest, 0xff, sizeof l->newest);
  memset (l->known, 0xff, sizeof l->known);
  return l->ended && l->previous && l->end_ns ? l : NULL;
}

bool kineto_list_waits (import_job *job, kineto_iteration *it) {
  listing *l = listing_new (job, it);
  if (!l)
    return false;
  for (int32_t k = 0; k < it->n_runs; k++)
    list_run (l, k);
  put_tail (l);
  return true;
}

/* The runs behind one that no launch is known of may have been launched as early: per run the last
   of them, and per stream the last of those at its head. */
static int32_t *find_unlaunched (import_job *job, const kineto_iteration *it, int32_t *head) {
  int32_t *last = NEW (job->scratch, it->n_runs, int32_t, job->err), newest[MOST_STREAMS];
  for (int32_t s = 0; s < it->n_streams; s++)
    head[s] = newest[s] = NONE;
  for (int32_t k = it->n_runs - 1; last && k >= 0; k--) {
    int32_t s = it->runs[k].stream;
    last[k] = head[s] == NONE ? k : head[s];
    head[s] = it->runs[k].launched ? NONE : last[k];
  }
  return last;
}

/* Waits that the file tells, as far as what they are for had ended. */
static bool choose_waits (import_job *job, const kineto *k, kineto_iteration *it) {
  int32_t n = it->n_streams, head[MOST_STREAMS];
  int64_t size = (int64_t)it->n_runs * n;
  int32_t *place = NEW (job->scratch, it->n_runs, int32_t, job->err);
  const int32_t *last = find_unlaunched (job, it, head);
  if (!place || !last)
    return false;
  for (int32_t r = 0; r < it->n_runs; r++)
    place[it->runs[r].place] = r;
  for (int32_t i = 0; i < k->n_gpu; i++)
    if (it->run_of[i] != NONE)
      it->run_of[i] = place[it->run_of[i]];
  for (int64_t i = 0; i < size; i++)
    it->waits[i] = NONE;
  if (!kineto_exact_waits (job, k, it, it->run_of, it->waits))
    return false;
  for (int64_t i = 0; i < size; i++) {
    int32_t told = it->waits[i] == NONE ? head[i % n] : last[it->waits[i]];
    bool known = !it->untold && it->runs[i / n].launched;
    it->waits[i] = known && told < it->seen[i] ? told : it->seen[i];
  }
  return true;
}

bool kineto_list_streams (import_job *job, const kineto *k, kineto_iteration *it) {
  int32_t n = it->n_runs;
  listing *l = listing_new (job, it);
  if (!ALLOC (job->scratch, it->after_first, (int64_t)n + 1, job->err) ||
      !ALLOC (job->scratch, it->after, (int64_t)n * (it->n_streams - 1), job->err) ||
      !ALLOC (job->scratch, it->seen, (int64_t)n * it->n_streams, job->err) ||
      !ALLOC (job->scratch, it->waits, (int64_t)n * it->n_streams, job->err) || !l)
    return false;
  if (n == 0)
    return true;
  qsort (it->runs, (size_t)n, sizeof *it->runs, by_begin);
  it->first_ns = it->runs[0].begin_ns;
  for (int32_t i = 0; i < n; i++)
    l->ended[i] = (ended){ it->runs[i].end_ns, i };
  qsort (l->ended, (size_t)n, sizeof *l->ended, by_end);
  for (int32_t i = 0; i < n; i++)
    see_run (l, i);
  return choose_waits (job, k, it) && kineto_list_waits (job, it);
}

bool kineto_put_stream (import_job *job, const kineto *k, const kineto_iteration *it, int32_t run,
                        op *o) {
  if (!it->all)
    return true;
  o->stream = it->runs[run].stream;
  return kineto_put_collective (job, k, &it->runs[run], o);
}
