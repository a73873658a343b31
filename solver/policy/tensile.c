/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Round by round the largest tensor that lives at a job's peak: its copy out goes to the earliest
   free time of the link, its copy in to the latest.  Where nothing can be swapped, the tensor that
   saves most bytes per time is recomputed.  One list of free times for both directions, as there;
   and with several jobs one such list each, so that they do not see each other's copies. */
#include <stdlib.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/policy/drops.h"
#include "solver/policy/link.h"

enum { ROUNDS = 100, LAST_DROPS = 2 };

typedef struct tensile {
  policy_view *v;
  policy_choice *out;
  int64_t *res;
  int32_t peak; /* of res when the round begins: only what is found changes it */
  link_times link;
  bool *swapped, *dropped; /* per tensor */
  int64_t may_move;
} tensile;

/* Both copies of a gap, or neither. The copy out may start as soon as the bytes are final; where
   the host has them still, the tensor is only released. */
static bool try_gap (tensile *s, const view_gap *g, bool on_host, bool *done, error *err) {
  policy_view *v = s->v;
  int64_t wrap = gap_wraps (g) ? v->step_ns : 0, need = v->start_ns[g->b] + wrap;
  int64_t t_out = on_host ? 0 : view_out_ns (v, g->tensor), t_in = view_in_ns (v, g->tensor);
  int64_t behind = v->end_ns[g->a];
  *done = false;
  int64_t out = on_host ? behind : link_earliest (&s->link, behind, need, t_out);
  if (out == NO_TIME)
    return true;
  int64_t in = link_latest (&s->link, out + t_out, need, t_in);
  if (in == NO_TIME)
    return true;
  int32_t i = view_late (v, g, need - in);
  *done = true;
  view_relieve (v, s->res, g, i);
  return (on_host || link_take (&s->link, out, t_out, v->arena, err)) &&
         link_take (&s->link, in, t_in, v->arena, err) && policy_move_gap (v, s->out, g, i, err);
}

static bool is_written (const policy_view *v, int32_t op, int32_t tensor) {
  return list_has (&v->trace->ops[op].writes, tensor);
}

/* The gap over the peak, or -1. */
static int32_t gap_over (const policy_view *v, int32_t x, int32_t peak) {
  for (int32_t i = v->gap_offset[x]; i < v->gap_offset[x + 1]; i++)
    if (gap_covers (&v->gaps[i], peak))
      return i;
  return -1;
}

/* The first gap that has time for both copies, from the tensor's production up to the gap over the
   peak, for one that outlives the step that gap; then every later one that has time. */
static bool swap (tensile *s, int32_t x, int32_t peak, bool *done, error *err) {
  const policy_view *v = s->v;
  int32_t over = gap_over (v, x, peak);
  int32_t first = v->trace->tensors[x].persistent ? over : v->gap_offset[x];
  bool on_host = false;
  *done = false;
  for (int32_t i = first; over >= 0 && i < v->gap_offset[x + 1]; i++) {
    bool taken;
    if (!*done && i > over)
      break;
    for (int32_t k = i > first ? v->gaps[i - 1].b : 0; on_host && k <= v->gaps[i].a; k++)
      on_host = !is_written (v, k, x);
    if (!try_gap (s, &v->gaps[i], on_host, &taken, err))
      return false;
    on_host |= taken;
    *done |= taken;
  }
  return true;
}

/* A tensor of one of the jobs, while the largest is looked for. */
typedef struct living {
  int32_t job, tensor;
  int64_t bytes;
} living;

static int compare_living (const void *a, const void *b) {
  const living *x = a, *y = b;
  return ORDER (y->bytes, x->bytes) ?: ORDER (x->job, y->job) ?: ORDER (x->tensor, y->tensor);
}

