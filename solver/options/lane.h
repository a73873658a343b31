/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A part of a search that runs beside its caller, on a thread of its own.  It says nothing on its
   way and counts for itself, so the caller can take what it did when its turn has come, or drop it
   as if it had never begun: the answer does not depend on how many threads there are.  The user's
   own functions are called from the user's thread alone: while it waits for a lane, it still asks
   whether to stop. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "solver/options/options.h"

typedef struct lane {
  const solve_options *of; /* the caller's */
  solve_options options;   /* the work's: silent, alone, and called off with the lane */
  search_stats stats;
  arena *arena; /* of what it finds */
  void (*work) (void *context);
  void *context;
  pthread_t thread;
  bool runs;    /* false: no thread was to be had, or it has ended */
  bool is_here; /* there was none, so the caller does it */
  atomic_bool is_off, is_done;
} lane;

/* The lane stays where it is until it is taken or dropped. */
bool lane_open (lane *x, const solve_options *o, error *err) MUST_CHECK;
/* On a thread, where one is to be had. */
void lane_begin (lane *x, void (*work) (void *context), void *context);
/* Has the work ended? Then what it found may be read. */
bool lane_has_ended (const lane *x);
/* Waits for a moment; false: it goes on. */
bool lane_look (lane *x);
/* Its work is to end. A caller with several lanes calls all of them off before it waits for one. */
void lane_call_off (lane *x);
/* Waits for the work, or does it. */
void lane_wait (lane *x);
/* Waits; what it found lives as long as `to` then. */
void lane_take (lane *x, arena *to);
/* Calls it off, and forgets what it did; nothing where it was not opened, or was taken. */
void lane_drop (lane *x);
