/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Near a budget that was searched, the same layout and timing are good again, so a few candidates
   are enough: the roundings of this budget's own shares. */
#include <assert.h>

#include "solver/attempt/search.h"

static bool try_timing (search *s, int64_t early_ppm, bool by_release, error *err) {
  s->trial.early_ppm = early_ppm;
  s->trial.by_release = by_release;
  return search_try (s, err);
}

bool search_follow (search *s, error *err) {
  assert (s->effort.follow && s->n_layouts > 0);
  enum {
    ROOMS = TUNE_follow_room_ppm_last - TUNE_follow_room_ppm + 1,
    OTHERS = TUNE_follow_early_ppm_last - TUNE_follow_early_ppm + 1
  };
  const recipe *like = s->effort.follow;
  const tuning *by = s->options->tuning;
  for (int room = 0; room < ROOMS; room++)
    for (round_start start = 0; start < ROUND_STARTS && !search_is_over (s); start++) {
      bool fits;
      if (round_is_guided (start) != (s->layouts->share != NULL))
        continue;
      if (!search_round (s, s->layouts, start, tuned (by, TUNE_follow_room_ppm + (tuning_id)room),
                         &fits, err) ||
          (fits && !try_timing (s, like->early_ppm, like->by_release, err)))
        return false;
    }
  for (int i = 0; i < OTHERS; i++) {
    int64_t early_ppm = tuned (by, TUNE_follow_early_ppm + (tuning_id)i);
    if (s->best.step_ns == INT64_MAX || search_is_over (s))
      return true;
    search_copy (&s->trial, &s->best);
    if (early_ppm != s->best.early_ppm && !try_timing (s, early_ppm, s->best.by_release, err))
      return false;
  }
  return true;
}
