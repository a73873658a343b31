/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The drops that may be chosen, the guessed cost of a set of them, and the few best sets so far,
   which quick plans judge. */
#include "solver/recompute/find.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/place/schedule.h"

int64_t find_number (const finding *f, tuning_id id) {
  return tuned (f->o->tuning, id);
}

/* Adds the ops that are over the budget, or close to it: copies made again may push them over. */
static void mark_over (const finding *f, const gaps *g, uint8_t *over) {
  int64_t part = find_number (f, TUNE_drops_over_part);
  for (int32_t k = 0; k < g->n_ops; k++)
    over[k] |= g->base_bytes[k] - g->unused_bytes > g->room_bytes - g->room_bytes / part;
}

/* Tensors that idle over an op that is over the budget, by bytes or in granules and the pool. */
static bool find_drops (finding *f, error *err) {
  const trace *t = f->rw.trace;
  count_rule granules = { .budget_bytes = f->o->budget_bytes,
                          .granule_bytes = f->o->device->granule_bytes };
  uint8_t *over = NEW (f->arena, t->n_ops, uint8_t, err), *cheap = NULL;
  counted_step *step = NEW (f->arena, 2, counted_step, err);
  if (!over || !step || !uses_of (t, f->arena, &f->uses, err) ||
      !step_count_bytes (t, f->o->budget_bytes, f->arena, &step[0], err) ||
      !schedule_count (t, &granules, f->arena, &step[1], err) ||
      !recompute_may_drop (t, f->o, f->arena, &cheap, err))
    return false;
  f->cheap = cheap;
  mark_over (f, &step[0].gaps, over);
  mark_over (f, &step[1].gaps, over);
  drops_request q = { .trace = t,
                      .over = over,
                      .cheap = cheap,
                      .keeps = f->keeps,
                      .keeps_first = f->keeps_first,
                      .stop = f->o->stop,
                      .stop_context = f->o->stop_context };
  return drops_find (&q, f->arena, &f->drops, &f->n_drops, &f->missed, err);
}

/* The entries of a set, in `a`; those up to most_ns, if that is not 0. */
static bool entries_of (const finding *f, const drop_set *set, int64_t most_ns, arena *a,
                        recompute **out, int32_t *count, error *err) {
  drop_list list = { f->rw.trace, &f->uses, f->drops, f->n_drops };
  drop_choice c = {
    .chosen = set->chosen, .near_ns = set->near_ns, .keeps = f->keeps, .most_ns = most_ns
  };
  return drops_entries (&list, &c, a, out, count, err);
}

bool find_variant (finding *f, const drop_set *set, arena *a, variant *out, error *err) {
  assert (set->chosen && out);
  *out = *f->cut;
  out->name = "recompute";
  return entries_of (f, set, 0, a, &out->recomputes, &out->n_recomputes, err);
}

/* The best few, no two alike in cost: sets that cost the same are mostly the same set. */
static void remember (finding *f) {
  int32_t at = 0;
  while (at < f->n_kept && f->kept[at].ns < f->now.ns)
    at++;
  if (at == KEPT_SETS || (at < f->n_kept && f->kept[at].ns == f->now.ns))
    return;
  f->n_kept += f->n_kept < KEPT_SETS;
  uint8_t *room = f->kept[f->n_kept - 1].chosen;
  for (int32_t i = f->n_kept - 1; i > at; i--)
    f->kept[i] = f->kept[i - 1];
  memcpy (room, f->now.chosen, (size_t)f->n_drops);
  f->kept[at] = f->now;
  f->kept[at].chosen = room;
}

/* The price of a byte that cannot leave: several times the link's, or, where nothing does, as if
   the whole budget were several steps. */
static double dear_ns (const finding *f) {
  return (double)find_number (f, TUNE_drops_dear) *
         (f->pricing.swaps ? f->pricing.out_ns + f->pricing.in_ns
                           : (double)f->rw_ns / (double)f->o->budget_bytes);
}

/* In a simulation, an op takes longer; without a link, it is only counted. */
static int64_t ticks_of (const finding *f, int64_t n_ops) {
  return n_ops / (f->pricing.swaps ? 4 : 16);
}

static void set_price (finding *f, const drops_price *p) {
  f->now.compute_ns = p->compute_ns;
  f->now.stall_ns = p->stall_ns;
  f->now.ns = p->compute_ns + units_scale (p->stall_ns, f->stall_ppm, 1000000);
  if (p->lacking_bytes > 0)
    f->now.ns += p->compute_ns / 4 +
                 (int64_t)fmin ((double)p->lacking_bytes * dear_ns (f), (double)MOST_NS);
}

