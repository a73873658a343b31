/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/bound_range.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

/* The price on a byte that leaves is what keeps shares from moving what need not move. It costs the
   bound as much of the time that copies take, so it is small. */
enum { EPS_PPM = 200, MOST_SOLVED = 24, SETTLED_PPM = 1000 };

/* A budget whose program was solved. */
typedef struct anchor {
  int64_t budget_bytes;
  bool optimal;    /* or near enough to guide and to mix */
  double stall_ns; /* of x, as the program counts it */
  double *x;
  int64_t *duals;
} anchor;

struct bound_range {
  arena *arena;
  bound_options o;
  int64_t smallest_bytes;
  units units;
  gaps gaps; /* at the smallest budget */
  slots slots;
  flow flow;
  bound first;                           /* the smallest budget's, without the last program */
  bool tight;                            /* else nothing moves anywhere */
  int64_t none_below_bytes, loose_bytes; /* below the one none fits, from the other on all does */
  int32_t n_anchors;
  anchor anchors[MOST_SOLVED]; /* budgets rise */
  bound_range_stats seen;
};

bound_range_stats bound_range_seen (const bound_range *r) {
  return r->seen;
}

static int64_t room_of (const bound_range *r, int64_t budget_bytes) {
  return budget_bytes - r->gaps.pool_bytes;
}

/* ---- tangents and chords ---- */

/* The bound that an anchor's duals prove here. */
static int64_t tangent_ns (bound_range *r, const anchor *at, int64_t budget_bytes) {
  int64_t stall_ns;
  flow_set_room (&r->flow, room_of (r, budget_bytes));
  return bound_exact (&r->flow, at->duals, &stall_ns) ? stall_ns : 0;
}

/* The best of two anchors on each side: of a convex function, tangents further off are lower. */
static int64_t proved_ns (bound_range *r, int64_t budget_bytes) {
  enum { BEHIND = 2, BEFORE = 1 };
  int64_t best_ns = 0;
  int32_t next = 0;
  while (next < r->n_anchors && r->anchors[next].budget_bytes < budget_bytes)
    next++;
  for (int32_t i = next - BEHIND; i <= next + BEFORE; i++) {
    int64_t ns = i >= 0 && i < r->n_anchors ? tangent_ns (r, &r->anchors[i], budget_bytes) : 0;
    best_ns = ns > best_ns ? ns : best_ns;
  }
  return best_ns;
}

/* The anchors on both sides, where an anchor that is not optimal says nothing; NULL: none. */
static void find_sides (const bound_range *r, int64_t budget_bytes, const anchor **below,
                        const anchor **above) {
  *below = *above = NULL;
  for (int32_t i = 0; i < r->n_anchors; i++) {
    const anchor *at = &r->anchors[i];
    if (at->optimal && at->budget_bytes <= budget_bytes)
      *below = at;
    if (at->optimal && at->budget_bytes >= budget_bytes && !*above)
      *above = at;
  }
}

/* How much of the budget below is in the mix; above the last anchor the other end is the budget at
   which nothing moves. */
static double weight_below (const bound_range *r, const anchor *below, const anchor *above,
                            int64_t budget_bytes) {
  int64_t end = above ? above->budget_bytes : r->loose_bytes;
  if (end <= below->budget_bytes || budget_bytes <= below->budget_bytes)
    return 1;
  if (budget_bytes >= end)
    return 0;
  return (double)(end - budget_bytes) / (double)(end - below->budget_bytes);
}

static double chord_ns (const bound_range *r, int64_t budget_bytes) {
  const anchor *below, *above;
  find_sides (r, budget_bytes, &below, &above);
  if (!below)
    return HUGE_VAL;
  double w = weight_below (r, below, above, budget_bytes);
  return w * below->stall_ns + (1 - w) * (above ? above->stall_ns : 0);
}

/* ---- solving ---- */

