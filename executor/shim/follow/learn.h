/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns which tensors an op writes, in two steps of a program that repeats itself: by a digest of
   each tensor before and behind the op, on its stream.  They stay in a small buffer of the device
   until it is full or the step is told. */
#pragma once

#include "executor/shim/state/shim.h"

void learn_ready (shim *s);         /* before room is made for an op: that may take a granule */
void learn_before (shim *s, op *o); /* its tensors are here, and its call comes next */
void learn_after (shim *s, const op *o);
/* `ops` more are learned from now on; false: none can be. */
bool learn_again (shim *s, int64_t ops);
/* All that was learned goes into the record; the host waits for the device. */
void learn_settle (shim *s);
void learn_end (shim *s); /* likewise, and the buffer is given back until more is learned */
