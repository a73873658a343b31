/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A bound of every cut at once. */
#pragma once

#include "solver/options/options.h"

/* The flow program of the loosened step (trace/rewrite/loosen.h), with drops where those are
   allowed: true of every plan that the options allow, in whatever parts. ERR_infeasible, with the
   op named, where no cut fits. */
bool sections_bound (const trace *t, const solve_options *o, arena *a, bound *out,
                     error *err) MUST_CHECK;
