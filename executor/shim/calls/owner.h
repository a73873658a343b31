/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The process whose device it is: a budget belongs to one, and a profile is of the first that did
   something. */
#pragma once

#include "executor/shim/state/shim.h"

/* works: it asks for memory, so that nobody takes its place. Anything but success was said. */
CUresult owner_take (shim *s, bool works);
/* Another driver is loaded, so calls would not be seen: that was said. */
bool owner_is_passed_by (shim *s);

/* ranks.c: before the driver is asked anything, and with the first memory, the block becomes that
   of the process's rank. false: it has none. */
bool ranks_begin (shim *s);
bool ranks_settle (shim *s);
