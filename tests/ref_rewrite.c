/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ref_rewrite.h"

#include <string.h>

/* Everything here is searched for again each time it is asked for: the traces are small. */

static bool has (index_list list, int32_t x) {
  for (int32_t i = 0; i < list.count; i++)
    if (list.at[i] == x)
      return true;
  return false;
}

static bool refuse (error *err, const char *why) {
  return error_set (err, ERR_infeasible, "%s", why);
}

static index_list list_new (arena *a, int64_t most, error *err) {
  return (index_list){ NEW (a, most ? most : 1, int32_t, err), 0 };
}

/* How much of `amount` the items [first, end) get. */
static int64_t share (int64_t amount, int64_t batch, int64_t first, int64_t end) {
  return (int64_t)((__int128)amount * end / batch - (__int128)amount * first / batch);
}

/* ---- sections ---- */

typedef struct piece {
  int32_t tensor, number; /* number -1: it has not appeared yet */
  int64_t first, end;
} piece;

typedef struct cutting {
  const trace *t;
  const section *sections;
  int32_t n_sections;
  int64_t section_ns;
  piece *pieces; /* of all cut tensors, of one tensor in order of items */
  int32_t n_pieces, n_tensors;
  arena *a;
} cutting;

static const section *section_of (const cutting *c, int32_t k) {
  for (int32_t i = 0; i < c->n_sections; i++)
    if (c->sections[i].first <= k && k < c->sections[i].end)
      return &c->sections[i];
  return NULL;
}

static int64_t parts_of (const cutting *c, int32_t k) {
  const section *s = section_of (c, k);
  return s ? s->parts : 1;
}

static int64_t boundary (const cutting *c, int64_t part, int64_t parts) {
  return (int64_t)((__int128)part * c->t->batch / parts);
}

static bool depth_is_wrong (const trace *t, const section *s) {
  for (int32_t i = s->first; i < s->end; i++)
    for (int32_t w = 0; w < t->ops[i].writes.count; w++) {
      int32_t x = t->ops[i].writes.at[w];
      if (t->tensors[x].split)
        continue;
      for (int32_t j = s->first; j < s->end; j++) {
        bool reads = has (t->ops[j].reads, x), writes = has (t->ops[j].writes, x);
        if (j != i && reads && !writes)
          return true;
        if (j > i && writes && !reads)
          return true;
      }
    }
  return false;
}

static bool sections_are_right (const cutting *c, error *err) {
  for (int32_t i = 0; i < c->n_sections; i++) {
    const section *s = &c->sections[i];
    int32_t from = i ? c->sections[i - 1].end : 0;
    if (s->first < from || s->first >= s->end || s->end > c->t->n_ops)
      return refuse (err, "sections are not sorted, disjoint ranges of ops");
    if (s->parts < 2 || s->parts > c->t->batch)
      return refuse (err, "a section's parts are not 2 to batch");
    for (int32_t k = s->first; k < s->end; k++)
      if (s->parts > c->t->ops[k].parts)
        return refuse (err, "an op of a section cannot run in so many parts");
    if (s->order == SECTION_DEPTH && depth_is_wrong (c->t, s))
      return refuse (err, "a section cannot run depth first");
  }
  return true;
}

/* The next boundary behind `item` of any op that uses tensor x. */
static int64_t next_boundary (const cutting *c, int32_t x, int64_t item) {
  int64_t best = c->t->batch;
  for (int32_t k = 0; k < c->t->n_ops; k++) {
    if (!has (c->t->ops[k].reads, x) && !has (c->t->ops[k].writes, x))
      continue;
    for (int64_t i = 0, p = parts_of (c, k); i <= p; i++) {
      int64_t b = boundary (c, i, p);
      if (b > item && b < best)
        best = b;
    }
  }
  return best;
}

