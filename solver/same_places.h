/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans in which every stay of a part has the same granules.  Such places waste some: between two
   stays of a part its granules serve only what fits there.  So plans that count on all the budget
   are often refused or wait; those that count on a little less of it, and are placed in all of it,
   are tried beside them. */
#ifndef FERRY_SOLVER_SAME_PLACES_H
#define FERRY_SOLVER_SAME_PLACES_H

#include "solver/attempt/attempt.h"

bool same_places_solve (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;

#endif
