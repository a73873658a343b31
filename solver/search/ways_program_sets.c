/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of drops that programs propose.  A program for exactly this budget leaves copies no time to
   spare, so programs for a little less memory are asked as well, and for slower links, since copies
   of small tensors pay a latency that no program charges.  Mostly one of these sets is all there is
   to find, and soon found. */
#include <string.h>

#include "base/units.h"
#include "solver/search/ways_inner.h"

/* At a cut: of the ticks, for the plan of one set; sets without hope that end it. */
enum { CUT_SETS_PART = 32, CUT_SETS_IDLE = 2 };

typedef struct question {
  int64_t less_ppm, slower; /* than the budget; than the link */
} question;

static const question known = { 0, 1 }; /* the answer is there */

/* One cut, or the step as it is, with its program. */
typedef struct guiding {
  ways *m;
  const variant *cut; /* NULL: none */
  const recompute_program *program;
  variant *sets; /* WAYS_SETS that were tried */
  /* When these are spent, no program is solved at first, and none later: */
  int64_t first_ticks, most_ticks;
} guiding;

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

static bool solve_guide (const guiding *g, const question *q, arena *a, recompute_program *out,
                         error *err) {
  ways *m = g->m;
  const solve_options *o = m->o;
  int64_t less_bytes = units_scale (o->budget_bytes, q->less_ppm, 1000000);
  device slow = *o->device;
  solve_options behind = *o;
  if (is_solved (q)) {
    *out = *g->program;
    return true;
  }
  slow.share_ppm = units_div_up (slow.share_ppm, q->slower);
  behind.device = &slow;
  bool ok =
      recompute_solve_guide (m->t, g->cut, &behind, o->budget_bytes - less_bytes, a, out, err);
  m->ticks += ok ? out->bound.stats.ticks : 0;
  return ok;
}

/* Programs for nearly the same often drop the same. */
static bool was_tried (const guiding *g, int which) {
  bool was = false;
  for (int i = 0; i < which && !was; i++)
    was = variant_same_drops (&g->sets[i], &g->sets[which]);
  return was;
}

/* Its set becomes the guided one of that place; there is hope where it is a new one that may win.
 */
static bool ask (const guiding *g, const question *q, int place, bool *hope, error *err) {
  ways *m = g->m;
  variant *v = &g->sets[place];
  recompute_program guide;
  variant_value value;
  arena_mark mark = arena_here (m->scratch);
  bool ok =
      solve_guide (g, q, m->scratch, &guide, err) &&
      (!guide.fits || recompute_guided (m->t, g->cut, m->o, &guide, m->arena, v, &value, err));
  *hope =
      ok && guide.fits && value.legal && value.bound_ns < ways_best_ns (m) && !was_tried (g, place);
  m->drops_tried += ok && guide.fits;
  arena_back (m->scratch, mark);
  return ok;
}

/* One more program. The set of the one that is solved already costs none, so it is tried in any
   case. */
static bool is_affordable (const guiding *g, bool first) {
  return g->m->ticks + g->program->bound.stats.ticks < (first ? g->first_ticks : g->most_ticks);
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

static bool try_sets (const guiding *g, int64_t part, int most_idle, error *err) {
  ways *m = g->m;
  effort how = in_full (m);
  int budget = 0, link = 0, idle = 0;
  bool is_known = false;
  how.limit_ticks = (m->limit_ticks / part + 1) * m->events;
  m->last.plan = NULL;
  for (int i = 0; i < WAYS_SETS; i++) {
    bool hope, any = is_affordable (g, i == 0);
    bool slow = budget == WAYS_BUDGETS || (i % 2 && link < WAYS_LINKS && waits_for_copies (m));
    if ((is_known && !any) || ways_best_ns (m) <= how.enough_ns || solve_stops (m->o) ||
        idle == most_idle)
      break;
    question q = !any ? known : slow ? link_question (m, link++) : budget_question (m, budget++);
    is_known |= is_solved (&q);
    if (!ask (g, &q, i, &hope, err) || (hope && !ways_try (m, &g->sets[i], NULL, how, err)))
      return false;
    idle = hope ? 0 : idle + 1;
  }
  return true;
}

/* For the step as it is, as long as they leave half of the ticks, the first a quarter. */
bool ways_program_sets (ways *m, error *err) {
  guiding g = { .m = m,
                .program = &m->program,
                .sets = m->guided[SECTIONS_FOR_DROPS],
                .first_ticks = m->limit_ticks - m->limit_ticks / 4,
                .most_ticks = m->limit_ticks / 2 };
  return m->o->recompute == RECOMPUTE_ONLY || !m->program.fits ||
         try_sets (&g, m->part, WAYS_SETS, err);
}

bool ways_cut_sets (ways *m, int32_t i, const recompute_program *p, error *err) {
  int64_t part = tuned (m->o->tuning, TUNE_search_cut_sets_part);
  int64_t until = m->ticks + ways_share (m, part);
  guiding g = { m, &m->family.for_drops[i], p, m->guided[i], until, until };
  return try_sets (&g, CUT_SETS_PART, CUT_SETS_IDLE, err);
}
