/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that a step needs with everything on the device and nothing moved: one number, which every
   command and the library show, and which all percentages are of. */
#pragma once

#include "trace/plan.h"

typedef struct needs {
  int64_t bytes;         /* of the budget, beyond the reserve, that suffices without any move */
  int64_t tensor_bytes;  /* of tensors and workspace at the fullest op */
  int64_t granule_bytes; /* the rest: rounding to granules, and places that stay free between */
} needs;

bool needs_of (const trace *t, const device *d, arena *scratch, needs *out, error *err) MUST_CHECK;

/* The plan that moves nothing, in that budget, with its prediction. */
bool needs_plan (const trace *t, const device *d, arena *a, plan **out, error *err) MUST_CHECK;

/* ---- the reserve ---- */

/* The part of a budget that is kept free where a trace is not exact, in millionths. */
int64_t reserve_ppm (const trace *t);
int64_t reserve_of (int64_t budget_bytes, int64_t ppm);
/* The smallest budget that leaves these bytes beside its reserve. */
int64_t reserve_onto (int64_t bytes, int64_t ppm);
