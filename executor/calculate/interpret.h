/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a zoo trace, rewritten or not, in plain memory, each tensor in a buffer of its own and
   nothing ever moved: what any plan must give bit for bit.  Before a step all buffers that do not
   live across steps are filled with NaN, so that what is read before it was written is seen. */
#pragma once

#include "base/sha256.h"
#include "executor/ops/feed.h"
#include "executor/ops/ops.h"
#include "trace/rewrite/rewrite.h"

typedef struct interpret_options {
  feed_options feed;
  bool kernels; /* by a GPU's kernels, as functions of the host, which know bf16 */
  /* Sees each call before it is made, and may spoil it, or leave it out by returning false; NULL:
     nobody looks. */
  bool (*look) (void *context, int32_t op, ops_call *call);
  void *context;
} interpret_options;

typedef struct interpreter interpreter;

/* `r` is what trace_rewrite made of `t`; both must outlive the interpreter, as must the arena. */
interpreter *interpret_new (const trace *t, const rewritten *r, const interpret_options *o,
                            arena *a, error *err) MUST_CHECK;
void interpret_free (interpreter *p); /* NULL is allowed */

/* Runs step number `step`; *loss is the sum of all losses of all items. */
bool interpret_step (interpreter *p, int64_t step, double *loss, error *err) MUST_CHECK;

/* The buffer of a tensor of the rewritten trace; NULL where no op uses it. */
void *interpret_data (interpreter *p, int32_t tensor);
/* The digest of all persistent tensors. */
void interpret_digest (const interpreter *p, char digest[SHA256_TEXT]);
