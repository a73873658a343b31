/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mehrotra's predictor and corrector (1992) with Gondzio's correctors (1996), primal and dual at
   once, for rows and columns with bounds on either side.  A row is A x - s = 0, whose slack s has
   the row's bounds.  All that has a bound keeps off it; what the rows lack shrinks with each step.
 */
#include "solver/flow/interior.h"

#include <math.h>
#include <string.h>

#include "solver/flow/normal.h"

enum { MOST_STEPS = 100, CORRECTORS = 3 };
enum { PRODUCTS_PER_TICK = 8000, ENTRIES_PER_TICK = 120, NUMBERS_PER_TICK = 8 };
#define TOLERANCE 1e-8
#define LOOSE 1000     /* tolerances: near enough where numbers allow no more, since prices prove */
#define BOLDNESS 0.995 /* of the way to the first bound */
#define LONG_STEP 0.9
#define GAIN 0.02
#define FREE_WEIGHT 1e-10 /* of what has no bound */

/* Numbers of each column, and of each row's slack behind them. */
typedef struct method {
  const ilp_problem *p;
  normal n;
  int32_t columns, rows, all;
  double *low, *high, *cost;
  bool *fixed;           /* by equal bounds */
  double *x, *y, *z, *w; /* z, w: prices of the lower and of the upper bound */
  double *dx, *dy, *dz, *dw, *old_dx, *old_dy, *old_dz, *old_dw;
  double *d; /* how far it moves for a price */
  double *rows_lack, *prices_lack, *pull;
  double *toward_low, *toward_high; /* the gain that a distance times its price aims at */
  double *best_x, *best_y;
  double best; /* how far that is from an answer, in tolerances */
  double b_size, c_size;
} method;

static bool has_low (const method *m, int32_t k) {
  return m->low[k] > -HUGE_VAL && !m->fixed[k];
}

static bool has_high (const method *m, int32_t k) {
  return m->high[k] < HUGE_VAL && !m->fixed[k];
}

/* The larger of two bounds, as far as there are any. */
static double size_of (double low, double high) {
  return fmax (isfinite (low) ? fabs (low) : 0, isfinite (high) ? fabs (high) : 0);
}

static bool make_room (method *m, arena *a, error *err) {
  double **all[] = { &m->low, &m->high, &m->cost,        &m->x,          &m->z,          &m->w,
                     &m->dx,  &m->dz,   &m->dw,          &m->old_dx,     &m->old_dz,     &m->old_dw,
                     &m->d,   &m->pull, &m->prices_lack, &m->toward_low, &m->toward_high };
  double **of_rows[] = { &m->y, &m->dy, &m->old_dy, &m->rows_lack, &m->best_y };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if ((*all[i] = NEW (a, m->all, double, err)) == NULL)
      return false;
  for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
    if ((*of_rows[i] = NEW (a, m->rows, double, err)) == NULL)
      return false;
  m->fixed = NEW (a, m->all, bool, err);
  m->best_x = NEW (a, m->columns, double, err);
  return m->fixed != NULL && m->best_x != NULL;
}

static bool start (method *m, arena *a, error *err) {
  const ilp_problem *p = m->p;
  m->columns = p->n_columns;
  m->rows = p->n_rows;
  m->all = m->columns + m->rows;
  m->best = HUGE_VAL;
  if (!make_room (m, a, err))
    return false;
  for (int32_t k = 0; k < m->all; k++) {
    bool column = k < m->columns;
    m->low[k] = column ? p->low[k] : p->row_low[k - m->columns];
    m->high[k] = column ? p->high[k] : p->row_high[k - m->columns];
    m->cost[k] = column ? p->cost[k] : 0;
    m->fixed[k] = m->low[k] == m->high[k];
    m->c_size = fmax (m->c_size, fabs (m->cost[k]));
    m->b_size = fmax (m->b_size, size_of (m->low[k], m->high[k]));
  }
  return true;
}

/* s - A x, for each row. */
static void find_rows_lack (method *m) {
  for (int32_t i = 0; i < m->rows; i++)
    m->rows_lack[i] = -m->x[m->columns + i];
  rows_add (m->p, m->x, m->rows_lack);
  for (int32_t i = 0; i < m->rows; i++)
    m->rows_lack[i] = -m->rows_lack[i];
}

