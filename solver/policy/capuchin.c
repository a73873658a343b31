/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies that hide behind compute go first, by how much room there is for them; where none hides,
   an exposed copy in is weighed against recomputing the tensor that saves most bytes per time. */
#include <string.h>

#include "solver/policy/drops.h"
#include "solver/policy/link.h"

/* The cost of recomputing a tensor, kept up to date as its sources are dropped. */
typedef struct again {
  int64_t rp_ns, ext_ns, count;
  int32_t *sources;
  int32_t n_sources;
  int32_t drop; /* the gap it was dropped for, or -1 */
} again;

typedef struct capuchin {
  policy_view *v;
  policy_choice *out;
  bool recompute;
  link_times outs, ins;
  int32_t *cand, n_cand;
  bool *done;       /* per gap */
  bool *used;       /* per op: it carries a trigger */
  int64_t *room_ns; /* per gap: its time less both copies */
  again *tensors;
} capuchin;

static int most_room_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  const int64_t *room_ns = context;
  (void)v;
  return (room_ns[a] < room_ns[b]) - (room_ns[a] > room_ns[b]);
}

static bool start_capuchin (capuchin *s, error *err) {
  policy_view *v = s->v;
  if (!ALLOC (v->arena, s->cand, v->n_gaps, err) || !ALLOC (v->arena, s->done, v->n_gaps, err) ||
      !ALLOC (v->arena, s->used, v->n_ops, err) || !ALLOC (v->arena, s->room_ns, v->n_gaps, err) ||
      !ALLOC (v->arena, s->tensors, v->n_tensors, err))
    return false;
  s->outs.step_ns = s->ins.step_ns = v->step_ns;
  int32_t peak = view_peak (v, v->res);
  for (int32_t i = 0; i < v->n_gaps; i++) {
    const view_gap *g = &v->gaps[i];
    s->room_ns[i] = g->idle_ns - view_in_ns (v, g->tensor) - view_out_ns (v, g->tensor);
    if (gap_covers (g, peak))
      s->cand[s->n_cand++] = i;
  }
  view_sort (v, s->cand, s->n_cand, most_room_first, s->room_ns);
  for (int32_t x = 0; x < v->n_tensors; x++) {
    again *t = &s->tensors[x];
    int32_t p = v->producer[x];
    t->drop = -1;
    if (p == NO_OP)
      continue;
    t->rp_ns = v->trace->ops[p].ns;
    t->sources = v->trace->ops[p].reads.at;
    t->n_sources = v->trace->ops[p].reads.count;
  }
  return true;
}

/* ---- swapping ---- */

/* The latest op that starts by then, carries no trigger and lies behind the copy out. */
static int32_t find_trigger (const capuchin *s, const view_gap *g, int64_t by_ns,
                             int64_t out_end_ns) {
  const policy_view *v = s->v;
  int32_t low = gap_wraps (g) ? g->a - v->n_ops : g->a;
  for (int32_t i = g->b - 1; i > low; i--) {
    int64_t start = view_start_ns (v, i);
    int32_t k = i < 0 ? i + v->n_ops : i;
    if (start < out_end_ns)
      break;
    if (start <= by_ns && !s->used[k])
      return i;
  }
  return INT32_MIN;
}

static bool swap_hidden (capuchin *s, const view_gap *g, bool *done, error *err) {
  policy_view *v = s->v;
  int64_t wrap = gap_wraps (g) ? v->step_ns : 0, t_out = view_out_ns (v, g->tensor);
  int64_t t_in = view_in_ns (v, g->tensor), need = v->start_ns[g->b] + wrap;
  *done = false;
  int64_t out = link_earliest (&s->outs, v->end_ns[g->a], need, t_out);
  if (out == NO_TIME)
    return true;
  int64_t in = link_latest (&s->ins, out + t_out, need, t_in);
  if (in == NO_TIME)
    return true;
  int32_t i = find_trigger (s, g, in - wrap, out + t_out - wrap);
  if (i == INT32_MIN)
    return true;
  s->used[i < 0 ? i + v->n_ops : i] = true;
  *done = true;
  return link_take (&s->outs, out, t_out, v->arena, err) &&
         link_take (&s->ins, in, t_in, v->arena, err) && policy_move_gap (v, s->out, g, i, err);
}

/* ---- recomputing ---- */

