/* Which iteration is planned, on which device and stream, and what ran there as ops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/import/kineto/kineto.h"

op_phase kineto_phase (const kineto *k, int32_t op) {
  if (op == NONE)
    return OP_OTHER;
  switch (k->ops[op].mark) {
  case MARK_UPDATE:
    return OP_UPDATE;
  case MARK_BACKWARD:
    return OP_BACKWARD;
  default:
    return OP_FORWARD;
  }
}

const char *kineto_name (import_job *job, const kineto *k, int32_t name) {
  return slice_name (k->names.texts[name], job->a, job->err);
}

const char *kineto_run_name (import_job *job, const kineto *k, const kineto_run *run) {
  const char *name = kineto_name (job, k, run->name);
  if (!name || run->part == 0)
    return name;
  return arena_format (job->a, job->err, "%s (%d)", name, run->part + 1);
}

static int64_t launched_at (const kineto *k, const kineto_gpu *g) {
  return g->launch != NONE ? k->launches[g->launch].at_ns : g->start_ns;
}

/* ---- windows ---- */

static int by_end (const void *a, const void *b) {
  const kineto_op *const *x = a, *const *y = b;
  if ((*x)->end_ns != (*y)->end_ns)
    return (*x)->end_ns < (*y)->end_ns ? -1 : 1;
  return (*x)->start_ns < (*y)->start_ns ? -1 : (*x)->start_ns > (*y)->start_ns;
}

/* From the end of one Optimizer.step# to the end of the next. */
static bool optimizer_windows (import_job *job, const kineto *k, kineto_window **out, int32_t *n) {
  int32_t count = 0;
  const kineto_op **found = NEW (job->scratch, k->n_ops, const kineto_op *, job->err);
  if (!found)
    return false;
  for (int32_t i = 0; i < k->n_ops; i++)
    if (slice_starts (k->names.texts[k->ops[i].name], "Optimizer.step#"))
      found[count++] = &k->ops[i];
  if (count < 2)
    return true;
  qsort (found, (size_t)count, sizeof *found, by_end);
  *out = NEW (job->scratch, count - 1, kineto_window, job->err);
  if (!*out)
    return false;
  for (int32_t i = 0; i + 1 < count; i++) {
    const char *name = arena_format (job->a, job->err, "Optimizer.step# %d to %d", i, i + 1);
    if (!name)
      return false;
    (*out)[i] = (kineto_window){ found[i]->end_ns, found[i + 1]->end_ns, name };
  }
  *n = count - 1;
  return true;
}

bool kineto_windows (import_job *job, const kineto *k, kineto_window **out, int32_t *n) {
  *n = 0;
  *out = NULL;
  if (k->n_steps == 0)
    return optimizer_windows (job, k, out, n);
  *out = NEW (job->scratch, k->n_steps, kineto_window, job->err);
  if (!*out)
    return false;
  for (int32_t i = 0; i < k->n_steps; i++) {
    const kineto_step *s = &k->steps[i];
    const char *name = arena_format (job->a, job->err, "ProfilerStep#%lld", (long long)s->number);
    if (!name)
      return false;
    if (s->end_ns > s->start_ns)
      (*out)[(*n)++] = (kineto_window){ s->start_ns, s->end_ns, name };
  }
  return true;
}

static bool choose_window (import_job *job, const kineto *k, kineto_iteration *it) {
  kineto_window *windows;
  int32_t n;
  if (!kineto_windows (job, k, &windows, &n))
    return false;
  if (n == 0)
    return error_set (job->err, ERR_infeasible,
                      "no complete iteration: call profiler.step() every iteration, so that the "
                      "profile has ProfilerStep# marks");
  int32_t at = n - 1;
  if (job->options.step >= 0) {
    at = 0;
    while (at < n &&
           !(k->n_steps ? k->steps[at].number == job->options.step : at == job->options.step))
      at++;
    if (at == n)
      return error_set (job->err, ERR_infeasible, "no step %lld: there are %d, %s to %s",
                        (long long)job->options.step, n, windows[0].name, windows[n - 1].name);
  }
  it->window = windows[at];
  job->report->iteration =
      arena_format (job->a, job->err, "%s of %d step%s", windows[at].name, n, n == 1 ? "" : "s");
  job->report->iteration_ns = windows[at].end_ns - windows[at].start_ns;
  return job->report->iteration;
}

/* ---- device and stream ---- */

typedef struct tally {
  int64_t key, count, forward;
} tally;

enum { TALLIES = 256 };

static tally *tally_of (tally *rows, int *n, int64_t key) {
  for (int i = 0; i < *n; i++)
    if (rows[i].key == key)
      return &rows[i];
  if (*n == TALLIES)
    return &rows[TALLIES - 1];
  rows[*n] = (tally){ .key = key };
  return &rows[(*n)++];
}

