/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/watch/foresee.h"

#include <stdlib.h>

#include "executor/shim/block.h"
#include "executor/watch/queues.h"

/* Streams of the program have the numbers that the shim gave them; its own two come first. */
enum { STREAM_OUT, STREAM_IN, STREAM_HOST = QUEUES_STREAMS - 1, PROGRAM_STREAMS = 64, STEPS = 16 };

/* Clean: nothing has touched it since it came from the host, which has the same bytes. Read: ops
   have, which were seen to leave it alone. */
typedef enum where { LAZY, HERE, CLEAN, READ, AWAY } where;

/* A digest decides whether a page that was read is copied, on the stream of copies out. */
enum { CHECK_NS = 4000, DIGEST_NS = 2000, CHECK_BYTES_PER_NS = 2000 };

/* A piece of device memory: who writes there waits for these. */
typedef struct granule {
  uint64_t streams;
  int32_t in, out;     /* copies; -1: none */
  struct thing *owner; /* the thing whose bytes it holds; NULL: none */
} granule;

typedef struct thing { /* a tensor */
  const int64_t *homes;
  int64_t pages, bytes;
  uint8_t *state; /* of each page */
  bool checks;    /* its digest decides whether it is copied, if it was only read */
  int64_t give;   /* until that action it is kept, though the program has freed it; -1: it is not */
  uint64_t users;
  int32_t in, out; /* its newest copies; -1 */
} thing;

typedef struct foreseer {
  const steps *steps;
  const steps_map *map;
  const int64_t *homes, *aways, *actions; /* of the answer */
  int64_t n_homes, n_aways, n_actions, n_beats;
  int64_t granule_bytes;
  bool verifies; /* tensors that are made again, by digests */
  thing *things;
  int32_t n_things;
  granule *granules;
  int64_t *link;              /* of each beat */
  int32_t *of_beat;           /* of each beat of every step: its number in the queues; -1 */
  int32_t host;               /* the last row that the host waited for; -1 */
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

static bool wait_for (foreseer *f, uint64_t streams) {
  for (int32_t i = 0; streams != 0; i++, streams >>= 1)
    if ((streams & 1) != 0 && !queues_wait (&f->q, f->q.last[i], f->err))
      return false;
  return true;
}

/* ---- copies ---- */

static int64_t span_bytes (const foreseer *f, const thing *x, int64_t first, int64_t end) {
  int64_t to = end * f->granule_bytes;
  return (to < x->bytes ? to : x->bytes) - first * f->granule_bytes;
}

static int64_t run_end (const thing *x, int64_t from, int64_t end, where state) {
  while (from < end && x->state[from] == state)
    from++;
  return from;
}

static bool go_out (foreseer *f, thing *x, int64_t first, int64_t end) {
  uint64_t users = x->users;
  int64_t bytes = span_bytes (f, x, first, end);
  bool checked = x->checks && run_end (x, first, end, READ) == end;
  if (!queues_add (&f->q, STREAM_OUT, checked ? CHECK_NS + bytes / CHECK_BYTES_PER_NS : 0,
                   checked ? 0 : -bytes, f->err) ||
      !queues_wait (&f->q, f->host, f->err) || !wait_for (f, users) ||
      !queues_wait (&f->q, x->in, f->err))
    return false;
  x->out = f->q.last[STREAM_OUT];
  for (int64_t p = first; p < end; p++) {
    f->granules[x->homes[p]] = (granule){ .in = -1, .out = x->out };
    x->state[p] = AWAY;
  }
  return true;
}

static bool wait_for_granule (foreseer *f, granule *g, thing *owner) {
  granule was = *g;
  *g = (granule){ .in = -1, .out = -1, .owner = owner };
  return wait_for (f, was.streams) && queues_wait (&f->q, was.in, f->err) &&
         queues_wait (&f->q, was.out, f->err);
}

static void drop_clean (foreseer *f, thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++)
    if (x->state[p] == CLEAN) {
      f->granules[x->homes[p]] = (granule){ .in = x->in, .out = -1 };
      x->state[p] = AWAY;
    }
}

static bool leave (foreseer *f, thing *x, int64_t first, int64_t end) {
  drop_clean (f, x, first, end);
  for (int64_t p = first; p < end; p++) {
    int64_t to = p;
    while (to < end && (x->state[to] == HERE || x->state[to] == READ))
      to++;
    if (to > p && !go_out (f, x, p, to))
      return false;
    p = to > p ? to - 1 : p;
  }
  return true;
}

