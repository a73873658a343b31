/* Which forward tensors to keep: a knapsack of their bytes, its value the time that recomputing
   them would take.  The sum says nothing sure about the peak, so the share that is kept is searched
   from above, step by step, by what the rewritten trace then needs. */
#include <string.h>

#include "base/units.h"
#include "solver/policy_drops.h"
#include "trace/rewrite.h"

enum { UNITS = 10000 }; /* bytes are counted in 1e-4 of all */

typedef struct sack {
  policy_view *v;
  int32_t *items, n_items; /* gaps */
  int64_t total_bytes;
  bool *kept;      /* per item */
  uint8_t *choice; /* rows of UNITS + 1 */
  int64_t *value;
} sack;

static int64_t bytes_of (const sack *s, int32_t gap) {
  return s->v->trace->tensors[s->v->gaps[gap].tensor].bytes;
}

static int64_t time_of (const policy_view *v, int32_t gap) {
  return v->trace->ops[v->producer[v->gaps[gap].tensor]].ns;
}

static int dearest_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  __int128 x = (__int128)time_of (v, a) * v->trace->tensors[v->gaps[b].tensor].bytes;
  __int128 y = (__int128)time_of (v, b) * v->trace->tensors[v->gaps[a].tensor].bytes;
  return (x < y) - (x > y);
}

/* Does not stop at the first that does not fit. */
static void fill_greedily (sack *s, int64_t c_ppm) {
  int64_t room = units_scale (s->total_bytes, c_ppm, 1000000);
  for (int32_t i = 0; i < s->n_items; i++) {
    int64_t bytes = bytes_of (s, s->items[i]);
    s->kept[i] = bytes <= room;
    room -= s->kept[i] ? bytes : 0;
  }
}

static int64_t units_of_item (const sack *s, int32_t i) {
  int64_t whole = s->total_bytes > 0 ? s->total_bytes : 1;
  return units_div_up (units_scale (bytes_of (s, s->items[i]), UNITS, 1), whole);
}

/* Sizes are rounded up, so that no sum exceeds the share. One table serves every share. */
static void fill_table (sack *s) {
  memset (s->value, 0, (UNITS + 1) * sizeof *s->value);
  for (int32_t i = 0; i < s->n_items; i++) {
    int64_t m = units_of_item (s, i), r = time_of (s->v, s->items[i]);
    uint8_t *row = s->choice + (int64_t)i * (UNITS + 1);
    for (int64_t c = UNITS; c >= m; c--)
      if (s->value[c - m] + r > s->value[c]) {
        s->value[c] = s->value[c - m] + r;
        row[c] = 1;
      }
  }
}

static void fill_exactly (sack *s, int64_t c_ppm) {
  int64_t c = units_scale (UNITS, c_ppm, 1000000);
  for (int32_t i = s->n_items - 1; i >= 0; i--) {
    s->kept[i] = s->choice[(int64_t)i * (UNITS + 1) + c];
    c -= s->kept[i] ? units_of_item (s, i) : 0;
  }
}

static bool drop_others (const sack *s, policy_choice *out, error *err) {
  out->n_drops = 0;
  for (int32_t i = 0; i < s->n_items; i++) {
    const view_gap *g = &s->v->gaps[s->items[i]];
    policy_drop d = { g->tensor, g->a, g->b, -1, true };
    if (!s->kept[i] && !policy_add_drop (s->v, out, d, err))
      return false;
  }
  return true;
}

/* The peak once these drops have rewritten the trace. */
static bool peak_of (const sack *s, const policy_choice *c, int64_t *out, error *err) {
  policy_view *v = s->v, after;
  recompute *entries;
  int32_t n;
  int64_t kept;
  rewritten rw;
  if (!policy_recomputes (v, c, &entries, &n, &kept, err) ||
      !trace_rewrite (v->trace, NULL, 0, entries, n, v->device->section_ns, v->arena, &rw, err) ||
      !policy_view_build (rw.trace, v->device, v->budget_bytes, v->host_bytes, v->arena, &after,
                          err))
    return false;
  *out = after.res[view_peak (&after, after.res)];
  return true;
}

static bool begin (sack *s, bool dp, error *err) {
  policy_view *v = s->v;
  s->items = NEW (v->arena, v->n_tensors, int32_t, err);
  s->kept = NEW (v->arena, v->n_tensors, bool, err);
  if (!s->items || !s->kept)
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0 && v->producer[x] != NO_OP && v->producer[x] < v->first_backward &&
        policy_can_drop (v, x, v->gaps[v->fb[x]].b)) {
      s->items[s->n_items++] = v->fb[x];
      s->total_bytes += v->trace->tensors[x].bytes;
    }
  view_sort (v, s->items, s->n_items, dearest_first, NULL);
  if (!dp)
    return true;
  s->choice = NEW (v->arena, (int64_t)s->n_items * (UNITS + 1), uint8_t, err);
  s->value = NEW (v->arena, UNITS + 1, int64_t, err);
  if (!s->choice || !s->value)
    return false;
  fill_table (s);
  return true;
}

bool policy_knapsack (policy_view *v, policy_id id, const policy_values *values, policy_choice *out,
                      error *err) {
  (void)id;
  bool dp = values->at[POLICY_OPTION_knapsack_solver] == 1;
  int64_t given = values->at[POLICY_OPTION_knapsack_c];
  sack s = { .v = v };
  if (!begin (&s, dp, err))
    return false;
  int64_t best_peak = INT64_MAX, best_c = 0;
  for (int64_t c = given ? given : 1000000; c >= 0; c -= values->at[POLICY_OPTION_knapsack_step]) {
    int64_t peak;
    if (dp)
      fill_exactly (&s, c);
    else
      fill_greedily (&s, c);
    if (!drop_others (&s, out, err))
      return false;
    if (given)
      return true;
    arena_mark mark = arena_here (v->arena);
    bool ok = peak_of (&s, out, &peak, err);
    arena_back (v->arena, mark);
    if (!ok || peak <= v->budget_bytes)
      return ok;
    if (peak < best_peak) {
      best_peak = peak;
      best_c = c;
    }
  }
  out->note = "no share that is kept makes it fit";
  if (dp)
    fill_exactly (&s, best_c);
  else
    fill_greedily (&s, best_c);
  return drop_others (&s, out, err);
}
