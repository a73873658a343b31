/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan's step as `ferry-timeline/1`, which the page draws: the step before with everything on the
   device, and the step after under the plan, each with its ops, tensors, copies and what holds the
   device's memory when.  docs/pictures.md describes the file. */
#pragma once

#include "cli/figures/plan_step.h"

#define TIMELINE_FORMAT "ferry-timeline/1"

/* Compact JSON; free with bytes_free. */
bool step_timeline (const plan_step *s, arena *a, bytes *out, error *err) MUST_CHECK;
