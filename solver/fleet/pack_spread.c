/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Totals of jobs on different cards add up, so that subsets are spread over cards by dynamic
   programming.  The worst of all does not add up; it is a limit on what may be chosen, and the
   least limit under which there is an answer is found by halving. */
#include "base/order.h"
#include "solver/fleet/pack_spread.h"

#include <assert.h>
#include <stdlib.h>

#define NOWHERE INT64_MAX

typedef struct spreading {
  const pack_spread_jobs *p;
  arena *arena;
  pack_job offers[PACK_MOST_CARDS][PACK_MOST_SPREAD][PACK_MOST_SPREAD + 1]; /* kind, job, sharers */
  pack_spread_answer *out;
} spreading;

/* Per subset of the jobs: the least total on the first cards, and who is on the last of them. */
typedef struct reached {
  int64_t *total;
  uint32_t *last;
} reached;

static int32_t jobs_in (uint32_t set, int32_t jobs[PACK_MOST_SPREAD]) {
  int32_t n = 0;
  for (int32_t j = 0; set >> j; j++)
    if (set >> j & 1)
      jobs[n++] = j;
  return n;
}

/* ---- one card ---- */

static bool offered (spreading *s, int32_t kind, int32_t job, int32_t n, pack_job *out,
                     error *err) {
  pack_job *known = &s->offers[kind][job][n];
  if (!known->choices && !s->p->offer (s->p->context, job, kind, n, known, err))
    return false;
  *out = *known;
  return true;
}

/* The choices that are no slower than the limit, in their order; *at says which they are. */
static bool limited (const pack_job *all, int64_t most_ppm, arena *a, pack_job *out, int32_t **at,
                     error *err) {
  pack_choice *choices = NEW (a, all->count, pack_choice, err);
  *at = NEW (a, all->count, int32_t, err);
  *out = (pack_job){ choices, 0 };
  if (!choices || !*at)
    return false;
  for (int32_t i = 0; i < all->count; i++)
    if (all->choices[i].slowdown_ppm <= most_ppm) {
      choices[out->count] = all->choices[i];
      (*at)[out->count++] = i;
    }
  return true;
}

/* The least total; chosen, where not NULL, per job of the set in order. */
static bool on_card (spreading *s, int32_t kind, uint32_t set, int64_t most_ppm, arena *scratch,
                     int64_t *total, int32_t *chosen, error *err) {
  int32_t jobs[PACK_MOST_SPREAD] = { 0 }, n = jobs_in (set, jobs), *at[PACK_MOST_SPREAD];
  pack_job all, some[PACK_MOST_SPREAD];
  pack_limits limits;
  pack_answer got;
  *total = NOWHERE;
  if (!s->p->may_share (s->p->context, kind, jobs, n, &limits))
    return true;
  limits.objective = PACK_TOTAL;
  for (int32_t i = 0; i < n; i++)
    if (!offered (s, kind, jobs[i], n, &all, err) ||
        !limited (&all, most_ppm, scratch, &some[i], &at[i], err))
      return false;
  if (!pack_choose (some, n, &limits, scratch, &got, err))
    return false;
  s->out->visited += got.visited;
  if (got.fits)
    *total = got.total_ppm;
  for (int32_t i = 0; got.fits && chosen && i < n; i++)
    chosen[i] = at[i][got.chosen[i]];
  return true;
}

/* ---- all cards ---- */

static bool totals_of (spreading *s, int32_t kind, int64_t most_ppm, arena *scratch, int64_t **out,
                       error *err) {
  uint32_t sets = 1u << s->p->n_jobs;
  *out = NEW (scratch, sets, int64_t, err);
  for (uint32_t set = 1; *out && set < sets; set++) {
    arena_mark mark = arena_here (scratch);
    if (!on_card (s, kind, set, most_ppm, scratch, &(*out)[set], NULL, err))
      return false;
    arena_back (scratch, mark);
  }
  return *out;
}

static bool spread (spreading *s, int64_t most_ppm, arena *scratch, reached *out, error *err) {
  uint32_t sets = 1u << s->p->n_jobs;
  int32_t cards = s->p->n_cards;
  int64_t *alone[PACK_MOST_CARDS] = { NULL };
  if (!ALLOC (scratch, out->total, (int64_t)sets * (cards + 1), err) ||
      !ALLOC (scratch, out->last, (int64_t)sets * (cards + 1), err))
    return false;
  for (uint32_t set = 1; set < sets; set++)
    out->total[set] = NOWHERE;
  for (int32_t card = 0; card < cards; card++) {
    int32_t kind = s->p->kind_of[card];
    if (!alone[kind] && !totals_of (s, kind, most_ppm, scratch, &alone[kind], err))
      return false;
    const int64_t *here = alone[kind], *before = out->total + (int64_t)card * sets;
    int64_t *now = out->total + (int64_t)(card + 1) * sets;
    uint32_t *last = out->last + (int64_t)(card + 1) * sets;
    for (uint32_t set = 0; set < sets; set++) {
      now[set] = before[set]; /* nobody on this card */
      for (uint32_t some = set; some; some = (some - 1) & set)
        if (here[some] != NOWHERE && before[set & ~some] != NOWHERE &&
            here[some] + before[set & ~some] < now[set]) {
          now[set] = here[some] + before[set & ~some];
          last[set] = some;
        }
    }
  }
  out->total += (int64_t)cards * sets;
  out->last += (int64_t)cards * sets;
  return true;
}

