/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/unroll.h"

#include <stdlib.h>

#include "base/order.h"
#include "executor/shim/step/block.h"
#include "executor/watch/granules.h"

enum { PROGRAM_STREAMS = 64, STEPS = 16 };

typedef struct unroller {
  const steps *steps;
  const steps_map *map;
  const int64_t *homes, *aways, *actions; /* of the answer */
  int64_t n_homes, n_aways, n_actions, n_beats;
  bool verifies; /* tensors that are made again, by digests */
  thing *things;
  int32_t n_things;
  granules room;
  int64_t *link;                /* of each beat */
  int32_t *of_beat;             /* of each beat of every step: its number in the queues; -1 */
  int32_t issued[SHIM_STREAMS]; /* the shim's newest copies right behind the last op; -1 */
  const life **freed;
  int64_t n_freed;
  int64_t due; /* the entry that is being made, of whose tensors some were dropped; -1 */
  works q;
  error *err;
} unroller;

/* Tensors are in the order of their numbers. */
static int32_t thing_of (const unroller *u, int64_t number) {
  int32_t low = FIRST_WHERE (i, 0, u->n_things, u->map->number[i] >= number);
  return low < u->n_things && u->map->number[low] == number ? low : -1;
}

/* ---- made again ---- */

/* An op behind it, of the same entry, writes the tensor once more. */
static bool is_written_later (const unroller *u, int64_t action, int64_t number) {
  for (int64_t i = action + 1; i < u->n_actions; i++) {
    const int64_t *w = u->actions + 5 * i;
    const beat *e = w[1] == ACTION_AGAIN && w[3] == u->actions[5 * action + 3]
                        ? beats_at (&u->steps->beats, u->map->first + w[2])
                        : NULL;
    for (int32_t k = 0; e != NULL && k < e->n_refs; k++)
      if (beats_ref (&u->steps->beats, e, k) == number && (w[4] >> 2 * k & 3) != USE_READS)
        return true;
  }
  return false;
}

/* Its inputs have a digest before it and behind it, and what was dropped has one behind it. */
static int64_t verifying_ns (unroller *u, const beat *e, int64_t action) {
  int64_t ns = COMPARE_NS, uses = u->actions[5 * action + 4];
  for (int32_t i = 0; i < e->n_refs; i++) {
    int64_t number = beats_ref (&u->steps->beats, e, i);
    int32_t at = thing_of (u, number);
    thing *x = at < 0 ? NULL : &u->things[at];
    if (x != NULL && (uses >> 2 * i & 3) == USE_READS)
      ns += 2 * digest_ns (x);
    else if (x != NULL && x->dropped && !is_written_later (u, action, number)) {
      ns += digest_ns (x) + COMPARE_NS;
      x->dropped = false;
    }
  }
  return u->verifies ? ns : 0;
}

static bool is_room_taken (const unroller *u, const beat *e) {
  bool taken = false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (u, beats_ref (&u->steps->beats, e, i));
    taken = taken || (x >= 0 && is_place_taken (&u->room, &u->things[x]));
  }
  return taken;
}

static const beat *again_beat (const unroller *u, int64_t action) {
  const int64_t *w = u->actions + 5 * action;
  return w[1] == ACTION_AGAIN ? beats_at (&u->steps->beats, u->map->first + w[2]) : NULL;
}

/* The result of an op that runs again; NULL: it only reads that tensor. */
static thing *result_of (unroller *u, int64_t action, const beat *e, int32_t ref) {
  int32_t x = thing_of (u, beats_ref (&u->steps->beats, e, ref));
  bool writes = (u->actions[5 * action + 4] >> 2 * ref & 3) != USE_READS;
  return x >= 0 && writes ? &u->things[x] : NULL;
}

/* Something is dropped that the action's entry makes, with it or later. */
static bool is_due (unroller *u, int64_t action) {
  for (int64_t i = action; i < u->n_actions; i++) {
    bool is_same = u->actions[5 * i + 3] == u->actions[5 * action + 3];
    const beat *e = is_same ? again_beat (u, i) : NULL;
    for (int32_t k = 0; e != NULL && k < e->n_refs; k++) {
      const thing *x = result_of (u, i, e, k);
      if (x != NULL && x->dropped)
        return true;
    }
  }
  return false;
}

