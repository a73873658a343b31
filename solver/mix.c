#include "solver/mix.h"

#include <stdio.h>

#include "base/units.h"
#include "solver/mix_small.h"
#include "solver/recompute.h"
#include "solver/sections.h"
#include "trace/summary.h"

enum { GAP_PPM = 5000, CUTS = 3, MOST_CANDIDATES = 5 * CUTS, GUIDES = 7 };

/* Who proposed it: what one of them finds alone is looked at as closely where more is allowed. */
typedef enum source { FROM_CUTS, FROM_DROPS, FROM_BOTH, FROM_KEEPING, SOURCES } source;

typedef struct proposal {
  variant v;
  variant_value value;
  source from;
} proposal;

typedef struct mixing {
  const trace *t;
  const solve_options *o;
  arena *arena, *scratch;
  sections_family family;
  proposal at[MOST_CANDIDATES]; /* best first; plain is not among them */
  int32_t count, drops_tried;
  bool keeps;         /* the plan taken is FROM_KEEPING */
  int64_t compute_ns; /* of the trace as it is */
  bool has_plain;     /* a plan without any of it */
  bool slower;        /* that was not looked for, since its bound is above a plan that was found */
  solution plain;
  int64_t plain_bound_ns;    /* INT64_MAX: it has no plan */
  recompute_program program; /* of the trace as it is, where drops are allowed */
  variant guided[GUIDES];
} mixing;

static int64_t enough_for (const mixing *m, int64_t bound_ns) {
  return bound_ns + units_scale (bound_ns, m->o->gap_ppm ? m->o->gap_ppm : GAP_PPM, 1000000);
}

static bool near (const mixing *m, int64_t step_ns, int64_t bound_ns) {
  return step_ns <= enough_for (m, bound_ns);
}

static void propose (mixing *m, const variant *v, const variant_value *value, source from) {
  if (value->step_ns == INT64_MAX || m->count == MOST_CANDIDATES ||
      (!v->n_sections && !v->n_recomputes))
    return;
  int32_t at = m->count++;
  for (; at > 0 && value->step_ns < m->at[at - 1].value.step_ns; at--)
    m->at[at] = m->at[at - 1];
  m->at[at] = (proposal){ *v, *value, from };
}

/* ---- the plan without any of it ---- */

static bool solve_plain (mixing *m, error *err) {
  error why = { 0 };
  m->plain_bound_ns = INT64_MAX;
  if (m->o->recompute == RECOMPUTE_ONLY) {
    /* Nothing is swapped, so it is a candidate only where everything fits. */
    static const variant nothing = { .name = "nothing dropped" };
    variant_value value;
    if (!variant_try (m->t, &nothing, m->o, m->scratch, &value, err))
      return false;
    if (value.step_ns == INT64_MAX)
      return true;
  }
  if (variant_solve (m->t, NULL, m->o, NULL, m->arena, &m->plain, &why)) {
    m->has_plain = true;
    m->plain_bound_ns = m->plain.bound.lower_bound_ns;
    return true;
  }
  if (why.code == ERR_infeasible)
    return true;
  if (err && !err->code)
    *err = why;
  return false;
}

/* ---- proposals ---- */

static bool search_drops (mixing *m, const variant *cut, bool keeps, bool *barred, error *err) {
  recompute_result r;
  const recompute_program *guide = cut || !m->program.fits ? NULL : &m->program;
  if (!recompute_search (m->t, cut, m->o, guide, keeps, 0, m->arena, &r, err))
    return false;
  m->drops_tried += r.tried;
  source from = keeps ? FROM_KEEPING : cut ? FROM_BOTH : FROM_DROPS;
  int64_t least_ns = cut || !m->program.fits ? m->compute_ns : m->program.bound.lower_bound_ns;
  *barred = r.barred && !near (m, r.value.step_ns, least_ns);
  propose (m, &r.best, &r.value, from);
  if (r.bold_value.compute_ns < r.value.step_ns && r.bold_value.step_ns != r.value.step_ns &&
      m->o->recompute != RECOMPUTE_ONLY)
    propose (m, &r.bold, &r.bold_value, from);
  return true;
}