/* ---- the limit ---- */

/* Every slowdown that may be chosen, in order. */
static bool all_limits (spreading *s, int64_t **limits, int64_t *n, error *err) {
  int64_t room = 0;
  *limits = NULL;
  *n = 0;
  for (int32_t kind = 0; kind < s->p->n_cards; kind++)
    for (int32_t j = 0; j < s->p->n_jobs; j++)
      for (int32_t k = 1; k <= s->p->n_jobs; k++) {
        const pack_job *of = &s->offers[kind][j][k];
        *limits = arena_grow (s->arena, *limits, &room, *n + of->count + 1, sizeof **limits, err);
        for (int32_t i = 0; *limits && i < of->count; i++)
          (*limits)[(*n)++] = of->choices[i].slowdown_ppm;
        if (!*limits)
          return false;
      }
  qsort (*limits, (size_t)*n, sizeof **limits, order_int64);
  return true;
}

/* The least one under which the set has a place at no more than most_total. */
static bool least_limit (spreading *s, uint32_t set, int64_t most_total, int64_t *limit,
                         error *err) {
  int64_t n, *limits;
  if (!all_limits (s, &limits, &n, err))
    return false;
  int64_t low = 0, high = n - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    reached got;
    arena *scratch = arena_made (err);
    bool ok = scratch && spread (s, limits[middle], scratch, &got, err);
    bool fits = ok && got.total[set] <= most_total;
    arena_free (scratch);
    if (!ok)
      return false;
    if (fits)
      high = middle;
    else
      low = middle + 1;
  }
  *limit = limits[low];
  return true;
}

static uint32_t largest_set (const spreading *s, const reached *got) {
  uint32_t best = 0;
  for (uint32_t set = 1; set < 1u << s->p->n_jobs; set++) {
    int more = __builtin_popcount (set) - __builtin_popcount (best);
    if (got->total[set] != NOWHERE &&
        (more > 0 || (more == 0 && got->total[set] < got->total[best])))
      best = set;
  }
  return best;
}

static bool take (spreading *s, int32_t card, uint32_t set, int64_t limit_ppm, arena *scratch,
                  error *err) {
  int32_t jobs[PACK_MOST_SPREAD] = { 0 }, chosen[PACK_MOST_SPREAD], n = jobs_in (set, jobs);
  int32_t kind = s->p->kind_of[card];
  pack_spread_answer *out = s->out;
  int64_t total;
  if (!n || !on_card (s, kind, set, limit_ppm, scratch, &total, chosen, err))
    return !n;
  for (int32_t i = 0; i < n; i++) {
    const pack_choice *c = &s->offers[kind][jobs[i]][n].choices[chosen[i]];
    out->card[jobs[i]] = card;
    out->chosen[jobs[i]] = chosen[i];
    out->choice[jobs[i]] = *c;
    out->worst_ppm = c->slowdown_ppm > out->worst_ppm ? c->slowdown_ppm : out->worst_ppm;
    out->total_ppm += c->slowdown_ppm;
  }
  out->n_placed += n;
  return true;
}

static bool decide (spreading *s, arena *scratch, error *err) {
  reached got;
  int64_t limit_ppm = 0;
  if (!spread (s, NOWHERE, scratch, &got, err))
    return false;
  uint32_t set = largest_set (s, &got), sets = 1u << s->p->n_jobs;
  if (!set)
    return true;
  int64_t most_total = s->p->objective == PACK_TOTAL ? got.total[set] : NOWHERE - 1;
  if (!least_limit (s, set, most_total, &limit_ppm, err) ||
      !spread (s, limit_ppm, scratch, &got, err))
    return false;
  for (int32_t card = s->p->n_cards - 1; card >= 0; card--, got.last -= sets) {
    uint32_t here = got.last[set];
    if (!take (s, card, here, limit_ppm, scratch, err))
      return false;
    set &= ~here;
  }
  return true;
}

bool pack_spread (const pack_spread_jobs *p, arena *a, pack_spread_answer *out, error *err) {
  assert (p->n_cards > 0 && p->n_cards <= PACK_MOST_CARDS);
  assert (p->n_jobs <= PACK_MOST_SPREAD);
  *out = (pack_spread_answer){ 0 };
  if (p->n_jobs < 1 || p->n_jobs > PACK_MOST_SPREAD || p->n_cards < 1 ||
      p->n_cards > PACK_MOST_CARDS)
    return error_set (err, ERR_usage, "%d jobs on %d cards: 1 to %d jobs on 1 to %d cards",
                      p->n_jobs, p->n_cards, PACK_MOST_SPREAD, PACK_MOST_CARDS);
  for (int32_t j = 0; j < p->n_jobs; j++)
    out->card[j] = -1;
  spreading *s = NEW (a, 1, spreading, err);
  arena *scratch = s ? arena_made (err) : NULL;
  if (s)
    *s = (spreading){ .p = p, .arena = a, .out = out };
  bool ok = scratch && decide (s, scratch, err);
  arena_free (scratch);
  return ok;
}
