/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures of answers that are not a plan's step: curves, comparisons, grids, packings. */
#pragma once

#include "cli/whatif/pack.h"
#include "cli/whatif/whatif.h"
#include "plot/figure.h"

/* All of it in the arena. */
bool curve_figure (const trace *t, const device *d, const curve *v, arena *a, figure_page *out,
                   error *err) MUST_CHECK;

typedef struct compared {
  const char *name, *note; /* note: why there is no plan, or NULL */
  int64_t budget_bytes, step_ns, lower_bound_ns, baseline_ns; /* step_ns < 0: no plan */
  int64_t moved_bytes;                                        /* both ways */
} compared;

/* Rows of one budget stand together. */
bool compare_figure (const trace *t, const device *d, const compared *rows, int32_t n, arena *a,
                     figure_page *out, error *err) MUST_CHECK;

bool whatif_figure (const whatif_grid *g, const whatif_row *rows, int32_t n, arena *a,
                    figure_page *out, error *err) MUST_CHECK;

bool pack_figure (const packing *p, const cards_answer *v, arena *a, figure_page *out,
                  error *err) MUST_CHECK;

/* Largest batches by what is allowed; 0: none. */
bool batch_figure (const char *title, const char *subtitle, const char *const *names,
                   const int64_t *batches, int32_t n, arena *a, figure_page *out,
                   error *err) MUST_CHECK;
