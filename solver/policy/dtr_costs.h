/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of making a tensor again while others are gone; for dtr_run. */
#pragma once

#include "solver/policy/dtr_run.h"

/* Tensors are neighbours where an op reads one and writes the other. Gone ones that are neighbours
   are one class, whose cost is kept as a sum; one that is made again leaves its class, which is not
   split. */
typedef struct dtr_costs {
  dtr_cost kind;
  int32_t n_tensors;
  int64_t *own_ns;               /* per tensor: of the ops that write it */
  int32_t *above_offset, *above; /* per tensor: those that its writers read */
  int32_t *below_offset, *below; /* those that its readers write */
  uint8_t *gone;                 /* per tensor */
  int32_t *node;                 /* per tensor that is gone: of the union */
  int32_t *parent, *seen;        /* per node */
  int64_t *sum_ns;               /* per root */
  int64_t parent_room, seen_room, sum_room;
  int32_t n_nodes, mark;
  int32_t *visited, *stack; /* per tensor */
  /* per tensor, with the cost of all that is gone */
  int64_t *known_ns; /* the cost, or if that is not known some of it */
  uint8_t *is_known;
  uint8_t *passed; /* of a gone one: the ways in which walks that know something came by */
  arena *arena;
} dtr_costs;

bool dtr_costs_of (const trace *t, const uses *u, dtr_cost kind, arena *a, dtr_costs *out,
                   error *err) MUST_CHECK;
/* The cost; or, if that is more than most_ns, some of it that also is. */
int64_t dtr_costs_ns (dtr_costs *c, int32_t tensor, int64_t most_ns);
bool dtr_costs_goes (dtr_costs *c, int32_t tensor, error *err) MUST_CHECK;
void dtr_costs_comes (dtr_costs *c, int32_t tensor);
