#include "solver/recompute/recompute.h"

#include <string.h>

#include "base/units.h"
#include "solver/recompute/find.h"
#include "solver/place/schedule.h"

/* Adds the ops that are over the budget, or close to it: copies made again may push them over. */
static bool mark_over (const finding *f, int64_t granule_bytes, int64_t pool_below_bytes,
                       uint8_t *over, error *err) {
  units u;
  gaps g;
  if (!units_of (f->rw.trace, NULL, 0, granule_bytes, pool_below_bytes, f->arena, &u, err) ||
      !gaps_of (&u, granule_bytes, f->o->budget_bytes, f->arena, &g, err))
    return false;
  for (int32_t k = 0; k < g.n_ops; k++)
    over[k] |= g.base_bytes[k] - g.unused_bytes > g.room_bytes - g.room_bytes / 16;
  return true;
}

/* What idles over an op that is over the budget, by bytes or in granules and the pool. */
static bool find_drops (finding *f, error *err) {
  const trace *t = f->rw.trace;
  int64_t pool_below_bytes;
  uint8_t *over = NEW (f->arena, t->n_ops, uint8_t, err), *cheap;
  if (!over || !uses_of (t, f->arena, &f->uses, err) || !mark_over (f, 1, 0, over, err) ||
      !schedule_pool (t, NULL, 0, f->o->device->granule_bytes, f->arena, &pool_below_bytes, NULL,
                      err) ||
      !mark_over (f, f->o->device->granule_bytes, pool_below_bytes, over, err) ||
      !recompute_may_drop (t, f->o, f->arena, &cheap, err))
    return false;
  return drops_find (t, over, cheap, f->keeps, f->arena, &f->drops, &f->n_drops, &f->barred, err);
}

bool find_variant (finding *f, const drop_set *set, arena *a, variant *out, error *err) {
  drop_choice c = { .chosen = set->chosen, .near_ns = set->near_ns, .keeps = f->keeps };
  *out = *f->cut;
  out->name = "recompute";
  return drops_entries (f->rw.trace, &f->uses, f->drops, f->n_drops, &c, a, &out->recomputes,
                        &out->n_recomputes, err);
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

/* Of a byte that cannot leave: several times what the link takes, or, where nothing does, as if the
   whole budget were several steps. */
static double dear_ns (const finding *f) {
  enum { DEAR = 8 };
  return DEAR * (f->pricing.swaps ? f->pricing.out_ns + f->pricing.in_ns
                                  : (double)f->rw_ns / (double)f->o->budget_bytes);
}

bool find_price (finding *f, error *err) {
  arena_mark mark = arena_here (f->scratch);
  drops_price price;
  recompute *entries;
  int32_t n;
  drop_choice c = { .chosen = f->now.chosen, .near_ns = f->now.near_ns, .keeps = f->keeps };
  bool ok = drops_entries (f->rw.trace, &f->uses, f->drops, f->n_drops, &c, f->scratch, &entries,
                           &n, err) &&
            drops_price_of (&f->pricing, entries, n, f->room_bytes, f->scratch, &price, err);
  arena_back (f->scratch, mark);
  if (!ok)
    return false;
  f->priced++;
  /* Of what is simulated, an op takes longer; without a link, it is only counted. */
  f->ticks += price.n_ops / (f->pricing.swaps ? 4 : 16);
  f->now.compute_ns = price.compute_ns;
  f->now.stall_ns = price.stall_ns;
  f->now.ns = price.compute_ns + units_scale (price.stall_ns, f->stall_ppm, 1000000);
  if (price.lacking_bytes > 0)
    f->now.ns += price.compute_ns / 4 + (int64_t)((double)price.lacking_bytes * dear_ns (f));
  remember (f);
  return true;
}

bool find_is_wild (const finding *f) {
  return f->now.compute_ns / 2 > f->rw_ns;
}

static bool is_stopped (const finding *f) {
  return f->ticks >= f->limit_ticks || (f->o->stop && f->o->stop (f->o->stop_context));
}

/* What is guessed is left some room to be wrong. */
bool find_is_over (const finding *f) {
  int64_t near_ns = f->least_ns + (f->enough_ns - f->least_ns) / 2;
  return is_stopped (f) || (f->n_kept && f->kept[0].ns <= near_ns);
}

/* How much of each drop the guide would drop: both are in order of tensors, then of ops. */
static void take_guide (finding *f) {
  const gaps *g = &f->guide->gaps;
  for (int32_t i = 0; i < f->n_drops; i++)
    for (int32_t k = g->of_unit[f->drops[i].tensor]; k < g->of_unit[f->drops[i].tensor + 1]; k++)
      if (g->at[k].after == f->drops[i].after && g->at[k].before == f->drops[i].before)
        f->dropped[i] = f->guide->bound.dropped[k];
}

/* What does not fit yet is better the less it is over the budget. */
static bool is_better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->step_ns == INT64_MAX && a->over_bytes < b->over_bytes;
}