static bool cut_tensors (cutting *c, error *err) {
  int64_t room = 0;
  for (int32_t x = 0; x < c->t->n_tensors; x++) {
    if (!c->t->tensors[x].split || next_boundary (c, x, 0) == c->t->batch)
      continue;
    for (int64_t item = 0; item < c->t->batch;) {
      int64_t end = next_boundary (c, x, item);
      c->pieces = arena_grow (c->a, c->pieces, &room, c->n_pieces + 1, sizeof (piece), err);
      if (!c->pieces)
        return false;
      c->pieces[c->n_pieces++] = (piece){ x, -1, item, end };
      item = end;
    }
  }
  return true;
}

static bool is_cut (const cutting *c, int32_t x) {
  for (int32_t i = 0; i < c->n_pieces; i++)
    if (c->pieces[i].tensor == x)
      return true;
  return false;
}

/* The part of a list of tensors that items [first, end) touch, appended to `to`. */
static void touch (cutting *c, index_list from, int64_t first, int64_t end, index_list *to) {
  for (int32_t i = 0; i < from.count; i++) {
    if (!is_cut (c, from.at[i])) {
      to->at[to->count++] = from.at[i];
      continue;
    }
    for (int32_t j = 0; j < c->n_pieces; j++) {
      piece *p = &c->pieces[j];
      if (p->tensor != from.at[i] || p->first < first || p->end > end)
        continue;
      if (p->number < 0)
        p->number = c->n_tensors++;
      to->at[to->count++] = p->number;
    }
  }
}

/* Part `part` of op k as an op of its own. */
static bool cut_op (cutting *c, int32_t k, int64_t part, op *to, origin *from, error *err) {
  const op *o = &c->t->ops[k];
  int64_t parts = parts_of (c, k), batch = c->t->batch;
  int64_t first = boundary (c, part, parts), end = boundary (c, part + 1, parts);
  int64_t most = c->n_pieces + o->reads.count + o->writes.count;
  *to = *o;
  *from = (origin){ k, first, end, false };
  to->ns = share (o->ns, batch, first, end) + (part ? c->section_ns : 0);
  to->workspace_bytes = share (o->workspace_bytes, batch, first, end);
  to->gap_ns = part ? 0 : o->gap_ns;
  to->parts = parts > 1 ? 1 : o->parts;
  to->reads = list_new (c->a, most, err);
  to->writes = list_new (c->a, most, err);
  to->side = list_new (c->a, most, err);
  if (!to->reads.at || !to->writes.at || !to->side.at)
    return false;
  touch (c, o->reads, first, end, &to->reads);
  if (part)
    for (int32_t i = 0; i < o->writes.count; i++) {
      int32_t x = o->writes.at[i];
      if (!is_cut (c, x) && !has (o->reads, x))
        to->reads.at[to->reads.count++] = x;
    }
  touch (c, o->writes, first, end, &to->writes);
  touch (c, o->side, first, end, &to->side);
  return true;
}

/* The new order of (op, part): returns how many; fills `ops` and `parts` where they are given. */
static int64_t order_parts (const cutting *c, int32_t *ops, int64_t *parts) {
  int64_t n = 0;
  for (int32_t k = 0; k < c->t->n_ops;) {
    const section *s = section_of (c, k);
    int32_t end = s ? s->end : k + 1;
    bool depth = s && s->order == SECTION_DEPTH;
    int64_t p = s ? s->parts : 1;
    int64_t outer = depth ? p : end - k, inner = depth ? end - k : p;
    for (int64_t i = 0; i < outer; i++)
      for (int64_t j = 0; j < inner; j++, n++)
        if (ops) {
          ops[n] = (int32_t)(depth ? k + j : k + i);
          parts[n] = depth ? i : j;
        }
    k = end;
  }
  return n;
}

static int32_t first_part (const origin *ops, int32_t n, int32_t k) {
  for (int32_t i = 0; i < n; i++)
    if (ops[i].index == k)
      return i;
  return NO_OP;
}

static int32_t last_part (const origin *ops, int32_t n, int32_t k) {
  for (int32_t i = n - 1; i >= 0; i--)
    if (ops[i].index == k)
      return i;
  return NO_OP;
}

