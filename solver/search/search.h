/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One question to one answer: the attempt at the step as it is, or a search of all ways to rewrite
   it, whichever the options allow. */
#pragma once

#include "solver/attempt/attempt.h"

/* If sections are allowed: the best of what each option reaches alone and of both together, under
   one bound. So allowing the one beside the other makes a plan worse by no more than the gap that
   was asked for. */
bool search_solve (const solve_request *q, arena *a, solution *out, error *err) MUST_CHECK;

/* The certificate of a plan from elsewhere that has its prediction, by the bound of all plans
   without sections that drop nothing, or that may drop where it does. */
bool solve_certify (const trace *t, const solve_options *o, const char *found_by, plan *p, arena *a,
                    error *err) MUST_CHECK;

/* No bound but compute is known of the solution's plan. */
bool solve_certify_by_compute (const solve_request *q, solution *s, arena *a,
                               error *err) MUST_CHECK;

/* The solution's plan has no sections, though they are allowed: under the bound of all cuts. */
bool search_certify (const solve_request *q, solution *s, arena *a, error *err) MUST_CHECK;

/* The limit of ticks where none is given. */
int64_t search_default_ticks (const trace *t, const solve_options *o);
