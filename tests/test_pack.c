/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packing jobs onto a card, against trying every combination. */
#include "base/random.h"
#include "solver/fleet/pack_spread.h"
#include "tests/suite.h"

enum { PACKS = 300 };

typedef struct tried {
  bool fits;
  int64_t first, second; /* the objective, and the other one */
} tried;

/* Every combination, as an odometer. */
static tried try_all (const pack_job *jobs, int32_t n, const pack_limits *limits) {
  int32_t at[4] = { 0 };
  tried best = { 0 };
  for (;;) {
    int64_t budget = 0, host = 0, share = 0, worst = 0, total = 0;
    for (int32_t i = 0; i < n; i++) {
      const pack_choice *c = &jobs[i].choices[at[i]];
      budget += c->budget_bytes;
      host += c->host_bytes;
      share += c->share_ppm;
      total += c->slowdown_ppm;
      worst = c->slowdown_ppm > worst ? c->slowdown_ppm : worst;
    }
    bool by_worst = limits->objective == PACK_WORST;
    int64_t first = by_worst ? worst : total, second = by_worst ? total : worst;
    if (budget <= limits->memory_bytes && host <= limits->host_bytes &&
        share <= limits->share_ppm &&
        (!best.fits || first < best.first || (first == best.first && second < best.second)))
      best = (tried){ true, first, second };
    int32_t i = 0;
    while (i < n && ++at[i] == jobs[i].count)
      at[i++] = 0;
    if (i == n)
      return best;
  }
}

CLAIM (packing_is_as_good_as_trying_everything) {
  int fitted = 0, refused = 0;
  for (uint64_t seed = 1; seed <= PACKS; seed++) {
    random_state r = random_seed (seed);
    error err = { 0 };
    arena *a = arena_new (0);
    pack_choice choices[4][7];
    pack_job jobs[4];
    pack_answer got;
    int32_t n = 1 + (int32_t)(random_next (&r) % 4);
    for (int32_t i = 0; i < n; i++) {
      jobs[i] = (pack_job){ choices[i], 1 + (int32_t)(random_next (&r) % 7) };
      for (int32_t k = 0; k < jobs[i].count; k++)
        choices[i][k] =
            (pack_choice){ (int64_t)(random_next (&r) % 12), (int64_t)(random_next (&r) % 9),
                           1 + (int64_t)(random_next (&r) % 5), (int64_t)(random_next (&r) % 20) };
    }
    pack_limits limits = { 2 + (int64_t)(random_next (&r) % 24),
                           2 + (int64_t)(random_next (&r) % 20),
                           4 + (int64_t)(random_next (&r) % 9),
                           seed % 2 ? PACK_WORST : PACK_TOTAL };
    tried want = try_all (jobs, n, &limits);
    ck_assert (pack_choose (jobs, n, &limits, a, &got, &err));
    ck_assert_msg (got.fits == want.fits, "seed %d", (int)seed);
    if (got.fits) {
      bool by_worst = limits.objective == PACK_WORST;
      ck_assert_int_eq (by_worst ? got.worst_ppm : got.total_ppm, want.first);
      ck_assert_int_eq (by_worst ? got.total_ppm : got.worst_ppm, want.second);
      int64_t budget = 0;
      for (int32_t i = 0; i < n; i++)
        budget += choices[i][got.chosen[i]].budget_bytes;
      ck_assert_int_le (budget, limits.memory_bytes);
    }
    fitted += got.fits;
    refused += !got.fits;
    arena_free (a);
  }
  ck_assert_int_gt (fitted, PACKS / 5);
  ck_assert_int_gt (refused, PACKS / 20);
}

/* ---- over cards ---- */

enum { CARDS = 3, MOST = 4, CHOICES = 4 };

typedef struct fleet {
  pack_choice at[CARDS][MOST][MOST + 1][CHOICES];
  int32_t count[CARDS][MOST][MOST + 1];
  pack_limits limits[CARDS];
  int32_t kind_of[CARDS], n_cards, n_jobs;
  bool by_worst;
} fleet;

static bool offer (void *context, int32_t job, int32_t kind, int32_t n_jobs, pack_job *out,
                   error *err) {
  (void)err;
  fleet *f = context;
  *out = (pack_job){ f->at[kind][job][n_jobs], f->count[kind][job][n_jobs] };
  return true;
}

static bool may_share (void *context, int32_t kind, const int32_t *jobs, int32_t n,
                       pack_limits *out) {
  (void)jobs;
  (void)n;
  *out = ((fleet *)context)->limits[kind];
  return true;
}

