/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cuts, drops, and both: each proposes, by quick plans, and of each kind the best is solved in full
   with most of the ticks, the next with fewer. */
#include "base/order.h"
#include "base/units.h"
#include "solver/search/ways_inner.h"

static void propose (ways *m, const variant *v, const variant_value *value, ways_source from) {
  if (value->step_ns == INT64_MAX || m->count == WAYS_MOST || (!v->n_sections && !v->n_recomputes))
    return;
  int32_t at = m->count++;
  for (; at > m->open && value->step_ns < m->at[at - 1].value.step_ns; at--)
    m->at[at] = m->at[at - 1];
  m->at[at] = (ways_proposal){ *v, *value, from };
}

static bool solve_proposals (ways *m, error *err) {
  int32_t seen[WAYS_SOURCES] = { 0 };
  for (; m->open < m->count; m->open++) {
    const ways_proposal *p = &m->at[m->open];
    int32_t rank = seen[p->from]++;
    bool late = rank && m->ticks >= m->limit_ticks && p->value.step_ns >= ways_best_ns (m);
    if (rank > 1 || late || ways_is_over (m) || p->value.compute_ns >= ways_best_ns (m))
      continue;
    effort how = m->effort;
    int64_t part = rank ? tuned (m->o->tuning, TUNE_search_second_part) : m->part;
    how.limit_ticks = ways_share (m, part) * m->events;
    how.gap_ppm = rank ? 1 : how.gap_ppm; /* near its own bound is not enough yet */
    how.rough = true;
    if (!ways_try (m, &p->v, &p->value, how, err))
      return false;
  }
  return true;
}

static int32_t cuts_to_solve (const ways *m) {
  int64_t most = tuned (m->o->tuning, TUNE_search_cuts);
  return m->family.count < most ? m->family.count : (int32_t)most;
}

bool ways_cuts (ways *m, error *err) {
  const sections_family *f = &m->family;
  bool swaps = m->o->recompute != RECOMPUTE_ONLY;
  int64_t least = tuned (m->o->tuning, TUNE_search_cuts_least) * (int64_t)m->t->n_ops;
  int64_t ticks = ways_share (m, tuned (m->o->tuning, TUNE_search_cuts_part));
  ticks = max_of (ticks, max_of (least, tuned (m->o->tuning, TUNE_search_cuts_floor)));
  if (!sections_search (m->t, m->o, ticks, m->arena, &m->family, err))
    return false;
  m->ticks += f->ticks;
  for (int32_t i = 0; i < cuts_to_solve (m); i++)
    if (swaps || f->values[i].step_ns == f->values[i].compute_ns)
      propose (m, &f->at[i], &f->values[i], FROM_CUTS);
  return solve_proposals (m, err);
}

/* *barred: something could be made again only from what is dead, and the best is not near enough
   without it. *quick_ns: what a quick plan of the best set takes. */
static bool search_drops (ways *m, const variant *cut, const recompute_program *program,
                          ways_source from, bool *barred, int64_t *quick_ns, error *err) {
  recompute_result r;
  /* room for all prefixes: a price is a quarter of the ops */
  int64_t least = tuned (m->o->tuning, TUNE_search_prefixes) * (int64_t)m->t->n_ops;
  int64_t ticks = ways_share (m, m->part);
  recompute_request q = { .trace = m->t,
                          .cut = cut,
                          .options = m->o,
                          .guide = program && program->fits ? program : NULL,
                          .keeps = ways_keeps (from),
                          .keeps_first = from == FROM_KEPT,
                          .limit_ticks = ticks > least ? ticks : least,
                          .enough_ns = m->effort.enough_ns };
  if (!recompute_search (&q, m->arena, &r, err))
    return false;
  m->ticks += r.ticks;
  m->drops_tried += r.tried;
  m->remakes_dead |= r.missed.revived;
  *barred = r.missed.barred && !ways_near (m, r.value.step_ns);
  *quick_ns = r.value.step_ns;
  propose (m, &r.best, &r.value, from);
  if (r.bold_value.compute_ns < r.value.step_ns && r.bold_value.step_ns != r.value.step_ns &&
      m->o->recompute != RECOMPUTE_ONLY)
    propose (m, &r.bold, &r.bold_value, from);
  return true;
}

/* Sets that no program proposes as a whole: each of its drops takes what it is made from as there.
   The best by its bound is solved in full, whatever its quick plan would be. It takes a few
   programs more, where these ticks pay for them. */
static bool rank_segments (ways *m, const variant *cut, const recompute_program *guide,
                           int64_t ticks, variant *set, error *err) {
  recompute_result r;
  effort how = m->effort;
  recompute_request q = { .trace = m->t,
                          .cut = cut,
                          .options = m->o,
                          .guide = guide,
                          .limit_ticks = ticks,
                          .enough_ns = m->effort.enough_ns };
  if (ticks <= 0 || ticks < tuned (m->o->tuning, TUNE_ranked_least) * guide->bound.stats.ticks)
    return true;
  if (!recompute_ranked (&q, ways_best_ns (m), m->arena, &r, err))
    return false;
  m->ticks += r.ticks;
  m->drops_tried += r.tried;
  *set = r.best;
  how.limit_ticks = ways_share (m, tuned (m->o->tuning, TUNE_ranked_try_part)) * m->events;
  how.gap_ppm = 1;
  how.rough = true;
  return !set->n_recomputes || ways_try (m, set, NULL, how, err);
}