static bool cut_tensor_rows (const cutting *c, trace *to, origin *ops, origin *tensors) {
  const trace *t = c->t;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    tensor *w = &to->tensors[x];
    *w = t->tensors[x];
    tensors[x] = (origin){ x, 0, t->batch, false };
    if (w->born_before != NO_OP)
      w->born_before = first_part (ops, to->n_ops, w->born_before);
    if (w->dies_after != NO_OP)
      w->dies_after = last_part (ops, to->n_ops, w->dies_after);
  }
  for (int32_t i = 0; i < c->n_pieces; i++) {
    const piece *p = &c->pieces[i];
    tensor *w = &to->tensors[p->number];
    *w = to->tensors[p->tensor];
    w->bytes = share (w->bytes, t->batch, p->first, p->end);
    w->split = false;
    tensors[p->number] = (origin){ p->tensor, p->first, p->end, false };
  }
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (is_cut (c, x))
      to->tensors[x].persistent = false;
  return true;
}

static bool apply_sections (cutting *c, rewritten *out, error *err) {
  if (!sections_are_right (c, err) || !cut_tensors (c, err))
    return false;
  const trace *t = c->t;
  int64_t n = order_parts (c, NULL, NULL);
  trace *to = NEW (c->a, 1, trace, err);
  int32_t *op_of = NEW (c->a, n, int32_t, err);
  int64_t *part_of = NEW (c->a, n, int64_t, err);
  op *ops = NEW (c->a, n, op, err);
  origin *op_origins = NEW (c->a, n, origin, err);
  int64_t *samples = NEW (c->a, n * t->n_samples + 1, int64_t, err);
  if (!to || !op_of || !part_of || !ops || !op_origins || !samples)
    return false;
  order_parts (c, op_of, part_of);
  c->n_tensors = t->n_tensors;
  *to = *t;
  to->n_ops = (int32_t)n;
  to->ops = ops;
  to->ns_samples = samples;
  for (int64_t i = 0; i < n; i++) {
    if (!cut_op (c, op_of[i], part_of[i], &ops[i], &op_origins[i], err))
      return false;
    for (int32_t row = 0; row < t->n_samples; row++)
      samples[row * n + i] = share (t->ns_samples[row * t->n_ops + op_of[i]], t->batch,
                                    op_origins[i].first_item, op_origins[i].end_item) +
                             (part_of[i] ? c->section_ns : 0);
  }
  to->n_tensors = c->n_tensors;
  to->tensors = NEW (c->a, to->n_tensors + 1, tensor, err);
  origin *tensor_origins = NEW (c->a, to->n_tensors + 1, origin, err);
  if (!to->tensors || !tensor_origins)
    return false;
  *out = (rewritten){ to, op_origins, tensor_origins };
  return cut_tensor_rows (c, to, op_origins, tensor_origins);
}

/* ---- recompute ---- */

typedef struct again {
  const trace *t; /* the sectioned one */
  rewritten from;
  trace *to;
  origin *ops, *tensors;
  int32_t *source;   /* of each new op: its op in t */
  int32_t *standing; /* which tensor stands for each of t now */
  int32_t *fresh;    /* what the present entry has made of each tensor of t, or -1 */
  int32_t *version;  /* of that */
  int32_t *dies;     /* of each new tensor: an op of t */
  arena *a;
} again;

/* How many ops before op k write tensor x. */
static int32_t writes_before (const trace *t, int32_t x, int32_t k) {
  int32_t n = 0;
  for (int32_t i = 0; i < k; i++)
    n += has (t->ops[i].writes, x);
  return n;
}

static void make_fresh (again *g, int32_t x) {
  trace *to = g->to;
  tensor *w = &to->tensors[to->n_tensors];
  *w = g->t->tensors[x];
  w->persistent = w->pinned = false;
  w->born_before = w->dies_after = NO_OP;
  g->tensors[to->n_tensors] = g->from.tensors[x];
  g->tensors[to->n_tensors].copy = true;
  g->dies[to->n_tensors] = NO_OP;
  g->fresh[x] = to->n_tensors++;
}

