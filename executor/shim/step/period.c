/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/step/period.h"

#include <stdlib.h>
#include <string.h>

enum { LAST_BITS = 16, SURE = 4, CONTEXT = 8 };
/* Long contexts: how many beats pass between two looks, and how many that repeat themselves without
   them make them needless. */
enum { FAR_LAST_BITS = 14, FAR_PAUSE = 16, FAR_IDLE = 8192 };
static const int64_t far_context[BEATS_SCALES] = { 64, 512, 4096 };
static const uint64_t mixer = 0x9e3779b97f4a7c15u;

/* The factor of a beat in the hash once `context` beats have come behind it. */
static uint64_t weight_of (int64_t context) {
  uint64_t weight = mixer;
  for (int64_t n = 0; n < context; n++)
    weight *= mixer;
  return weight;
}

bool beats_new (beats *b, int64_t capacity, int64_t refs, int64_t lives) {
  *b = (beats){ .capacity = capacity, .refs_capacity = refs, .lives_capacity = lives };
  b->at = calloc ((size_t)capacity, sizeof *b->at);
  b->refs = calloc ((size_t)refs, sizeof *b->refs);
  b->lives = calloc ((size_t)lives, sizeof *b->lives);
  b->last = calloc ((size_t)1 << LAST_BITS, sizeof *b->last);
  bool far = true;
  b->near_gone = weight_of (CONTEXT);
  for (int k = 0; k < BEATS_SCALES; k++) {
    b->far_gone[k] = weight_of (far_context[k]);
    far = (b->far_last[k] = calloc ((size_t)1 << FAR_LAST_BITS, sizeof *b->last)) != NULL && far;
  }
  return b->at != NULL && b->refs != NULL && b->lives != NULL && b->last != NULL && far;
}

void beats_free (beats *b) {
  free (b->at);
  free (b->refs);
  free (b->lives);
  free (b->last);
  for (int k = 0; k < BEATS_SCALES; k++)
    free (b->far_last[k]);
  free (b->name_last);
  free (b->name_gap);
}

life *beats_life (const beats *b, int64_t number) {
  life *l = &b->lives[number & (b->lives_capacity - 1)];
  return number >= 0 && number < b->n_lives && l->number == number ? l : NULL;
}

bool life_at (const life *l, int64_t i) {
  return l->born < i && (l->freed < 0 || l->freed > i);
}

static bool same_tensor (const beats *b, int64_t i, int64_t x, int64_t j, int64_t y) {
  if (x == y)
    return true;
  const life *p = beats_life (b, x), *q = beats_life (b, y);
  /* Older than two such steps, it lasts: then it is the same or it is not. */
  return p != NULL && q != NULL && p->bytes == q->bytes && i - p->born == j - q->born &&
         i - p->born <= 2 * (i - j);
}

bool beats_same (const beats *b, int64_t i, int64_t j) {
  const beat *x = beats_at (b, i), *y = beats_at (b, j);
  if (x->token != y->token || (x->op < 0) != (y->op < 0) || x->stream != y->stream)
    return false;
  if (x->op >= 0 && beat_is_loose (x->token))
    return true;
  if (x->n_refs != y->n_refs)
    return false;
  for (int32_t k = 0; k < x->n_refs; k++)
    if (!same_tensor (b, i, beats_ref (b, x, k), j, beats_ref (b, y, k)))
      return false;
  return true;
}

bool beats_kept (const beats *b, int64_t i) {
  return i >= 0 && b->n - i < b->capacity &&
         b->n_refs - beats_at (b, i)->first_ref < b->refs_capacity;
}

static void note_best (const beats *b, const repeat *r, repeat *best, int64_t *best_n) {
  if (r->run < r->period || r->run + r->period <= best->run + best->period)
    return;
  *best = *r;
  *best_n = b->n;
}

/* A beat with those before it: one alone comes too often to say where it was last. */
static int64_t *near_place (beats *b) {
  int64_t i = b->n - 1;
  b->near_hash = (b->near_hash + beats_at (b, i)->token) * mixer;
  if (i >= CONTEXT)
    b->near_hash -= beats_at (b, i - CONTEXT)->token * b->near_gone;
  return &b->last[(b->near_hash * mixer) >> (64 - LAST_BITS)];
}

static bool goes_on (const beats *b, repeat *r) {
  int64_t i = b->n - 1;
  bool same = r->period > 0 && beats_kept (b, i - r->period) && beats_same (b, i, i - r->period);
  r->run = same ? r->run + 1 : 0;
  r->period = same ? r->period : 0;
  return same;
}

