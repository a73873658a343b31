/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/foresee.h"

#include <stdlib.h>

#include "executor/shim/block.h"
#include "executor/watch/granules.h"

enum { PROGRAM_STREAMS = 64, STEPS = 16 };

typedef struct foreseer {
  const steps *steps;
  const steps_map *map;
  const int64_t *homes, *aways, *actions; /* of the answer */
  int64_t n_homes, n_aways, n_actions, n_beats;
  bool verifies; /* tensors that are made again, by digests */
  thing *things;
  int32_t n_things;
  granules room;
  int64_t *link;              /* of each beat */
  int32_t *of_beat;           /* of each beat of every step: its number in the queues; -1 */
  int32_t issued[QUEUES_OWN]; /* the shim's newest copies right behind the last op; -1 */
  const life **freed;
  int64_t n_freed;
  queues q;
  error *err;
} foreseer;

/* Tensors are in the order of their numbers. */
static int32_t thing_of (const foreseer *f, int64_t number) {
  int32_t low = 0, high = f->n_things;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (f->map->number[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < f->n_things && f->map->number[low] == number ? low : -1;
}

/* ---- made again ---- */

/* Its inputs have a digest before and behind it, its results behind it. */
static int64_t verifying_ns (const foreseer *f, const beat *e, int64_t uses) {
  int64_t ns = 0;
  for (int32_t i = 0; f->verifies && i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&f->steps->beats, e, i));
    int64_t own = x < 0 ? 0 : digest_ns (&f->things[x]);
    ns += (uses >> 2 * i & 3) == USE_READS ? 2 * own : own;
  }
  return ns + (f->verifies ? COMPARE_NS : 0);
}

static bool is_room_taken (const foreseer *f, const beat *e) {
  bool taken = false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&f->steps->beats, e, i));
    taken = taken || (x >= 0 && is_place_taken (&f->room, &f->things[x]));
  }
  return taken;
}

static bool run_again (foreseer *f, const int64_t *w) {
  const steps *s = f->steps;
  const beat *e = beats_at (&s->beats, f->map->first + w[2]);
  int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
  int64_t ns = s->times[e->op - s->first_op].ns;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, i));
    if (x >= 0 && !thing_has_room (&f->room, &f->things[x]))
      return false;
  }
  if (!queues_add (&f->q, stream, (ns < 0 ? 0 : ns) + verifying_ns (f, e, w[4]), 0, f->err) ||
      !queues_wait (&f->q, f->room.host, f->err))
    return false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, i));
    if (x >= 0 && !thing_touched (&f->room, &f->things[x], stream, false))
      return false;
  }
  return true;
}

/* The op that makes the tensor again: its beat; NULL: none does. */
static const beat *maker_of (const foreseer *f, int64_t action, int64_t number) {
  for (int64_t i = action; i < f->n_actions; i++) {
    const int64_t *w = f->actions + 5 * i;
    const beat *e = w[1] == ACTION_AGAIN ? beats_at (&f->steps->beats, f->map->first + w[2]) : NULL;
    for (int32_t k = 0; e != NULL && k < e->n_refs; k++)
      if (beats_ref (&f->steps->beats, e, k) == number && (w[4] >> 2 * k & 3) != USE_READS)
        return e;
  }
  return NULL;
}

/* Its digest is taken on that op's stream. */
static bool drop (foreseer *f, thing *x, int64_t action) {
  const beat *e = f->verifies ? maker_of (f, action, f->actions[5 * action + 2]) : NULL;
  if (e != NULL) {
    int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
    if (!queues_add (&f->q, stream, digest_ns (x), 0, f->err) ||
        !queues_wait (&f->q, f->room.host, f->err) || !wait_for_streams (&f->room, x->users))
      return false;
    x->users |= (uint64_t)1 << stream;
  }
  thing_released (&f->room, x);
  x->users = 0;
  return true;
}

