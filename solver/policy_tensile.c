/* Round by round the largest tensor that lives at the peak: its copy out goes to the earliest free
   time of the link, its copy in to the latest.  Where nothing can be swapped, the tensor that saves
   most bytes per time is recomputed.  One list of free times for both directions, as there. */
#include "base/units.h"
#include "solver/policy_drops.h"
#include "solver/policy_link.h"

enum { ROUNDS = 100, LAST_DROPS = 2 };

typedef struct tensile {
  policy_view *v;
  policy_choice *out;
  int64_t *res;
  link_times link;
  bool *swapped, *dropped; /* per tensor */
  int32_t *live;
  int64_t may_move;
} tensile;

static int largest_first (const policy_view *v, int32_t a, int32_t b, const void *context) {
  (void)context;
  int64_t x = v->trace->tensors[a].bytes, y = v->trace->tensors[b].bytes;
  return (x < y) - (x > y);
}

/* Both copies of a gap, or neither. The copy out may start as soon as the bytes are final. */
static bool try_gap (tensile *s, const view_gap *g, int64_t from_ns, bool *done, error *err) {
  policy_view *v = s->v;
  int64_t wrap = gap_wraps (g) ? v->step_ns : 0, need = v->start_ns[g->b] + wrap;
  int64_t t_out = view_out_ns (v, g->tensor), t_in = view_in_ns (v, g->tensor);
  *done = false;
  int64_t out = link_earliest (&s->link, from_ns, need, t_out);
  if (out == NO_TIME)
    return true;
  int64_t behind = out + t_out > v->end_ns[g->a] ? out + t_out : v->end_ns[g->a];
  int64_t in = link_latest (&s->link, behind, need, t_in);
  if (in == NO_TIME)
    return true;
  int32_t i = view_late (v, g, need - in);
  *done = true;
  view_relieve (v, s->res, g, i);
  return link_take (&s->link, out, t_out, v->arena, err) &&
         link_take (&s->link, in, t_in, v->arena, err) && policy_move_gap (v, s->out, g, i, err);
}

/* The gap over the peak, then every later one. */
static bool swap (tensile *s, int32_t x, int32_t peak, bool *done, error *err) {
  const policy_view *v = s->v;
  *done = false;
  for (int32_t i = v->gap_offset[x]; i < v->gap_offset[x + 1]; i++) {
    const view_gap *g = &v->gaps[i];
    bool later;
    if (!*done && !gap_covers (g, peak))
      continue;
    if (!try_gap (s, g, v->end_ns[g->a], *done ? &later : done, err))
      return false;
  }
  return true;
}

static bool swap_one (tensile *s, int32_t peak, bool *done, error *err) {
  const policy_view *v = s->v;
  int32_t n = 0;
  *done = false;
  for (int32_t x = 0; x < v->n_tensors; x++)
    if (v->movable[x] && !s->swapped[x] && !s->dropped[x] && uses_count (&v->uses, x) > 1)
      s->live[n++] = x;
  view_sort (v, s->live, n, largest_first, NULL);
  for (int32_t i = 0; i < n && s->may_move > 0 && !*done; i++) {
    if (!swap (s, s->live[i], peak, done, err))
      return false;
    if (*done) {
      s->swapped[s->live[i]] = true;
      s->may_move--;
    }
  }
  return true;
}

/* Nothing that it is made from was ever swapped or dropped. */
static bool has_sources (const tensile *s, int32_t x) {
  const index_list *reads = &s->v->trace->ops[s->v->producer[x]].reads;
  for (int32_t j = 0; j < reads->count; j++)
    if (s->swapped[reads->at[j]] || s->dropped[reads->at[j]])
      return false;
  return true;
}

static bool drop_one (tensile *s, int32_t peak, bool *done, error *err) {
  policy_view *v = s->v;
  const view_gap *best = NULL;
  for (int32_t i = 0; i < v->n_gaps; i++) {
    const view_gap *g = &v->gaps[i];
    int32_t x = g->tensor, y = best ? best->tensor : -1;
    if (s->swapped[x] || s->dropped[x] || gap_wraps (g) || !gap_covers (g, peak) ||
        !policy_can_drop (v, x, g->b) || !has_sources (s, x))
      continue;
    if (!best || (__int128)v->trace->tensors[x].bytes * v->trace->ops[v->producer[y]].ns >
                     (__int128)v->trace->tensors[y].bytes * v->trace->ops[v->producer[x]].ns)
      best = g;
  }
  *done = best;
  if (!best)
    return true;
  s->dropped[best->tensor] = true;
  view_relieve (v, s->res, best, best->b);
  return policy_add_drop (v, s->out, (policy_drop){ best->tensor, best->a, best->b, -1, true },
                          err);
}

bool policy_tensile (policy_view *v, policy_id id, const policy_values *values, policy_choice *out,
                     error *err) {
  (void)id;
  tensile s = { .v = v, .out = out, .res = view_residents (v, err) };
  s.swapped = NEW (v->arena, v->n_tensors, bool, err);
  s.dropped = NEW (v->arena, v->n_tensors, bool, err);
  s.live = NEW (v->arena, v->n_tensors, int32_t, err);
  if (!s.res || !s.swapped || !s.dropped || !s.live)
    return false;
  s.link.step_ns = v->step_ns;
  s.may_move = units_scale (v->n_tensors, values->at[POLICY_OPTION_tensile_weight], 1000000);
  out->auto_clean = true;
  int64_t gain[LAST_DROPS] = { INT64_MAX, INT64_MAX };
  for (int32_t round = 0;; round++) {
    int32_t peak = view_peak (v, s.res);
    int64_t most = s.res[peak];
    bool done;
    if (most <= v->budget_bytes)
      return true;
    bool stalls = gain[0] < most / 2000 && gain[1] < most / 2000; /* 0.05 % */
    if (!swap_one (&s, peak, &done, err) || (!done && !drop_one (&s, peak, &done, err)))
      return false;
    if (!done || (round > ROUNDS && stalls))
      break;
    gain[round % LAST_DROPS] = most - s.res[view_peak (v, s.res)];
  }
  out->note = "neither a swap nor a recomputation is left that helps";
  return true;
}
