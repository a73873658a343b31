/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops that run again, as the report names them: those that did, and those that may not, with the
   reason.  The latter are known by their tokens, whatever plan is followed. */
#pragma once

#include "executor/shim/state/shim.h"

bool again_is_unfit (const shim *s, uint64_t token);
void again_add_unfit (shim *s, uint64_t token, int32_t name, shim_unfit why);
bool again_more_unfit (shim *s); /* than there were when this was asked last */
void again_count (shim *s, int32_t name);
