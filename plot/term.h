/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures for a terminal: an amount over time as a filled area, and who is busy when.  Braille and
   blocks where the terminal has UTF-8, plain ASCII where not.  Where numbers come from is not known
   here. */
#pragma once

#include <stdint.h>

#include "base/file.h"

typedef struct term_style {
  bool utf8, color;
  int columns; /* of the whole picture */
} term_style;

/* An amount that holds from here to the next point. */
typedef struct term_point {
  int64_t at_ns, bytes;
} term_point;

/* Busy spans, and how they are drawn. */
typedef struct term_span {
  int64_t start_ns, end_ns;
} term_span;

typedef struct term_lane {
  const char *name;
  const term_span *spans; /* in any order; outside [0, end_ns) they wrap around */
  int32_t n_spans;
} term_lane;

/* Points in order of time, over [points[0].at_ns, end_ns). limit_bytes > 0 is drawn as a line, and
   what is above it in another colour. */
typedef struct term_amount {
  const term_point *points;
  int32_t n_points;
  int64_t end_ns, limit_bytes;
  const char *limit_name;
} term_amount;

/* Appends to `out`. */
bool term_area (const term_amount *m, int rows, const term_style *style, bytes *out,
                error *err) MUST_CHECK;

/* One line a lane, over [0, end_ns): the darker, the busier; at the end the busy share. */
bool term_lanes (const term_lane *lanes, int count, int64_t end_ns, const term_style *style,
                 bytes *out, error *err) MUST_CHECK;

/* A point of a curve; -1: there is no such number. */
typedef struct term_curve_point {
  int64_t budget_bytes, step_ns, bound_ns;
} term_curve_point;

/* Steps and their bounds over memory, from no time at all on; budgets rise. knee_bytes is pointed
   at, unless it is -1. At most 40 rows. */
bool term_curve (const term_curve_point *points, int32_t count, int64_t knee_bytes, int rows,
                 const term_style *style, bytes *out, error *err) MUST_CHECK;