/* Results of the entry that were copied instead. */
static bool come_back (unroller *u, int64_t action, const beat *e) {
  for (int32_t k = 0; k < e->n_refs; k++) {
    thing *x = result_of (u, action, e, k);
    if (x != NULL && !x->freed && x->homes != NULL && !thing_arrives (&u->room, x, 0, x->pages))
      return false;
  }
  return true;
}

static bool run_again (unroller *u, int64_t action) {
  const steps *s = u->steps;
  const int64_t *w = u->actions + 5 * action;
  const beat *e = beats_at (&s->beats, u->map->first + w[2]);
  int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
  int64_t ns = s->times[e->op - s->first_op].ns;
  if (u->due != w[3] && is_due (u, action))
    u->due = w[3];
  if (u->due != w[3])
    return come_back (u, action, e);
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (u, beats_ref (&s->beats, e, i));
    if (x >= 0 && !thing_has_room (&u->room, &u->things[x]))
      return false;
  }
  if (!works_add (&u->q, stream, (ns < 0 ? 0 : ns) + verifying_ns (u, e, action), 0, u->err) ||
      !works_wait (&u->q, u->room.host, u->err))
    return false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (u, beats_ref (&s->beats, e, i));
    if (x >= 0 && !thing_touched (&u->room, &u->things[x], stream, true))
      return false;
    if (x >= 0)
      thing_remade (&u->things[x], stream);
  }
  return true;
}

/* The op that makes the tensor again: its beat; NULL: none does. */
static const beat *maker_of (const unroller *u, int64_t action, int64_t number) {
  for (int64_t i = action; i < u->n_actions; i++) {
    const int64_t *w = u->actions + 5 * i;
    const beat *e = w[1] == ACTION_AGAIN ? beats_at (&u->steps->beats, u->map->first + w[2]) : NULL;
    for (int32_t k = 0; e != NULL && k < e->n_refs; k++)
      if (beats_ref (&u->steps->beats, e, k) == number && (w[4] >> 2 * k & 3) != USE_READS)
        return e;
  }
  return NULL;
}

/* Its digest is taken on that op's stream. What the program has, and no op makes again, or has no
   room for that digest, is copied instead. */
static bool drop (unroller *u, thing *x, int64_t action) {
  bool drops = u->actions[5 * action + 1] == ACTION_DROP && !x->freed;
  const beat *e = drops && x->paired ? maker_of (u, action, u->actions[5 * action + 2]) : NULL;
  if (drops && e == NULL)
    return thing_leaves (&u->room, x, 0, x->pages);
  x->dropped = e != NULL;
  if (e != NULL && u->verifies) {
    int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
    if (!works_add (&u->q, stream, digest_ns (x), 0, u->err) ||
        !works_wait (&u->q, u->room.host, u->err) || !wait_for_streams (&u->room, x->users))
      return false;
    x->users |= (uint64_t)1 << stream;
  }
  thing_released (&u->room, x);
  x->users = 0;
  return true;
}

/* Whoever stands in the way of a copy, or of an op again, may be about to be freed. */
static bool is_early (const unroller *u, const int64_t *w, int32_t x) {
  if (w[1] == ACTION_AGAIN)
    return is_room_taken (u, beats_at (&u->steps->beats, u->map->first + w[2]));
  return x >= 0 && u->things[x].homes != NULL && w[1] == ACTION_IN &&
         is_way_taken (&u->room, &u->things[x], w[3], w[3] + w[4]);
}

