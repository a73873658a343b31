/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The request of an import and its findings: files in, a trace and this report out. */
#pragma once

#include "base/json.h"
#include "trace/trace.h"

enum { IMPORT_FILES = 2, IMPORT_WARNINGS = 16, IMPORT_HOLDERS = 8, IMPORT_CHECKS = 8 };

typedef enum import_format {
#define FORMAT(name, says) IMPORT_##name,
#include "trace/import/common/import.def"
#undef FORMAT
  IMPORT_FORMATS
} import_format;

/* A step of a profile that marks none: refused, or one of these. */
typedef enum import_marks { IMPORT_MARKED, IMPORT_REPEATS, IMPORT_WHOLE } import_marks;

typedef struct import_options {
  int64_t step;        /* the k of ProfilerStep#k; -1: the last complete one */
  int32_t device;      /* -1: the one with most GPU events */
  int64_t limit_bytes; /* of each decoded text; 0: 4 GiB */
  bool likely;         /* reads that a Kineto file does not show: only those that are likely */
  import_marks marks;
  bool streams; /* ops of all streams that a Kineto file shows, not those of compute alone */
} import_options;

#define IMPORT_DEFAULTS ((import_options){ .step = -1, .device = -1 })

/* One file in memory, compressed or not. */
typedef struct import_source {
  const char *name; /* for messages and the report; folders are cut off */
  const void *data;
  int64_t size;
} import_source;

typedef struct import_read {
  const char *name, *format, *version;
  char sha256[65]; /* of the file as it lies on disk */
} import_read;

/* How often one kind of oddity was met, with one example by name. */
typedef struct import_warning {
  const char *what;
  int64_t count;
  const char *example;
} import_warning;

typedef struct import_holder {
  const char *name;
  int64_t bytes;
} import_holder;

typedef enum import_check_id {
#define CHECK(id, name, lowers, asks) CHECK_##id,
#include "trace/import/common/checks.def"
#undef CHECK
  IMPORT_SELF_CHECKS
} import_check_id;

typedef enum import_verdict { VERDICT_UNKNOWN, VERDICT_HOLDS, VERDICT_FAILS } import_verdict;

/* One row of the table of self-checks, answered. */
typedef struct import_check {
  import_verdict verdict;
  const char *says; /* the figures behind it; "" where it is not known */
} import_check;

const char *import_check_name (import_check_id id);
/* The word that it lowers the confidence to. */
const char *import_check_lowers (import_check_id id);

/* The findings, how sure they are, and what to record instead where they do not suffice.  Texts
   live in the arena of the import. */
typedef struct import_report {
  import_read read[IMPORT_FILES];
  int n_read;
  const char *joined;    /* "1672 of 1672 ops on 2 threads by name sequence", or NULL */
  const char *iteration; /* "ProfilerStep#7 of 3 steps", or NULL */
  const char *streams;   /* "7 (compute), 14", or NULL */
  int64_t iteration_ns;  /* 0: not known */
  int64_t busy_ns, idle_ns;
  int64_t n_ops, ops_by_phase[OP_PHASES];
  int64_t n_tensors, tensors_by_kind[TENSOR_KINDS], bytes_by_kind[TENSOR_KINDS];
  int64_t zero_tensors;   /* dropped: no bytes */
  int64_t unused_tensors; /* dropped: no op between birth and death */
  int64_t peak_bytes;
  int64_t reference_peak_bytes; /* the peak by the profile's own memory events; 0: none */
  int64_t first_peak_bytes;     /* of a step that makes its optimizer's state; 0: it makes none */
  int64_t floor_bytes;          /* the most that one op uses at once, with what stays */
  const char *floor_at;
  const char *peak_by; /* "last use", "memory events", ... */
  const char *peak_at; /* "op 402 aten::cudnn_batch_norm" */
  import_holder holders[IMPORT_HOLDERS];
  int n_holders;
  import_check self[IMPORT_SELF_CHECKS];
  const char *checks[IMPORT_CHECKS]; /* other comparisons that were made */
  int n_checks;
  const char *inferred; /* NULL: nothing */
  int64_t reads, reads_inferred;
  int64_t held_tensors, held_bytes; /* stay on the device since nothing says who reads them */
  int64_t free_tensors;             /* may move between uses that the file supports */
  const char *card;                 /* "Tesla V100-SXM2-32GB"; NULL: not in the file */
  int64_t card_bytes;               /* 0: not in the file */
  confidence confidence;            /* as in the trace's source */
  const char *doubt;
  import_marks helps; /* if no step is marked: how to take one all the same */
  const char *advice; /* the thing to record instead; NULL where the trace can be planned */
  import_warning warnings[IMPORT_WARNINGS];
  int n_warnings;
} import_report;

/* The report for people, and the same fields as JSON. */
bool import_report_text (const import_report *r, bytes *out, error *err) MUST_CHECK;
void import_report_json (const import_report *r, json_writer *w);
