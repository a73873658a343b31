/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/policy/dtr_costs.h"

#include <assert.h>

/* ---- the graph ---- */

static bool writes_it (const op *o, int32_t x) {
  return list_has (&o->writes, x) && !list_has (&o->side, x);
}

/* Persistent tensors never go, so they join nothing. */
static bool is_edge (const trace *t, const op *o, int32_t from, int32_t to) {
  return from != to && !t->tensors[from].persistent && !t->tensors[to].persistent &&
         !list_has (&o->side, to) && !list_has (&o->side, from);
}

/* Rows of one direction: counted first, then filled, so that offsets end where the next begins. */
static bool fill_rows (const trace *t, bool below, arena *a, int32_t **offset, int32_t **at,
                       error *err) {
  int64_t total = 0;
  if (!ALLOC (a, *offset, (int64_t)t->n_tensors + 2, err))
    return false;
  for (int filling = 0; filling < 2; filling++) {
    for (int32_t k = 0; k < t->n_ops; k++) {
      const op *o = &t->ops[k];
      for (int32_t i = 0; i < o->reads.count; i++)
        for (int32_t j = 0; j < o->writes.count; j++) {
          int32_t from = o->reads.at[i], to = o->writes.at[j];
          if (!is_edge (t, o, from, to))
            continue;
          int32_t row = below ? from : to;
          if (filling)
            (*at)[(*offset)[row + 1]++] = below ? to : from;
          else
            (*offset)[row + 2]++;
          total += !filling;
        }
    }
    if (filling)
      return true;
    if (total > INT32_MAX - 1)
      return error_set (err, ERR_input, "more than 2^31 pairs of tensors that an op joins");
    for (int32_t x = 0; x < t->n_tensors; x++)
      (*offset)[x + 2] += (*offset)[x + 1];
    if (!ALLOC (a, *at, total, err))
      return false;
  }
  return true;
}

static void fill_own (dtr_costs *c, const trace *t, const uses *u) {
  for (int32_t x = 0; x < t->n_tensors; x++)
    for (int32_t i = u->offset[x]; i < u->offset[x + 1]; i++) {
      const op *o = &t->ops[u->at[i].op];
      if (u->at[i].writes && writes_it (o, x))
        c->own_ns[x] += o->ns + o->gap_ns;
    }
}

bool dtr_costs_of (const trace *t, const uses *u, dtr_cost kind, arena *a, dtr_costs *out,
                   error *err) {
  assert (t && u && out);
  *out = (dtr_costs){ .kind = kind, .n_tensors = t->n_tensors, .arena = a };
  if (!ALLOC (a, out->own_ns, t->n_tensors, err) || !ALLOC (a, out->gone, t->n_tensors, err) ||
      !ALLOC (a, out->node, t->n_tensors, err) || !ALLOC (a, out->visited, t->n_tensors, err) ||
      !ALLOC (a, out->stack, t->n_tensors, err) || !ALLOC (a, out->known_ns, t->n_tensors, err) ||
      !ALLOC (a, out->is_known, t->n_tensors, err) || !ALLOC (a, out->passed, t->n_tensors, err))
    return false;
  fill_own (out, t, u);
  for (int32_t x = 0; x < t->n_tensors; x++)
    out->known_ns[x] = out->own_ns[x];
  return fill_rows (t, false, a, &out->above_offset, &out->above, err) &&
         fill_rows (t, true, a, &out->below_offset, &out->below, err);
}

/* ---- classes ---- */

static int32_t root_of (dtr_costs *c, int32_t node) {
  while (c->parent[node] != node)
    node = c->parent[node] = c->parent[c->parent[node]];
  return node;
}

static bool new_node (dtr_costs *c, int32_t tensor, error *err) {
  int64_t need = (int64_t)c->n_nodes + 1;
  c->parent = arena_grow (c->arena, c->parent, &c->parent_room, need, sizeof *c->parent, err);
  c->seen = arena_grow (c->arena, c->seen, &c->seen_room, need, sizeof *c->seen, err);
  c->sum_ns = arena_grow (c->arena, c->sum_ns, &c->sum_room, need, sizeof *c->sum_ns, err);
  if (!c->parent || !c->seen || !c->sum_ns)
    return false;
  c->node[tensor] = c->n_nodes;
  c->parent[c->n_nodes] = c->n_nodes;
  c->seen[c->n_nodes] = 0;
  c->sum_ns[c->n_nodes++] = c->own_ns[tensor];
  return true;
}

static void join_row (dtr_costs *c, int32_t tensor, const int32_t *at, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    if (!c->gone[at[i]])
      continue;
    int32_t to = root_of (c, c->node[tensor]), from = root_of (c, c->node[at[i]]);
    if (from == to)
      continue;
    c->parent[from] = to;
    c->sum_ns[to] += c->sum_ns[from];
  }
}

