/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any duals of the right signs prove a bound: y.b plus, column by column, the least that (c - yA) x
   can be between the column's limits.  Gaps are not priced column by column but unit by unit: what
   a byte does along a chain of gaps is a shortest path, which needs no duals for the rows that say
   when a clean copy is there, and proves at least as much. */
#include "solver/flow/bound.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define DUAL_ONE ((int64_t)1 << DUAL_BITS)
#define MOST_DUAL (DUAL_ONE << 10)
enum { VALUE_BITS = COEF_BITS + DUAL_BITS };

static int64_t dual_at (const int64_t *duals, int32_t row) {
  return row < 0 ? 0 : duals[row];
}

void bound_duals (const flow *f, const double *y, int bits, int64_t *duals) {
  assert (bits > 0 && bits <= DUAL_BITS);
  int64_t step = (int64_t)1 << (DUAL_BITS - bits);
  for (int32_t r = 0; r < f->n_rows; r++) {
    double v = y[r] * (double)DUAL_ONE / (double)step;
    double most = (double)(MOST_DUAL / step);
    v = !(v == v) ? 0 : v > most ? most : v < -most ? -most : v;
    duals[r] = (int64_t)llround (v) * step;
    if ((f->row_sense[r] < 0 && duals[r] > 0) || (f->row_sense[r] > 0 && duals[r] < 0))
      duals[r] = 0;
  }
  /* a stall costs 1: the time rows of its slot may pay no more than that for it, nor may what is
     cut in its run */
  for (int32_t j = 0; j < f->n_slots; j++) {
    const int32_t rows[] = { f->row[ROW_stall_out][j], f->row[ROW_stall_in][j],
                             f->row[ROW_remake][j] };
    int32_t cuts = flow_cuts_row (f, j);
    if (dual_at (duals, cuts) > DUAL_ONE)
      duals[cuts] = DUAL_ONE;
    __int128 most = ((__int128)DUAL_ONE - dual_at (duals, cuts)) * COEF_ONE;
    __int128 paid = -(__int128)dual_at (duals, rows[0]) * COEF_ONE -
                    (__int128)dual_at (duals, rows[1]) * f->link.ratio -
                    (__int128)dual_at (duals, rows[2]) * COEF_ONE;
    if (paid <= most)
      continue;
    /* paid < 2^84: shifted so that the products stay in 128 bits */
    for (int i = 0; i < 3; i++)
      if (rows[i] >= 0)
        duals[rows[i]] = -(int64_t)(((__int128)-duals[rows[i]] * most) / paid);
  }
}

typedef struct sum {
  __int128 value;
  bool bad;
} sum;

static void add (sum *s, __int128 x, int64_t times) {
  __int128 product;
  s->bad |= __builtin_mul_overflow (x, (__int128)times, &product) ||
            __builtin_add_overflow (s->value, product, &s->value);
}

/* The price of a grain that goes back to where it belongs at the gap's end. */
static __int128 price_return (const flow *f, const int64_t *y, const flow_gap *g, int class) {
  int32_t due = flow_row (f, g->first ? ROW_early_first : ROW_early, g->due, class);
  __int128 price = dual_at (y, due);
  if (g->wraps)
    price += dual_at (y, f->row[ROW_cycle][class]);
  return price;
}

static __int128 price_out (const flow *f, const int64_t *y, const flow_gap *g, int class) {
  return price_return (f, y, g, class) - dual_at (y, flow_row (f, ROW_pending, g->release, class));
}

/* Clean: on the host at once; if the slot before ends between, the host held it then. */
static __int128 price_clean (const flow *f, const int64_t *y, const flow_gap *g, int class) {
  __int128 price =
      price_return (f, y, g, class) - dual_at (y, flow_row (f, ROW_host_first, g->release, class));
  price *= COEF_ONE;
  int32_t slot = g->release ? g->release - 1 : f->n_slots - 1;
  if (g->begins)
    price -= (__int128)dual_at (y, f->row[ROW_host_limit][slot]) * f->class[class].host;
  return price;
}

