/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What tests of the flow program share: slots for it, and rows made wrong. */
#pragma once

#include "base/random.h"
#include "solver/flow/flow.h"

/* A random cut for some, every op its own slot for the others. */
bool flow_case_slots (const gaps *g, random_state *r, arena *a, slots *out, error *err) MUST_CHECK;

bool flow_row_is (const flow *f, int32_t row, int kind);
/* Coefficients of these columns in these rows x num / den. */
void flow_scale (flow *f, int row, int column, int num, int den);
