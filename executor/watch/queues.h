/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work in streams: each in its own order, one link of two directions that all copies share.  Used
   by foresee.c. */
#ifndef FERRY_EXECUTOR_WATCH_QUEUES_H
#define FERRY_EXECUTOR_WATCH_QUEUES_H

#include "base/arena.h"
#include "base/file.h"
#include "trace/device.h"

/* The first three are the shim's. */
enum { QUEUES_OWN = 3, QUEUES_STREAMS = 66 };

typedef struct queued {
  int32_t stream;
  int64_t ns;    /* of an op */
  int64_t bytes; /* of a copy, less than 0: to the host; 0: no copy */
  int64_t first_wait, n_waits;
  int32_t next; /* of its stream */
  int64_t end_ns, ticket;
  bool begun, done;
} queued;

typedef struct queues {
  bytes rows, waits;
  int32_t last[QUEUES_STREAMS]; /* of each stream; -1: none */
  int32_t first[QUEUES_STREAMS];
} queues;

void queues_start (queues *q);
void queues_free (queues *q);
/* Behind the last of its stream; queues_wait then adds to what it waits for. Its number. */
bool queues_add (queues *q, int32_t stream, int64_t ns, int64_t bytes, error *err) MUST_CHECK;
bool queues_wait (queues *q, int32_t behind, error *err) MUST_CHECK; /* less than 0: nothing */
int32_t queues_count (const queues *q);
queued *queues_at (const queues *q, int32_t i);
/* All of it, from time 0 on. */
bool queues_run (queues *q, const device *d, error *err) MUST_CHECK;

#endif
