/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/streams.h"

#include <assert.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/attempt/attempt.h"
#include "trace/check/check.h"
#include "trace/rewrite/chain.h"
#include "trace/simulate/simulate.h"
#include "trace/streams.h"

/* ---- the list ---- */

/* The ops as one list: each takes what it adds to the time in which all before it have ended, and
   also reads what ops that may still run beside it use. */
typedef struct one_list {
  trace *made;
  int64_t work_bytes[MOST_STREAMS]; /* the most that an op of the stream holds while others run */
  bool *apart; /* per op: its workspace is not in the list, but in a place of its stream */
} one_list;

static bool add_reads (const trace *t, op *made, int32_t by, const held_ops *held, int32_t *seen,
                       arena *a, error *err) {
  int64_t most = made->reads.count;
  for (int32_t k = held->first[by]; k != NO_OP; k = held->next[k])
    most += t->ops[k].reads.count + t->ops[k].writes.count;
  int32_t *at = NEW (a, most, int32_t, err), n = 0;
  if (!at)
    return false;
  for (int32_t j = 0; j < made->reads.count; j++)
    seen[at[n++] = made->reads.at[j]] = by + 1;
  for (int32_t j = 0; j < made->writes.count; j++)
    seen[made->writes.at[j]] = by + 1;
  for (int32_t k = held->first[by]; k != NO_OP; k = held->next[k])
    for (int which = 0; which < 2; which++) {
      const index_list *list = which ? &t->ops[k].writes : &t->ops[k].reads;
      for (int32_t j = 0; j < list->count; j++)
        if (seen[list->at[j]] != by + 1) {
          seen[list->at[j]] = by + 1;
          at[n++] = list->at[j];
        }
    }
  made->reads = (index_list){ at, n };
  return true;
}