static bool act (unroller *u, int64_t beat, bool all, int64_t *next) {
  for (; *next < u->n_actions && u->actions[5 * *next] <= beat; ++*next) {
    const int64_t *w = u->actions + 5 * *next;
    int32_t x = w[1] == ACTION_AGAIN ? -1 : thing_of (u, w[2]);
    bool good = true;
    if (!all && is_early (u, w, x))
      return true;
    if (w[1] == ACTION_AGAIN)
      good = run_again (u, *next);
    else if (x >= 0 && u->things[x].homes != NULL)
      good = w[1] == ACTION_DROP || w[1] == ACTION_GIVE
                 ? drop (u, &u->things[x], *next)
                 : (w[1] == ACTION_IN ? thing_arrives : thing_leaves) (&u->room, &u->things[x],
                                                                       w[3], w[3] + w[4]);
    if (!good)
      return false;
  }
  return true;
}

/* ---- the program's beats ---- */

static int32_t target (const unroller *u, int64_t step, int64_t behind) {
  int64_t at = step * u->n_beats + behind;
  return at < 0 ? -1 : u->of_beat[at];
}

/* The host's waits before beat `b`, or behind it. */
static bool host_waits (unroller *u, int64_t step, int64_t b, bool own, int64_t order) {
  const steps *s = u->steps;
  for (int64_t i = order; i < s->n_orders && s->orders[i].beat == b; i++) {
    int32_t behind = target (u, step, s->orders[i].behind);
    if (!s->orders[i].host || (s->orders[i].behind == b) != own || behind < 0)
      continue;
    if (!works_add (&u->q, STREAM_HOST, 0, 0, u->err) || !works_wait (&u->q, behind, u->err))
      return false;
    for (int k = 0; s->orders[i].device && k < SHIM_STREAMS; k++)
      if (!works_wait (&u->q, u->issued[k], u->err))
        return false;
    u->room.host = u->q.last[STREAM_HOST];
  }
  return true;
}

static bool add_op (unroller *u, int64_t step, int64_t b, int64_t order) {
  const steps *s = u->steps;
  const beat *e = beats_at (&s->beats, u->map->first + b);
  int32_t stream = e->stream < PROGRAM_STREAMS ? e->stream : PROGRAM_STREAMS - 1;
  int64_t ns = s->times[e->op - s->first_op].ns;
  if (!host_waits (u, step, b, false, order))
    return false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    int32_t x = thing_of (u, beats_ref (&s->beats, e, k));
    if (x >= 0 && !thing_has_room (&u->room, &u->things[x]))
      return false;
  }
  if (!works_add (&u->q, stream, u->link[b] != 0 || ns < 0 ? 0 : ns, u->link[b], u->err) ||
      !works_wait (&u->q, u->room.host, u->err))
    return false;
  u->of_beat[step * u->n_beats + b] = u->q.last[stream];
  for (int64_t i = order; i < s->n_orders && s->orders[i].beat == b; i++)
    if (!s->orders[i].host && !works_wait (&u->q, target (u, step, s->orders[i].behind), u->err))
      return false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    int32_t x = thing_of (u, beats_ref (&s->beats, e, k));
    shim_fact fact = steps_fact (s, e, k);
    bool reads = !beat_is_loose (e->token) && (fact == FACT_SAME || fact == FACT_READ);
    if (x >= 0 && !thing_touched (&u->room, &u->things[x], stream, reads))
      return false;
  }
  return host_waits (u, step, b, true, order);
}

/* Results of the step before lie on the host, but for those that stay. */
static void carry_in (unroller *u) {
  for (int64_t i = 0; i < u->steps->n_crossings; i++) {
    int32_t in = thing_of (u, u->steps->crossings[i].carried_in);
    int32_t out = thing_of (u, u->steps->crossings[i].carried_out);
    if (in < 0 || out < 0)
      continue;
    thing *x = &u->things[in];
    thing_made (x);
    x->own[STREAM_OUT] = u->things[out].own[STREAM_OUT];
    for (int64_t p = 0; u->map->leaves[out] && x->homes != NULL && p < x->pages; p++)
      x->state[p] = AWAY;
  }
}