/* Whoever is in the way of these pages goes: a plan has no copy for what is dropped. */
static bool vacate (foreseer *f, const thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++) {
    thing *owner = f->granules[x->homes[p]].owner;
    if (owner != NULL && owner != x && !leave (f, owner, 0, owner->pages))
      return false;
  }
  return true;
}

static bool come_in (foreseer *f, thing *x, int64_t first, int64_t end) {
  if (!vacate (f, x, first, end) ||
      !queues_add (&f->q, STREAM_IN, 0, span_bytes (f, x, first, end), f->err) ||
      !queues_wait (&f->q, f->host, f->err) || !queues_wait (&f->q, x->out, f->err))
    return false;
  x->in = f->q.last[STREAM_IN];
  for (int64_t p = first; p < end; p++) {
    if (!wait_for_granule (f, &f->granules[x->homes[p]], x))
      return false;
    x->state[p] = CLEAN;
  }
  return true;
}

static bool arrive (foreseer *f, thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++) {
    int64_t to = run_end (x, p, end, AWAY);
    if (to > p && !come_in (f, x, p, to))
      return false;
    p = to > p ? to - 1 : p;
  }
  return true;
}

static bool is_taken (const foreseer *f, const thing *x, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; p++)
    if (x->state[p] == AWAY && f->granules[x->homes[p]].owner != NULL)
      return true;
  return false;
}

/* ---- a step ---- */

static void make (thing *x) {
  x->users = 0;
  x->in = x->out = -1;
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    x->state[p] = LAZY;
}

static void release (foreseer *f, thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] == HERE || x->state[p] == CLEAN || x->state[p] == READ) {
      f->granules[x->homes[p]] = (granule){ .streams = x->users, .in = x->in, .out = -1 };
      x->state[p] = LAZY;
    }
}

/* Before an op that uses it: what was dropped for others comes on demand. */
static bool make_room (foreseer *f, thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] == LAZY && !vacate (f, x, p, p + 1))
      return false;
  return x->homes == NULL || arrive (f, x, 0, x->pages);
}

/* The op is the last in the queues. */
static bool touch (foreseer *f, thing *x, int32_t stream, bool reads) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++) {
    if (x->state[p] == LAZY && !wait_for_granule (f, &f->granules[x->homes[p]], x))
      return false;
    bool was_clean = x->state[p] == CLEAN || x->state[p] == READ;
    if (x->state[p] != AWAY)
      x->state[p] = reads && was_clean ? READ : HERE;
  }
  x->users |= (uint64_t)1 << stream;
  return queues_wait (&f->q, x->in, f->err);
}

/* ---- made again ---- */

static int64_t digest_ns (const thing *x) {
  return x->pages == 0 ? 0 : DIGEST_NS + x->bytes / CHECK_BYTES_PER_NS;
}

/* Its inputs have a digest before and behind it, its results behind it. */
static int64_t verifying_ns (const foreseer *f, const beat *e, int64_t uses) {
  int64_t ns = 0;
  for (int32_t i = 0; f->verifies && i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&f->steps->beats, e, i));
    int64_t own = x < 0 ? 0 : digest_ns (&f->things[x]);
    ns += (uses >> 2 * i & 3) == USE_READS ? 2 * own : own;
  }
  return ns + (f->verifies ? DIGEST_NS : 0);
}

static bool is_in_the_way (const foreseer *f, const thing *x) {
  for (int64_t p = 0; x->homes != NULL && p < x->pages; p++)
    if (x->state[p] != HERE && x->state[p] != CLEAN && x->state[p] != READ &&
        f->granules[x->homes[p]].owner != NULL)
      return true;
  return false;
}

static bool is_room_taken (const foreseer *f, const beat *e) {
  bool taken = false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&f->steps->beats, e, i));
    taken = taken || (x >= 0 && is_in_the_way (f, &f->things[x]));
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
    if (x >= 0 && !make_room (f, &f->things[x]))
      return false;
  }
  if (!queues_add (&f->q, stream, (ns < 0 ? 0 : ns) + verifying_ns (f, e, w[4]), 0, f->err) ||
      !queues_wait (&f->q, f->host, f->err))
    return false;
  for (int32_t i = 0; i < e->n_refs; i++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, i));
    if (x >= 0 && !touch (f, &f->things[x], stream, false))
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
        !queues_wait (&f->q, f->host, f->err) || !wait_for (f, x->users))
      return false;
    x->users |= (uint64_t)1 << stream;
  }
  release (f, x);
  x->users = 0;
  return true;
}