static fleet fleet_of (uint64_t seed) {
  random_state r = random_seed (seed);
  fleet f = { .n_cards = 1 + (int32_t)(random_next (&r) % CARDS),
              .n_jobs = 1 + (int32_t)(random_next (&r) % MOST),
              .by_worst = seed % 2 };
  for (int32_t c = 0; c < f.n_cards; c++) {
    f.kind_of[c] = c > 0 && random_next (&r) % 2 ? f.kind_of[c - 1] : c;
    f.limits[c] =
        (pack_limits){ 4 + (int64_t)(random_next (&r) % 14), 4 + (int64_t)(random_next (&r) % 14),
                       4 + (int64_t)(random_next (&r) % 5), PACK_TOTAL };
    for (int32_t j = 0; j < f.n_jobs; j++)
      for (int32_t n = 1; n <= f.n_jobs; n++) {
        f.count[c][j][n] = (int32_t)(random_next (&r) % (CHOICES + 1));
        for (int32_t k = 0; k < CHOICES; k++)
          f.at[c][j][n][k] =
              (pack_choice){ 1 + (int64_t)(random_next (&r) % 10), (int64_t)(random_next (&r) % 8),
                             1 + (int64_t)(random_next (&r) % 4),
                             n * (3 + (int64_t)(random_next (&r) % 12)) };
      }
  }
  return f;
}

/* The best way to give every job of a mask its card and choice, by trying all. */
typedef struct outcome {
  bool fits;
  int64_t worst, total;
} outcome;

static void try_choices (const fleet *f, const int32_t *card, uint32_t set, int32_t job,
                         int32_t *choice, outcome *best) {
  while (job < f->n_jobs && !(set >> job & 1))
    job++;
  int32_t sharers[CARDS] = { 0 };
  for (int32_t j = 0; j < f->n_jobs; j++)
    if (set >> j & 1)
      sharers[card[j]]++;
  if (job < f->n_jobs) {
    int32_t kind = f->kind_of[card[job]];
    for (choice[job] = 0; choice[job] < f->count[kind][job][sharers[card[job]]]; choice[job]++)
      try_choices (f, card, set, job + 1, choice, best);
    return;
  }
  int64_t worst = 0, total = 0;
  for (int32_t c = 0; c < f->n_cards; c++) {
    int64_t budget = 0, host = 0, share = 0;
    const pack_limits *l = &f->limits[f->kind_of[c]];
    for (int32_t j = 0; j < f->n_jobs; j++) {
      if (!(set >> j & 1) || card[j] != c)
        continue;
      const pack_choice *x = &f->at[f->kind_of[c]][j][sharers[c]][choice[j]];
      budget += x->budget_bytes;
      host += x->host_bytes;
      share += x->share_ppm;
      total += x->slowdown_ppm;
      worst = x->slowdown_ppm > worst ? x->slowdown_ppm : worst;
    }
    if (budget > l->memory_bytes || host > l->host_bytes || share > l->share_ppm)
      return;
  }
  int64_t first = f->by_worst ? worst : total, second = f->by_worst ? total : worst;
  int64_t mine = f->by_worst ? best->worst : best->total;
  int64_t other = f->by_worst ? best->total : best->worst;
  if (!best->fits || first < mine || (first == mine && second < other))
    *best = (outcome){ true, worst, total };
}

static outcome try_set (const fleet *f, uint32_t set) {
  int32_t card[MOST] = { 0 }, choice[MOST];
  outcome best = { 0 };
  for (;;) {
    try_choices (f, card, set, 0, choice, &best);
    int32_t j = 0;
    while (j < f->n_jobs && ++card[j] == f->n_cards)
      card[j++] = 0;
    if (j == f->n_jobs)
      return best;
  }
}

CLAIM (spreading_over_cards_is_as_good_as_trying_everything) {
  int all = 0, some = 0, several = 0;
  for (uint64_t seed = 1; seed <= PACKS; seed++) {
    fleet f = fleet_of (seed);
    error err = { 0 };
    arena *a = arena_new (0);
    pack_spread_answer got;
    pack_spread_jobs p = { .n_jobs = f.n_jobs,
                           .n_cards = f.n_cards,
                           .kind_of = f.kind_of,
                           .objective = f.by_worst ? PACK_WORST : PACK_TOTAL,
                           .offer = offer,
                           .may_share = may_share,
                           .context = &f };
    ck_assert_msg (pack_spread (&p, a, &got, &err), "%s", err.text);
    uint32_t set = 0;
    int32_t most = 0;
    for (int32_t j = 0; j < f.n_jobs; j++)
      set |= got.card[j] >= 0 ? 1u << j : 0;
    for (uint32_t s = 1; s < 1u << f.n_jobs; s++)
      if (__builtin_popcount (s) > most && try_set (&f, s).fits)
        most = __builtin_popcount (s);
    ck_assert_msg (got.n_placed == most && __builtin_popcount (set) == most, "seed %d: %d of %d",
                   (int)seed, got.n_placed, most);
    if (most) {
      outcome want = try_set (&f, set);
      ck_assert_msg (want.fits && want.worst == got.worst_ppm && want.total == got.total_ppm,
                     "seed %d: %lld %lld, not %lld %lld", (int)seed, (long long)got.worst_ppm,
                     (long long)got.total_ppm, (long long)want.worst, (long long)want.total);
    }
    all += most == f.n_jobs;
    some += most > 0 && most < f.n_jobs;
    several += f.n_cards > 1 && most > 1;
    arena_free (a);
  }
  ck_assert_int_gt (all, PACKS / 10);
  ck_assert_int_gt (some, PACKS / 20);
  ck_assert_int_gt (several, PACKS / 10);
}

int main (void) {
  return suite_run ("pack", 60);
}
