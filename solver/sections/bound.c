/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/sections/bound.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/recompute/recompute.h"

/* Per op of the loosened step: what it wrote last may be dropped. NULL: anything. */
static bool may_drop (const trace *t, const loosened *l, const solve_options *o, arena *a,
                      uint8_t **again, error *err) {
  uint8_t *of_whole;
  *again = NULL;
  if (!recompute_may_drop (t, o, a, &of_whole, err))
    return false;
  if (!of_whole)
    return true;
  *again = NEW (a, l->trace->n_ops, uint8_t, err);
  for (int32_t k = 0; *again && k < l->trace->n_ops; k++)
    (*again)[k] = l->of[k] != NO_OP && of_whole[l->of[k]];
  return *again;
}

/* The op, or the place between two, where the most has to be there in every cut. */
static bool refuse_budget (const trace *t, const loosened *l, const gaps *g, error *err) {
  char budget[UNITS_TEXT], least[UNITS_TEXT];
  int32_t wall = l->of[g->floor_op] == NO_OP, k = l->of[g->floor_op + wall];
  return error_set (err, ERR_infeasible,
                    "no plan fits in %s, whatever is cut: %s op %d (%.60s) %s have to be there",
                    units_bytes (budget, g->room_bytes + g->pool_bytes), wall ? "before" : "at", k,
                    t->ops[k].name ? t->ops[k].name : "", units_bytes (least, g->floor_bytes));
}

/* The same with seams: slower, and better where cuts cost more than what they save. The host must
   hold all that there is, since the program does not say what a chain's parts leave there. */
static bool try_seams (gaps *g, const bound_options *o, arena *a, bound *best, error *err) {
  enum { SEAMS = 20, ROUNDS = 3 };
  int64_t all = 0;
  bound b;
  bound_options how = *o;
  for (int32_t i = 0; i < g->units->count; i++)
    all += gaps_room (g, i);
  if ((!o->drops && o->host_bytes < all) || !gaps_add_seams (g, SEAMS, a, err))
    return !err->code;
  how.classes = 1;
  how.limit_rounds = ROUNDS;
  how.bound_only = true;
  if (!bound_of (g, &how, a, &b, err))
    return false;
  bound_stats *to = &best->stats;
  to->ticks += b.stats.ticks;
  to->solves += b.stats.solves;
  if (b.lower_bound_ns > best->lower_bound_ns) {
    best->lower_bound_ns = b.lower_bound_ns;
    best->by = b.by;
    best->proof = b.proof;
    best->prices = b.prices;
  }
  return true;
}

bool sections_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  assert (o->sections != SECTIONS_OFF && out);
  loosened *l = NEW (a, 1, loosened, err);
  units *u = NEW (a, 1, units, err);
  gaps *g = NEW (a, 1, gaps, err);
  uint8_t *again;
  loose_orders orders = o->section_orders == ORDERS_LEVEL ? LOOSE_LEVEL : LOOSE_ANY;
  if (!l || !u || !g || !trace_loosen (t, orders, a, l, err) ||
      !units_of (l->trace, NULL, 0, 1, 0, a, u, err) ||
      !gaps_of_loosened (u, l, 1, o->budget_bytes, a, g, err) ||
      !may_drop (t, l, o, a, &again, err))
    return false;
  if (g->floor_bytes > o->budget_bytes)
    return refuse_budget (t, l, g, err);
  bound_options how = solve_bound_options (o);
  how.drops = o->recompute == RECOMPUTE_ONLY  ? DROPS_ONLY
              : o->recompute == RECOMPUTE_OFF ? DROPS_NONE
                                              : DROPS_ALLOWED;
  how.again = again;
  if (!bound_of (g, &how, a, out, err) || !try_seams (g, &how, a, out, err))
    return false;
  if (strcmp (out->by, "flow-lp") == 0)
    out->by = "cuts-lp";
  return true;
}
