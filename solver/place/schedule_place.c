/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When copies run and where stays lie.  The forward run may not repeat itself exactly from step to
   step, and granules on a circle may need a few more than their number at any moment: then it is
   run again with a little less memory, until what it decides has places. */
#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/place/schedule_inner.h"

static int64_t number (const scheduling *s, tuning_id id) {
  return tuned (s->options->tuning, id);
}

static bool short_of (scheduling *s, int32_t op, int64_t granules) {
  int64_t bytes = granules * s->granule_bytes;
  char need[UNITS_TEXT], have[UNITS_TEXT];
  if (s->shortage)
    *s->shortage = (schedule_shortage){ op, bytes };
  if (op == NO_OP)
    return error_set (s->err, ERR_infeasible, "places for these moves need %s, the budget is %s",
                      units_bytes (need, bytes), units_bytes (have, s->options->budget_bytes));
  return error_set (s->err, ERR_infeasible, "op %d (%.80s) needs %s at once, the budget is %s", op,
                    s->trace->ops[op].name, units_bytes (need, bytes),
                    units_bytes (have, s->options->budget_bytes));
}

/* Copies in on demand and ops that wait for copies out: the last resort, which needs least. */
static void go_slow (scheduling *s) {
  for (int32_t i = 0; i < s->n_moves; i++) {
    s->moves[i].in_not_before = s->moves[i].in_before;
    s->moves[i].wait_out = true;
  }
}

/* Just in time: from the last copy in to the first, each ends where the next one starts or where
   its op is due, a little earlier; from the times of a run before. */
static bool hold_back (scheduling *s, int64_t period_ns) {
  const stays *l = &s->stays;
  const op *ops = s->trace->ops;
  int32_t n = s->trace->n_ops;
  arena_mark mark = arena_here (s->arena);
  int64_t *end_ns = NEW (s->arena, n, int64_t, s->err);
  if (!end_ns)
    return false;
  for (int32_t k = 0; k < n; k++)
    end_ns[k] = l->start_ns[k] + ops[k].ns;
  link_rates r = device_rates (&s->device->link, s->device->share_ppm);
  int64_t margin_ns = units_scale (period_ns, s->options->early_ppm, 1000000), next_ns = INT64_MAX;
  int64_t far_ns = 3 * period_ns; /* as early as that is before everything */
  /* Twice round: the first copies in of a step may have to start in the step before. */
  for (int turn = 1; turn >= 0; turn--)
    for (int32_t i = s->n_moves - 1, k = n; i >= 0; i--) {
      wish *w = &s->moves[l->in_order[i]];
      int64_t due_ns = l->start_ns[w->in_before] + turn * period_ns;
      int64_t carry_ns = units_scale (schedule_part_bytes (s, w), 1000000000, r.in_both);
      int64_t copy_ns = s->device->link.copy_ns + (carry_ns < far_ns ? carry_ns : far_ns) + 1;
      next_ns = (due_ns < next_ns ? due_ns : next_ns) - copy_ns;
      next_ns = next_ns < -far_ns ? -far_ns : next_ns;
      int64_t start_ns = next_ns - margin_ns;
      if (turn)
        continue;
      while (k > 0 && end_ns[k - 1] > start_ns)
        k--;
      int32_t before = k; /* ops of this step that have ended by then */
      if (k == 0 && start_ns < 0) {
        before = n;
        while (before > 0 && end_ns[before - 1] > start_ns + period_ns)
          before--;
        before -= n;
      }
      if (s->wished[l->in_order[i]] == NO_WAIT)
        w->in_not_before = before < w->in_before ? before : w->in_before;
    }
  arena_back (s->arena, mark);
  return true;
}

/* The copies in that should start later for the granules to suffice; false where there is none. */
static bool wait_longer (scheduling *s) {
  bool any = false;
  for (int32_t i = 0; i < s->n_moves; i++)
    if (s->places.wait_ops[i] != NO_WAIT && s->places.wait_ops[i] > s->moves[i].in_not_before) {
      s->moves[i].in_not_before = s->places.wait_ops[i];
      any = true;
    }
  return any;
}

/* Copies in that wait for their places hold up no others, for a while. */
static bool let_others_pass (scheduling *s, int64_t granules) {
  stays *l = &s->stays;
  error why = { 0 };
  if (!s->places.waits)
    return true;
  if (!s->passed) {
    memcpy (s->usual_order, l->in_order, (size_t)s->n_moves * sizeof *l->in_order);
    s->usual_by_need = l->by_need;
  }
  s->passed = true;
  if (stays_order (l, granules, s->arena, &why))
    return true;
  return why.code == ERR_infeasible || error_set (s->err, why.code, "%s", why.text);
}

static void go_in_usual_order (scheduling *s) {
  if (!s->passed)
    return;
  memcpy (s->stays.in_order, s->usual_order, (size_t)s->n_moves * sizeof *s->usual_order);
  s->stays.by_need = s->usual_by_need;
  s->passed = false;
}

/* Another order of the copies in may hang. */
static bool run (scheduling *s, int64_t granules, moment *period, moment *start) {
  error why = { 0 };
  if (stays_run (&s->stays, granules, s->arena, period, start, &why))
    return true;
  if (!s->passed || why.code != ERR_infeasible)
    return error_set (s->err, why.code, "%s", why.text);
  go_in_usual_order (s);
  return stays_run (&s->stays, granules, s->arena, period, start, s->err);
}

