/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The interval that takes most memory above the line over time goes first, as far as tables of the
   link by op have room for it; in the end what is away comes back as early as it fits.  One tier:
   the host. */
#include "base/order.h"
#include "base/units.h"
#include "solver/policy/policy.h"

typedef struct g10 {
  policy_view *v;
  int64_t line_bytes;
  int64_t *res;
  int64_t *out_room, *in_room; /* per op: bytes that the link still carries then */
  int64_t *out_sum, *in_sum;   /* before each op */
  int64_t *host_room;          /* per op: bytes of the host that no interval was promised */
  __int128 *above_ns;          /* before each op: time above the budget */
  bool *marked;                /* per gap */
  __int128 *area;
} g10;

/* An interval without its ops: positions first .. end - 1 of a line of two steps. */
static int32_t end_of (const policy_view *v, const view_gap *g) {
  return gap_wraps (g) ? g->b + v->n_ops : g->b;
}

static void sum_up (g10 *s) {
  int32_t n = s->v->n_ops;
  for (int32_t k = 0; k < n; k++) {
    s->out_sum[k + 1] = s->out_sum[k] + s->out_room[k];
    s->in_sum[k + 1] = s->in_sum[k] + s->in_room[k];
    bool above = s->res[k] > s->v->budget_bytes;
    s->above_ns[k + 1] = s->above_ns[k] + (above ? s->v->trace->ops[k].ns : 0);
  }
}

/* The first op from which on `bytes` have been carried since op `from`; `end` where they never are.
 */
static int32_t when_out (const g10 *s, int32_t from, int32_t end, int64_t bytes) {
  return FIRST_WHERE (i, from, end, s->out_sum[i + 1] - s->out_sum[from] >= bytes);
}

/* The last op from which on there is still room for `bytes` before op `end`; from - 1: none. */
static int32_t when_in (const g10 *s, int32_t from, int32_t end, int64_t bytes) {
  return FIRST_WHERE (i, from, end, s->in_sum[end] - s->in_sum[i] < bytes) - 1;
}

static __int128 area_of (const g10 *s, const view_gap *g) {
  int64_t bytes = s->v->trace->tensors[g->tensor].bytes;
  int32_t n = s->v->n_ops;
  if (gap_wraps (g)) /* all of it, without half points */
    return bytes * (s->above_ns[n] - s->above_ns[g->a + 1] + s->above_ns[g->b]);
  int32_t m1 = when_out (s, g->a + 1, g->b, (bytes + 1) / 2);
  int32_t m2 = when_in (s, g->a + 1, g->b, (bytes + 1) / 2);
  return m2 < m1 ? 0 : bytes * (s->above_ns[m2 + 1] - s->above_ns[m1]);
}

static bool better (const g10 *s, int32_t a, int32_t b) {
  const view_gap *x = &s->v->gaps[a], *y = &s->v->gaps[b];
  if (s->area[a] != s->area[b])
    return s->area[a] > s->area[b];
  __int128 p = (__int128)s->v->trace->tensors[x->tensor].bytes * x->idle_ns;
  __int128 q = (__int128)s->v->trace->tensors[y->tensor].bytes * y->idle_ns;
  return s->area[a] != 0 && p > q;
}

static bool touches_line (const g10 *s, const view_gap *g) {
  for (int32_t i = g->a + 1; i < end_of (s->v, g); i++)
    if (s->res[i < s->v->n_ops ? i : i - s->v->n_ops] > s->line_bytes)
      return true;
  return false;
}

static void charge (int64_t *room, int32_t k, int32_t step, int64_t bytes) {
  for (; bytes > 0; k += step) {
    int64_t now = room[k] < bytes ? room[k] : bytes;
    room[k] -= now;
    bytes -= now;
  }
}

/* The interval between the copies: ops in which the tensor is away: behind e and before p. */
static bool find_window (const g10 *s, const view_gap *g, int32_t *e, int32_t *p) {
  const policy_view *v = s->v;
  int64_t bytes = v->trace->tensors[g->tensor].bytes;
  int32_t end = end_of (v, g);
  if (!gap_wraps (g)) {
    *e = when_out (s, g->a + 1, g->b, bytes);
    *p = when_in (s, g->a + 1, g->b, bytes);
    return *e<g->b && * p> * e;
  }
  int64_t out_end = v->end_ns[g->a] + view_out_ns (v, g->tensor);
  int32_t late = view_late (v, g, view_in_ns (v, g->tensor)) + v->n_ops;
  *e = g->a + 1; /* by time: tables are not consulted for these */
  while (*e < end &&
         view_start_ns (v, *e - v->n_ops) + v->step_ns + v->trace->ops[*e % v->n_ops].ns < out_end)
    ++*e;
  *p = late;
  return *p > *e;
}

/* Room on the host all along; it is taken, and stays taken where the link's tables then refuse. */
static bool find_host (g10 *s, const view_gap *g) {
  int64_t bytes = s->v->trace->tensors[g->tensor].bytes;
  for (int32_t i = g->a + 1; i < end_of (s->v, g); i++)
    if (s->host_room[i % s->v->n_ops] < bytes)
      return false;
  for (int32_t i = g->a + 1; i < end_of (s->v, g); i++)
    s->host_room[i % s->v->n_ops] -= bytes;
  return true;
}