/* A' y; of a slack -y. */
static void find_row_prices (method *m) {
  memset (m->pull, 0, (size_t)m->columns * sizeof *m->pull);
  columns_add (m->p, m->y, m->pull);
  for (int32_t i = 0; i < m->rows; i++)
    m->pull[m->columns + i] = -m->y[i];
}

/* c - A' y - z + w: of what is fixed it has no say. */
static void find_prices_lack (method *m) {
  for (int32_t k = 0; k < m->all; k++)
    m->prices_lack[k] = m->fixed[k] ? 0 : m->cost[k] - m->pull[k] - m->z[k] + m->w[k];
}

static double middle_of (const method *m, int32_t k) {
  bool low = m->low[k] > -HUGE_VAL, high = m->high[k] < HUGE_VAL;
  return low && high ? m->low[k] + (m->high[k] - m->low[k]) / 2
         : low       ? m->low[k]
         : high      ? m->high[k]
                     : 0;
}

/* Between two bounds, or off the one by a tenth of the largest number that there is: a nearer
   start, as by least squares, takes half as many steps again. */
static void find_start (method *m) {
  double apart = 0.1 * fmax (1, m->b_size), price = 0.1 * fmax (1, m->c_size);
  for (int32_t k = 0; k < m->all; k++) {
    bool low = has_low (m, k), high = has_high (m, k);
    m->x[k] = middle_of (m, k) + (low == high ? 0 : low ? apart : -apart);
    m->z[k] = low ? price + fmax (m->cost[k], 0) : 0;
    m->w[k] = high ? price + fmax (-m->cost[k], 0) : 0;
  }
}

/* The rows' own values and what stands on either side of the bounds. */
static double dual_value (const method *m) {
  double sum = 0;
  for (int32_t k = 0; k < m->all; k++)
    if (!m->fixed[k])
      sum +=
          (has_low (m, k) ? m->low[k] * m->z[k] : 0) - (has_high (m, k) ? m->high[k] * m->w[k] : 0);
  for (int32_t k = 0; k < m->all; k++)
    if (m->fixed[k])
      sum += m->low[k] * (m->cost[k] - m->pull[k]);
  return sum;
}

static double largest (const double *x, int32_t n) {
  double most = 0;
  for (int32_t k = 0; k < n; k++)
    most = fmax (most, fabs (x[k]));
  return most;
}

/* The mean product of a distance and its price, so far along the step. */
static double mean_product (const method *m, double along, double along_price) {
  double sum = 0, count = 0;
  for (int32_t k = 0; k < m->all; k++) {
    double x = m->x[k] + along * m->dx[k];
    if (has_low (m, k)) {
      sum += (x - m->low[k]) * (m->z[k] + along_price * m->dz[k]);
      count++;
    }
    if (has_high (m, k)) {
      sum += (m->high[k] - x) * (m->w[k] + along_price * m->dw[k]);
      count++;
    }
  }
  return count > 0 ? sum / count : 0;
}

/* full: toward the rows and prices too; else only what is said of the products. */
static void find_step (method *m, bool full) {
  for (int32_t k = 0; k < m->all; k++) {
    double h = full ? m->prices_lack[k] : 0;
    if (has_low (m, k))
      h -= m->toward_low[k] / (m->x[k] - m->low[k]);
    if (has_high (m, k))
      h += m->toward_high[k] / (m->high[k] - m->x[k]);
    m->pull[k] = m->d[k] * h;
  }
  if (full)
    memcpy (m->dy, m->rows_lack, (size_t)m->rows * sizeof *m->dy);
  else
    memset (m->dy, 0, (size_t)m->rows * sizeof *m->dy);
  rows_add (m->p, m->pull, m->dy);
  for (int32_t i = 0; i < m->rows; i++)
    m->dy[i] -= m->pull[m->columns + i];
  if (full)
    normal_solve_well (&m->n, m->dy);
  else
    normal_solve (&m->n, m->dy);
  memset (m->dx, 0, (size_t)m->columns * sizeof *m->dx);
  columns_add (m->p, m->dy, m->dx);
  for (int32_t k = 0; k < m->all; k++) {
    double by_rows = k < m->columns ? m->dx[k] : -m->dy[k - m->columns];
    m->dx[k] = m->d[k] * by_rows - m->pull[k];
    m->dz[k] = has_low (m, k) ? (m->toward_low[k] - m->z[k] * m->dx[k]) / (m->x[k] - m->low[k]) : 0;
    m->dw[k] =
        has_high (m, k) ? (m->toward_high[k] + m->w[k] * m->dx[k]) / (m->high[k] - m->x[k]) : 0;
  }
}

