/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Branch and bound over all that may move in a step of few ops: in how many parts each unit is, and
   which of them are away in which of its gaps.  Units are decided one after the other, those with
   most to move first; a choice is left where what the step takes with it is no less than the best
   plan.  Few parts are tried first, then more. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/attempt/least.h"
#include "solver/attempt/search.h"

typedef struct choosing {
  search *s;
  const layout *l;
  const gaps *g;
  int32_t *order; /* units that may move */
  int32_t n_units;
  int32_t most_parts, had_parts; /* of a unit: in this round, and in the one before */
  int64_t *level;                /* as least_request's */
  mover *movers;
  int32_t n_movers, movers_room;
  bool all;   /* gaps over no op that is over the budget too: places may want them */
  bool turns; /* of copies that may run at once, any may go first */
  int64_t compute_ns, until_ticks;
} choosing;

/* ---- units ---- */

static bool counts (const choosing *c, int32_t gap) {
  return c->all || c->g->at[gap].useful;
}

static bool may_move (const choosing *c, int32_t unit) {
  for (int32_t i = c->g->of_unit[unit]; i < c->g->of_unit[unit + 1]; i++)
    if (counts (c, i))
      return c->g->units->at[unit].bytes > 0 && !c->g->units->at[unit].pinned;
  return false;
}

static int by_room (const void *a, const void *b, void *context) {
  const gaps *g = context;
  const int32_t *x = a, *y = b;
  int64_t of_x = gaps_room (g, *x), of_y = gaps_room (g, *y);
  return of_x != of_y ? (of_x > of_y ? -1 : 1) : order_int32 (x, y);
}

static bool list_units (choosing *c, error *err) {
  const gaps *g = c->g;
  c->order = NEW (c->s->scratch, g->units->count, int32_t, err);
  c->level = NEW (c->s->scratch, g->n_ops, int64_t, err);
  if (!c->order || !c->level)
    return false;
  for (int32_t u = 0; u < g->units->count; u++)
    if (may_move (c, u))
      c->order[c->n_units++] = u;
  qsort_r (c->order, (size_t)c->n_units, sizeof *c->order, by_room, (void *)g);
  /* each one as if it were away wherever it can be, until it is decided */
  memcpy (c->level, g->base_bytes, (size_t)g->n_ops * sizeof *c->level);
  for (int32_t i = 0; i < g->count; i++)
    for (int32_t k = 0; counts (c, i) && k < g->n_ops; k++)
      c->level[k] -= gap_spans (&g->at[i], k) ? gaps_room (g, g->at[i].unit) : 0;
  return true;
}

static int32_t most_parts (const unit_info *u, int32_t most) {
  return u->whole || u->granules < 2 ? 1 : (int32_t)min_of (u->granules, most);
}

static int32_t most_of_all (const choosing *c) {
  int32_t most = 1;
  for (int32_t i = 0; i < c->n_units; i++)
    most = (int32_t)max_of (most,
                            most_parts (&c->g->units->at[c->order[i]],
                                        (int32_t)tuned (c->s->options->tuning, TUNE_pieces_parts)));
  return most;
}

/* ---- one choice ---- */

static bool is_away (const candidate *x, int32_t gap, int32_t part, int32_t of) {
  return x->heads[gap] ? part < x->parts[gap] : part >= of - x->parts[gap];
}

/* The host has the part's bytes already: nobody ever writes them, or it was away before, and nobody
   wrote it since. */
static bool is_clean (const choosing *c, int32_t gap, int32_t part, int32_t of) {
  const gaps *g = c->g;
  int32_t from = gap;
  for (int32_t i = g->of_unit[g->at[gap].unit]; i < g->of_unit[g->at[gap].unit + 1]; i++) {
    from = g->at[from].clean;
    if (from == NO_GAP)
      return false;
    if (from == gap || is_away (&c->s->trial, from, part, of))
      return from != gap || g->units->at[g->at[gap].unit].persistent;
  }
  return true;
}

/* Sums of them stay numbers; less is a bound too. */
static int64_t copy_ns (const device *d, int64_t bytes, int64_t rate) {
  const int64_t most_ns = (int64_t)1 << 44;
  return min_of (most_ns, d->link.copy_ns) +
         min_of (most_ns, units_scale (bytes, 1000000000, rate));
}

