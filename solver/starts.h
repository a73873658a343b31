/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans that are known before a search begins (solve_options.starts): of another budget, card or
   effort, or a user's own.  One that is legal here is never given up for a slower one. */
#pragma once

#include "solver/attempt/attempt.h"

/* True if its order, cuts and drops are of this trace, and allowed; else ERR_infeasible says why
   not. */
bool starts_suits (const trace *t, const solve_options *o, const plan *p, arena *a,
                   error *err) MUST_CHECK;
/* The plan with this budget, on this card, with what it costs there, made of the parts of p;
   ERR_infeasible says why it is no plan of this question. */
bool starts_fit (const trace *t, const solve_options *o, const plan *p, arena *a, plan **out,
                 error *err) MUST_CHECK;

/* The fastest of the options' starts that fit. No plan: none does. */
bool starts_fastest (const trace *t, const solve_options *o, arena *a, plan **out,
                     error *err) MUST_CHECK;

/* A plan that starts_fit made becomes the best, where it is faster or there is none. */
bool starts_take (const solve_request *q, plan *known, solution *best, arena *a,
                  error *err) MUST_CHECK;
/* The certificate of s: the bound of what was the best before, where that covers it, else one of
   its own. */
bool starts_certify (const solve_request *q, const solution *had, solution *s, arena *a,
                     error *err) MUST_CHECK;

/* The bound of what was the best before, where that is higher and covers the plan of s. */
void starts_raise (const solve_options *o, const solution *had, solution *s);