static bool find_proposals (mixing *m, error *err) {
  bool swaps = m->o->recompute != RECOMPUTE_ONLY;
  if (m->o->sections != SECTIONS_OFF && !sections_search (m->t, m->o, m->arena, &m->family, err))
    return false;
  const sections_family *f = &m->family;
  for (int32_t i = 0; i < f->count && i < CUTS - 1; i++)
    if (swaps || f->values[i].step_ns == f->values[i].compute_ns)
      propose (m, &f->at[i], &f->values[i], FROM_CUTS);
  if (m->o->recompute == RECOMPUTE_OFF ||
      (m->count && near (m, m->at[0].value.step_ns, m->compute_ns)))
    return true;
  for (int32_t i = -1; i < f->count && i < CUTS - 1; i++) {
    const variant *cut = i < 0 ? NULL : &f->at[i];
    bool barred;
    if (!search_drops (m, cut, false, &barred, err) ||
        (barred && !search_drops (m, cut, true, &barred, err)))
      return false;
  }
  return true;
}

/* ---- the bound of all that the options allow ---- */

/* Of one cut with its drops: a quick bound where it is no less than what is known already, or where
   the program would be too large or there were too many of them. */
static bool drops_bound (mixing *m, int32_t cut, int64_t least_ns, int32_t *programs, int64_t *ns,
                         error *err) {
  enum { MOST_OPS = 2500, MOST_PROGRAMS = 4 };
  const variant_value *value = &m->family.values[cut];
  const variant *v = &m->family.at[cut];
  int64_t more_ns;
  *ns = value->compute_ns;
  if (*ns >= least_ns || value->n_ops > MOST_OPS)
    return true;
  if (!recompute_bound (m->t, v, m->o, m->scratch, &more_ns, err))
    return false;
  *ns = more_ns != INT64_MAX && more_ns > *ns ? more_ns : *ns;
  if (*ns >= least_ns || (*programs)++ >= MOST_PROGRAMS)
    return true;
  recompute_program p;
  arena_mark mark = arena_here (m->scratch);
  bool ok = recompute_solve_program (m->t, v, m->o, !m->keeps, m->scratch, &p, err);
  if (ok && p.fits && p.bound.lower_bound_ns > *ns)
    *ns = p.bound.lower_bound_ns;
  arena_back (m->scratch, mark);
  return ok;
}

/* The least over the cuts that were compared. */
static bool least_bound (mixing *m, int64_t *ns, error *err) {
  const sections_family *f = &m->family;
  bool drops = m->o->recompute != RECOMPUTE_OFF;
  int32_t programs = 0;
  *ns = !drops ? m->plain_bound_ns : m->program.fits ? m->program.bound.lower_bound_ns : INT64_MAX;
  if (m->o->sections) /* sections_solve knows a bound of every cut */
    *ns = INT64_MAX;
  for (int32_t i = 0; !m->o->sections && i < f->count; i++) {
    int64_t here_ns = f->values[i].bound_ns;
    if (drops && !drops_bound (m, i, *ns, &programs, &here_ns, err))
      return false;
    *ns = here_ns < *ns ? here_ns : *ns;
  }
  if (*ns == INT64_MAX || *ns < m->compute_ns)
    *ns = m->compute_ns;
  return true;
}

/* The tighter program says nothing of a plan that keeps what nothing reads any more. */
static bool widen (mixing *m, const variant *taken, error *err) {
  for (int32_t i = 0; i < m->count; i++)
    m->keeps |= taken == &m->at[i].v && m->at[i].from == FROM_KEEPING;
  return !m->keeps || recompute_solve_program (m->t, NULL, m->o, false, m->arena, &m->program, err);
}

