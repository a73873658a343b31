/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan without any cut and drop.  It comes last, since mostly its bound is above what was
   found by then; where there is a thread for it, it is searched from the beginning, beside all
   else. */
#include "solver/search/ways_inner.h"

static const variant as_it_is = { .name = "as it is" };

static bool only_drops (const ways *m) {
  return m->o->recompute == RECOMPUTE_ONLY;
}

/* Refining the program of a larger step takes long, and two at once the memory of two. */
static bool is_large (const ways *m) {
  return m->t->n_ops > tuned (m->o->tuning, TUNE_search_many_ops);
}

/* With the limit that it has alone: a plan is not to be worse because something else was allowed.
 */
static effort own_effort (const ways *m) {
  effort how = m->effort;
  how.limit_ticks = ways_plain_ticks (m->t, m->o->tuning, m->effort.limit_ticks);
  how.rough = is_large (m);
  return how;
}

/* ---- beside ---- */

static void search_beside (void *context) {
  ways_beside *b = context;
  solve_request q = { .trace = b->trace, .options = &b->lane.options, .effort = b->effort };
  b->ok = attempt_solve (&q, b->lane.arena, &b->found, &b->why);
}

static bool begin_beside (ways *m, error *err) {
  ways_beside *b = &m->beside;
  b->trace = m->t;
  b->effort = own_effort (m);
  if (!lane_open (&b->lane, m->o, err))
    return false;
  lane_begin (&b->lane, search_beside, b);
  return true;
}

/* It counts as if it began only now, when it would end at a bound no better than the best. */
static bool take_beside (ways *m, error *err) {
  ways_beside *b = &m->beside;
  effort how = own_effort (m);
  lane_wait (&b->lane);
  if (b->found.bound.lower_bound_ns >= ways_best_ns (m)) {
    const bound *had = &b->found.bound; /* its texts and tables go with the lane */
    m->last = (solution){ .bound = { .lower_bound_ns = had->lower_bound_ns, .stats = had->stats } };
    lane_drop (&b->lane);
    return ways_take (m, NULL, &how, true, &b->why, err);
  }
  m->last = b->found;
  lane_take (&b->lane, m->arena);
  return ways_take (m, NULL, &how, b->ok, &b->why, err);
}

/* ---- the strategies ---- */

/* If the step as it is comes near compute anyway, nothing else is worth a look. */
bool ways_quick (ways *m, error *err) {
  variant_value value;
  if (!variant_try (m->t, &as_it_is, m->o, 0, m->scratch, &value, err))
    return false;
  m->easy =
      value.step_ns != INT64_MAX && value.step_ns <= solve_enough_of (&m->effort, m->compute_ns);
  return m->easy || m->o->threads < 2 || only_drops (m) || is_large (m) || begin_beside (m, err);
}

bool ways_plain (ways *m, error *err) {
  const solve_options *o = m->o;
  variant_value value;
  bool only = only_drops (m);
  if (only && m->best.plan)
    return true;
  bool ok = only ? variant_try (m->t, &as_it_is, o, 0, m->scratch, &value, err)
                 : variant_look (m->t, &as_it_is, o, m->scratch, &value, err);
  if (!ok)
    return false;
  int64_t least_ns = only ? value.step_ns : value.bound_ns; /* if nothing moves, all must fit */
  m->plain_ns = least_ns == INT64_MAX ? INT64_MAX : 0;
  m->plain_bound_ns = value.bound_ns;
  if (least_ns < ways_best_ns (m) && m->best.plan && !is_large (m)) {
    if (!variant_bound (m->t, &as_it_is, o, true, m->scratch, &value, err))
      return false;
    m->ticks += value.ticks / m->events;
    least_ns = m->plain_bound_ns = value.bound_ns;
  }
  if (least_ns >= ways_best_ns (m))
    return true;
  return m->beside.lane.arena ? take_beside (m, err)
                              : ways_try (m, NULL, NULL, own_effort (m), err);
}

bool ways_plain_first (ways *m, error *err) {
  return ways_plain (m, err);
}
