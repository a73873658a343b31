/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every cut of a trace of few ops and every set of a few drops of each, the shortest lists first:
   the search of large traces guesses what sets cost, and where all can be looked at no guess is
   needed.  Each is bounded by its program, and what may be better is solved in full. */
#include <stdlib.h>
#include <string.h>

#include "solver/recompute/drops.h"
#include "solver/search/ways_inner.h"

typedef struct way {
  variant v;
  variant_value value;
  int32_t rank;     /* in which it was found */
  bool keeps, done; /* done: a longer search would find no more */
} way;

/* A trace as a cut makes it, and the tensors that can be dropped there. */
typedef struct base {
  const variant *cut;
  rewritten rw;
  uses uses;
  drop *drops;
  int32_t n_drops;
  drop_choice how;
} base;

typedef struct trying {
  const trace *t;
  const solve_options *o;
  arena *arena; /* of ways */
  arena *own, *scratch;
  way *cuts, *ways; /* the cuts alone, too large ones as well; what may be solved */
  base *bases;
  int64_t cuts_room, ways_room, bases_room;
  int32_t n_cuts, n_ways, n_bases;
  int64_t best_ns, ticks, limit_ticks, tried;
  effort effort;
  error *err;
} trying;

static int64_t number (const trying *w, tuning_id id) {
  return tuned (w->o->tuning, id);
}

static bool is_over (const trying *w, int64_t limit_ticks) {
  return w->ticks >= limit_ticks || w->n_ways >= number (w, TUNE_small_ways) || solve_stops (w->o);
}

static bool add (trying *w, way **list, int64_t *room, int32_t *count, const way *x) {
  way *grown = arena_grow (w->own, *list, room, (int64_t)*count + 1, sizeof *x, w->err);
  if (!grown)
    return false;
  *list = grown;
  grown[*count] = *x;
  grown[*count].rank = *count;
  ++*count;
  return true;
}

static bool look (trying *w, way *x) {
  if (!variant_look (w->t, &x->v, w->o, w->scratch, &x->value, w->err))
    return false;
  w->ticks +=
      number (w, TUNE_small_look) * (int64_t)(x->value.legal ? x->value.n_ops : w->t->n_ops);
  return true;
}

static bool has_hope (const trying *w, const way *x) {
  return x->value.legal && x->value.bound_ns < w->best_ns; /* no bound: nothing fits */
}

/* ---- cuts ---- */

static bool try_cut (trying *w, const way *before, section more) {
  way x = { .v = { .name = "every cut", .n_sections = before->v.n_sections + 1 } };
  arena_mark mark = arena_here (w->arena);
  x.v.sections = NEW (w->arena, x.v.n_sections, section, w->err);
  if (!x.v.sections)
    return false;
  if (before->v.n_sections)
    memcpy (x.v.sections, before->v.sections, (size_t)before->v.n_sections * sizeof *x.v.sections);
  x.v.sections[before->v.n_sections] = more;
  if (!look (w, &x))
    return false;
  if (!x.value.legal || x.value.compute_ns >= w->best_ns) { /* and more cuts take no less */
    arena_back (w->arena, mark);
    return true;
  }
  return add (w, &w->cuts, &w->cuts_room, &w->n_cuts, &x);
}

/* With one section more, behind those that it has. */
static bool extend (trying *w, int32_t which, int32_t *read_in, int32_t *written_in,
                    int64_t until) {
  enum { TRIES = TUNE_small_parts_last - TUNE_small_parts + 1 };
  const trace *t = w->t;
  const way x = w->cuts[which];
  bool fixed = w->o->sections == SECTIONS_FIXED;
  int32_t from = x.v.n_sections ? x.v.sections[x.v.n_sections - 1].end : 0;
  for (int32_t k = from; k < t->n_ops; k++)
    for (int i = 0; i < (fixed ? 1 : TRIES); i++) {
      int64_t parts = fixed ? w->o->section_parts : number (w, TUNE_small_parts + (tuning_id)i);
      if (parts > t->ops[k].parts || parts > t->batch)
        break;
      memset (read_in, 0, (size_t)t->n_tensors * sizeof *read_in);
      memset (written_in, 0, (size_t)t->n_tensors * sizeof *written_in);
      int32_t end = w->o->section_orders == ORDERS_LEVEL
                        ? k + 1
                        : sections_chain_end (t, k, t->n_ops, parts, read_in, written_in);
      for (int32_t stop = k + 1; stop == k + 1 || stop <= end; stop++) {
        section s = { k, stop, parts, stop > k + 1 ? SECTION_DEPTH : SECTION_LEVEL };
        if (is_over (w, until) || w->n_cuts >= number (w, TUNE_small_cuts))
          return true;
        if (!try_cut (w, &x, s))
          return false;
      }
    }
  return true;
}