/* Whoever stands in the way of a copy, or of an op again, may be about to be freed. */
static bool is_early (const foreseer *f, const int64_t *w, int32_t x) {
  if (w[1] == ACTION_AGAIN)
    return is_room_taken (f, beats_at (&f->steps->beats, f->map->first + w[2]));
  return x >= 0 && f->things[x].homes != NULL && w[1] == ACTION_IN &&
         is_way_taken (&f->room, &f->things[x], w[3], w[3] + w[4]);
}

static bool act (foreseer *f, int64_t beat, bool all, int64_t *next) {
  for (; *next < f->n_actions && f->actions[5 * *next] <= beat; ++*next) {
    const int64_t *w = f->actions + 5 * *next;
    int32_t x = w[1] == ACTION_AGAIN ? -1 : thing_of (f, w[2]);
    bool good = true;
    if (!all && is_early (f, w, x))
      return true;
    if (w[1] == ACTION_AGAIN)
      good = run_again (f, w);
    else if (x >= 0 && f->things[x].homes != NULL)
      good = w[1] == ACTION_DROP || w[1] == ACTION_GIVE
                 ? drop (f, &f->things[x], *next)
                 : (w[1] == ACTION_IN ? thing_arrives : thing_leaves) (&f->room, &f->things[x],
                                                                       w[3], w[3] + w[4]);
    if (!good)
      return false;
  }
  return true;
}

/* ---- the program's beats ---- */

static int32_t target (const foreseer *f, int64_t step, int64_t behind) {
  int64_t at = step * f->n_beats + behind;
  return at < 0 ? -1 : f->of_beat[at];
}

/* The host's waits before beat `b`, or behind it. */
static bool host_waits (foreseer *f, int64_t step, int64_t b, bool own, int64_t order) {
  const steps *s = f->steps;
  for (int64_t i = order; i < s->n_orders && s->orders[i].beat == b; i++) {
    int32_t behind = target (f, step, s->orders[i].behind);
    if (!s->orders[i].host || (s->orders[i].behind == b) != own || behind < 0)
      continue;
    if (!queues_add (&f->q, STREAM_HOST, 0, 0, f->err) || !queues_wait (&f->q, behind, f->err))
      return false;
    for (int k = 0; s->orders[i].device && k < QUEUES_OWN; k++)
      if (!queues_wait (&f->q, f->issued[k], f->err))
        return false;
    f->room.host = f->q.last[STREAM_HOST];
  }
  return true;
}

static bool add_op (foreseer *f, int64_t step, int64_t b, int64_t order) {
  const steps *s = f->steps;
  const beat *e = beats_at (&s->beats, f->map->first + b);
  int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
  int64_t ns = s->times[e->op - s->first_op].ns;
  if (!host_waits (f, step, b, false, order))
    return false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, k));
    if (x >= 0 && !thing_has_room (&f->room, &f->things[x]))
      return false;
  }
  if (!queues_add (&f->q, stream, f->link[b] != 0 || ns < 0 ? 0 : ns, f->link[b], f->err) ||
      !queues_wait (&f->q, f->room.host, f->err))
    return false;
  f->of_beat[step * f->n_beats + b] = f->q.last[stream];
  for (int64_t i = order; i < s->n_orders && s->orders[i].beat == b; i++)
    if (!s->orders[i].host && !queues_wait (&f->q, target (f, step, s->orders[i].behind), f->err))
      return false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, k));
    shim_fact fact = steps_fact (s, e, k);
    bool reads = !beat_is_loose (e->token) && (fact == FACT_SAME || fact == FACT_READ);
    if (x >= 0 && !thing_touched (&f->room, &f->things[x], stream, reads))
      return false;
  }
  return host_waits (f, step, b, true, order);
}

