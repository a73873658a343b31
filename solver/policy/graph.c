/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which ops depend on which, and the layer of the network that each belongs to. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "solver/policy/view.h"
#include "trace/compute.h"

/* ---- the graph ---- */

bool view_make_rows (view_rows *r, int32_t n, int64_t total, arena *a, error *err) {
  return ALLOC (a, r->offset, (int64_t)n + 1, err) && ALLOC (a, r->at, total, err);
}

/* seen: by the last op that has this producer. */
static void add_before (policy_view *v, int32_t k, int32_t producer, int32_t *seen) {
  if (producer == NO_OP || seen[producer] == k)
    return;
  seen[producer] = k;
  v->before.at[v->before.offset[k + 1]++] = producer;
}

static bool fill_graph (policy_view *v, error *err) {
  int64_t total = 0;
  int32_t n = v->n_ops;
  for (int32_t k = 0; k < n; k++)
    total += (int64_t)v->trace->ops[k].reads.count + v->trace->ops[k].writes.count;
  if (total > INT32_MAX)
    return error_set (err, ERR_input, "the trace has more than 2^31 accesses");
  int32_t *writer = NEW (v->arena, v->n_tensors, int32_t, err),
          *seen = NEW (v->arena, n, int32_t, err);
  v->level = NEW (v->arena, n, int32_t, err);
  if (!writer || !seen || !v->level || !view_make_rows (&v->before, n, total, v->arena, err) ||
      !view_make_rows (&v->after, n, total, v->arena, err))
    return false;
  memset (writer, 0xff, (size_t)v->n_tensors * sizeof *writer);
  memset (seen, 0xff, (size_t)n * sizeof *seen);
  for (int32_t k = 0; k < n; k++) {
    const op *o = &v->trace->ops[k];
    v->before.offset[k + 1] = v->before.offset[k];
    for (int32_t j = 0; j < o->reads.count; j++)
      add_before (v, k, writer[o->reads.at[j]], seen);
    for (int32_t j = v->before.offset[k]; j < v->before.offset[k + 1]; j++) {
      int32_t level = v->level[v->before.at[j]] + 1;
      v->level[k] = level > v->level[k] ? level : v->level[k];
    }
    for (int32_t j = 0; j < o->writes.count; j++)
      writer[o->writes.at[j]] = k;
  }
  for (int32_t j = 0; j < v->before.offset[n]; j++)
    v->after.offset[v->before.at[j] + 1]++;
  for (int32_t k = 0; k < n; k++)
    v->after.offset[k + 1] += v->after.offset[k];
  int32_t *next = NEW (v->arena, n, int32_t, err);
  if (!next)
    return false;
  memcpy (next, v->after.offset, (size_t)n * sizeof *next);
  for (int32_t k = 0; k < n; k++)
    for (int32_t j = v->before.offset[k]; j < v->before.offset[k + 1]; j++)
      v->after.at[next[v->before.at[j]]++] = k;
  return true;
}

bool view_reaches (const policy_view *v, int32_t from, int32_t to, uint8_t *seen) {
  memset (seen, 0, (size_t)v->n_ops);
  seen[to] = 1;
  for (int32_t k = to; k >= from; k--)
    for (int32_t j = v->before.offset[k]; seen[k] && j < v->before.offset[k + 1]; j++)
      seen[v->before.at[j]] = 1;
  return seen[from];
}

/* ---- layers ---- */

static view_class class_of_compute (compute_kind kind) {
  switch (kind) {
  case COMPUTE_conv_fwd:
  case COMPUTE_deconv_fwd:
    return CLASS_CONV;
  case COMPUTE_linear_fwd:
    return CLASS_FC;
  case COMPUTE_add:
    return CLASS_JOIN;
  case COMPUTE_concat_fwd:
    return CLASS_CONCAT;
  default:
    return CLASS_OTHER;
  }
}

/* Imported traces have names only. */
static view_class class_of_name (const char *name) {
  static const struct {
    const char *word;
    view_class class;
  } words[] = { { "conv", CLASS_CONV }, { "linear", CLASS_FC },     { "gemm", CLASS_FC },
                { "addmm", CLASS_FC },  { "concat", CLASS_CONCAT }, { "add", CLASS_JOIN } };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasestr (name, words[i].word))
      return words[i].class;
  return CLASS_OTHER;
}

