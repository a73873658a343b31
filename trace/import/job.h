/* What the importers of one call share: the decoded files, the options, the report being written.
 */
#ifndef FERRY_TRACE_IMPORT_JOB_H
#define FERRY_TRACE_IMPORT_JOB_H

#include "trace/build.h"
#include "trace/import/import.h"
#include "trace/import/stream.h"

typedef struct import_text {
  const char *name; /* without folders */
  const char *text;
  int64_t size;
  import_format format;
} import_text;

typedef struct import_job {
  const import_text *files;
  int n_files;
  import_options options;
  arena *a;       /* what outlives the import */
  arena *scratch; /* freed when it is done */
  import_report *report;
  error *err;
} import_job;

/* One file a format, but where the name says otherwise. */
bool kernels_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
bool intervals_import (import_job *job, const import_text *file, trace **out) MUST_CHECK;
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

/* ---- the report ---- */

/* One more of a kind; the first example stays.  Names longer than a line are cut. */
void report_warn (import_job *job, const char *what, int64_t count, const char *example);
/* A line of `checks`; the text lives in the arena. */
void report_check (import_job *job, const char *text);
/* The version of the file that is read n-th. */
void report_version (import_job *job, const import_text *file, const char *version);
/* All that can be counted off the finished trace: ops, tensors, times, peak and its holders. */
bool report_trace (import_job *job, const trace *t) MUST_CHECK;

/* The file's name up to its first dot: what a trace is called when nothing else is known. */
const char *job_trace_name (import_job *job, const import_text *file);

#endif
