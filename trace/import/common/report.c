/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of an import: counted off the finished trace where that is possible, so that what is
   printed and what is written cannot differ. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/import/common/intern.h"
#include "trace/import/common/job.h"
#include "trace/uses.h"

void report_warn (import_job *job, const char *what, int64_t count, const char *example) {
  assert (what && count >= 0);
  import_report *r = job->report;
  int i = 0;
  while (i < r->n_warnings && strcmp (r->warnings[i].what, what) != 0)
    i++;
  if (i == IMPORT_WARNINGS)
    return;
  if (i == r->n_warnings) {
    char cut[100];
    error ignored = { 0 };
    snprintf (cut, sizeof cut, "%s", example ? example : "");
    const char *copy = arena_string (job->a, cut, &ignored);
    r->warnings[r->n_warnings++] = (import_warning){ .what = what, .example = copy ? copy : "" };
  }
  r->warnings[i].count += count;
}

void report_check (import_job *job, const char *text) {
  import_report *r = job->report;
  if (text && r->n_checks < IMPORT_CHECKS)
    r->checks[r->n_checks++] = text;
}

void report_version (import_job *job, const import_text *file, const char *version) {
  for (int i = 0; i < job->n_files; i++)
    if (&job->files[i] == file)
      job->report->read[i].version = version;
}

const char *job_trace_name (import_job *job, const import_text *file) {
  const char *dot = strchr (file->name, '.'); /* the name has no folders */
  size_t length = dot && dot != file->name ? (size_t)(dot - file->name) : strlen (file->name);
  return slice_name ((slice){ file->name, (int64_t)length, false }, job->a, job->err);
}

/* ---- peak ---- */

typedef struct life {
  int32_t first, last; /* ops, both included; NO_OP: never there */
} life;

static life life_of (const trace *t, const uses *u, int32_t i) {
  if (t->tensors[i].persistent)
    return (life){ 0, t->n_ops - 1 };
  return (life){ uses_first (u, i), uses_last (u, i) };
}

/* The largest few, by insertion: IMPORT_HOLDERS is small. */
static void hold (import_report *r, const char *name, int64_t bytes) {
  int at = r->n_holders;
  while (at > 0 && r->holders[at - 1].bytes < bytes)
    at--;
  if (at == IMPORT_HOLDERS)
    return;
  int end = r->n_holders < IMPORT_HOLDERS ? r->n_holders++ : IMPORT_HOLDERS - 1;
  memmove (r->holders + at + 1, r->holders + at, (size_t)(end - at) * sizeof r->holders[0]);
  r->holders[at] = (import_holder){ name, bytes };
}

/* The holders alive at the op; tensors of one name (a line of source) are one holder. */
static bool find_holders (import_job *job, const trace *t, const uses *u, int32_t at) {
  intern names = intern_new (job->scratch);
  int64_t *sums = NEW (job->scratch, t->n_tensors, int64_t, job->err);
  if (!sums)
    return false;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    life l = life_of (t, u, i);
    const char *name = t->tensors[i].name;
    if (l.first == NO_OP || l.first > at || at > l.last)
      continue;
    int32_t n =
        intern_add (&names, (slice){ name, (int64_t)strlen (name), false }, false, job->err);
    if (n < 0)
      return false;
    sums[n] += t->tensors[i].bytes;
  }
  job->report->n_holders = 0;
  for (int32_t n = 0; n < names.count; n++)
    hold (job->report, names.texts[n].at, sums[n]);
  return true;
}

/* The greatest sum, and where.  Tensors of `born` (ascending) only live from their first use on. */
static bool sum_lives (import_job *job, const trace *t, const uses *u, const int32_t *born,
                       int32_t n_born, int64_t *peak, int32_t *at) {
  int64_t *change = NEW (job->scratch, (int64_t)t->n_ops + 1, int64_t, job->err);
  if (!change)
    return false;
  for (int32_t i = 0, next = 0; i < t->n_tensors; i++) {
    life l = life_of (t, u, i);
    if (next < n_born && born[next] == i) {
      l.first = uses_first (u, i);
      next++;
    }
    if (l.first == NO_OP)
      continue;
    change[l.first] += t->tensors[i].bytes;
    change[l.last + 1] -= t->tensors[i].bytes;
  }
  int64_t live = 0;
  *peak = *at = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    live += change[k];
    if (live + t->ops[k].workspace_bytes > *peak) {
      *peak = live + t->ops[k].workspace_bytes;
      *at = k;
    }
  }
  return true;
}