/* Whoever stands in the way of a copy, or of an op again, may be about to be freed. */
static bool is_early (const foreseer *f, const int64_t *w, int32_t x) {
  if (w[1] == ACTION_AGAIN)
    return is_room_taken (f, beats_at (&f->steps->beats, f->map->first + w[2]));
  return x >= 0 && f->things[x].homes != NULL && w[1] == ACTION_IN &&
         is_taken (f, &f->things[x], w[3], w[3] + w[4]);
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
                 : (w[1] == ACTION_IN ? arrive : leave) (f, &f->things[x], w[3], w[3] + w[4]);
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
    f->host = f->q.last[STREAM_HOST];
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
    if (x >= 0 && !make_room (f, &f->things[x]))
      return false;
  }
  if (!queues_add (&f->q, stream, f->link[b] != 0 || ns < 0 ? 0 : ns, f->link[b], f->err) ||
      !queues_wait (&f->q, f->host, f->err))
    return false;
  f->of_beat[step * f->n_beats + b] = f->q.last[stream];
  for (int64_t i = order; i < s->n_orders && s->orders[i].beat == b; i++)
    if (!s->orders[i].host && !queues_wait (&f->q, target (f, step, s->orders[i].behind), f->err))
      return false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    int32_t x = thing_of (f, beats_ref (&s->beats, e, k));
    shim_fact fact = steps_fact (s, e, k);
    bool reads = !beat_is_loose (e->token) && (fact == FACT_SAME || fact == FACT_READ);
    if (x >= 0 && !touch (f, &f->things[x], stream, reads))
      return false;
  }
  return host_waits (f, step, b, true, order);
}

/* Results of the step before lie on the host, but for those that stay. */
static void inherit (foreseer *f) {
  for (int64_t i = 0; i < f->steps->n_crossings; i++) {
    int32_t old = thing_of (f, f->steps->crossings[i].old);
    int32_t heir = thing_of (f, f->steps->crossings[i].heir);
    if (old < 0 || heir < 0)
      continue;
    thing *x = &f->things[old];
    make (x);
    x->out = f->things[heir].out;
    for (int64_t p = 0; f->map->leaves[heir] && x->homes != NULL && p < x->pages; p++)
      x->state[p] = AWAY;
  }
}

static bool run_step (foreseer *f, int64_t step) {
  int64_t action = 0, freed = 0, order = 0;
  inherit (f);
  for (int64_t b = 0; b < f->n_beats; b++) {
    const beat *e = beats_at (&f->steps->beats, f->map->first + b);
    int32_t made = e->op < 0 ? thing_of (f, e->allocation) : -1;
    if (b == 0 && !act (f, -1, true, &action))
      return false;
    while (order < f->steps->n_orders && f->steps->orders[order].beat < b)
      order++;
    if (made >= 0)
      make (&f->things[made]);
    if ((e->op >= 0 && !add_op (f, step, b, order)) || !act (f, b, false, &action))
      return false;
    for (int k = 0; e->op >= 0 && k < QUEUES_OWN; k++)
      f->issued[k] = f->q.last[k];
    for (; freed < f->n_freed && f->freed[freed]->freed <= f->map->first + b + 1; freed++) {
      int32_t x = thing_of (f, f->freed[freed]->number);
      if (x >= 0 && f->things[x].give < action)
        release (f, &f->things[x]);
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

static bool place_things (foreseer *f, int64_t granules, arena *a) {
  f->things = NEW (a, f->n_things + 1, thing, f->err);
  f->granules = NEW (a, granules + 1, granule, f->err);
  if (f->things == NULL || f->granules == NULL)
    return false;
  for (int64_t g = 0; g < granules; g++)
    f->granules[g].in = f->granules[g].out = -1;
  for (int32_t x = 0; x < f->n_things; x++) {
    f->things[x] = (thing){ .in = -1, .out = -1, .give = -1 };
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
        f->granules[x->homes[p]].owner = x;
    }
  }
  for (int64_t i = 0; i < f->n_aways; i++) {
    const int64_t *w = f->aways + 3 * i;
    thing *x = &f->things[thing_of (f, w[0])];
    for (int64_t p = w[1]; p < w[1] + w[2]; p++) {
      x->state[p] = AWAY;
      if (f->granules[x->homes[p]].owner == x)
        f->granules[x->homes[p]].owner = NULL;
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
                 .granule_bytes = d->granule_bytes,
                 .host = -1,
                 .issued = { -1, -1 },
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
