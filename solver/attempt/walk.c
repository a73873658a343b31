/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local search with the simulator as its judge.  A stall names its suspects: the copies that were
   on the link while an op waited.  One of them is made to move less, or to start at another time,
   or all that is away over an op with it is chosen anew; what is then over the budget is given by
   other gaps, and what is not needed any more comes back.  The walk may get a little worse on its
   way, by less and less.  */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/attempt/change.h"
#include "solver/attempt/parts.h"
#include "solver/attempt/search.h"
#include "trace/simulate/simulate.h"

typedef struct suspect {
  int32_t gap;
  int64_t weight;
} suspect;

typedef struct improving {
  search *s;
  arena *arena; /* of the picture of `now` */
  suspect *suspects;
  int32_t n_suspects;
  int64_t total; /* of their weights */
  int64_t *ends_ns;
  arena *walk;   /* of `parts` */
  candidate now; /* the candidate at which the walk is */
  change parts;  /* of the trial; settled: of `now` */
  int64_t from_ticks;
  int32_t accepted; /* since the last look */
  int32_t kicks;    /* trials that are accepted whatever they cost */
} improving;

/* ---- suspects ---- */

static int64_t overlap (span a, int64_t from_ns, int64_t to_ns, int64_t period_ns) {
  int64_t sum = 0;
  for (int turn = -1; turn <= 1; turn++) {
    int64_t low = a.start_ns + turn * period_ns, high = a.end_ns + turn * period_ns;
    low = low > from_ns ? low : from_ns;
    high = high < to_ns ? high : to_ns;
    sum += high > low ? high - low : 0;
  }
  return sum;
}

static int32_t gap_of_move (const gaps *g, const move *m) {
  for (int32_t i = g->of_unit[m->unit]; i < g->of_unit[m->unit + 1]; i++)
    if (g->at[i].after == m->out_after && g->at[i].before == m->in_before)
      return i;
  return NO_GAP;
}

/* Every move's weight: how long it was on the link while an op waited for the link. */
static bool accuse (improving *im, const plan *p, const timeline *t, error *err) {
  const gaps *g = &im->now.layout->step.gaps;
  const op *ops = im->s->rewritten->trace->ops;
  int64_t *weight = NEW (im->arena, g->count, int64_t, err);
  im->suspects = NEW (im->arena, g->count, suspect, err);
  if (!weight || !im->suspects)
    return false;
  /* Stalls as intervals, in order; copies are in order too, but a step's copies may lie in the
   * next. */
  span *stalls = NEW (im->arena, g->n_ops, span, err);
  int32_t n = 0;
  if (!stalls)
    return false;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t ready_ns = k ? t->ops[k - 1].end_ns + ops[k].gap_ns
                         : t->ops[g->n_ops - 1].end_ns - t->period_ns + ops[0].gap_ns;
    if (t->ops[k].start_ns > ready_ns)
      stalls[n++] = (span){ ready_ns, t->ops[k].start_ns };
  }
  for (int32_t i = 0; i < p->n_moves; i++) {
    int32_t gap = gap_of_move (g, &p->moves[i]);
    if (gap == NO_GAP)
      continue;
    for (int32_t j = 0; j < n; j++) {
      weight[gap] += overlap (t->ins[i], stalls[j].start_ns, stalls[j].end_ns, t->period_ns);
      if (!p->moves[i].clean)
        weight[gap] += overlap (t->outs[i], stalls[j].start_ns, stalls[j].end_ns, t->period_ns);
    }
  }
  im->n_suspects = 0;
  im->total = 0;
  for (int32_t i = 0; i < g->count; i++)
    if (weight[i] > 0) {
      im->suspects[im->n_suspects++] = (suspect){ i, weight[i] };
      im->total += weight[i];
    }
  return true;
}

static bool look (improving *im, error *err) {
  search *s = im->s;
  plan *p;
  timeline t;
  predicted cost;
  arena_free (im->arena);
  im->arena = arena_made (err);
  if (!im->arena)
    return false;
  arena *kept = s->arena;
  candidate best = im->now;
  s->arena = im->arena;
  bool ok = search_cost (s, &best, &p, err);
  s->arena = kept;
  if (!ok)
    return false;
  assert (p);
  sim_job job = { s->trace, s->rewritten, p };
  sim_options o = { .timeline_arena = im->arena, .events = &s->ticks };
  return simulate (&job, 1, &o, s->scratch, &cost, &t, err) && accuse (im, p, &t, err);
}

/* ---- one trial ---- */

static int32_t draw_suspect (improving *im) {
  int64_t at = random_between (&im->s->random, 0, im->total - 1);
  for (int32_t i = 0; i < im->n_suspects; i++) {
    at -= im->suspects[i].weight;
    if (at < 0)
      return im->suspects[i].gap;
  }
  return im->suspects[0].gap;
}

static int64_t number (const improving *im, tuning_id id) {
  return tuned (im->s->options->tuning, id);
}

