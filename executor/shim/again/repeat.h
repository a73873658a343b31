/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A launch, a fill or a copy within the device as the program made it in this step, so that it can
   be made again: its parameters, the stream, and what its small tensors held.  Those lie among
   others of the program's and are used again as it likes, so they are put back as they were behind
   each launch. */
#pragma once

#include "executor/shim/state/shim.h"

typedef struct repeat repeat;

/* A plain launch, whose parameters and stream say all there is to it. */
bool repeat_can (const op *o, const CUlaunchConfig *l, void **extra);
bool repeat_can_move (const shim *s, const op *o); /* a copy or a fill */
/* Before the op's call; l: of a launch; *r is made where it is NULL. false: it cannot be kept, and
 * *why says so. */
bool repeat_keep (shim *s, op *o, const CUlaunchConfig *l, CUfunction f, void **params, repeat **r,
                  shim_unfit *why);
bool repeat_is_kept (const repeat *r);
int32_t repeat_refs (const repeat *r, const int32_t **tensors);
int32_t repeat_name (const repeat *r);
int32_t repeat_stream (const repeat *r, CUstream *stream); /* its bit */
/* Calls that other threads make without the lock are over; false: they take too long. */
bool repeat_is_alone (shim *s);
/* Room for its tensors on the device, in order behind all that used them. */
bool repeat_make_room (shim *s, repeat *r);
bool repeat_launch (shim *s, const repeat *r);
bool repeat_put_aside (shim *s, const repeat *r); /* its small tensors, as they are now */
/* Whoever uses its tensors from now on waits for it. */
void repeat_done (shim *s, const repeat *r);
void repeat_free (shim *s, repeat *r);
