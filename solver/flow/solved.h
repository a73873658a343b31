/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that were solved before: a search asks many of them more than once, when it looks at an
   order and then goes on with it, or when only places differ. An answer from here is the solver's,
   digit for digit, with the work that it took, so nothing but the clock notices. */
#pragma once

#include "solver/flow/ilp.h"

/* Lanes share one. */
typedef struct solved_programs solved_programs;

solved_programs *solved_new (error *err);
void solved_free (solved_programs *s); /* NULL: nothing */

/* The same as ilp_solve; s NULL: nothing is remembered. */
bool solved_or_solve (solved_programs *s, const ilp_problem *p, const ilp_options *o, arena *a,
                      ilp_result *out, error *err) MUST_CHECK;
