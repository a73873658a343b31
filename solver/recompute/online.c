/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step run under DTR's rule.  What ran again is looked at as it is; read back as a set of
   drops, it is a start for the climb. */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/policy/dtr_run.h"
#include "solver/recompute/find.h"

/* Tensor x came back before op k: in the first drop that ends there or later. One that comes back
   more than once before it is read has passed. */
static void count_one (finding *f, const int32_t *first, int32_t x, int32_t k) {
  for (int32_t i = first[x]; i < first[x + 1]; i++)
    if (f->drops[i].after < k && k <= f->drops[i].before) {
      f->now.chosen[i] = f->now.chosen[i] == DROP_NONE ? DROP_STAYS : DROP_PASSES;
      return;
    }
}

/* The entries as f->now; drops stand in order of tensors. */
static bool read_set (finding *f, const dtr_answer *answer, error *err) {
  int32_t n = f->rw.trace->n_tensors;
  arena_mark mark = arena_here (f->scratch);
  int32_t *first = NEW (f->scratch, (int64_t)n + 1, int32_t, err);
  if (!first)
    return false;
  for (int32_t i = 0; i < f->n_drops; i++)
    first[f->drops[i].tensor + 1]++;
  for (int32_t x = 0; x < n; x++)
    first[x + 1] += first[x];
  memset (f->now.chosen, DROP_NONE, (size_t)f->n_drops);
  f->now.near_ns = 0;
  for (int32_t i = 0; i < answer->n_entries; i++) {
    const recompute *r = &answer->entries[i];
    for (int32_t j = 0; j < r->replaces.count; j++)
      count_one (f, first, r->replaces.at[j], r->before);
  }
  arena_back (f->scratch, mark);
  return true;
}

/* Counted in bytes it may not fit yet; then once more with as much less. */
static bool run_for (finding *f, dtr_cost cost, dtr_weight weight, int64_t budget_bytes,
                     error *err) {
  int64_t rounds = find_number (f, TUNE_online_rounds);
  int64_t least = f->o->budget_bytes / find_number (f, TUNE_fit_least_part) + 1;
  dtr_request q = { .trace = f->rw.trace,
                    .uses = &f->uses,
                    .room = f->pricing.room,
                    .may = f->cheap,
                    .budget_bytes = budget_bytes,
                    .cost = cost,
                    .weight = weight,
                    .keeps = f->keeps,
                    .stop = f->o->stop,
                    .stop_context = f->o->stop_context };
  for (int64_t i = 0; i < rounds && q.budget_bytes > 0 && !find_is_over (f); i++) {
    arena_mark mark = arena_here (f->arena);
    const recompute *had = f->best.recomputes;
    dtr_answer answer;
    variant_value seen;
    variant v = *f->cut;
    v.name = "online recompute";
    if (!dtr_run (&q, f->arena, &answer, err))
      return false;
    f->ticks += find_number (f, TUNE_online_ops) * f->rw.trace->n_ops / 16;
    v.recomputes = answer.entries;
    v.n_recomputes = answer.n_entries;
    if (answer.lacking_bytes > 0)
      return true;
    if (!find_take (f, &v, &seen, err) || !read_set (f, &answer, err) || !find_price (f, err))
      return false;
    log_say (f->o->log, LOG_DETAIL, "drops: online, guessed %.6g s, tried %.6g s, compute %.6g s",
             (double)f->now.ns / 1e9, seen.step_ns == INT64_MAX ? -1 : (double)seen.step_ns / 1e9,
             (double)seen.compute_ns / 1e9);
    if (f->best.recomputes == had)
      arena_back (f->arena, mark);
    if (seen.step_ns < INT64_MAX || seen.over_bytes <= 0)
      return true;
    q.budget_bytes -= seen.over_bytes > least ? seen.over_bytes : least;
  }
  return true;
}

/* Copies may carry the rest; then it also counts with more than the budget. */
bool find_online (finding *f, error *err) {
  assert (f->cut && f->pricing.room);
  enum { ROOMS = TUNE_online_room_ppm_last - TUNE_online_room_ppm + 1 };
  int rooms = f->pricing.swaps ? ROOMS : 1;
  for (int i = 0; i < rooms && !find_is_over (f); i++) {
    int64_t ppm = find_number (f, TUNE_online_room_ppm + (tuning_id)i);
    int64_t room = units_scale (f->o->budget_bytes, ppm, 1000000);
    for (int weight = DTR_AS_IS; weight < DTR_WEIGHTS; weight++)
      for (int cost = DTR_CLASSES; cost <= DTR_ALL; cost++)
        if (!run_for (f, (dtr_cost)cost, (dtr_weight)weight, room, err))
          return false;
  }
  return true;
}