/* Dropped: on no host, but its ops run again. */
static __int128 price_drop (const flow *f, const int64_t *y, const flow_gap *g, int class) {
  __int128 price =
      (__int128)dual_at (y, flow_row (f, g->first ? ROW_host_first : ROW_host, g->due, class)) -
      dual_at (y, flow_row (f, ROW_host_first, g->release, class));
  __int128 work =
      (__int128)dual_at (y, f->row[ROW_made][g->due]) - dual_at (y, f->row[ROW_ready][g->ready]);
  price = price * COEF_ONE + work * g->rate;
  for (int32_t k = 0; k < g->n_runs; k++) {
    const flow_need *n = &f->needs[g->runs + k];
    price += (__int128)dual_at (y, f->row[ROW_share][n->row]) * n->rate;
  }
  return price;
}

static __int128 least (__int128 a, __int128 b) {
  return a < b ? a : b;
}

/* Duals that charge nothing for the host prove the program without that limit, in which bytes never
   leave twice in one gap. */
static bool leans_on_host (const flow *f, const int64_t *y) {
  for (int32_t r = 0; r < f->n_rows; r++)
    if (f->row_kind[r] == ROW_host_limit && y[r])
      return true;
  return false;
}

/* The cheapest way of one grain along a chain, x 2^VALUE_BITS. */
static __int128 cheapest (const flow *f, const int64_t *y, const flow_chain *c, bool limited) {
  __int128 none = 0, held = 0; /* the host holds no valid copy, or one */
  __int128 dropped = 0;
  bool can_hold = false;
  for (int32_t i = 0; i < c->count; i++) {
    const flow_gap *g = &f->gaps[c->first + i];
    if (f->drops == DROPS_ONLY) {
      none += g->drops ? least (0, price_drop (f, y, g, c->class)) : 0;
      continue;
    }
    __int128 out = price_out (f, y, g, c->class) * COEF_ONE;
    __int128 clean = c->circle || i > 0 ? price_clean (f, y, g, c->class) : 0;
    if (c->circle) { /* always held; only a full host makes another copy out pay */
      none += least (0, limited ? least (clean, out) : clean);
      continue;
    }
    __int128 drop = g->drops ? least (0, price_drop (f, y, g, c->class)) : 0;
    if (flow_serves (c, i)) /* given up, and what is made again may be carried besides */
      dropped += drop;
    else
      out = g->drops ? least (out, drop) : out;
    __int128 start = none + out;
    held = can_hold ? least (least (held, held + out), least (held + clean, start)) : start;
    can_hold = true;
  }
  return dropped + (can_hold ? least (none, held) : none);
}

bool bound_exact (const flow *f, const int64_t *y, int64_t *stall_ns) {
  assert (y && stall_ns);
  sum s = { 0 };
  bool limited = leans_on_host (f, y);
  for (int32_t r = 0; r < f->n_rows; r++)
    if (f->row_kind[r] < ROW_clean)
      add (&s, (__int128)y[r] * COEF_ONE, f->row_limit[r]);
  for (int32_t c = 0; c < f->n_columns && f->column_kind[c] < COLUMN_gap_out; c++) {
    __int128 d = (__int128)f->cost[c] << DUAL_BITS;
    if (f->column_kind[c] == COLUMN_again && !limited)
      continue;
    for (int64_t e = f->column_start[c]; e < f->column_start[c + 1]; e++)
      d -= (__int128)y[f->entry_row[e]] * f->entry_coef[e];
    assert (f->column_kind[c] != COLUMN_stall || d >= 0);
    add (&s, d, d < 0 ? f->high[c] : f->low[c]);
  }
  for (int32_t i = 0; i < f->n_chains; i++)
    add (&s, cheapest (f, y, &f->chains[i], limited), f->chains[i].room);
  if (s.bad)
    return false;
  *stall_ns = 0;
  if (s.value <= 0)
    return true;
  /* grains x 2^VALUE_BITS to ns: 34 bits go first, so that the rest fits */
  unsigned __int128 rate = (unsigned __int128)f->link.rates.out_alone
                           << (VALUE_BITS - 34 + f->link.shift);
  unsigned __int128 ns;
  if (__builtin_mul_overflow ((unsigned __int128)(s.value >> 34), (unsigned __int128)1000000000,
                              &ns))
    return false;
  ns /= rate;
  if (ns > (unsigned __int128)INT64_MAX / 4)
    return false;
  *stall_ns = (int64_t)ns > f->slack_ns ? (int64_t)ns - f->slack_ns : 0;
  return true;
}
