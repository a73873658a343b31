/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors of which only birth and death are known, as a trace: each is written by the op at which
   it is born and read by the one after which it dies. */
#pragma once

#include "trace/import/common/job.h"

typedef struct lived {
  const char *name;
  int64_t bytes;
  tensor_kind kind;
  int32_t birth, death; /* ops, birth <= death */
} lived;

/* The caller has made the builder and its source; ops and tensors are appended. */
bool intervals_trace_build (import_job *job, trace_builder *b, const char *const *op_names,
                            int32_t n_ops, const lived *lives, int32_t n_lives) MUST_CHECK;
