/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Levels of a topological sort: what is used again more than a threshold of levels later leaves
   behind its last near user.  A simulation that counts bytes by level, and no time, looks for the
   largest threshold that fits, then for the earliest prefetching and the largest groups. */
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/policy/policy.h"

typedef struct setting {
  int64_t threshold, ahead, groupby, sync;
} setting;

typedef struct lms {
  policy_view *v;
  policy_choice *out; /* NULL: only count */
  int64_t capacity;
  int32_t n_levels;
  int64_t *change; /* per level, and two more */
  uint8_t *seen;
  const int32_t *by_level; /* all ops, by level */
} lms;

static int later_level (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->level[a], v->level[b]);
}

static void resident (lms *s, int64_t from, int64_t last, int64_t bytes) {
  last = last < s->n_levels ? last : s->n_levels - 1;
  if (last < from)
    return;
  s->change[from] += bytes;
  s->change[last + 1] -= bytes;
}

/* The op in the nearest level ahead of d that reaches it; NO_OP: none in ten levels. */
static int32_t find_trigger (lms *s, int32_t producer, int32_t d, const setting *set) {
  const policy_view *v = s->v;
  int64_t high = v->level[d] - set->ahead - 1, low = v->level[d] - set->ahead - 10;
  int32_t best = NO_OP;
  low = low > v->level[producer] + 1 ? low : v->level[producer] + 1;
  if (set->sync >= 2 || high < low)
    return NO_OP;
  (void)view_reaches (v, 0, d, s->seen);
  for (int32_t k = 0; k < d; k++)
    if (s->seen[k] && v->level[k] >= low && v->level[k] <= high &&
        (best == NO_OP || v->level[k] > v->level[best]))
      best = k;
  return best;
}

/* The users [first, end) of one copy in. `from`: the last user before them. */
static bool put_group (lms *s, int32_t x, int32_t producer, int32_t from, const int32_t *users,
                       int32_t count, const setting *set, error *err) {
  const policy_view *v = s->v;
  int32_t d = users[0], at, last = users[0];
  for (int32_t i = 1; i < count; i++) {
    d = users[i] < d ? users[i] : d;
    last = v->level[users[i]] > v->level[last] ? users[i] : last;
  }
  at = s->out ? find_trigger (s, producer, d, set) : NO_OP;
  int64_t in_level = set->sync >= 2 ? v->level[d] : v->level[d] - set->ahead;
  int64_t back = v->level[from] + 2; /* the copy out takes a level */
  in_level = in_level > back ? in_level : back;
  resident (s, in_level, v->level[last], v->held[x]);
  if (!s->out || from >= d)
    return true;
  policy_move m = { .tensor = x,
                    .out_after = from,
                    .in_before = d,
                    .in_not_before = at == NO_OP ? d : at + 1,
                    .wait_out = set->sync == 1 || set->sync == 3,
                    .wait_at = NO_OP };
  if (m.in_not_before <= from)
    m.in_not_before = from + 1;
  return policy_add_move (s->v, s->out, m, err);
}

/* Counts and, where `out` is set, moves one tensor; users are by level. */
static bool put_tensor (lms *s, int32_t x, int32_t *users, const setting *set, error *err) {
  const policy_view *v = s->v;
  int32_t p = v->producer[x], n = 0, near = p, last_level = v->level[p], readers = 0;
  for (int32_t i = v->units.use_offset[x]; i < v->units.use_offset[x + 1]; i++) {
    int32_t k = v->units.uses[i].op;
    last_level = v->level[k] > last_level ? v->level[k] : last_level;
    readers += v->units.uses[i].reads;
    if (k > p && v->units.uses[i].reads && v->level[k] - v->level[p] > set->threshold)
      users[n++] = k;
    else if (k > near)
      near = k;
  }
  if (n == 0) { /* tensors that nothing reads are not counted there */
    if (readers > 0)
      resident (s, v->level[p], last_level, v->held[x]);
    return true;
  }
  view_sort (v, users, n, later_level, NULL);
  resident (s, v->level[p], v->level[near] + 1, v->held[x]);
  for (int32_t first = 0, end; first < n; first = end) {
    for (end = first + 1; set->groupby > 0 && end < n; end++)
      if (v->level[users[end]] - v->level[users[end - 1]] > set->groupby)
        break;
    if (!put_group (s, x, p, near, users + first, end - first, set, err))
      return false;
    for (int32_t i = first; i < end; i++)
      near = users[i] > near ? users[i] : near;
  }
  return true;
}