/* If the step makes the state of its optimizer: state stays, so the steps behind it have it from
   their start.  Both peaks are said. */
static bool find_peak (import_job *job, const trace *t) {
  import_report *r = job->report;
  const import_facts *f = &job->facts;
  uses u;
  int32_t at, first_at;
  if (!uses_of (t, job->scratch, &u, job->err) ||
      !sum_lives (job, t, &u, NULL, 0, &r->peak_bytes, &at) ||
      (f->n_created &&
       !sum_lives (job, t, &u, f->created, f->n_created, &r->first_peak_bytes, &first_at)))
    return false;
  if (!r->peak_at)
    r->peak_at = arena_format (job->a, job->err, "op %d %s", at, t->ops[at].name);
  return r->peak_at && find_holders (job, t, &u, at);
}

bool report_trace (import_job *job, const trace *t) {
  import_report *r = job->report;
  r->n_ops = t->n_ops;
  r->n_tensors = t->n_tensors;
  r->busy_ns = r->idle_ns = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    r->ops_by_phase[t->ops[k].phase]++;
    r->busy_ns += t->ops[k].ns;
    r->idle_ns += t->ops[k].gap_ns;
    r->reads += t->ops[k].reads.count;
  }
  for (int32_t i = 0; i < t->n_tensors; i++) {
    r->tensors_by_kind[t->tensors[i].kind]++;
    r->bytes_by_kind[t->tensors[i].kind] += t->tensors[i].bytes;
  }
  r->confidence = t->source.confidence;
  r->doubt = t->source.doubt;
  return find_peak (job, t);
}

/* ---- for people ---- */

typedef struct page {
  bytes *out;
  error *err;
  bool ok;
} page;

static void say (page *p, const char *format, ...) PRINTF_LIKE (2, 3);
static void say (page *p, const char *format, ...) {
  char text[1200];
  va_list args;
  va_start (args, format);
  int length = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  if (length >= (int)sizeof text)
    length = (int)sizeof text - 1;
  p->ok = p->ok && length >= 0 && bytes_append (p->out, text, length, p->err);
}

static void say_read (page *p, const import_report *r) {
  for (int i = 0; i < r->n_read; i++)
    say (p, "%-12s%s (%s%s%s), sha256 %.12s\n", i ? "" : "read", r->read[i].name, r->read[i].format,
         r->read[i].version ? ", " : "", r->read[i].version ? r->read[i].version : "",
         r->read[i].sha256);
  if (r->joined)
    say (p, "%-12s%s\n", "joined", r->joined);
  if (r->card)
    say (p, "%-12s%s\n", "card", r->card);
}

static const char *milliseconds (char text[UNITS_TEXT], int64_t ns) {
  int64_t us = ns / 1000 + (ns % 1000 >= 500);
  snprintf (text, UNITS_TEXT, "%lld.%03d ms", (long long)(us / 1000), (int)(us % 1000));
  return text;
}

static void say_time (page *p, const import_report *r) {
  char iteration[UNITS_TEXT], busy[UNITS_TEXT], idle[UNITS_TEXT];
  milliseconds (iteration, r->iteration_ns);
  milliseconds (busy, r->busy_ns);
  milliseconds (idle, r->idle_ns);
  if (r->iteration)
    say (p, "%-12s%s, %s\n", "iteration", r->iteration,
         r->iteration_ns ? iteration : "time unknown");
  if (r->busy_ns + r->idle_ns > 0)
    say (p, "%-12sbusy %s, idle %s%s%s\n", "time", busy, idle, r->streams ? "; streams " : "",
         r->streams ? r->streams : "");
  else
    say (p, "%-12sunknown\n", "time");
  say (p, "%-12s%lld", "ops", (long long)r->n_ops);
  for (int i = 0; i < OP_PHASES; i++)
    if (r->ops_by_phase[i])
      say (p, "  %s %lld", op_phase_names[i], (long long)r->ops_by_phase[i]);
  say (p, "\n");
}