static bool run_step (unroller *u, int64_t step) {
  int64_t action = 0, freed = 0, order = 0;
  u->due = -1;
  carry_in (u);
  for (int64_t b = 0; b < u->n_beats; b++) {
    const beat *e = beats_at (&u->steps->beats, u->map->first + b);
    int32_t made = e->op < 0 ? thing_of (u, e->allocation) : -1;
    if (b == 0 && !act (u, -1, true, &action))
      return false;
    while (order < u->steps->n_orders && u->steps->orders[order].beat < b)
      order++;
    if (made >= 0)
      thing_made (&u->things[made]);
    if ((e->op >= 0 && !add_op (u, step, b, order)) || !act (u, b, false, &action))
      return false;
    for (int k = 0; e->op >= 0 && k < SHIM_STREAMS; k++)
      u->issued[k] = u->q.last[k];
    for (; freed < u->n_freed && u->freed[freed]->freed <= u->map->first + b + 1; freed++) {
      int32_t x = thing_of (u, u->freed[freed]->number);
      if (x < 0)
        continue;
      u->things[x].freed = true;
      if (u->things[x].give < action)
        thing_released (&u->room, &u->things[x]);
    }
    if (!act (u, b, true, &action))
      return false;
  }
  return true;
}

/* ---- before the first ---- */

static void read_answer (unroller *u, const bytes *words) {
  const int64_t *w = (const int64_t *)(const void *)words->data;
  u->n_homes = w[3];
  u->n_aways = w[4];
  u->n_actions = w[5];
  u->homes = w + PLAN_HEAD;
  u->aways = u->homes;
  for (int64_t i = 0; i < u->n_homes; i++)
    u->aways += 2 + u->aways[1];
  u->actions = u->aways + 3 * u->n_aways;
}

static bool place_things (unroller *u, int64_t n_granules, arena *a) {
  if (!ALLOC (a, u->things, u->n_things + 1, u->err) ||
      !ALLOC (a, u->room.at, n_granules + 1, u->err))
    return false;
  for (int64_t g = 0; g < n_granules; g++)
    granule_empty (&u->room.at[g], NULL);
  for (int32_t x = 0; x < u->n_things; x++) {
    u->things[x] = (thing){ .own = { -1, -1, -1 }, .behind_own = { -1, -1, -1 }, .give = -1 };
    u->things[x].bytes = beats_life (&u->steps->beats, u->map->number[x])->bytes;
  }
  for (int64_t i = 0, at = 0; i < u->n_homes; i++, at += 2 + u->homes[at + 1]) {
    thing *x = &u->things[thing_of (u, u->homes[at])];
    x->pages = u->homes[at + 1];
    x->homes = u->homes + at + 2;
    if (!ALLOC (a, x->state, x->pages + 1, u->err) || !ALLOC (a, x->digests, x->pages + 1, u->err))
      return false;
    const life *l = beats_life (&u->steps->beats, u->homes[at]);
    bool lasts = l->born < u->map->first && l->crossing == CROSSING_NONE;
    for (int64_t p = 0; p < x->pages; p++) {
      x->state[p] = HERE;
      if (lasts)
        u->room.at[x->homes[p]].owner = x;
    }
  }
  for (int64_t i = 0; i < u->n_aways; i++) {
    const int64_t *w = u->aways + 3 * i;
    thing *x = &u->things[thing_of (u, w[0])];
    for (int64_t p = w[1]; p < w[1] + w[2]; p++) {
      x->state[p] = AWAY;
      if (u->room.at[x->homes[p]].owner == x)
        u->room.at[x->homes[p]].owner = NULL;
    }
  }
  return true;
}

static void mark_checks (unroller *u) {
  for (int64_t i = 0; i < u->n_actions; i++) {
    int64_t action = u->actions[5 * i + 1];
    int32_t x = action == ACTION_AGAIN ? -1 : thing_of (u, u->actions[5 * i + 2]);
    if (x >= 0 && action == ACTION_LEAVE)
      u->things[x].checks = true;
    if (x >= 0 && action == ACTION_GIVE)
      u->things[x].give = i;
  }
}

/* The first pair is everybody's, and each stream on which ops run again has one for what they
   read. */
