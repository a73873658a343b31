/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The room at which sets are priced: less where what was guessed to fit does not, more where plans
   show that the guess was too careful. */
#include <assert.h>

#include "base/units.h"
#include "solver/recompute/find.h"

/* The guess leans to one side or the other, by how much depends on the network: the room at which
   sets are priced goes up as long as plans get better by it, and else back by halves. */
bool find_room (finding *f, error *err) {
  int64_t first_ppm = find_number (f, TUNE_room_step_ppm);
  int64_t rounds = find_number (f, TUNE_room_rounds), most_idle = find_number (f, TUNE_room_idle);
  int64_t step = units_scale (f->o->budget_bytes, first_ppm, 1000000), idle = 0;
  drop_set at = { .chosen = NEW (f->arena, f->n_drops, uint8_t, err) };
  const variant_value *value = &f->value;
  bool better = false;
  if (!at.chosen || !find_try_kept (f, KEPT_SETS / 2, err))
    return false;
  if (f->lacking_bytes > 0)
    step = -f->lacking_bytes;
  for (int64_t i = 0; i < rounds && idle < most_idle && !find_is_enough (f) && !find_is_stopped (f);
       i++) {
    int64_t before_ns = value->step_ns;
    if (i == 0 || better)
      find_copy (f, &at, &f->kept[0]);
    f->room_bytes += step;
    find_forget (f);
    if (!find_climb (f, &at, f->ticks + (f->limit_ticks - f->ticks) / (rounds - i), err) ||
        !find_try_kept (f, 2, err))
      return false;
    log_say (f->o->log, LOG_DETAIL, "drops: %d sets, room %lld MiB, guessed %.6g s, %lld ticks",
             f->priced, (long long)(f->room_bytes >> 20), (double)f->kept[0].ns / 1e9,
             (long long)f->ticks);
    better = value->step_ns < before_ns;
    if (!better && f->lacking_bytes > 0) { /* sets that were priced to fit do not */
      step = f->lacking_bytes < f->room_bytes / 2 ? -f->lacking_bytes : -f->room_bytes / 2;
      find_copy (f, &at, &f->kept[0]);
      continue;
    }
    idle = better ? 0 : idle + 1;
    if (!better) {
      f->room_bytes -= step;
      step = units_scale (f->o->budget_bytes, first_ppm >> (i + 1), 1000000);
      step = value->step_ns > value->compute_ns ? -step : step; /* it stalls: too bold already */
    }
  }
  return true;
}

/* Sets were guessed to fit that do not, since granules and the pool of small tensors take more than
   was counted: less room by what they lack, until one does.  No limit is met before. */
bool find_fit (finding *f, error *err) {
  variant_value *value = &f->value;
  int64_t rounds = find_number (f, TUNE_fit_rounds), sets = find_number (f, TUNE_fit_sets);
  int64_t least = f->o->budget_bytes / find_number (f, TUNE_fit_least_part);
  int64_t room_bytes = f->room_bytes, limit_ticks = f->limit_ticks, lacking = value->over_bytes;
  bool ok = true;
  for (int64_t i = 0; ok && i < rounds && value->step_ns == INT64_MAX && lacking > 0; i++) {
    int32_t n;
    f->room_bytes -= lacking > least ? lacking : least;
    if (f->room_bytes <= 0 || solve_stops (f->o))
      break;
    f->limit_ticks = f->ticks + sets * (int64_t)f->rw.trace->n_ops / 4;
    value->over_bytes = INT64_MAX; /* of sets for this room */
    find_forget (f);
    ok = find_prefixes (f, BY_OWN, &n, err) && find_try_kept (f, KEPT_SETS, err);
    lacking = value->over_bytes < INT64_MAX ? value->over_bytes : 0;
  }
  f->limit_ticks = limit_ticks;
  if (value->step_ns == INT64_MAX)
    f->room_bytes = room_bytes;
  return ok;
}
