/* Sets of drops that programs propose.  A program for exactly this budget leaves copies no time to
   spare, so programs for a little less memory are asked as well, and for slower links, since copies
   of small tensors pay a latency that no program charges.  Mostly one of these sets is all there is
   to find, and soon found. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/search/mix_inner.h"

typedef struct question {
  int64_t less_ppm, slower; /* than the budget; than the link */
} question;

static const question budgets[] = {
  { 5000, 1 }, { 10000, 1 }, { 2500, 1 }, { 0, 1 }, { 20000, 1 }
};
static const question known = { 0, 1 }; /* the answer is there */
static const question links[] = { { 5000, 2 }, { 5000, 4 } };
enum { BUDGETS = sizeof budgets / sizeof *budgets, LINKS = sizeof links / sizeof *links };
static_assert (BUDGETS + LINKS == MIX_GUIDES, "room for each one's set");

static bool solve_guide (mixing *m, const question *q, arena *a, recompute_program *out,
                         error *err) {
  const solve_options *o = m->o;
  int64_t less_bytes = units_scale (o->budget_bytes, q->less_ppm, 1000000);
  device slow = *o->device;
  solve_options behind = *o;
  if (!q->less_ppm && q->slower == 1) { /* that is solved already */
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
static bool was_tried (const mixing *m, int which) {
  bool was = false;
  for (int i = 0; i < which && !was; i++)
    was = variant_same_drops (&m->guided[i], &m->guided[which]);
  return was;
}

/* Its set becomes the guided one of that place; there is hope where it is a new one that may win.
 */
static bool ask (mixing *m, const question *q, int place, bool *hope, error *err) {
  variant *v = &m->guided[place];
  recompute_program guide;
  variant_value value;
  arena_mark mark = arena_here (m->scratch);
  bool ok = solve_guide (m, q, m->scratch, &guide, err) &&
            (!guide.fits || recompute_guided (m->t, m->o, &guide, m->arena, v, &value, err));
  *hope =
      ok && guide.fits && value.legal && value.bound_ns < mix_best_ns (m) && !was_tried (m, place);
  m->drops_tried += ok && guide.fits;
  arena_back (m->scratch, mark);
  return ok;
}

/* One more program: while that leaves half of the ticks, the first a quarter. */
static bool is_affordable (const mixing *m, bool first) {
  int64_t most = first ? m->limit_ticks - m->limit_ticks / 4 : m->limit_ticks / 2;
  return m->ticks + m->program.bound.stats.ticks < most;
}

/* The last set's plan waits for copies that its program thought to be in time. */
static bool waits_for_copies (const mixing *m) {
  enum { WAITS_PPM = 10000 };
  int64_t bound_ns = m->last.bound.lower_bound_ns;
  return m->last.plan &&
         m->last.plan->predicted.step_ns > bound_ns + units_scale (bound_ns, WAITS_PPM, 1000000);
}

static solve_options in_full (const mixing *m) {
  enum { ENOUGH_PPM = 2500 };
  int64_t gap_ppm = m->o->gap_ppm ? m->o->gap_ppm : ENOUGH_PPM;
  solve_options how = *m->o;
  how.enough_ns = m->least_ns + units_scale (m->least_ns, gap_ppm, 1000000);
  how.gap_ppm = 1;
  how.rough = true;
  return how;
}

bool mix_guides (mixing *m, error *err) {
  enum { PART = 32 };
  const solve_options *o = m->o;
  solve_options how = in_full (m);
  int budget = 0, link = 0;
  if (o->recompute == RECOMPUTE_ONLY || !m->program.fits)
    return true;
  how.limit_ticks = (m->limit_ticks / PART + 1) * m->events;
  m->last.plan = NULL;
  for (int i = 0; i < MIX_GUIDES; i++) {
    bool hope, slow = budget == BUDGETS || (i % 2 && link < LINKS && waits_for_copies (m));
    bool any = is_affordable (m, i == 0);
    if ((i && !any) || mix_best_ns (m) <= how.enough_ns || (o->stop && o->stop (o->stop_context)))
      break;
    const question *q = !any ? &known : slow ? &links[link++] : &budgets[budget++];
    if (!ask (m, q, i, &hope, err) || (hope && !mix_try (m, &m->guided[i], NULL, how, err)))
      return false;
    if (m->taken == &m->guided[i])
      m->guided_bound = m->best.bound;
  }
  return true;
}

bool mix_guided_again (mixing *m, error *err) {
  solve_options how = in_full (m);
  bool guided = false;
  for (int i = 0; i < MIX_GUIDES; i++)
    guided |= m->taken == &m->guided[i];
  if (!guided || mix_is_over (m) || m->ticks >= m->limit_ticks)
    return true;
  how.guide = &m->guided_bound;
  how.limit_ticks = mix_share (m, 2) * m->events;
  return mix_try (m, m->taken, NULL, how, err);
}