/* Results of the step before lie on the host, but for those that stay. */
static void carry_in (foreseer *f) {
  for (int64_t i = 0; i < f->steps->n_crossings; i++) {
    int32_t in = thing_of (f, f->steps->crossings[i].carried_in);
    int32_t out = thing_of (f, f->steps->crossings[i].carried_out);
    if (in < 0 || out < 0)
      continue;
    thing *x = &f->things[in];
    thing_made (x);
    x->own[STREAM_OUT] = f->things[out].own[STREAM_OUT];
    for (int64_t p = 0; f->map->leaves[out] && x->homes != NULL && p < x->pages; p++)
      x->state[p] = AWAY;
  }
}

static bool run_step (foreseer *f, int64_t step) {
  int64_t action = 0, freed = 0, order = 0;
  carry_in (f);
  for (int64_t b = 0; b < f->n_beats; b++) {
    const beat *e = beats_at (&f->steps->beats, f->map->first + b);
    int32_t made = e->op < 0 ? thing_of (f, e->allocation) : -1;
    if (b == 0 && !act (f, -1, true, &action))
      return false;
    while (order < f->steps->n_orders && f->steps->orders[order].beat < b)
      order++;
    if (made >= 0)
      thing_made (&f->things[made]);
    if ((e->op >= 0 && !add_op (f, step, b, order)) || !act (f, b, false, &action))
      return false;
    for (int k = 0; e->op >= 0 && k < QUEUES_OWN; k++)
      f->issued[k] = f->q.last[k];
    for (; freed < f->n_freed && f->freed[freed]->freed <= f->map->first + b + 1; freed++) {
      int32_t x = thing_of (f, f->freed[freed]->number);
      if (x >= 0 && f->things[x].give < action)
        thing_released (&f->room, &f->things[x]);
    }
    if (!act (f, b, true, &action))
      return false;
  }
  return true;
}

/* ---- before the first ---- */

static bool read_answer (foreseer *f, const bytes *words) {
  const int64_t *w = (const int64_t *)(const void *)words->data;
  f->n_homes = w[3];
  f->n_aways = w[4];
  f->n_actions = w[5];
  f->homes = w + PLAN_HEAD;
  f->aways = f->homes;
  for (int64_t i = 0; i < f->n_homes; i++)
    f->aways += 2 + f->aways[1];
  f->actions = f->aways + 3 * f->n_aways;
  return true;
}

static bool place_things (foreseer *f, int64_t n_granules, arena *a) {
  f->things = NEW (a, f->n_things + 1, thing, f->err);
  f->room.at = NEW (a, n_granules + 1, granule, f->err);
  if (f->things == NULL || f->room.at == NULL)
    return false;
  for (int64_t g = 0; g < n_granules; g++)
    granule_empty (&f->room.at[g], NULL);
  for (int32_t x = 0; x < f->n_things; x++) {
    f->things[x] = (thing){ .own = { -1, -1, -1 }, .give = -1 };
    f->things[x].bytes = beats_life (&f->steps->beats, f->map->number[x])->bytes;
  }
  for (int64_t i = 0, at = 0; i < f->n_homes; i++, at += 2 + f->homes[at + 1]) {
    thing *x = &f->things[thing_of (f, f->homes[at])];
    x->pages = f->homes[at + 1];
    x->homes = f->homes + at + 2;
    x->state = NEW (a, x->pages + 1, uint8_t, f->err);
    if (x->state == NULL)
      return false;
    const life *l = beats_life (&f->steps->beats, f->homes[at]);
    bool lasts = l->born < f->map->first && l->crossing == CROSSING_NONE;
    for (int64_t p = 0; p < x->pages; p++) {
      x->state[p] = HERE;
      if (lasts)
        f->room.at[x->homes[p]].owner = x;
    }
  }
  for (int64_t i = 0; i < f->n_aways; i++) {
    const int64_t *w = f->aways + 3 * i;
    thing *x = &f->things[thing_of (f, w[0])];
    for (int64_t p = w[1]; p < w[1] + w[2]; p++) {
      x->state[p] = AWAY;
      if (f->room.at[x->homes[p]].owner == x)
        f->room.at[x->homes[p]].owner = NULL;
    }
  }
  return true;
}

