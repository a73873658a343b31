/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/units.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
  const char *name;
  int64_t factor;
} unit;

static const unit byte_units[] = {
  { "", 1 },
  { "b", 1 },
  { "k", 1000 },
  { "kb", 1000 },
  { "kib", 1024 },
  { "m", 1000000 },
  { "mb", 1000000 },
  { "mib", 1048576 },
  { "g", 1000000000 },
  { "gb", 1000000000 },
  { "gib", 1073741824 },
  { "t", 1000000000000 },
  { "tb", 1000000000000 },
  { "tib", 1099511627776 },
  { "pb", 1000000000000000 },
  { "pib", 1125899906842624 },
  { NULL, 0 },
};

static const unit time_units[] = {
  { "ns", 1 },
  { "", 1 },
  { "us", 1000 },
  { "ms", 1000000 },
  { "s", 1000000000 },
  { "min", 60000000000 },
  { "h", 3600000000000 },
  { NULL, 0 },
};

static const unit share_units[] = { { "", 1000000 }, { "%", 10000 }, { "ppm", 1 }, { NULL, 0 } };
static const unit count_units[] = { { "", 1 }, { NULL, 0 } };

#define MOST_SCALE 1000000000000000000

/* [digits][.digits][blanks][unit], case ignored; value x factor, rounded down. */
static bool parse (const char *text, const char *suffix, const unit *units, const char *what,
                   int64_t *value, error *err) {
  const char *at = text;
  __int128 digits = 0, scale = 1;
  bool any = false, point = false;
  for (; isdigit ((unsigned char)*at) || (*at == '.' && !point); at++) {
    if (*at == '.') {
      point = true;
      continue;
    }
    any = true;
    if (!point && digits >= (__int128)1 << 62)
      return error_set (err, ERR_usage, "`%s` is too large for %s", text, what);
    if (point && (digits >= (__int128)1 << 62 || scale >= MOST_SCALE))
      continue; /* decimals that no longer count */
    digits = digits * 10 + (*at - '0');
    if (point)
      scale *= 10;
  }
  while (*at == ' ')
    at++;
  char name[8] = "";
  size_t length = 0;
  size_t tail = strlen (suffix), left = strlen (at);
  bool fits = left >= tail && strcasecmp (at + left - tail, suffix) == 0;
  if (fits)
    left -= tail;
  for (; length < left && length + 1 < sizeof name; length++)
    name[length] = (char)tolower ((unsigned char)at[length]);
  for (const unit *u = units; any && fits && length == left && u->name; u++)
    if (strcmp (u->name, name) == 0) {
      if (digits > ((__int128)1 << 100) / u->factor)
        break;
      __int128 result = digits * u->factor / scale;
      if (result > INT64_MAX)
        return error_set (err, ERR_usage, "`%s` is too large for %s", text, what);
      *value = (int64_t)result;
      return true;
    }
  return error_set (err, ERR_usage, "`%s` is not %s", text, what);
}

bool units_parse_bytes (const char *text, int64_t *bytes, error *err) {
  return parse (text, "", byte_units, "a number of bytes such as 4GiB", bytes, err);
}

/* "Gb" and "Gib" are bits to those who sell networks; "gb" is nothing but a lazy "GB". */
static bool says_bits (const char *text) {
  const char *end = strchr (text, 'b');
  if (end && end > text && end[-1] == 'i')
    end--;
  return end && end > text && strchr ("KMGTP", end[-1]);
}

bool units_parse_rate (const char *text, int64_t *bytes_per_s, error *err) {
  const char *what = "a rate such as 25GB/s";
  size_t length = strlen (text);
  if (says_bits (text))
    return error_set (err, ERR_usage,
                      "`%s` may be bits; write bytes, such as 25GB/s (8 Gb/s are 1GB/s)", text);
  bool per_s = length > 2 && strcasecmp (text + length - 2, "/s") == 0;
  return parse (text, per_s ? "/s" : "", byte_units, what, bytes_per_s, err);
}

bool units_parse_time (const char *text, int64_t *ns, error *err) {
  return parse (text, "", time_units, "a time such as 250us", ns, err);
}

bool units_parse_share (const char *text, int64_t *ppm, error *err) {
  return parse (text, "", share_units, "a share such as 5%", ppm, err);
}

static bool parse_count (const char *text, int64_t *count, error *err) {
  if (!parse (text, "", count_units, "a whole number", count, err))
    return false;
  if (strchr (text, '.'))
    return error_set (err, ERR_usage, "`%s` is not a whole number", text);
  return true;
}

/* A limit as it can be typed in again. */
static const char *limit_text (char text[UNITS_TEXT], units_kind kind, int64_t value) {
  static const char *const endings[] = { "", " B", " B/s", " ns", "", "", " B" };
  if (kind == UNITS_SHARE) /* whole millionths: nothing is rounded */
    snprintf (text, UNITS_TEXT, "%.10g %%", (double)value / 10000);
  else
    snprintf (text, UNITS_TEXT, "%lld%s", (long long)value, endings[kind]);
  return text;
}

static bool parse_amount (const char *text, int64_t whole, int64_t *value, error *err) {
  int64_t ppm;
  if (!strchr (text, '%'))
    return parse (text, "", byte_units, "a number of bytes such as 4GiB, or a share such as 80%",
                  value, err);
  if (!units_parse_share (text, &ppm, err))
    return false;
  __int128 bytes = (__int128)whole * ppm / 1000000;
  if (bytes > INT64_MAX)
    return error_set (err, ERR_usage, "`%s` is too large for a share", text);
  *value = (int64_t)bytes;
  return true;
}

