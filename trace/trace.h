/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One training step: operations in order, each with a duration and the tensors that it touches.
   The fields are the point, so nothing here is opaque.  docs/formats.md has the meaning of each. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#define TRACE_FORMAT "ferry-trace/1"
#define MOST_NS ((int64_t)1 << 53)            /* of an op, a gap, and their sum */
#define MOST_BYTES ((int64_t)1 << 53)         /* of anything but a tensor */
#define MOST_TENSOR_BYTES ((int64_t)1 << 48)  /* also of a workspace */
#define MOST_GRANULE_BYTES ((int64_t)1 << 30) /* in which memory is mapped */
#define MOST_PARTS ((int64_t)1 << 53)         /* also of a batch */
#define NO_OP (-1)                            /* born_before, dies_after: not given */
#define MOST_STREAMS 64

typedef enum tensor_kind {
  TENSOR_PARAMETER,
  TENSOR_OPTIMIZER,
  TENSOR_INPUT,
  TENSOR_ACTIVATION,
  TENSOR_GRADIENT,
  TENSOR_WORKSPACE,
  TENSOR_TEMPORARY,
  TENSOR_KINDS
} tensor_kind;

/* The ways in which an executor can make a tensor again. A copy of any but AGAIN_FREELY stays on
   the device until its last use. */
typedef enum tensor_again {
  AGAIN_FREELY,
  AGAIN_STAYS,
  AGAIN_PASSES, /* only on the way to another: the program holds the first one */
  AGAIN_NEVER,
  AGAIN_KINDS
} tensor_again;

typedef enum op_phase { OP_FORWARD, OP_BACKWARD, OP_UPDATE, OP_OTHER, OP_PHASES } op_phase;

/* An op that several ranks run together. */
typedef enum collective_kind {
  COLLECTIVE_none,
  COLLECTIVE_all_reduce,
  COLLECTIVE_all_gather,
  COLLECTIVE_reduce_scatter,
  COLLECTIVE_all_to_all,
  COLLECTIVE_broadcast,
  COLLECTIVE_send,
  COLLECTIVE_recv,
  COLLECTIVE_KINDS
} collective_kind;

extern const char *const tensor_kind_names[TENSOR_KINDS + 1]; /* NULL at the end */
extern const char *const op_phase_names[OP_PHASES + 1];
extern const char *const tensor_again_names[AGAIN_KINDS + 1];
extern const char *const collective_names[COLLECTIVE_KINDS + 1]; /* "" where it is none */

typedef struct index_list {
  int32_t *at;
  int32_t count;
} index_list;

static inline bool list_has (const index_list *list, int32_t index) {
  for (int32_t i = 0; i < list->count; i++)
    if (list->at[i] == index)
      return true;
  return false;
}

typedef struct tensor {
  const char *name;
  int64_t bytes;
  int32_t born_before, dies_after; /* an op, or NO_OP */
  uint8_t kind;                    /* a tensor_kind */
  bool persistent, pinned;
  bool split;    /* cut along the batch when its op runs in sections */
  bool whole;    /* moves as one: what an executor asks for, not the file */
  bool placed;   /* its copies have the place that it has */
  uint8_t again; /* a tensor_again */
  int32_t
      twin; /* of a placed one that is made again, and of its copies: its index and one; 0: none */
} tensor;

typedef struct op {
  const char *name;
  int64_t ns, gap_ns, workspace_bytes, parts;
  index_list reads, writes;
  index_list side;     /* of what it touches: a copy of the op leaves it alone */
  index_list digested; /* of what it touches: digests decided whether it is written */
  index_list unknown;  /* nothing did, so it is read and written */
  index_list after;    /* ops before it in the list, of any stream: it waits for their ends */
  const char *compute; /* canonical JSON, or NULL */
  const char *group;   /* of a collective: the ranks that take part; or NULL */
  int64_t group_bytes; /* of a collective: what each rank puts in or gets */
  int32_t stream;
  op_phase phase;
  collective_kind collective;
} op;

static inline bool op_touches (const op *o, int32_t tensor) {
  return list_has (&o->reads, tensor) || list_has (&o->writes, tensor);
}

/* How sure a trace is: as measured; something was inferred; which of an op's tensors it reads or
   writes was found by looking at them; is not known; no plan may be made of it. */
typedef enum confidence {
  CONFIDENCE_EXACT,
  CONFIDENCE_APPROXIMATE,
  CONFIDENCE_LEARNED,
  CONFIDENCE_TOUCHED,
  CONFIDENCE_NOT_PLANNABLE
} confidence;
extern const char *const confidence_words[]; /* NULL at the end */

