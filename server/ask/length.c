/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a job may take, by what it asks for: short ones go first. */
#include <string.h>

#include "base/order.h"
#include "server/ask/asked.h"

enum { MOST_S = 300, QUICK_S = 2, NORMAL_S = 20, THOROUGH_S = 120, TICKS_PER_S = 50000 };

int64_t asked_int (const json *root, const char *key, int64_t without) {
  error ignored = { 0 };
  int64_t value = without;
  json j = json_member (root, key);
  return json_is_int (&j) && json_get_int (&j, 0, MOST_INT, &value, &ignored) ? value : without;
}

static int64_t effort_s (const json *root) {
  const char *word = NULL;
  error ignored = { 0 };
  json j = json_member (root, "effort");
  if (!json_is_string (&j) || !json_get_text (&j, &word, &ignored))
    return NORMAL_S;
  return strcmp (word, "quick") == 0      ? QUICK_S
         : strcmp (word, "thorough") == 0 ? THOROUGH_S
                                          : NORMAL_S;
}

/* Plans that one job makes: a point of a curve, a cell of a grid, a row of a table. */
static int64_t plans_of (const json *root) {
  static const char *const lists[] = { "batches",           "budgets", "devices",  "jobs",
                                       "links_bytes_per_s", "memory",  "policies", "ranks" };
  int64_t n = asked_int (root, "points", 1);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    json j = json_member (root, lists[i]);
    n = min_of (MOST_S, n * max_of (1, (int64_t)json_count (&j)));
  }
  return n;
}

int64_t asked_length_s (const json *root) {
  int64_t ticks = asked_int (root, "limit_ticks", 0);
  int64_t one_s = ticks ? min_of (MOST_S, ticks / TICKS_PER_S) : effort_s (root);
  return min_of (min_of (MOST_S, one_s * plans_of (root)),
                 asked_int (root, "time_limit_s", MOST_S));
}