/* False: too many movers; the choice is left without a bound. */
static bool add_movers (choosing *c, int32_t unit) {
  const device *d = c->s->options->device;
  const gaps *g = c->g;
  const unit_info *u = &g->units->at[unit];
  link_rates r = device_rates (&d->link, d->share_ppm);
  int32_t of = c->s->trial.of[unit];
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++)
    for (int32_t p = 0; p < of; p++) {
      int64_t room =
          (unit_part_first (u, p + 1, of) - unit_part_first (u, p, of)) * g->granule_bytes;
      if (!counts (c, i))
        continue;
      if (!is_away (&c->s->trial, i, p, of)) {
        for (int32_t k = 0; k < g->n_ops; k++)
          c->level[k] += gap_spans (&g->at[i], k) ? room : 0;
        continue;
      }
      if (c->n_movers == c->movers_room)
        return false;
      int64_t bytes = unit_part_bytes (u, g->granule_bytes, p, of);
      c->movers[c->n_movers++] =
          (mover){ .gap = i,
                   .room_bytes = room,
                   .out_ns = is_clean (c, i, p, of) ? 0 : copy_ns (d, bytes, r.out_alone),
                   .in_ns = copy_ns (d, bytes, r.in_alone) };
    }
  return true;
}

static bool has_hope (choosing *c, bool *hope, error *err) {
  int64_t ns;
  least_request q = { .gaps = c->g,
                      .level = c->level,
                      .room_bytes = c->g->room_bytes,
                      .movers = c->movers,
                      .n_movers = c->n_movers,
                      .compute_ns = c->compute_ns };
  if (!least_step_ns (&q, c->s->scratch, &ns, err))
    return false;
  c->s->ticks += (int64_t)c->g->n_ops * c->g->n_ops / 2;
  *hope = ns < c->s->best.step_ns;
  return true;
}

static bool is_past (const choosing *c) {
  return c->s->ticks >= c->until_ticks || search_is_over (c->s);
}

/* ---- all choices ---- */

static bool decide (choosing *c, int32_t at, error *err);

/* With this unit as the trial has it. */
static bool try_unit (choosing *c, int32_t at, error *err) {
  search *s = c->s;
  bool hope = false, ok = true;
  int32_t n_movers = c->n_movers;
  arena_mark mark = arena_here (s->scratch);
  int64_t *level = NEW (s->scratch, c->g->n_ops, int64_t, err);
  if (!level)
    return false;
  memcpy (level, c->level, (size_t)c->g->n_ops * sizeof *level);
  if (add_movers (c, c->order[at]))
    ok = has_hope (c, &hope, err);
  ok = ok && (!hope || decide (c, at + 1, err));
  memcpy (c->level, level, (size_t)c->g->n_ops * sizeof *level);
  c->n_movers = n_movers;
  arena_back (s->scratch, mark);
  return ok;
}

static bool are_alike (const choosing *c, int32_t unit, int32_t of) {
  const unit_info *u = &c->g->units->at[unit];
  return u->granules % of == 0 && u->granules * c->g->granule_bytes == u->bytes;
}

/* The parts of gap i and of those behind it. Parts that are alike leave from the end where no gap
   has told them apart. */
static bool choose_gaps (choosing *c, int32_t at, int32_t i, bool apart, error *err) {
  candidate *x = &c->s->trial;
  int32_t unit = c->order[at], of = x->of[unit];
  if (is_past (c))
    return true;
  if (i == c->g->of_unit[unit + 1])
    return try_unit (c, at, err);
  int32_t most = counts (c, i) ? of : 0;
  bool ok = true;
  for (int32_t n = 0; ok && n <= most; n++)
    for (int heads = 0; ok && heads < (apart && n > 0 && n < of ? 2 : 1); heads++) {
      x->parts[i] = n;
      x->heads[i] = heads;
      ok = choose_gaps (c, at, i + 1, apart || (n > 0 && n < of), err);
    }
  x->parts[i] = 0;
  x->heads[i] = 0;
  return ok;
}

