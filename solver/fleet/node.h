/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many ranks of a job fit a host: chosen from plans that were simulated together. */
#pragma once

#include "trace/host.h"

/* Ranks that run together in one budget each. */
typedef struct node_row {
  int32_t ranks;
  int64_t budget_bytes;
  int64_t step_ns; /* of all ranks together; -1: no plan */
  int64_t bound_ns, pinned_bytes;
  const char *why; /* there is no plan; or NULL */
} node_row;

typedef struct node_facts {
  const char *host, *device;
  int32_t cards;
  int64_t card_bytes, reserved_bytes; /* of each card; reserved: by a process beside its budget */
  int64_t host_bytes, pinnable_bytes;
  int64_t baseline_ns, needs_bytes; /* of a rank with everything on its card */
} node_facts;

typedef struct node_question {
  int64_t slowdown_ppm;    /* that a step may be longer by */
  int64_t rank_host_bytes; /* of the host, by each process beside what it pins */
  int32_t ranks;           /* 0: as many as fit */
} node_question;

typedef struct node_answer {
  const node_row *row; /* the most ranks, each in the least budget; NULL: none fit */
  char reason[240];    /* why none fit */
} node_answer;

/* The longest step that is short enough. */
int64_t node_most_ns (const node_facts *f, const node_question *q);
bool node_fits (const node_facts *f, const node_question *q, const node_row *row);
void node_choose (const node_facts *f, const node_question *q, const node_row *rows, int32_t n,
                  node_answer *out);
/* Memory of the host that the ranks of a row take. */
int64_t node_host_bytes (const node_question *q, const node_row *row);

/* The answer of `whatif --host`, as it was written. */
bool node_read (const json *root, arena *a, node_facts *f, node_row **rows, int32_t *n,
                error *err) MUST_CHECK;

/* An answer's origin; each may be NULL. */
typedef struct node_source {
  const char *curve, *fingerprint, *trace;
  const node_row *rows; /* that were tried; written if there are any */
  int32_t n_rows;
} node_source;
void node_answer_write (json_writer *w, const node_facts *f, const node_question *q,
                        const node_answer *a, const node_source *from);