typedef struct trace_source {
  const char *kind, *detail;
  const char *device;   /* the card that the times were taken on, as it calls itself; or "" */
  const char *made_for; /* else the device file whose card they are for; or "" */
  const char *zoo;      /* the zoo's request, canonical JSON; or NULL */
  const char *inputs;   /* types and shapes of the batch, as zoo; of a recording */
  confidence confidence;
  const char *doubt;   /* the reason why it is no more, or "" */
  const char **checks; /* the importer's checks of itself, a line each */
  int32_t n_checks;
} trace_source;

typedef struct trace {
  const char *name;
  trace_source source;
  int64_t batch;
  int32_t n_tensors, n_ops, n_samples;
  int32_t n_streams; /* 0 and 1: all ops run one after the other */
  tensor *tensors;
  op *ops;
  int64_t *ns_samples; /* n_samples rows of n_ops */
} trace;

typedef enum trace_layout { TRACE_PLAIN, TRACE_PACKED } trace_layout;

/* How any of the three files is read. */
typedef struct read_options {
  const logger *log;   /* unknown keys and the like; NULL: silent */
  bool strict;         /* an unknown key is an error */
  int64_t limit_bytes; /* of the decoded text; 0: 4 GiB */
} read_options;

/* Those, or the defaults; messages begin with the file's name. */
static inline read_options reading_of_file (const read_options *o, const char *path,
                                            log_file *named) {
  read_options out = o ? *o : (read_options){ 0 };
  out.log = log_of_file (named, out.log, path);
  return out;
}

/* Everything read lives in the arena. `o` may be NULL. */
trace *trace_load (const char *path, const read_options *o, arena *a, error *err) MUST_CHECK;
trace *trace_parse (const char *text, int64_t size, const read_options *o, arena *a,
                    error *err) MUST_CHECK;
/* Ranges and the rules that hold between fields; what trace_parse returns has passed it. */
bool trace_validate (const trace *t, error *err) MUST_CHECK;

bool trace_text (const trace *t, trace_layout layout, bytes *out, error *err) MUST_CHECK;
/* Compressed as the path's ending says. */
bool trace_store (const trace *t, const char *path, trace_layout layout, error *err) MUST_CHECK;

/* The name that a plan gives its trace: "sha256:" and 64 digits. */
enum { TRACE_DIGEST = 7 + 64 + 1 };
bool trace_digest (const trace *t, char digest[TRACE_DIGEST], error *err) MUST_CHECK;

static inline bool trace_has_streams (const trace *t) {
  return t->n_streams > 1;
}

/* One more than the last stream that an op names. */
int32_t trace_count_streams (const trace *t);
/* Sum of durations and gaps: of all ops, and of the stream that has most. */
int64_t trace_sum_ns (const trace *t);
int64_t trace_busiest_ns (const trace *t);
/* The time of a step in which nothing stalls: the sum, or the longest path of several streams. */
int64_t trace_total_ns (const trace *t);
/* When each op and those before it in the list have ended if nothing stalls: n_ops + 1 times, of
   which [k] is that of op k - 1. */
int64_t *trace_ends (const trace *t, arena *a, error *err) MUST_CHECK;
/* Between the end of op `after` and the end of what is before op `before`, cyclically, by these
   times. */
static inline int64_t trace_rest_ns (const int64_t *ends_ns, int32_t n_ops, int32_t after,
                                     int32_t before) {
  int64_t ns = ends_ns[before] - ends_ns[after + 1];
  return before <= after ? ns + ends_ns[n_ops] : ns;
}
bool trace_is_plannable (const trace *t);
bool trace_knows_only_touches (const trace *t);
/* That, or "learned": it was seen from below, where small tensors do not show. */
bool trace_is_of_program (const trace *t);
/* The error has the reason and what to record instead. */
bool trace_must_plan (const trace *t, error *err) MUST_CHECK;
/* "exact", "approximate: what is inferred". */
const char *confidence_text (confidence c, const char *doubt, arena *a, error *err);
/* The members "confidence", a word, and "doubt", where there is one, of an open object. */
void confidence_write (json_writer *w, confidence c, const char *doubt);
/* The doubt to repeat beside every plan of it: "the trace is approximate: ..."; NULL: exact. */
const char *trace_doubt (const trace *t, arena *a, error *err);
