/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/tuning/stats.h"

#include <assert.h>
#include <stddef.h>

const strategy_row strategy_rows[STRATEGIES] = {
#define STRATEGY(stage, name, applies, part, says) { #stage, #name, says },
#include "solver/tuning/strategies.def"
};

void stats_add (search_stats *s, strategy_id id, search_place from, search_place to) {
  assert (id < STRATEGIES);
  assert (to.step_ns <= from.step_ns && to.tried >= from.tried);
  if (!s)
    return;
  strategy_stats *at = &s->of[id];
  at->tried += to.tried - from.tried;
  at->spent += to.spent - from.spent;
  at->won += to.step_ns < from.step_ns;
  if (to.step_ns < from.step_ns && from.step_ns != INT64_MAX)
    at->gained_ns += from.step_ns - to.step_ns;
}

void stats_join (search_stats *s, const search_stats *of) {
  for (int i = 0; s && i < STRATEGIES; i++) {
#define STAT(name, says) s->of[i].name += of->of[i].name;
#include "solver/tuning/stats.def"
  }
}
