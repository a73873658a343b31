/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/search.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "solver/attempt/robust.h"

enum { SEEN_ROOM = 1024 };

static int64_t number (const search *s, tuning_id id) {
  return tuned (s->options->tuning, id);
}

void search_clear (candidate *c, const layout *l) {
  assert (c->of && c->parts && c->heads && c->not_before);
  c->layout = l;
  memcpy (c->of, l->of, (size_t)l->step.units.count * sizeof *c->of);
  memset (c->parts, 0, (size_t)l->step.gaps.count * sizeof *c->parts);
  memset (c->heads, 0, (size_t)l->step.gaps.count * sizeof *c->heads);
  memset (c->turn, 0, (size_t)l->step.gaps.count * sizeof *c->turn);
  for (int32_t i = 0; i < l->step.gaps.count; i++)
    c->not_before[i] = NO_WAIT;
  c->heads_first = false;
  c->wishes = NULL;
  c->n_wishes = 0;
  c->step_ns = INT64_MAX;
}

bool search_candidate (const search *s, arena *a, candidate *out, error *err) {
  int32_t gaps = 0, units = 0;
  for (int32_t i = 0; i < s->n_layouts; i++) {
    gaps = s->layouts[i].step.gaps.count > gaps ? s->layouts[i].step.gaps.count : gaps;
    units = s->layouts[i].step.units.count > units ? s->layouts[i].step.units.count : units;
  }
  *out = (candidate){ .of = NEW (a, units, int32_t, err),
                      .parts = NEW (a, gaps, int32_t, err),
                      .heads = NEW (a, gaps, int32_t, err),
                      .turn = NEW (a, gaps, int32_t, err),
                      .not_before = NEW (a, gaps, int32_t, err) };
  if (!out->of || !out->parts || !out->heads || !out->turn || !out->not_before)
    return false;
  search_clear (out, s->layouts);
  return true;
}

void search_copy (candidate *to, const candidate *from) {
  assert (from->layout);
  size_t size = (size_t)from->layout->step.gaps.count * sizeof (int32_t);
  memcpy (to->parts, from->parts, size);
  memcpy (to->heads, from->heads, size);
  memcpy (to->turn, from->turn, size);
  memcpy (to->not_before, from->not_before, size);
  memcpy (to->of, from->of, (size_t)from->layout->step.units.count * sizeof (int32_t));
  to->layout = from->layout;
  to->early_ppm = from->early_ppm;
  to->by_release = from->by_release;
  to->heads_first = from->heads_first;
  to->wishes = from->wishes;
  to->n_wishes = from->n_wishes;
  to->step_ns = from->step_ns;
  to->found_by = from->found_by;
}

bool search_begin (search *s, error *err) {
  assert (s->n_layouts > 0);
  s->random = random_seed (s->options->seed);
  s->ticks = s->tried = 0;
  s->stopped = false;
  const char *known = s->options->trace_digest;
  if (known)
    memcpy (s->digest, known, sizeof s->digest);
  return (known || trace_digest (s->trace, s->digest, err)) &&
         search_candidate (s, s->arena, &s->best, err) &&
         search_candidate (s, s->arena, &s->trial, err);
}

bool search_widen (search *s, error *err) {
  assert (s->n_layouts > 0);
  candidate best;
  if (!search_candidate (s, s->arena, &best, err) ||
      !search_candidate (s, s->arena, &s->trial, err))
    return false;
  search_copy (&best, &s->best);
  s->best = best;
  return true;
}

/* The wishes of one gap, the last part first, or the other way round. */
static void wish_for (const candidate *c, int32_t gap, wish *at) {
  int32_t n = c->parts[gap];
  for (int32_t part = 0; part < n; part++) {
    at[part].in_not_before = c->not_before[gap];
    if (c->heads[gap])
      at[part].part = n - 1 - part;
  }
  for (int32_t first = 0, last = n - 1; c->heads_first && first < last; first++, last--) {
    int32_t part = at[first].part;
    at[first].part = at[last].part;
    at[last].part = part;
  }
}

