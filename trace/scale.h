/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace with its times carried over to another card: all by one share, or each op that says what
   it calculates by the two cards' rooflines. */
#ifndef FERRY_TRACE_SCALE_H
#define FERRY_TRACE_SCALE_H

#include "trace/device.h"

typedef struct scaled {
  const trace *trace;
  int32_t ops;             /* ops whose times were scaled */
  int64_t kept_ns, all_ns; /* of those that were not, gaps included; and of all */
} scaled;

/* Recorded steps are left out: their ratios would be made up. */
bool scale_share (const trace *t, int64_t ppm, arena *a, scaled *out, error *err) MUST_CHECK;
/* Refused where no op says what it calculates. */
bool scale_roofline (const trace *t, const device *from, const device *to, arena *a, scaled *out,
                     error *err) MUST_CHECK;

#endif
