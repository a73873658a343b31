/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pairs of digests that must be equal: of what is dropped and what is made again in its place, and
   of what a launch reads before and behind it.  The device compares them, the host looks later. */
#pragma once

#include "executor/shim/state/shim.h"

enum { PAIRS_LAUNCHES = 8192 };

/* A kernel that ran again: its place among those of the plan. */
typedef struct pairs_launch {
  int32_t number, name, bit;
  CUstream stream;
} pairs_launch;

bool pairs_ready (shim *s); /* false: there is no room for them */
/* A pair that nobody has, of those behind *n, or 0. */
int32_t pairs_take (const shim *s, int32_t *n);
/* A digest of all of the tensor goes there, behind what is queued; or is added to what is there. */
bool pair_digest (shim *s, const tensor *t, int32_t pair, int32_t which, CUstream stream);
bool pair_clear (shim *s, int32_t pair, int32_t which, CUstream stream);
bool pair_add (shim *s, const tensor *t, int32_t pair, int32_t which, CUstream stream);
/* Two digests are compared where they are, on the launch's stream; `at`: any address of the
   program's. */
bool pair_compare (shim *s, int32_t pair, const pairs_launch *l, CUdeviceptr at);
/* The device is quiet. false: it does not answer. */
bool pair_read (shim *s, int32_t pair, uint64_t *both);
/* The kernel of which a pair was found different, or NONE. `wait`: for those that are queued. */
int32_t pairs_look (shim *s, bool wait);
/* Eight bytes of the device, all zero. */
CUdeviceptr pairs_word (const shim *s);