/* Those whose turn is sooner first; else by gaps. */
static bool sort_by_turn (const candidate *c, wish *wishes, int32_t count, arena *a, error *err) {
  const gaps *g = &c->layout->step.gaps;
  int32_t low = 0, high = 0, n = 0;
  for (int32_t i = 0; i < g->count; i++) {
    low = c->turn[i] < low ? c->turn[i] : low;
    high = c->turn[i] > high ? c->turn[i] : high;
  }
  wish *sorted = low == high ? wishes : NEW (a, count, wish, err);
  for (int32_t turn = low; sorted && low < high && turn <= high; turn++)
    for (int32_t i = 0, at = 0; i < g->count; at += c->parts[i++])
      for (int32_t part = 0; c->turn[i] == turn && part < c->parts[i]; part++)
        sorted[n++] = wishes[at + part];
  if (n)
    memcpy (wishes, sorted, (size_t)n * sizeof *wishes);
  return sorted;
}

bool search_wishes (const candidate *c, arena *a, wish **out, int32_t *count, error *err) {
  const gaps *g = &c->layout->step.gaps;
  *count = c->n_wishes;
  if (c->wishes) {
    *out = NEW (a, c->n_wishes, wish, err);
    if (*out)
      memcpy (*out, c->wishes, (size_t)c->n_wishes * sizeof **out);
    return *out;
  }
  rounding r = { .gaps = g, .of = c->of, .parts = c->parts };
  if (!round_wishes (&r, a, out, count, err))
    return false;
  for (int32_t i = 0, at = 0; i < g->count; at += c->parts[i++])
    wish_for (c, i, *out + at);
  return sort_by_turn (c, *out, *count, a, err);
}

static bool cost (search *s, candidate *c, plan **made, error *err) {
  arena_mark mark = arena_here (s->scratch);
  wish *wishes;
  int32_t count;
  error why = { 0 };
  s->schedule.early_ppm = c->early_ppm;
  s->schedule.by_release = c->by_release;
  s->schedule.pool_below_bytes = c->layout->pool_below_bytes;
  s->schedule.most_ns = made ? 0 : s->most_ns;
  if (!search_wishes (c, s->scratch, &wishes, &count, err))
    return false;
  const variant *v = s->variant;
  schedule_request wanted = { .original = s->trace,
                              .rewritten = s->rewritten,
                              .sections = v->sections,
                              .n_sections = v->n_sections,
                              .recomputes = v->recomputes,
                              .n_recomputes = v->n_recomputes,
                              .groups = c->layout->groups,
                              .n_groups = c->layout->n_groups,
                              .units = &c->layout->step.units,
                              .device = s->options->device,
                              .wishes = wishes,
                              .n_wishes = count,
                              .options = &s->schedule,
                              .short_bytes = &c->short_bytes };
  plan *p = schedule_simulated (&wanted, made ? s->arena : s->scratch, s->scratch, &s->ticks, &why);
  s->tried++;
  s->ticks += 2 * (int64_t)c->layout->step.gaps.n_ops + 4 * (int64_t)count;
  bool ok = p || why.code == ERR_infeasible;
  if (!ok)
    error_set (err, why.code, "%s", why.text);
  c->step_ns = p ? p->predicted.step_ns : INT64_MAX;
  if (p && s->robust && !made)
    ok = robust_offer (s->robust, s, c, p, err);
  if (made)
    *made = p;
  arena_back (s->scratch, mark);
  return ok;
}

/* ---- candidates that were tried ---- */

/* Layouts without groups differ in their parts alone. */
static uint64_t hash_of (const search *s, const candidate *c) {
  const gaps *g = &c->layout->step.gaps;
  uint64_t h = random_mix (1, c->layout->n_groups ? c->layout - s->layouts : -1);
  h = random_mix (random_mix (random_mix (h, c->layout->pool_below_bytes), c->early_ppm),
                  c->by_release);
  h = c->heads_first ? random_mix (h, 2) : h;
  for (int32_t i = 0; i < c->n_wishes; i++)
    h = random_mix (random_mix (random_mix (h, c->wishes[i].out_turn), c->wishes[i].in_turn),
                    c->wishes[i].in_not_before);
  for (int32_t i = 0; i < g->count; i++)
    if (c->parts[i])
      h = random_mix (random_mix (random_mix (random_mix (random_mix (h, i), c->turn[i]),
                                              c->heads[i] ? -c->parts[i] : c->parts[i]),
                                  c->of[g->at[i].unit]),
                      c->not_before[i]);
  return h ? h : 1;
}