static int64_t classes_of_row (dtr_costs *c, const int32_t *at, int32_t count) {
  int64_t ns = 0;
  for (int32_t i = 0; i < count; i++) {
    int32_t root = c->gone[at[i]] ? root_of (c, c->node[at[i]]) : -1;
    if (root < 0 || c->seen[root] == c->mark)
      continue;
    c->seen[root] = c->mark;
    ns += c->sum_ns[root];
  }
  return ns;
}

/* ---- all that is gone, one way ---- */

enum { UP = 1, DOWN = 2 };

/* Adds what is gone along one way, while that is not too much. */
static int64_t walk (dtr_costs *c, int32_t tensor, int way, int64_t ns, int64_t most_ns) {
  const int32_t *offset = way == UP ? c->above_offset : c->below_offset;
  const int32_t *at = way == UP ? c->above : c->below;
  int32_t n = 0;
  c->stack[n++] = tensor;
  while (n > 0 && ns <= most_ns) {
    int32_t x = c->stack[--n];
    for (int32_t i = offset[x]; i < offset[x + 1]; i++)
      if (c->gone[at[i]] && c->visited[at[i]] != c->mark) {
        c->visited[at[i]] = c->mark;
        c->passed[at[i]] |= (uint8_t)way;
        ns += c->own_ns[at[i]];
        c->stack[n++] = at[i];
      }
  }
  return ns;
}

/* Back along a way, to the tensors whose walks came by here. */
static void forget (dtr_costs *c, int32_t tensor, int way) {
  const int32_t *offset = way == UP ? c->below_offset : c->above_offset;
  const int32_t *at = way == UP ? c->below : c->above;
  int32_t n = 0;
  c->stack[n++] = tensor;
  while (n > 0) {
    int32_t x = c->stack[--n];
    for (int32_t i = offset[x]; i < offset[x + 1]; i++) {
      c->known_ns[at[i]] = c->own_ns[at[i]];
      c->is_known[at[i]] = 0;
      if (!(c->passed[at[i]] & way))
        continue;
      c->passed[at[i]] &= (uint8_t)~way;
      c->stack[n++] = at[i];
    }
  }
}

/* One that comes was on all walks that had it as an end or a station; one that goes was on none,
   and lengthens those that end beside it. */
static void forget_both (dtr_costs *c, int32_t tensor, bool goes) {
  if (goes || (c->passed[tensor] & UP))
    forget (c, tensor, UP);
  if (goes || (c->passed[tensor] & DOWN))
    forget (c, tensor, DOWN);
  c->passed[tensor] = 0;
}

static int64_t all_gone (dtr_costs *c, int32_t tensor, int64_t most_ns) {
  int64_t ns = c->known_ns[tensor];
  if (c->is_known[tensor] || ns > most_ns)
    return ns;
  ns = walk (c, tensor, UP, c->own_ns[tensor], most_ns);
  ns = walk (c, tensor, DOWN, ns, most_ns);
  c->is_known[tensor] = ns <= most_ns;
  return c->known_ns[tensor] = ns;
}

/* ---- for the run ---- */

bool dtr_costs_goes (dtr_costs *c, int32_t tensor, error *err) {
  assert (!c->gone[tensor]);
  c->gone[tensor] = 1;
  if (c->kind == DTR_ALL)
    forget_both (c, tensor, true);
  if (c->kind != DTR_CLASSES)
    return true;
  if (!new_node (c, tensor, err))
    return false;
  join_row (c, tensor, c->above + c->above_offset[tensor],
            c->above_offset[tensor + 1] - c->above_offset[tensor]);
  join_row (c, tensor, c->below + c->below_offset[tensor],
            c->below_offset[tensor + 1] - c->below_offset[tensor]);
  return true;
}

void dtr_costs_comes (dtr_costs *c, int32_t tensor) {
  assert (c->gone[tensor]);
  c->gone[tensor] = 0;
  if (c->kind == DTR_ALL)
    forget_both (c, tensor, false);
  if (c->kind == DTR_CLASSES)
    c->sum_ns[root_of (c, c->node[tensor])] -= c->own_ns[tensor];
}

int64_t dtr_costs_ns (dtr_costs *c, int32_t tensor, int64_t most_ns) {
  const int32_t *above = c->above + c->above_offset[tensor],
                *below = c->below + c->below_offset[tensor];
  int64_t ns = c->own_ns[tensor];
  c->mark++;
  switch (c->kind) {
  case DTR_OWN:
    return ns;
  case DTR_CLASSES:
    ns += classes_of_row (c, above, c->above_offset[tensor + 1] - c->above_offset[tensor]);
    return ns + classes_of_row (c, below, c->below_offset[tensor + 1] - c->below_offset[tensor]);
  case DTR_ALL:
    return all_gone (c, tensor, most_ns);
  }
  return ns;
}
