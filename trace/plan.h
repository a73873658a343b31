/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan: orders, waits and places, never times.  Indices are those of the rewritten trace, but in
   `order` (the original's), `sections` (those of the trace in that order) and `recomputes` (the
   sectioned one's). */
#pragma once

#include "trace/cover.h"
#include "trace/device.h"
#include "trace/trace.h"

#define PLAN_FORMAT "ferry-plan/1"
#define NO_WAIT INT32_MIN

/* A run of consecutive ops. */
typedef struct op_run {
  int32_t first, count;
} op_run;

typedef enum section_order { SECTION_LEVEL, SECTION_DEPTH, SECTION_ORDERS } section_order;

typedef struct section {
  int32_t first, end; /* ops [first, end) */
  int64_t parts;
  section_order order;
} section;

typedef struct recompute {
  int32_t before;
  index_list ops, replaces;
} recompute;

typedef struct move {
  int32_t unit, part, of;
  int32_t out_after, in_before;
  int32_t in_ops, in_outs; /* or NO_WAIT */
  bool clean;
  int64_t host_offset;
} move;

typedef struct op_wait {
  int32_t op, outs;
} op_wait;

typedef enum stay_kind { STAY_TENSOR, STAY_GROUP, STAY_MOVE, STAY_WORKSPACE } stay_kind;

typedef struct stay {
  stay_kind kind;
  int32_t index; /* a tensor, a place in `groups`, a move or an op */
  int32_t part;  /* of a tensor or group that begins with the birth */
  int32_t first_run, n_runs;
} stay;

typedef struct granule_run {
  int32_t first, count;
} granule_run;

/* Granules are mapped one by one, so that a stay may have any of them.  An arena is one range of
   bytes, in steps of PLACEMENT_STEP: a stay has one stretch of it, and nothing is mapped. */
typedef enum placement_kind { PLACEMENT_GRANULES, PLACEMENT_ARENA, PLACEMENT_KINDS } placement_kind;
enum { PLACEMENT_STEP = 512 };

typedef struct placement {
  placement_kind kind;
  int64_t granule_bytes, pool_below_bytes, pool_bytes; /* granule_bytes of an arena: its step */
  int32_t granules;
  bool same_places; /* it promises that every stay of a part has the same granules */
  stay *stays;
  int32_t n_stays;
  granule_run *runs;
  int32_t n_runs;
} placement;

static inline int64_t stay_granules (const placement *p, const stay *s) {
  int64_t granules = 0;
  for (int32_t i = 0; i < s->n_runs; i++)
    granules += p->runs[s->first_run + i].count;
  return granules;
}

extern const char *const placement_names[PLACEMENT_KINDS + 1]; /* NULL at the end */

typedef struct predicted {
  int64_t step_ns, compute_ns, baseline_ns, stall_ns;
  int64_t peak_bytes, host_peak_bytes, d2h_bytes, h2d_bytes;
  bool settled;
} predicted;

typedef struct certificate {
  int64_t lower_bound_ns;
  double gap;     /* step_ns over the bound, less one */
  bool has_cover; /* older files have none */
  cover cover;    /* the plans that none of is faster than the bound */
  const char *bound_by, *found_by;
  const char *limit_met; /* or NULL */
  const char *proof;     /* canonical JSON, or NULL */
} certificate;

typedef struct plan {
  const char *trace_digest; /* "sha256:..." of the original trace */
  device device;
  int64_t budget_bytes, host_bytes;
  op_run *order; /* all ops, in the order in which they run; none: as it is */
  section *sections;
  recompute *recomputes;
  index_list *groups;
  move *moves;
  int32_t *out_order, *in_order;
  op_wait *op_waits;
  int32_t n_order, n_sections, n_recomputes, n_groups, n_moves, n_outs, n_ins, n_op_waits;
  int32_t *resting; /* tensors that no op uses, on the host from step to step */
  int32_t n_resting;
  placement placement;
  bool has_predicted, has_certificate;
  predicted predicted;
  certificate certificate;
  const char *made_by; /* canonical JSON, or NULL */
} plan;

/* Types, ranges and indices as far as they can be seen without the trace; the rest is check's. */
plan *plan_load (const char *path, const read_options *o, arena *a, error *err) MUST_CHECK;
plan *plan_parse (const char *text, int64_t size, const read_options *o, arena *a,
                  error *err) MUST_CHECK;
/* All of it, in another arena. */
plan *plan_copy (const plan *p, arena *a, error *err) MUST_CHECK;
/* packed: stays, moves and op_waits as columns. */
bool plan_text (const plan *p, bool packed, bytes *out, error *err) MUST_CHECK;
bool plan_store (const plan *p, const char *path, bool packed, error *err) MUST_CHECK;
/* key: of the member; NULL: none.  p: NULL is written as null. */
void predicted_write (json_writer *w, const char *key, const predicted *p);
/* The member `certificate`, without its proof where that is not wanted; NULL as null. */
void certificate_write (json_writer *w, const certificate *c, bool proof);
