/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/record/last.h"

#include <stdio.h>
#include <stdlib.h>

#include "executor/shim/record/record.h"

enum { OWN = 4096, SHOWN = 1024 };

typedef struct shown {
  CUevent start, end; /* made when they are first needed */
  CUstream stream;
  last_work what;
  int64_t beat;
} shown;

struct last {
  shown own[OWN]; /* the newest */
  int64_t n_own;
  int64_t first, end; /* the beats of the step */
};

/* NULL: nobody asks. */
static last *last_of (shim *s) {
  if (s->last == NULL && s->block->config.shows_last)
    s->last = calloc (1, sizeof *s->last);
  return s->last;
}

void last_begins (shim *s, const last_work *what, CUstream stream) {
  last *l = last_of (s);
  if (l == NULL)
    return;
  shown *w = &l->own[l->n_own % OWN];
  if (w->start == NULL && (s->real.event_create (&w->start, 0) != CUDA_SUCCESS ||
                           s->real.event_create (&w->end, 0) != CUDA_SUCCESS))
    return;
  w->what = *what;
  w->stream = stream;
  w->beat = record_beats (s)->n;
  s->real.event_record (w->start, stream);
}

void last_ends (shim *s) {
  last *l = s->last;
  if (l == NULL)
    return;
  const shown *w = &l->own[l->n_own++ % OWN];
  if (w->end != NULL)
    s->real.event_record (w->end, w->stream);
}

void last_step_ended (shim *s, int32_t n_beats) {
  last *l = last_of (s);
  if (l == NULL)
    return;
  l->end = record_beats (s)->n;
  l->first = l->end - n_beats;
}

static int64_t between (const shim *s, CUevent from, CUevent to) {
  float ms = 0;
  if (s->real.event_elapsed == NULL || s->real.event_elapsed (&ms, from, to) != CUDA_SUCCESS)
    return 0;
  return (int64_t)((double)ms * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

static void put_own (const shim *s, FILE *to, CUevent base) {
  const last *l = s->last;
  for (int64_t i = l->n_own > OWN ? l->n_own - OWN : 0; i < l->n_own; i++) {
    const shown *w = &l->own[i % OWN];
    if (w->start == NULL || w->beat < l->first || w->beat > l->end)
      continue;
    fprintf (to, "%d %lld %lld %lld ", w->what.lane, (long long)between (s, base, w->start),
             (long long)between (s, w->start, w->end), (long long)w->what.bytes);
    if (w->what.again != NULL)
      fprintf (to, "%s, again\n", w->what.again);
    else
      fprintf (to, "tensor %lld\n", (long long)w->what.tensor);
  }
}

static void put_all (shim *s, FILE *to) {
  last *l = s->last;
  CUevent base = NULL, start, end;
  if (l->end == 0) { /* no step was planned: the last ops there were */
    l->end = record_beats (s)->n;
    l->first = l->end > SHOWN ? l->end - SHOWN : 0;
  }
  for (int64_t i = l->first; i < l->end; i++) {
    if (!record_events (s, i, &start, &end))
      continue;
    base = base == NULL ? start : base;
    const beat *e = beats_at (record_beats (s), i);
    fprintf (to, "%d %lld %lld 0 %s\n", e->stream, (long long)between (s, base, start),
             (long long)between (s, start, end), s->names[e->name]);
  }
  if (base != NULL)
    put_own (s, to, base);
}

void last_write (shim *s) {
  char path[SHIM_PATH + 64];
  if (last_of (s) == NULL)
    return;
  snprintf (path, sizeof path, "%s/%s", s->block->config.folder, SHIM_LAST);
  FILE *to = fopen (path, "we");
  if (to == NULL)
    return;
  if (s->record != NULL) /* a program may have called the driver for no op at all */
    put_all (s, to);
  fclose (to);
}