/* This round adds it: some unit has more parts than in the round before. */
static bool is_new (const choosing *c) {
  for (int32_t i = 0; i < c->n_units; i++)
    if (c->s->trial.of[c->order[i]] > c->had_parts)
      return true;
  return c->had_parts == 0;
}

/* Copies of an earlier gap run where this one's may. */
static bool has_rival (const choosing *c, int32_t gap) {
  const gaps *g = c->g;
  const candidate *x = &c->s->trial;
  for (int32_t i = 0; x->parts[gap] && i < gap; i++)
    if (x->parts[i] && (g->at[i].after == g->at[gap].after || g->at[i].before == g->at[gap].before))
      return true;
  return false;
}

static bool try_turns (choosing *c, int32_t gap, error *err) {
  candidate *x = &c->s->trial;
  while (gap < c->g->count && !has_rival (c, gap))
    gap++;
  if (gap == c->g->count || is_past (c))
    return search_timings (c->s, err);
  bool ok = true;
  for (int32_t turn = 0; ok && turn >= -1; turn--) {
    x->turn[gap] = turn;
    ok = try_turns (c, gap + 1, err);
  }
  x->turn[gap] = 0;
  return ok;
}

static bool decide (choosing *c, int32_t at, error *err) {
  candidate *x = &c->s->trial;
  if (at == c->n_units)
    return !is_new (c) || (c->turns ? try_turns (c, 0, err) : search_timings (c->s, err));
  int32_t unit = c->order[at], most = most_parts (&c->g->units->at[unit], c->most_parts);
  int32_t before = x->of[unit];
  bool ok = true;
  for (int32_t of = 1; ok && of <= most && !is_past (c); of++) {
    x->of[unit] = of;
    ok = choose_gaps (c, at, c->g->of_unit[unit], of > 1 && !are_alike (c, unit, of), err);
  }
  x->of[unit] = before;
  return ok;
}

/* Few parts first, then more. */
static bool choose_with (choosing *c, bool all, bool turns, error *err) {
  arena_mark mark = arena_here (c->s->scratch);
  c->all = all;
  c->turns = turns;
  c->n_units = 0;
  c->had_parts = 0;
  bool ok = list_units (c, err);
  int32_t most = ok ? most_of_all (c) : 0;
  for (c->most_parts = 1; ok && c->most_parts <= most && !is_past (c); c->most_parts++) {
    ok = decide (c, 0, err);
    c->had_parts = c->most_parts;
  }
  arena_back (c->s->scratch, mark);
  return ok;
}

static bool choose_in (search *s, const layout *l, int64_t until_ticks, error *err) {
  choosing c = { .s = s,
                 .l = l,
                 .g = &l->step.gaps,
                 .compute_ns = trace_total_ns (s->rewritten->trace),
                 .movers_room = (int32_t)tuned (s->options->tuning, TUNE_pieces_moves),
                 .until_ticks = until_ticks };
  arena_mark mark = arena_here (s->scratch);
  c.movers = NEW (s->scratch, c.movers_room, mover, err);
  search_clear (&s->trial, l);
  s->trial.found_by = "every part";
  bool ok = c.movers && choose_with (&c, false, false, err) && choose_with (&c, true, false, err) &&
            choose_with (&c, false, true, err);
  arena_back (s->scratch, mark);
  return ok;
}

/* Layouts without groups differ in their pool alone. */
static bool is_known (const search *s, int32_t i) {
  for (int32_t j = 0; j < i; j++)
    if (!s->layouts[j].n_groups && s->layouts[j].pool_below_bytes == s->layouts[i].pool_below_bytes)
      return true;
  return s->layouts[i].n_groups > 0;
}

bool search_pieces (search *s, error *err) {
  assert (s->n_layouts > 0);
  int64_t part = tuned (s->options->tuning, TUNE_pieces_part);
  for (int32_t i = s->n_layouts - 1; i >= 0; i--)
    if (!is_known (s, i) && !search_is_over (s) &&
        !choose_in (s, &s->layouts[i], s->ticks + (s->limit_ticks - s->ticks) / part, err))
      return false;
  return true;
}