static bool certify (mixing *m, solution *s, error *err) {
  int64_t ns;
  plan *p = s->plan;
  const solve_options *o = m->o;
  certificate *c = &p->certificate;
  static const char *const allowed[] = { "without recompute entries",
                                         "with any cheap op made again", "with any op made again",
                                         "with any op made again" };
  const char *from = o->recompute == RECOMPUTE_OFF || m->keeps ? "" : " from what lives anyway";
  const char *only = o->recompute == RECOMPUTE_ONLY ? " and nothing swapped" : "";
  if (!least_bound (m, &ns, err))
    return false;
  bool flow = m->has_plain && m->o->recompute == RECOMPUTE_OFF && ns == m->plain_bound_ns;
  bool drops = m->o->recompute && m->program.fits && !m->family.count &&
               ns == m->program.bound.lower_bound_ns;
  c->bound_by = ns == m->compute_ns                 ? "compute"
                : flow                              ? m->plain.bound.by
                : drops && m->program.bound.dropped ? "drops-lp"
                                                    : "least-of-cuts";
  c->covers = "every plan, with whatever sections and recompute entries";
  if (ns != m->compute_ns) {
    c->covers = arena_format (m->arena, err, "every plan %s%s%s%s", allowed[o->recompute], from,
                              only, o->sections ? "" : " and without sections");
    if (c->covers && m->o->sections)
      c->covers = arena_format (m->arena, err,
                                "%s, of the trace as it is or in one of the %d cuts that were "
                                "compared",
                                c->covers, m->family.proposed);
    if (!c->covers)
      return false;
  }
  c->lower_bound_ns = s->bound.lower_bound_ns = ns;
  s->bound.by = c->bound_by;
  if (m->program.fits)
    s->bound.stats = m->program.bound.stats;
  if (drops && !p->n_sections)
    c->proof = s->bound.proof = m->program.bound.proof;
  else if (!flow || p->n_sections || p->n_recomputes)
    c->proof = s->bound.proof = NULL;
  c->gap = (double)p->predicted.step_ns / (double)ns - 1;
  c->limit_met = near (m, p->predicted.step_ns, ns) ? NULL : c->limit_met ? c->limit_met : "ticks";
  return true;
}

/* ---- why ---- */

static bool say_why (mixing *m, const variant *taken, solution *s, error *err) {
  char plain[UNITS_TEXT], step[UNITS_TEXT], cut[128] = "";
  snprintf (plain, sizeof plain, m->slower ? "cannot be as fast" : "does not fit");
  if (m->has_plain)
    units_time (plain, m->plain.plan->predicted.step_ns);
  if (m->o->sections)
    snprintf (cut, sizeof cut, "; %d cuts compared, %d too large, %d refused", m->family.proposed,
              m->family.too_large, m->family.refused);
  s->why = arena_format (
      m->arena, err,
      "%s: %s, %d sections, %d recompute entries; as it is, the step %s%s; %d sets of drops",
      taken ? taken->name : "as it is", units_time (step, s->plan->predicted.step_ns),
      s->plan->n_sections, s->plan->n_recomputes, plain, cut, m->drops_tried);
  if (s->why)
    log_say (m->o->log, LOG_PROGRESS, "%s", s->why);
  return s->why;
}

/* Only what is proved is called impossible: that the program has no solution, or that some op needs
   more, in whatever parts. */
static bool nothing_fits (mixing *m, error *err) {
  summary s;
  char budget[UNITS_TEXT], host[UNITS_TEXT], floor[UNITS_TEXT], cut[UNITS_TEXT];
  const solve_options *o = m->o;
  int64_t least_bytes;
  if (!summary_of (m->t, m->scratch, &s, err) ||
      !sections_floor (m->t, o, m->scratch, &least_bytes, err))
    return false;
  units_bytes (budget, o->budget_bytes);
  units_bytes (host, o->host_bytes);
  units_bytes (floor, s.floor_bytes);
  units_bytes (cut, s.floor_sections_bytes);
  bool open = o->sections ? o->budget_bytes >= least_bytes : m->program.fits;
  if (o->recompute == RECOMPUTE_ONLY && open)
    return error_set (err, ERR_limit,
                      "no set of drops was found that fits in %s without swapping%s, and none is "
                      "ruled out; allow swapping, or give more",
                      budget, o->sections ? ", in whatever sections" : "");
  if (open)
    return error_set (
        err, ERR_limit,
        "no plan was found in %s with %s of the host's memory, and none is ruled out; "
        "op %d alone needs %s, and with the most sections op %d %s; give more of "
        "either, or a higher limit",
        budget, host, s.floor_op, floor, s.floor_sections_op, cut);
  if (o->recompute == RECOMPUTE_ONLY && o->budget_bytes >= s.floor_bytes)
    return error_set (err, ERR_infeasible,
                      "nothing fits in %s without swapping, whatever is made again%s; allow it, or "
                      "give more",
                      budget, o->sections ? "" : " (no sections)");
  return error_set (
      err, ERR_infeasible,
      "nothing fits in %s; op %d alone needs %s, and with the most sections op %d %s; "
      "give more%s",
      budget, s.floor_op, floor, s.floor_sections_op, cut, o->sections ? "" : " or allow sections");
}

