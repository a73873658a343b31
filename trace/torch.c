/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/torch.h"

#include <string.h>

#include "base/json.h"
#include "trace/uses.h"

/* The notes' words on each tensor; an op, or NO_OP. */
typedef struct notes {
  int32_t *free_after;  /* from then on only autograd holds it */
  int32_t *back_before; /* the first unpack */
  bool *leaves;         /* weights and optimizer state that hooks bring back */
} notes;

static bool note_ops (const json *note, const char *key, int32_t n, int32_t op, int32_t *of,
                      error *err) {
  json list = json_member (note, key);
  for (size_t i = 0; i < json_count (&list); i++) {
    json cell = json_element (&list, i);
    int32_t at = -1;
    if (!json_get_int32 (&cell, -1, n - 1, &at, err))
      return false;
    if (at >= 0 && of[at] == NO_OP)
      of[at] = op;
  }
  return true;
}

static bool read_leaves (const json *note, int32_t n, bool *leaves, error *err) {
  json list = json_member (note, "leave");
  for (size_t i = 0; i < json_count (&list); i++) {
    json cell = json_element (&list, i);
    int32_t at = 0;
    if (!json_get_int32 (&cell, 0, n - 1, &at, err))
      return false;
    leaves[at] = true;
  }
  return true;
}

static bool not_ours (int32_t op, error *err) {
  return error_set (err, ERR_input,
                    "op %d has no note of ferry_torch, which records where tensors are saved: "
                    "record the step with it",
                    op);
}

static bool read_note (const trace *t, int32_t k, notes *n, error *err) {
  static const char *const kinds[] = { "torch", NULL };
  const char *text = t->ops[k].compute;
  int kind = -1;
  error why = { 0 };
  json_document *d = text ? json_open (text, (int64_t)strlen (text), &why) : NULL;
  if (!d)
    return not_ours (k, err);
  json note = json_root (d), word = json_member (&note, "kind");
  bool ok = (json_get_word (&word, kinds, &kind, &why) && kind == 0) || not_ours (k, err);
  ok = ok && note_ops (&note, "free", t->n_tensors, k, n->free_after, err) &&
       note_ops (&note, "unpack", t->n_tensors, k, n->back_before, err) &&
       read_leaves (&note, t->n_tensors, n->leaves, err);
  json_close (d);
  return ok;
}

static bool read_notes (const trace *t, arena *a, notes *n, error *err) {
  n->free_after = NEW (a, t->n_tensors, int32_t, err);
  n->back_before = NEW (a, t->n_tensors, int32_t, err);
  n->leaves = NEW (a, t->n_tensors, bool, err);
  if (!n->free_after || !n->back_before || !n->leaves)
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++)
    n->free_after[x] = n->back_before[x] = NO_OP;
  for (int32_t k = 0; k < t->n_ops; k++)
    if (!read_note (t, k, n, err))
      return false;
  return true;
}

/* Saved, let go by the program, and asked for only later. */
static bool is_saved (const notes *n, const tensor *x, int32_t i) {
  return !x->persistent && n->free_after[i] != NO_OP && n->free_after[i] + 1 < n->back_before[i];
}

/* Stretches of ops [first, last] during which a tensor has to be there, though none may use it. */
typedef struct stretch {
  int32_t tensor, first, last;
} stretch;

static int32_t stretches_of (const trace *t, const uses *u, const notes *n, stretch *out) {
  int32_t count = 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    if (uses_count (u, x) == 0 || !is_saved (n, &t->tensors[x], x))
      continue;
    const use *of = u->at + u->offset[x];
    out[count++] = (stretch){ x, of[0].op, n->free_after[x] };
    out[count++] = (stretch){ x, n->back_before[x], of[uses_count (u, x) - 1].op };
  }
  return count;
}

/* `room` is that of our own list; 0: it is still another's. */
static bool add_read (op *o, int32_t tensor, int64_t *room, arena *a, error *err) {
  const int32_t *before = o->reads.at;
  bool foreign = *room == 0;
  int32_t *more = arena_grow (a, foreign ? NULL : o->reads.at, room, (int64_t)o->reads.count + 1,
                              sizeof *more, err);
  if (!more)
    return false;
  if (foreign && o->reads.count > 0)
    memcpy (more, before, (size_t)o->reads.count * sizeof *more);
  o->reads.at = more;
  o->reads.at[o->reads.count++] = tensor;
  return true;
}

/* The ops' lists with what has to be there read as well. */
static bool hold (int32_t n_ops, const stretch *held, int32_t n_held, arena *a, op *ops,
                  error *err) {
  int64_t *room = NEW (a, n_ops, int64_t, err);
  if (!room)
    return false;
  for (int32_t i = 0; i < n_held; i++)
    for (int32_t k = held[i].first; k <= held[i].last; k++) {
      op *o = &ops[k];
      if (op_touches (o, held[i].tensor))
        continue;
      if (!add_read (o, held[i].tensor, &room[k], a, err))
        return false;
    }
  return true;
}

bool trace_for_torch (const trace *t, arena *a, trace *out, error *err) {
  notes n;
  uses u;
  *out = *t;
  out->tensors = NEW (a, t->n_tensors, tensor, err);
  out->ops = NEW (a, t->n_ops, op, err);
  stretch *held = NEW (a, 2 * (int64_t)t->n_tensors, stretch, err);
  if (!out->tensors || !out->ops || !held || !read_notes (t, a, &n, err) ||
      !uses_of (t, a, &u, err))
    return false;
  memcpy (out->ops, t->ops, (size_t)t->n_ops * sizeof *t->ops);
  for (int32_t x = 0; x < t->n_tensors; x++) {
    out->tensors[x] = t->tensors[x];
    out->tensors[x].whole = true;
    out->tensors[x].pinned |= !n.leaves[x] && !is_saved (&n, &t->tensors[x], x);
  }
  return hold (t->n_ops, held, stretches_of (t, &u, &n, held), a, out->ops, err);
}
