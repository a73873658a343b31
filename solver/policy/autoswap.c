/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gaps that span the peak get a score; the best are taken until memory is below the limit.  Copies
   out queue in the order in which tensors become idle; copies in are laid from the last need
   backwards.  One mode sticks to the limit, and ops wait where copies do not keep up; the other
   leaves the copies at these times, and memory is what they make of it. */
#include "base/order.h"
#include "base/units.h"
#include "solver/policy/policy.h"

typedef enum score { DOA, AOA, WDOA, SWDOA, VOTE } score;

typedef struct autoswap {
  policy_view *v;
  bool paper, delayed;
  int64_t *res;
  __int128 *over; /* per op, and one more: byte-time above the budget before it */
  __int128 *key;  /* per gap: the larger, the better */
  int32_t *cand, n_cand;
  int32_t *taken, n_taken;
  int64_t *out_end_ns, *in_start_ns; /* per gap; in_start_ns of a wrapping one in the next step */
} autoswap;

static int64_t out_ns (const autoswap *s, int32_t x) {
  int64_t bytes = s->v->trace->tensors[x].bytes;
  return s->paper ? 47200 + units_scale (bytes, 756, 10000) : view_out_ns (s->v, x);
}

static int64_t in_ns (const autoswap *s, int32_t x) {
  int64_t bytes = s->v->trace->tensors[x].bytes;
  return s->paper ? 9700 + units_scale (bytes, 823, 10000) : view_in_ns (s->v, x);
}

static void sum_over (autoswap *s) {
  for (int32_t k = 0; k < s->v->n_ops; k++) {
    int64_t above = s->res[k] - s->v->budget_bytes;
    s->over[k + 1] = s->over[k] + (above > 0 ? (__int128)above * s->v->trace->ops[k].ns : 0);
  }
}

static __int128 doa (const autoswap *s, const view_gap *g) {
  return g->idle_ns - out_ns (s, g->tensor) - in_ns (s, g->tensor);
}

static __int128 aoa (const autoswap *s, const view_gap *g) {
  int64_t bytes = s->v->trace->tensors[g->tensor].bytes;
  __int128 d = doa (s, g);
  /* Negative ones are divided: in 2^-50 of a nanosecond per byte, always below the others. */
  return d >= 0 ? d * bytes : d * ((__int128)1 << 50) / bytes;
}

static __int128 wdoa (const autoswap *s, const view_gap *g) {
  int32_t n = s->v->n_ops;
  if (gap_wraps (g))
    return s->over[n] - s->over[g->a + 1] + s->over[g->b];
  return s->over[g->b] - s->over[g->a + 1];
}

static void rate (autoswap *s, score by) {
  sum_over (s);
  for (int32_t i = 0; i < s->n_cand; i++) {
    const view_gap *g = &s->v->gaps[s->cand[i]];
    s->key[s->cand[i]] = by == DOA ? doa (s, g) : by == AOA ? aoa (s, g) : wdoa (s, g);
  }
}

static int best_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  const autoswap *s = context;
  (void)v;
  return (s->key[a] < s->key[b]) - (s->key[a] > s->key[b]);
}

/* The sum of three ranks; the smallest first. */
static bool vote (autoswap *s, error *err) {
  static const score by[] = { DOA, AOA, WDOA };
  int32_t *ranks = NEW (s->v->arena, s->v->n_gaps, int32_t, err);
  if (!ranks)
    return false;
  for (int n = 0; n < 3; n++) {
    rate (s, by[n]);
    view_sort (s->v, s->cand, s->n_cand, best_first, s);
    for (int32_t i = 0; i < s->n_cand; i++)
      ranks[s->cand[i]] += i;
  }
  for (int32_t i = 0; i < s->n_cand; i++)
    s->key[s->cand[i]] = -ranks[s->cand[i]];
  return true;
}

static bool pick (autoswap *s, score by, error *err) {
  const policy_view *v = s->v;
  if (by == VOTE && !vote (s, err))
    return false;
  if (by != VOTE)
    rate (s, by);
  view_sort (v, s->cand, s->n_cand, best_first, s);
  while (s->n_taken < s->n_cand && s->res[view_peak (v, s->res)] >= v->budget_bytes) {
    int32_t at = s->n_taken;
    const view_gap *g = &v->gaps[s->cand[at]];
    view_relieve (v, s->res, g, g->b);
    s->taken[s->n_taken++] = s->cand[at];
    if (by == SWDOA) { /* the others are rated anew */
      rate (s, by);
      view_sort (v, s->cand + s->n_taken, s->n_cand - s->n_taken, best_first, s);
    }
  }
  return true;
}

static int last_need_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return (v->gaps[a].b < v->gaps[b].b) - (v->gaps[a].b > v->gaps[b].b);
}

/* There a copy out is ready some operations behind the last access: more of them behind a write. */
static int32_t out_behind (const policy_view *v, const view_gap *g, int32_t in_not_before) {
  enum { READ = 4, WRITE = 6 };
  int32_t o = g->a + (list_has (&v->trace->ops[g->a].writes, g->tensor) ? WRITE : READ);
  int32_t end = gap_wraps (g) ? v->n_ops : in_not_before;
  return o < end ? o : end > g->a + 1 ? end - 1 : g->a;
}