static bool copy_op (again *g, int32_t k, int32_t before, error *err) {
  const op *o = &g->t->ops[k];
  op *to = &g->to->ops[g->to->n_ops];
  *to = *o;
  to->reads = list_new (g->a, o->reads.count, err);
  to->writes = list_new (g->a, o->writes.count, err);
  to->side = (index_list){ NULL, 0 };
  if (!to->reads.at || !to->writes.at)
    return false;
  for (int32_t i = 0; i < o->reads.count; i++) {
    int32_t x = o->reads.at[i];
    if (has (o->side, x))
      continue;
    bool made = g->fresh[x] >= 0;
    if (!made && has (o->writes, x))
      return refuse (err, "a copy updates in place what its entry has not made");
    int32_t sees = made ? g->version[x] : writes_before (g->t, x, before);
    if (sees != writes_before (g->t, x, k))
      return refuse (err, "a copy would read another version than its original");
    to->reads.at[to->reads.count++] = made ? g->fresh[x] : g->standing[x];
  }
  for (int32_t i = 0; i < o->writes.count; i++) {
    int32_t x = o->writes.at[i];
    if (has (o->side, x))
      continue;
    if (g->t->tensors[x].again == AGAIN_NEVER)
      return refuse (err, "a recompute entry writes what can never be made again");
    if (g->fresh[x] < 0)
      make_fresh (g, x);
    g->version[x] = writes_before (g->t, x, k) + 1;
    to->writes.at[to->writes.count++] = g->fresh[x];
  }
  g->ops[g->to->n_ops] = g->from.ops[k];
  g->ops[g->to->n_ops].copy = true;
  g->source[g->to->n_ops++] = k;
  return true;
}

static bool apply_entry (again *g, const recompute *r, error *err) {
  for (int32_t x = 0; x < g->t->n_tensors; x++)
    g->fresh[x] = -1;
  if (r->ops.count < 1)
    return refuse (err, "a recompute entry is empty");
  for (int32_t i = 0; i < r->ops.count; i++) {
    int32_t k = r->ops.at[i];
    if (k < 0 || k >= r->before)
      return refuse (err, "a recompute entry names an op that does not stand before it");
    if (!copy_op (g, k, r->before, err))
      return false;
  }
  for (int32_t i = 0; i < r->replaces.count; i++) {
    int32_t x = r->replaces.at[i];
    if (x < 0 || x >= g->t->n_tensors || g->fresh[x] < 0)
      return refuse (err, "a recompute entry replaces what it does not write");
    if (g->t->tensors[x].persistent || g->t->tensors[x].pinned)
      return refuse (err, "a persistent or pinned tensor cannot be replaced");
    if (g->version[x] != writes_before (g->t, x, r->before))
      return refuse (err, "a replaced tensor would have another version");
    int32_t old = g->standing[x];
    g->dies[g->fresh[x]] = g->dies[old];
    g->dies[old] = NO_OP;
    g->standing[x] = g->fresh[x];
  }
  return true;
}

static bool keep_list (again *g, index_list from, index_list *to, error *err) {
  *to = list_new (g->a, from.count, err);
  if (!to->at)
    return false;
  for (int32_t i = 0; i < from.count; i++)
    to->at[to->count++] = g->standing[from.at[i]];
  return true;
}

static bool keep_op (again *g, int32_t k, error *err) {
  const op *o = &g->t->ops[k];
  op *to = &g->to->ops[g->to->n_ops];
  *to = *o;
  g->ops[g->to->n_ops] = g->from.ops[k];
  g->source[g->to->n_ops++] = k;
  return keep_list (g, o->reads, &to->reads, err) && keep_list (g, o->writes, &to->writes, err) &&
         keep_list (g, o->side, &to->side, err);
}

/* Where op k of the sectioned trace stands now. */
static int32_t new_place (const again *g, int32_t k) {
  for (int32_t i = 0; i < g->to->n_ops; i++)
    if (!g->ops[i].copy && g->source[i] == k)
      return i;
  return NO_OP;
}

