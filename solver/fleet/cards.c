/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/cards.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/fleet/cards_inner.h"
#include "solver/fleet/floor.h"
#include "solver/sections/sections.h"

int64_t cards_room (const cards_options *o, int32_t card, int32_t n_jobs) {
  assert (card >= 0 && n_jobs > 0);
  const device *d = &o->cards[card];
  int64_t room = d->memory_bytes - n_jobs * d->reserved_bytes;
  return o->memory_bytes && o->memory_bytes < room ? o->memory_bytes : room;
}

int64_t cards_host_room (const cards_options *o, int32_t card) {
  int64_t given = o->cards[card].host_bytes;
  int64_t part = o->host_bytes / o->n_cards;
  if (o->no_host)
    return 0;
  return o->host_bytes && part < given ? part : given;
}

static bool may_share (void *context, int32_t card, const int32_t *jobs, int32_t n,
                       pack_limits *out) {
  placing *p = context;
  int64_t floors = 0;
  for (int32_t i = 0; i < n; i++)
    floors += p->floor_bytes[jobs[i]][card];
  *out = (pack_limits){ .memory_bytes = cards_room (p->o, card, n),
                        .host_bytes = cards_host_room (p->o, card),
                        .share_ppm = CARDS_ONE };
  return floors <= out->memory_bytes;
}

static void begin_card (placing *p, int32_t card, const pack_spread_answer *how, sharing *s) {
  int32_t kind = p->kind_of[card];
  *s = (sharing){ 0 };
  for (int32_t j = 0; j < p->n_jobs; j++)
    s->n += how->card[j] == card;
  for (int32_t j = 0, k = 0; j < p->n_jobs; j++) {
    if (how->card[j] != card)
      continue;
    cards_place *at = &p->out->places[j];
    const pack_choice *c = &how->choice[j];
    at->card = card;
    at->share_ppm = c->share_ppm;
    at->chosen_ns = units_scale (at->baseline_ns, c->slowdown_ppm, CARDS_ONE);
    at->floor_bytes = p->floor_bytes[j][kind];
    at->peak_bytes = p->peak_bytes[j][kind];
    s->jobs[k] = j;
    s->at[k] = at;
    s->plans[k++] = cards_offered (p, j, kind, s->n, how->chosen[j]);
  }
}

/* Refined until what came out is what was expected: with other plans beside it each job has another
   part of the link than it was planned for. */
static bool settle (placing *p, int32_t card, sharing *s, error *err) {
  enum { ROUNDS = 5, NEAR_PPM = 50000 };
  bool near = false;
  for (int round = 0; round < ROUNDS && !near; round++) {
    for (int32_t k = 0; k < s->n; k++)
      s->at[k]->predicted_ns = s->step_ns[k];
    if (cards_spent (p))
      return true;
    if (!cards_refine (p, card, s, err))
      return false;
    near = true;
    for (int32_t k = 0; k < s->n; k++) {
      int64_t apart = s->step_ns[k] - s->at[k]->predicted_ns;
      near &= (apart < 0 ? -apart : apart) <= units_scale (s->step_ns[k], NEAR_PPM, CARDS_ONE);
    }
  }
  return true;
}

static bool finish_card (placing *p, int32_t card, const pack_spread_answer *how, error *err) {
  sharing s;
  begin_card (p, card, how, &s);
  if (!s.n)
    return true;
  if (!cards_climb (p, card, &s, err) || !settle (p, card, &s, err))
    return false;
  for (int32_t k = 0; k < s.n; k++) {
    if (!cards_bind (p, s.jobs[k], s.plans[k], card, s.at[k]->share_ppm, &s.at[k]->plan, err))
      return false;
    s.at[k]->budget_bytes = cards_taken (p, s.jobs[k], s.at[k]->plan);
    s.at[k]->together_ns = s.n > 1 ? s.step_ns[k] : s.at[k]->plan->predicted.step_ns;
  }
  return true;
}

/* In the order of search_level. */
const int64_t cards_level_ticks[] = { 2000000, 200000, 16000000 };

curve_options cards_sampling (const cards_options *o, const cards_job *job) {
  curve_options how = o->sampling;
  how.reserve_ppm = reserve_ppm (job->trace);
  how.allowed = job->allowed;
  return how;
}

/* Half of what is left is for those that come later. */
static int64_t ticks_each (placing *p, int64_t own_ticks, int32_t n) {
  int64_t part = max_of (1, p->left_ticks / (2 * n));
  if (!p->o->total_ticks || (own_ticks && own_ticks < part))
    part = own_ticks;
  p->left_ticks = max_of (0, p->left_ticks - n * part);
  return part;
}

bool cards_spent (const placing *p) {
  return p->o->total_ticks && p->out->ticks >= p->o->total_ticks;
}