static bool fill_classes (policy_view *v, error *err) {
  if (!ALLOC (v->arena, v->class, v->n_ops, err))
    return false;
  for (int32_t k = 0; k < v->n_ops; k++) {
    const op *o = &v->trace->ops[k];
    compute c;
    error why = { 0 }; /* a description that is not one of ours says nothing here: the name does */
    if (o->compute && compute_parse (o->compute, &c, &why))
      v->class[k] = (uint8_t)class_of_compute (c.kind);
    else
      v->class[k] = (uint8_t)class_of_name (o->name);
  }
  return true;
}

/* The part of an op's name before its last dot. */
typedef struct stem {
  const char *name;
  size_t length;
  int32_t op;
} stem;

static bool has_stem (const op *o, int32_t k, stem *out) {
  const char *dot = strrchr (o->name, '.');
  *out = (stem){ o->name, dot ? (size_t)(dot - o->name) : 0, k };
  return dot;
}

static int by_text (const stem *x, const stem *y) {
  size_t both = x->length < y->length ? x->length : y->length;
  int order = memcmp (x->name, y->name, both);
  return order ? order : (x->length > y->length) - (x->length < y->length);
}

static int by_text_then_op (const void *a, const void *b) {
  const stem *x = a, *y = b;
  return by_text (x, y) ?: ORDER (x->op, y->op);
}

/* The forward ops' stems, by text. */
typedef struct stems {
  stem *at;
  int32_t count;
} stems;

static bool find_stems (const policy_view *v, arena *a, stems *out, error *err) {
  *out = (stems){ .at = NEW (a, v->first_backward, stem, err) };
  if (!out->at)
    return false;
  for (int32_t k = 0; k < v->first_backward; k++)
    out->count += has_stem (&v->trace->ops[k], k, &out->at[out->count]);
  qsort (out->at, (size_t)out->count, sizeof *out->at, by_text_then_op);
  return true;
}

/* The last forward op of the same stem. */
static int32_t by_name (const policy_view *v, const stems *s, int32_t k) {
  stem own;
  if (!has_stem (&v->trace->ops[k], k, &own))
    return NO_OP;
  int32_t first = FIRST_WHERE (i, 0, s->count, by_text (&s->at[i], &own) > 0);
  return first > 0 && by_text (&s->at[first - 1], &own) == 0 ? s->at[first - 1].op : NO_OP;
}

/* The last forward op that reads something that backward op k reads too. */
static int32_t by_operand (const policy_view *v, int32_t k) {
  const index_list *reads = &v->trace->ops[k].reads;
  int32_t best = NO_OP;
  for (int32_t j = 0; j < reads->count; j++) {
    int32_t x = reads->at[j];
    for (int32_t i = v->uses.offset[x]; i < v->uses.offset[x + 1]; i++) {
      const use *u = &v->uses.at[i];
      if (u->op < v->first_backward && u->reads && u->op > best)
        best = u->op;
    }
  }
  return best;
}

static void fill_layers_by (policy_view *v, const stems *s) {
  for (int32_t k = 0; k < v->n_ops; k++) {
    v->layer[k] = NO_OP;
    if (k < v->first_backward || v->trace->ops[k].phase == OP_UPDATE)
      continue;
    v->layer[k] = by_name (v, s, k);
    if (v->layer[k] == NO_OP)
      v->layer[k] = by_operand (v, k);
    if (v->layer[k] == NO_OP && k > v->first_backward)
      v->layer[k] = v->layer[k - 1];
  }
}

static bool fill_layers (policy_view *v, error *err) {
  stems s;
  arena *own = arena_made (err);
  v->layer = NEW (v->arena, v->n_ops, int32_t, err);
  bool ok = own && v->layer && find_stems (v, own, &s, err);
  if (ok)
    fill_layers_by (v, &s);
  arena_free (own);
  return ok;
}

bool view_add_graph (policy_view *v, error *err) {
  return fill_graph (v, err) && fill_classes (v, err) && fill_layers (v, err);
}
