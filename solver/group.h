/* Many small tensors as few units: an unrolled recurrent network's are some 100 KB each, and none
   of them could be moved or would fill a granule.  Groups of about one granule are made of tensors
   that are born, rest and die nearly together. */
#ifndef FERRY_SOLVER_GROUP_H
#define FERRY_SOLVER_GROUP_H

#include "trace/trace.h"

/* Tensors of less than half a granule that are neither persistent nor pinned; *count may be 0. */
bool group_small (const trace *t, int64_t granule_bytes, arena *a, index_list **groups,
                  int32_t *count, error *err) MUST_CHECK;

/* Groups and pool together as they make the peak without any move smallest; no groups where they
   gain nothing. */
bool group_choose (const trace *t, int64_t granule_bytes, arena *a, index_list **groups,
                   int32_t *count, int64_t *pool_below_bytes, error *err) MUST_CHECK;

#endif