static bool put_seen (uint64_t *seen, int64_t room, uint64_t h) {
  int64_t i = (int64_t)(h & (uint64_t)(room - 1));
  for (; seen[i]; i = (i + 1) & (room - 1))
    if (seen[i] == h)
      return false;
  seen[i] = h;
  return true;
}

/* *is_new: it was not tried before, and counts as tried now. */
static bool note (search *s, const candidate *c, bool *is_new, error *err) {
  if (2 * s->n_seen >= s->seen_room) {
    int64_t room = s->seen_room ? 2 * s->seen_room : SEEN_ROOM;
    uint64_t *seen = NEW (s->arena, room, uint64_t, err);
    if (!seen)
      return false;
    for (int64_t i = 0; i < s->seen_room; i++)
      if (s->seen[i])
        put_seen (seen, room, s->seen[i]);
    s->seen = seen;
    s->seen_room = room;
  }
  *is_new = put_seen (s->seen, s->seen_room, hash_of (s, c));
  s->n_seen += *is_new;
  return true;
}

bool search_cost (search *s, candidate *c, plan **made, error *err) {
  assert (c->layout);
  bool is_new = true;
  c->step_ns = INT64_MAX;
  c->short_bytes = 0;
  s->ticks += c->layout->step.gaps.count / 4;
  if (!made && !note (s, c, &is_new, err))
    return false;
  return !is_new || cost (s, c, made, err);
}

bool search_is_over (search *s) {
  s->stopped |= solve_stops (s->options);
  /* no limit is met before there is any plan: "none" is said only where every start has failed */
  return s->best.step_ns < INT64_MAX &&
         (s->stopped || s->best.step_ns <= s->enough_ns || s->ticks >= s->limit_ticks);
}

/* That, or the ticks that are left are for the strategies behind this one. */
static bool is_past_its_part (search *s) {
  return search_is_over (s) || (s->tried >= number (s, TUNE_rounding_least_tried) &&
                                s->best.step_ns < INT64_MAX && s->ticks >= s->until_ticks);
}

bool search_keep (search *s) {
  if (s->trial.step_ns >= s->best.step_ns)
    return false;
  search_copy (&s->best, &s->trial);
  log_found (s->options->log, s->best.found_by, s->best.step_ns, s->lower_bound_ns);
  char step[UNITS_TEXT], least[UNITS_TEXT];
  log_say (
      s->options->log, LOG_PROGRESS, "plan %s by %s, bound %s, gap %.2f %%",
      units_time (step, s->best.step_ns), s->best.found_by, units_time (least, s->lower_bound_ns),
      s->lower_bound_ns ? 100.0 * (double)s->best.step_ns / (double)s->lower_bound_ns - 100 : 0);
  return true;
}

bool search_keep_good (search *s, int32_t count, error *err) {
  s->good = NEW (s->arena, count + 1, candidate, err);
  for (int32_t i = 0; s->good && i <= count; i++)
    if (!search_candidate (s, s->arena, &s->good[i], err))
      return false;
  s->good_room = count;
  if (s->good && s->best.step_ns < INT64_MAX) {
    search_copy (&s->good[0], &s->best);
    s->n_good = 1;
  }
  return s->good;
}

static bool moves_alike (const candidate *a, const candidate *b) {
  size_t gaps = (size_t)a->layout->step.gaps.count * sizeof (int32_t);
  return a->layout == b->layout && memcmp (a->parts, b->parts, gaps) == 0 &&
         memcmp (a->heads, b->heads, gaps) == 0 &&
         memcmp (a->of, b->of, (size_t)a->layout->step.units.count * sizeof (int32_t)) == 0;
}

/* Only the best of those that move the same. */
static void keep_good (search *s) {
  int32_t at = 0, from = s->n_good;
  if (s->trial.step_ns == INT64_MAX)
    return;
  while (at < s->n_good && s->good[at].step_ns <= s->trial.step_ns)
    if (moves_alike (&s->good[at++], &s->trial))
      return;
  for (int32_t i = at; i < s->n_good; i++)
    if (moves_alike (&s->good[i], &s->trial))
      from = i;
  candidate last = s->good[from];
  for (int32_t i = from; i > at; i--)
    s->good[i] = s->good[i - 1];
  s->good[at] = last;
  search_copy (&s->good[at], &s->trial);
  s->n_good += from == s->n_good && s->n_good < s->good_room;
}

