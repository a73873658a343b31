/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two instances of the G10 artifact (platformxlab/G10, Apache-2.0) as ferry imports them, and
   what that artifact published for them.  FERRY_REAL_TRACES says where the files are. */
#pragma once

#include "trace/device.h"

/* Times in cycles of 1.2 GHz. flashneuron is printed by a simulator of its own, with six digits. */
typedef struct g10_published {
  const char *name, *file; /* below FERRY_REAL_TRACES */
  int64_t ideal, lru, deepum, flashneuron, g10;
} g10_published;

enum { G10_INSTANCES = 2 };
extern const g10_published g10_instances[G10_INSTANCES];

/* ns as cycles, to the nearest, and back. */
int64_t g10_cycles (int64_t ns);

/* Its simulated machine with the host as the only other place: 40 GiB, 15.754 GiB/s each way, 5 us
   a copy, 128 GiB. */
device g10_device (void);

/* NULL where the file cannot be read. Every op's time is divided by `faster`, rounded
   to a nanosecond, at least one. */
trace *g10_trace (const g10_published *g, int64_t faster, arena *a, error *err) MUST_CHECK;