static void take (g10 *s, const view_gap *g, int32_t e, int32_t p, view_gap *away, int32_t *places,
                  int32_t *n_taken, int32_t gap) {
  const policy_view *v = s->v;
  int64_t bytes = v->trace->tensors[g->tensor].bytes;
  if (!gap_wraps (g)) {
    charge (s->out_room, g->a + 1, 1, bytes);
    charge (s->in_room, g->b - 1, -1, bytes);
  }
  for (int32_t i = e + 1; i < p; i++)
    s->res[i % v->n_ops] -= v->held[g->tensor];
  away[*n_taken] = (view_gap){ gap, e, p, 0 };
  places[*n_taken] = *n_taken;
  ++*n_taken;
}

static int by_return (const policy_view *v, int32_t a, int32_t b, const void *context) {
  const view_gap *away = context;
  (void)v;
  return ORDER (away[a].b, away[b].b);
}

/* Tensors come back as long as memory is below the line; bytes are not looked at, so it may be
   overshot by one tensor. */
static bool eager (g10 *s, view_gap *away, int32_t *places, int32_t n, policy_choice *out,
                   error *err) {
  policy_view *v = s->v;
  view_sort (v, places, n, by_return, away);
  for (int32_t i = 0; i < n; i++) {
    view_gap *at = &away[places[i]];
    const view_gap *g = &v->gaps[at->tensor];
    while (at->b > at->a + 1 && s->res[(at->b - 1) % v->n_ops] < s->line_bytes) {
      at->b--;
      s->res[at->b % v->n_ops] += v->held[g->tensor];
    }
    if (!policy_move_gap (v, out, g, gap_wraps (g) ? at->b - v->n_ops : at->b, err))
      return false;
  }
  return true;
}

/* Bytes that the link carries, few enough for those of two steps to be added. */
static int64_t room (int64_t rate, int64_t ns, int32_t n_ops) {
  int64_t bytes = units_scale (rate, ns, 1000000000), most = INT64_MAX / 4 / n_ops;
  return bytes < most ? bytes : most;
}

static bool start_g10 (g10 *s, error *err) {
  policy_view *v = s->v;
  s->res = view_residents (v, err);
  int64_t **rows[] = { &s->out_room, &s->in_room, &s->out_sum, &s->in_sum, &s->host_room };
  for (int i = 0; i < 5; i++)
    if (!(*rows[i] = NEW (v->arena, (int64_t)v->n_ops + 1, int64_t, err)))
      return false;
  if (!ALLOC (v->arena, s->above_ns, (int64_t)v->n_ops + 1, err) ||
      !ALLOC (v->arena, s->area, v->n_gaps, err) || !ALLOC (v->arena, s->marked, v->n_gaps, err) ||
      !s->res)
    return false;
  for (int32_t k = 0; k < v->n_ops; k++) {
    int64_t ns = v->trace->ops[k].ns;
    s->out_room[k] = room (v->rates.out_alone, ns, v->n_ops);
    s->in_room[k] = room (v->rates.in_alone, ns, v->n_ops);
    s->host_room[k] = v->host_bytes;
  }
  return true;
}

static int32_t best_gap (g10 *s) {
  int32_t best = -1;
  sum_up (s);
  for (int32_t i = 0; i < s->v->n_gaps; i++) {
    s->area[i] = s->marked[i] ? 0 : area_of (s, &s->v->gaps[i]);
    if (!s->marked[i] && (best < 0 || better (s, i, best)))
      best = i;
  }
  return best;
}

bool policy_g10 (policy_view *v, policy_choice *out, error *err) {
  g10 s = { .v = v,
            .line_bytes =
                units_scale (v->budget_bytes, v->option[POLICY_OPTION_g10_line], 1000000) };
  view_gap *away = NEW (v->arena, v->n_gaps, view_gap, err);
  int32_t *places = NEW (v->arena, v->n_gaps, int32_t, err), n_taken = 0;
  if (!away || !places || !start_g10 (&s, err))
    return false;
  int64_t latency = v->option[POLICY_OPTION_g10_latency];
  int64_t times_ppm = 2000000 + v->option[POLICY_OPTION_g10_delta];
  while (s.res[view_peak (v, s.res)] > s.line_bytes) {
    int32_t i = best_gap (&s), e, p;
    if (i < 0) {
      out->note = "no interval is left that its tables have room for";
      break;
    }
    const view_gap *g = &v->gaps[i];
    s.marked[i] = true;
    int64_t hide = units_scale (latency + view_in_ns (v, g->tensor), times_ppm, 1000000);
    if (end_of (v, g) - g->a <= 2 || g->idle_ns <= hide || !touches_line (&s, g) ||
        !find_host (&s, g) || !find_window (&s, g, &e, &p))
      continue;
    take (&s, g, e, p, away, places, &n_taken, i);
  }
  return eager (&s, away, places, n_taken, out, err);
}
