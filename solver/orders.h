/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One step in more than one order of its ops: each is looked at with a little effort, and the best
   one is solved with the rest. */
#ifndef FERRY_SOLVER_ORDERS_H
#define FERRY_SOLVER_ORDERS_H

#include "solver/options/options.h"

/* All of solve for one order. */
typedef bool solve_order (const trace *t, const solve_options *o, const effort *e, arena *a,
                          solution *out, error *err);

bool orders_solve (const trace *t, const solve_options *o, const effort *e, solve_order *one,
                   arena *a, solution *out, error *err) MUST_CHECK;

#endif
