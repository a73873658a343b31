/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From numbers to lengths: an axis with ticks at 1, 2 or 5 times a power of ten of its unit (GiB,
   ms, percent), and their texts.  Whole numbers throughout, so that the same axis is the same text
   everywhere. */
#pragma once

#include "base/units.h"
#include "plot/figure.h"

enum { MOST_TICKS = 24 };

typedef struct scale {
  int64_t low, high; /* values at the ends; low < high */
  int64_t ticks[MOST_TICKS];
  int n_ticks;
  figure_unit unit;
  int64_t divisor; /* of one of its unit */
  const char *unit_name;
  int64_t step; /* between ticks, in 10^-decimals units */
  int decimals;
  int64_t first; /* of the first tick, in steps */
} scale;

/* wide: the ends move outward to ticks. most_ticks: at least 2; about that many or fewer come. */
scale scale_of (figure_unit unit, int64_t low, int64_t high, int most_ticks, bool wide);
/* Tick `i` without its unit, all with the same decimals: "0.5". */
const char *scale_label (const scale *s, int i, char text[UNITS_TEXT]);
/* A value's place, from 0 at low to `length` at high; beyond the ends it is cut. */
int32_t scale_place (const scale *s, int64_t value, int32_t length);

/* A value with its unit, for people: "4.00 GiB", "12.5 ms", "5.3 %", "17". */
const char *scale_text (figure_unit unit, int64_t value, char text[UNITS_TEXT]);
