/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step that repeats is told to the launcher, which answers with a plan; from the next beginning
   of such a step on its copies are made as planned, as long as the program does what the plan is
   for. The plan only adds copies and says where tensors live: whatever it gets wrong, the path of
   an op mends. */
#pragma once

#include "executor/shim/state/shim.h"

bool follow_start (shim *s);
void follow_finish (shim *s);
/* Before an allocation: the address space that the plan keeps for it, or NONE. */
int32_t follow_allocate (shim *s, int64_t bytes);
void follow_allocated (shim *s, int32_t t);
void follow_before (shim *s, op *o);
/* A launch that the plan makes again, before its call. */
void follow_keep (shim *s, op *o, const CUlaunchConfig *l, CUfunction f, void **params);
/* A tensor is freed: true: its memory stays, since the plan makes another from it. */
bool follow_frees (shim *s, int32_t t);
/* Streams or functions go. */
void follow_disturbed (shim *s);
void follow_after (shim *s, const op *o);
/* Are ops to be timed now: while a step is learned, and now and then in a planned one? */
bool follow_times (const shim *s);
