/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels of the chosen iteration on the compute stream, as ops. */
#include <stdlib.h>

#include "trace/import/kineto/kineto.h"

typedef struct placed {
  int64_t start_ns, end_ns;
  int32_t gpu;
} placed;

static int by_place (const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->start_ns != y->start_ns)
    return x->start_ns < y->start_ns ? -1 : 1;
  if (x->end_ns != y->end_ns)
    return x->end_ns < y->end_ns ? -1 : 1;
  return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

/* When the first event that the file sees launched in the window starts.  One without a launch that
   starts earlier was launched before the profile began: it is of the step before. */
static int64_t first_launched (const kineto *k, const kineto_iteration *it) {
  int64_t first = INT64_MAX;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device == it->device && g->launch != NONE && g->start_ns < first &&
        kineto_in_window (k, g, it->window))
      first = g->start_ns;
  }
  return first;
}

/* The events of the window's compute stream in order; those of other streams become sides. */
static placed *place (import_job *job, const kineto *k, kineto_iteration *it, int32_t *n) {
  int32_t count = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    count += k->gpu[i].device == it->device && kineto_in_window (k, &k->gpu[i], it->window);
  placed *rows = NEW (job->scratch, count, placed, job->err);
  placed *others = NEW (job->scratch, count, placed, job->err);
  it->sides = NEW (job->scratch, count, kineto_side, job->err);
  if (!rows || !others || !it->sides)
    return NULL;
  *n = it->n_sides = 0;
  int64_t first_ns = first_launched (k, it);
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device != it->device || !kineto_in_window (k, g, it->window))
      continue;
    placed row = { g->start_ns, g->start_ns + g->ns, i };
    if (g->launch == NONE && g->start_ns < first_ns && first_ns < INT64_MAX) {
      it->before++;
      it->before_ns += g->ns;
    } else if (g->stream == it->stream)
      rows[(*n)++] = row;
    else {
      others[it->n_sides++] = row;
      it->aside_ns += g->ns;
    }
  }
  if (*n)
    qsort (rows, (size_t)*n, sizeof *rows, by_place);
  if (it->n_sides)
    qsort (others, (size_t)it->n_sides, sizeof *others, by_place);
  for (int32_t i = 0; i < it->n_sides; i++)
    it->sides[i] =
        (kineto_side){ others[i].start_ns, others[i].end_ns, k->gpu[others[i].gpu].owner };
  return rows;
}

static void add_to_run (const kineto *k, kineto_iteration *it, const placed *p, int64_t *end_ns,
                        int32_t *parts) {
  const kineto_gpu *g = &k->gpu[p->gpu];
  kineto_run *last = it->n_runs ? &it->runs[it->n_runs - 1] : NULL;
  int64_t launch_ns = kineto_launched_at (k, g);
  if (!last || g->owner == NONE || last->owner != g->owner) {
    it->runs[it->n_runs] =
        (kineto_run){ .start_ns = p->start_ns > *end_ns ? p->start_ns : *end_ns,
                      .owner = g->owner,
                      .name = g->owner != NONE ? k->ops[g->owner].name : g->name,
                      .thread = g->launch != NONE ? k->launches[g->launch].thread : NONE,
                      .part = g->owner != NONE ? parts[g->owner]++ : 0,
                      .first_launch_ns = launch_ns,
                      .last_launch_ns = launch_ns };
    last = &it->runs[it->n_runs++];
  }
  /* Kernels of one stream may overlap, by rounding or by design: time is counted once. */
  int64_t from = p->start_ns > *end_ns ? p->start_ns : *end_ns;
  if (p->end_ns > from) {
    last->ns += p->end_ns - from;
    it->busy_ns += p->end_ns - from;
    it->unlaunched_ns += g->launch == NONE ? p->end_ns - from : 0;
  }
  if (p->start_ns < *end_ns)
    it->overlap_ns += (p->end_ns < *end_ns ? p->end_ns : *end_ns) - p->start_ns;
  if (p->end_ns > *end_ns)
    *end_ns = p->end_ns;
  if (launch_ns < last->first_launch_ns)
    last->first_launch_ns = launch_ns;
  if (launch_ns > last->last_launch_ns)
    last->last_launch_ns = launch_ns;
  it->unlaunched += g->launch == NONE;
  it->unowned += g->owner == NONE;
}