static void place_lives (again *g) {
  for (int32_t x = 0; x < g->to->n_tensors; x++) {
    tensor *w = &g->to->tensors[x];
    if (w->born_before != NO_OP)
      w->born_before = new_place (g, w->born_before);
    w->dies_after = g->dies[x] == NO_OP ? NO_OP : new_place (g, g->dies[x]);
    for (int32_t i = w->dies_after + 1; w->dies_after != NO_OP && i < g->to->n_ops; i++)
      if (has (g->to->ops[i].reads, x) || has (g->to->ops[i].writes, x))
        w->dies_after = NO_OP;
  }
}

static bool again_room (again *g, const recompute *entries, int32_t n, error *err) {
  const trace *t = g->t;
  int64_t ops = t->n_ops, tensors = t->n_tensors;
  for (int32_t i = 0; i < n; i++)
    for (int32_t j = 0; j < entries[i].ops.count; j++) {
      int32_t k = entries[i].ops.at[j];
      ops++;
      tensors += k >= 0 && k < t->n_ops ? t->ops[k].writes.count : 0;
    }
  g->to = NEW (g->a, 1, trace, err);
  g->ops = NEW (g->a, ops, origin, err);
  g->source = NEW (g->a, ops, int32_t, err);
  g->tensors = NEW (g->a, tensors + 1, origin, err);
  g->dies = NEW (g->a, tensors + 1, int32_t, err);
  g->standing = NEW (g->a, t->n_tensors + 1, int32_t, err);
  g->fresh = NEW (g->a, t->n_tensors + 1, int32_t, err);
  g->version = NEW (g->a, t->n_tensors + 1, int32_t, err);
  op *new_ops = NEW (g->a, ops, op, err);
  tensor *new_tensors = NEW (g->a, tensors + 1, tensor, err);
  int64_t *samples = NEW (g->a, ops * t->n_samples + 1, int64_t, err);
  if (!g->to || !g->ops || !g->source || !g->tensors || !g->dies || !g->standing || !g->fresh ||
      !g->version || !new_ops || !new_tensors || !samples)
    return false;
  *g->to = *t;
  g->to->ops = new_ops;
  g->to->tensors = new_tensors;
  g->to->ns_samples = samples;
  g->to->n_ops = 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    new_tensors[x] = t->tensors[x];
    g->tensors[x] = g->from.tensors[x];
    g->dies[x] = t->tensors[x].dies_after;
    g->standing[x] = x;
  }
  return true;
}

static bool apply_recomputes (again *g, const recompute *entries, int32_t n, rewritten *out,
                              error *err) {
  const trace *t = g->t;
  for (int32_t i = 0; i < n; i++)
    if (entries[i].before < 0 || entries[i].before >= t->n_ops ||
        (i && entries[i].before < entries[i - 1].before))
      return refuse (err, "recompute entries are not sorted by the op that they stand before");
  if (!again_room (g, entries, n, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    for (int32_t i = 0; i < n; i++)
      if (entries[i].before == k && !apply_entry (g, &entries[i], err))
        return false;
    if (!keep_op (g, k, err))
      return false;
  }
  for (int32_t row = 0; row < t->n_samples; row++)
    for (int32_t i = 0; i < g->to->n_ops; i++)
      g->to->ns_samples[row * g->to->n_ops + i] = t->ns_samples[row * t->n_ops + g->source[i]];
  place_lives (g);
  *out = (rewritten){ g->to, g->ops, g->tensors };
  return true;
}

bool ref_rewrite (const trace *t, const section *sections, int32_t n_sections,
                  const recompute *recomputes, int32_t n_recomputes, int64_t section_ns, arena *a,
                  rewritten *out, error *err) {
  cutting c = {
    .t = t, .sections = sections, .n_sections = n_sections, .section_ns = section_ns, .a = a
  };
  rewritten cut;
  if (!apply_sections (&c, &cut, err))
    return false;
  again g = { .t = cut.trace, .from = cut, .a = a };
  return apply_recomputes (&g, recomputes, n_recomputes, out, err);
}
