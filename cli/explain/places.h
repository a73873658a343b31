/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of places: what the plan takes beside the bytes that live at the peak, and how long ops
   wait for places although as many others are free. */
#pragma once

#include "cli/call/call.h"
#include "trace/simulate/waits.h"

typedef struct places_told {
  placement_kind kind;
  int64_t granule_bytes;
  int64_t rounding_bytes; /* at the peak, the pool's included */
  int64_t lost_bytes;     /* that, and what stays empty at the peak */
  int64_t waited_ns;      /* of the waits for room */
} places_told;

bool places_of (call *c, const sim_job *job, const timeline *line, const wait *waits,
                int32_t n_waits, int64_t peak_bytes, places_told *out) MUST_CHECK;
void places_print (const places_told *x);
void places_put (json_writer *w, const places_told *x);
