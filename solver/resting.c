/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/resting.h"

#include <assert.h>

#include "base/units.h"
#include "solver/place/schedule.h"
#include "solver/search/search.h"
#include "trace/check/check.h"
#include "trace/rewrite/resting.h"
#include "trace/unit.h"

/* No bound asks for the host where it holds this many times what the step takes. */
enum { HOST_TIMES = 2 };

/* A tensor that an executor wants to move whole is that executor's to move. */
static bool may_rest (const trace *t, const uses *u, int32_t x) {
  const tensor *y = &t->tensors[x];
  return y->persistent && !y->pinned && !y->whole && !uses_count (u, x);
}

/* The peak of the step without any move; 0: nothing may rest. */
static bool peak_of (const trace *t, const uses *u, const solve_options *o, arena *a, int64_t *peak,
                     error *err) {
  int64_t pool;
  int32_t x = 0;
  *peak = 0;
  while (x < t->n_tensors && !may_rest (t, u, x))
    x++;
  return x == t->n_tensors ||
         schedule_pool (t, NULL, 0, o->device->granule_bytes, a, &pool, peak, err);
}

/* The first of them, until the rest of the step fits: a byte of the host is never worth more, since
   it spares the device one in all of the step, and the link any. *limited: a bound may ask for the
   host. */
static bool choose (const trace *t, const solve_options *o, arena *a, plan *like, bool *limited,
                    error *err) {
  uses u;
  int64_t peak, granule = o->device->granule_bytes;
  if (!uses_of (t, a, &u, err) || !peak_of (t, &u, o, a, &peak, err) ||
      !(like->resting = NEW (a, t->n_tensors, int32_t, err)))
    return false;
  int64_t over = peak - o->budget_bytes / granule * granule;
  for (int32_t x = 0; x < t->n_tensors && over > 0; x++) {
    int64_t bytes = t->tensors[x].bytes;
    if (!may_rest (t, &u, x) || bytes < granule)
      continue;
    like->resting[like->n_resting++] = x;
    if (resting_bytes (t, like) > o->host_bytes)
      like->n_resting--;
    else
      over -= units_div_up (bytes, granule) * granule;
  }
  *limited = o->host_bytes - resting_bytes (t, like) < HOST_TIMES * peak;
  return true;
}

/* The search counts on the host that is left, but a bound is of plans that let nothing rest, too.
 */
static bool bound_again (const rested *r, const solve_options *o, arena *a, solution *s,
                         error *err) {
  const trace *left = r->left.trace;
  certificate had = s->plan->certificate, *c = &s->plan->certificate;
  if (had.lower_bound_ns <= trace_total_ns (left) || o->recompute != RECOMPUTE_OFF)
    return true; /* these ask for no host */
  if (o->sections != SECTIONS_OFF || o->order != ORDER_AS_IS) {
    solve_request whole = r->left;
    whole.options = o;
    return solve_certify_by_compute (&whole, s, a, err);
  }
  if (!solve_certify (left, o, had.found_by, s->plan, a, err))
    return false;
  c->limit_met = had.limit_met;
  s->bound.lower_bound_ns = c->lower_bound_ns;
  s->bound.by = c->bound_by;
  s->bound.proof = c->proof;
  return true;
}

/* The plan of what is left as one of the whole trace. */
static bool give_back (const trace *t, const solve_options *o, const plan *like, arena *a,
                       solution *s, error *err) {
  char digest[TRACE_DIGEST];
  plan *p = s->plan;
  if (!o->trace_digest && !trace_digest (t, digest, err))
    return false;
  p->trace_digest = arena_string (a, o->trace_digest ? o->trace_digest : digest, err);
  p->resting = like->resting;
  p->n_resting = like->n_resting;
  p->host_bytes = o->host_bytes;
  p->predicted.host_peak_bytes += resting_bytes (t, p);
  return p->trace_digest && check_plan (t, p, a, NULL, err);
}

bool resting_take (const solve_request *q, arena *a, rested *out, error *err) {
  const trace *t = q->trace;
  const solve_options *o = q->options;
  assert (t && o->device);
  *out = (rested){ .left = *q, .options = *o };
  if (o->same_places)
    return true;
  if (!choose (t, o, a, &out->like, &out->limited, err) ||
      !trace_rest (t, out->like.resting, out->like.n_resting, a, &out->left.trace, err))
    return false;
  if (!out->like.n_resting) {
    out->left.trace = t;
    return true;
  }
  out->left.options = &out->options;
  out->options.trace_digest = NULL;
  out->options.n_starts = 0; /* they are of the whole trace */
  out->options.resting_bytes = resting_bytes (t, &out->like);
  out->options.host_bytes -= out->options.resting_bytes;
  out->left.effort.guide = NULL; /* its gaps are those of all of the trace */
  return true;
}

bool resting_give_back (const solve_request *q, const rested *r, arena *a, solution *s,
                        error *err) {
  return !r->like.n_resting || ((!r->limited || bound_again (r, q->options, a, s, err)) &&
                                give_back (q->trace, q->options, &r->like, a, s, err));
}
