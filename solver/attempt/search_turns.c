/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The orders of copies, and when each copy in may start, where ops are few: from each of the best
   candidates one change after the other that makes no step longer, until none is left.  Rules of
   order by ops miss that an urgent copy out may go before one that has been ready for longer. */
#include <stdlib.h>
#include <string.h>

#include "solver/attempt/search.h"

typedef struct turning {
  search *s;
  arena *own;
  wish *now, *trial; /* of the candidate that is changed */
  int32_t n;
  int32_t *outs, *ins; /* wishes by turn */
  int64_t step_ns, sideways;
  int64_t until_ticks;
} turning;

static bool is_past (const turning *t) {
  return t->s->ticks >= t->until_ticks || search_is_over (t->s);
}

static void copy_wishes (const turning *t, wish *to, const wish *from) {
  memcpy (to, from, (size_t)t->n * sizeof *to);
}

/* *better: it became `now`. */
static bool try_trial (turning *t, bool *better, error *err) {
  search *s = t->s;
  s->trial.wishes = t->trial;
  s->trial.n_wishes = t->n;
  s->trial.found_by = "turns";
  *better = false;
  if (!search_cost (s, &s->trial, NULL, err))
    return false;
  bool same = s->trial.step_ns == t->step_ns && t->sideways > 0;
  if (s->trial.step_ns > t->step_ns || (s->trial.step_ns == t->step_ns && !same))
    return true;
  t->sideways -= same;
  t->step_ns = s->trial.step_ns;
  copy_wishes (t, t->now, t->trial);
  *better = true;
  if (s->trial.step_ns >= s->best.step_ns)
    return true;
  wish *kept = NEW (s->arena, t->n, wish, err);
  if (!kept)
    return false;
  copy_wishes (t, kept, t->now);
  s->trial.wishes = kept;
  search_keep (s);
  return true;
}

/* ---- changes ---- */

static void list_turns (turning *t) {
  for (int32_t i = 0; i < t->n; i++) {
    t->outs[t->now[i].out_turn] = i;
    t->ins[t->now[i].in_turn] = i;
  }
}

/* The copy of that turn, out or in, takes another; those between make room. */
static void change_turn (turning *t, bool out, int32_t from, int32_t to) {
  copy_wishes (t, t->trial, t->now);
  for (int32_t i = 0; i < t->n; i++) {
    int32_t *turn = out ? &t->trial[i].out_turn : &t->trial[i].in_turn;
    if (*turn == from)
      *turn = to;
    else if (from < to ? *turn > from && *turn <= to : *turn >= to && *turn < from)
      *turn += from < to ? -1 : 1;
  }
}

/* One copy goes some turns later, or earlier. */
static bool change_orders (turning *t, bool *better, error *err) {
  *better = false;
  for (int32_t far = 1; far < t->n; far++)
    for (int32_t i = 0; i + far < t->n; i++)
      for (int way = 0; way < 4; way++) {
        int32_t from = way & 1 ? i + far : i, to = way & 1 ? i : i + far;
        if (is_past (t))
          return true;
        if (far == 1 && way & 1)
          continue;
        if (way < 2 && t->now[t->outs[from]].clean)
          continue;
        change_turn (t, way < 2, from, to);
        if (!try_trial (t, better, err) || *better)
          return !err->code;
      }
  return true;
}

static bool change_starts (turning *t, bool *better, error *err) {
  int32_t n_ops = t->s->rewritten->trace->n_ops;
  *better = false;
  for (int32_t i = 0; i < t->n; i++)
    for (int32_t back = -1; back < n_ops; back++) {
      const wish *w = &t->now[i];
      int32_t least = w->in_before <= w->out_after ? w->out_after + 1 - n_ops : w->out_after + 1;
      int32_t start = back < 0 ? NO_WAIT : w->in_before - back;
      if (is_past (t) || (back >= 0 && start < least))
        break;
      if (start == w->in_not_before)
        continue;
      copy_wishes (t, t->trial, t->now);
      t->trial[i].in_not_before = start;
      if (!try_trial (t, better, err) || *better)
        return !err->code;
    }
  return true;
}

/* ---- one candidate ---- */

/* The orders and starts of the plan that it makes. */
static bool begin (turning *t, const candidate *c, error *err) {
  search *s = t->s;
  plan *p;
  arena *kept = s->arena;
  candidate same = *c;
  s->arena = t->own;
  bool ok = search_cost (s, &same, &p, err) && search_wishes (c, t->own, &t->now, &t->n, err);
  s->arena = kept;
  if (!ok)
    return false;
  t->trial = NEW (t->own, t->n, wish, err);
  t->outs = NEW (t->own, t->n, int32_t, err);
  t->ins = NEW (t->own, t->n, int32_t, err);
  if (!t->trial || !t->outs || !t->ins)
    return false;
  t->step_ns = c->step_ns;
  int32_t clean = p ? p->n_outs : 0;
  for (int32_t i = 0; p && i < t->n; i++) {
    t->now[i].clean = p->moves[i].clean;
    t->now[p->in_order[i]].in_turn = i;
    if (i < p->n_outs)
      t->now[p->out_order[i]].out_turn = i;
    if (p->moves[i].clean)
      t->now[i].out_turn = clean++;
  }
  if (!p)
    t->n = 0;
  return true;
}

static bool climb (search *s, const candidate *from, int64_t until_ticks, error *err) {
  turning t = { .s = s,
                .until_ticks = until_ticks,
                .sideways = tuned (s->options->tuning, TUNE_turns_sideways) };
  t.own = arena_made (err);
  search_copy (&s->trial, from);
  bool ok = t.own && begin (&t, from, err), better = t.n > 0;
  s->trial.by_release = false;
  s->trial.early_ppm = -1;
  while (ok && better && !is_past (&t)) {
    list_turns (&t);
    ok = change_orders (&t, &better, err) && (better || change_starts (&t, &better, err));
  }
  arena_free (t.own);
  return ok;
}

bool search_turns (search *s, error *err) {
  int64_t part = tuned (s->options->tuning, TUNE_turns_part);
  int64_t end = s->ticks + (s->limit_ticks - s->ticks) / part;
  for (int32_t i = 0; i < s->n_good && !search_is_over (s); i++) {
    candidate from = s->good[i];
    if (!climb (s, &from, s->ticks + (end - s->ticks) / 2, err))
      return false;
  }
  return true;
}
