/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/last.h"

#include <stdio.h>
#include <stdlib.h>

#include "executor/shim/record.h"

enum { COPIES = 4096, SHOWN = 1024 };

typedef struct shown_copy {
  CUevent start, end; /* made when they are first needed */
  bool in;
  int64_t bytes, tensor, beat;
} shown_copy;

struct last {
  shown_copy copies[COPIES]; /* the newest */
  int64_t n_copies;
  int64_t first, end; /* the beats of the step */
};

/* NULL: nobody asks. */
static last *last_of (shim *s) {
  if (s->last == NULL && s->block->config.shows_last)
    s->last = calloc (1, sizeof *s->last);
  return s->last;
}

void last_copy_begins (shim *s, bool in, int64_t bytes, int64_t tensor) {
  last *l = last_of (s);
  if (l == NULL)
    return;
  shown_copy *c = &l->copies[l->n_copies % COPIES];
  if (c->start == NULL && (s->real.event_create (&c->start, 0) != CUDA_SUCCESS ||
                           s->real.event_create (&c->end, 0) != CUDA_SUCCESS))
    return;
  c->in = in;
  c->bytes = bytes;
  c->tensor = tensor;
  c->beat = record_beats (s)->n;
  s->real.event_record (c->start, in ? s->in : s->out);
}

void last_copy_ends (shim *s) {
  last *l = s->last;
  if (l == NULL)
    return;
  const shown_copy *c = &l->copies[l->n_copies++ % COPIES];
  if (c->end != NULL)
    s->real.event_record (c->end, c->in ? s->in : s->out);
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

static void put_copies (const shim *s, FILE *to, CUevent base) {
  const last *l = s->last;
  int64_t from = l->n_copies > COPIES ? l->n_copies - COPIES : 0;
  for (int64_t i = from; i < l->n_copies; i++) {
    const shown_copy *c = &l->copies[i % COPIES];
    if (c->start != NULL && c->beat >= l->first && c->beat <= l->end)
      fprintf (to, "%d %lld %lld %lld tensor %lld\n", c->in, (long long)between (s, base, c->start),
               (long long)between (s, c->start, c->end), (long long)c->bytes, (long long)c->tensor);
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
    put_copies (s, to, base);
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
