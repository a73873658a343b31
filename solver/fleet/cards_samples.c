/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slowed down as a whole, a job that computes at an n-th of the speed sees a link that is n times
   as fast beside its ops. So its curve at a share f of the link of a card with n jobs is its curve
   alone at n x f of the link, times n: the curves of one job serve for any number of neighbours,
   and a sample's slowdown is a promise that only the work of jobs that stall can better. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/fleet/cards_inner.h"
#include "solver/fleet/share.h"

enum { POINTS = 8, MORE_POINTS = 2, FEW_POINTS = 3, LEVEL_PPM = 500000 };
enum { MOST_KNOWN = 2 * CARDS_MOST_JOBS * CARDS_MOST };

struct cards_known {
  cards_samples at[MOST_KNOWN];
  int32_t count;
};

cards_known *cards_known_new (arena *a, error *err) {
  return NEW (a, 1, cards_known, err);
}

/* The floor of whole ops goes among the others: plans are seldom as good below it. */
static void put_whole_floor (int64_t *budgets, int32_t *n, int64_t floor) {
  int32_t at = *n;
  while (at > 0 && budgets[at - 1] > floor)
    at--;
  if (at == 0 || at == *n || budgets[at - 1] == floor)
    return;
  memmove (budgets + at + 1, budgets + at, (size_t)(*n - at) * sizeof *budgets);
  budgets[at] = floor;
  ++*n;
}

/* The floor, then even steps of the whole room, so that budgets of several jobs add up to it, and
   the peak. A floor in parts is farther from it: then there are more steps. */
static bool sample_budgets (placing *p, int32_t job, int32_t card, int64_t **budgets, int32_t *n,
                            error *err) {
  int32_t points = cards_spent (p) ? FEW_POINTS : p->o->points > 2 ? p->o->points : POINTS;
  int64_t granule = p->o->cards[card].granule_bytes, room = cards_room (p->o, card, 1);
  int64_t floor = units_div_up (p->floor_bytes[job][card], granule) * granule;
  int64_t whole = units_div_up (p->whole_bytes[job][card], granule) * granule;
  points += p->o->points == 0 && !cards_spent (p) && whole > floor ? MORE_POINTS : 0;
  int64_t peak = units_div_up (p->peak_bytes[job][card], granule) * granule;
  if (peak > room)
    peak = room / granule * granule;
  *budgets = NEW (p->a, points + 3, int64_t, err);
  *n = 0;
  if (!*budgets)
    return false;
  (*budgets)[(*n)++] = floor;
  int64_t steps = points - 1, from = units_scale (floor, 2 * steps, room) + 1;
  int64_t to = units_scale (peak, 2 * steps, room), wide = to - from + 1;
  for (int64_t i = 0; i < wide && *n < points; i++) {
    int64_t k = wide > steps - 1 ? from + units_scale (i, wide, steps - 1) : from + i;
    int64_t at = units_scale (room, k, 2 * steps) / granule * granule;
    if (k <= to && at > (*budgets)[*n - 1] && at < peak)
      (*budgets)[(*n)++] = at;
  }
  if (peak > (*budgets)[*n - 1])
    (*budgets)[(*n)++] = peak;
  put_whole_floor (*budgets, n, whole);
  return true;
}

static cards_samples *samples_for (placing *p, int32_t job, int32_t card, error *err) {
  cards_known *k = p->o->known;
  for (int32_t i = 0; k && i < k->count; i++)
    if (k->at[i].trace == p->jobs[job].trace && strcmp (k->at[i].card, p->o->cards[card].name) == 0)
      return &k->at[i];
  cards_samples *s =
      k && k->count < MOST_KNOWN ? &k->at[k->count++] : NEW (p->a, 1, cards_samples, err);
  if (s)
    *s = (cards_samples){ .trace = p->jobs[job].trace, .card = p->o->cards[card].name };
  return s;
}

static bool sample_to (placing *p, int32_t job, int32_t card, int32_t levels, error *err) {
  if (!p->of[job][card] && !(p->of[job][card] = samples_for (p, job, card, err)))
    return false;
  cards_samples *s = p->of[job][card];
  int64_t *budgets;
  int32_t n;
  if (s->n_levels >= levels)
    return true;
  if (!sample_budgets (p, job, card, &budgets, &n, err))
    return false;
  for (; s->n_levels < levels; s->n_levels++) {
    device d = share_link (&p->o->cards[card], (s->n_levels + 1) * LEVEL_PPM);
    curve_options o = cards_sampling (p->o, &p->jobs[job]);
    o.device = &d;
    o.host_bytes = cards_host_room (p->o, card);
    curve *c = &s->at[s->n_levels];
    if (!cards_curve (p, job, &o, budgets, n, c, err))
      return false;
    for (int32_t i = 0; i < c->count; i++)
      p->out->sampled += c->points[i].searched;
  }
  return true;
}

/* With n jobs on a card a whole link is 2 n levels, and nobody has more than 2 n - (n - 1) of them.
 */
static int32_t levels_with (int32_t n_jobs) {
  int32_t most = n_jobs == 1 ? 2 : n_jobs + 1;
  return most < CARDS_LEVELS ? most : CARDS_LEVELS;
}

static int64_t share_of (int32_t level, int32_t n_jobs) {
  return units_scale (level + 1, CARDS_ONE, 2 * (int64_t)n_jobs);
}

/* Choices of a job on this card beside n_jobs - 1 others. */
bool cards_offer (void *context, int32_t job, int32_t card, int32_t n_jobs, pack_job *out,
                  error *err) {
  assert (context && n_jobs > 0 && out);
  placing *p = context;
  int32_t levels = levels_with (n_jobs), count = 0;
  if (!sample_to (p, job, card, levels, err))
    return false;
  const cards_samples *s = p->of[job][card];
  pack_choice *choices = NEW (p->a, (int64_t)levels * s->at[0].count, pack_choice, err);
  if (!choices)
    return false;
  int64_t baseline = p->out->places[job].baseline_ns;
  for (int32_t l = 0; l < levels; l++)
    for (int32_t i = 0; i < s->at[l].count; i++) {
      const plan *found = s->at[l].points[i].plan;
      if (found)
        choices[count++] =
            (pack_choice){ .budget_bytes = cards_taken (p, job, found),
                           .host_bytes = found->predicted.host_peak_bytes,
                           .share_ppm = share_of (l, n_jobs),
                           .slowdown_ppm = units_scale (found->predicted.step_ns,
                                                        n_jobs * CARDS_ONE, baseline) };
    }
  *out = (pack_job){ choices, count };
  return true;
}

/* Which sample that was. */
const plan *cards_offered (const placing *p, int32_t job, int32_t card, int32_t n_jobs,
                           int32_t choice) {
  const cards_samples *s = p->of[job][card];
  for (int32_t l = 0; l < levels_with (n_jobs); l++)
    for (int32_t i = 0; i < s->at[l].count; i++)
      if (s->at[l].points[i].plan && choice-- == 0)
        return s->at[l].points[i].plan;
  return NULL;
}