/* Takes the largest tensor of all jobs' for which there is time. */
static bool swap_one (tensile *jobs, int32_t n_jobs, living *live, int32_t *job, error *err) {
  int32_t n = 0;
  *job = -1;
  for (int32_t j = 0; j < n_jobs; j++) {
    const policy_view *v = jobs[j].v;
    jobs[j].peak = view_peak (v, jobs[j].res);
    for (int32_t x = 0; jobs[j].may_move > 0 && x < v->n_tensors; x++)
      if (v->movable[x] && !jobs[j].swapped[x] && !jobs[j].dropped[x] &&
          uses_count (&v->uses, x) > 1)
        live[n++] = (living){ j, x, v->trace->tensors[x].bytes };
  }
  qsort (live, (size_t)n, sizeof *live, compare_living);
  for (int32_t i = 0; i < n && *job < 0; i++) {
    tensile *s = &jobs[live[i].job];
    bool done;
    if (!swap (s, live[i].tensor, s->peak, &done, err))
      return false;
    if (done) {
      s->swapped[live[i].tensor] = true;
      s->may_move--;
      *job = live[i].job;
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

/* The gap whose dropping saves most bytes per time; NULL: there is none. */
static const view_gap *best_drop (const tensile *s, int32_t peak) {
  const policy_view *v = s->v;
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
  return best;
}

static bool drop_one (tensile *jobs, int32_t n_jobs, int32_t *job, error *err) {
  const view_gap *best = NULL;
  *job = -1;
  for (int32_t j = 0; j < n_jobs; j++) {
    const view_gap *g = best_drop (&jobs[j], jobs[j].peak);
    const policy_view *v = jobs[j].v, *w = *job < 0 ? NULL : jobs[*job].v;
    if (g && (!best || (__int128)v->trace->tensors[g->tensor].bytes *
                               w->trace->ops[w->producer[best->tensor]].ns >
                           (__int128)w->trace->tensors[best->tensor].bytes *
                               v->trace->ops[v->producer[g->tensor]].ns)) {
      best = g;
      *job = j;
    }
  }
  if (!best)
    return true;
  tensile *s = &jobs[*job];
  s->dropped[best->tensor] = true;
  view_relieve (s->v, s->res, best, best->b);
  return policy_add_drop (s->v, s->out, (policy_drop){ best->tensor, best->a, best->b, -1, true },
                          err);
}

static bool start_tensile (tensile *s, policy_view *v, int64_t weight_ppm, policy_choice *out,
                           error *err) {
  *s = (tensile){ .v = v, .out = out, .res = view_residents (v, err) };
  if (!ALLOC (v->arena, s->swapped, v->n_tensors, err) ||
      !ALLOC (v->arena, s->dropped, v->n_tensors, err) || !s->res)
    return false;
  s->link.step_ns = v->step_ns;
  s->may_move = units_scale (v->n_tensors, weight_ppm, 1000000);
  out->auto_clean = true;
  return true;
}

/* All jobs' peaks, as if they came together. */
static int64_t peaks_of (const tensile *jobs, int32_t n_jobs) {
  int64_t sum = 0;
  for (int32_t j = 0; j < n_jobs; j++)
    sum += jobs[j].res[view_peak (jobs[j].v, jobs[j].res)];
  return sum;
}

/* *left: a sentence, where what is wanted is not reached. */
static bool rounds (tensile *jobs, int32_t n_jobs, int64_t wanted_bytes, living *live,
                    const char **left, error *err) {
  int64_t gain[LAST_DROPS] = { INT64_MAX, INT64_MAX };
  for (int32_t round = 0;; round++) {
    int64_t most = peaks_of (jobs, n_jobs);
    int32_t job;
    *left = NULL;
    if (most <= wanted_bytes)
      return true;
    bool stalls = gain[0] < most / 2000 && gain[1] < most / 2000; /* 0.05 % */
    if (!swap_one (jobs, n_jobs, live, &job, err) ||
        (job < 0 && !drop_one (jobs, n_jobs, &job, err)))
      return false;
    if (job < 0 || (round > ROUNDS && stalls))
      break;
    gain[round % LAST_DROPS] = most - peaks_of (jobs, n_jobs);
  }
  *left = "neither a swap nor a recomputation is left that helps";
  return true;
}

bool policy_tensile (policy_view *v, policy_choice *out, error *err) {
  tensile s;
  living *live = NEW (v->arena, v->n_tensors, living, err);
  return live && start_tensile (&s, v, v->option[POLICY_OPTION_tensile_weight], out, err) &&
         rounds (&s, 1, v->budget_bytes, live, &out->note, err);
}

bool policy_tensile_jobs (policy_view *views, int32_t n_jobs, int64_t memory_bytes, arena *a,
                          policy_choice *out, int64_t *peak_bytes, error *err) {
  int64_t weight_ppm = policy_standard ().at[POLICY_OPTION_tensile_weight], n = 0;
  const char *left;
  for (int32_t j = 0; j < n_jobs; j++)
    n += views[j].n_tensors;
  tensile *jobs = NEW (a, n_jobs, tensile, err);
  living *live = NEW (a, n, living, err);
  for (int32_t j = 0; jobs && live && j < n_jobs; j++)
    if (!start_tensile (&jobs[j], &views[j], weight_ppm, &out[j], err))
      return false;
  if (!jobs || !live || !rounds (jobs, n_jobs, memory_bytes, live, &left, err))
    return false;
  for (int32_t j = 0; j < n_jobs; j++) {
    peak_bytes[j] = jobs[j].res[view_peak (jobs[j].v, jobs[j].res)];
    out[j].note = left;
  }
  return true;
}
