/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ops that run again, directly before an op, so that tensors which are not there are: with them
   whatever of their inputs is not there either.  In place updates are made again one by one, and
   every request is held against trace/rewrite's rule of versions before it is kept. */
#pragma once

#include "trace/plan.h"
#include "trace/uses.h"
#include "trace/versions.h"

typedef struct remake_rule {
  const trace *trace;
  const uses *uses;
  bool keeps;       /* tensors that nothing reads any more may be kept to make others from them */
  bool keeps_first; /* with it: also those that could be made again */
  bool once;        /* only tensors that one op writes, from scratch, are made again */
  int32_t most_ops; /* of an entry */
  int64_t most_walked; /* tensors asked for, over all entries: then nothing more is made; 0: any */
} remake_rule;

/* Each entry has a mark of its own. */
typedef struct remake {
  remake_rule rule;
  int32_t before; /* the entry's op */
  uint8_t *away;  /* per tensor: dropped and not made again yet; the caller's, but for remake_put */
  int32_t *ops;   /* of the entry, in order of finding */
  int32_t n_ops;
  bool barred;  /* without `keeps` something could not be made */
  bool revived; /* something that nothing reads any more was made, which could have been kept */
  bool full;   /* no memory, as err says */

  /* The rest is for remake.c. */
  arena *arena;
  error *err;
  int32_t mark;
  int32_t *made;    /* per tensor: mark */
  int32_t *up_to;   /* per tensor made: by copies of its writers before this op */
  int32_t *taken;   /* per op: mark */
  int32_t *refused; /* per tensor: the request in which it could not be made */
  int32_t *limit;   /* per tensor refused: for this op, nor for any behind it */
  int32_t *seen;    /* per tensor: mark of the check of versions */
  int32_t *version; /* per tensor seen: of the fresh one */
  int32_t *tensors;
  int32_t *sorted, *spare; /* the ops in ascending order, the first n_sorted of them */
  versions finds;          /* of the ops of the trace */
  int64_t walked;          /* counted where it has a limit */
  int64_t steps;           /* of the request that may still be walked */
  struct former *formers;  /* the values of up_to before it went further */
  int64_t formers_room;
  int32_t n_tensors, n_formers, n_sorted, check_mark, request;
} remake;

bool remake_begin (remake *w, const remake_rule *rule, arena *a, error *err) MUST_CHECK;
/* An empty entry before this op. */
void remake_next (remake *w, int32_t before);
/* The entry makes x too; false: it cannot, and the entry is as it was. */
bool remake_request (remake *w, int32_t x);
/* True if the entry makes x as its op needs it. */
bool remake_has (const remake *w, int32_t x);
/* Nothing more is read of x by then. */
bool remake_is_dead (const remake *w, int32_t x);
/* True if one op alone writes x before this one, from scratch: `once` makes no other. */
bool remake_is_simple (const trace *t, const uses *u, int32_t x, int32_t before);

/* Writes the entry down. Tensors that it makes take their places if the callback wants them; these
   are away no more. */
bool remake_put (remake *w, bool (*is_wanted) (const void *context, const remake *w, int32_t x),
                 const void *context, recompute *out, error *err) MUST_CHECK;