/* ---- the whole ---- */

/* The plan without any of it comes first where only cuts are allowed, since its bound is needed;
   where drops are, it is solved only if they have not beaten its bound already. */
static bool plain_can_win (mixing *m, const solution *best, bool *can, error *err) {
  static const variant nothing = { .name = "as it is" };
  variant_value value;
  *can = !best->plan;
  if (*can || m->o->recompute == RECOMPUTE_ONLY)
    return true;
  if (!variant_look (m->t, &nothing, m->o, m->scratch, &value, err))
    return false;
  if (value.bound_ns < best->plan->predicted.step_ns &&
      !variant_bound (m->t, &nothing, m->o, m->scratch, &value, err))
    return false;
  *can = value.bound_ns < best->plan->predicted.step_ns;
  return true;
}

/* Whether the step as it is comes near compute anyway, so that nothing else is worth a look. */
static bool is_easy (mixing *m, bool *easy, error *err) {
  static const variant nothing = { .name = "as it is" };
  variant_value value;
  if (!variant_try (m->t, &nothing, m->o, m->scratch, &value, err))
    return false;
  *easy = value.step_ns != INT64_MAX && near (m, value.step_ns, m->compute_ns);
  return true;
}

static void take (solution *out, const solution *s, const variant **taken, const variant *v) {
  if (s->plan && (!out->plan || s->plan->predicted.step_ns < out->plan->predicted.step_ns)) {
    *out = *s;
    *taken = v;
  }
}

/* Of each source the best, with most of the search, and the next with less of it. */
static bool solve_finalists (mixing *m, solution *out, const variant **taken, error *err) {
  const solve_options *o = m->o;
  int32_t seen[SOURCES] = { 0 };
  for (int32_t i = 0; i < m->count; i++) {
    solution s;
    error why = { 0 };
    const proposal *p = &m->at[i];
    int32_t rank = seen[p->from]++;
    int64_t least_ns = p->from == FROM_DROPS && m->program.fits && !m->o->sections
                           ? m->program.bound.lower_bound_ns
                           : p->value.bound_ns;
    if (rank > 1 || (out->plan && p->value.compute_ns >= out->plan->predicted.step_ns) ||
        (out->plan && rank && near (m, out->plan->predicted.step_ns, least_ns)))
      continue;
    solve_options part = *o;
    part.limit_ticks = (o->limit_ticks ? o->limit_ticks : SOLVE_LIMIT_TICKS) / (rank ? 8 : 2);
    part.gap_ppm = rank ? 1 : o->gap_ppm; /* near its own bound is not enough yet */
    if (variant_solve (m->t, &p->v, &part, &p->value, m->arena, &s, &why)) {
      take (out, &s, taken, &p->v);
    } else if (why.code != ERR_infeasible) {
      if (err && !err->code)
        *err = why;
      return false;
    }
  }
  return true;
}

/* Sets that programs for a little less memory drop, each solved in full: mostly that is all there
   is to do, and soon done. */
