/* Near a budget that was searched, the same layout and timing are good again, so a few candidates
   are enough: the roundings of this budget's own shares. */
#include "solver/attempt/search.h"

static bool try_timing (search *s, int64_t early_ppm, bool by_release, error *err) {
  s->trial.early_ppm = early_ppm;
  s->trial.by_release = by_release;
  return search_try (s, err);
}

bool search_follow (search *s, const recipe *like, error *err) {
  static const int64_t rooms_ppm[] = { 999000, 997000 };
  static const int64_t other_ppm[] = { 20000, 40000, -1 };
  for (size_t room = 0; room < sizeof rooms_ppm / sizeof *rooms_ppm; room++)
    for (round_start start = 0; start < ROUND_STARTS && !search_is_over (s); start++) {
      bool fits;
      if (round_is_guided (start) != (s->layouts->share != NULL))
        continue;
      if (!search_round (s, s->layouts, start, rooms_ppm[room], &fits, err) ||
          (fits && !try_timing (s, like->early_ppm, like->by_release, err)))
        return false;
    }
  for (size_t i = 0; i < sizeof other_ppm / sizeof *other_ppm; i++) {
    if (s->best.step_ns == INT64_MAX || search_is_over (s))
      return true;
    search_copy (&s->trial, &s->best);
    if (other_ppm[i] != s->best.early_ppm && !try_timing (s, other_ppm[i], s->best.by_release, err))
      return false;
  }
  return true;
}