/* The newest beat may repeat that one. */
static void look_back (const beats *b, int64_t before, repeat *r) {
  int64_t i = b->n - 1;
  *r = (repeat){ 0 };
  if (before < 0 || 2 * (i - before) >= b->capacity)
    return;
  r->period = i - before;
  while (r->run < r->period && beats_kept (b, i - r->run - r->period) &&
         beats_same (b, i - r->run, i - r->run - r->period))
    r->run++;
  if (r->run == 0)
    r->period = 0;
}

static bool look_near (beats *b) {
  int64_t i = b->n - 1, *last = near_place (b), before = *last - 1;
  *last = i + 1;
  bool known = goes_on (b, &b->near);
  if (!known)
    look_back (b, before, &b->near);
  note_best (b, &b->near, &b->best_near, &b->best_near_n);
  return known;
}

/* The hash of the last beats of a long context: the newest comes in, the oldest goes. */
static int64_t *far_place (beats *b, int k) {
  int64_t i = b->n - 1, left = i - far_context[k];
  uint64_t *h = &b->far_hash[k];
  *h = (*h + beats_at (b, i)->token) * mixer;
  if (left < b->far_since)
    return NULL;
  *h -= beats_at (b, left)->token * b->far_gone[k];
  return &b->far_last[k][(*h * mixer) >> (64 - FAR_LAST_BITS)];
}

/* The longest context that was there before says most.  The period may be the near one, which is
   known to go on. */
static void look_far (beats *b, bool near_goes_on) {
  int64_t i = b->n - 1, before[BEATS_SCALES];
  bool is_near = near_goes_on && b->far.period == b->near.period;
  b->far.run += is_near;
  bool known = is_near || goes_on (b, &b->far);
  for (int k = 0; k < BEATS_SCALES; k++) {
    int64_t *last = 2 * far_context[k] < b->capacity ? far_place (b, k) : NULL;
    before[k] = last ? *last - 1 : -1;
    if (last)
      *last = i + 1;
  }
  if (!known && i - b->far_looked >= FAR_PAUSE) {
    b->far_looked = i;
    for (int k = BEATS_SCALES - 1; k >= 0 && b->far.run < far_context[0]; k--)
      look_back (b, before[k], &b->far);
  }
  note_best (b, &b->far, &b->best_far, &b->best_far_n);
}

static void look_for_period (beats *b) {
  bool near_goes_on = look_near (b);
  if (b->near.run < FAR_IDLE || b->near.run < SURE * b->near.period) {
    look_far (b, near_goes_on);
    return;
  }
  b->far = (repeat){ 0 };
  b->far_since = b->n;
  memset (b->far_hash, 0, sizeof b->far_hash);
}

/* From now on the record ends there. */
static void go_back (beats *b, int64_t n, const repeat *r) {
  b->n = n;
  b->near = *r;
  b->far = (repeat){ 0 };
  b->n_names = 0;
}

void beats_rewind (beats *b) {
  int64_t first, end;
  b->all = b->n;
  if (b->best_near.period > 0)
    go_back (b, b->best_near_n, &b->best_near);
  if (b->best_far.period == 0 ||
      (b->best_near.period > 0 && beats_step (b, &first, &end) == BEATS_CUT))
    return;
  go_back (b, b->best_far_n, &b->best_far);
  if (beats_step (b, &first, &end) != BEATS_CUT && b->best_near.period > 0)
    go_back (b, b->best_near_n, &b->best_near);
}

static bool note_name (beats *b, int32_t name) {
  if (name >= b->n_names) {
    int32_t more = name + 64;
    int64_t *last = realloc (b->name_last, (size_t)more * sizeof *last);
    b->name_last = last != NULL ? last : b->name_last;
    int64_t *gap = realloc (b->name_gap, (size_t)more * sizeof *gap);
    b->name_gap = gap != NULL ? gap : b->name_gap;
    if (last == NULL || gap == NULL)
      return false;
    for (int32_t k = b->n_names; k < more; k++)
      last[k] = gap[k] = -1;
    b->n_names = more;
  }
  int64_t i = b->n - 1, gap = b->name_last[name] < 0 ? 0 : i - b->name_last[name];
  if (gap > b->name_gap[name])
    b->name_gap[name] = gap;
  b->name_last[name] = i;
  return true;
}

void beats_allocate (beats *b, int64_t bytes) {
  int64_t number = b->n_lives++, i = b->n++;
  b->lives[number & (b->lives_capacity - 1)] =
      (life){ .number = number, .bytes = bytes, .born = i, .freed = -1 };
  *beats_at (b, i) = (beat){ .token = (uint64_t)bytes * 0x9e3779b97f4a7c15u + 1,
                             .op = -1,
                             .allocation = number,
                             .first_ref = b->n_refs };
  look_for_period (b);
}

