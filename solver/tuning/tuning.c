/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/tuning/tuning.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tuning tuning_shipped = { .at = {
#define TUNE(name, value, least, most, why) value,
#define LIST(name, count, least, most, why, ...) __VA_ARGS__,
#include "solver/tuning/tuning.def"
                                } };

/* A list of too few or too many numbers would move all behind it. */
enum {
#define TUNE(name, value, least, most, why) COUNT_##name,
#define LIST(name, count, least, most, why, ...) \
  COUNT_##name, COUNT_##name##_last = COUNT_##name + sizeof ((int64_t[]){ __VA_ARGS__ }) / 8 - 1,
#include "solver/tuning/tuning.def"
  COUNTED
};
static_assert ((int)COUNTED == (int)TUNINGS, "a list of tuning.def has another length");

const tuning_row tuning_rows[] = {
#define TUNE(name, value, least, most, why) { #name, why, TUNE_##name, 1, least, most },
#define LIST(name, count, least, most, why, ...) { #name, why, TUNE_##name, count, least, most },
#include "solver/tuning/tuning.def"
  { NULL, NULL, 0, 0, 0, 0 },
};

enum { NAME_ROOM = 64 };

/* A whole number and nothing behind it. */
static bool read_value (const char *text, int64_t *value) {
  char *end;
  *value = strtoll (text, &end, 10);
  return end != text && *end == '\0' && *value > INT64_MIN / 4 && *value < INT64_MAX / 4;
}

static bool set_strategy (tuning *t, const char *name, int64_t value, bool *known, error *err) {
  for (int i = 0; i < STRATEGIES; i++)
    if (strcmp (name, strategy_rows[i].name) == 0) {
      *known = true;
      if (value != 0 && value != 1)
        return error_set (err, ERR_usage, "%s is a strategy: 0 switches it off, 1 on", name);
      t->off[i] = value == 0;
    }
  return true;
}

/* `at`: of a list, which of its numbers; -1: none was named. */
static bool set_number (tuning *t, const tuning_row *r, int64_t at, int64_t value, error *err) {
  if ((r->count == 1) != (at < 0) || at >= r->count)
    return error_set (err, ERR_usage,
                      r->count == 1 ? "%s is one number" : "%s has %d numbers: %s.0=VALUE", r->name,
                      r->count, r->name);
  if (value < r->least || value > r->most)
    return error_set (err, ERR_usage, "%s: %lld is not between %lld and %lld", r->name,
                      (long long)value, (long long)r->least, (long long)r->most);
  t->at[r->first + (at < 0 ? 0 : at)] = value;
  return true;
}

static bool set_one (tuning *t, char *text, error *err) {
  char *equals = strchr (text, '='), *dot;
  int64_t value, at = -1;
  bool known = false;
  if (!equals || !read_value (equals + 1, &value))
    return error_set (err, ERR_usage, "`%s` is not NAME=VALUE with a whole number", text);
  *equals = '\0';
  if (!set_strategy (t, text, value, &known, err))
    return false;
  if (known)
    return true;
  if ((dot = strchr (text, '.')) && (!read_value (dot + 1, &at) || at < 0))
    return error_set (err, ERR_usage, "`%s`: which of its numbers is not a count", text);
  if (dot)
    *dot = '\0';
  for (const tuning_row *r = tuning_rows; r->name; r++)
    if (strcmp (text, r->name) == 0)
      return set_number (t, r, at, value, err);
  return error_set (err, ERR_usage,
                    "nothing is called `%s`; `ferry solve --tune list` prints the names", text);
}

bool tuning_read (tuning *t, const char *text, error *err) {
  assert (t && text);
  while (*text) {
    char one[NAME_ROOM];
    size_t n = strcspn (text, ",");
    if (n >= sizeof one)
      return error_set (err, ERR_usage, "`%.60s` is longer than any name", text);
    memcpy (one, text, n);
    one[n] = '\0';
    if (!set_one (t, one, err))
      return false;
    text += n + (text[n] == ',');
  }
  return true;
}