static double less_of (double a, double b) {
  return b < a ? b : a; /* a where b is no number */
}

static void find_lengths (const method *m, double *along, double *along_price) {
  double far = 1 / BOLDNESS, far_price = 1 / BOLDNESS;
  for (int32_t k = 0; k < m->all; k++) {
    if (has_low (m, k)) {
      if (m->dx[k] < 0)
        far = less_of (far, (m->low[k] - m->x[k]) / m->dx[k]);
      if (m->dz[k] < 0)
        far_price = less_of (far_price, -m->z[k] / m->dz[k]);
    }
    if (has_high (m, k)) {
      if (m->dx[k] > 0)
        far = less_of (far, (m->high[k] - m->x[k]) / m->dx[k]);
      if (m->dw[k] < 0)
        far_price = less_of (far_price, -m->w[k] / m->dw[k]);
    }
  }
  *along = less_of (1, far * BOLDNESS);
  *along_price = less_of (1, far_price * BOLDNESS);
}

/* The lack of a product along the step, beside its aim. */
static double lacking (double product, double aim) {
  double low = 0.1 * aim, high = 10 * aim;
  return product < low ? low - product : product > high ? fmax (high - product, -high) : 0;
}

static void keep_step (method *m) {
  size_t all = (size_t)m->all * sizeof (double);
  memcpy (m->old_dx, m->dx, all);
  memcpy (m->old_dz, m->dz, all);
  memcpy (m->old_dw, m->dw, all);
  memcpy (m->old_dy, m->dy, (size_t)m->rows * sizeof (double));
}

/* by: 1 adds what was kept to the step, 0 puts it in its place. */
static void join_step (method *m, double by) {
  for (int32_t k = 0; k < m->all; k++) {
    m->dx[k] = m->old_dx[k] + by * m->dx[k];
    m->dz[k] = m->old_dz[k] + by * m->dz[k];
    m->dw[k] = m->old_dw[k] + by * m->dw[k];
  }
  for (int32_t i = 0; i < m->rows; i++)
    m->dy[i] = m->old_dy[i] + by * m->dy[i];
}

/* A step along which products would stray from their aim is bent, as often as it gets longer so. */
static void correct (method *m, double aim, double *along, double *along_price) {
  for (int i = 0; i < CORRECTORS && fmin (*along, *along_price) < LONG_STEP; i++) {
    double far = fmin (1, *along * 1.1 + 0.1), far_price = fmin (1, *along_price * 1.1 + 0.1);
    double longer, longer_price;
    for (int32_t k = 0; k < m->all; k++) {
      double x = m->x[k] + far * m->dx[k], z = m->z[k] + far_price * m->dz[k],
             w = m->w[k] + far_price * m->dw[k];
      m->toward_low[k] = has_low (m, k) ? lacking ((x - m->low[k]) * z, aim) : 0;
      m->toward_high[k] = has_high (m, k) ? lacking ((m->high[k] - x) * w, aim) : 0;
    }
    keep_step (m);
    find_step (m, false);
    join_step (m, 1);
    find_lengths (m, &longer, &longer_price);
    if (longer + longer_price < *along + *along_price + GAIN) {
      join_step (m, 0);
      return;
    }
    *along = longer;
    *along_price = longer_price;
  }
}

/* Weights of the bounds, and the products' way to nothing. */
static void aim_at_nothing (method *m) {
  for (int32_t k = 0; k < m->all; k++) {
    bool low = has_low (m, k), high = has_high (m, k);
    double weight = low || high ? 0 : FREE_WEIGHT;
    double above = m->x[k] - m->low[k], below = m->high[k] - m->x[k];
    weight += (low ? m->z[k] / above : 0) + (high ? m->w[k] / below : 0);
    m->d[k] = m->fixed[k] ? 0 : 1 / weight;
    m->toward_low[k] = low ? -above * m->z[k] : 0;
    m->toward_high[k] = high ? -below * m->w[k] : 0;
  }
}

/* The first step's effect of second order on the products is taken back. */
static void aim_again (method *m, double aim) {
  for (int32_t k = 0; k < m->all; k++) {
    if (has_low (m, k))
      m->toward_low[k] += aim - m->dx[k] * m->dz[k];
    if (has_high (m, k))
      m->toward_high[k] += aim + m->dx[k] * m->dw[k];
  }
}