static void mark_checks (foreseer *f) {
  for (int64_t i = 0; i < f->n_actions; i++) {
    int64_t action = f->actions[5 * i + 1];
    int32_t x = action == ACTION_AGAIN ? -1 : thing_of (f, f->actions[5 * i + 2]);
    if (x >= 0 && action == ACTION_LEAVE)
      f->things[x].checks = true;
    if (x >= 0 && action == ACTION_GIVE)
      f->things[x].give = i;
  }
}

static int by_end (const void *x, const void *y) {
  const life *a = *(const life *const *)x, *b = *(const life *const *)y;
  return a->freed != b->freed ? (a->freed > b->freed) - (a->freed < b->freed)
                              : (a->number > b->number) - (a->number < b->number);
}

static int by_beat (const void *x, const void *y) {
  const steps_order *a = x, *b = y;
  return a->beat != b->beat ? (a->beat > b->beat) - (a->beat < b->beat)
                            : (a->behind > b->behind) - (a->behind < b->behind);
}

static bool find_tables (foreseer *f, arena *a) {
  f->freed = NEW (a, f->n_things + 1, const life *, f->err);
  f->link = NEW (a, f->n_beats + 1, int64_t, f->err);
  f->of_beat = NEW (a, STEPS * f->n_beats + 1, int32_t, f->err);
  if (f->freed == NULL || f->link == NULL || f->of_beat == NULL)
    return false;
  for (int32_t x = 0; x < f->n_things; x++) {
    const life *l = beats_life (&f->steps->beats, f->map->number[x]);
    if ((l->born >= f->map->first || l->crossing != CROSSING_NONE) && l->freed >= 0)
      f->freed[f->n_freed++] = l;
  }
  qsort (f->freed, (size_t)f->n_freed, sizeof *f->freed, by_end);
  qsort (f->steps->orders, (size_t)f->steps->n_orders, sizeof *f->steps->orders, by_beat);
  for (int64_t i = 0; i < f->steps->n_links; i++)
    if (f->steps->links[i].beat < f->n_beats)
      f->link[f->steps->links[i].beat] = f->steps->links[i].bytes;
  for (int64_t i = 0; i < STEPS * f->n_beats; i++)
    f->of_beat[i] = -1;
  return true;
}

/* The mean time from step to step, once the first ones have passed. */
static int64_t mean_ns (const foreseer *f) {
  int64_t first = f->map->beat[0];
  int64_t low = queues_at (&f->q, f->of_beat[STEPS / 2 * f->n_beats + first])->end_ns;
  int64_t high = queues_at (&f->q, f->of_beat[(STEPS - 1) * f->n_beats + first])->end_ns;
  return (high - low) / (STEPS - 1 - STEPS / 2);
}

bool foresee_step (const foresee_question *q, arena *a, int64_t *step_ns, error *err) {
  const steps *s = q->steps;
  const steps_map *map = q->map;
  const bytes *words = q->words;
  const device *d = q->device;
  foreseer f = { .steps = s,
                 .map = map,
                 .verifies = q->verifies,
                 .n_beats = map->end - map->first,
                 .n_things = map->n_tensors,
                 .room = { .bytes = d->granule_bytes, .host = -1, .q = &f.q, .err = err },
                 .issued = { -1, -1, -1 },
                 .err = err };
  queues_start (&f.q);
  bool good = read_answer (&f, words) &&
              place_things (&f, ((const int64_t *)(const void *)words->data)[2], a) &&
              find_tables (&f, a);
  if (good)
    mark_checks (&f);
  for (int64_t n = 0; good && n < STEPS; n++)
    good = run_step (&f, n);
  good = good && queues_run (&f.q, d, err);
  if (good)
    *step_ns = mean_ns (&f);
  queues_free (&f.q);
  return good;
}