static double stall_of (const flow *f, const double *x) {
  double grains = 0;
  for (int32_t c = 0; c < f->n_columns; c++)
    if (f->column_kind[c] == COLUMN_stall)
      grains += ldexp (x[c], FLOW_UNIT_BITS);
  return ldexp (grains, -f->link.shift) * 1e9 / (double)f->link.rates.out_alone;
}

/* A solver that lost its footing in the end may have been there already: its duals prove nearly
   what its point costs. Mixes only guide, so that is enough. */
static bool is_settled (const bound_range *r, const anchor *new, const ilp_result *got,
                        int64_t proved_ns) {
  double apart = fabs (new->stall_ns - (double)proved_ns);
  return got->status == ILP_OPTIMAL ||
         (got->status == ILP_FAILED &&
          apart * 1e6 <= SETTLED_PPM * (double)(r->first.compute_ns + proved_ns));
}

static bool solve_at (bound_range *r, int64_t budget_bytes, error *err) {
  anchor new = { .budget_bytes = budget_bytes,
                 .x = NEW (r->arena, r->flow.n_columns, double, err),
                 .duals = NEW (r->arena, r->flow.n_rows, int64_t, err) };
  ilp_result got;
  bound_stats stats = { 0 };
  int64_t stall_ns;
  arena *scratch = arena_made (err);
  bool ok = scratch && new.x &&new.duals;
  flow_set_room (&r->flow, room_of (r, budget_bytes));
  ok = ok && bound_program (&r->flow, &r->o, scratch, &got, &stats, err) &&
       bound_prove (&r->flow, got.y, scratch, new.duals, &stall_ns, err);
  if (ok) {
    memcpy (new.x, got.x, (size_t)r->flow.n_columns * sizeof *new.x);
    new.stall_ns = stall_of (&r->flow, new.x);
    new.optimal = is_settled (r, &new, &got, stall_ns);
    int32_t i = r->n_anchors++;
    for (; i > 0 && r->anchors[i - 1].budget_bytes > budget_bytes; i--)
      r->anchors[i] = r->anchors[i - 1];
    r->anchors[i] = new;
    r->seen.programs += stats.solves;
  }
  arena_free (scratch);
  return ok;
}

static const anchor *find_anchor (const bound_range *r, int64_t budget_bytes) {
  for (int32_t i = 0; i < r->n_anchors; i++)
    if (r->anchors[i].budget_bytes == budget_bytes)
      return &r->anchors[i];
  return NULL;
}

/* The budget where least is known, first; until none is left that is worth a program. */
static bool close_gaps (bound_range *r, const int64_t *budgets, int32_t count, int64_t apart_ppm,
                        error *err) {
  int64_t *proved = NEW (r->arena, count, int64_t, err); /* by the anchors known so far */
  const anchor *last = &r->anchors[0];
  while (proved && r->n_anchors < MOST_SOLVED) {
    int32_t worst = -1;
    double most = 0;
    for (int32_t i = 0; i < count; i++) {
      if (budgets[i] < r->none_below_bytes || budgets[i] >= r->loose_bytes ||
          find_anchor (r, budgets[i]))
        continue;
      int64_t ns = tangent_ns (r, last, budgets[i]);
      proved[i] = ns > proved[i] ? ns : proved[i];
      double least = (double)proved[i];
      double apart = (chord_ns (r, budgets[i]) - least) / ((double)r->first.compute_ns + least);
      if (apart * 1e6 > (double)apart_ppm && apart > most) {
        most = apart;
        worst = i;
      }
    }
    if (worst < 0 || (r->o.stop && r->o.stop (r->o.stop_context)))
      return true;
    if (!solve_at (r, budgets[worst], err))
      return false;
    last = find_anchor (r, budgets[worst]);
  }
  return proved;
}

/* From this budget on nothing has to move. */
static int64_t loose_from (const gaps *g) {
  int64_t most = 0;
  for (int32_t k = 0; k < g->n_ops; k++)
    if (g->base_bytes[k] - g->unused_bytes > most)
      most = g->base_bytes[k] - g->unused_bytes;
  return most + g->pool_bytes;
}