/* By how many sections they have. */
static bool list_cuts (trying *w, int64_t until) {
  way nothing = { .v = { .name = "as it is" } };
  int32_t *read_in = NEW (w->own, w->t->n_tensors, int32_t, w->err);
  int32_t *written_in = NEW (w->own, w->t->n_tensors, int32_t, w->err);
  if (!read_in || !written_in || !look (w, &nothing) ||
      !add (w, &w->cuts, &w->cuts_room, &w->n_cuts, &nothing))
    return false;
  for (int32_t i = 0; w->o->sections != SECTIONS_OFF && i < w->n_cuts &&
                      w->n_cuts < number (w, TUNE_small_cuts) && !is_over (w, until);
       i++)
    if (!extend (w, i, read_in, written_in, until))
      return false;
  for (int32_t i = 1; i < w->n_cuts; i++)
    if (has_hope (w, &w->cuts[i]) && !add (w, &w->ways, &w->ways_room, &w->n_ways, &w->cuts[i]))
      return false;
  return true;
}

/* ---- drops ---- */

static bool add_base (trying *w, const variant *cut, drop_choice how) {
  base b = { .cut = cut, .how = how };
  if (!trace_rewrite (w->t,
                      &(rewriting){ .sections = cut->sections,
                                    .n_sections = cut->n_sections,
                                    .section_ns = w->o->device->section_ns },
                      w->own, &b.rw, w->err) ||
      !uses_of (b.rw.trace, w->own, &b.uses, w->err))
    return false;
  const trace *t = b.rw.trace;
  uint8_t *over = NEW (w->own, t->n_ops, uint8_t, w->err), *cheap;
  if (!over || !recompute_may_drop (t, w->o, w->own, &cheap, w->err))
    return false;
  memset (over, 1, (size_t)t->n_ops);
  drops_request ask = { .trace = t, .over = over, .cheap = cheap, .keeps = how.keeps };
  if (!drops_find (&ask, w->own, &b.drops, &b.n_drops, NULL, w->err))
    return false;
  base *grown =
      arena_grow (w->own, w->bases, &w->bases_room, (int64_t)w->n_bases + 1, sizeof b, w->err);
  if (!grown)
    return false;
  w->bases = grown;
  w->bases[w->n_bases++] = b;
  return true;
}

static bool list_bases (trying *w, int64_t until) {
  static const drop_choice hows[] = {
    { .keeps = false },
    { .keeps = false, .replaces = true },
    { .keeps = true },
    { .keeps = true, .keeps_first = true },
    { .keeps = true, .keeps_first = true, .replaces = true },
  };
  for (int32_t i = 0; i < w->n_cuts && !is_over (w, until); i++) {
    const way *x = &w->cuts[i];
    if ((w->o->recompute != RECOMPUTE_ONLY && x->value.over_bytes) ||
        x->value.compute_ns >= w->best_ns)
      continue;
    for (size_t k = 0; k < sizeof hows / sizeof *hows; k++) {
      /* a dear op may write besides what must not be dropped */
      if (hows[k].replaces && w->o->recompute == RECOMPUTE_CHEAP)
        continue;
      w->ticks += number (w, TUNE_small_look) * (int64_t)x->value.n_ops;
      if (!add_base (w, &x->v, hows[k]))
        return false;
    }
  }
  return true;
}

static bool is_known (const trying *w, const variant *v) {
  for (int32_t i = 0; i < w->n_ways; i++)
    if (w->ways[i].v.sections == v->sections && variant_same_drops (&w->ways[i].v, v))
      return true;
  return false;
}

/* *legal: the rewriting accepts it, whether or not there is hope. */
static bool try_entries (trying *w, way *x, bool *legal) {
  *legal = false;
  if (!x->v.n_recomputes || is_known (w, &x->v))
    return true;
  if (!look (w, x))
    return false;
  *legal = x->value.legal;
  return !has_hope (w, x) || add (w, &w->ways, &w->ways_room, &w->n_ways, x);
}

