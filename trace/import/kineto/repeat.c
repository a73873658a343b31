/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Iterations of a profile that marks none: the whole of it as one, or where its kernels repeat.
   A repetition is looked for among the distances between kernels that are launched rarely, then
   among those from the middle one to others of its name.  It must hold what the whole profile
   holds: a network of many equal layers repeats within one step too. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

/* Names looked at; kernels of a step; distances tried, each of which costs a walk. */
enum { RAREST = 48, SHORTEST = 8, MOST_TRIED = 1024 };

typedef struct launched {
  int64_t at_ns;
  int32_t name, gpu;
  uint8_t phase;
} launched;

typedef struct sequence {
  launched *at;
  int32_t n;
  int32_t period, from, to; /* at[i] is at[i + period] for from <= i, i + period < to */
} sequence;

static int by_launch (const void *a, const void *b) {
  const launched *x = a, *y = b;
  return ORDER (x->at_ns, y->at_ns) ?: ORDER (x->gpu, y->gpu);
}

static bool launches_of (import_job *job, const kineto *k, int32_t device, sequence *s) {
  s->at = NEW (job->scratch, k->n_gpu, launched, job->err);
  for (int32_t i = 0; s->at && i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device == device && g->kind == GPU_KERNEL && g->launch != NONE)
      s->at[s->n++] =
          (launched){ kineto_launched_at (k, g), g->name, i, (uint8_t)kineto_phase (k, g->owner) };
  }
  if (s->n)
    qsort (s->at, (size_t)s->n, sizeof *s->at, by_launch);
  return s->at;
}

/* The longest stretch that repeats at this distance. */
static void stretch_of (const sequence *s, int32_t period, int32_t *from, int32_t *to) {
  int32_t start = 0;
  *from = *to = 0;
  for (int32_t i = 0; i + period < s->n; i++) {
    if (s->at[i].name != s->at[i + period].name)
      start = i + 1;
    else if (i + 1 + period - start > *to - *from) {
      *from = start;
      *to = i + 1 + period;
    }
  }
}

static unsigned phases_in (const sequence *s, int32_t from, int32_t to) {
  unsigned found = 0;
  for (int32_t i = from; i < to; i++)
    found |= 1U << s->at[i].phase;
  return found;
}

/* Twice at least, over half of all, and with every phase that there is. */
static bool repeats (sequence *s, int32_t period) {
  int32_t from, to;
  stretch_of (s, period, &from, &to);
  if (to - from < 2 * period || to - from < s->n / 2 ||
      phases_in (s, from, from + period) != phases_in (s, 0, s->n))
    return false;
  s->period = period;
  s->from = from;
  s->to = to;
  return true;
}

typedef struct name_count {
  int32_t name, count;
} name_count;

static int by_count (const void *a, const void *b) {
  const name_count *x = a, *y = b;
  return ORDER (x->count, y->count) ?: ORDER (x->name, y->name);
}

/* Kernels at or around a place that come again behind a distance, one after another; no more than
   `most` are counted. */
static int32_t alike_around (const sequence *s, int32_t at, int32_t apart, int32_t most) {
  int32_t from = at, to = at;
  while (to - from < most && to + apart < s->n && s->at[to].name == s->at[to + apart].name)
    to++;
  while (to > at && to - from < most && from > 0 &&
         s->at[from - 1].name == s->at[from - 1 + apart].name)
    from--;
  return to - from;
}

/* Neighbours are never a step apart if each name comes several times a step.  But a stretch of half
   of all holds the middle one, which comes again a period behind or before. */
static bool try_middle (sequence *s, int32_t middle) {
  int64_t left = 256 * (int64_t)s->n; /* comparisons: layers may be alike for long */
  int32_t from = SHORTEST;
  for (int32_t apart = 1; apart < SHORTEST; apart++) { /* several of these are no step either */
    int32_t alike = alike_around (s, middle, apart, s->n);
    from = alike >= from ? alike + 1 : from;
  }
  for (int32_t apart = from; apart <= s->n / 2 && left > 0; apart++)
    for (int32_t at = middle; at >= 0 && at >= middle - apart; at -= apart) {
      int32_t alike = alike_around (s, at, apart, apart);
      left -= alike;
      if (alike < apart)
        continue;
      left -= s->n;
      if (repeats (s, apart))
        return true;
    }
  return false;
}

/* The shortest period among the distances between neighbours of the rarest names, else among those
   from the middle; 0: none. */
