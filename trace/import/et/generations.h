/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Storages named by ids that come back: an id is a data pointer, and after a free the next tensor
   may have the same.  A walk over the nodes splits each id into generations, one a life. */
#pragma once

#include "trace/import/common/intern.h"
#include "trace/import/common/job.h"

enum { PHASE_FWD = 1, PHASE_BWD = 2, PHASE_OPT = 4 };

/* Nodes name storages.  Nodes are walked in the order of the array, in which a node stands behind
   its children; time runs along `axis`, on which it stands before them. */
typedef struct walk_node {
  int64_t axis;
  int32_t parent; /* -1: none, or not to be looked at */
  uint8_t phase;  /* one of the three */
  bool allocates; /* calls within it only fill the memory that it makes */
} walk_node;

typedef struct mention {
  int64_t storage, bytes; /* at least so large; 0 for an empty tensor */
  int64_t own_bytes;      /* of the elements that this mention holds */
  int32_t node;
  int32_t device;     /* its number; -1: not said */
  int32_t generation; /* filled in by the split */
  bool output;
  bool written;
} mention;

typedef struct generation {
  int64_t storage, bytes;
  int64_t first_axis,
      last_axis; /* of the defining node (or the first sight), of the last mention */
  int32_t first_node, last_node;
  bool defined;             /* else it was there before */
  bool kept;                /* made by the optimizer to stay: filled or copied, then used again */
  uint8_t touched, written; /* phases */
} generation;

typedef struct generations {
  generation *at;
  int32_t count;
  int64_t n_storages;
} generations;

/* Mentions stand in the order of the walk, a node's inputs before its outputs. */
bool generations_split (import_job *job, const walk_node *nodes, mention *mentions,
                        int64_t n_mentions, generations *out) MUST_CHECK;

uint8_t generation_first_phase (const generation *g, const walk_node *nodes);
uint8_t generation_last_phase (const generation *g, const walk_node *nodes);
/* optimizer_seen: some generation was there before and is touched by the optimizer alone; if there
   is none, what the optimizer makes and keeps is its state. */
tensor_kind generation_kind (const generation *g, const walk_node *nodes, bool optimizer_seen);
bool generations_have_optimizer (const generations *g);
