/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A zoo network's start and data: initial values that depend on a tensor's name and
   size only, so that every variant of a trace starts equal, and the data of each step.  Images and
   their labels are the same batch in every step, to be learned by heart; text goes on, a window
   after the other, each item in a stretch of its own. */
#pragma once

#include "trace/trace.h"

typedef struct feed_options {
  uint64_t seed;
  const void *text; /* NULL: a made one, of which a letter tells most about the next */
  int64_t text_bytes;
} feed_options;

typedef struct feed feed;

/* Everything is told from what the ops of the trace calculate.  The text must outlive the feed. */
feed *feed_new (const trace *t, const feed_options *o, arena *a, error *err) MUST_CHECK;
/* Does the step bring this tensor's data? */
bool feed_is_input (const feed *f, int32_t tensor);
bool feed_is_bf16 (const feed *f, int32_t tensor);
/* All of a persistent tensor, as it stands before step 0. */
void feed_initial (const feed *f, int32_t tensor, void *out);
/* Items [first_item, end_item) of an input in that step. */
void feed_input (const feed *f, int32_t tensor, int64_t step, int64_t first_item, int64_t end_item,
                 void *out);