static bool find_period (import_job *job, const kineto *k, sequence *s) {
  name_count *names = NEW (job->scratch, k->names.count, name_count, job->err);
  bool *tried = NEW (job->scratch, s->n, bool, job->err);
  if (!names || !tried)
    return false;
  for (int32_t i = 0; i < k->names.count; i++)
    names[i].name = i;
  for (int32_t i = 0; i < s->n; i++)
    names[s->at[i].name].count++;
  qsort (names, (size_t)k->names.count, sizeof *names, by_count);
  int32_t best = 0, n_tried = 0;
  for (int32_t i = 0, looked = 0; i < k->names.count && looked < RAREST; i++) {
    int32_t last = NONE;
    if (names[i].count < 2)
      continue;
    looked++;
    for (int32_t at = 0; at < s->n && n_tried < MOST_TRIED; at++) {
      if (s->at[at].name != names[i].name)
        continue;
      int32_t apart = last == NONE ? 0 : at - last;
      last = at;
      if (apart < SHORTEST || tried[apart] || (best && apart >= best))
        continue;
      tried[apart] = true;
      n_tried++;
      if (repeats (s, apart))
        best = apart;
    }
  }
  if (best)
    return repeats (s, best);
  if (!try_middle (s, (s->n - 1) / 2))
    (void)try_middle (s, s->n / 2);
  return true;
}

/* A step begins where forward follows the update or, without one, backward; else anywhere. */
static int32_t first_of (const sequence *s) {
  for (op_phase before = OP_UPDATE;; before = OP_BACKWARD) {
    for (int32_t i = s->from; i < s->from + s->period; i++) {
      const launched *last = i                        ? &s->at[i - 1]
                             : i + s->period <= s->to ? &s->at[s->period - 1]
                                                      : NULL;
      if (last && s->at[i].phase == OP_FORWARD && last->phase == before)
        return i;
    }
    if (before == OP_BACKWARD)
      return s->from;
  }
}

static bool repeated_windows (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                              int32_t *n) {
  sequence s = { 0 };
  if (!launches_of (job, k, device, &s) || !find_period (job, k, &s))
    return false;
  if (!s.period)
    return true;
  int32_t first = first_of (&s), count = (s.to - first) / s.period;
  *out = NEW (job->scratch, count, kineto_window, job->err);
  for (int32_t i = 0; *out && i < count; i++) {
    int32_t from = first + i * s.period, to = from + s.period;
    const char *name =
        arena_format (job->a, job->err, "repetition %d of %d kernels", i + 1, s.period);
    if (!name)
      return false;
    int64_t end_ns = to < s.n ? s.at[to].at_ns : s.at[s.n - 1].at_ns + 1;
    (*out)[(*n)++] = (kineto_window){ s.at[from].at_ns, end_ns, name };
  }
  return *out;
}

static bool whole_window (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                          int32_t *n) {
  int64_t from = INT64_MAX, to = INT64_MIN;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    int64_t at = kineto_launched_at (k, &k->gpu[i]);
    if (k->gpu[i].device != device)
      continue;
    from = at < from ? at : from;
    to = at > to ? at : to;
  }
  if (from > to)
    return true;
  if (!ALLOC (job->scratch, *out, 1, job->err))
    return false;
  (*out)[(*n)++] = (kineto_window){ from, to + 1, "the whole profile" };
  return true;
}

bool kineto_unmarked_windows (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                              int32_t *n) {
  if (job->options.marks == IMPORT_REPEATS)
    return repeated_windows (job, k, device, out, n);
  return job->options.marks != IMPORT_WHOLE || whole_window (job, k, device, out, n);
}

bool kineto_refuse_unmarked (import_job *job, const kineto *k, int32_t device) {
  kineto_window *windows;
  int32_t n = 0;
  if (!repeated_windows (job, k, device, &windows, &n))
    return false;
  job->report->helps = n ? IMPORT_REPEATS : IMPORT_WHOLE;
  if (n)
    return error_set (job->err, ERR_infeasible,
                      "no complete iteration is marked (profiler.step() every iteration would), "
                      "but the kernels repeat, %s: `--marks repeat` takes the last repetition for "
                      "the step, `--marks whole` all of it",
                      windows[n - 1].name);
  return error_set (job->err, ERR_infeasible,
                    "no complete iteration: call profiler.step() every iteration, so that the "
                    "profile has ProfilerStep# marks; its kernels do not repeat either. `--marks "
                    "whole` takes all of it for one step");
}