bool bound_range_new (const trace *t, const bound_options *o, const int64_t *budgets, int32_t count,
                      int64_t apart_ppm, arena *a, bound_range **out, error *err) {
  assert (count > 0 && budgets && apart_ppm >= 0);
  bound_range *r = NEW (a, 1, bound_range, err);
  *out = r;
  if (!r)
    return false;
  r->arena = a;
  r->o = *o;
  if (!units_of (t, NULL, 0, 1, 0, a, &r->units, err) ||
      !gaps_of (&r->units, 1, 0, a, &r->gaps, err))
    return false;
  r->loose_bytes = loose_from (&r->gaps);
  r->none_below_bytes = r->gaps.floor_bytes;
  if (!o->drops && r->loose_bytes - o->host_bytes > r->none_below_bytes)
    r->none_below_bytes = r->loose_bytes - o->host_bytes; /* the host holds the rest */
  int64_t smallest = r->none_below_bytes;
  for (int32_t i = count - 1; i >= 0 && budgets[i] >= r->none_below_bytes; i--)
    smallest = budgets[i];
  r->smallest_bytes = smallest;
  if (!gaps_of (&r->units, 1, smallest, a, &r->gaps, err) ||
      !bound_slots (&r->gaps, o, a, &r->first, &r->slots, &r->tight, err))
    return false;
  r->seen.programs = r->first.stats.solves;
  if (!r->tight)
    return true;
  flow_options how = bound_flow (&r->gaps, o, o->classes ? o->classes : 3, EPS_PPM);
  return flow_build (&r->gaps, &r->slots, &how, a, &r->flow, err) && solve_at (r, smallest, err) &&
         close_gaps (r, budgets, count, apart_ppm, err);
}

/* ---- answers ---- */

/* The mix of the points on both sides; of what is not optimal, the nearest below. */
static bool mix_shares (const bound_range *r, int64_t budget_bytes, double *share, arena *a,
                        error *err) {
  const anchor *below, *above;
  arena_mark mark = arena_here (a);
  double *x = NEW (a, r->flow.n_columns, double, err);
  if (!x)
    return false;
  find_sides (r, budget_bytes, &below, &above);
  if (!below) { /* the solver lost its footing: its last point is a guide all the same */
    memcpy (x, r->anchors[0].x, (size_t)r->flow.n_columns * sizeof *x);
  } else {
    double w = weight_below (r, below, above, budget_bytes);
    for (int32_t c = 0; c < r->flow.n_columns; c++)
      x[c] = w * below->x[c] + (above ? (1 - w) * above->x[c] : 0);
  }
  bound_shares (&r->flow, x, share, NULL);
  arena_back (a, mark);
  return true;
}

bool bound_range_at (bound_range *r, int64_t budget_bytes, arena *a, bound *out, error *err) {
  assert (r && out && budget_bytes >= 0);
  gaps here = r->gaps;
  int32_t op;
  if (budget_bytes < r->none_below_bytes)
    return gaps_too_small (&r->gaps, budget_bytes, err);
  here.room_bytes = room_of (r, budget_bytes);
  int64_t crossing_ns = bound_crossing (&here, r->o.dev, &op), ns = r->first.compute_ns;
  *out = (bound){ .lower_bound_ns = ns, .compute_ns = ns, .by = "compute" };
  out->share = NEW (a, r->gaps.count, double, err);
  if (!out->share)
    return false;
  if (crossing_ns > ns) {
    out->lower_bound_ns = crossing_ns;
    out->by = "crossing";
  }
  if (!r->n_anchors || budget_bytes >= r->loose_bytes)
    return true;
  int64_t proved = ns + proved_ns (r, budget_bytes);
  if (budget_bytes <= r->smallest_bytes && r->first.lower_bound_ns > proved)
    proved = r->first.lower_bound_ns;
  if (proved > out->lower_bound_ns) {
    out->lower_bound_ns = proved;
    out->by = "flow-lp";
  }
  return mix_shares (r, budget_bytes, out->share, a, err);
}
