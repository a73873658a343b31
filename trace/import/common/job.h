/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the importers of one call: the decoded files, the options, the report being written. */
#pragma once

#include "trace/build.h"
#include "trace/import/common/report.h"
#include "trace/import/common/stream.h"

typedef struct import_text {
  const char *name; /* without folders */
  const char *text;
  int64_t size;
  import_format format;
} import_text;

/* Observations of an importer that decide how sure its trace is (checks.def); -1 or NULL: nothing
   is known of it. */
typedef struct import_facts {
  bool measured; /* a profile, not somebody's own words: the checks make sense */
  /* GPU time of the step: all that the file shows, that of the planned ops, that of other streams,
     that of work nobody owns. */
  int64_t seen_ns, kept_ns, aside_ns, unowned_ns;
  int64_t timeless;           /* GPU events without a time */
  int64_t unlaunched;         /* ops that no launch is known of */
  int64_t calls, calls_found; /* of one file in the other */
  int64_t widened;            /* calls of autograd that do not list what they use */
  int64_t ops_by_nobody;      /* ops without a listed call, and so without tensors */
  const char *two_runs;       /* why the two files look like two runs */
  const char *unmarked;       /* how the step was told where no mark says it */
  bool by_optimizers;         /* steps are told by optimizers, of which one may have several */
  int64_t other_steps, same_steps;
  int64_t *moved_bytes; /* per op: what its kernels certainly read or wrote; NULL: not known */
  int32_t *created;     /* tensors that the update made to stay, in ascending order */
  int32_t n_created;
} import_facts;

typedef struct import_job {
  const import_text *files;
  int n_files;
  import_options options;
  arena *a;       /* holds everything that outlives the import */
  arena *scratch; /* freed when it is done */
  import_report *report;
  error *err;
  import_facts facts;
} import_job;

/* One file a format, but where the name says otherwise. */
bool kernels_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool intervals_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool dtr_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool plain_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool kineto_import (import_job *job, const import_text *file, const import_text *snapshot,
                    trace **out) MUST_CHECK;
bool et_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool et_kineto_import (import_job *job, const import_text *et, const import_text *kineto,
                       trace **out) MUST_CHECK;
bool chakra_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool snapshot_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;

/* Is the text one? */
bool chakra_sniff (const char *text, int64_t size);
bool intervals_sniff (const char *text, int64_t size);
bool plain_sniff (const char *text, int64_t size);

/* False, and an error that names it, where the text is a known artefact that cannot be planned. */
bool artefact_refuse (const char *text, int64_t size, error *err) MUST_CHECK;
/* The same of a text that is none of the formats: a table of something else. */
bool artefact_refuse_table (const char *text, int64_t size, error *err) MUST_CHECK;

/* ---- the report ---- */

/* One more of a kind; the first example stays.  Names longer than a line are cut. */
void report_warn (import_job *job, const char *what, int64_t count, const char *example);
/* A line of `checks`; the text lives in the arena. */
void report_check (import_job *job, const char *text);
/* The version of the file that is read n-th. */
void report_version (import_job *job, const import_text *file, const char *version);
/* Runs the self-checks on a finished trace and lowers its confidence by what fails. */
bool checks_run (import_job *job, trace *t) MUST_CHECK;
/* All that can be counted off the finished trace: ops, tensors, times, peak and its holders. */
bool report_trace (import_job *job, const trace *t) MUST_CHECK;

/* The file's name up to its first dot: what a trace is called when nothing else is known. */
const char *job_trace_name (import_job *job, const import_text *file);