bool units_need_unit (const char *text, units_kind kind, error *err) {
  static const struct {
    const char *small, *large;
  } readings[] = { [UNITS_BYTES] = { "B", "GiB" },
                   [UNITS_RATE] = { "B/s", "GB/s" },
                   [UNITS_TIME] = { "ns", "s" },
                   [UNITS_AMOUNT] = { "B", "GiB" } };
  size_t length = strlen (text);
  if (length == 0 || strspn (text, "0123456789.") != length || strspn (text, "0.") == length ||
      kind == UNITS_NONE || kind == UNITS_COUNT)
    return true;
  double value = strtod (text, NULL);
  if (kind == UNITS_AMOUNT && value <= 100) /* bytes so few are not meant */
    return error_set (err, ERR_usage, "`%s` has no unit: is it %.10g%% or %sGiB?", text,
                      value <= 1 ? 100 * value : value, text);
  if (kind != UNITS_SHARE)
    return error_set (err, ERR_usage, "`%s` has no unit: is it %s%s or %s%s?", text, text,
                      readings[kind].small, text, readings[kind].large);
  int64_t ppm;
  if (!parse (text, "", share_units, "a share such as 5%", &ppm, err))
    return false;
  return error_set (err, ERR_usage, "`%s` has no %%: is it %s%% or %.10g%%?", text, text,
                    (double)ppm / 10000);
}

bool units_parse_within (const char *text, const units_range *r, int64_t whole, int64_t *value,
                         error *err) {
  char low[UNITS_TEXT], high[UNITS_TEXT];
  int64_t x = 0;
  bool ok = false;
  if (!units_need_unit (text, r->kind, err))
    return false;
  switch (r->kind) {
  case UNITS_BYTES:
    ok = units_parse_bytes (text, &x, err);
    break;
  case UNITS_RATE:
    ok = units_parse_rate (text, &x, err);
    break;
  case UNITS_TIME:
    ok = units_parse_time (text, &x, err);
    break;
  case UNITS_SHARE:
    ok = units_parse_share (text, &x, err);
    break;
  case UNITS_COUNT:
    ok = parse_count (text, &x, err);
    break;
  case UNITS_AMOUNT:
    ok = parse_amount (text, whole, &x, err);
    break;
  case UNITS_NONE:
    assert (0 && "what is no quantity is not read as one");
  }
  if (!ok)
    return false;
  if (x < r->low || x > r->high)
    return error_set (err, ERR_usage, "%s is not between %s and %s", text,
                      limit_text (low, r->kind, r->low), limit_text (high, r->kind, r->high));
  *value = x;
  return true;
}

bool units_parse_count (const char *text, int64_t low, int64_t high, int64_t *count, error *err) {
  const units_range r = { UNITS_COUNT, low, high };
  return units_parse_within (text, &r, 0, count, err);
}

/* The value in the largest unit that leaves at least one before the point, once it is rounded to
   three digits: 999.6 KB is 1.00 MB. */
static int decimals_of (double size, int unit) {
  return unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

static const char *scaled (char *text, int64_t value, double base, const char *const *names,
                           int count) {
  double shown = (double)value;
  int unit = 0;
  while (unit + 1 < count && (shown >= base - 0.5 || shown <= 0.5 - base)) {
    shown /= base;
    unit++;
  }
  double size = shown < 0 ? -shown : shown;
  snprintf (text, UNITS_TEXT, "%.*f %s", decimals_of (size, unit), shown, names[unit]);
  return text;
}

enum { BYTES_UNITS = 6 };
static const char *const bytes_units[BYTES_UNITS] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };

const char *units_bytes (char text[UNITS_TEXT], int64_t bytes) {
  return scaled (text, bytes, 1024, bytes_units, BYTES_UNITS);
}

/* In whole hundredths, so that what is read back is on the same side. */
static const char *bytes_beside (char *text, int64_t bytes, bool up) {
  static const int64_t steps[] = { 1, 10, 100 };
  assert (bytes >= 0);
  int unit = 0;
  int64_t size = 1;
  while (unit + 1 < BYTES_UNITS && bytes / 1024 >= size) {
    size *= 1024;
    unit++;
  }
  int decimals = decimals_of ((double)bytes / (double)size, unit);
  __int128 all = (__int128)bytes * steps[decimals] + (up ? size - 1 : 0);
  int64_t n = (int64_t)(all / size), step = steps[decimals];
  if (decimals == 0)
    snprintf (text, UNITS_TEXT, "%lld %s", (long long)n, bytes_units[unit]);
  else
    snprintf (text, UNITS_TEXT, "%lld.%0*lld %s", (long long)(n / step), decimals,
              (long long)(n % step), bytes_units[unit]);
  return text;
}

const char *units_bytes_down (char text[UNITS_TEXT], int64_t bytes) {
  return bytes_beside (text, bytes, false);
}

const char *units_bytes_up (char text[UNITS_TEXT], int64_t bytes) {
  return bytes_beside (text, bytes, true);
}

const char *units_rate (char text[UNITS_TEXT], int64_t bytes_per_s) {
  static const char *const names[] = { "B/s", "KB/s", "MB/s", "GB/s", "TB/s" };
  return scaled (text, bytes_per_s, 1000, names, 5);
}

const char *units_time (char text[UNITS_TEXT], int64_t ns) {
  static const char *const names[] = { "ns", "us", "ms", "s" };
  return scaled (text, ns, 1000, names, 4);
}

int64_t units_scale (int64_t a, int64_t b, int64_t c) {
  assert (c > 0);
  __int128 x = (__int128)a * b / c;
  return x < INT64_MAX ? (int64_t)x : INT64_MAX;
}

int64_t units_div_up (int64_t a, int64_t b) {
  assert (a >= 0 && b > 0);
  return a / b + (a % b != 0);
}