void beats_release (beats *b, int64_t number) {
  life *l = beats_life (b, number);
  if (l != NULL)
    l->freed = b->n;
}

bool beats_op (beats *b, beat e, const int64_t *refs) {
  if (e.n_refs > b->refs_capacity / 4)
    return false;
  e.first_ref = b->n_refs;
  e.allocation = -1;
  for (int32_t i = 0; i < e.n_refs; i++)
    b->refs[b->n_refs++ & (b->refs_capacity - 1)] = refs[i];
  *beats_at (b, b->n++) = e;
  look_for_period (b);
  return note_name (b, e.name);
}

/* A function that comes back after longer than these steps, is not in them and is about to, says
   that they are parts of a longer one; but not for ever. */
static bool misses_function (const beats *b, const repeat *r) {
  if (r->run >= SURE * r->period)
    return false;
  for (int32_t k = 0; k < b->n_names; k++) {
    int64_t since = b->n - b->name_last[k];
    if (b->name_gap[k] > r->period && since > r->period && since < 2 * b->name_gap[k])
      return true;
  }
  return false;
}

static bool has_op (const beats *b, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; i++)
    if (beats_at (b, i)->op >= 0)
      return true;
  return false;
}

/* The free of a tensor as the step sees it. In a whole record there may be a last repetition, and
   behind it the program gives up what lasts: that is no part of it. */
static int64_t freed (const beats *b, const life *l, int64_t period) {
  bool later = l->freed > b->n; /* not known yet */
  bool last = b->all > 0 && l->freed == b->n && l->born < b->n - 2 * period;
  return later || last ? -1 : l->freed;
}

static bool is_alive (const beats *b, const life *l, int64_t period, int64_t i) {
  life seen = *l;
  seen.freed = freed (b, l, period);
  return life_at (&seen, i);
}

/* How many bytes that do not last are live before each of the last `period` beats and after the
   last: added at a begin, taken off at an end. */
static void mark_wraps (const beats *b, int64_t period, int64_t *delta, int64_t first,
                        int64_t end) {
  int64_t from = beats_oldest_life (b);
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    int64_t gone = freed (b, l, period);
    bool lasts = l->born < first - period && gone < 0;
    if (lasts || (gone >= 0 && gone <= first - period))
      continue;
    int64_t low = l->born + 1 > first ? l->born + 1 : first;
    int64_t high = gone < 0 || gone > end + 1 ? end + 1 : gone;
    if (low < high) {
      delta[low - first] += l->bytes;
      delta[high - first] -= l->bytes;
    }
  }
}

/* The same tensors are there at both ends of a step; and, with `stay`, until the last beat. */
static bool is_closed (const beats *b, int64_t period, int64_t first, int64_t end, bool stay) {
  int64_t from = beats_oldest_life (b);
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    bool there = is_alive (b, l, period, end);
    if (is_alive (b, l, period, first) != there ||
        (stay && there && !is_alive (b, l, period, b->n)))
      return false;
  }
  return true;
}

beats_answer beats_step_of (const beats *b, const repeat *r, int64_t *first, int64_t *end) {
  int64_t p = r->period;
  if (p == 0 || r->run < p || !has_op (b, b->n - p, b->n) || misses_function (b, r))
    return BEATS_NO;
  int64_t from = b->n - p + 1, sum = 0;
  int64_t *delta = calloc ((size_t)p + 3, sizeof *delta);
  if (delta == NULL)
    return BEATS_NO;
  mark_wraps (b, p, delta, from, b->n);
  *end = -1;
  for (int64_t i = 0; i < p && *end < 0; i++) {
    sum += delta[i];
    if (sum == 0 && is_closed (b, p, from + i - p, from + i, false))
      *end = from + i;
  }
  free (delta);
  /* behind the newest beat a tensor may be about to be freed: one period before, that is known */
  if (*end < 0 && is_closed (b, p, b->n - 2 * p, b->n - p, true))
    *end = b->n - p;
  *first = *end - p;
  return *end < 0 ? BEATS_WRAP : BEATS_CUT;
}

beats_answer beats_step (const beats *b, int64_t *first, int64_t *end) {
  beats_answer near = beats_step_of (b, &b->near, first, end);
  if (near == BEATS_CUT)
    return near;
  beats_answer far = beats_step_of (b, &b->far, first, end);
  return far == BEATS_CUT || near == BEATS_NO ? far : near;
}
