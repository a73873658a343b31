/* From tensors that are dropped to recompute entries: which ops run again, directly before the op
   that needs what is not there, and what their copies replace.  In place updates are made again one
   by one, and every entry is held against trace/rewrite's rule of versions before it is kept. */
#ifndef FERRY_SOLVER_DROPS_H
#define FERRY_SOLVER_DROPS_H

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

/* How entries are made. Without DROPS_KEEP nothing is kept on the device beyond its last use; with
   it what cannot be made again itself may be, to make others from it; with DROPS_KEEP_FIRST too,
   whatever helps. DROPS_REPLACE: what the copies write besides takes its place even where it was
   not dropped, so that it can go until then; else only what was. */
enum { DROPS_KEEP = 1, DROPS_KEEP_FIRST = 2, DROPS_REPLACE = 4, DROPS_WAYS = 8 };

/* What can be dropped over some op that `over` marks; `cheap` (per op) may be NULL. *barred (may be
   NULL): something could not be made since nothing was kept. */
bool drops_find (const trace *t, const uint8_t *over, const uint8_t *cheap, unsigned how, arena *a,
                 drop **out, int32_t *count, bool *barred, error *err) MUST_CHECK;

/* Entries for the drops that `chosen` marks, in `a`. One that cannot be made again is left alone.
 */
bool drops_entries (const trace *t, const uses *u, const drop *drops, int32_t n_drops,
                    const uint8_t *chosen, unsigned how, arena *a, recompute **out, int32_t *count,
                    error *err) MUST_CHECK;

#endif