static void say_bytes (page *p, const import_report *r) {
  char text[UNITS_TEXT], other[UNITS_TEXT];
  say (p, "%-12s%lld\n", "tensors", (long long)r->n_tensors);
  if (r->zero_tensors || r->unused_tensors)
    say (p, "%-12s%lld of zero bytes, %lld that no op could use\n", "dropped",
         (long long)r->zero_tensors, (long long)r->unused_tensors);
  else
    say (p, "%-12snone\n", "dropped");
  say (p, "%-12s", "bytes");
  bool any = false;
  for (int i = 0; i < TENSOR_KINDS; i++)
    if (r->tensors_by_kind[i]) {
      say (p, "%s%s %s (%lld)", any ? "  " : "", tensor_kind_names[i],
           units_bytes (text, r->bytes_by_kind[i]), (long long)r->tensors_by_kind[i]);
      any = true;
    }
  say (p, "%s\n", any ? "" : "unknown");
  if (r->peak_bytes)
    say (p, "%-12s%s%s%s, at %s\n", "peak", units_bytes (text, r->peak_bytes),
         r->peak_by ? " by " : "", r->peak_by ? r->peak_by : "", r->peak_at);
  if (r->first_peak_bytes)
    say (p, "%-12s%s in this step, which makes the state of its optimizer; %s in those behind it\n",
         "", units_bytes (text, r->first_peak_bytes), units_bytes (other, r->peak_bytes));
  for (int i = 0; i < r->n_holders; i++)
    say (p, "%-12s%s %s\n", i ? "" : "held by", units_bytes (text, r->holders[i].bytes),
         r->holders[i].name);
}

/* The floor of what nothing says who reads is one of our ignorance, and is called so. */
static void say_floor (page *p, const import_report *r) {
  char text[UNITS_TEXT];
  if (r->floor_bytes && r->floor_at)
    say (p, "%-12s%s, at %s: below that no plan goes\n", "floor",
         units_bytes (text, r->floor_bytes), r->floor_at);
  if (r->held_tensors)
    say (p,
         "%-12s%lld tensors (%s in all) stay, since nothing says who reads them; %lld may move\n",
         "", (long long)r->held_tensors, units_bytes (text, r->held_bytes),
         (long long)r->free_tensors);
}

static void say_checks (page *p, const import_report *r) {
  static const char *const answers[] = { "not known", "yes", "no" };
  int n = 0;
  for (import_check_id i = 0; i < IMPORT_SELF_CHECKS; i++)
    if (r->self[i].verdict != VERDICT_UNKNOWN)
      say (p, "%-12s%s: %s, %s\n", n++ ? "" : "checks", import_check_name (i),
           answers[r->self[i].verdict], r->self[i].says);
  for (int i = 0; i < r->n_checks; i++)
    say (p, "%-12s%s\n", n++ ? "" : "checks", r->checks[i]);
  if (n == 0)
    say (p, "%-12snone\n", "checks");
}

bool import_report_text (const import_report *r, bytes *out, error *err) {
  page p = { out, err, true };
  say_read (&p, r);
  say_time (&p, r);
  say_bytes (&p, r);
  say_floor (&p, r);
  say_checks (&p, r);
  say (&p, "%-12s%s", "inferred", r->inferred ? r->inferred : "nothing");
  if (r->reads_inferred)
    say (&p, " (%lld of %lld reads)", (long long)r->reads_inferred, (long long)r->reads);
  say (&p, "\n");
  for (int i = 0; i < r->n_warnings; i++)
    say (&p, "%-12s%lld %s%s%s%s\n", i ? "" : "warnings", (long long)r->warnings[i].count,
         r->warnings[i].what, r->warnings[i].example[0] ? " (" : "", r->warnings[i].example,
         r->warnings[i].example[0] ? ")" : "");
  if (r->n_warnings == 0)
    say (&p, "%-12snone\n", "warnings");
  say (&p, "%-12s%s%s%s\n", "confidence", confidence_words[r->confidence], *r->doubt ? ": " : "",
       r->doubt);
  if (r->advice)
    say (&p, "%-12s%s\n", "next", r->advice);
  return p.ok;
}

/* ---- for programs ---- */

