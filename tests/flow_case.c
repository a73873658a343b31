/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/flow_case.h"

bool flow_case_slots (const gaps *g, random_state *r, arena *a, slots *out, error *err) {
  int32_t n = g->n_ops, count = 0, *first = NEW (a, n, int32_t, err);
  if (!first)
    return false;
  if (!random_chance (r, 400000))
    return slots_each (g, a, out, err);
  for (int32_t k = 0; k < n; k++)
    if (k == 0 || random_chance (r, 500000))
      first[count++] = k;
  return slots_from (first, count, n, a, out, err);
}

bool flow_row_is (const flow *f, int32_t row, int kind) {
  return f->row_kind[row] == kind;
}

void flow_scale (flow *f, int row, int column, int num, int den) {
  for (int32_t c = 0; c < f->n_columns; c++)
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++)
      if (flow_row_is (f, f->entry_row[e], row) && f->column_kind[c] == column)
        f->entry_coef[e] = f->entry_coef[e] * num / den;
}
