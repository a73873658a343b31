/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of solver/policy/policy.def, and values for their options. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "solver/policy/policy.h"

static const policy_row rows[POLICIES] = {
#define POLICY(id, name, function, budget, variant, says, whence) \
  [POLICY_##id] = { name, variant, says, whence, POLICY_##budget, policy_##function },
#include "solver/policy/policy.def"
};

static const policy_option_row options[POLICY_OPTIONS] = {
#define OPTION(id, key, kind, low, high, standard, words, says) \
  [POLICY_OPTION_##id##_##                                      \
      key] = { POLICY_##id, #key, POLICY_##kind, low, high, standard, words, says },
#include "solver/policy/policy.def"
};

const policy_row *policy_at (policy_id id) {
  assert (id >= 0 && id < POLICIES);
  return &rows[id];
}

const policy_option_row *policy_option_at (policy_option option) {
  assert (option >= 0 && option < POLICY_OPTIONS);
  return &options[option];
}

policy_id policy_named (const char *name) {
  int i = 0;
  while (i < POLICIES && strcmp (rows[i].name, name) != 0)
    i++;
  return (policy_id)i;
}

policy_values policy_standard (void) {
  policy_values v;
  for (int i = 0; i < POLICY_OPTIONS; i++)
    v.at[i] = options[i].standard;
  return v;
}

/* The place of a word in a list with spaces between; its end in *end. */
static const char *word_at (const char *words, int64_t index, int *length) {
  for (; index > 0; index--)
    words = strchr (words, ' ') + 1;
  *length = (int)strcspn (words, " ");
  return words;
}

const char *policy_label (policy_id id, const policy_values *values, arena *a, error *err) {
  const policy_row *row = &rows[id];
  if (!strstr (row->variant, row->name))
    return *row->variant ? arena_format (a, err, "%s (%s)", row->name, row->variant) : row->name;
  const char *mark = strstr (row->variant, "%s");
  if (!mark)
    return row->variant;
  int length, option = 0; /* the first option that is a word fills the mark */
  while (options[option].policy != id || options[option].kind != POLICY_WORD)
    option++;
  const char *word = word_at (options[option].words, values->at[option], &length);
  return arena_format (a, err, "%.*s%.*s%s", (int)(mark - row->variant), row->variant, length, word,
                       mark + 2);
}

static bool parse_word (const policy_option_row *o, const char *text, int64_t *out, error *err) {
  for (int64_t i = o->low; i <= o->high; i++) {
    int length;
    const char *word = word_at (o->words, i, &length);
    if (strlen (text) == (size_t)length && strncmp (word, text, (size_t)length) == 0) {
      *out = i;
      return true;
    }
  }
  return error_set (err, ERR_usage, "`%s` is none of: %s", text, o->words);
}

static bool parse_value (const policy_option_row *o, const char *text, int64_t *out, error *err) {
  static const units_kind kinds[] = {
    [POLICY_SHARE] = UNITS_SHARE,
    [POLICY_BYTES] = UNITS_BYTES,
    [POLICY_TIME] = UNITS_TIME,
    [POLICY_RATE] = UNITS_RATE,
  };
  bool quantity = o->kind != POLICY_WORD && o->kind != POLICY_COUNT;
  if (quantity && !units_need_unit (text, kinds[o->kind], err))
    return false;
  switch (o->kind) {
  case POLICY_WORD:
    return parse_word (o, text, out, err);
  case POLICY_COUNT:
    return units_parse_count (text, o->low, o->high, out, err);
  case POLICY_SHARE:
    return units_parse_share (text, out, err);
  case POLICY_BYTES:
    return units_parse_bytes (text, out, err);
  case POLICY_TIME:
    return units_parse_time (text, out, err);
  case POLICY_RATE:
    return units_parse_rate (text, out, err);
  }
  return false;
}

bool policy_set (policy_id id, const char *text, policy_values *values, error *err) {
  const char *equals = strchr (text, '=');
  if (!equals)
    return error_set (err, ERR_usage, "`%s` is not key=value", text);
  for (int i = 0; i < POLICY_OPTIONS; i++) {
    const policy_option_row *o = &options[i];
    if (o->policy != id || strlen (o->key) != (size_t)(equals - text) ||
        strncmp (o->key, text, (size_t)(equals - text)) != 0)
      continue;
    error wrong = { 0 };
    int64_t value = 0;
    if (!parse_value (o, equals + 1, &value, &wrong))
      return error_set (err, ERR_usage, "%s of %s: %s", o->key, rows[id].name, wrong.text);
    if (value < o->low || value > o->high)
      return error_set (err, ERR_usage, "%s of %s is %lld to %lld", o->key, rows[id].name,
                        (long long)o->low, (long long)o->high);
    values->at[i] = value;
    return true;
  }
  return error_set (err, ERR_usage, "%s has no option %.*s; see `ferry solve --policy list`",
                    rows[id].name, (int)(equals - text), text);
}