static void go (method *m, double along, double along_price) {
  for (int32_t k = 0; k < m->all; k++) {
    m->x[k] += along * m->dx[k];
    m->z[k] += along_price * m->dz[k];
    m->w[k] += along_price * m->dw[k];
  }
  for (int32_t i = 0; i < m->rows; i++)
    m->y[i] += along_price * m->dy[i];
}

static void step (method *m) {
  double along, along_price, mean = mean_product (m, 0, 0), share;
  aim_at_nothing (m);
  normal_compute (&m->n, m->d);
  find_step (m, true);
  find_lengths (m, &along, &along_price);
  share = mean > 0 ? mean_product (m, along, along_price) / mean : 0;
  double aim = share * share * share * mean;
  aim_again (m, aim);
  find_step (m, true);
  find_lengths (m, &along, &along_price);
  correct (m, aim, &along, &along_price);
  go (m, along, along_price);
}

/* How far from an answer, in tolerances. */
static double distance (method *m, int32_t number, const ilp_options *o) {
  double value = 0, dual, rows, prices, gap;
  for (int32_t k = 0; k < m->columns; k++)
    value += m->cost[k] * m->x[k];
  find_rows_lack (m);
  find_row_prices (m);
  find_prices_lack (m);
  dual = dual_value (m);
  rows = largest (m->rows_lack, m->rows) / (1 + m->b_size);
  prices = largest (m->prices_lack, m->all) / (1 + m->c_size);
  gap = fabs (value - dual) / (1 + fabs (value));
  log_say (o->log, LOG_DETAIL, "interior: %d: value %.9g, rows %.1e, prices %.1e, gap %.1e", number,
           value, rows, prices, gap);
  if (!isfinite (value) || !isfinite (dual)) /* fmax takes the other one */
    return HUGE_VAL;
  return fmax (fmax (rows, prices), gap) / TOLERANCE;
}

static void keep_best (method *m, double far) {
  if (!(far < m->best))
    return;
  m->best = far;
  memcpy (m->best_x, m->x, (size_t)m->columns * sizeof *m->x);
  memcpy (m->best_y, m->y, (size_t)m->rows * sizeof *m->y);
}

static ilp_status at_the_end (const method *m) {
  return m->best <= LOOSE ? ILP_OPTIMAL : ILP_FAILED;
}

static ilp_status run (method *m, const ilp_options *o, int64_t *steps) {
  find_start (m);
  for (*steps = 0; *steps < MOST_STEPS; ++*steps) {
    double far = distance (m, (int32_t)*steps, o);
    keep_best (m, far);
    if (m->best <= 1)
      return ILP_OPTIMAL;
    if (!isfinite (far) || far > 1e6 * m->best)
      return at_the_end (m);
    if (o->stop && o->stop (o->stop_context))
      return ILP_STOPPED;
    step (m);
  }
  return at_the_end (m);
}

/* On programs of 2,000 to 52,000 rows a tick was 1.2 to 2.0 us. */
static int64_t work_of (const method *m, int64_t steps) {
  return steps * (factor_products (m->n.f) / PRODUCTS_PER_TICK +
                  factor_entries (m->n.f) / ENTRIES_PER_TICK + m->all / NUMBERS_PER_TICK);
}

static bool solve (method *m, const ilp_options *o, arena *a, ilp_result *out, error *err) {
  int64_t steps = 0;
  bool made;
  if (!start (m, a, err) || !normal_new (m->p, a, &m->n, &made, err))
    return false;
  if (!made)
    return true;
  out->status = run (m, o, &steps);
  out->work = work_of (m, steps);
  if (out->status == ILP_STOPPED)
    return true;
  memcpy (out->x, m->best_x, (size_t)m->columns * sizeof *out->x);
  memcpy (out->y, m->best_y, (size_t)m->rows * sizeof *out->y);
  for (int32_t c = 0; c < m->columns; c++)
    out->value += m->cost[c] * out->x[c];
  return true;
}

bool interior_solve (const ilp_problem *p, const ilp_options *o, arena *a, ilp_result *out,
                     error *err) {
  method m = { .p = p };
  arena *own = arena_made (err);
  *out = (ilp_result){ .status = ILP_FAILED };
  out->x = NEW (a, p->n_columns, double, err);
  out->y = NEW (a, p->n_rows, double, err);
  bool good = own != NULL && out->x != NULL && out->y != NULL && solve (&m, o, own, out, err);
  arena_free (own);
  return good;
}