/* The same with one entry before an earlier op: then copies have more time to overlap with it, or
   what it reads need not wait. */
static bool try_earlier (trying *w, const way *x, const base *b, const uint8_t *chosen,
                         int64_t until) {
  for (int32_t i = 0; i < x->v.n_recomputes; i++) {
    int32_t before = x->v.recomputes[i].before, after = i ? x->v.recomputes[i - 1].before - 1 : 0;
    for (int32_t d = 0; d < b->n_drops; d++)
      if (chosen[d] && b->drops[d].before == before && b->drops[d].after > after)
        after = b->drops[d].after;
    for (int32_t k = before - 1; k > after && !is_over (w, until); k--) {
      bool legal;
      way y = *x;
      arena_mark mark = arena_here (w->arena);
      int32_t n_ways = w->n_ways;
      y.v.recomputes = NEW (w->arena, x->v.n_recomputes, recompute, w->err);
      if (!y.v.recomputes)
        return false;
      memcpy (y.v.recomputes, x->v.recomputes, (size_t)x->v.n_recomputes * sizeof (recompute));
      y.v.recomputes[i].before = k;
      if (!try_entries (w, &y, &legal))
        return false;
      if (w->n_ways == n_ways)
        arena_back (w->arena, mark);
    }
  }
  return true;
}

static bool try_set (trying *w, const base *b, const uint8_t *chosen, int64_t until) {
  way x = { .v = *b->cut, .keeps = b->how.keeps };
  arena_mark mark = arena_here (w->arena);
  int32_t n_ways = w->n_ways;
  bool legal;
  w->ticks += b->rw.trace->n_ops;
  x.v.name = b->cut->n_sections ? "every cut and drop" : "every drop";
  drop_list list = { b->rw.trace, &b->uses, b->drops, b->n_drops };
  drop_choice choice = b->how;
  choice.chosen = chosen;
  if (!drops_entries (&list, &choice, w->arena, &x.v.recomputes, &x.v.n_recomputes, w->err) ||
      !try_entries (w, &x, &legal) || (legal && !try_earlier (w, &x, b, chosen, until)))
    return false;
  if (w->n_ways == n_ways)
    arena_back (w->arena, mark);
  return true;
}

static bool choose (trying *w, const base *b, uint8_t *chosen, int32_t from, int more,
                    int64_t until) {
  if (!more)
    return try_set (w, b, chosen, until);
  for (int32_t i = from; i < b->n_drops && !is_over (w, until); i++) {
    chosen[i] = 1;
    if (!choose (w, b, chosen, i + 1, more - 1, until))
      return false;
    chosen[i] = 0;
  }
  return true;
}

/* Single ones of every cut, then pairs, and so on. */
static bool list_drops (trying *w, int64_t until) {
  int32_t most = 0;
  if (!list_bases (w, w->ticks + (until - w->ticks) / 2))
    return false;
  for (int32_t i = 0; i < w->n_bases; i++)
    most = w->bases[i].n_drops > most ? w->bases[i].n_drops : most;
  uint8_t *chosen = NEW (w->own, most, uint8_t, w->err);
  if (!chosen)
    return false;
  for (int size = 1; size <= number (w, TUNE_small_drops); size++)
    for (int32_t i = 0; i < w->n_bases && !is_over (w, until); i++) {
      memset (chosen, 0, (size_t)most);
      if (!choose (w, &w->bases[i], chosen, 0, size, until))
        return false;
    }
  return true;
}

/* ---- the best of them ---- */

