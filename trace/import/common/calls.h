/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The name of a call tells whether autograd runs it, whether it makes a tensor out of nothing,
   whether it talks to other ranks, whether it uses but a part of what it names. */
#pragma once

#include "trace/import/common/stream.h"

/* "MulBackward0", "torch::autograd::AccumulateGrad", "autograd::engine::evaluate_function: ...". */
bool call_is_backward (slice name);
/* Fills or copies: zeros_like, empty, clone.  What an optimizer makes otherwise is an intermediate.
 */
bool call_is_factory (slice name);
bool call_is_collective (slice name);
/* Gathers, scatters and lookups: they move less than the tensors they name. */
bool call_is_partial (slice name);
bool slice_holds (slice text, const char *word);
/* The number behind "rank" in a file's name, as in trace_rank3.json; -1: none. */
int64_t name_rank (const char *name);
