/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waits that other waits imply, left out.  A queue runs its items one after the other, so an item
   knows that whatever the one before it knew has ended, and likewise whatever its awaited items
   knew. */
#pragma once

#include "trace/walk/walk.h"

/* From `demands` to `waits` and `awaited`. */
bool implied_leave_out (walk *w, arena *a, error *err) MUST_CHECK;
