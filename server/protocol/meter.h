/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts and durations by labels, as Prometheus reads them.  A series is named by the addresses of
   its labels' values: they must be texts that stay, of a small set. */
#pragma once

#include "base/file.h"

enum { METER_LABELS = 3 };

typedef struct meter meter;

typedef struct meter_labels {
  const char *values[METER_LABELS]; /* NULL: as many as the metric has */
} meter_labels;

/* names: of the labels, with blanks between; what they are called stays with the caller. */
meter *meter_new (const char *names, bool histogram) MUST_CHECK;
void meter_free (meter *m);
void meter_count (meter *m, meter_labels of, int64_t n);
/* nano: of the metric's unit, such as nanoseconds where it is in seconds. */
void meter_observe (meter *m, meter_labels of, int64_t nano);
/* The samples alone, each led by `name`. */
bool meter_write (meter *m, const char *name, bytes *out, error *err) MUST_CHECK;
