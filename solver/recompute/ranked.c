/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of drops, ranked by the bounds of their own programs.  Where most of a step is waiting for
   the link, a price and a quick plan are too far from what a search reaches to tell sets apart,
   while plans come within a percent or two of their set's bound.  Such a bound takes as long as
   some dozen quick plans, so it is asked about a family of few members: segments of the way
   forward, and of what all networks repeat in each block, like tensors are dropped or not. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/recompute/find.h"

/* One member: a number of segments (0: all that can be dropped), of equal time or bytes; near_part
   as in TUNE_segments_near. */
typedef struct shape {
  int32_t segments;
  int64_t near_part;
  bool by_time;
} shape;

typedef struct ranked {
  finding *f;
  forward way;
  int32_t *alike; /* drops, those that are alike together */
  uint8_t *stays; /* per drop: it is not dropped, whatever the segments say */
  shape at;       /* of the best */
  recompute_result *out;
  arena_mark mark; /* of f->arena, without the best */
} ranked;

static bool is_over (const ranked *r) {
  return find_is_stopped (r->f) || r->out->value.bound_ns <= r->f->enough_ns;
}

/* f->now as this shape says. */
static void choose (ranked *r, const shape *s) {
  finding *f = r->f;
  uint8_t how = s->near_part ? DROP_PASSES : DROP_STAYS;
  f->now.near_ns = s->near_part ? f->rw_ns / s->near_part : 0;
  memset (f->now.chosen, how, (size_t)f->n_drops);
  if (s->segments) {
    find_measure (&r->way, s->by_time);
    find_cut_forward (&r->way, s->segments, how);
  }
  for (int32_t i = 0; i < f->n_drops; i++)
    f->now.chosen[i] = r->stays[i] ? DROP_NONE : f->now.chosen[i];
}

/* The cheap bounds first: a set whose runs alone take too long needs no program. */
static bool bound_set (ranked *r, const variant *v, variant_value *value, error *err) {
  finding *f = r->f;
  int64_t best_ns = r->out->value.bound_ns;
  if (!variant_look (f->t, v, f->o, f->scratch, value, err))
    return false;
  f->ticks += value->n_ops / 4 + 1;
  if (!value->legal || value->bound_ns >= best_ns)
    return true;
  if (!variant_bound (f->t, v, f->o, true, f->scratch, value, err))
    return false;
  f->ticks += value->ticks / solve_events_per_tick (value->n_ops);
  return true;
}

/* *better: its bound is below the best one, and it is the best now. */
static bool try_shape (ranked *r, const shape *s, bool *better, error *err) {
  finding *f = r->f;
  variant v;
  variant_value value;
  *better = false;
  if (is_over (r))
    return true;
  arena *a = arena_made (err);
  choose (r, s);
  bool ok = a && find_variant (f, &f->now, a, &v, err);
  if (ok && v.n_recomputes &&
      !(r->out->best.recomputes && variant_same_drops (&v, &r->out->best))) {
    ok = bound_set (r, &v, &value, err);
    r->out->tried++;
    *better = ok && value.legal && value.bound_ns < r->out->value.bound_ns;
  }
  if (*better) {
    arena_back (f->arena, r->mark);
    ok = find_variant (f, &f->now, f->arena, &r->out->best, err);
    r->out->value = value;
    r->at = *s;
    log_say (f->o->log, LOG_DETAIL, "drops: %d segments, %d entries, compute %.6g s, bound %.6g s",
             s->segments, v.n_recomputes, (double)value.compute_ns / 1e9,
             (double)value.bound_ns / 1e9);
  }
  arena_free (a);
  return ok;
}

/* More or fewer segments, in ever smaller steps, as long as that helps. */
static bool climb_segments (ranked *r, error *err) {
  enum { STEPS = 3 };
  static const int32_t parts[STEPS] = { 1, 2, 4 };
  for (int i = 0; i < STEPS; i++)
    for (int side = -1; side <= 1; side += 2)
      for (bool on = r->at.segments > 0; on;) {
        shape s = r->at;
        int32_t step = s.segments / (side < 0 ? 2 * parts[i] : parts[i]);
        s.segments += side * (int32_t)max_of (step, 1);
        on = s.segments > 1 && s.segments <= 2 * find_number (r->f, TUNE_segments_most);
        if (on && !try_shape (r, &s, &on, err))
          return false;
      }
  return true;
}

/* Nothing is dropped that the guide would keep. */
static void follow_guide (ranked *r) {
  double least = (double)find_number (r->f, TUNE_drops_least_ppm) / 1e6;
  for (int32_t i = 0; i < r->f->n_drops; i++)
    r->stays[i] = r->f->dropped[i] < least;
}

/* Segments with and without what only the guide would keep; and its set as it is, which is known of
   the step without cuts. */
static bool begin (ranked *r, error *err) {
  shape all = { 0 }, some = { .segments = (int32_t)find_number (r->f, TUNE_ranked_segments),
                              .near_part = find_number (r->f, TUNE_ranked_near_part),
                              .by_time = true };
  bool some_better, all_better = false, better;
  r->at = some;
  if (!try_shape (r, &some, &better, err))
    return false;
  follow_guide (r);
  if (!try_shape (r, &some, &some_better, err) ||
      (r->f->cut->n_sections && !try_shape (r, &all, &all_better, err)))
    return false;
  if (!some_better && !all_better)
    memset (r->stays, 0, (size_t)r->f->n_drops);
  return true;
}

