/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The view that every policy has: the unswapped timeline, the gaps of the tensors, the bytes that
   live at each op.  Bytes that count against a budget are rounded to granules, as in a plan;
   scores, floors and copy times use a tensor's own. */
#pragma once

#include "trace/device.h"
#include "trace/unit.h"

/* Tensor `tensor` is not used between ops a and b; a wrapping gap (b <= a) goes on in the next
   step. */
typedef struct view_gap {
  int32_t tensor, a, b;
  int64_t idle_ns;
} view_gap;

typedef enum view_class { CLASS_OTHER, CLASS_CONV, CLASS_FC, CLASS_JOIN, CLASS_CONCAT } view_class;

typedef struct view_rows {
  int32_t *offset, *at;
} view_rows;

typedef struct policy_view {
  const trace *trace;
  const device *device;
  arena *arena;
  int64_t budget_bytes, host_bytes;
  int policy;                   /* the policy_id of the one that decides */
  const int64_t *option;        /* and its values, by policy_option; NULL before and after */
  bool (*stop) (void *context); /* as policy_request's */
  void *stop_context;
  int64_t pool_below_bytes; /* smaller tensors live in the pool and do not move */
  units units;
  uses uses; /* of every tensor, the pool's too */
  int32_t n_ops, n_tensors;
  int64_t *start_ns, *end_ns; /* per op */
  int64_t step_ns;
  int64_t *res;       /* per op: bytes that live if nothing moves */
  int64_t *held;      /* per tensor: its granules' bytes; 0: in the pool, or nothing */
  int64_t pool_bytes; /* part of every res */
  bool *movable;      /* per tensor: a unit of its own, not pinned, used */
  view_gap *gaps;     /* by tensor, then a; of movable tensors */
  int32_t n_gaps;
  int32_t *gap_offset; /* per tensor, n_tensors + 1 */
  int32_t *fb; /* per tensor: its gap from forward to backward, or -1; not of persistent ones */
  int32_t first_backward;
  link_rates rates;
  /* The graph: an op depends on those that wrote what it reads, in this step. */
  view_rows before, after;
  int32_t *level;    /* per op: the longest path from an op that depends on none */
  int32_t *producer; /* per tensor: the first op that writes it, or NO_OP */
  uint8_t *class;    /* per op: a view_class, from `compute` or the name */
  int32_t *layer;    /* per backward op: the last op of the forward layer it belongs to, or NO_OP */
} policy_view;

bool policy_view_build (const trace *t, const device *d, int64_t budget_bytes, int64_t host_bytes,
                        arena *a, policy_view *out, error *err) MUST_CHECK;

/* ---- its parts ---- */

/* The graph, the classes and the layers; the rest of the view but its gaps stands. */
bool view_add_graph (policy_view *v, error *err) MUST_CHECK;
bool view_make_rows (view_rows *r, int32_t n, int64_t total, arena *a, error *err) MUST_CHECK;

/* ---- questions ---- */

int64_t view_out_ns (const policy_view *v, int32_t tensor);
int64_t view_in_ns (const policy_view *v, int32_t tensor);
/* The op at which the step has its greatest res; the first of several. */
int32_t view_peak (const policy_view *v, const int64_t *res);

static inline bool gap_wraps (const view_gap *g) {
  return g->b <= g->a;
}

/* Strictly inside the gap. */
static inline bool gap_covers (const view_gap *g, int32_t k) {
  return gap_wraps (g) ? k > g->a || k < g->b : k > g->a && k < g->b;
}

/* The start of op i, which may be of the step before: -n_ops <= i. */
int64_t view_start_ns (const policy_view *v, int32_t i);

/* The last i, as in_not_before, from which x_ns pass until op b of the gap starts; where there is
   none the first place behind a. A wrapping gap's may be of the step before: at most 0. */
int32_t view_late (const policy_view *v, const view_gap *g, int64_t x_ns);

/* res less the gap's bytes while it is surely away: ops behind a and before place i. */
void view_relieve (const policy_view *v, int64_t *res, const view_gap *g, int32_t i);
void view_add (const policy_view *v, int64_t *res, const view_gap *g, int32_t i, int64_t bytes);

/* By units, so of tensors that can move only. */
bool view_uses (const policy_view *v, int32_t op, int32_t tensor);
/* A copy of the residents that a policy may change. */
int64_t *view_residents (const policy_view *v, error *err) MUST_CHECK;
/* `seen` has room for every op. */
bool view_reaches (const policy_view *v, int32_t from, int32_t to, uint8_t *seen);
/* Per op, the gaps from forward to backward that begin and end with it, by tensor. */
typedef struct view_events {
  view_rows begins, ends;
} view_events;
bool view_fb_events (const policy_view *v, view_events *out, error *err) MUST_CHECK;

/* Gap indices in a given order: ascending by `less`, then by index. */
typedef int view_order (const policy_view *v, int32_t a, int32_t b, const void *context);
void view_sort (const policy_view *v, int32_t *items, int32_t count, view_order *order,
                const void *context);

int64_t view_workspace_bytes (const policy_view *v, int32_t k);
/* Bytes of what op k touches and its workspace. */
int64_t view_working_set (const policy_view *v, int32_t k, bool persistent_too);

/* Bytes of all persistent tensors, the pool's not counted. */
int64_t view_persistent_bytes (const policy_view *v);
