/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points of a curve that are planned side by side: each on a lane, ahead of the one whose turn it
   is.  A point that turns out not to be needed is dropped with its lane, so the curve is the same
   with any number of threads. */
#pragma once

#include "solver/fleet/curve.h"

typedef struct ahead ahead;

/* Several threads, several points, and no point that is made like its neighbour. */
bool ahead_pays (const trace *t, const curve_options *o, int32_t count);
/* The points are those of `c`, which stay where they are; t, o and c outlive it. */
ahead *ahead_new (const trace *t, const curve_options *o, const curve *c, error *err) MUST_CHECK;
/* Point i as curve_solve has it, with its plan in `to`; points are taken as their budgets rise. */
bool ahead_take (ahead *w, int32_t i, arena *to, curve_point *out, error *err) MUST_CHECK;
void ahead_free (ahead *w); /* NULL: nothing */