static bool put_ops (const trace *t, const streams *s, one_list *l, arena *a, error *err) {
  const int64_t *ends_ns = trace_ends (t, a, err);
  held_ops held;
  int32_t *seen = NEW (a, t->n_tensors, int32_t, err);
  if (!ends_ns || !seen || !streams_held (s, t->n_ops, a, &held, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    op *o = &l->made->ops[k];
    int64_t more_ns = ends_ns[k + 1] - ends_ns[k];
    *o = t->ops[k];
    o->ns = min_of (o->ns, more_ns);
    o->gap_ns = more_ns - o->ns;
    o->stream = 0;
    o->parts = 1;
    o->after = (index_list){ 0 };
    l->apart[k] = o->workspace_bytes && s->held[k] > k;
    if (l->apart[k]) {
      int64_t *most = &l->work_bytes[t->ops[k].stream];
      *most = max_of (*most, o->workspace_bytes);
      o->workspace_bytes = 0;
    }
    if (!add_reads (t, o, k, &held, seen, a, err))
      return false;
  }
  return true;
}

/* Lives that an op is said to begin or to end are held as long as it may run. */
static bool put_lives (const streams *s, trace *made, arena *a, error *err) {
  int32_t *last = NEW (a, made->n_tensors, int32_t, err);
  for (int32_t k = 0; last && k < made->n_ops; k++)
    for (int which = 0; which < 2; which++) {
      const index_list *list = which ? &made->ops[k].writes : &made->ops[k].reads;
      for (int32_t j = 0; j < list->count; j++)
        last[list->at[j]] = k;
    }
  for (int32_t x = 0; last && x < made->n_tensors; x++) {
    tensor *y = &made->tensors[x];
    int32_t held = y->dies_after == NO_OP ? NO_OP : s->held[y->dies_after];
    if (y->born_before != NO_OP && s->held[y->born_before] > last[x])
      held = (int32_t)max_of (held, s->held[y->born_before]);
    y->dies_after = held == NO_OP ? NO_OP : (int32_t)max_of (held, last[x]);
  }
  return last;
}

static bool list_ops (const trace *t, arena *a, one_list *out, error *err) {
  streams s;
  *out = (one_list){ .made = NEW (a, 1, trace, err), .apart = NEW (a, t->n_ops, bool, err) };
  if (!out->made || !out->apart || !streams_of (t, a, &s, err))
    return false;
  *out->made = *t;
  out->made->n_streams = 1;
  out->made->n_samples = 0;
  out->made->ns_samples = NULL;
  out->made->ops = NEW (a, t->n_ops, op, err);
  out->made->tensors = NEW (a, t->n_tensors, tensor, err);
  if (!out->made->ops || !out->made->tensors || !put_ops (t, &s, out, a, err))
    return false;
  if (t->n_tensors)
    memcpy (out->made->tensors, t->tensors, (size_t)t->n_tensors * sizeof *t->tensors);
  return put_lives (&s, out->made, a, err) && trace_validate (out->made, err);
}

/* ---- workspaces ---- */

static int64_t granules_apart (const one_list *l, int64_t granule_bytes) {
  int64_t granules = 0;
  for (int32_t s = 0; s < MOST_STREAMS; s++)
    granules += units_div_up (l->work_bytes[s], granule_bytes);
  return granules;
}

bool streams_list (const trace *t, int64_t granule_bytes, arena *a, const trace **out,
                   int64_t *apart_bytes, error *err) {
  one_list l;
  *out = t;
  *apart_bytes = 0;
  if (!trace_has_streams (t))
    return true;
  if (!list_ops (t, a, &l, err))
    return false;
  *out = l.made;
  *apart_bytes = granules_apart (&l, granule_bytes) * granule_bytes;
  return true;
}

/* Each stream has a place behind all others, for the workspaces of its ops, one after the other. */
static bool put_apart (const trace *t, const one_list *l, plan *p, arena *a, error *err) {
  placement *to = &p->placement;
  int64_t all = granules_apart (l, to->granule_bytes), first[MOST_STREAMS], at = to->granules;
  if (!all)
    return true;
  if (at + all > INT32_MAX)
    return error_set (err, ERR_limit, "the placement has too many granules");
  for (int32_t s = 0; s < MOST_STREAMS; s++) {
    first[s] = at;
    at += units_div_up (l->work_bytes[s], to->granule_bytes);
  }
  int64_t stays = (int64_t)to->n_stays + t->n_ops, runs = (int64_t)to->n_runs + t->n_ops;
  stay *more = NEW (a, stays, stay, err);
  granule_run *places = NEW (a, runs, granule_run, err);
  if (!more || !places)
    return false;
  memcpy (more, to->stays, (size_t)to->n_stays * sizeof *more);
  memcpy (places, to->runs, (size_t)to->n_runs * sizeof *places);
  to->stays = more;
  to->runs = places;
  to->granules = (int32_t)at;
  for (int32_t k = 0; k < t->n_ops; k++) {
    if (!l->apart[k])
      continue;
    int64_t n = units_div_up (t->ops[k].workspace_bytes, to->granule_bytes);
    places[to->n_runs] = (granule_run){ (int32_t)first[t->ops[k].stream], (int32_t)n };
    more[to->n_stays++] = (stay){ STAY_WORKSPACE, k, 0, to->n_runs++, 1 };
  }
  return true;
}

/* ---- from the list back to the streams ---- */

typedef struct streaming {
  const trace *t;
  const solve_options *o;
  const effort *effort;
  streams_solver *solve_list;
  one_list list;
  arena *arena;
  const char *digest;
} streaming;

/* A plan of the list as one of the step; *legal: it is one. */
static bool take_back (const streaming *w, plan *p, bool *legal, error *err) {
  error why = { 0 };
  p->trace_digest = w->digest;
  p->budget_bytes = w->o->budget_bytes;
  p->has_certificate = false;
  *legal = put_apart (w->t, &w->list, p, w->arena, err) &&
           check_plan (w->t, p, w->arena, NULL, &why) &&
           simulate_plan (w->t, p, w->arena, &p->predicted, &why);
  p->has_predicted = *legal;
  return *legal ||
         (!err->code && (why.code == ERR_infeasible || error_set (err, why.code, "%s", why.text)));
}

/* The places of workspaces are whole granules of the plan, whatever these are. */
static bool solve_as_list (const streaming *w, recompute_mode drops, solution *out, error *err) {
  int64_t granule = w->o->device->granule_bytes;
  /* times of the list are not those of the step */
  const effort less = { .limit_ticks = w->effort ? w->effort->limit_ticks : 0,
                        .gap_ppm = w->effort ? w->effort->gap_ppm : 0 };
  solve_options how = *w->o;
  how.sections = SECTIONS_OFF;
  how.order = ORDER_AS_IS;
  how.recompute = drops;
  how.keep_proof = false;
  how.trace_digest = NULL;
  how.starts = NULL;
  how.n_starts = 0;
  how.solved = NULL;
  for (int i = 0; i < 4; i++) {
    int64_t apart = granules_apart (&w->list, granule) * granule;
    how.budget_bytes = max_of (w->o->budget_bytes - apart, 0);
    if (!w->solve_list (w->list.made, &how, w->effort ? &less : NULL, w->arena, out, err))
      return false;
    int64_t has = max_of (out->plan->placement.granule_bytes, w->o->device->granule_bytes);
    if (!apart || has <= granule)
      return true;
    granule = has;
  }
  return true;
}

/* The path holds whatever is made again: copies only make it longer. */
static bool certify (const streaming *w, const bound *b, solution *s, error *err) {
  plan *p = s->plan;
  bool by_path = p->n_recomputes || b->lower_bound_ns <= b->compute_ns;
  certified c = { .lower_bound_ns = by_path ? b->compute_ns : b->lower_bound_ns,
                  .bound_by = by_path ? "path" : b->by,
                  .cover = cover_swaps,
                  .found_by = p->certificate.found_by,
                  .proof = b->proof,
                  .limit_met = solve_stops (w->o) ? "stopped" : "ticks" };
  if (by_path) {
    c.cover = (cover){ .swaps = true, .drops = COVER_DROPS_ANY, .kept = true };
    if (w->o->keep_proof &&
        !(c.proof = bound_cheap_proof ("compute", NO_OP, true, DROPS_ALLOWED, NULL, w->arena, err)))
      return false;
  }
  if (c.lower_bound_ns <= trace_busiest_ns (w->t)) {
    c.cover = cover_every;
    c.bound_by = "compute";
  }
  c.enough_ns = solve_enough_of (&(effort){ .gap_ppm = w->o->gap_ppm }, c.lower_bound_ns);
  solve_write_certificate (p, &c);
  s->bound = *b;
  s->bound.lower_bound_ns = c.lower_bound_ns;
  s->bound.by = c.bound_by;
  return true;
}

bool streams_bound (const trace *t, const solve_options *o, arena *a, bound *out, error *err) {
  const trace *chain;
  solve_options how = *o;
  how.host_bytes = MOST_BYTES; /* a path may leave out what went back to the host meanwhile */
  how.trace_digest = NULL;
  return trace_chain (t, a, &chain, err) && attempt_bound (chain, &how, a, out, err);
}

/* Swaps alone, and with drops where these are allowed: the faster one. */
static bool solve_both (const streaming *w, solution *out, error *err) {
  const recompute_mode ways[] = { RECOMPUTE_OFF, w->o->recompute };
  bool none = true;
  error why = { 0 };
  for (int i = w->o->recompute == RECOMPUTE_ONLY; i < 2; i++) {
    solution s;
    bool legal;
    error no = { 0 };
    if (i > 0 && w->o->recompute == RECOMPUTE_OFF)
      break;
    if (!solve_as_list (w, ways[i], &s, &no)) {
      why = no;
      if (no.code != ERR_infeasible && no.code != ERR_limit)
        break;
      continue;
    }
    if (!take_back (w, s.plan, &legal, err))
      return false;
    if (!legal)
      continue; /* its copies of ops run on other streams than the list knew */
    s.ticks += none ? 0 : out->ticks;
    s.candidates += none ? 0 : out->candidates;
    if (none || s.plan->predicted.step_ns < out->plan->predicted.step_ns)
      *out = s;
    none = false;
  }
  if (none && !why.code)
    return error_set (err, ERR_infeasible, "no plan of the ops in one row is one of their streams");
  return !none || error_set (err, why.code, "%s", why.text);
}

bool streams_solve (const trace *t, const solve_options *o, const effort *e,
                    streams_solver *solve_list, arena *a, solution *out, error *err) {
  assert (t && o && out);
  streaming w = { .t = t, .o = o, .effort = e, .solve_list = solve_list, .arena = a };
  bound b;
  solve_options how = *o;
  solved_programs *own = NULL;
  char digest[TRACE_DIGEST];
  *out = (solution){ 0 };
  if (o->sections == SECTIONS_FIXED && !streams_must_be_one (t, "a number of sections", err))
    return false;
  if (!how.solved && !(how.solved = own = solved_new (err)))
    return false;
  w.o = &how;
  bool ok = check_streams (t, a, err) && trace_digest (t, digest, err) &&
            (w.digest = arena_string (a, digest, err)) && list_ops (t, a, &w.list, err) &&
            solve_both (&w, out, err) && streams_bound (t, &how, a, &b, err);
  solved_free (own);
  if (!ok || !certify (&w, &b, out, err))
    return false;
  assert (out->plan->certificate.lower_bound_ns <= out->plan->predicted.step_ns);
  return true;
}
