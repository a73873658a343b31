/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One rank of several that train together: a step with the collectives that its parameters and
   gradients need, on a stream of their own.  trace/zoo/rules.md says how frameworks make them. */
#pragma once

#include "trace/zoo/zoo.h"

/* t is a step of one rank alone, with its updates behind everything else. */
trace *zoo_parallel (const trace *t, const zoo_request *r, arena *a, error *err) MUST_CHECK;