static void give_pairs (unroller *u, int64_t granule_bytes) {
  uint64_t streams = 0;
  int32_t left = pairs_in (granule_bytes) - 1;
  for (int64_t i = 0; i < u->n_actions; i++) {
    const beat *e = again_beat (u, i);
    uint64_t bit = e == NULL ? 0 : (uint64_t)1 << (e->stream & 63);
    left -= (streams | bit) != streams;
    streams |= bit;
  }
  for (int64_t i = 0; i < u->n_actions && left > 0; i++) {
    const int64_t *w = u->actions + 5 * i;
    int32_t x = w[1] == ACTION_DROP && maker_of (u, i, w[2]) != NULL ? thing_of (u, w[2]) : -1;
    left -= x >= 0 && !u->things[x].paired;
    if (x >= 0)
      u->things[x].paired = true;
  }
}

static int by_end (const void *x, const void *y) {
  const life *a = *(const life *const *)x, *b = *(const life *const *)y;
  return ORDER (a->freed, b->freed) ?: ORDER (a->number, b->number);
}

static int by_beat (const void *x, const void *y) {
  const steps_order *a = x, *b = y;
  return ORDER (a->beat, b->beat) ?: ORDER (a->behind, b->behind);
}

static bool find_tables (unroller *u, arena *a) {
  if (!ALLOC (a, u->freed, u->n_things + 1, u->err) ||
      !ALLOC (a, u->link, u->n_beats + 1, u->err) ||
      !ALLOC (a, u->of_beat, STEPS * u->n_beats + 1, u->err))
    return false;
  for (int32_t x = 0; x < u->n_things; x++) {
    const life *l = beats_life (&u->steps->beats, u->map->number[x]);
    if ((l->born >= u->map->first || l->crossing != CROSSING_NONE) && l->freed >= 0)
      u->freed[u->n_freed++] = l;
  }
  qsort (u->freed, (size_t)u->n_freed, sizeof *u->freed, by_end);
  qsort (u->steps->orders, (size_t)u->steps->n_orders, sizeof *u->steps->orders, by_beat);
  for (int64_t i = 0; i < u->steps->n_links; i++)
    if (u->steps->links[i].beat < u->n_beats)
      u->link[u->steps->links[i].beat] = u->steps->links[i].bytes;
  for (int64_t i = 0; i < STEPS * u->n_beats; i++)
    u->of_beat[i] = -1;
  return true;
}

/* The mean time from step to step, once the first ones have passed. */
static bool mean_ns (const unroller *u, const device *d, arena *a, int64_t *ns) {
  int64_t first = u->map->beat[0];
  span *at;
  if (!works_simulate (&u->q, d, a, &at, u->err))
    return false;
  int64_t low = at[u->of_beat[STEPS / 2 * u->n_beats + first]].end_ns;
  int64_t high = at[u->of_beat[(STEPS - 1) * u->n_beats + first]].end_ns;
  *ns = (high - low) / (STEPS - 1 - STEPS / 2);
  return true;
}

bool unroll_step_ns (const unroll_question *q, arena *a, int64_t *step_ns, error *err) {
  const steps *s = q->steps;
  const steps_map *map = q->map;
  const device *d = q->device;
  unroller u = {
    .steps = s,
    .map = map,
    .verifies = q->verifies,
    .n_beats = map->end - map->first,
    .n_things = map->n_tensors,
    .room = { .bytes = d->granule_bytes, .host = -1, .checks = q->checks, .q = &u.q, .err = err },
    .issued = { -1, -1, -1 },
    .due = -1,
    .err = err
  };
  works_start (&u.q);
  read_answer (&u, q->words);
  bool good = place_things (&u, ((const int64_t *)(const void *)q->words->data)[2], a) &&
              find_tables (&u, a);
  if (good) {
    mark_checks (&u);
    give_pairs (&u, d->granule_bytes);
  }
  for (int64_t n = 0; good && n < STEPS; n++)
    good = run_step (&u, n);
  good = good && mean_ns (&u, d, a, step_ns);
  works_free (&u.q);
  return good;
}
