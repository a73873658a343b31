/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/place/follow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { NOBODY = -1, WORD = 64 };

bool place_begin (const stays *l, arena *a, places *out, error *err) {
  *out = (places){ .op_outs = NEW (a, l->trace->n_ops, int64_t, err),
                   .in_ops = NEW (a, l->n_moves, int64_t, err),
                   .in_outs = NEW (a, l->n_moves, int64_t, err),
                   .wait_ops = NEW (a, l->n_moves, int32_t, err) };
  if (!out->op_outs || !out->in_ops || !out->in_outs || !out->wait_ops)
    return false;
  place_again (l, out);
  return true;
}

void place_again (const stays *l, places *out) {
  assert (out->op_outs && out->wait_ops);
  out->granules = 0;
  out->tangled = out->waits = false;
  for (int32_t i = 0; i < l->trace->n_ops; i++)
    out->op_outs[i] = NOTHING_NEEDED;
  for (int32_t i = 0; i < l->n_moves; i++) {
    out->in_ops[i] = out->in_outs[i] = NOTHING_NEEDED;
    out->wait_ops[i] = NO_WAIT;
  }
}

static void need (int64_t *what, int64_t count) {
  if (*what < count)
    *what = count;
}

void place_follow (const stays *l, places *out, int32_t before, int32_t next) {
  assert (before >= 0 && before < l->count && next >= 0 && next < l->count);
  const timed_stay *a = &l->at[before], *b = &l->at[next];
  int32_t next_step = b->op > a->op ? 0 : 1; /* owners follow one another in order of their ops */
  int32_t steps = (int32_t)a->end_wraps - next_step;
  bool by_copy = b->kind == STAY_MOVE;
  if (steps > 0) {
    out->tangled = true;
    return;
  }
  if (a->end_is_out) {
    int64_t count = l->out_place[a->end] + 1 + (int64_t)steps * l->n_outs;
    need (by_copy ? &out->in_outs[b->index] : &out->op_outs[b->op], count);
  } else if (by_copy)
    need (&out->in_ops[b->index], a->end + 1 + (int64_t)steps * l->trace->n_ops);
  else if (steps == 0 && a->end >= b->op)
    out->tangled = true;
}

/* ---- all of them ---- */

/* Pieces of the places, between bounds that runs have.  Neighbours with one holder are a piece
   together; `begins` has a bit for the first of each, which alone says who holds it. */
typedef struct pieces {
  int64_t *bounds;
  int64_t count;
  uint64_t *begins;
  int32_t *holder;
} pieces;

static bool pieces_of (const stays *l, const places *out, arena *a, pieces *x, error *err) {
  int64_t n = 0, kept = 0;
  if (!ALLOC (a, x->bounds, 2 * out->n_runs, err))
    return false;
  for (int64_t i = 0; i < out->first_run[l->count]; i++) {
    x->bounds[n++] = out->runs[i].first;
    x->bounds[n++] = (int64_t)out->runs[i].first + out->runs[i].count;
  }
  qsort (x->bounds, (size_t)n, sizeof *x->bounds, order_int64);
  for (int64_t i = 0; i < n; i++)
    if (kept == 0 || x->bounds[i] != x->bounds[kept - 1])
      x->bounds[kept++] = x->bounds[i];
  x->count = kept;
  if (!ALLOC (a, x->begins, kept / WORD + 1, err) || !ALLOC (a, x->holder, kept + 1, err))
    return false;
  x->begins[0] = 1;
  x->holder[0] = NOBODY;
  return true;
}

static int64_t place_of (const pieces *x, int64_t bound) {
  const int64_t *at = bsearch (&bound, x->bounds, (size_t)x->count, sizeof *x->bounds, order_int64);
  assert (at);
  return at - x->bounds;
}

/* The piece that holds place i begins here. */
static int64_t piece_at (const pieces *x, int64_t i) {
  int64_t word = i / WORD;
  uint64_t bits = x->begins[word] & (~UINT64_C (0) >> (WORD - 1 - i % WORD));
  while (!bits)
    bits = x->begins[--word];
  return word * WORD + WORD - 1 - __builtin_clzll (bits);
}

/* A piece begins at place i, in each stay that holds it. */
static void cut_at (pieces *x, int64_t i) {
  if (i >= x->count || x->begins[i / WORD] >> (i % WORD) & 1)
    return;
  x->holder[i] = x->holder[piece_at (x, i)];
  x->begins[i / WORD] |= UINT64_C (1) << (i % WORD);
}

static void take (const stays *l, pieces *x, granule_run run, int32_t who, places *out) {
  int64_t first = place_of (x, run.first), end = place_of (x, (int64_t)run.first + run.count);
  cut_at (x, first);
  cut_at (x, end);
  for (int64_t i = end - 1; i >= first; i--) {
    i = piece_at (x, i);
    if (out && x->holder[i] != NOBODY)
      place_follow (l, out, x->holder[i], who);
    x->begins[i / WORD] &= ~(UINT64_C (1) << (i % WORD));
  }
  x->begins[first / WORD] |= UINT64_C (1) << (first % WORD);
  x->holder[first] = who;
}

bool place_follow_all (const stays *l, const circle *c, arena *a, places *out, error *err) {
  assert (l->count == 0 || out->first_run);
  pieces x = { 0 };
  arena_mark mark = arena_here (a);
  if (l->count == 0)
    return true;
  if (!pieces_of (l, out, a, &x, err))
    return false;
  for (int round = 0; round < 2; round++)
    for (int64_t i = 0; i < c->ranks; i++) {
      int32_t who = c->at[i];
      for (int64_t r = who < 0 ? 0 : out->first_run[who]; who >= 0 && r < out->first_run[who + 1];
           r++)
        take (l, &x, out->runs[r], who, round ? out : NULL);
    }
  arena_back (a, mark);
  return true;
}