bool find_price_below (finding *f, int64_t most_ns, error *err) {
  assert (f->now.chosen && f->scratch);
  const trace *t = f->rw.trace;
  int64_t worst_ns = f->n_kept == KEPT_SETS ? f->kept[KEPT_SETS - 1].ns : INT64_MAX;
  most_ns = max_of (most_ns, worst_ns);
  arena_mark mark = arena_here (f->scratch);
  drops_price price = { .compute_ns = f->rw_ns };
  recompute *entries;
  int32_t n;
  if (!entries_of (f, &f->now, most_ns > f->rw_ns ? most_ns - f->rw_ns : 1, f->scratch, &entries,
                   &n, err))
    return false;
  for (int32_t i = 0; i < n; i++) {
    price.compute_ns += drops_again_ns (t, &entries[i]);
    price.n_ops += entries[i].ops.count;
  }
  bool is_below = price.compute_ns <= most_ns, ok = true;
  if (is_below)
    ok = drops_price_of (&f->pricing, entries, n, f->room_bytes, f->scratch, &price, err);
  else
    price.n_ops += entries[n - 1].before; /* that far the step was walked */
  arena_back (f->scratch, mark);
  if (!ok)
    return false;
  f->priced++;
  f->ticks += ticks_of (f, price.n_ops);
  set_price (f, &price);
  if (is_below)
    remember (f);
  return true;
}

bool find_price (finding *f, error *err) {
  return find_price_below (f, INT64_MAX, err);
}

bool find_is_wild (const finding *f) {
  return f->now.compute_ns / 2 > f->rw_ns;
}

bool find_is_stopped (const finding *f) {
  return f->ticks >= f->limit_ticks || solve_stops (f->o);
}

/* A guess is left some room to be wrong. */
bool find_is_over (const finding *f) {
  int64_t near_ns = f->least_ns + (f->enough_ns - f->least_ns) / 2;
  return find_is_stopped (f) || (f->n_kept && f->kept[0].ns <= near_ns);
}

/* How much of each drop the guide would drop: both are in order of tensors, then of ops. */
static void take_guide (finding *f) {
  const gaps *g = &f->guide->step->step.gaps;
  for (int32_t i = 0; i < f->n_drops; i++)
    for (int32_t k = g->of_unit[f->drops[i].tensor]; k < g->of_unit[f->drops[i].tensor + 1]; k++)
      if (g->at[k].after == f->drops[i].after && g->at[k].before == f->drops[i].before)
        f->dropped[i] = f->guide->bound.dropped[k];
}

/* A variant that does not fit yet is better the less it is over the budget. */
static bool is_better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->step_ns == INT64_MAX && a->over_bytes < b->over_bytes;
}

/* A price takes what is over the memory to go out and come back while all waits, which is too much
   where one comes in as another goes: by how much depends on the network, and plans show it. */
static void learn (finding *f, const drop_set *guess, const variant_value *seen) {
  int64_t least_ppm = find_number (f, TUNE_drops_learn_least_ppm);
  int64_t most_ppm = find_number (f, TUNE_drops_learn_most_ppm);
  int64_t part = find_number (f, TUNE_drops_learn_part),
          stall_ns = seen->step_ns - seen->compute_ns;
  if (seen->step_ns == INT64_MAX || guess->stall_ns <= guess->compute_ns / part)
    return;
  double off_ppm = (double)stall_ns / (double)guess->stall_ns * 1e6;
  int64_t ppm = max_of (least_ppm, (int64_t)fmin (off_ppm, (double)most_ppm));
  for (int32_t i = 0; i < f->n_kept; i++) {
    drop_set set = f->kept[i];
    int32_t at = i;
    set.ns += units_scale (set.stall_ns, ppm, 1000000) -
              units_scale (set.stall_ns, f->stall_ppm, 1000000);
    for (; at > 0 && set.ns < f->kept[at - 1].ns; at--)
      f->kept[at] = f->kept[at - 1];
    f->kept[at] = set;
  }
  f->stall_ppm = ppm;
}

bool find_take (finding *f, const variant *v, variant_value *seen, error *err) {
  assert (v && seen);
  if (!variant_try (f->t, v, f->o, 0, f->scratch, seen, err))
    return false;
  f->ticks += seen->ticks / solve_events_per_tick (seen->n_ops);
  if (seen->legal && is_better (seen, &f->value)) {
    f->value = *seen;
    f->best = *v;
  }
  return true;
}