bool ways_ranked (ways *m, error *err) {
  int64_t ticks = (m->limit_ticks - m->ticks) / tuned (m->o->tuning, TUNE_ranked_part);
  return rank_segments (m, NULL, &m->program, ticks, &m->ranked[SECTIONS_FOR_DROPS], err);
}

enum { CUT_PART = 500 }; /* a cut by drops whose program gains less than 1/N brings nothing */

/* With whatever drops a cut may be no faster than the best, or than the step as it is: *hope is
   false then. Its program takes about as long as that of the step. */
static bool ask_program (ways *m, int32_t i, recompute_program *p, bool *hope, error *err) {
  const variant *cut = &m->family.for_drops[i];
  const variant_value *value = &m->family.drops_values[i];
  *p = (recompute_program){ 0 };
  *hope = value->step_ns < ways_best_ns (m);
  if (!*hope || m->o->recompute == RECOMPUTE_ONLY ||
      value->n_ops > tuned (m->o->tuning, TUNE_attempt_program_ops))
    return true;
  if (!recompute_solve_program (m->t, cut, m->o, NULL, true, m->arena, p, err))
    return false;
  int64_t whole_ns = m->program.bound.lower_bound_ns;
  m->ticks += p->fits ? p->bound.stats.ticks : 0;
  *hope = p->fits && p->bound.lower_bound_ns < ways_best_ns (m) &&
          (i >= m->family.n_by_drops || !m->program.fits ||
           p->bound.lower_bound_ns < whole_ns - whole_ns / CUT_PART);
  return true;
}

/* Nothing that a full search does to a quick plan brings it down from there. */
static bool is_far (const ways *m, int64_t quick_ns) {
  int64_t best_ns = ways_best_ns (m), far_ppm = tuned (m->o->tuning, TUNE_search_far_ppm);
  return best_ns < INT64_MAX && quick_ns < INT64_MAX &&
         quick_ns > units_scale (best_ns, far_ppm, 1000000);
}

bool ways_drops (ways *m, error *err) {
  bool barred;
  int64_t quick_ns;
  const recompute_program *p = &m->program;
  return search_drops (m, NULL, p, FROM_DROPS, &barred, &quick_ns, err) &&
         (!barred || search_drops (m, NULL, p, FROM_KEEPING, &barred, &quick_ns, err)) &&
         solve_proposals (m, err);
}

/* The sets of the i-th cut: from its program, then segments, then all others. */
static bool drop_at_cut (ways *m, int32_t i, int64_t *quick_ns, error *err) {
  const variant *cut = &m->family.for_drops[i];
  recompute_program p;
  bool barred, hope;
  if (!ask_program (m, i, &p, &hope, err))
    return false;
  int64_t ticks = ways_share (m, tuned (m->o->tuning, TUNE_ranked_part));
  if (hope && p.fits &&
      (!ways_cut_sets (m, i, &p, err) || !rank_segments (m, cut, &p, ticks, &m->ranked[i], err)))
    return false;
  if (!hope || ways_is_over (m))
    return true;
  return search_drops (m, cut, &p, FROM_BOTH, &barred, quick_ns, err) &&
         (!barred || is_far (m, *quick_ns) ||
          search_drops (m, cut, &p, FROM_KEEPING, &barred, quick_ns, err));
}

bool ways_both (ways *m, error *err) {
  int64_t quick_ns = 0;
  for (int32_t i = 0; i < m->family.n_for_drops && !ways_is_over (m) && !is_far (m, quick_ns); i++)
    if (!drop_at_cut (m, i, &quick_ns, err))
      return false;
  return solve_proposals (m, err);
}

/* A small tensor that is kept beyond its last use may stand for a large one, and one op is less
   than a chain of them: of what a concatenation, a wider type or an enlarged picture is made. */
static bool make_of_kept (ways *m, error *err) {
  bool barred;
  int64_t quick_ns;
  variant cut = { .name = "kept" };
  if (m->taken) {
    cut.sections = m->taken->sections;
    cut.n_sections = m->taken->n_sections;
  }
  if (!search_drops (m, cut.n_sections ? &cut : NULL, cut.n_sections ? NULL : &m->wide, FROM_KEPT,
                     &barred, &quick_ns, err))
    return false;
  if (is_far (m, quick_ns))
    m->open = m->count;
  return solve_proposals (m, err);
}

/* Under the bound of such plans; where a plan that keeps nothing stays the best, its own holds. */
bool ways_kept (ways *m, error *err) {
  int64_t least_ns = m->least_ns, worth_ppm = tuned (m->o->tuning, TUNE_kept_worth_ppm);
  if (!ways_widen (m, err))
    return false;
  m->ticks += m->wide.bound.stats.ticks;
  if (!m->o->sections && m->wide.fits)
    m->least_ns = max_of (m->compute_ns, m->wide.bound.lower_bound_ns);
  int64_t worth_ns = m->least_ns + units_scale (m->least_ns, worth_ppm, 1000000);
  bool ok = ways_is_over (m) || ways_best_ns (m) <= worth_ns || make_of_kept (m, err);
  m->least_ns = least_ns;
  return ok;
}
