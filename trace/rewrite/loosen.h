/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every way to cut a step into sections, as one trace: ops that may be
   cut lose their order among themselves ("loose"), and between two of them that no chain may hold
   together a wall of no length is put, at which all before it has run and nothing behind it.  What
   is true of this trace with nothing known inside a loose run is true of every cut. */
#pragma once

#include "trace/trace.h"

/* Which orders the cuts may have: level by level only, or chains too. */
typedef enum loose_orders { LOOSE_LEVEL, LOOSE_ANY, LOOSE_ORDERS } loose_orders;

extern const char *const loose_order_names[LOOSE_ORDERS + 1]; /* NULL at the end */

typedef struct loosened {
  const trace *trace; /* the ops and the walls; its lists are the original's */
  uint8_t *loose;     /* per op of it */
  int32_t *of;        /* per op of it: the op of the original, or NO_OP for a wall */
  loose_orders orders;
} loosened;

bool trace_loosen (const trace *t, loose_orders orders, arena *a, loosened *out,
                   error *err) MUST_CHECK;

/* In how many parts an op may run, at most. */
int64_t loose_parts (const trace *t, int32_t op);

/* Op k and the one before it are of one run: no one knows which of their parts comes first. */
static inline bool loose_follows (const uint8_t *loose, int32_t k) {
  return loose && k > 0 && loose[k] && loose[k - 1];
}
