/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A proof is a sum: what memory, the host, the link and the time of compute put into the bound,
   each at its dual.  With the same duals the sum for a little more of one of them is a proof as
   well, and a straight line: so the slope is a price, and a bound for how much any amount of it
   buys. */
#include <assert.h>

#include "solver/flow/bound.h"

#include <math.h>

static double in_ones (__int128 x) {
  return ldexp ((double)x, -(COEF_BITS + DUAL_BITS));
}

/* The price of one unit of a column at these duals. */
static double reduced_cost (const flow *f, const int64_t *y, int32_t column) {
  __int128 d = (__int128)f->cost[column] << DUAL_BITS;
  for (int64_t e = f->column_start[column]; e < f->column_start[column + 1]; e++)
    d -= (__int128)y[f->entry_row[e]] * f->entry_coef[e];
  return in_ones (d);
}

static bool is_level (int kind) {
  return kind == COLUMN_host || kind == COLUMN_host_first;
}

/* True if the flow is held back by the time in its slot, and not by the bytes that there are. */
static bool is_timed (const flow *f, int32_t column, int64_t *time) {
  if (f->column_kind[column] != COLUMN_work_out && f->column_kind[column] != COLUMN_work_in)
    return false;
  int32_t slot = f->column_at[column] / f->n_classes;
  bool out = f->column_kind[column] == COLUMN_work_out;
  const flow_class *w = &f->class[f->column_at[column] % f->n_classes];
  *time = f->high[column];
  return flow_most (out ? f->work_out[slot] : f->work_in[slot], out ? w->out : w->in, INT64_MAX) ==
         f->high[column];
}

bound_prices bound_prices_of (const flow *f, const int64_t *y, int64_t stall_ns) {
  assert (y && stall_ns >= 0);
  double memory = 0, time = 0; /* of a grain; in grains */
  for (int32_t r = 0; r < f->n_rows; r++) {
    double dual = ldexp ((double)y[r], -DUAL_BITS);
    switch (f->row_kind[r]) {
    case ROW_need_first:
    case ROW_need:
      memory += dual;
      break;
    case ROW_stall_out:
    case ROW_stall_in:
    case ROW_work_out:
    case ROW_work_in:
      time += dual * (double)f->row_limit[r];
      break;
    default:
      break;
    }
  }
  for (int32_t c = 0; c < f->n_columns && f->column_kind[c] < COLUMN_gap_out; c++) {
    int64_t most = 0;
    bool needed = is_level (f->column_kind[c]) && f->low[c] > 0;
    bool timed = is_timed (f, c, &most);
    if (!needed && !timed)
      continue;
    double d = reduced_cost (f, y, c);
    if (needed && d > 0)
      memory += d;
    if (timed && d < 0)
      time += d * (double)most;
  }
  double byte_ns = 1e9 / (double)f->link.rates.out_alone;
  double time_ns = ldexp (time, -f->link.shift) * byte_ns;
  return (bound_prices){ .memory_ns = memory * byte_ns,
                         .link_ns = fmax (0, (double)stall_ns - time_ns) };
}
