/* Cuts, drops, and both: each proposes, by quick plans, and of each kind the best is solved in full
   with most of the ticks, the next with fewer. */
#include "solver/search/mix_inner.h"

static void propose (mixing *m, const variant *v, const variant_value *value, mix_source from) {
  if (value->step_ns == INT64_MAX || m->count == MIX_MOST || (!v->n_sections && !v->n_recomputes))
    return;
  int32_t at = m->count++;
  for (; at > m->open && value->step_ns < m->at[at - 1].value.step_ns; at--)
    m->at[at] = m->at[at - 1];
  m->at[at] = (mix_proposal){ *v, *value, from };
}

static bool solve_proposals (mixing *m, error *err) {
  int32_t seen[MIX_SOURCES] = { 0 };
  for (; m->open < m->count; m->open++) {
    const mix_proposal *p = &m->at[m->open];
    int32_t rank = seen[p->from]++;
    bool late = rank && m->ticks >= m->limit_ticks && p->value.step_ns >= mix_best_ns (m);
    if (rank > 1 || late || mix_is_over (m) || p->value.compute_ns >= mix_best_ns (m))
      continue;
    solve_options how = *m->o;
    how.limit_ticks = mix_share (m, rank ? 8 : 2) * m->events;
    how.gap_ppm = rank ? 1 : how.gap_ppm; /* near its own bound is not enough yet */
    how.rough = true;
    if (!mix_try (m, &p->v, &p->value, how, err))
      return false;
  }
  return true;
}

bool mix_cuts (mixing *m, error *err) {
  const sections_family *f = &m->family;
  bool swaps = m->o->recompute != RECOMPUTE_ONLY;
  if (m->o->sections == SECTIONS_OFF || mix_is_over (m))
    return true;
  if (!sections_search (m->t, m->o, m->arena, &m->family, err))
    return false;
  m->ticks += f->ticks;
  for (int32_t i = 0; i < f->count && i < MIX_CUTS; i++)
    if (swaps || f->values[i].step_ns == f->values[i].compute_ns)
      propose (m, &f->at[i], &f->values[i], FROM_CUTS);
  return solve_proposals (m, err);
}

static bool search_drops (mixing *m, const variant *cut, bool keeps, bool *barred, error *err) {
  enum { PREFIXES = 64 }; /* room for all prefixes: a price is a quarter of the ops */
  recompute_result r;
  int64_t ticks = mix_share (m, 2), least = PREFIXES * (int64_t)m->t->n_ops;
  const recompute_program *guide = cut || !m->program.fits ? NULL : &m->program;
  ticks = ticks > least ? ticks : least;
  if (!recompute_search (m->t, cut, m->o, guide, keeps, ticks, m->arena, &r, err))
    return false;
  m->ticks += r.ticks;
  m->drops_tried += r.tried;
  mix_source from = keeps ? FROM_KEEPING : cut ? FROM_BOTH : FROM_DROPS;
  *barred = r.barred && !mix_near (m, r.value.step_ns);
  propose (m, &r.best, &r.value, from);
  if (r.bold_value.compute_ns < r.value.step_ns && r.bold_value.step_ns != r.value.step_ns &&
      m->o->recompute != RECOMPUTE_ONLY)
    propose (m, &r.bold, &r.bold_value, from);
  return true;
}

bool mix_drops (mixing *m, error *err) {
  bool barred;
  if (!mix_guides (m, err))
    return false;
  if (mix_is_over (m))
    return true;
  return search_drops (m, NULL, false, &barred, err) &&
         (!barred || search_drops (m, NULL, true, &barred, err)) && solve_proposals (m, err) &&
         mix_guided_again (m, err);
}

bool mix_both (mixing *m, error *err) {
  const sections_family *f = &m->family;
  for (int32_t i = 0; i < f->count && i < MIX_CUTS && !mix_is_over (m); i++) {
    bool barred;
    if (f->values[i].compute_ns >= mix_best_ns (m))
      continue;
    if (!search_drops (m, &f->at[i], false, &barred, err) ||
        (barred && !search_drops (m, &f->at[i], true, &barred, err)))
      return false;
  }
  return solve_proposals (m, err);
}