static bool try_guides (mixing *m, solution *out, const variant **taken, error *err) {
  static const struct {
    int64_t less_ppm, slower; /* than the budget; than the link, whose latency tells there too */
  } asked[GUIDES] = { { 5000, 1 },  { 2500, 1 }, { 10000, 1 }, { 0, 1 },
                      { 20000, 1 }, { 5000, 2 }, { 5000, 4 } };
  enum { ENOUGH_PPM = 2500, PART = 16, LARGE_ROWS = 20000 };
  const solve_options *o = m->o;
  int guides = m->program.bound.stats.rows > LARGE_ROWS ? 1 : GUIDES; /* of many seconds each */
  int64_t bound_ns = o->sections ? m->compute_ns : m->program.bound.lower_bound_ns;
  if (o->recompute == RECOMPUTE_ONLY || !m->program.fits)
    return true;
  int64_t enough_ns =
      bound_ns + units_scale (bound_ns, o->gap_ppm ? o->gap_ppm : ENOUGH_PPM, 1000000);
  for (int i = 0; i < guides; i++) {
    recompute_program guide;
    variant_value value;
    solution s;
    error why = { 0 };
    if ((out->plan && out->plan->predicted.step_ns <= enough_ns) ||
        (o->stop && o->stop (o->stop_context)))
      break;
    arena_mark mark = arena_here (m->scratch);
    int64_t budget = o->budget_bytes - units_scale (o->budget_bytes, asked[i].less_ppm, 1000000);
    device slow = *o->device;
    solve_options behind = *o;
    slow.share_ppm = units_div_up (slow.share_ppm, asked[i].slower);
    behind.device = &slow;
    bool ok =
        recompute_solve_guide (m->t, &behind, budget, m->scratch, &guide, err) &&
        (!guide.fits || recompute_guided (m->t, o, &guide, m->arena, &m->guided[i], &value, err));
    arena_back (m->scratch, mark);
    if (!ok)
      return false;
    m->drops_tried += guide.fits;
    if (!guide.fits || !value.legal || value.bound_ns == INT64_MAX ||
        (out->plan && value.bound_ns >= out->plan->predicted.step_ns))
      continue;
    solve_options part = *o;
    part.limit_ticks = (o->limit_ticks ? o->limit_ticks : SOLVE_LIMIT_TICKS) / PART;
    part.gap_ppm = 1;
    if (variant_solve (m->t, &m->guided[i], &part, NULL, m->arena, &s, &why))
      take (out, &s, taken, &m->guided[i]);
    else if (why.code != ERR_infeasible)
      return error_set (err, why.code, "%s", why.text);
  }
  return true;
}

bool mix_solve (const trace *t, const solve_options *o, arena *a, solution *out, error *err) {
  mixing m = { .t = t, .o = o, .arena = a, .compute_ns = trace_total_ns (t) };
  const variant *taken = NULL;
  bool first = o->recompute == RECOMPUTE_OFF, easy = false, last = false;
  *out = (solution){ 0 };
  m.plain_bound_ns = INT64_MAX;
  m.scratch = arena_new (0);
  bool ok = m.scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && (first || (is_easy (&m, &easy, err) &&
                        recompute_solve_program (t, NULL, o, true, a, &m.program, err)));
  ok = ok && (!(first || easy) || solve_plain (&m, err));
  if (!ok)
    goto out;
  take (out, &m.plain, &taken, NULL);
  ok = first || easy || try_guides (&m, out, &taken, err);
  if (!ok)
    goto out;
  int64_t least_ns =
      !first && m.program.fits && !o->sections ? m.program.bound.lower_bound_ns : m.compute_ns;
  bool enough = out->plan && near (&m, out->plan->predicted.step_ns, least_ns);
  ok = (enough || find_proposals (&m, err)) && solve_finalists (&m, out, &taken, err);
  ok = ok && (first || m.has_plain || plain_can_win (&m, out, &last, err));
  m.slower = !last && !m.has_plain;
  ok = ok && (!last || solve_plain (&m, err));
  if (ok && last)
    take (out, &m.plain, &taken, NULL);
  ok = ok && mix_small (t, o, enough_for (&m, least_ns), a, out, &taken, &m.keeps, err) &&
       (out->plan || nothing_fits (&m, err)) && widen (&m, taken, err) && certify (&m, out, err) &&
       say_why (&m, taken, out, err);
out:
  arena_free (m.scratch);
  return ok;
}
