/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step's tensors in their granules, as the shim has them: who is there, which copies go, and for
   whom each of these waits. */
#pragma once

#include "trace/simulate/works.h"

/* Streams of the program have the numbers that the shim gave them; its own come first. */
enum { STREAM_OUT, STREAM_IN, STREAM_CHECK, SHIM_STREAMS, STREAM_HOST = WORKS_STREAMS - 1 };

/* Two digests are compared by a launch. */
enum { COMPARE_NS = 2000 };

/* Clean: nothing has touched it since it came from the host, which has the same bytes. Read: ops
   have, which were seen to leave it alone. */
typedef enum where { LAZY, HERE, CLEAN, READ, AWAY } where;

/* A piece of device memory: who writes there waits for these. */
typedef struct granule {
  uint64_t streams;
  int32_t own[SHIM_STREAMS]; /* work in the shim's streams; -1: none */
  struct thing *owner;       /* the thing whose bytes it holds; NULL: none */
} granule;

/* The pages that were copied to the host together, from a first one on, and have a digest. */
typedef struct digest_run {
  int64_t first, end;
  bool has_room; /* of the page that it begins with: the shim has words for it */
} digest_run;

typedef struct thing {  /* a tensor */
  const int64_t *homes; /* NULL: it has no granules */
  int64_t pages, bytes;
  uint8_t *state;      /* of each page: a where */
  digest_run *digests; /* of each page */
  bool checks;         /* its digest decides whether it is copied, if it was only read */
  bool dropped;        /* an op that runs again makes it */
  bool paired;         /* there is room for its digest meanwhile */
  bool freed;          /* by the program; ops that run again may use it still */
  int64_t give; /* until that action it is kept, though the program has freed it; -1: it is not */
  uint64_t users;
  uint64_t turn; /* streams behind which it got its granules, and the shim's own work likewise */
  int32_t behind_own[SHIM_STREAMS];
  /* Once an op has run again: other streams wait for these; some have. */
  uint64_t behind, behind_seen;
  int32_t own[SHIM_STREAMS]; /* its newest work in the shim's streams; -1 */
} thing;

typedef struct granules {
  granule *at;
  int64_t bytes;  /* of each */
  int32_t host;   /* the last row that the host waited for; -1 */
  int32_t checks; /* runs that can have digests beside those that do */
  works *q;
  error *err;
} granules;

void granule_empty (granule *g, struct thing *owner); /* nobody to wait for */
int64_t digest_ns (const thing *x);
bool wait_for_streams (const granules *r, uint64_t streams);

void thing_made (thing *x);
/* Its granules are free behind its users. */
void thing_released (const granules *r, thing *x);
/* Its pages leave, or come; whoever is in their way goes first. */
bool thing_leaves (granules *r, thing *x, int64_t first, int64_t end);
bool thing_arrives (granules *r, thing *x, int64_t first, int64_t end);
/* Before an op that uses it: what was dropped for others comes on demand. */
bool thing_has_room (granules *r, thing *x);
/* An op that ran again has used it. */
void thing_remade (thing *x, int32_t stream);
/* The op is the last in the queues. */
bool thing_touched (const granules *r, thing *x, int32_t stream, bool reads);
/* Somebody else is still where these pages come to; where the tensor is to be made. */
bool is_way_taken (const granules *r, const thing *x, int64_t first, int64_t end);
bool is_place_taken (const granules *r, const thing *x);
