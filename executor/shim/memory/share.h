/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The room of a program that shares a card: granted by whoever serves the group (cli/run/share.h),
   taken and given back between two ops or two steps. */
#pragma once

#include "executor/shim/state/shim.h"

bool share_start (shim *s);
/* Between two ops: more room, or less of it. */
void share_look (shim *s);
/* More is needed at once than there is room: true once it is granted. */
bool share_wait (shim *s, int64_t bytes);
/* The bytes that would be used if there were no others. */
void share_want (shim *s, int64_t bytes);
/* Bytes that cannot leave: small tensors, and those whose address lies in device memory. */
int64_t share_fixed_bytes (const shim *s);