bool cards_curve (placing *p, int32_t job, curve_options *o, const int64_t *budgets, int32_t n,
                  curve *out, error *err) {
  o->limit_ticks = ticks_each (p, o->limit_ticks, n);
  if (!curve_of (p->jobs[job].trace, o, budgets, n, p->a, out, err))
    return false;
  p->out->ticks += out->ticks;
  return true;
}

int64_t cards_taken (const placing *p, int32_t job, const plan *found) {
  return reserve_onto (found->budget_bytes, reserve_ppm (p->jobs[job].trace));
}

/* Parts of ops may fit where whole ones do not, and pinned tensors in another order. */
static bool lower_by_parts (const placing *p, int32_t job, int64_t granule, int64_t *floor,
                            error *err) {
  solve_options how = { 0 };
  int64_t bytes;
  allowed_into (&p->jobs[job].allowed, &how);
  if (how.sections == SECTIONS_OFF && !sections_move_pins (p->jobs[job].trace, &how))
    return true;
  if (!sections_floor (p->jobs[job].trace, &how, p->a, &bytes, err))
    return false;
  bytes = units_div_up (bytes, granule) * granule;
  *floor = bytes < *floor ? bytes : *floor;
  return true;
}

/* The floor of a job on a card, and what it needs, with the reserve. */
static bool range_of (placing *p, int32_t job, int32_t card, error *err) {
  const trace *t = p->jobs[job].trace;
  int64_t *floor = &p->floor_bytes[job][card], *peak = &p->peak_bytes[job][card];
  memory_floor least;
  if (!curve_range (t, &p->o->cards[card], p->a, floor, peak, err) ||
      !floor_least (t, &p->o->cards[card], p->a, &least, err))
    return false;
  p->whole_bytes[job][card] = reserve_onto (*floor, reserve_ppm (t));
  *floor = least.bytes;
  if (!lower_by_parts (p, job, p->o->cards[card].granule_bytes, floor, err))
    return false;
  *floor = reserve_onto (*floor, reserve_ppm (t));
  *peak = reserve_onto (*peak, reserve_ppm (t));
  return true;
}

static bool meet_jobs (placing *p, error *err) {
  for (int32_t card = 0; card < p->o->n_cards; card++) {
    p->kind_of[card] = card;
    for (int32_t other = card - 1; other >= 0; other--)
      if (strcmp (p->o->cards[card].name, p->o->cards[other].name) == 0)
        p->kind_of[card] = p->kind_of[other];
  }
  for (int32_t j = 0; j < p->n_jobs; j++) {
    cards_place *at = &p->out->places[j];
    *at = (cards_place){ .card = -1, .baseline_ns = trace_total_ns (p->jobs[j].trace) };
    if (at->baseline_ns <= 0)
      return error_set (err, ERR_input, "%s has no duration: it cannot share a card",
                        p->jobs[j].name);
    for (int32_t card = 0; card < p->o->n_cards; card++)
      if (p->kind_of[card] == card && !range_of (p, j, card, err))
        return false;
  }
  return true;
}

bool cards_place_jobs (const cards_job *jobs, int32_t n_jobs, const cards_options *o, arena *a,
                       cards_answer *out, error *err) {
  assert (n_jobs > 0 && n_jobs <= CARDS_MOST_JOBS);
  *out = (cards_answer){ 0 };
  if (n_jobs < 1 || n_jobs > CARDS_MOST_JOBS || o->n_cards < 1 || o->n_cards > CARDS_MOST)
    return error_set (err, ERR_usage, "%d jobs on %d cards: 1 to %d jobs on 1 to %d cards", n_jobs,
                      o->n_cards, CARDS_MOST_JOBS, CARDS_MOST);
  placing *p = NEW (a, 1, placing, err);
  if (!ALLOC (a, out->places, n_jobs, err) || !p)
    return false;
  *p = (placing){ .jobs = jobs, .n_jobs = n_jobs, .o = o, .a = a, .out = out };
  p->left_ticks = o->total_ticks;
  pack_spread_answer how;
  pack_spread_jobs all = { .n_jobs = n_jobs,
                           .n_cards = o->n_cards,
                           .kind_of = p->kind_of,
                           .objective = o->objective,
                           .offer = cards_offer,
                           .may_share = may_share,
                           .context = p };
  if (!meet_jobs (p, err) || !pack_spread (&all, a, &how, err))
    return false;
  out->n_placed = how.n_placed;
  out->worst_ppm = how.worst_ppm;
  out->total_ppm = how.total_ppm;
  out->visited = how.visited;
  for (int32_t card = 0; card < o->n_cards; card++)
    if (!finish_card (p, card, &how, err))
      return false;
  for (int32_t j = 0; j < n_jobs; j++)
    if (out->places[j].card < 0 && !cards_reason (p, j, err))
      return false;
  return true;
}
