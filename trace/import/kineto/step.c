/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels of the chosen iteration on the compute stream, or on all, as ops. */
#include <stdlib.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

typedef struct placed {
  int64_t start_ns, end_ns;
  int32_t gpu, stream;
} placed;

static int by_place (const void *a, const void *b) {
  const placed *x = a, *y = b;
  return ORDER (x->stream, y->stream) ?: ORDER (x->start_ns, y->start_ns)
         ?: ORDER (x->end_ns, y->end_ns) ?: ORDER (x->gpu, y->gpu);
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

/* The events of the window's compute stream in order; those of other streams become sides, or
   follow stream by stream. */
static placed *place (import_job *job, const kineto *k, kineto_iteration *it, int32_t *n) {
  int32_t count = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    count += k->gpu[i].device == it->device && kineto_in_window (k, &k->gpu[i], it->window);
  placed *rows = NEW (job->scratch, count, placed, job->err);
  placed *others = NEW (job->scratch, count, placed, job->err);
  if (!ALLOC (job->scratch, it->sides, count, job->err) || !rows || !others)
    return NULL;
  *n = it->n_sides = 0;
  int64_t first_ns = first_launched (k, it);
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device != it->device || !kineto_in_window (k, g, it->window))
      continue;
    placed row = { g->start_ns, g->start_ns + g->ns, i,
                   it->all ? kineto_stream_number (it, g->stream) : 0 };
    if (g->launch == NONE && g->start_ns < first_ns && first_ns < INT64_MAX) {
      it->before++;
      it->before_ns += g->ns;
    } else if (it->all || g->stream == it->stream)
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

/* The event goes on with the last run, that of `before`: it has the same owner, and no work of
   another stream lies between. */
static bool goes_on (const kineto *k, const kineto_iteration *it, const kineto_moments *cuts,
                     const placed *before, const placed *p) {
  const kineto_run *last = it->n_runs ? &it->runs[it->n_runs - 1] : NULL;
  int32_t owner = k->gpu[p->gpu].owner;
  if (!last || owner == NONE || last->owner != owner || last->stream != p->stream)
    return false;
  kineto_moment ends[] = { { .at_ns = before->start_ns }, { .at_ns = before->end_ns } };
  return !cuts || !kineto_is_cut (cuts, p->stream, ends, p->start_ns, p->end_ns);
}

static void add_to_run (const kineto *k, kineto_iteration *it, const placed *p, bool more,
                        int64_t *end_ns, int32_t *parts) {
  const kineto_gpu *g = &k->gpu[p->gpu];
  kineto_run *last = it->n_runs ? &it->runs[it->n_runs - 1] : NULL;
  int64_t launch_ns = kineto_launched_at (k, g);
  if (!more) {
    it->runs[it->n_runs] =
        (kineto_run){ .start_ns = p->start_ns > *end_ns ? p->start_ns : *end_ns,
                      .owner = g->owner,
                      .name = g->owner != NONE ? k->ops[g->owner].name : g->name,
                      .thread = g->launch != NONE ? k->launches[g->launch].thread : NONE,
                      .gpu = p->gpu,
                      .part = g->owner != NONE ? parts[g->owner]++ : 0,
                      .first_launch_ns = launch_ns,
                      .last_launch_ns = launch_ns,
                      .begin_ns = p->start_ns,
                      .stream = p->stream,
                      .place = it->n_runs,
                      .launched = true };
    last = &it->runs[it->n_runs++];
  }
  if (it->all)
    it->run_of[p->gpu] = it->n_runs - 1;
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
  if (p->end_ns > last->end_ns)
    last->end_ns = p->end_ns;
  last->launched &= g->launch != NONE;
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

static bool list_moments (import_job *job, const placed *rows, int32_t n, kineto_moments *out) {
  *out = (kineto_moments){ NEW (job->scratch, n, kineto_moment, job->err),
                           NEW (job->scratch, n, kineto_moment, job->err), n };
  if (!out->starts || !out->ends)
    return false;
  for (int32_t i = 0; i < n; i++) {
    out->starts[i] = (kineto_moment){ rows[i].start_ns, rows[i].stream, 0 };
    out->ends[i] = (kineto_moment){ rows[i].end_ns, rows[i].stream, 0 };
  }
  kineto_sort_moments (out->starts, n);
  kineto_sort_moments (out->ends, n);
  return true;
}

bool kineto_runs (import_job *job, const kineto *k, kineto_window window, kineto_iteration *out) {
  int32_t n;
  out->window = window;
  out->n_runs = 0;
  out->overlap_ns = out->unlaunched = out->unowned = out->span_ns = 0;
  out->before = out->before_ns = out->aside_ns = out->busy_ns = out->unlaunched_ns = 0;
  if (out->all && (!kineto_number_streams (job, k, out) ||
                   !(out->run_of = NEW (job->scratch, k->n_gpu, int32_t, job->err))))
    return false;
  for (int32_t i = 0; out->all && i < k->n_gpu; i++)
    out->run_of[i] = NONE;
  placed *rows = place (job, k, out, &n);
  kineto_moments cuts;
  int32_t *parts = NEW (job->scratch, k->n_ops, int32_t, job->err);
  out->runs = rows ? NEW (job->scratch, n, kineto_run, job->err) : NULL;
  if (!out->runs || !parts || (out->all && !list_moments (job, rows, n, &cuts)))
    return false;
  int64_t end_ns = 0;
  for (int32_t i = 0; i < n; i++) {
    if (i == 0 || rows[i].stream != rows[i - 1].stream)
      end_ns = rows[i].start_ns;
    bool more = i && goes_on (k, out, out->all ? &cuts : NULL, &rows[i - 1], &rows[i]);
    add_to_run (k, out, &rows[i], more, &end_ns, parts);
  }
  return out->all ? kineto_list_streams (job, k, out) : set_gaps (job, out, end_ns);
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

/* Work beside a run decides where it ends. So with several streams only compute is compared, and
   its times are not kept: they are of other ops than the trace's. */
bool kineto_samples (import_job *job, const kineto *k, const kineto_iteration *chosen,
                     trace_builder *b) {
  kineto_window *windows;
  int32_t n;
  kineto_iteration alone = { .device = chosen->device, .stream = chosen->stream };
  const kineto_iteration *it = chosen->all ? &alone : chosen;
  if (!kineto_windows (job, k, it->device, &windows, &n) ||
      (chosen->all && !kineto_runs (job, k, chosen->window, &alone)))
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
    if (same && !chosen->all)
      build_samples (b, ns, it->n_runs);
    else if (!same && other.n_runs)
      report_warn (job, "steps whose ops are not those of the planned one", 1, windows[w].name);
    arena_back (job->scratch, mark);
  }
  return true;
}
