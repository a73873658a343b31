/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/orders.h"

#include <string.h>

#include "base/random.h"
#include "trace/rewrite/order.h"

enum { TOURNAMENT = 4, ELITE = 2, PATIENCE = 20 };

/* ---- which orders there are ---- */

typedef struct edge_list {
  int32_t *from, *to;
  int64_t count, room_from, room_to;
} edge_list;

static bool add_edge (edge_list *e, int32_t from, int32_t to, arena *a, error *err) {
  if (from == to || from == NO_OP)
    return true;
  int32_t *f = arena_grow (a, e->from, &e->room_from, e->count + 1, sizeof *f, err);
  int32_t *t = f ? arena_grow (a, e->to, &e->room_to, e->count + 1, sizeof *t, err) : NULL;
  if (!f || !t)
    return false;
  e->from = f;
  e->to = t;
  f[e->count] = from;
  t[e->count++] = to;
  return true;
}

/* Reads wait for the last write, a write for it and for all reads since; an op behind which a
   tensor is said to die waits for all that use it. */
static bool edges_of (const trace *t, edge_list *e, arena *a, error *err) {
  uses all;
  if (!uses_of (t, a, &all, err))
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int32_t writer = NO_OP, since = all.offset[x];
    for (int32_t i = all.offset[x]; i < all.offset[x + 1]; i++) {
      const use *u = &all.at[i];
      if (!add_edge (e, writer, u->op, a, err))
        return false;
      if (!u->writes)
        continue;
      for (int32_t j = since; j < i; j++)
        if (all.at[j].op != writer && !add_edge (e, all.at[j].op, u->op, a, err))
          return false;
      writer = u->op;
      since = i + 1;
    }
    int32_t dies = t->tensors[x].dies_after;
    for (int32_t i = all.offset[x]; dies != NO_OP && i < all.offset[x + 1]; i++)
      if (!add_edge (e, all.at[i].op, dies, a, err))
        return false;
  }
  return true;
}

bool orders_graph_of (const trace *t, arena *a, orders_graph *out, error *err) {
  edge_list e = { 0 };
  int32_t n = t->n_ops;
  *out = (orders_graph){ .n = n };
  if (!edges_of (t, &e, a, err))
    return false;
  if (e.count > INT32_MAX)
    return error_set (err, ERR_input, "the trace has more than 2^31 dependencies");
  out->offset = NEW (a, (int64_t)n + 1, int32_t, err);
  out->after = NEW (a, e.count, int32_t, err);
  out->waits_for = NEW (a, n, int32_t, err);
  int32_t *next = NEW (a, n, int32_t, err);
  if (!out->offset || !out->after || !out->waits_for || !next)
    return false;
  for (int64_t i = 0; i < e.count; i++) {
    out->offset[e.from[i] + 1]++;
    out->waits_for[e.to[i]]++;
  }
  for (int32_t k = 0; k < n; k++) {
    out->offset[k + 1] += out->offset[k];
    next[k] = out->offset[k];
  }
  for (int64_t i = 0; i < e.count; i++)
    out->after[next[e.from[i]]++] = e.to[i];
  return true;
}

bool orders_decode (const orders_graph *g, const int32_t *priority, int32_t *order, arena *scratch,
                    error *err) {
  arena_mark mark = arena_here (scratch);
  int32_t *ready = NEW (scratch, g->n, int32_t, err), *left = NEW (scratch, g->n, int32_t, err);
  int32_t n_ready = 0;
  if (!ready || !left)
    return false;
  for (int32_t k = 0; k < g->n; k++)
    if (!(left[k] = g->waits_for[k]))
      ready[n_ready++] = k;
  for (int32_t n = 0; n < g->n; n++) {
    int32_t best = 0;
    for (int32_t i = 1; i < n_ready; i++) {
      int32_t x = ready[i], y = ready[best];
      if (priority[x] < priority[y] || (priority[x] == priority[y] && x < y))
        best = i;
    }
    int32_t k = order[n] = ready[best];
    ready[best] = ready[--n_ready];
    for (int32_t i = g->offset[k]; i < g->offset[k + 1]; i++)
      if (--left[g->after[i]] == 0)
        ready[n_ready++] = g->after[i];
  }
  arena_back (scratch, mark);
  return true;
}

static bool reorder (const trace *t, const int32_t *order, arena *a, const trace **out,
                     error *err) {
  op_run *runs;
  int32_t n_runs, *same;
  return order_runs (order, t->n_ops, a, &runs, &n_runs, err) &&
         trace_reorder (t, runs, n_runs, a, out, &same, err);
}

/* ---- the search ---- */

typedef struct individual {
  int32_t *priority;
  bool fits;
  int64_t value; /* of a plan its step, else the bytes that it would need */
} individual;

typedef struct genetic {
  const policy_request *request;
  const orders_options *o;
  orders_graph graph;
  arena *a;
  random_state random;
  individual *now, *next; /* populations */
  int32_t *order;
  int64_t judged;
} genetic;

static bool better (const individual *x, const individual *y) {
  return x->fits != y->fits ? x->fits : x->value < y->value;
}

static bool judge (genetic *s, individual *x, error *err) {
  arena *scratch = arena_made (err);
  policy_answer answer;
  policy_request r = *s->request;
  r.trace_digest = NULL;
  r.only_fits = true;
  bool ok = scratch && orders_decode (&s->graph, x->priority, s->order, scratch, err) &&
            reorder (s->request->trace, s->order, scratch, &r.trace, err) &&
            policy_run (POLICY_swapadvisor, &r, scratch, &answer, err);
  if (ok) {
    x->fits = answer.fits;
    x->value = answer.fits ? answer.cost.step_ns : answer.reached_bytes;
  }
  arena_free (scratch);
  s->judged++;
  return ok;
}