/* Passing or staying, by time or bytes, from the best number of segments on. */
static bool climb_shapes (ranked *r, error *err) {
  enum { PARTS = TUNE_segments_near_last - TUNE_segments_near + 1 };
  bool better;
  if (!begin (r, err) || !climb_segments (r, err))
    return false;
  shape s = r->at;
  s.by_time = !s.by_time;
  if (s.segments && !try_shape (r, &s, &better, err))
    return false;
  for (int i = 0; i < PARTS; i++) {
    s = r->at;
    s.near_part = find_number (r->f, TUNE_segments_near + (tuning_id)i);
    if (s.near_part != r->at.near_part && !try_shape (r, &s, &better, err))
      return false;
  }
  return climb_segments (r, err);
}

static int by_likeness (const void *a, const void *b, void *context) {
  const drop *d = context, *x = &d[*(const int32_t *)a], *y = &d[*(const int32_t *)b];
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  if (x->own_ns != y->own_ns)
    return x->own_ns < y->own_ns ? -1 : 1;
  return x->after != y->after ? (x->after < y->after ? -1 : 1) : x->tensor - y->tensor;
}

static bool is_alike (const drop *x, const drop *y) {
  return x->bytes == y->bytes && x->own_ns == y->own_ns;
}

/* Those [from, end) of the drops in order of likeness stay, or may go again. */
static bool turn (ranked *r, int32_t from, int32_t end, bool *better, error *err) {
  int32_t stay = 0;
  for (int32_t i = from; i < end; i++)
    stay += r->stays[r->alike[i]];
  bool to = 2 * stay < end - from;
  uint8_t *was = NEW (r->f->scratch, end - from, uint8_t, err);
  if (!was)
    return false;
  for (int32_t i = from; i < end; i++) {
    was[i - from] = r->stays[r->alike[i]];
    r->stays[r->alike[i]] = to;
  }
  if (!try_shape (r, &r->at, better, err))
    return false;
  for (int32_t i = from; i < end && !*better; i++)
    r->stays[r->alike[i]] = was[i - from];
  return true;
}

/* All that are alike, then the halves of them, and so on: what is dropped early in the step is back
   late. */
static bool climb_alike (ranked *r, int32_t pieces, bool *any, error *err) {
  finding *f = r->f;
  for (int32_t from = 0, end; from < f->n_drops; from = end) {
    const drop *x = &f->drops[r->alike[from]];
    for (end = from; end < f->n_drops && is_alike (x, &f->drops[r->alike[end]]); end++)
      ;
    if (end - from < pieces)
      continue;
    for (int32_t k = 0; k < pieces && !is_over (r); k++) {
      arena_mark mark = arena_here (f->scratch);
      int32_t first = from + (int32_t)((int64_t)(end - from) * k / pieces);
      int32_t last = from + (int32_t)((int64_t)(end - from) * (k + 1) / pieces);
      bool better;
      if (!turn (r, first, last, &better, err))
        return false;
      *any |= better;
      arena_back (f->scratch, mark);
    }
  }
  return true;
}

static bool start (ranked *r, error *err) {
  finding *f = r->f;
  if (!find_begin (f, err) || !find_forward (f, &r->way, err))
    return false;
  r->stays = NEW (f->arena, f->n_drops, uint8_t, err);
  r->alike = NEW (f->arena, f->n_drops, int32_t, err);
  if (!r->stays || !r->alike)
    return false;
  for (int32_t i = 0; i < f->n_drops; i++)
    r->alike[i] = i;
  qsort_r (r->alike, (size_t)f->n_drops, sizeof *r->alike, by_likeness, f->drops);
  r->mark = arena_here (f->arena);
  return true;
}

static bool run (ranked *r, error *err) {
  enum { MOST_PIECES = 8 };
  if (!start (r, err) || (r->f->n_drops && !climb_shapes (r, err)))
    return false;
  for (int32_t pieces = 1; r->out->best.n_recomputes && pieces <= MOST_PIECES && !is_over (r);
       pieces *= 2) {
    bool any = false;
    if (!climb_alike (r, pieces, &any, err) || (any && !climb_segments (r, err)))
      return false;
  }
  return true;
}

bool recompute_ranked (const recompute_request *q, int64_t beat_ns, arena *a, recompute_result *out,
                       error *err) {
  assert (q->guide && q->guide->fits && out && beat_ns > 0);
  static const variant nothing = { .name = "swap" };
  finding f = { .t = q->trace,
                .cut = q->cut ? q->cut : &nothing,
                .o = q->options,
                .guide = q->guide,
                .arena = a,
                .scratch = arena_made (err),
                .limit_ticks = q->limit_ticks,
                .enough_ns = q->enough_ns };
  *out = (recompute_result){ .value.bound_ns = beat_ns };
  ranked r = { .f = &f, .out = out };
  bool ok = f.scratch && run (&r, err);
  out->ticks = f.ticks;
  out->candidates = f.n_drops;
  arena_free (f.scratch);
  return ok;
}
