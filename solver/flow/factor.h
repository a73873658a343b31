/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The factor of a positive definite sparse matrix, whose pattern stays while its numbers change. */
#pragma once

#include "solver/flow/eliminate.h"

typedef struct factor factor;

/* g: where the matrix has entries beside its diagonal. */
factor *factor_new (const meetings *g, arena *a, error *err) MUST_CHECK;
int64_t factor_entries (const factor *f);
int64_t factor_products (const factor *f); /* of one computation */
/* The number of a pair of rows belongs there in what `factor_compute` reads. */
int64_t factor_place (const factor *f, int32_t i, int32_t j);
int64_t factor_places (const factor *f);
/* A pivot that is nothing but rounding is taken as boundless: its row has no say. */
void factor_compute (factor *f, const double *numbers);
void factor_solve (factor *f, double *x);