static int first_idle_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  return ORDER (v->gaps[a].a, v->gaps[b].a);
}

/* Without an op that waits: copies out one behind the other, copies in one before the other. */
static void lay_times (autoswap *s) {
  const policy_view *v = s->v;
  int64_t free_ns = 0, later_ns = INT64_MAX;
  view_sort (v, s->taken, s->n_taken, first_idle_first, NULL);
  for (int32_t n = 0; n < s->n_taken; n++) {
    const view_gap *g = &v->gaps[s->taken[n]];
    int64_t ready = v->end_ns[s->delayed ? out_behind (v, g, g->b) : g->a];
    free_ns = (free_ns > ready ? free_ns : ready) + out_ns (s, g->tensor);
    s->out_end_ns[s->taken[n]] = free_ns;
  }
  view_sort (v, s->taken, s->n_taken, last_need_first, NULL);
  for (int32_t n = 0; n < s->n_taken; n++) {
    const view_gap *g = &v->gaps[s->taken[n]];
    int64_t end = v->start_ns[g->b] < later_ns ? v->start_ns[g->b] : later_ns;
    later_ns = end - in_ns (s, g->tensor);
    s->in_start_ns[s->taken[n]] = later_ns + (gap_wraps (g) ? v->step_ns : 0);
  }
}

/* Memory with the copies at their times; what would be back before it has left never leaves. */
static int64_t free_load (autoswap *s) {
  policy_view *v = s->v;
  int64_t *res = s->res;
  int32_t kept = 0;
  for (int32_t k = 0; k < v->n_ops; k++)
    res[k] = v->res[k];
  for (int32_t n = 0; n < s->n_taken; n++) {
    int32_t i = s->taken[n];
    const view_gap *g = &v->gaps[i];
    if (s->in_start_ns[i] <= s->out_end_ns[i])
      continue;
    s->taken[kept++] = i;
    int32_t last = gap_wraps (g) ? g->b + v->n_ops : g->b;
    for (int32_t j = g->a + 1; j < last; j++) {
      int32_t k = j % v->n_ops;
      int64_t wrap = j >= v->n_ops ? v->step_ns : 0;
      if (v->start_ns[k] + wrap >= s->out_end_ns[i] && v->end_ns[k] + wrap <= s->in_start_ns[i])
        res[k] -= v->held[g->tensor];
    }
  }
  s->n_taken = kept;
  return res[view_peak (v, res)];
}

static bool put_moves (autoswap *s, policy_choice *out, error *err) {
  policy_view *v = s->v;
  for (int32_t n = 0; n < s->n_taken; n++) {
    const view_gap *g = &v->gaps[s->taken[n]];
    int64_t wrap = gap_wraps (g) ? v->step_ns : 0;
    int32_t i = view_late (v, g, v->start_ns[g->b] + wrap - s->in_start_ns[s->taken[n]]);
    policy_move m = { .tensor = g->tensor,
                      .out_after = s->delayed ? out_behind (v, g, i) : g->a,
                      .in_before = g->b,
                      .in_not_before = i,
                      .wait_at = NO_OP };
    if (!policy_add_move (v, out, m, err))
      return false;
  }
  return true;
}

bool policy_autoswap (policy_view *v, policy_choice *out, error *err) {
  autoswap s = { .v = v,
                 .paper = v->option[POLICY_OPTION_autoswap_link] == 1,
                 .delayed = v->option[POLICY_OPTION_autoswap_delay] == 1 };
  s.res = view_residents (v, err);
  if (!ALLOC (v->arena, s.over, (int64_t)v->n_ops + 1, err) ||
      !ALLOC (v->arena, s.key, v->n_gaps, err) || !ALLOC (v->arena, s.cand, v->n_gaps, err) ||
      !ALLOC (v->arena, s.taken, v->n_gaps, err) ||
      !ALLOC (v->arena, s.out_end_ns, v->n_gaps, err) ||
      !ALLOC (v->arena, s.in_start_ns, v->n_gaps, err) || !s.res)
    return false;
  int32_t peak = view_peak (v, v->res);
  for (int32_t i = 0; i < v->n_gaps; i++)
    if (gap_covers (&v->gaps[i], peak) &&
        v->trace->tensors[v->gaps[i].tensor].bytes >= v->option[POLICY_OPTION_autoswap_floor])
      s.cand[s.n_cand++] = i;
  if (!pick (&s, (score)v->option[POLICY_OPTION_autoswap_score], err))
    return false;
  if (s.res[view_peak (v, s.res)] >= v->budget_bytes)
    out->note = "all gaps that span the peak were taken";
  lay_times (&s);
  if (v->option[POLICY_OPTION_autoswap_mode] == 1) {
    out->needs_bytes = free_load (&s);
    if (out->needs_bytes > v->budget_bytes)
      out->note = "with no op that waits it needs more";
  }
  return put_moves (&s, out, err);
}