/* The gap of a run holds everything since the run before began that was not its kernels: so idle
   time between the kernels of one owner counts before the next. */
static bool set_gaps (import_job *job, kineto_iteration *it, int64_t end_ns) {
  int64_t sum = 0;
  for (int32_t i = 0; i < it->n_runs; i++) {
    kineto_run *r = &it->runs[i];
    if (i) {
      const kineto_run *before = r - 1;
      r->gap_ns = r->start_ns - (before->start_ns + before->ns);
      if (r->gap_ns < 0)
        return error_set (job->err, ERR_internal, "ops overlap on the compute stream");
    }
    sum += r->ns + r->gap_ns;
  }
  if (it->n_runs == 0)
    return true;
  const kineto_run *last = &it->runs[it->n_runs - 1];
  it->first_ns = it->runs[0].start_ns;
  it->span_ns = end_ns - it->first_ns;
  /* Idle time between the kernels of the last run comes before the first op of the next step. */
  int64_t tail = it->span_ns - (last->start_ns + last->ns - it->first_ns);
  it->runs[0].gap_ns = tail;
  if (tail < 0 || sum + tail != it->span_ns)
    return error_set (job->err, ERR_internal, "durations and gaps do not add up to the span");
  return true;
}

bool kineto_runs (import_job *job, const kineto *k, kineto_window window, kineto_iteration *out) {
  int32_t n;
  out->window = window;
  out->n_runs = 0;
  out->overlap_ns = out->unlaunched = out->unowned = out->span_ns = 0;
  out->before = out->before_ns = out->aside_ns = out->busy_ns = out->unlaunched_ns = 0;
  placed *rows = place (job, k, out, &n);
  int32_t *parts = NEW (job->scratch, k->n_ops, int32_t, job->err);
  out->runs = rows ? NEW (job->scratch, n, kineto_run, job->err) : NULL;
  if (!out->runs || !parts)
    return false;
  int64_t end_ns = n ? rows[0].start_ns : 0;
  for (int32_t i = 0; i < n; i++)
    add_to_run (k, out, &rows[i], &end_ns, parts);
  return set_gaps (job, out, end_ns);
}

bool kineto_check_span (import_job *job, const kineto_iteration *it) {
  /* kineto_runs refuses anything else */
  const char *text = arena_format (job->a, job->err, "durations + gaps = span: yes, %lld ns%s",
                                   (long long)it->span_ns,
                                   it->overlap_ns ? "; overlapping kernels counted once" : "");
  report_check (job, text);
  if (it->unlaunched)
    report_warn (job, "GPU events without a launch", it->unlaunched, NULL);
  if (it->unowned)
    report_warn (job, "GPU events that no op launched", it->unowned, NULL);
  if (it->before)
    report_warn (job, "GPU events of the step before left out: launched before the profile began",
                 it->before, NULL);
  return text;
}

/* ---- other iterations ---- */

enum { MOST_SAMPLES = 32 };

bool kineto_samples (import_job *job, const kineto *k, const kineto_iteration *it,
                     trace_builder *b) {
  kineto_window *windows;
  int32_t n;
  if (!kineto_windows (job, k, it->device, &windows, &n))
    return false;
  int64_t *ns = NEW (job->scratch, it->n_runs, int64_t, job->err);
  if (!ns)
    return false;
  for (int32_t w = n > MOST_SAMPLES ? n - MOST_SAMPLES : 0; w < n; w++) {
    if (windows[w].start_ns == it->window.start_ns)
      continue;
    arena_mark mark = arena_here (job->scratch);
    kineto_iteration other = { .device = it->device, .stream = it->stream };
    if (!kineto_runs (job, k, windows[w], &other))
      return false;
    bool same = other.n_runs == it->n_runs;
    for (int32_t i = 0; same && i < it->n_runs; i++) {
      same = other.runs[i].name == it->runs[i].name && other.runs[i].part == it->runs[i].part;
      ns[i] = other.runs[i].ns;
    }
    job->facts.other_steps += other.n_runs > 0;
    job->facts.same_steps += same;
    if (same)
      build_samples (b, ns, it->n_runs);
    else if (other.n_runs)
      report_warn (job, "steps whose ops are not those of the planned one", 1, windows[w].name);
    arena_back (job->scratch, mark);
  }
  return true;
}
