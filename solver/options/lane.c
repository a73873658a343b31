/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/options/lane.h"

#include <assert.h>
#include <time.h>

enum { LOOK_NS = 2000000 };

static bool is_off (void *context) {
  lane *x = context;
  return atomic_load_explicit (&x->is_off, memory_order_relaxed) ||
         (x->is_here && solve_stops (x->of));
}

void lane_call_off (lane *x) {
  atomic_store_explicit (&x->is_off, true, memory_order_relaxed);
}

bool lane_open (lane *x, const solve_options *o, error *err) {
  assert (!x->arena);
  x->of = o;
  x->options = *o;
  x->options.log = NULL;
  x->options.threads = 1;
  x->options.stats = o->stats ? &x->stats : NULL;
  x->options.stop = is_off;
  x->options.stop_context = x;
  x->stats = (search_stats){ 0 };
  x->runs = x->is_here = false;
  atomic_init (&x->is_off, false);
  atomic_init (&x->is_done, false);
  x->arena = arena_made (err);
  return x->arena;
}

static void *run (void *context) {
  lane *x = context;
  x->work (x->context);
  atomic_store_explicit (&x->is_done, true, memory_order_release);
  return NULL;
}

void lane_begin (lane *x, void (*work) (void *context), void *context) {
  assert (x->arena && work && !x->runs);
  x->work = work;
  x->context = context;
  x->runs = pthread_create (&x->thread, NULL, run, x) == 0;
}

bool lane_has_ended (const lane *x) {
  return atomic_load_explicit (&x->is_done, memory_order_acquire);
}

bool lane_look (lane *x) {
  if (!x->runs || lane_has_ended (x))
    return true;
  nanosleep (&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
  if (solve_stops (x->of))
    lane_call_off (x);
  return false;
}

static void join (lane *x) {
  while (!lane_look (x))
    ;
  pthread_join (x->thread, NULL);
  x->runs = false;
}

void lane_wait (lane *x) {
  assert (x->arena && x->work);
  if (x->runs)
    join (x);
  else if (!lane_has_ended (x)) {
    x->is_here = true;
    run (x);
  }
}

void lane_take (lane *x, arena *to) {
  lane_wait (x);
  stats_join (x->of->stats, &x->stats);
  arena_join (to, x->arena);
  x->arena = NULL;
}

void lane_drop (lane *x) {
  lane_call_off (x);
  if (x->runs)
    join (x);
  arena_free (x->arena);
  x->arena = NULL;
}
