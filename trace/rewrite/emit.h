/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by both kinds of rewriting: a trace that grows op by op, with the origin of each row. */
#pragma once

#include "trace/rewrite/rewrite.h"

typedef struct emit {
  arena *arena;
  error *err;
  const trace *from;
  trace *made;
  origin *ops, *tensors;
  int64_t op_room, op_origin_room, tensor_room, tensor_origin_room, pool_room, pool_used;
  int32_t *pool;
  struct emit_rows {
    int64_t first[4];
    int32_t count[4];
  } * rows;
  int64_t rows_room;
  int64_t *samples; /* one column of n_samples an op */
  int64_t samples_room;
} emit;

enum { EMIT_READS, EMIT_WRITES, EMIT_SIDE, EMIT_AFTER };

/* Starts with the tensors of `from`, which are their own origins where `origins` is NULL. */
bool emit_begin (emit *e, const trace *from, const origin *origins, arena *a,
                 error *err) MUST_CHECK;
/* A new tensor, a copy of `like`; -1 on failure. */
int32_t emit_tensor (emit *e, const tensor *like, origin from) MUST_CHECK;
/* A new op, a copy of `like` but for its lists; `of` is the op of e->from whose samples it has, for
   items [first, end) of `batch`, plus extra_ns. */
bool emit_op (emit *e, const op *like, origin from, int32_t of, int64_t first, int64_t end,
              int64_t batch, int64_t extra_ns) MUST_CHECK;
/* Adds to a list of the newest op. Lists are filled one after the other: reads, writes, side,
   after. */
bool emit_index (emit *e, int which, int32_t index) MUST_CHECK;
bool emit_end (emit *e, rewritten *out) MUST_CHECK;

/* The part of x that covers items [first, end) of batch. */
int64_t emit_share (int64_t x, int64_t first, int64_t end, int64_t batch);

/* The two halves of trace_rewrite. */
bool rewrite_sections (const trace *t, const section *sections, int32_t n_sections,
                       int64_t section_ns, arena *a, rewritten *out, error *err) MUST_CHECK;
bool rewrite_recompute (const rewritten *from, const recompute *entries, int32_t n_entries,
                        arena *a, rewritten *out, error *err) MUST_CHECK;

/* On several streams, copies of ops and users of what they make wait as their tensors want. */
bool rewrite_wait_for_copies (rewritten *r, arena *a, error *err) MUST_CHECK;
