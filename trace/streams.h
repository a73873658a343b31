/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops of several streams: which have surely ended when another begins, by the trace's own waits.
   All of a step's ops have ended before the next step's begin (docs/machine-model.md). */
#pragma once

#include "trace/trace.h"

typedef struct streams {
  int32_t count;
  int32_t *place;  /* per op: its place in its stream */
  int32_t *known;  /* per op a row: how many ops of each stream have ended when it begins */
  int32_t *prefix; /* per op: how many ops at the head of the list have ended when it begins */
  int32_t *held; /* per op: the last op of the list that may begin before it has ended; or itself */
} streams;

bool streams_of (const trace *t, arena *a, streams *out, error *err) MUST_CHECK;

/* The ops before op k that it is the last to begin beside, as a chain: first[k], and the next of
   each; NO_OP: no more. */
typedef struct held_ops {
  int32_t *first, *next;
} held_ops;

bool streams_held (const streams *s, int32_t n_ops, arena *a, held_ops *out, error *err) MUST_CHECK;

/* Has the first op surely ended when the second one begins? Both are of one step. */
static inline bool streams_ordered (const trace *t, const streams *s, int32_t first,
                                    int32_t second) {
  return s->known[(int64_t)second * s->count + t->ops[first].stream] > s->place[first];
}

/* When each op ends if nothing stalls. */
int64_t *streams_ends (const trace *t, arena *a, error *err) MUST_CHECK;

/* The ops that a longest path runs through, in order: each but the first waits for the one before
   it. */
bool streams_path (const trace *t, arena *a, index_list *out, error *err) MUST_CHECK;

/* ERR_usage where there are several. what: "a curve". */
bool streams_must_be_one (const trace *t, const char *what, error *err) MUST_CHECK;
