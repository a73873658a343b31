/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels of a replay: one waits, one also checks and rewrites a pattern in every byte that its
   op touches.  Both exist as host functions for the emulator and as PTX for a GPU. */
#pragma once

#include "executor/driver/driver.h"
#include "executor/emu/emu.h"

/* A stretch of a tensor, where an op finds it.  Versions count a tensor's writes: what is read at
   step n must be version n x per_step + version, and a write leaves the next one. */
typedef struct kernel_operand {
  uint64_t at;
  int64_t bytes, offset; /* in the tensor; a multiple of 8 unless it is the tensor's end */
  int64_t version, per_step;
  uint32_t tensor, mode;
} kernel_operand;

enum {
  OPERAND_READ = 1,
  OPERAND_WRITE = 2,
  OPERAND_FILL = 4, /* writes what a read would expect */
  OPERAND_BEGIN = 8 /* for the race checker: the bytes are this stay's from here on */
};

/* The first bytes that were not what they should be. */
typedef struct mismatch {
  uint64_t count;                   /* of 8-byte words */
  int64_t op, step, tensor, offset; /* set where count is not 0 */
} mismatch;

/* Writes or checks a stretch on the host; returns how many words differ. */
int64_t kernels_fill (void *at, int64_t bytes, int64_t offset, uint32_t tensor, int64_t version);
int64_t kernels_check (const void *at, int64_t bytes, int64_t offset, uint32_t tensor,
                       int64_t version, int64_t *first_bad);

typedef struct kernels {
  CUmodule module;
  CUfunction wait, touch;
} kernels;

/* The emulator learns them first; declare: it is told what they touch, for the race checker. */
bool kernels_load (const driver *d, bool emulated, bool declare, kernels *out,
                   error *err) MUST_CHECK;

bool kernels_wait (const driver *d, const kernels *k, CUstream s, int64_t ns,
                   error *err) MUST_CHECK;

typedef struct kernel_op {
  const kernel_operand *operands;
  int64_t count, step, ns, op;
  mismatch *found;
} kernel_op;

bool kernels_touch (const driver *d, const kernels *k, CUstream s, const kernel_op *o,
                    error *err) MUST_CHECK;

/* A launch that is made again and again: its parameters are read where they lie at each call. */
enum { KERNELS_MOST_PARAMS = 6 };
typedef struct kernel_launch {
  CUfunction function;
  unsigned int blocks, threads;
  void *params[KERNELS_MOST_PARAMS];
} kernel_launch;

void kernels_wait_launch (const kernels *k, int64_t *ns, kernel_launch *out);
/* `step` is read in the place of o's own. */
void kernels_touch_launch (const kernels *k, kernel_op *o, int64_t *step, kernel_launch *out);

extern const char *const kernels_ptx;