static bool put_all (lms *s, const setting *set, error *err) {
  const policy_view *v = s->v;
  memset (s->change, 0, ((size_t)s->n_levels + 2) * sizeof *s->change);
  arena_mark mark = arena_here (v->arena);
  int32_t *users = NEW (v->arena, v->n_ops, int32_t, err);
  if (!users)
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    if (v->held[x] == 0 || v->trace->tensors[x].persistent || v->units.at[x].first == NO_OP)
      continue;
    int32_t p = v->producer[x] == NO_OP ? v->units.at[x].first : v->producer[x];
    if (v->movable[x] && v->producer[x] != NO_OP) {
      if (!put_tensor (s, x, users, set, err))
        return false;
      continue;
    }
    resident (s, v->level[p], v->level[v->units.at[x].last], v->held[x]);
  }
  if (!s->out)
    arena_back (v->arena, mark);
  return true;
}

static bool fits (lms *s, int64_t threshold, int64_t ahead, int64_t groupby, int64_t sync,
                  bool *out, error *err) {
  setting set = { threshold, ahead, groupby, sync };
  int64_t held = 0, most = 0;
  if (!put_all (s, &set, err))
    return false;
  for (int32_t l = 0; l < s->n_levels; l++) {
    held += s->change[l];
    most = held > most ? held : most;
  }
  *out = most <= s->capacity;
  return true;
}

/* The largest value by bisection, which takes for granted that fitting is monotone: the last that
   passed. */
static bool bisect (lms *s, setting *set, int64_t *value, error *err) {
  int64_t low = 1, high = s->n_levels, best = 1;
  while (low <= high) {
    bool ok;
    *value = low + (high - low) / 2;
    if (!fits (s, set->threshold, set->ahead, 0, set->sync, &ok, err))
      return false;
    if (ok) {
      best = *value;
      low = *value + 1;
    } else
      high = *value - 1;
  }
  *value = best;
  return true;
}

/* Stops at the first value that fits, which need not be the largest. */
static bool group (lms *s, setting *set, error *err) {
  bool ok;
  int64_t low = 0, high = s->n_levels;
  if (!fits (s, set->threshold, set->ahead, s->n_levels, set->sync, &ok, err))
    return false;
  set->groupby = ok ? s->n_levels : 0;
  while (!ok && low <= high) {
    int64_t middle = low + (high - low) / 2;
    if (!fits (s, set->threshold, set->ahead, middle, set->sync, &ok, err))
      return false;
    set->groupby = ok ? middle : 0;
    high = middle - 1;
  }
  return true;
}

static bool tune (lms *s, setting *set, bool *off, const char **note, error *err) {
  bool ok;
  *off = false;
  if (!fits (s, s->n_levels, 1, 0, set->sync, &ok, err))
    return false;
  if (ok) {
    *off = true;
    *note = "its simulation says that nothing need be swapped";
    return true;
  }
  for (; fits (s, 1, 1, 0, set->sync, &ok, err) && !ok && set->sync < 3;)
    set->sync++;
  if (err->code)
    return false;
  if (!ok) {
    *note = "its simulation finds no setting that fits";
    set->threshold = set->ahead = 1;
    return true;
  }
  set->ahead = 1;
  if (!bisect (s, set, &set->threshold, err) || set->sync >= 2)
    return err->code == ERR_none;
  return bisect (s, set, &set->ahead, err) && group (s, set, err);
}

bool policy_tflms_v2 (policy_view *v, policy_choice *out, error *err) {
  lms s = { .v = v };
  for (int32_t k = 0; k < v->n_ops; k++)
    s.n_levels = v->level[k] + 1 > s.n_levels ? v->level[k] + 1 : s.n_levels;
  if (!ALLOC (v->arena, s.change, (int64_t)s.n_levels + 2, err) ||
      !ALLOC (v->arena, s.seen, v->n_ops, err))
    return false;
  int64_t fixed = view_persistent_bytes (v) + v->pool_bytes;
  s.capacity = units_scale (v->budget_bytes > fixed ? v->budget_bytes - fixed : 0,
                            v->option[POLICY_OPTION_tflms_v2_ratio], 1000000);
  setting set = { .threshold = v->option[POLICY_OPTION_tflms_v2_threshold],
                  .ahead = v->option[POLICY_OPTION_tflms_v2_ahead],
                  .groupby = v->option[POLICY_OPTION_tflms_v2_groupby],
                  .sync = v->option[POLICY_OPTION_tflms_v2_sync_mode] };
  bool off = false;
  if (set.threshold == 0 && !tune (&s, &set, &off, &out->note, err))
    return false;
  s.out = out;
  out->auto_clean = true;
  return off || put_all (&s, &set, err);
}
