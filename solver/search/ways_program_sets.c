/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of drops that programs propose.  A program for exactly this budget leaves copies no time to
   spare, so programs for a little less memory are asked as well, and for slower links, since copies
   of small tensors pay a latency that no program charges.  Mostly one of these sets is all there is
   to find, and soon found. */
#include <string.h>

#include "base/units.h"
#include "solver/search/ways_inner.h"

typedef struct question {
  int64_t less_ppm, slower; /* than the budget; than the link */
} question;

static const question known = { 0, 1 }; /* the answer is there */

static bool is_solved (const question *q) {
  return q->less_ppm == known.less_ppm && q->slower == known.slower;
}

static question budget_question (const ways *m, int k) {
  return (question){ tuned (m->o->tuning, TUNE_program_sets_less_ppm + (tuning_id)k), 1 };
}

static question link_question (const ways *m, int k) {
  const tuning *by = m->o->tuning;
  return (question){ tuned (by, TUNE_program_sets_slower_less_ppm),
                     tuned (by, TUNE_program_sets_slower + (tuning_id)k) };
}

static bool solve_guide (ways *m, const question *q, arena *a, recompute_program *out, error *err) {
  const solve_options *o = m->o;
  int64_t less_bytes = units_scale (o->budget_bytes, q->less_ppm, 1000000);
  device slow = *o->device;
  solve_options behind = *o;
  if (is_solved (q)) {
    *out = m->program;
    return true;
  }
  slow.share_ppm = units_div_up (slow.share_ppm, q->slower);
  behind.device = &slow;
  bool ok = recompute_solve_guide (m->t, &behind, o->budget_bytes - less_bytes, a, out, err);
  m->ticks += ok ? out->bound.stats.ticks : 0;
  return ok;
}

/* Programs for nearly the same often drop the same. */
static bool was_tried (const ways *m, int which) {
  bool was = false;
  for (int i = 0; i < which && !was; i++)
    was = variant_same_drops (&m->guided[i], &m->guided[which]);
  return was;
}

/* Its set becomes the guided one of that place; there is hope where it is a new one that may win.
 */
static bool ask (ways *m, const question *q, int place, bool *hope, error *err) {
  variant *v = &m->guided[place];
  recompute_program guide;
  variant_value value;
  arena_mark mark = arena_here (m->scratch);
  bool ok = solve_guide (m, q, m->scratch, &guide, err) &&
            (!guide.fits || recompute_guided (m->t, m->o, &guide, m->arena, v, &value, err));
  *hope =
      ok && guide.fits && value.legal && value.bound_ns < ways_best_ns (m) && !was_tried (m, place);
  m->drops_tried += ok && guide.fits;
  arena_back (m->scratch, mark);
  return ok;
}

/* One more program: while that leaves half of the ticks, the first a quarter. The set of the one
   that is solved already costs none, so it is tried in any case. */
static bool is_affordable (const ways *m, bool first) {
  int64_t most = first ? m->limit_ticks - m->limit_ticks / 4 : m->limit_ticks / 2;
  return m->ticks + m->program.bound.stats.ticks < most;
}

/* The last set's plan waits for copies that its program thought to be in time. */
static bool waits_for_copies (const ways *m) {
  int64_t bound_ns = m->last.bound.lower_bound_ns;
  int64_t waits_ppm = tuned (m->o->tuning, TUNE_program_sets_waits_ppm);
  return m->last.plan &&
         m->last.plan->predicted.step_ns > bound_ns + units_scale (bound_ns, waits_ppm, 1000000);
}

static effort in_full (const ways *m) {
  int64_t gap_ppm = m->effort.gap_ppm;
  gap_ppm = gap_ppm ? gap_ppm : tuned (m->o->tuning, TUNE_program_sets_gap_ppm);
  effort how = m->effort;
  how.gap_ppm = gap_ppm;
  how.enough_ns = solve_enough_of (&how, m->least_ns);
  how.gap_ppm = 1;
  how.rough = true;
  return how;
}

bool ways_program_sets (ways *m, error *err) {
  effort how = in_full (m);
  int budget = 0, link = 0;
  bool is_known = false;
  if (m->o->recompute == RECOMPUTE_ONLY || !m->program.fits)
    return true;
  how.limit_ticks = (m->limit_ticks / m->part + 1) * m->events;
  m->last.plan = NULL;
  for (int i = 0; i < WAYS_SETS; i++) {
    bool hope, any = is_affordable (m, i == 0);
    bool slow = budget == WAYS_BUDGETS || (i % 2 && link < WAYS_LINKS && waits_for_copies (m));
    if ((is_known && !any) || ways_best_ns (m) <= how.enough_ns || solve_stops (m->o))
      break;
    question q = !any ? known : slow ? link_question (m, link++) : budget_question (m, budget++);
    is_known |= is_solved (&q);
    if (!ask (m, &q, i, &hope, err) || (hope && !ways_try (m, &m->guided[i], NULL, how, err)))
      return false;
  }
  return true;
}