static int by_bound (const void *a, const void *b) {
  const way *x = a, *y = b;
  if (x->value.bound_ns != y->value.bound_ns)
    return x->value.bound_ns < y->value.bound_ns ? -1 : 1;
  if (x->value.compute_ns != y->value.compute_ns)
    return x->value.compute_ns < y->value.compute_ns ? -1 : 1;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The program's answer for each of those that a quick bound leaves hope for. */
static bool bound_all (trying *w, int64_t until) {
  if (!w->n_ways)
    return true;
  qsort (w->ways, (size_t)w->n_ways, sizeof *w->ways, by_bound);
  for (int32_t i = 0; i < w->n_ways && w->ticks < until; i++) {
    way *x = &w->ways[i];
    if (solve_stops (w->o))
      break;
    if (w->o->recompute != RECOMPUTE_ONLY &&
        !variant_bound (w->t, &x->v, w->o, false, w->scratch, &x->value, w->err))
      return false;
    w->ticks += x->value.ticks;
  }
  qsort (w->ways, (size_t)w->n_ways, sizeof *w->ways, by_bound);
  return true;
}

/* *out and *taken where its plan is better. */
static bool solve_way (trying *w, way *x, int64_t limit_ticks, solution *out, const way **taken) {
  solution s;
  error why = { 0 };
  arena_mark mark = arena_here (w->arena);
  int64_t left = w->limit_ticks - w->ticks;
  solve_request q = { .trace = w->t, .variant = &x->v, .options = w->o };
  q.effort = w->effort;
  q.effort.limit_ticks = left < limit_ticks ? left : limit_ticks;
  q.effort.gap_ppm = 1;
  q.effort.rough = true;
  q.effort.beat_ns = w->best_ns;
  bool ok = attempt_solve (&q, w->arena, &s, &why);
  w->tried += s.candidates;
  w->ticks += s.bound.stats.ticks * solve_events_per_tick (x->value.n_ops);
  if (!ok) {
    w->ticks += number (w, TUNE_small_failed) * (int64_t)x->value.n_ops;
    x->done = true; /* every start has failed */
    arena_back (w->arena, mark);
    return why.code == ERR_infeasible || error_set (w->err, why.code, "%s", why.text);
  }
  w->ticks += s.ticks;
  x->done = !s.plan || s.ticks < q.effort.limit_ticks;
  if (!s.plan || s.plan->predicted.step_ns >= w->best_ns) {
    arena_back (w->arena, mark);
    return true;
  }
  w->best_ns = s.plan->predicted.step_ns;
  *out = s;
  *taken = x;
  return true;
}

/* All of them briefly, then those that may still be better at greater length. */
static bool solve_all (const ways *m, trying *w, solution *out, const way **taken) {
  enum { ROUNDS = TUNE_small_rounds_last - TUNE_small_rounds + 1 };
  for (int round = 0; round < ROUNDS; round++)
    for (int32_t i = 0; i < w->n_ways && w->ways[i].value.bound_ns < w->best_ns; i++) {
      if (w->ticks >= w->limit_ticks || ways_near (m, w->best_ns) || solve_stops (w->o))
        return true;
      if (!w->ways[i].done &&
          !solve_way (w, &w->ways[i],
                      w->limit_ticks / number (w, TUNE_small_rounds + (tuning_id)round) + 1, out,
                      taken))
        return false;
    }
  return true;
}

static bool search_all (ways *m, sections_mode cuts, error *err) {
  solve_options quiet = *m->o;
  trying w = { .t = m->t,
               .o = &quiet,
               .effort = m->effort,
               .arena = m->arena,
               .best_ns = ways_best_ns (m),
               .err = err };
  const way *best = NULL;
  solution found;
  quiet.sections = cuts;
  quiet.log = NULL;         /* a line for each of hundreds of ways is no progress */
  quiet.keep_proof = false; /* that of all plans is what counts */
  int64_t most = number (&w, TUNE_small_ticks);
  w.limit_ticks = (m->limit_ticks < most ? m->limit_ticks : most) / m->part * m->events;
  w.own = arena_made (err);
  w.scratch = arena_made (err);
  bool ok = w.own && w.scratch && list_cuts (&w, w.limit_ticks / 8) &&
            (quiet.recompute == RECOMPUTE_OFF || list_drops (&w, w.limit_ticks / 4)) &&
            bound_all (&w, w.limit_ticks / 2) && solve_all (m, &w, &found, &best);
  m->ticks += w.ticks / m->events;
  m->tried += w.tried;
  if (ok && best) {
    m->small = best->v;
    m->small_keeps = best->keeps;
    m->taken = &m->small;
    m->best = found;
  }
  arena_free (w.own);
  arena_free (w.scratch);
  return ok;
}

/* Cuts are many, and mostly promise more than drops do: they would leave no room for these.  So the
   step is searched whole first, as if no cut were allowed. */
bool ways_small (ways *m, error *err) {
  bool both = m->o->sections != SECTIONS_OFF && m->o->recompute != RECOMPUTE_OFF;
  if (m->t->n_ops > tuned (m->o->tuning, TUNE_small_ops) || ways_is_over (m))
    return true;
  return (!both || search_all (m, SECTIONS_OFF, err)) &&
         (ways_is_over (m) || search_all (m, m->o->sections, err));
}