/* Runs with copies in as soon as possible, then just in time by the times that were seen. */
static bool find_times (scheduling *s, int64_t granules) {
  moment period, start;
  if (s->options->by_release && s->n_moves && !stays_order (&s->stays, granules, s->arena, s->err))
    return false;
  for (int64_t i = 0;
       s->options->early_ppm >= 0 && s->n_moves && i < number (s, TUNE_place_timings); i++)
    if (!stays_run (&s->stays, granules, s->arena, &period, &start, s->err) ||
        !hold_back (s, period.at_ns))
      return false;
  return true;
}

/* Offsets; `late` where those of the run did not do. */
static bool give_offsets (scheduling *s, moment period, moment start, int64_t most, bool late) {
  int64_t looks = number (s, TUNE_place_arena_looks), may = s->options->place_ticks;
  may = may && may < INT64_MAX / looks ? may * looks : INT64_MAX;
  arena_budget all = { most, min_of (may, number (s, TUNE_place_arena_ticks)),
                       late ? min_of (may, number (s, TUNE_place_late_ticks)) : 0 };
  bool ok = place_arena (&s->stays, period, start, &all, s->arena, &s->places, s->err);
  s->ticks += s->places.ticks / looks;
  return ok;
}

static bool give_places (scheduling *s, moment period, moment start, int64_t most, bool late) {
  if (s->options->arena_granule_bytes)
    return give_offsets (s, period, start, most, late);
  return (s->options->same_places ? place_same : place) (&s->stays, period, start, most, s->arena,
                                                         &s->places, s->err);
}

/* Granules beside the pool: what the budget has, what some op needs, and what may be held. */
typedef struct held {
  int64_t pool, most, least, granules;
} held;

/* Stays, and the times of copies where memory alone counts. */
static bool prepare (scheduling *s, held *h) {
  assert (s->granule_bytes > 0 && s->units.at);
  int64_t pool = units_div_up (s->units.pool_bytes, s->granule_bytes);
  *h = (held){ .pool = pool, .most = s->budget_granules - pool };
  h->granules = h->most;
  int32_t fullest = 0;
  if (s->options->held_bytes && s->options->held_bytes / s->granule_bytes - pool < h->granules)
    h->granules = s->options->held_bytes / s->granule_bytes - pool;
  s->stays = (stays){ .trace = s->trace,
                      .units = &s->units,
                      .moves = s->moves,
                      .device = s->device,
                      .granule_bytes = s->granule_bytes,
                      .n_moves = s->n_moves };
  if (!stays_build (&s->stays, s->arena, s->err))
    return false;
  if (s->options->same_places && !(s->usual_order = NEW (s->arena, s->n_moves, int32_t, s->err)))
    return false;
  for (int32_t k = 0; k < s->trace->n_ops; k++)
    if (s->stays.level[k] > h->least) {
      h->least = s->stays.level[k];
      fullest = k;
    }
  if (h->least > h->most)
    return short_of (s, fullest, h->least + pool);
  h->granules = h->granules < h->least ? h->least : h->granules;
  return find_times (s, h->granules);
}

bool schedule_guess (scheduling *s, int64_t *step_ns) {
  held h;
  moment period, start;
  bool ok = prepare (s, &h) && stays_run (&s->stays, h.granules, s->arena, &period, &start, s->err);
  *step_ns = ok ? period.at_ns : INT64_MAX;
  return ok;
}

bool schedule_place (scheduling *s) {
  held h;
  if (!prepare (s, &h))
    return false;
  int64_t most = h.most, least = h.least, granules = h.granules;
  int64_t wanted = 0, over_before = INT64_MAX;
  bool may_late = s->options->arena_granule_bytes && number (s, TUNE_place_late_ticks),
       late = false;
  arena_mark mark = arena_here (s->arena);
  int64_t tries = number (s, TUNE_place_tries), few_over = number (s, TUNE_place_few_over);
  for (int64_t i = 0; i < tries; i++, arena_back (s->arena, mark)) {
    moment period, start;
    if (!run (s, granules, &period, &start))
      return false;
    if (s->options->most_ns && period.at_ns > s->options->most_ns)
      return error_set (s->err, ERR_infeasible, "the step takes longer than is of use");
    if (!give_places (s, period, start, most, late))
      return false;
    int64_t over = s->places.granules - most;
    if (i == 0 && s->request->short_bytes)
      *s->request->short_bytes = over > 0 ? over * s->granule_bytes : 0;
    if (over <= 0 && !s->places.tangled)
      return true;
    wanted = s->places.granules;
    if (may_late && !late) {
      /* a little less memory is tried once; then stays are there for less of the step */
      late = i > 0 || over > most / number (s, TUNE_place_late_part);
      granules = late ? h.granules : max_of (least, granules - over);
      continue;
    }
    bool few = over <= few_over || over <= most / number (s, TUNE_place_few_part),
         helps = (few || s->places.waits) && over < over_before;
    over_before = over;
    if (!s->places.tangled && helps && wait_longer (s)) {
      if (!let_others_pass (s, granules))
        return false;
      continue;
    }
    over_before = INT64_MAX;
    go_in_usual_order (s);
    if (granules == least)
      break;
    granules -= over <= 0 ? 1 + most / 64 : few ? over : 2 * over;
    granules = granules < least ? least : granules;
    if (i + 2 >= tries)
      go_slow (s);
  }
  go_slow (s);
  moment period, start;
  if (!run (s, least, &period, &start) || !give_places (s, period, start, most, may_late))
    return false;
  wanted = s->places.granules < wanted || wanted <= most ? s->places.granules : wanted;
  if (s->places.granules <= most && !s->places.tangled)
    return true;
  return short_of (s, NO_OP, (wanted > most ? wanted : most + 1) + h.pool);
}
