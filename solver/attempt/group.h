/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Many tensors as few units.  Small ones (an unrolled recurrent network's are some 100 KB each)
   could not be moved alone or fill a granule; larger ones waste half a granule each and pay the
   link's latency each.  Groups are made of tensors that are born, rest and die nearly together. */
#pragma once

#include "solver/flow/gaps.h"
#include "solver/tuning/tuning.h"

typedef struct group_rule {
  int64_t least_bytes;      /* of a member: what is less fits the pool better */
  int64_t most_bytes;       /* of a group; its members are below half of that */
  int64_t persistent_bytes; /* of one of persistent tensors, with shares */
  int32_t keep;             /* a member loses at most 1/keep of its rest, and of a short life */
  int32_t keep_life; /* with shares: of what stays none lives longer by more than 1/keep_life */
  int32_t fill_ppm;  /* groups that fill less of their granules are none; their members go alone */
  bool persistent;   /* persistent tensors too, among themselves */
  /* The program's answer: the gaps of single tensors and how much of each leaves; both NULL:
     nothing is known.  Else what leaves and what stays are not mixed; and of what stays any tensor
     may be a member, and groups of any size are made of tensors that fill one another's last
     granule. */
  const gaps *singles;
  const double *share;
  /* Bytes a second that come in while memory falls from its peak: what stays leaves them room.
     0: it may live as long as memory is not above its peak. */
  int64_t link_bytes_per_s;
  const tuning *tuning; /* NULL: as shipped */
} group_rule;

/* *count may be 0. */
bool group_tensors (const trace *t, int64_t granule_bytes, const group_rule *rule, arena *a,
                    index_list **groups, int32_t *count, error *err) MUST_CHECK;

/* Groups of a granule and the pool together as they make the peak without any move smallest; no
   groups where they gain nothing. */
bool group_choose (const trace *t, int64_t granule_bytes, const tuning *by, arena *a,
                   index_list **groups, int32_t *count, int64_t *pool_below_bytes,
                   error *err) MUST_CHECK;