bool search_try (search *s, error *err) {
  if (!search_cost (s, &s->trial, NULL, err))
    return false;
  if (s->good)
    keep_good (s);
  search_keep (s);
  return true;
}

/* ---- roundings ---- */

enum { ROOMS = TUNE_rounding_room_ppm_last - TUNE_rounding_room_ppm + 1 };

bool search_round (search *s, const layout *l, round_start start, int64_t room_ppm, bool *fits,
                   error *err) {
  assert (room_ppm > 0 && room_ppm <= 1000000);
  assert (l->share || !round_is_guided (start));
  error why = { 0 };
  rounding r;
  arena_mark mark = arena_here (s->scratch);
  round_request ask = { .gaps = &l->step.gaps,
                        .of = l->of,
                        .device = s->options->device,
                        .start = start,
                        .shares = l->share,
                        .room_bytes = units_scale (l->step.gaps.room_bytes, room_ppm, 1000000),
                        .tuning = s->options->tuning };
  *fits = round_gaps (&ask, s->scratch, &r, &why);
  if (!*fits) {
    arena_back (s->scratch, mark);
    return why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text);
  }
  search_clear (&s->trial, l);
  memcpy (s->trial.parts, r.parts, (size_t)l->step.gaps.count * sizeof *r.parts);
  arena_back (s->scratch, mark);
  s->trial.found_by = round_names[start];
  return true;
}

/* Less room, by what places took too much: moves of which the step holds no more than it may at
   any moment need not have places, since these are the same in each step. */
static int64_t less_room (const search *s, const layout *l, int64_t room_ppm) {
  int64_t room = l->step.gaps.room_bytes;
  return room > 0 ? room_ppm - units_scale (s->trial.short_bytes, 1000000, room) - 1 : 0;
}

/* The longest step that may still be chosen; 0: any. */
static int64_t as_good_ns (const search *s) {
  int64_t best_ns = s->best.step_ns, apart_ppm = number (s, TUNE_noise_apart_ppm);
  return best_ns < INT64_MAX ? best_ns + units_scale (best_ns, apart_ppm, 1000000) : 0;
}

/* A start, in this room; where granules did not suffice, in as much less again. An arena has shares
   of the budget for that. */
static bool start_in (search *s, const layout *l, round_start start, int64_t room_ppm, error *err) {
  int64_t rounds = s->schedule.arena_granule_bytes ? 0 : number (s, TUNE_rounding_again);
  for (int64_t i = 0; i <= rounds && room_ppm > 0 && !is_past_its_part (s); i++) {
    bool fits;
    if (!search_round (s, l, start, room_ppm, &fits, err))
      return false;
    s->trial.by_release = s->best.by_release;
    s->trial.early_ppm = number (s, TUNE_rounding_early_ppm);
    if (!fits)
      return true;
    s->most_ns = as_good_ns (s);
    bool ok = search_try (s, err);
    s->most_ns = 0;
    if (!ok)
      return false;
    if (s->trial.short_bytes == 0)
      return true;
    room_ppm = less_room (s, l, room_ppm);
  }
  return true;
}

/* The roundings that a layout is judged by. */
static bool starts_of (search *s, const layout *l, error *err) {
  for (int room = 0; room < ROOMS; room++)
    for (round_start start = 0; start < ROUND_STARTS; start++) {
      int64_t room_ppm = number (s, TUNE_rounding_room_ppm + (tuning_id)room);
      if (round_is_guided (start) == (l->share != NULL) && !start_in (s, l, start, room_ppm, err))
        return false;
    }
  return true;
}

/* The first layout alone: where that ends the search no other need be made, and of a large trace
   all of them are most of the memory. */
bool search_first (search *s, error *err) {
  return starts_of (s, s->layouts, err);
}

bool search_others (search *s, error *err) {
  for (int32_t i = 1; i < s->n_layouts; i++)
    if (!is_past_its_part (s) && !starts_of (s, &s->layouts[i], err))
      return false;
  return true;
}