bool find_try_kept (finding *f, int64_t most, error *err) {
  variant *best = &f->best;
  variant_value *value = &f->value;
  drop_set best_guess = { 0 };
  variant_value best_seen = { .step_ns = INT64_MAX };
  int64_t lacking = INT64_MAX;
  for (int32_t i = 0; i < f->n_kept && i < most; i++) {
    arena_mark mark = arena_here (f->arena);
    variant v;
    variant_value here;
    if (f->kept[i].compute_ns >= value->step_ns)
      continue;
    if (!find_variant (f, &f->kept[i], f->arena, &v, err) ||
        !variant_try (f->t, &v, f->o, 0, f->scratch, &here, err))
      return false;
    f->ticks += here.ticks / solve_events_per_tick (here.n_ops);
    log_say (f->o->log, LOG_DETAIL,
             "drops: guessed %.6g s, tried %.6g s, compute %.6g s, lacks %lld KiB",
             (double)f->kept[i].ns / 1e9,
             here.step_ns == INT64_MAX ? -1 : (double)here.step_ns / 1e9,
             (double)here.compute_ns / 1e9, (long long)here.over_bytes >> 10);
    int64_t lacks = here.step_ns < INT64_MAX ? 0
                    : here.over_bytes > 0    ? here.over_bytes
                                             : INT64_MAX;
    lacking = lacks < lacking ? lacks : lacking;
    if (here.step_ns < best_seen.step_ns) {
      best_seen = here;
      best_guess = f->kept[i];
    }
    bool better = here.legal && is_better (&here, value), bolder;
    int64_t hope_ns = here.step_ns == INT64_MAX ? INT64_MAX : here.compute_ns + here.step_ns;
    bolder = here.step_ns > here.compute_ns && hope_ns < f->bold_ns;
    if (bolder) {
      f->bold_ns = hope_ns;
      f->bold = v;
      f->bold_value = here;
    }
    if (better) {
      *value = here;
      *best = v;
    }
    if (!better && !bolder)
      arena_back (f->arena, mark);
  }
  f->lacking_bytes = lacking < INT64_MAX ? lacking : 0;
  learn (f, &best_guess, &best_seen);
  return true;
}

bool find_begin (finding *f, error *err) {
  assert (f->t && f->cut && f->o && f->arena && f->scratch);
  if (!trace_rewrite (f->t,
                      &(rewriting){ .sections = f->cut->sections,
                                    .n_sections = f->cut->n_sections,
                                    .section_ns = f->o->device->section_ns },
                      f->arena, &f->rw, err) ||
      !find_drops (f, err) ||
      !drops_pricing_of (f->rw.trace, &f->uses, f->o->device, f->o->recompute != RECOMPUTE_ONLY,
                         f->arena, &f->pricing, err))
    return false;
  int64_t gap_ppm = f->o->gap_ppm ? f->o->gap_ppm : find_number (f, TUNE_drops_gap_ppm);
  f->rw_ns = trace_total_ns (f->rw.trace);
  f->least_ns = f->guide && f->guide->fits ? f->guide->bound.lower_bound_ns : f->rw_ns;
  int64_t near_ns = f->least_ns + units_scale (f->least_ns, gap_ppm, 1000000);
  f->enough_ns = f->enough_ns > near_ns ? f->enough_ns : near_ns;
  f->now.chosen = NEW (f->arena, f->n_drops, uint8_t, err);
  f->order = NEW (f->arena, f->n_drops, int32_t, err);
  f->dropped = NEW (f->arena, f->n_drops, double, err);
  if (!f->now.chosen || !f->order || !f->dropped)
    return false;
  for (int i = 0; i < KEPT_SETS; i++)
    if (!(f->kept[i].chosen = NEW (f->arena, f->n_drops, uint8_t, err)))
      return false;
  if (f->guide && f->guide->bound.dropped)
    take_guide (f);
  return true;
}

uint8_t find_drop (const finding *f) {
  return f->keeps_first ? DROP_KEEPS : DROP_STAYS;
}

void find_copy (const finding *f, drop_set *to, const drop_set *from) {
  memcpy (to->chosen, from->chosen, (size_t)f->n_drops);
  to->near_ns = from->near_ns;
}

void find_forget (finding *f) {
  f->n_kept = 0;
}

bool find_is_enough (const finding *f) {
  return f->value.step_ns <= f->enough_ns;
}
