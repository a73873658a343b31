/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A CUDA memory snapshot of PyTorch: what the allocator handed out and took back, by whom. */
#pragma once

#include "trace/import/common/job.h"
#include "trace/import/snapshot/pickle.h"

typedef struct snapshot_block {
  int64_t bytes;        /* as requested */
  int32_t alloc;        /* which alloc of the trace; -1: it was there before */
  int32_t freed_behind; /* how many allocs came before its free; -1: never freed */
  const char *line;     /* "model.py:54", or "" */
} snapshot_block;

typedef struct snapshot {
  snapshot_block *blocks; /* those of allocs first, in order, then those that were there before */
  int32_t n_blocks, n_allocs;
  int64_t n_events, requested_frees, completed_frees;
  int64_t unseen_frees, pairs, size_mismatches;
  int64_t start_bytes, net_bytes, allocated_bytes, largest_bytes;
  int64_t peak_bytes, peak_event; /* peak: start + greatest running sum; the event's index */
  int64_t active_bytes, padded_bytes, reserved_bytes; /* at the end */
  int64_t live_count, live_bytes; /* allocated in the trace and alive at its end */
  int64_t segments, n_segment_blocks, active_blocks;
  int64_t first_us, last_us; /* -1: no times */
  int64_t refusals;          /* requests for which memory ran out: blocks for a moment */
  const char *refused;       /* the last of them, for people */
  bool times_decrease;
  int32_t device, others; /* how many other devices have events or memory */
  const char *cards;      /* all of them, for people */
} snapshot;

bool snapshot_read (import_job *job, const import_text *file, snapshot *out) MUST_CHECK;
