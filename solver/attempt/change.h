/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of one candidate while a local search changes them: the bytes resident at each op
   follow every change, and all changes since the last settled state can be taken back. */
#pragma once

#include "base/random.h"
#include "solver/attempt/layout.h"
#include "solver/flow/peaks.h"

typedef struct change {
  const layout *layout;
  int32_t *of;            /* per unit */
  const int64_t *ends_ns; /* as trace_ends */
  int32_t *parts;         /* per gap: how many are away */
  peaks level;            /* per op: bytes resident */
  int32_t *before;        /* per gap touched since it was settled: what it had */
  bool *is_touched;
  int32_t *touched, n_touched;
  int32_t cut, cut_before; /* the unit that has another number of parts than then; or -1 */
} change;

/* Begins with `parts` of `of` in each gap. */
bool change_begin (const layout *l, const int32_t *of, const int32_t *parts, const int64_t *ends_ns,
                   arena *a, change *out, error *err) MUST_CHECK;
void change_set (change *c, int32_t gap, int32_t parts);
/* Another number of parts; at least as much as before is away. Once until it is settled. */
void change_cut (change *c, int32_t unit, int32_t of);
void change_settle (change *c);
void change_undo (change *c);

/* Bytes that `gap` could still send. */
int64_t change_left (const change *c, int32_t gap);
/* The op with most resident among those that the gap spans, or of all where it is NO_GAP. */
int32_t change_fullest (const change *c, int32_t gap);

/* Gaps drawn at random, long ones likelier, send what is over the room; never `but`. False where
   nothing can give enough. */
bool change_repair (change *c, random_state *r, int64_t room_bytes, int32_t but);
/* Too much may have been sent since it was settled: that comes back, beginning anywhere. */
void change_prune (change *c, random_state *r, int64_t room_bytes);