static int32_t some_of (improving *im, int32_t n) {
  random_state *r = &im->s->random;
  return random_chance (r, number (im, TUNE_walk_whole_ppm)) ? n
                                                             : (int32_t)random_between (r, 1, n);
}

/* The suspect sends less. */
static bool send_less (improving *im, int32_t gap) {
  change *c = &im->parts;
  int32_t had = c->parts[gap];
  if (had == 0)
    return false;
  change_set (c, gap, had - some_of (im, had));
  return true;
}

/* It sends less, and what is about as large as that sends it. */
static bool exchange (improving *im, int32_t gap, int64_t room_bytes) {
  change *c = &im->parts;
  const gaps *g = &c->layout->step.gaps;
  if (!send_less (im, gap))
    return false;
  int32_t op = change_fullest (c, gap), other = NO_GAP;
  int64_t over = peaks_most (&c->level, op, op + 1) - room_bytes, best = INT64_MAX;
  for (int32_t i = 0; i < g->count && over > 0; i++) {
    int64_t left = i == gap || !gap_spans (&g->at[i], op) ? 0 : change_left (c, i);
    int64_t off = left > over ? left - over : over - left;
    off = units_scale (off, random_between (&im->s->random, 1, 3), 1);
    if (left > 0 && off < best) {
      best = off;
      other = i;
    }
  }
  if (other != NO_GAP)
    change_set (c, other, c->of[g->at[other].unit]);
  return true;
}

/* Some of the parts that are away over the fullest op of the suspect's gap are chosen anew. */
static bool choose_anew (improving *im, int32_t gap) {
  change *c = &im->parts;
  const gaps *g = &c->layout->step.gaps;
  int32_t op = change_fullest (c, gap);
  for (int32_t i = 0; i < g->count; i++)
    if (c->parts[i] > 0 && gap_spans (&g->at[i], op) && random_chance (&im->s->random, 200000))
      change_set (c, i, c->parts[i] - some_of (im, c->parts[i]));
  return true;
}

/* Its unit goes in more parts or in fewer. */
static bool cut_anew (improving *im, int32_t gap) {
  change *c = &im->parts;
  random_state *r = &im->s->random;
  int32_t unit = c->layout->step.gaps.at[gap].unit, of = c->of[unit];
  int64_t most = c->layout->step.units.at[unit].granules;
  if (c->layout->step.units.at[unit].whole)
    return false;
  most = most > MOST_SECTIONS ? MOST_SECTIONS : most;
  int64_t to = random_chance (r, 500000) ? of + random_between (r, -1, 1) * units_div_up (of, 2)
                                         : random_between (r, 1, most);
  to = to < 1 ? 1 : to > most ? most : to;
  if (to == of)
    return false;
  change_cut (c, unit, (int32_t)to);
  return true;
}

/* Its copy in starts at another time. */
static bool shift (improving *im, int32_t gap) {
  random_state *r = &im->s->random;
  const gaps *g = &im->now.layout->step.gaps;
  int32_t *at = &im->s->trial.not_before[gap], ops = gap_ops (g, &g->at[gap]);
  if (im->parts.parts[gap] == 0)
    return false;
  int32_t most = ops >> random_between (r, 0, 8);
  *at = *at != NO_WAIT && random_chance (r, 300000)
            ? NO_WAIT
            : g->at[gap].before - (int32_t)random_between (r, 0, most);
  return true;
}

static bool other_timing (improving *im) {
  candidate *c = &im->s->trial;
  random_state *r = &im->s->random;
  if (random_chance (r, 200000))
    c->by_release = !c->by_release;
  else if (c->early_ppm < 0 || random_chance (r, 100000))
    c->early_ppm = c->early_ppm < 0 ? (int64_t)2500 << random_between (r, 0, 5) : -1;
  else
    c->early_ppm = units_scale (c->early_ppm + 500, random_between (r, 500, 2000), 1000);
  return true;
}

/* Mostly as full as it is: what the schedule needs of air has shown. */
static int64_t draw_room (improving *im) {
  random_state *r = &im->s->random;
  int64_t now = peaks_most (&im->parts.level, 0, im->parts.level.count);
  if (random_chance (r, 800000))
    return now;
  return random_chance (r, 500000) ? im->now.layout->step.gaps.room_bytes
                                   : units_scale (now, 998000, 1000000);
}

