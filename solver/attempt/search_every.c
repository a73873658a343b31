/* SPDX-License-Identifier: GPL-3.0-or-later */
/* If few parts can leave, every choice of them is tried: rules and walks miss some that only pay
   together, as a copy made early so that a later one is clean. */
#include <assert.h>

#include "solver/attempt/search.h"

static int64_t most_parts (const layout *l, int32_t gap) {
  const unit_info *u = &l->step.units.at[l->step.gaps.at[gap].unit];
  return u->bytes == 0 || u->pinned || !l->step.gaps.at[gap].useful
             ? 0
             : l->of[l->step.gaps.at[gap].unit];
}

static bool is_small (const layout *l, int64_t most) {
  int64_t choices = 1;
  for (int32_t i = 0; i < l->step.gaps.count && choices <= most; i++)
    choices *= most_parts (l, i) + 1;
  return choices <= most;
}

/* The next choice, as one counts; false behind the last. */
static bool count_up (const layout *l, candidate *c) {
  for (int32_t i = 0; i < l->step.gaps.count; i++) {
    if (c->parts[i] < most_parts (l, i))
      return c->parts[i]++, true;
    c->parts[i] = 0;
  }
  return false;
}

static bool has_parts (const candidate *c) {
  for (int32_t i = 0; i < c->layout->step.gaps.count; i++)
    if (c->parts[i] > 1)
      return true;
  return false;
}

bool search_timings (search *s, error *err) {
  static const int64_t early_ppm[] = { -1, 0 };
  int ways = has_parts (&s->trial) ? 8 : 4;
  for (int i = 0; i < ways && !search_is_over (s); i++) {
    s->trial.early_ppm = early_ppm[i / 2 % 2];
    s->trial.by_release = i % 2;
    s->trial.heads_first = i / 4;
    int64_t tried = s->tried;
    if (!search_try (s, err))
      return false;
    if (s->trial.step_ns == INT64_MAX && s->tried > tried)
      return true; /* a choice that does not fit mostly fits with no timing */
  }
  return true;
}

bool search_every (search *s, error *err) {
  assert (s->n_layouts > 0);
  const tuning *by = s->options->tuning;
  int64_t until = s->ticks + s->limit_ticks / tuned (by, TUNE_every_part);
  for (int32_t i = 0; i < s->n_layouts; i++) {
    const layout *l = &s->layouts[i];
    if (!is_small (l, tuned (by, TUNE_every_choices)))
      continue;
    search_clear (&s->trial, l);
    s->trial.found_by = "every choice";
    do {
      if (search_is_over (s) || s->ticks >= until)
        return true;
      if (!search_timings (s, err))
        return false;
    } while (count_up (l, &s->trial));
  }
  return true;
}
