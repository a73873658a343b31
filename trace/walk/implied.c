/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/walk/implied.h"

/* A wait reaches back two steps at most, and no order goes to an earlier step.  So what implies a
   wait lies within three steps, and in steps before which there were fewer the same holds: whoever
   is awaited there began a step that has been. */
enum { UNROLLED = 3, LAST = UNROLLED - 1 };

/* How many items of each queue have ended, since the first step. */
typedef struct known {
  int64_t ended[WALK_QUEUES];
} known;

typedef struct reader {
  const walk *p;
  known *at; /* of an item in a step: what is over once it has ended */
} reader;

static known *of (const reader *r, int32_t step, int32_t place) {
  return &r->at[(int64_t)step * r->p->n_items + place];
}

static const known *of_wait (const reader *r, int32_t step, const walk_wait *w) {
  return step < w->lag ? NULL : of (r, step - w->lag, r->p->place[w->queue][w->position]);
}

/* All that its queue knows before an item; NULL: nothing has run in it. */
static const known *of_queue (const reader *r, int32_t step, const walk_item *i) {
  int32_t n = r->p->count[i->queue];
  if (i->position > 0)
    return of (r, step, r->p->place[i->queue][i->position - 1]);
  return step > 0 ? of (r, step - 1, r->p->place[i->queue][n - 1]) : NULL;
}

static void join (known *into, const known *from) {
  for (int q = 0; from != NULL && q < WALK_QUEUES; q++)
    if (from->ended[q] > into->ended[q])
      into->ended[q] = from->ended[q];
}

static void learn (const reader *r, int32_t step, int32_t place) {
  const walk_item *i = &r->p->items[place];
  known *k = of (r, step, place);
  *k = (known){ { 0 } };
  join (k, of_queue (r, step, i));
  for (int32_t d = i->first_demand; d < i->first_demand + i->n_demands; d++)
    join (k, of_wait (r, step, &r->p->demands[d]));
  k->ended[i->queue] = (int64_t)step * r->p->count[i->queue] + i->position + 1;
}

static bool covers (const known *k, const walk *p, const walk_wait *w) {
  return k != NULL &&
         k->ended[w->queue] >= (int64_t)(LAST - w->lag) * p->count[w->queue] + w->position + 1;
}

static bool is_same (const walk_wait *a, const walk_wait *b) {
  return a->queue == b->queue && a->position == b->position && a->lag == b->lag;
}

/* Orders have no circles, so all that are implied can go at once; of two equal ones the first
   stays. */
static bool is_implied (const reader *r, const walk_item *i, int32_t demand) {
  const walk *p = r->p;
  const walk_wait *w = &p->demands[demand];
  if (covers (of_queue (r, LAST, i), p, w))
    return true;
  for (int32_t d = i->first_demand; d < i->first_demand + i->n_demands; d++)
    if (d != demand && covers (of_wait (r, LAST, &p->demands[d]), p, w) &&
        (d < demand || !is_same (w, &p->demands[d])))
      return true;
  return false;
}

bool implied_leave_out (walk *p, arena *a, error *err) {
  const walk_item *last = p->n_items > 0 ? &p->items[p->n_items - 1] : NULL;
  int32_t n = last == NULL ? 0 : last->first_demand + last->n_demands, kept = 0;
  reader r = { .p = p };
  if ((p->waits = NEW (a, n, walk_wait, err)) == NULL)
    return false;
  arena_mark mark = arena_here (a);
  if ((r.at = NEW (a, UNROLLED * (int64_t)p->n_items, known, err)) == NULL)
    return false;
  for (int32_t step = 0; step < UNROLLED; step++)
    for (int32_t place = 0; place < p->n_items; place++)
      learn (&r, step, place);
  for (int32_t place = 0; place < p->n_items; place++) {
    walk_item *i = &p->items[place];
    i->first_wait = kept;
    for (int32_t d = i->first_demand; d < i->first_demand + i->n_demands; d++) {
      walk_wait *w = &p->demands[d];
      w->implied = is_implied (&r, i, d);
      if (!w->implied) {
        p->waits[kept++] = *w;
        p->awaited[w->queue][w->position] = true;
      }
    }
    i->n_waits = kept - i->first_wait;
  }
  arena_back (a, mark);
  return true;
}
