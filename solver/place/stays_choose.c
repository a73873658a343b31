/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which copies in could start: a heap in the order of need, fed by what they wait for. */
#include <assert.h>
#include <string.h>

#include "solver/place/stays_inner.h"

static void ready_put (forward *f, int32_t place) {
  int32_t at = f->n_ready++;
  for (; at > 0 && f->ready[(at - 1) / 2] > place; at = (at - 1) / 2)
    f->ready[at] = f->ready[(at - 1) / 2];
  f->ready[at] = place;
}

void stays_ready_take (forward *f) {
  int32_t last = f->ready[--f->n_ready], at = 0;
  for (int32_t child; (child = 2 * at + 1) < f->n_ready; at = child) {
    child += child + 1 < f->n_ready && f->ready[child + 1] < f->ready[child];
    if (last <= f->ready[child])
      break;
    f->ready[at] = f->ready[child];
  }
  f->ready[at] = last;
}

void stays_meet (forward *f, int32_t move) {
  assert (move >= 0 && move < f->l->n_moves);
  if (f->met[move] || !stays_is_released (f, move))
    return;
  f->met[move] = true;
  ready_put (f, f->in_place[move]);
}

void stays_meet_all (forward *f) {
  memset (f->met, 0, (size_t)f->l->n_moves * sizeof *f->met);
  for (int32_t i = 0; i < f->l->n_moves; i++)
    stays_meet (f, i);
}

static int32_t count_of (int64_t ops, int32_t n) {
  return (int32_t)((ops % n + n) % n);
}

static bool index_counted (forward *f, arena *a, error *err) {
  const stays *l = f->l;
  int32_t n = l->trace->n_ops;
  row_list *c = &f->counted;
  if (!ALLOC (a, c->offset, (int64_t)n + 2, err) || !ALLOC (a, c->at, 2 * (int64_t)l->n_moves, err))
    return false;
  for (int fill = 0; fill < 2; fill++) {
    for (int32_t i = 0; i < l->n_moves; i++) {
      const wish *w = &l->moves[i];
      int32_t left = count_of (w->out_after + 1, n), wait = count_of (w->in_not_before, n);
      if (w->clean)
        fill ? c->at[c->offset[left + 1]++] = i : c->offset[left + 2]++;
      if (w->in_not_before != NO_WAIT)
        fill ? c->at[c->offset[wait + 1]++] = i : c->offset[wait + 2]++;
    }
    for (int32_t k = 2; !fill && k < n + 2; k++)
      c->offset[k] += c->offset[k - 1];
  }
  return true;
}

bool stays_choose_begin (forward *f, arena *a, error *err) {
  assert (f->l && f->chooses);
  int32_t n = f->l->n_moves;
  if (!ALLOC (a, f->ready, n, err) || !ALLOC (a, f->in_place, n, err) ||
      !ALLOC (a, f->met, n, err) || !ALLOC (a, f->chosen, n, err) || !index_counted (f, a, err))
    return false;
  for (int32_t i = 0; i < n; i++)
    f->in_place[f->l->in_order[i]] = i;
  stays_meet_all (f);
  return true;
}
