/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantities as people write them: "4GiB", "25 GB/s", "250us", "5%".  Values are int64; a text that
   is not a whole number of the base unit, is negative or overflows is refused. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum { UNITS_TEXT = 32 };

/* B, KB = 1000, KiB = 1024, ... up to P; fractions such as 1.5GiB are rounded down. */
bool units_parse_bytes (const char *text, int64_t *bytes, error *err) MUST_CHECK;
bool units_parse_rate (const char *text, int64_t *bytes_per_s, error *err) MUST_CHECK;
bool units_parse_time (const char *text, int64_t *ns, error *err) MUST_CHECK; /* ns us ms s min h */
/* "5%" or "0.05", in millionths. */
bool units_parse_share (const char *text, int64_t *ppm, error *err) MUST_CHECK;
bool units_parse_count (const char *text, int64_t low, int64_t high, int64_t *count,
                        error *err) MUST_CHECK;

/* An amount is bytes, or a percentage of something. */
typedef enum units_kind {
  UNITS_NONE,
  UNITS_BYTES,
  UNITS_RATE,
  UNITS_TIME,
  UNITS_SHARE,
  UNITS_COUNT,
  UNITS_AMOUNT
} units_kind;

/* A kind of quantity, and between which values it makes sense: what reads one may add up, multiply
   and divide it without looking again. Of an amount, what the percentage comes to counts too. */
typedef struct units_range {
  units_kind kind;
  int64_t low, high;
} units_range;

/* ERR_usage for a number alone that could be read in two ways, with both of them; 0 is 0. */
bool units_need_unit (const char *text, units_kind kind, error *err) MUST_CHECK;

/* A number as a person writes it, so that a number has its unit. whole: what a percentage of an
 * amount is of, at most 2^60; any value where it is no amount. */
bool units_parse_within (const char *text, const units_range *r, int64_t whole, int64_t *value,
                         error *err) MUST_CHECK;

/* Three digits or so, for people; each returns `text`. */
const char *units_bytes (char text[UNITS_TEXT], int64_t bytes);
/* Rounded down, up: a size to ask for is rounded up so that it suffices. */
const char *units_bytes_down (char text[UNITS_TEXT], int64_t bytes);
const char *units_bytes_up (char text[UNITS_TEXT], int64_t bytes);
const char *units_rate (char text[UNITS_TEXT], int64_t bytes_per_s);
const char *units_time (char text[UNITS_TEXT], int64_t ns);

/* a x b / c, rounded down, in 128 bits; INT64_MAX where it is more than that. */
int64_t units_scale (int64_t a, int64_t b, int64_t c);
/* a / b, rounded up; b > 0. */
int64_t units_div_up (int64_t a, int64_t b);