/* A price takes what is over the memory to go out and come back while all waits, which is too much
   where one comes in as another goes: by how much depends on the network, and plans show it. */
static void learn (finding *f, const drop_set *guess, const variant_value *seen) {
  enum { LEAST_PPM = 100000, MOST_PPM = 2000000, PART = 64 };
  int64_t stall_ns = seen->step_ns - seen->compute_ns;
  if (seen->step_ns == INT64_MAX || guess->stall_ns <= guess->compute_ns / PART)
    return;
  int64_t ppm = (int64_t)((double)stall_ns / (double)guess->stall_ns * 1e6);
  ppm = ppm < LEAST_PPM ? LEAST_PPM : ppm > MOST_PPM ? MOST_PPM : ppm;
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

/* The kept sets, as plans; the best becomes the result where it is better. */
static bool try_kept (finding *f, int32_t most, variant *best, variant_value *value, error *err) {
  drop_set best_guess = { 0 };
  variant_value best_seen = { .step_ns = INT64_MAX };
  for (int32_t i = 0; i < f->n_kept && i < most; i++) {
    arena_mark mark = arena_here (f->arena);
    variant v;
    variant_value here;
    if (f->kept[i].compute_ns >= value->step_ns)
      continue;
    if (!find_variant (f, &f->kept[i], f->arena, &v, err) ||
        !variant_try (f->t, &v, f->o, f->scratch, &here, err))
      return false;
    f->ticks += here.ticks / solve_events_per_tick (here.n_ops);
    log_say (f->o->log, LOG_DETAIL, "drops: guessed %.6g s, tried %.6g s, compute %.6g s",
             (double)f->kept[i].ns / 1e9,
             here.step_ns == INT64_MAX ? -1 : (double)here.step_ns / 1e9,
             (double)here.compute_ns / 1e9);
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
  learn (f, &best_guess, &best_seen);
  return true;
}

bool find_begin (finding *f, error *err) {
  enum { GAP_PPM = 2500 }; /* where none is asked for */
  if (!trace_rewrite (f->t, f->cut->sections, f->cut->n_sections, NULL, 0, f->o->device->section_ns,
                      f->arena, &f->rw, err) ||
      !find_drops (f, err) ||
      !drops_pricing_of (f->rw.trace, &f->uses, f->o->device, f->o->recompute != RECOMPUTE_ONLY,
                         f->arena, &f->pricing, err))
    return false;
  int64_t gap_ppm = f->o->gap_ppm ? f->o->gap_ppm : GAP_PPM;
  f->rw_ns = trace_total_ns (f->rw.trace);
  f->least_ns = f->guide && f->guide->fits ? f->guide->bound.lower_bound_ns : f->rw_ns;
  f->enough_ns = f->least_ns + units_scale (f->least_ns, gap_ppm, 1000000);
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

static void copy_set (const finding *f, drop_set *to, const drop_set *from) {
  memcpy (to->chosen, from->chosen, (size_t)f->n_drops);
  to->near_ns = from->near_ns;
}

static void forget (finding *f) {
  f->n_kept = 0;
}

static bool is_enough (const finding *f, const variant_value *value) {
  return value->step_ns <= f->enough_ns;
}

/* All starts; by classes from the best of them; then a while from the best two on. */
static bool look_for_sets (finding *f, variant *best, variant_value *value, error *err) {
  drop_set second = { .chosen = NEW (f->arena, f->n_drops, uint8_t, err) };
  if (!second.chosen || !find_every (f, err) || !find_thresholds (f, err) ||
      !find_segments (f, f->ticks + (f->limit_ticks - f->ticks) / 4, err))
    return false;
  log_say (f->o->log, LOG_DETAIL, "drops: %d candidates, %d sets, %.6g s, %lld ticks", f->n_drops,
           f->priced, (double)f->kept[0].ns / 1e9, (long long)f->ticks);
  copy_set (f, &second, &f->kept[0]);
  int64_t left = f->limit_ticks - f->ticks;
  if (!find_by_classes (f, &second, f->ticks + left / 3, err) || !try_kept (f, 2, best, value, err))
    return false;
  if (is_enough (f, value))
    return true;
  copy_set (f, &second, &f->kept[f->n_kept > 1]);
  left = f->limit_ticks - f->ticks;
  return find_climb (f, &f->kept[0], f->ticks + left / 4, err) &&
         find_climb (f, &second, f->ticks + left / 8, err);
}

/* The guess leans to one side or the other, by how much depends on the network: the room at which
   sets are priced goes up as long as plans get better by it, and else back by halves. */
static bool tune_room (finding *f, variant *best, variant_value *value, error *err) {
  enum { ROUNDS = 6, MOST_IDLE = 2, FIRST_PPM = 15000 };
  int64_t step = units_scale (f->o->budget_bytes, FIRST_PPM, 1000000);
  drop_set at = { .chosen = NEW (f->arena, f->n_drops, uint8_t, err) };
  bool better = false;
  int idle = 0;
  if (!at.chosen || !try_kept (f, KEPT_SETS / 2, best, value, err))
    return false;
  for (int i = 0; i < ROUNDS && idle < MOST_IDLE && !is_enough (f, value) && !is_stopped (f); i++) {
    int64_t before_ns = value->step_ns;
    if (i == 0 || better)
      copy_set (f, &at, &f->kept[0]);
    f->room_bytes += step;
    forget (f);
    if (!find_climb (f, &at, f->ticks + (f->limit_ticks - f->ticks) / (ROUNDS - i), err) ||
        !try_kept (f, 2, best, value, err))
      return false;
    log_say (f->o->log, LOG_DETAIL, "drops: %d sets, room %lld MiB, guessed %.6g s, %lld ticks",
             f->priced, (long long)(f->room_bytes >> 20), (double)f->kept[0].ns / 1e9,
             (long long)f->ticks);
    better = value->step_ns < before_ns;
    idle = better ? 0 : idle + 1;
    if (!better) {
      f->room_bytes -= step;
      step = units_scale (f->o->budget_bytes, FIRST_PPM >> (i + 1), 1000000);
      step = value->step_ns > value->compute_ns ? -step : step; /* it stalls: too bold already */
    }
  }
  return true;
}

/* Sets were guessed to fit that do not, since granules and the pool of small tensors take more than
   was counted: less room by what they lack, until one does.  No limit is met before. */
static bool make_fit (finding *f, bool cuts, variant *best, variant_value *value, error *err) {
  enum { ROUNDS = 12, SETS = 64, LEAST = 32 }; /* a part of the budget */
  int64_t least = f->o->budget_bytes / LEAST, room_bytes = f->room_bytes;
  int64_t limit_ticks = f->limit_ticks, lacking = value->over_bytes;
  bool ok = true;
  for (int i = 0; ok && i < ROUNDS && value->step_ns == INT64_MAX && lacking > 0; i++) {
    int32_t n;
    f->room_bytes -= lacking > least ? lacking : least;
    if (f->room_bytes <= 0 || (f->o->stop && f->o->stop (f->o->stop_context)))
      break;
    f->limit_ticks = f->ticks + SETS * (int64_t)f->rw.trace->n_ops / 4;
    value->over_bytes = INT64_MAX; /* of sets for this room */
    forget (f);
    ok = (cuts ? find_segments (f, f->limit_ticks, err) : find_prefixes (f, BY_OWN, &n, err)) &&
         try_kept (f, KEPT_SETS, best, value, err);
    lacking = value->over_bytes < INT64_MAX ? value->over_bytes : 0;
  }
  f->limit_ticks = limit_ticks;
  if (value->step_ns == INT64_MAX)
    f->room_bytes = room_bytes;
  return ok;
}

bool recompute_search (const trace *t, const variant *cut, const solve_options *o,
                       const recompute_program *guide, bool keeps, int64_t limit_ticks, arena *a,
                       recompute_result *out, error *err) {
  static const variant nothing = { .name = "swap" };
  enum { TRY = 4, ROOM_PPM = 995000 };
  finding f = { .t = t, .cut = cut ? cut : &nothing, .o = o, .arena = a, .guide = guide };
  f.keeps = keeps;
  f.limit_ticks = limit_ticks ? limit_ticks : o->limit_ticks ? o->limit_ticks : SOLVE_LIMIT_TICKS;
  f.bold = *f.cut;
  f.bold_ns = INT64_MAX;
  f.bold_value.step_ns = INT64_MAX;
  f.stall_ppm = 1000000;
  f.room_bytes = units_scale (o->budget_bytes, ROOM_PPM, 1000000);
  *out = (recompute_result){ .best = *f.cut, .greedy = *f.cut };
  f.scratch = arena_new (0);
  bool ok = f.scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok && find_begin (&f, err) && variant_try (t, f.cut, o, f.scratch, &out->value, err) &&
       find_greedy (&f, err);
  out->greedy_value = out->value;
  ok = ok && try_kept (&f, TRY, &out->greedy, &out->greedy_value, err) &&
       make_fit (&f, false, &out->greedy, &out->greedy_value, err);
  out->greedy.name = "greedy recompute";
  out->best = out->greedy;
  out->value = out->greedy_value;
  if (ok && !is_enough (&f, &out->value))
    ok = look_for_sets (&f, &out->best, &out->value, err) &&
         make_fit (&f, true, &out->best, &out->value, err) &&
         tune_room (&f, &out->best, &out->value, err);
  out->bold = f.bold;
  out->bold_value = f.bold_value;
  out->candidates = f.n_drops;
  out->barred = f.barred;
  out->tried = f.priced;
  out->ticks = f.ticks;
  arena_free (f.scratch);
  return ok;
}
