/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Carries a walk out on a machine of labels, with queues as slow and as fast as chance has it: each
   granule and each 512 bytes of the host say whose bytes they hold, of which version.  It follows
   the walk's waits and knows the plan's places; of how walks are made it knows nothing. */
#pragma once

#include "trace/walk/walk.h"

typedef struct walk_run_options {
  uint64_t seed;
  /* This item ends only when nothing else can happen; position -1: none. */
  walk_queue slow;
  int32_t slow_position;
} walk_run_options;

typedef struct walk_fault {
  bool found;
  char text[160]; /* the item, and what it found instead of what it needs */
} walk_fault;

/* Four steps. False only where memory is short. */
bool walk_run (const walk *w, const walk_run_options *o, arena *a, walk_fault *out,
               error *err) MUST_CHECK;
