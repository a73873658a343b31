/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace's needs before anyone plans anything: its bytes by kind, the peak and who holds it,
   and the floor below which no plan can go.  Bytes are those of the tensors, not rounded to
   granules. */
#pragma once

#include "trace/trace.h"

typedef struct kind_total {
  int64_t bytes;
  int32_t count;
} kind_total;

typedef struct summary {
  kind_total kinds[TENSOR_KINDS]; /* tensors that are nothing are left out */
  int64_t tensor_bytes, persistent_bytes;
  int64_t compute_ns, idle_ns; /* idle: gaps, of several streams those on a longest path */
  int64_t *bytes_at; /* per op: what lives while it runs, its workspace included */
  int64_t peak_bytes;
  int32_t peak_op;  /* the first one */
  int32_t *holders; /* tensors that live at the peak, largest first */
  int32_t n_holders;
  /* The largest working set of an op: what it touches, its workspace, and what is pinned. */
  int64_t floor_bytes;
  int32_t floor_op;
  /* The same when each op runs in its most sections; of a cut tensor it counts what a section of
     the most items surely has. */
  int64_t floor_sections_bytes;
  int32_t floor_sections_op;
} summary;

/* The lists live in `a`. */
bool summary_of (const trace *t, arena *a, summary *out, error *err) MUST_CHECK;
