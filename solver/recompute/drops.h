/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From tensors that are dropped to recompute entries: which ops run again, directly before the op
   that needs what is not there, and what their copies replace.  In place updates are made again one
   by one, and every entry is held against trace/rewrite's rule of versions before it is kept. */
#pragma once

#include "trace/plan.h"
#include "trace/uses.h"

/* Tensor x is given up behind its use by op `after` and made again by op `before`, its next use. */
typedef struct drop {
  int32_t tensor, after, before;
  int64_t bytes;
  int64_t own_ns; /* of the ops that write it */
  int64_t
      chain_ns; /* of all ops that would run again if this were the only drop; 0: it cannot be */
} drop;

/* The fate of a dropped tensor that an entry makes on its way to another: it stays until its own
   next use, or, where that is not near, passes: it is given up again, and made once more then.
   DROP_KEEPS stays, and what it is made from is kept beyond its last use where that can be. */
enum { DROP_NONE, DROP_STAYS, DROP_PASSES, DROP_KEEPS };

typedef struct drops_request {
  const trace *trace;
  const uint8_t *over;  /* per op: what idles over it is of use */
  const uint8_t *cheap; /* per op: its outputs may be dropped; NULL: any */
  bool keeps; /* tensors that nothing reads any more may be kept on the device to make others from
                 them */
  bool keeps_first; /* with it: also those that could be made again */
  bool (*stop) (void *context); /* true: those found by then are enough; or NULL */
  void *stop_context;
} drops_request;

/* Other sets that there would be. */
typedef struct drops_missed {
  bool barred;  /* with `keeps`: something could not be made without */
  bool revived; /* with `keeps_first`: something dead was made again on the way */
} drops_missed;

/* Finds the drops that are possible. missed may be NULL. */
bool drops_find (const drops_request *q, arena *a, drop **out, int32_t *count,
                 drops_missed *missed, error *err) MUST_CHECK;

/* The drops of one trace, from which some are chosen. */
typedef struct drop_list {
  const trace *trace;
  const uses *uses;
  const drop *at;
  int32_t count;
} drop_list;

/* Which are dropped, and how: DROP_..., per drop; what comes within near_ns of compute is near. */
typedef struct drop_choice {
  const uint8_t *chosen;
  int64_t near_ns;
  bool keeps;       /* as drops_find's */
  bool keeps_first; /* with it: all as DROP_KEEPS */
  bool replaces; /* other outputs of copies take their places though they were not dropped, so that
                    they can go until then */
  int64_t most_ns; /* the list ends at the entry with which more than that runs again; 0: never */
} drop_choice;

/* Compute that an entry adds to the step. */
int64_t drops_again_ns (const trace *t, const recompute *r);

/* Entries for the drops chosen, in `a`. One that cannot be made again is left alone. */
bool drops_entries (const drop_list *list, const drop_choice *choice, arena *a, recompute **out,
                    int32_t *count, error *err) MUST_CHECK;
