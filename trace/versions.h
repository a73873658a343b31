/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The version of a tensor is how often ops wrote it so far in the step.  Each op finds one of every
   tensor that it reads or writes. */
#pragma once

#include "trace/trace.h"

typedef struct versions {
  int64_t *first; /* per op: its place in `at` */
  int32_t *at;    /* found by its reads, then by its writes, before it writes */
} versions;

bool versions_of (const trace *t, arena *a, versions *out, error *err) MUST_CHECK;

static inline const int32_t *versions_read (const versions *v, int32_t op) {
  return v->at + v->first[op];
}

static inline const int32_t *versions_written (const versions *v, const trace *t, int32_t op) {
  return v->at + v->first[op] + t->ops[op].reads.count;
}
