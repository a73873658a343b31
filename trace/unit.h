/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A unit is placed and moved as one: a tensor, or a group of tensors. Unit i < n_tensors is tensor
   i; unit n_tensors + g is group g. A tensor that is grouped, pooled or never used is no unit: its
   bytes are 0. */
#pragma once

#include "trace/plan.h"
#include "trace/uses.h"

#define MOST_UNITS_BYTES ((int64_t)1 << 60) /* of all of them together */

typedef struct unit_info {
  int64_t bytes;       /* 0: not a unit */
  int64_t granules;    /* bytes over granule_bytes, rounded up */
  int32_t first, last; /* uses; NO_OP where none (persistent only) */
  bool persistent, pinned;
  bool whole; /* never in parts */
} unit_info;

typedef struct units {
  const trace *trace;
  int32_t count; /* n_tensors + n_groups */
  unit_info *at;
  int32_t *group_of;   /* per tensor: its group or -1 */
  int64_t pool_bytes;  /* of tensors below pool_below_bytes, rounded up to 512 each */
  int32_t *use_offset; /* count + 1 */
  use *uses;           /* the union of the members' uses, in order of ops */
} units;

bool units_of (const trace *t, const index_list *groups, int32_t n_groups, int64_t granule_bytes,
               int64_t pool_below_bytes, arena *a, units *out, error *err) MUST_CHECK;

/* The room of a member of a group, or of the pool: its bytes rounded up to 512. */
int64_t unit_member_bytes (int64_t bytes);

/* The bytes that a copy of part `part` of `of` carries. */
int64_t unit_part_bytes (const unit_info *u, int64_t granule_bytes, int32_t part, int32_t of);
/* Granules [first, end) of the unit's own that are this part. */
int64_t unit_part_first (const unit_info *u, int32_t part, int32_t of);
