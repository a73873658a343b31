/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/scale.h"

#include <assert.h>
#include <stdio.h>

typedef struct unit_row {
  const char *name;
  int64_t divisor;
} unit_row;

static const unit_row byte_rows[] = {
  { "B", 1 },
  { "KiB", (int64_t)1 << 10 },
  { "MiB", (int64_t)1 << 20 },
  { "GiB", (int64_t)1 << 30 },
  { "TiB", (int64_t)1 << 40 },
  { "PiB", (int64_t)1 << 50 },
  { NULL, 0 },
};
static const unit_row time_rows[] = {
  { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { NULL, 0 },
};
static const unit_row share_rows[] = { { "%", 10000 }, { NULL, 0 } };
static const unit_row count_rows[] = { { "", 1 }, { NULL, 0 } };

static const unit_row *row_for (figure_unit unit, int64_t high) {
  const unit_row *row = unit == FIGURE_BYTES   ? byte_rows
                        : unit == FIGURE_NS    ? time_rows
                        : unit == FIGURE_SHARE ? share_rows
                                               : count_rows;
  while (row[1].name && row[1].divisor <= high)
    row++;
  return row;
}

static int64_t floor_div (__int128 a, __int128 b) {
  return (int64_t)(a / b - (a % b < 0));
}

static int64_t power (int decimals) {
  int64_t p = 1;
  while (decimals-- > 0)
    p *= 10;
  return p;
}

/* The value k steps from zero, rounded down to a whole one. */
static int64_t value_at (const scale *s, int64_t k) {
  __int128 value = (__int128)k * s->step * s->divisor;
  return floor_div (value, power (s->decimals));
}

static int64_t steps_below (const scale *s, int64_t value) {
  return floor_div ((__int128)value * power (s->decimals), (__int128)s->step * s->divisor);
}

scale scale_of (figure_unit unit, int64_t low, int64_t high, int most_ticks, bool wide) {
  assert (most_ticks >= 2 && most_ticks <= MOST_TICKS - 2);
  if (low < -(INT64_MAX / 4))
    low = -(INT64_MAX / 4);
  if (high > INT64_MAX / 4)
    high = INT64_MAX / 4; /* beyond any byte or nanosecond of a trace */
  if (high <= low)
    high = low + 1;
  int64_t size = high > -low ? high : -low;
  const unit_row *row = row_for (unit, size);
  scale s = { .unit = unit, .divisor = row->divisor, .unit_name = row->name };
  /* From a thousandth of the unit upward: fine enough, as the unit is of the size of the ends. */
  static const int factors[] = { 1, 2, 5 };
  bool found = false;
  for (int exponent = row->divisor == 1 ? 0 : -3; exponent < 18 && !found; exponent++)
    for (int i = 0; i < 3 && !found; i++) {
      s.decimals = exponent < 0 ? -exponent : 0;
      s.step = factors[i] * (exponent > 0 ? power (exponent) : 1);
      int64_t from = steps_below (&s, low), to = steps_below (&s, high);
      to += value_at (&s, to) < high;
      found = to - from <= most_ticks;
      s.first = from;
      s.n_ticks = (int)(to - from) + 1;
    }
  if (wide) {
    s.low = value_at (&s, s.first);
    s.high = value_at (&s, s.first + s.n_ticks - 1);
  } else {
    s.low = low;
    s.high = high;
    s.n_ticks -= value_at (&s, s.first + s.n_ticks - 1) > high;
    if (value_at (&s, s.first) < low) {
      s.first++;
      s.n_ticks--;
    }
  }
  for (int i = 0; i < s.n_ticks; i++)
    s.ticks[i] = value_at (&s, s.first + i);
  return s;
}

const char *scale_label (const scale *s, int i, char text[UNITS_TEXT]) {
  int64_t whole = (s->first + i) * s->step, one = power (s->decimals);
  int64_t size = whole < 0 ? -whole : whole;
  const char *sign = whole < 0 ? "-" : "";
  if (s->decimals)
    snprintf (text, UNITS_TEXT, "%s%lld.%0*lld", sign, (long long)(size / one), s->decimals,
              (long long)(size % one));
  else
    snprintf (text, UNITS_TEXT, "%s%lld", sign, (long long)size);
  return text;
}

int32_t scale_place (const scale *s, int64_t value, int32_t length) {
  if (value <= s->low)
    return 0;
  if (value >= s->high)
    return length;
  return (int32_t)(((__int128)(value - s->low) * length * 2 + (s->high - s->low)) /
                   ((__int128)2 * (s->high - s->low)));
}

const char *scale_text (figure_unit unit, int64_t value, char text[UNITS_TEXT]) {
  switch (unit) {
  case FIGURE_BYTES:
    return units_bytes (text, value);
  case FIGURE_NS:
    return units_time (text, value);
  case FIGURE_SHARE: {
    int64_t size = value < 0 ? -value : value;
    snprintf (text, UNITS_TEXT, "%s%lld.%02lld %%", value < 0 ? "-" : "", (long long)(size / 10000),
              (long long)(size % 10000 / 100));
    return text;
  }
  default:
    snprintf (text, UNITS_TEXT, "%lld", (long long)value);
    return text;
  }
}
