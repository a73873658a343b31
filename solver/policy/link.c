/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/link.h"

int64_t link_earliest (const link_times *l, int64_t from_ns, int64_t end_ns, int64_t length_ns) {
  int64_t start = from_ns;
  for (int64_t i = 0; i < l->count; i++)
    if (l->at[i].to_ns > start && l->at[i].from_ns < start + length_ns)
      start = l->at[i].to_ns;
  return start + length_ns <= end_ns ? start : NO_TIME;
}

int64_t link_latest (const link_times *l, int64_t from_ns, int64_t end_ns, int64_t length_ns) {
  int64_t start = end_ns - length_ns;
  for (int64_t i = l->count - 1; i >= 0; i--)
    if (l->at[i].from_ns < start + length_ns && l->at[i].to_ns > start)
      start = l->at[i].from_ns - length_ns;
  return start >= from_ns ? start : NO_TIME;
}

static bool insert (link_times *l, link_time t, arena *a, error *err) {
  link_time *at = arena_grow (a, l->at, &l->room, l->count + 1, sizeof *at, err);
  if (!at)
    return false;
  int64_t i = l->count++;
  l->at = at;
  for (; i > 0 && at[i - 1].from_ns > t.from_ns; i--)
    at[i] = at[i - 1];
  at[i] = t;
  return true;
}

bool link_take (link_times *l, int64_t start_ns, int64_t length_ns, arena *a, error *err) {
  for (int64_t shift = -l->step_ns; shift <= l->step_ns; shift += l->step_ns ? l->step_ns : 1) {
    if (!insert (l, (link_time){ start_ns + shift, start_ns + shift + length_ns }, a, err))
      return false;
    if (l->step_ns == 0)
      break;
  }
  return true;
}