/* Words to counts, in the order of the words: JSON keys are sorted. */
static void put_counts (json_writer *w, const char *key, const char *const *words, int n_words,
                        const int64_t *counts) {
  json_add_object (w, key);
  const char *last = "";
  for (int n = 0; n < n_words; n++) {
    int next = -1;
    for (int i = 0; i < n_words; i++)
      if (strcmp (words[i], last) > 0 && (next < 0 || strcmp (words[i], words[next]) < 0))
        next = i;
    last = words[next];
    json_add_int (w, last, counts[next]);
  }
  json_close_object (w);
}

static void put_read (json_writer *w, const import_report *r) {
  json_add_array (w, "read");
  for (int i = 0; i < r->n_read; i++) {
    json_open_object (w);
    json_add_text (w, "format", r->read[i].format);
    json_add_text (w, "name", r->read[i].name);
    json_add_text (w, "sha256", r->read[i].sha256);
    json_add_text (w, "version", r->read[i].version);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_warnings (json_writer *w, const import_report *r) {
  json_add_array (w, "warnings");
  for (int i = 0; i < r->n_warnings; i++) {
    json_open_object (w);
    json_add_int (w, "count", r->warnings[i].count);
    json_add_text (w, "example", r->warnings[i].example);
    json_add_text (w, "what", r->warnings[i].what);
    json_close_object (w);
  }
  json_close_array (w);
}

/* The self-checks, each with the word it lowers to where it fails. */
static void put_self (json_writer *w, const import_report *r) {
  static const char *const answers[] = { "not known", "yes", "no" };
  json_add_array (w, "self_checks");
  for (import_check_id i = 0; i < IMPORT_SELF_CHECKS; i++) {
    json_open_object (w);
    json_add_text (w, "answer", answers[r->self[i].verdict]);
    json_add_text (w, "lowers", import_check_lowers (i));
    json_add_text (w, "name", import_check_name (i));
    json_add_text (w, "says", r->self[i].says);
    json_close_object (w);
  }
  json_close_array (w);
}

void import_report_json (const import_report *r, json_writer *w) {
  json_open_object (w);
  json_add_text (w, "advice", r->advice);
  json_add_int (w, "busy_ns", r->busy_ns);
  put_counts (w, "bytes_by_kind", tensor_kind_names, TENSOR_KINDS, r->bytes_by_kind);
  json_add_text (w, "card", r->card);
  json_add_array (w, "checks");
  for (int i = 0; i < r->n_checks; i++)
    json_put_text (w, r->checks[i]);
  json_close_array (w);
  confidence_write (w, r->confidence, r->doubt);
  json_add_object (w, "dropped");
  json_add_int (w, "unused", r->unused_tensors);
  json_add_int (w, "zero_bytes", r->zero_tensors);
  json_close_object (w);
  json_add_int (w, "first_peak_bytes", r->first_peak_bytes);
  json_add_int (w, "floor_bytes", r->floor_bytes);
  json_add_int (w, "free_tensors", r->free_tensors);
  json_add_array (w, "held_by");
  for (int i = 0; i < r->n_holders; i++) {
    json_open_object (w);
    json_add_int (w, "bytes", r->holders[i].bytes);
    json_add_text (w, "name", r->holders[i].name);
    json_close_object (w);
  }
  json_close_array (w);
  json_add_int (w, "held_bytes", r->held_bytes);
  json_add_int (w, "held_tensors", r->held_tensors);
  json_add_int (w, "idle_ns", r->idle_ns);
  json_add_text (w, "inferred", r->inferred);
  json_add_text (w, "iteration", r->iteration);
  json_add_int (w, "iteration_ns", r->iteration_ns);
  json_add_text (w, "joined", r->joined);
  json_add_int (w, "ops", r->n_ops);
  put_counts (w, "ops_by_phase", op_phase_names, OP_PHASES, r->ops_by_phase);
  json_add_text (w, "peak_at", r->peak_at);
  json_add_text (w, "peak_by", r->peak_by);
  json_add_int (w, "peak_bytes", r->peak_bytes);
  put_read (w, r);
  json_add_int (w, "reads", r->reads);
  json_add_int (w, "reads_inferred", r->reads_inferred);
  put_self (w, r);
  json_add_text (w, "streams", r->streams);
  json_add_int (w, "tensors", r->n_tensors);
  put_counts (w, "tensors_by_kind", tensor_kind_names, TENSOR_KINDS, r->tensors_by_kind);
  put_warnings (w, r);
  json_close_object (w);
}
