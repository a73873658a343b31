/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tensor that no op was seen to write since its bytes came from the host leaves without a copy if
   its digest is that of the copy on the host.  The device decides: a kernel copies where the two
   differ, so that nobody waits for the answer, and a wrong belief costs time and no byte. */
#pragma once

#include "executor/shim/state/shim.h"

/* The number of runs of pages that can have digests beside those that do. */
int32_t clean_room (shim *s);
/* The host's copy of exactly these pages has a digest, and nobody was seen to write them since. */
bool clean_can_leave (const shim *s, const tensor *t, int32_t first, int32_t end);
/* They leave so, on the stream of checks. false: the device takes no kernel. */
bool clean_leave (shim *s, tensor *t, int32_t first, int32_t end);
/* They have just been copied out. true: who gets their memory waits for the tensor's check too. */
bool clean_copied (shim *s, tensor *t, int32_t first, int32_t end);
/* The next that had changed all the same: a tensor. *at begins with 0; false: no more had. */
bool clean_look (shim *s, int32_t *at, int32_t *t);
