/* The smallest budget that any plan of whole ops can keep, and what it is made of: at one op, all
   that can be away is away. */
#ifndef FERRY_SOLVER_FLOOR_H
#define FERRY_SOLVER_FLOOR_H

#include "trace/device.h"
#include "trace/trace.h"

typedef struct memory_floor {
  int64_t bytes; /* the sum of what follows */
  int32_t op;
  int64_t touched_bytes;   /* tensors that the op uses */
  int64_t workspace_bytes; /* its own */
  int64_t pinned_bytes;    /* what never leaves, and the op does not use */
  int64_t pool_bytes;      /* tensors too small to be moved */
  int64_t granule_bytes;   /* lost to rounding */
} memory_floor;

bool floor_of (const trace *t, const device *d, arena *scratch, memory_floor *out,
               error *err) MUST_CHECK;

/* Says in err why nothing was found: below the floor its parts and its op, else that the plan or
   the host's memory was in the way. Always false. */
bool floor_refuse (const trace *t, const device *d, int64_t budget_bytes, int64_t host_bytes,
                   error *err);

#endif
