/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which iteration is planned, and on which device and stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
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

bool kineto_is_listed (const kineto *k, int32_t op) {
  for (int depth = 0; op != NONE && depth < 64; depth++, op = k->ops[op].parent)
    if (k->ops[op].listed && !k->ops[op].annotation)
      return true;
  return false;
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

int64_t kineto_launched_at (const kineto *k, const kineto_gpu *g) {
  return g->launch != NONE ? k->launches[g->launch].at_ns : g->start_ns;
}

/* ---- windows ---- */

static int by_end (const void *a, const void *b) {
  const kineto_op *const *x = a, *const *y = b;
  return ORDER ((*x)->end_ns, (*y)->end_ns) ?: ORDER ((*x)->start_ns, (*y)->start_ns);
}

static bool is_optimizer (const kineto *k, int32_t op) {
  return slice_starts (k->names.texts[k->ops[op].name], "Optimizer.step#");
}

/* Optimizers that wrap others (of sharded state, or that look ahead) step within their own step. */
static bool is_wrapped (const kineto *k, int32_t op) {
  op = k->ops[op].parent;
  for (int depth = 0; op != NONE && depth < 64; depth++, op = k->ops[op].parent)
    if (is_optimizer (k, op))
      return true;
  return false;
}

/* From the end of one Optimizer.step# to the end of the next. */
static bool optimizer_windows (import_job *job, const kineto *k, kineto_window **out, int32_t *n) {
  int32_t count = 0;
  const kineto_op **found = NEW (job->scratch, k->n_ops, const kineto_op *, job->err);
  if (!found)
    return false;
  for (int32_t i = 0; i < k->n_ops; i++)
    if (is_optimizer (k, i) && !is_wrapped (k, i))
      found[count++] = &k->ops[i];
  if (count < 2)
    return true;
  qsort (found, (size_t)count, sizeof *found, by_end);
  if (!ALLOC (job->scratch, *out, count - 1, job->err))
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

bool kineto_windows (import_job *job, const kineto *k, int32_t device, kineto_window **out,
                     int32_t *n) {
  *n = 0;
  *out = NULL;
  if (k->n_steps == 0)
    return (job->options.marks != IMPORT_MARKED || optimizer_windows (job, k, out, n)) &&
           (*n || kineto_unmarked_windows (job, k, device, out, n));
  if (!ALLOC (job->scratch, *out, k->n_steps, job->err))
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

bool kineto_in_window (const kineto *k, const kineto_gpu *g, kineto_window w) {
  int64_t at = kineto_launched_at (k, g);
  return at >= w.start_ns && at < w.end_ns;
}

/* The k of ProfilerStep#k, by where the window begins: steps without length make none. */
static int64_t step_number (const kineto *k, kineto_window w) {
  for (int32_t i = 0; i < k->n_steps; i++)
    if (k->steps[i].start_ns == w.start_ns && k->steps[i].end_ns == w.end_ns)
      return k->steps[i].number;
  return -1;
}

/* Kernels of the device that were launched in the window; or of these only those whose call the
   execution trace beside the file has. */
static int64_t work_in (const kineto *k, int32_t device, kineto_window w, bool listed) {
  int64_t n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    n += k->gpu[i].device == device && k->gpu[i].kind == GPU_KERNEL &&
         kineto_in_window (k, &k->gpu[i], w) && (!listed || kineto_is_listed (k, k->gpu[i].owner));
  return n;
}

/* The GPU does something in it, and the execution trace has that much of it. */
static bool has_work (const kineto *k, int32_t device, kineto_window w, int percent) {
  int64_t all = work_in (k, device, w, false),
          listed = k->paired ? work_in (k, device, w, true) : all;
  return listed && 100 * listed >= percent * all;
}

typedef struct content {
  int32_t kernels;
  uint32_t phases; /* as bits; work that nobody owns is of none */
} content;

static int by_number (const void *a, const void *b) {
  const int32_t *x = a, *y = b;
  return ORDER (*x, *y);
}

/* The last window that begins at or before a time, or NONE; they stand in order. */
static int32_t window_at (const kineto_window *windows, int32_t n, int64_t at_ns) {
  return FIRST_WHERE (i, 0, n, windows[i].start_ns > at_ns) - 1;
}

static content *find_contents (import_job *job, const kineto *k, int32_t device,
                               const kineto_window *windows, int32_t n) {
  content *rows = NEW (job->scratch, n, content, job->err);
  for (int32_t i = 0; rows && i < k->n_gpu; i++) {
    const kineto_gpu *g = &k->gpu[i];
    int32_t w = window_at (windows, n, kineto_launched_at (k, g));
    if (w == NONE || g->device != device || g->kind != GPU_KERNEL ||
        !kineto_in_window (k, g, windows[w]))
      continue;
    rows[w].kernels++;
    if (g->owner != NONE)
      rows[w].phases |= 1U << kineto_phase (k, g->owner);
  }
  return rows;
}

/* Steps that the profiler cut off when it stopped: they lack a phase that others have, or have far
   fewer kernels than the middle one of three or more.  Not than the largest: a first step may try
   kernels, and make what stays. */
static bool *find_cut (import_job *job, const kineto *k, int32_t device,
                       const kineto_window *windows, int32_t n) {
  content *rows = find_contents (job, k, device, windows, n);
  bool *cut = NEW (job->scratch, n, bool, job->err);
  int32_t *kernels = NEW (job->scratch, n, int32_t, job->err);
  if (!rows || !cut || !kernels)
    return NULL;
  uint32_t phases = 0;
  int32_t working = 0;
  for (int32_t i = 0; i < n; i++) {
    phases |= rows[i].phases;
    if (rows[i].kernels)
      kernels[working++] = rows[i].kernels;
  }
  if (working)
    qsort (kernels, (size_t)working, sizeof *kernels, by_number);
  int32_t least = working > 2 ? kernels[working / 2] - kernels[working / 2] / 4 : 0;
  for (int32_t i = 0; i < n; i++)
    cut[i] = rows[i].phases != phases || rows[i].kernels < least;
  return cut;
}

/* The last step of which the file has enough, and that is not one of those; -1: none. */
static int32_t last_enough (const kineto *k, int32_t device, const kineto_window *windows,
                            int32_t n, int percent, const bool *cut) {
  while (n > 0 && ((cut && cut[n - 1]) || !has_work (k, device, windows[n - 1], percent)))
    n--;
  return n - 1;
}

static int32_t last_with_work (import_job *job, const kineto *k, int32_t device,
                               const kineto_window *windows, int32_t n) {
  /* From optimizer to optimizer, and where kernels repeat, all are whole. */
  bool *cut = k->n_steps ? find_cut (job, k, device, windows, n) : NULL;
  int32_t at = last_enough (k, device, windows, n, 75, cut);
  if (at < 0)
    at = last_enough (k, device, windows, n, 75, NULL);
  if (at < 0)
    at = last_enough (k, device, windows, n, 0, NULL);
  if (at < 0)
    return n - 1;
  if (at < n - 1)
    report_warn (job,
                 cut && cut[at + 1] && work_in (k, device, windows[at + 1], false)
                     ? "steps behind the chosen one were cut off, or have no GPU work"
                 : k->paired ? "steps behind the chosen one have no GPU work, or are not in the "
                               "execution trace"
                             : "steps behind the chosen one have no GPU work",
                 n - 1 - at, windows[at + 1].name);
  return at;
}

/* Without calls of the execution trace in it, nothing would say what the step's ops use. */
static bool need_calls (import_job *job, const kineto *k, int32_t device,
                        const kineto_window *windows, int32_t n, int32_t at) {
  if (!k->paired || work_in (k, device, windows[at], true))
    return true;
  int32_t other = last_enough (k, device, windows, n, 0, NULL);
  return error_set (job->err, ERR_infeasible,
                    "no kernel of %s was launched by a call of the execution trace: %s%s",
                    windows[at].name, other >= 0 ? "that is of " : "record both over the same step",
                    other >= 0 ? windows[other].name : " (docs/record.md)");
}

static bool choose_window (import_job *job, const kineto *k, kineto_iteration *it) {
  kineto_window *windows;
  int32_t n;
  if (!kineto_windows (job, k, it->device, &windows, &n))
    return false;
  if (n == 0)
    return kineto_refuse_unmarked (job, k, it->device);
  int32_t at = last_with_work (job, k, it->device, windows, n);
  if (job->err->code != ERR_none)
    return false;
  if (job->options.step >= 0) {
    at = 0;
    while (at < n && !(k->n_steps ? step_number (k, windows[at]) == job->options.step
                                  : at == job->options.step))
      at++;
    if (at == n)
      return error_set (job->err, ERR_infeasible, "no step %lld: there are %d, %s to %s",
                        (long long)job->options.step, n, windows[0].name, windows[n - 1].name);
  }
  if (!need_calls (job, k, it->device, windows, n, at))
    return false;
  it->window = windows[at];
  bool optimizers = k->n_steps == 0 && job->options.marks == IMPORT_MARKED;
  job->facts.by_optimizers = optimizers;
  if (k->n_steps == 0 && !optimizers)
    job->facts.unmarked = job->options.marks == IMPORT_WHOLE
                              ? "the whole profile is taken for one step"
                              : "the step is a repetition of kernels";
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

static bool choose_device (import_job *job, const kineto *k, kineto_iteration *it) {
  tally rows[TALLIES];
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    tally_of (rows, &n, k->gpu[i].device)->count++;
  if (n == 0 && k->n_ops == 0)
    return error_set (job->err, ERR_infeasible,
                      "a timeline without one event of torch.profiler, as TensorFlow, JAX, other "
                      "tracers and the older torch.autograd.profiler write: it does not say what "
                      "is held. Record a step with torch.profiler, or write what it does as text "
                      "(docs/record.md)");
  if (n == 0)
    return error_set (
        job->err, ERR_infeasible,
        "no GPU events (CPU-only profile?): profile with "
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], or record the step "
        "for a card that is not there with ferry_torch.record (docs/pytorch.md)");
  const tally *best = &rows[0];
  for (int i = 0; i < n; i++)
    if (job->options.device >= 0 ? rows[i].key == job->options.device
                                 : rows[i].count > best->count ||
                                       (rows[i].count == best->count && rows[i].key < best->key))
      best = &rows[i];
  if (job->options.device >= 0 && best->key != job->options.device) {
    char text[120] = "";
    for (int i = 0, length = 0; i < n && length < 100; i++)
      length += snprintf (text + length, sizeof text - (size_t)length, "%s%lld", i ? ", " : "",
                          (long long)rows[i].key);
    return error_set (job->err, ERR_infeasible, "no GPU events of device %d; there are some of %s",
                      job->options.device, text);
  }
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
    if (g->device != it->device || !kineto_in_window (k, g, it->window))
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
  *out = (kineto_iteration){ .all = job->options.streams };
  return choose_device (job, k, out) && choose_window (job, k, out) && choose_stream (job, k, out);
}