static bool in_window (const kineto *k, const kineto_gpu *g, kineto_window w) {
  int64_t at = launched_at (k, g);
  return at >= w.start_ns && at < w.end_ns;
}

static bool choose_device (import_job *job, const kineto *k, kineto_iteration *it) {
  tally rows[TALLIES];
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    tally_of (rows, &n, k->gpu[i].device)->count++;
  if (n == 0)
    return error_set (job->err, ERR_infeasible,
                      "no GPU events (CPU-only profile?): profile with "
                      "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
  const tally *best = &rows[0];
  for (int i = 0; i < n; i++)
    if (job->options.device >= 0 ? rows[i].key == job->options.device
                                 : rows[i].count > best->count ||
                                       (rows[i].count == best->count && rows[i].key < best->key))
      best = &rows[i];
  if (job->options.device >= 0 && best->key != job->options.device)
    return error_set (job->err, ERR_infeasible,
                      "no GPU events of device %d; there are some of %lld", job->options.device,
                      (long long)rows[0].key);
  it->device = (int32_t)best->key;
  for (int i = 0; i < n; i++)
    if (rows[i].key != best->key) {
      char text[48];
      snprintf (text, sizeof text, "device %lld", (long long)rows[i].key);
      report_warn (job, "GPU events of other devices left out", rows[i].count, text);
    }
  return true;
}

/* The stream on which most forward work is launched, not the one with the most time: in a model
   with large collectives that is another one.  Copies do not count: loading has its own stream. */
static bool choose_stream (import_job *job, const kineto *k, kineto_iteration *it) {
  tally rows[TALLIES];
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device != it->device || !in_window (k, g, it->window))
      continue;
    tally *row = tally_of (rows, &n, g->stream);
    row->count++;
    row->forward += g->kind == GPU_KERNEL && kineto_phase (k, g->owner) == OP_FORWARD;
  }
  if (n == 0)
    return error_set (job->err, ERR_infeasible, "no GPU events of device %d were launched in %s",
                      it->device, it->window.name);
  const tally *best = &rows[0];
  for (int i = 1; i < n; i++)
    if (rows[i].forward > best->forward ||
        (rows[i].forward == best->forward && rows[i].count > best->count))
      best = &rows[i];
  it->stream = best->key;
  char text[256];
  int length = snprintf (text, sizeof text, "%lld (compute)", (long long)best->key);
  for (int i = 0; i < n && length < 200; i++)
    if (&rows[i] != best)
      length +=
          snprintf (text + length, sizeof text - (size_t)length, ", %lld", (long long)rows[i].key);
  snprintf (text + length, sizeof text - (size_t)length, " of device %d", it->device);
  job->report->streams = arena_string (job->a, text, job->err);
  return job->report->streams;
}

bool kineto_choose (import_job *job, const kineto *k, kineto_iteration *out) {
  *out = (kineto_iteration){ 0 };
  return choose_device (job, k, out) && choose_window (job, k, out) && choose_stream (job, k, out);
}

/* ---- runs ---- */

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

/* The events of the window's compute stream in order; those of other streams become sides. */
static placed *place (import_job *job, const kineto *k, kineto_iteration *it, int32_t *n) {
  int32_t count = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    count += k->gpu[i].device == it->device && in_window (k, &k->gpu[i], it->window);
  placed *rows = NEW (job->scratch, count, placed, job->err);
  placed *others = NEW (job->scratch, count, placed, job->err);
  it->sides = NEW (job->scratch, count, kineto_side, job->err);
  if (!rows || !others || !it->sides)
    return NULL;
  *n = it->n_sides = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    if (g->device != it->device || !in_window (k, g, it->window))
      continue;
    placed row = { g->start_ns, g->start_ns + g->ns, i };
    if (g->stream == it->stream)
      rows[(*n)++] = row;
    else
      others[it->n_sides++] = row;
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
  int64_t launch_ns = launched_at (k, g);
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
  if (p->end_ns > from)
    last->ns += p->end_ns - from;
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
  return text;
}

/* ---- other iterations ---- */

enum { MOST_SAMPLES = 32 };

bool kineto_samples (import_job *job, const kineto *k, const kineto_iteration *it,
                     trace_builder *b) {
  kineto_window *windows;
  int32_t n;
  if (!kineto_windows (job, k, &windows, &n))
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
    if (same)
      build_samples (b, ns, it->n_runs);
    else
      report_warn (job, "steps whose ops are not those of the planned one", 1, windows[w].name);
    arena_back (job->scratch, mark);
  }
  return true;
}