/* False where the change leads to nothing. */
static bool change_something (improving *im) {
  search *s = im->s;
  random_state *r = &s->random;
  int64_t room = draw_room (im);
  int32_t gap = draw_suspect (im);
  int64_t kind = random_between (r, 0, 99);
  search_copy (&s->trial, &im->now);
  s->trial.wishes = NULL;
  s->trial.n_wishes = 0;
  if ((kind -= number (im, TUNE_walk_timing)) < 0)
    return other_timing (im);
  if ((kind -= number (im, TUNE_walk_shift)) < 0)
    return shift (im, gap);
  bool ok = (kind -= number (im, TUNE_walk_cut)) < 0        ? cut_anew (im, gap)
            : (kind -= number (im, TUNE_walk_anew)) < 0     ? choose_anew (im, gap)
            : (kind -= number (im, TUNE_walk_exchange)) < 0 ? exchange (im, gap, room)
                                                            : send_less (im, gap);
  if (!ok || !change_repair (&im->parts, r, room, gap))
    return false;
  change_prune (&im->parts, r, room);
  memcpy (s->trial.parts, im->parts.parts,
          (size_t)im->now.layout->step.gaps.count * sizeof *s->trial.parts);
  memcpy (s->trial.of, im->parts.of,
          (size_t)im->now.layout->step.units.count * sizeof *s->trial.of);
  return im->parts.n_touched > 0;
}

/* ---- the walk ---- */

/* How much longer than `now` a step may be: a part of what it is above the bound, and less and
 * less.
 */
static int64_t allowance_ns (const improving *im) {
  const search *s = im->s;
  int64_t left = s->limit_ticks - s->ticks, all = s->limit_ticks - im->from_ticks;
  int64_t above_ns = s->best.step_ns - s->lower_bound_ns;
  return left <= 0 || all <= 0 ? 0
                               : units_scale (units_scale (above_ns, left, all), 1,
                                              number (im, TUNE_walk_above_part));
}

static bool walk_from (improving *im, const candidate *from, error *err) {
  arena_free (im->walk);
  im->walk = arena_made (err);
  if (!im->walk)
    return false;
  search_copy (&im->now, from);
  im->accepted = 0;
  return change_begin (from->layout, from->of, from->parts, im->ends_ns, im->walk, &im->parts,
                       err) &&
         look (im, err);
}

/* From the best again, or from any rounding of any layout. */
static bool walk_anew (improving *im, error *err) {
  search *s = im->s;
  random_state *r = &s->random;
  im->kicks = (int32_t)random_between (r, 0, number (im, TUNE_walk_kicks));
  const layout *l = &s->layouts[random_between (r, 0, s->n_layouts - 1)];
  round_start start = (round_start)random_between (r, 0, ROUND_STARTS - 1);
  int64_t room_ppm = random_between (r, 900000, 1000000);
  bool fits =
      random_chance (r, number (im, TUNE_walk_far_ppm)) && (l->share || !round_is_guided (start));
  if (fits && !search_round (s, l, start, room_ppm, &fits, err))
    return false;
  if (fits) {
    s->trial.early_ppm = random_between (r, -1, 6) * 10000;
    s->trial.early_ppm = s->trial.early_ppm < 0 ? -1 : s->trial.early_ppm;
    s->trial.by_release = random_chance (r, 500000);
    if (!search_try (s, err))
      return false;
  }
  return walk_from (im, fits && s->trial.step_ns < INT64_MAX ? &s->trial : &s->best, err);
}

static bool start_walk (improving *im, error *err) {
  search *s = im->s;
  im->from_ticks = s->ticks;
  im->ends_ns = trace_ends (s->rewritten->trace, s->arena, err);
  return im->ends_ns && search_candidate (s, s->arena, &im->now, err) &&
         walk_from (im, &s->best, err);
}

/* One more trial; *better where it is the best so far. */
static bool step (improving *im, bool *better, error *err) {
  search *s = im->s;
  *better = false;
  bool changed = change_something (im);
  s->ticks++;
  if (!changed) {
    change_undo (&im->parts);
    return true;
  }
  s->trial.found_by = "search";
  int64_t most_ns = max_of (s->best.step_ns + allowance_ns (im), im->now.step_ns);
  s->most_ns = im->kicks > 0 ? 0 : most_ns;
  bool ok = search_cost (s, &s->trial, NULL, err);
  s->most_ns = 0;
  if (!ok)
    return false;
  bool kicked = im->kicks > 0 && s->trial.step_ns < INT64_MAX;
  im->kicks -= kicked;
  if (!kicked && s->trial.step_ns > most_ns) {
    change_undo (&im->parts);
    return true;
  }
  change_settle (&im->parts);
  search_copy (&im->now, &s->trial);
  *better = search_keep (s);
  if (!*better && ++im->accepted < number (im, TUNE_walk_look_after))
    return true;
  im->accepted = 0;
  return look (im, err);
}

bool search_walk (search *s, error *err) {
  assert (s->best.step_ns < INT64_MAX);
  improving im = { .s = s };
  bool ok = start_walk (&im, err), better;
  int64_t walk = number (&im, TUNE_walk_idle), most = number (&im, TUNE_walk_end);
  for (int64_t idle = 1; ok && !search_is_over (s) && idle < most; idle++) {
    if (idle % walk == 0 || im.total == 0) {
      ok = walk_anew (&im, err);
      continue;
    }
    ok = step (&im, &better, err);
    idle = better ? 0 : idle;
  }
  arena_free (im.arena);
  arena_free (im.walk);
  return ok;
}
