/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The notes of the package ferry_torch in the ops of a trace that it recorded, and the trace as
   that executor can carry it out: eager PyTorch moves whole storages, at hooks, and only those that
   nobody but autograd or the optimizer holds. */
#pragma once

#include "trace/trace.h"

/* The same ops and tensors. What cannot leave is pinned, what leaves moves as one, and a tensor
   that the program still holds is read by every op until it lets go, and from the first unpack on.
   Only what ops of the way there made that can run again is made again. So each plan of it is a
   plan of `t`, and none of it asks for more than the executor can do. */
bool trace_for_torch (const trace *t, arena *a, trace *out, error *err) MUST_CHECK;
