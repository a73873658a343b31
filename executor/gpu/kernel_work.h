/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The argument of an op's kernel, by value: the same for every kind.  C and CUDA C++. */
#pragma once

#ifdef __CUDACC__

#include <stdint.h>

/* The same as trace/compute.h makes; a test of the host side would see a difference in size. */
enum { COMPUTE_MOST_OPERANDS = 136, COMPUTE_MOST_LIST = 128 };
enum compute_kind {
#define COMPUTE(kind, ...) COMPUTE_##kind,
#include "trace/compute.def"
};
#define FIELD(name) int64_t name;
#define LIST(name) int64_t name##_count, name[COMPUTE_MOST_LIST];
#define SHAPE(name, fields)       \
  typedef struct compute_##name { \
    fields                        \
  } compute_##name;
#include "trace/compute.def"
typedef struct compute {
  int kind, dtype;
  union {
#define SHAPE(name, fields) compute_##name name;
#include "trace/compute.def"
    int64_t at[4 + COMPUTE_MOST_LIST];
  };
} compute;
#undef FIELD
#undef LIST
#define KERNEL_WORK_FN static __host__ __device__ __forceinline__

#else

#include "executor/ops/ops.h"
#define KERNEL_WORK_FN static inline

#endif

/* A stretch of items that lie side by side in every operand. Of kinds that need the whole batch:
   all items, and an operand that has items is a table of where each is. */
typedef struct kernel_work {
  compute c;
  void *at[COMPUTE_MOST_OPERANDS]; /* NULL: absent */
  int64_t first_item, items, step;
  void *workspace; /* the op's, on the device */
  int64_t workspace_bytes;
  double *partials; /* from one launch to the next */
  int32_t *failed;  /* set where a token or class is out of range */
  int32_t phase;    /* which launch of them */
  int64_t ns;       /* that the emulated device takes for it */
} kernel_work;

/* Sums that need more teams than one each are made in this many chunks. */
KERNEL_WORK_FN int64_t kernel_work_chunks (const kernel_work *k) {
  enum { MOST_CHUNKS = 64, TEAMS_WANTED = 1056, LEAST_EACH = 1024 };
  int64_t count, chunks;
  if (k->c.kind == COMPUTE_entropy_fwd) {
    count = k->c.entropy.rows * k->c.entropy.inner;
    return count < MOST_CHUNKS ? count : MOST_CHUNKS;
  }
  count = k->items * k->c.batchnorm.inner;
  chunks = TEAMS_WANTED / k->c.batchnorm.channels;
  chunks = chunks < count / LEAST_EACH ? chunks : count / LEAST_EACH;
  return chunks < 1 ? 1 : chunks < MOST_CHUNKS ? chunks : MOST_CHUNKS;
}

#ifndef __CUDACC__

/* How often it is launched, with the phases 0, 1, ... */
int32_t kernel_work_phases (const kernel_work *k);
/* The partials that it needs. */
int64_t kernel_work_partials (const kernel_work *k);

/* The tables of a kind that needs the whole batch; 0 for others. */
int64_t kernel_work_table_bytes (const ops_call *call);
/* The stretch from item `from` of the call on, as far as it reaches; returns its items. `table`,
   where there is to be one, may be NULL: then it is not written. `failed`, `partials`, the
   workspace and `step` stay to be set. */
int64_t kernel_work_fill (const ops_call *call, int64_t from, void **table, kernel_work *out);
/* Is the operand to be 0 before the call's first stretch? */
bool kernel_work_zeroes (const ops_call *call, int index, const operand *o);

#endif