/* Bytes per time; a larger quotient is better. */
static int32_t best_drop (const capuchin *s) {
  const policy_view *v = s->v;
  int32_t best = -1;
  for (int32_t n = 0; n < s->n_cand; n++) {
    int32_t i = s->cand[n], x = v->gaps[i].tensor, y = best < 0 ? -1 : v->gaps[best].tensor;
    if (s->done[i] || s->tensors[x].drop >= 0 || gap_wraps (&v->gaps[i]) ||
        !policy_can_drop (v, x, v->gaps[i].b))
      continue;
    if (y < 0 || (__int128)v->trace->tensors[x].bytes * s->tensors[y].rp_ns >
                     (__int128)v->trace->tensors[y].bytes * s->tensors[x].rp_ns)
      best = i;
  }
  return best;
}

static bool has_source (const again *t, int32_t x) {
  for (int32_t i = 0; i < t->n_sources; i++)
    if (t->sources[i] == x)
      return true;
  return false;
}

static bool replace_source (capuchin *s, again *t, int32_t r, error *err) {
  const again *from = &s->tensors[r];
  int32_t *joined = NEW (s->v->arena, (int64_t)t->n_sources + from->n_sources, int32_t, err);
  int32_t n = 0;
  if (!joined)
    return false;
  for (int32_t i = 0; i < t->n_sources; i++)
    if (t->sources[i] != r)
      joined[n++] = t->sources[i];
  for (int32_t i = 0; i < from->n_sources; i++) {
    again so_far = { .sources = joined, .n_sources = n };
    if (!has_source (&so_far, from->sources[i]))
      joined[n++] = from->sources[i];
  }
  t->sources = joined;
  t->n_sources = n;
  return true;
}

static bool drop (capuchin *s, int32_t gap, error *err) {
  policy_view *v = s->v;
  const view_gap *g = &v->gaps[gap];
  int32_t r = g->tensor;
  int64_t count = 1;
  s->tensors[r].drop = gap;
  s->done[gap] = true;
  for (int32_t x = 0; x < v->n_tensors; x++) {
    again *t = &s->tensors[x];
    if (x == r || !has_source (t, r))
      continue;
    if (!replace_source (s, t, r, err))
      return false;
    if (t->drop >= 0)
      count++;
    else
      t->rp_ns += s->tensors[r].rp_ns;
  }
  s->tensors[r].count = count;
  for (int32_t i = 0; i < s->tensors[r].n_sources; i++) {
    again *t = &s->tensors[s->tensors[r].sources[i]];
    t->ext_ns = count * t->rp_ns;
  }
  return policy_add_drop (v, s->out, (policy_drop){ r, g->a, g->b, -1, true }, err);
}

/* Which gap was used: *gap, by moving it or dropping another. */
static bool swap_or_drop (capuchin *s, int32_t *gap, error *err) {
  policy_view *v = s->v;
  const view_gap *g = &v->gaps[*gap];
  int32_t r = s->recompute ? best_drop (s) : -1;
  int64_t exposed = view_in_ns (v, g->tensor);
  if (r >= 0) {
    const again *t = &s->tensors[v->gaps[r].tensor];
    if (exposed > t->rp_ns + t->ext_ns) {
      *gap = r;
      return drop (s, r, err);
    }
  }
  return policy_move_gap (v, s->out, g, g->b, err);
}

static bool choose (capuchin *s, error *err) {
  policy_view *v = s->v;
  int64_t need = v->res[view_peak (v, v->res)] - v->budget_bytes;
  for (int32_t n = 0; n < s->n_cand && need > 0; n++) {
    int32_t chosen = s->cand[n];
    bool hidden;
    if (s->done[chosen])
      continue;
    if (!swap_hidden (s, &v->gaps[chosen], &hidden, err) ||
        (!hidden && !swap_or_drop (s, &chosen, err)))
      return false;
    s->done[chosen] = true;
    need -= v->held[v->gaps[chosen].tensor];
  }
  if (need > 0)
    s->out->note = "nothing is left that spans the peak";
  return true;
}

bool policy_capuchin (policy_view *v, policy_choice *out, error *err) {
  capuchin s = { .v = v,
                 .out = out,
                 .recompute = v->option[POLICY_OPTION_capuchin_recompute] == 1 };
  out->feedback = v->option[POLICY_OPTION_capuchin_feedback];
  return start_capuchin (&s, err) && choose (&s, err);
}
