/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lanes, counters and arrows as a trace-event file, which Perfetto and chrome://tracing open: X
   slices, C counters, flow arrows from slice to slice.  Times are in microseconds with three
   decimals, made from whole nanoseconds, so that nothing is lost. */
#pragma once

#include "base/file.h"
#include "plot/figure.h"

/* From the start of one slice to the start of a later one. */
typedef struct chrome_arrow {
  int32_t from_lane, to_lane;
  int64_t from_ns, to_ns;
} chrome_arrow;

typedef struct chrome_trace {
  const char *title;
  const figure_lane *lanes;      /* a row each; x is in ns */
  const figure_series *counters; /* steps; y is in bytes */
  const chrome_arrow *arrows;
  const figure_fact *facts; /* kept with the file, exact */
  int32_t n_lanes, n_counters, n_arrows, n_facts;
} chrome_trace;

bool chrome_text (const chrome_trace *t, bytes *out, error *err) MUST_CHECK;
