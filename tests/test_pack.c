/* Packing jobs onto a card, against trying every combination. */
#include "base/random.h"
#include "solver/pack.h"
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

START_TEST (packing_is_as_good_as_trying_everything) {
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
END_TEST

int main (void) {
  const TTest *tests[] = { packing_is_as_good_as_trying_everything, NULL };
  return suite_run ("pack", tests, 60);
}
