/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which forward tensors to keep: a knapsack of their bytes, its value the time that recomputing
   them would take; filled greedily, by a table, or as an integer program.  The sum says nothing
   sure about the peak, so the share that is kept is searched from above, step by step, by what the
   rewritten trace then needs. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "solver/flow/ilp.h"
#include "solver/policy/drops.h"

typedef enum filling { GREEDILY, BY_TABLE, BY_PROGRAM } filling;

/* Bytes are counted in 1e-4 of all by the table. The program meets equal items in every order, so
   its tree is cut. */
enum { UNITS = 10000, MOST_NODES = 2000, MOST_COVERS = 8 };

typedef struct sack {
  policy_view *v;
  int32_t *items, n_items; /* gaps */
  int64_t total_bytes;
  filling filling;
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

/* Sets that were told to fit, and do not by so little that the solver takes it for nothing: an x of
   0.99999 is a whole one to it. At least one item of each has to go. */
typedef struct covers {
  bool *has; /* rows of n_items */
  int32_t count;
} covers;

/* Values are fractions: of the longest time, and of all bytes. */
static bool solve_program (sack *s, double share, const covers *c, ilp_result *out, error *err) {
  arena *a = s->v->arena;
  int32_t n = s->n_items, entry = 0;
  double longest = 1, low[MOST_COVERS + 1], high[MOST_COVERS + 1];
  double *columns = NEW (a, (int64_t)n * 3, double, err);
  double *coef = NEW (a, (int64_t)n * (MOST_COVERS + 1), double, err);
  int32_t *row = NEW (a, (int64_t)n * (MOST_COVERS + 1), int32_t, err);
  int64_t *start = NEW (a, (int64_t)n + 1, int64_t, err);
  bool *whole = NEW (a, n, bool, err);
  if (!columns || !coef || !row || !start || !whole)
    return false;
  for (int32_t i = 0; i <= c->count; i++) {
    low[i] = -HUGE_VAL;
    high[i] = i ? -1 : share;
  }
  for (int32_t i = 0; i < n; i++)
    longest = fmax (longest, (double)time_of (s->v, s->items[i]));
  for (int32_t i = 0; i < n; i++) {
    columns[n + i] = 1;
    columns[2 * n + i] = -(double)time_of (s->v, s->items[i]) / longest;
    whole[i] = true;
    row[entry] = 0;
    coef[entry++] = (double)bytes_of (s, s->items[i]) / (double)s->total_bytes;
    for (int32_t k = 0; k < c->count; k++)
      if (c->has[k * n + i]) {
        row[entry] = k + 1;
        coef[entry++] = 1;
        high[k + 1]++;
      }
    start[i + 1] = entry;
  }
  ilp_problem p = { .n_rows = c->count + 1,
                    .n_columns = n,
                    .row_low = low,
                    .row_high = high,
                    .low = columns,
                    .high = columns + n,
                    .cost = columns + 2 * n,
                    .column_start = start,
                    .entry_row = row,
                    .entry_coef = coef,
                    .whole = whole };
  ilp_options o = { .method = ILP_INTEGER, .limit_nodes = MOST_NODES };
  return ilp_solve (&p, &o, a, out, err);
}

/* False in *fits: what the solver found is more than the share, by its bytes. */
static void take_answer (sack *s, const ilp_result *r, int64_t room, bool *fits) {
  for (int32_t i = 0; i < s->n_items; i++) {
    s->kept[i] = r->x[i] > 0.5;
    room -= s->kept[i] ? bytes_of (s, s->items[i]) : 0;
  }
  *fits = room >= 0;
}

/* Without an answer: greedily. */
static bool fill_by_program (sack *s, int64_t c_ppm, error *err) {
  int64_t room = units_scale (s->total_bytes, c_ppm, 1000000);
  int32_t n = s->n_items;
  arena_mark mark = arena_here (s->v->arena);
  covers c = { .has = NEW (s->v->arena, (int64_t)n * MOST_COVERS, bool, err) };
  bool fits = false, answered = true;
  if (!c.has)
    return false;
  while (!fits && answered) {
    ilp_result r;
    if (!solve_program (s, (double)c_ppm / 1e6, &c, &r, err))
      return false;
    answered = r.status == ILP_OPTIMAL || r.status == ILP_FEASIBLE;
    if (answered)
      take_answer (s, &r, room, &fits);
    if (answered && !fits && c.count < MOST_COVERS)
      memcpy (c.has + (int64_t)c.count++ * n, s->kept, (size_t)n * sizeof *s->kept);
    else
      answered &= fits;
  }
  arena_back (s->v->arena, mark);
  if (!fits)
    fill_greedily (s, c_ppm);
  return true;
}

static bool fill (sack *s, int64_t c_ppm, error *err) {
  switch (s->filling) {
  case GREEDILY:
    fill_greedily (s, c_ppm);
    return true;
  case BY_TABLE:
    fill_exactly (s, c_ppm);
    return true;
  case BY_PROGRAM:
    return fill_by_program (s, c_ppm, err);
  }
  return false;
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

static bool list_items (sack *s, error *err) {
  policy_view *v = s->v;
  if (!ALLOC (v->arena, s->items, v->n_tensors, err) ||
      !ALLOC (v->arena, s->kept, v->n_tensors, err))
    return false;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->fb[x] >= 0 && v->producer[x] != NO_OP && v->producer[x] < v->first_backward &&
        policy_can_drop (v, x, v->gaps[v->fb[x]].b)) {
      s->items[s->n_items++] = v->fb[x];
      s->total_bytes += v->trace->tensors[x].bytes;
    }
  view_sort (v, s->items, s->n_items, dearest_first, NULL);
  if (s->filling != BY_TABLE)
    return true;
  if (!ALLOC (v->arena, s->choice, (int64_t)s->n_items * (UNITS + 1), err) ||
      !ALLOC (v->arena, s->value, UNITS + 1, err))
    return false;
  fill_table (s);
  return true;
}

bool policy_knapsack (policy_view *v, policy_choice *out, error *err) {
  int64_t given = v->option[POLICY_OPTION_knapsack_c];
  sack s = { .v = v, .filling = (filling)v->option[POLICY_OPTION_knapsack_solver] };
  if (!list_items (&s, err))
    return false;
  int64_t best_peak = INT64_MAX, best_c = 0;
  for (int64_t c = given ? given : 1000000; c >= 0; c -= v->option[POLICY_OPTION_knapsack_step]) {
    int64_t peak;
    if (!fill (&s, c, err) || !drop_others (&s, out, err))
      return false;
    if (given)
      return true;
    bool ok = policy_peak (v, out, &peak, err);
    if (!ok || peak <= v->budget_bytes)
      return ok;
    if (peak < best_peak) {
      best_peak = peak;
      best_c = c;
    }
  }
  out->note = "no share that is kept makes it fit";
  return fill (&s, best_c, err) && drop_others (&s, out, err);
}
