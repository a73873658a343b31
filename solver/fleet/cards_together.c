/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shares of the link are not enforced by anyone, so a choice by them is only nearly right: from
   there on the machine model, which runs all of a card's plans, is the judge. */
#include <assert.h>

#include "base/units.h"
#include "solver/fleet/cards_inner.h"
#include "solver/fleet/share.h"

enum { MOST_JUDGED = 120 };

bool cards_judge (const placing *p, sharing *s, error *err) {
  assert (s->n >= 0 && s->n <= CARDS_MOST_JOBS);
  share_job together[CARDS_MOST_JOBS];
  plan bound[CARDS_MOST_JOBS]; /* samples were planned for links of other speeds */
  arena *scratch = arena_made (err);
  if (!scratch)
    return false;
  for (int32_t k = 0; k < s->n; k++) {
    bound[k] = *s->plans[k];
    bound[k].device = p->o->cards[s->at[k]->card];
    together[k] = (share_job){ p->jobs[s->jobs[k]].trace, &bound[k] };
  }
  bool ok = share_simulate (together, s->n, false, scratch, s->step_ns, err);
  arena_free (scratch);
  s->worst_ppm = s->total_ppm = 0;
  for (int32_t k = 0; ok && k < s->n; k++) {
    int64_t slow = units_scale (s->step_ns[k], CARDS_ONE, s->at[k]->baseline_ns);
    s->worst_ppm = slow > s->worst_ppm ? slow : s->worst_ppm;
    s->total_ppm += slow;
  }
  return ok;
}

bool cards_better (const placing *p, const sharing *x, const sharing *y) {
  int64_t a[] = { x->worst_ppm, x->total_ppm }, b[] = { y->worst_ppm, y->total_ppm };
  int first = p->o->objective == PACK_WORST ? 0 : 1;
  return a[first] != b[first] ? a[first] < b[first] : a[1 - first] < b[1 - first];
}

static bool within (const placing *p, const sharing *s, int32_t card) {
  int64_t bytes = 0, host = 0;
  for (int32_t k = 0; k < s->n; k++) {
    bytes += cards_taken (p, s->jobs[k], s->plans[k]);
    host += s->plans[k]->predicted.host_peak_bytes;
  }
  return bytes <= cards_room (p->o, card, s->n) && host <= cards_host_room (p->o, card);
}

/* One job at a time takes the sample with which all of them come out best. */
static bool exchange (placing *p, int32_t card, sharing *s, error *err) {
  int32_t judged = 0, kind = p->kind_of[card];
  if (!cards_judge (p, s, err))
    return false;
  for (bool again = s->n > 1; again && judged < MOST_JUDGED;) {
    again = false;
    for (int32_t k = 0; k < s->n; k++) {
      sharing best = *s;
      const plan *other, *last = NULL;
      for (int32_t i = 0; (other = cards_offered (p, s->jobs[k], kind, s->n, i)); i++) {
        sharing trial = *s;
        trial.plans[k] = other;
        if (other == s->plans[k] || other == last || !within (p, &trial, card) ||
            judged >= MOST_JUDGED)
          continue;
        judged++;
        last = other;
        if (!cards_judge (p, &trial, err))
          return false;
        if (cards_better (p, &trial, &best))
          best = trial;
      }
      again |= best.plans[k] != s->plans[k];
      *s = best;
    }
  }
  return true;
}

/* Equal parts of the memory and the link; *found is false where a job has no plan in that. */
static bool split_evenly (placing *p, int32_t card, const sharing *from, sharing *out, bool *found,
                          error *err) {
  const device *d = &p->o->cards[card];
  int64_t granule = d->granule_bytes;
  int64_t part = cards_room (p->o, card, from->n) / from->n / granule * granule;
  *out = *from;
  *found = true;
  for (int32_t k = 0; *found && k < out->n; k++) {
    curve_options o = cards_sampling (p->o, &p->jobs[out->jobs[k]]);
    curve v;
    int64_t peak = units_div_up (out->at[k]->peak_bytes, granule) * granule;
    int64_t budget = part < peak ? part : peak;
    o.device = d;
    if (p->o->limit_ticks)
      o.limit_ticks = p->o->limit_ticks;
    o.host_bytes = cards_host_room (p->o, card) / out->n;
    o.progress = NULL;
    if (budget < out->at[k]->floor_bytes)
      *found = false;
    else if (!cards_curve (p, out->jobs[k], &o, &budget, 1, &v, err))
      return false;
    else
      *found = (out->plans[k] = v.points[0].plan);
  }
  return !*found || cards_judge (p, out, err);
}

bool cards_climb (placing *p, int32_t card, sharing *s, error *err) {
  sharing even;
  bool found = false;
  if (!exchange (p, card, s, err) ||
      (s->n > 1 && !cards_spent (p) && !split_evenly (p, card, s, &even, &found, err)))
    return false;
  if (found && cards_better (p, &even, s)) {
    *s = even;
    for (int32_t k = 0; k < s->n; k++)
      s->at[k]->share_ppm = CARDS_ONE / s->n;
  }
  return true;
}
