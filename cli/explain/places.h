/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of granules: what rounding takes at the peak, and how long ops wait
   for granules although as many others are free. */
#ifndef FERRY_CLI_EXPLAIN_PLACES_H
#define FERRY_CLI_EXPLAIN_PLACES_H

#include "cli/call/call.h"
#include "trace/simulate/waits.h"

typedef struct places_told {
  int64_t granule_bytes;
  int64_t rounding_bytes; /* at the peak, the pool's included */
  int64_t waited_ns;      /* of the waits for room */
} places_told;

bool places_of (call *c, const sim_job *job, const timeline *line, const wait *waits,
                int32_t n_waits, places_told *out) MUST_CHECK;
void places_print (const places_told *x);
void places_put (json_writer *w, const places_told *x);

#endif
