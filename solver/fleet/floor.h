/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smallest budget that plans of whole ops can keep, and what it is made of: at one op, all that
   can be away is away. */
#pragma once

#include "trace/device.h"
#include "trace/trace.h"

typedef struct memory_floor {
  int64_t bytes; /* the sum of what follows */
  int32_t op;
  int64_t touched_bytes;   /* tensors that the op uses */
  int64_t workspace_bytes; /* its own */
  int64_t pinned_bytes;    /* tensors that never leave, and the op does not use */
  int64_t pool_bytes;      /* tensors too small to be moved */
  int64_t granule_bytes;   /* lost to rounding */
} memory_floor;

bool floor_of (const trace *t, const device *d, arena *scratch, memory_floor *out,
               error *err) MUST_CHECK;

/* Below this nothing of whole ops fits, wherever things lie: what an op has to have at once, in
   whole granules. How much more the granules of groups take depends on the budget, so floor_of is
   the floor of one way to lay things out, and proved for no other. */
bool floor_least (const trace *t, const device *d, arena *scratch, memory_floor *out,
                  error *err) MUST_CHECK;
/* The device as floor_least sees it. */
device floor_device (const device *d);

/* The request that could not be met. */
typedef struct floor_request {
  int64_t budget_bytes, host_bytes;
  bool open;     /* none was found, and none is ruled out */
  bool in_parts; /* ops might have been cut */
  bool drops;    /* tensors might have been dropped and made again */
  bool stays;    /* nothing might have been swapped */
  /* Sizes that the message names; 0: the budget and the floor themselves. */
  int64_t asked_bytes;   /* the budget with its reserve */
  int64_t least_bytes;   /* the floor, in whole granules, with its reserve */
  int64_t reserve_bytes; /* of least_bytes */
  int64_t found_bytes;   /* in which a plan was found, the reserve included */
} floor_request;

/* Says in err that nothing was found, and what to ask for. Its `more` is why: below the floor its
   parts and its op; else the op at which the host's memory does not suffice, or that none of these
   is the reason. Always false. */
bool floor_refuse (const trace *t, const device *d, const floor_request *r, error *err);
