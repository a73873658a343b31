/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The links: of each device an engine a direction, rates that depend on which engines carry, and on
   what devices share.  Written from docs/machine-model.md, "Copies and rates" and "Ranks of one
   host"; times are whole nanoseconds and given by the caller, so both clocks use it. */
#pragma once

#include "executor/emu/emu.h"

enum { LINK_ENGINES = 2 * EMU_CARDS };

typedef struct link_engine {
  bool busy;
  int64_t carries_from_ns; /* before it, the copy's fixed cost */
  int64_t rate;            /* since the last change of what carries */
  __int128 left;           /* bytes x 10^9 */
} link_engine;

typedef struct link_state {
  int64_t alone[2], both[2]; /* of one device; bytes per second; 0: out, 1: in */
  int64_t copy_ns;
  int64_t now_ns; /* up to here the copies have been carried */
  int32_t n_engines, n_groups;
  const emu_group *groups; /* the configuration's */
  link_engine engine[LINK_ENGINES];
} link_state;

static inline int link_engine_of (int32_t card, int direction) {
  return 2 * card + direction;
}

/* c outlives the state. */
void link_start (link_state *l, const emu_config *c);
/* The engine is free and now_ns <= at_ns. */
void link_begin (link_state *l, int engine, int64_t at_ns, int64_t bytes);
/* When the state next changes by itself; INT64_MAX: never. */
int64_t link_next (const link_state *l);
/* Carries up to a moment not behind link_next. */
void link_carry (link_state *l, int64_t to_ns);
/* True if the engine's copy has carried all; the engine is then free. */
bool link_ended (link_state *l, int engine);
/* When the engine's copy ends if no other begins. */
int64_t link_end_of (const link_state *l, int engine);