static void swap_genes (genetic *s, int32_t *priority, int32_t i) {
  int32_t j = (int32_t)random_between (&s->random, 0, s->graph.n - 1), x = priority[i];
  priority[i] = priority[j];
  priority[j] = x;
}

/* The given order, and the others further and further from it. */
static bool first_population (genetic *s, error *err) {
  int64_t size = s->o->population;
  int32_t n = s->graph.n;
  if (!ALLOC (s->a, s->now, size, err) || !ALLOC (s->a, s->next, size, err) ||
      !ALLOC (s->a, s->order, n, err))
    return false;
  for (int64_t i = 0; i < size; i++) {
    if (!ALLOC (s->a, s->now[i].priority, n, err) || !ALLOC (s->a, s->next[i].priority, n, err))
      return false;
    for (int32_t k = 0; k < n; k++)
      s->now[i].priority[k] = k;
    for (int64_t swaps = i * n / size; swaps > 0; swaps--)
      swap_genes (s, s->now[i].priority, (int32_t)random_between (&s->random, 0, n - 1));
  }
  for (int64_t i = 0; i < size && s->judged < s->o->evaluations; i++)
    if (!judge (s, &s->now[i], err))
      return false;
  for (int64_t i = s->judged; i < size; i++)
    s->now[i].value = INT64_MAX;
  return true;
}

static const individual *tournament (genetic *s) {
  const individual *best = NULL;
  for (int i = 0; i < TOURNAMENT; i++) {
    const individual *x = &s->now[random_between (&s->random, 0, s->o->population - 1)];
    best = !best || better (x, best) ? x : best;
  }
  return best;
}

static void breed (genetic *s, individual *child) {
  const individual *x = tournament (s), *y = tournament (s);
  int32_t n = s->graph.n, cut = (int32_t)random_between (&s->random, 0, n);
  memcpy (child->priority, x->priority, (size_t)cut * sizeof *child->priority);
  memcpy (child->priority + cut, y->priority + cut, (size_t)(n - cut) * sizeof *child->priority);
  for (int32_t i = 0; i < n; i++)
    if (random_chance (&s->random, s->o->mutation_ppm))
      swap_genes (s, child->priority, i);
}

/* The best come first; of equals the one that was there first. */
static void sort (individual *all, int64_t size) {
  for (int64_t i = 1; i < size; i++)
    for (int64_t j = i; j > 0 && better (&all[j], &all[j - 1]); j--) {
      individual x = all[j];
      all[j] = all[j - 1];
      all[j - 1] = x;
    }
}

static bool generation (genetic *s, error *err) {
  int64_t size = s->o->population;
  for (int64_t i = 0; i < size; i++) {
    individual *child = &s->next[i];
    if (i < ELITE) {
      memcpy (child->priority, s->now[i].priority, (size_t)s->graph.n * sizeof (int32_t));
      child->fits = s->now[i].fits;
      child->value = s->now[i].value;
    } else {
      breed (s, child);
      *child = (individual){ child->priority, false, INT64_MAX };
      if (s->judged < s->o->evaluations && !judge (s, child, err))
        return false;
    }
  }
  individual *old = s->now;
  s->now = s->next;
  s->next = old;
  sort (s->now, size);
  return true;
}

static bool evolve (genetic *s, error *err) {
  if (!first_population (s, err))
    return false;
  sort (s->now, s->o->population);
  int64_t idle = 0;
  for (int64_t g = 0; g < s->o->generations && idle < PATIENCE && s->judged < s->o->evaluations;
       g++) {
    individual before = s->now[0];
    if (!generation (s, err))
      return false;
    idle = better (&s->now[0], &before) ? 0 : idle + 1;
  }
  return true;
}

/* The plan of the trace in that order as one of the trace as it is. */
static bool give_back (genetic *s, policy_answer *out, error *err) {
  op_run *runs;
  int32_t n_runs;
  return !out->plan || (order_runs (s->order, s->graph.n, s->a, &runs, &n_runs, err) &&
                        plan_set_order (out->plan, s->request->trace, runs, n_runs, s->a, err));
}

/* The best once more, for the caller. */
static bool finish (genetic *s, policy_answer *out, error *err) {
  policy_request r = *s->request;
  if (!orders_decode (&s->graph, s->now[0].priority, s->order, s->a, err) ||
      !reorder (s->request->trace, s->order, s->a, &r.trace, err))
    return false;
  bool same = r.trace == s->request->trace;
  if (!same)
    r.trace_digest = NULL;
  if (!policy_run (POLICY_swapadvisor, &r, s->a, out, err) || (!same && !give_back (s, out, err)))
    return false;
  out->label = "swapadvisor (genetic, from memory)";
  out->order = same ? NULL : r.trace;
  out->note = arena_format (s->a, err, "%lld orders were judged, seed %llu; %s",
                            (long long)s->judged, (unsigned long long)s->o->seed,
                            same ? "none is better than the trace's own" : "another one is better");
  return out->note;
}

bool orders_search (const policy_request *r, const orders_options *o, arena *a, policy_answer *out,
                    error *err) {
  policy_values values = policy_standard ();
  policy_request request = *r;
  genetic s = { .request = &request, .o = o, .a = a, .random = random_seed (o->seed) };
  request.values = &values; /* the planner alone */
  return orders_graph_of (r->trace, a, &s.graph, err) && evolve (&s, err) && finish (&s, out, err);
}
