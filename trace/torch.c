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
  bool *once;           /* written by an op that cannot run again */
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

/* An op that can run again says which results it has. */
static void mark_once (const op *o, const json *note, bool *once) {
  json list = json_member (note, "out");
  for (int32_t j = 0; j < o->writes.count && json_count (&list) == 0; j++)
    once[o->writes.at[j]] |= !list_has (&o->side, o->writes.at[j]);
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
  json note = json_root (d);
  bool ok = (json_read_word (&note, "kind", kinds, &kind, &why) && kind == 0) || not_ours (k, err);
  ok = ok && note_ops (&note, "free", t->n_tensors, k, n->free_after, err) &&
       note_ops (&note, "unpack", t->n_tensors, k, n->back_before, err) &&
       read_leaves (&note, t->n_tensors, n->leaves, err);
  mark_once (&t->ops[k], &note, n->once);
  json_close (d);
  return ok;
}

static bool read_notes (const trace *t, arena *a, notes *n, error *err) {
  if (!ALLOC (a, n->free_after, t->n_tensors, err) ||
      !ALLOC (a, n->back_before, t->n_tensors, err) || !ALLOC (a, n->leaves, t->n_tensors, err) ||
      !ALLOC (a, n->once, t->n_tensors, err))
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++)
    n->free_after[x] = n->back_before[x] = NO_OP;
  for (int32_t k = 0; k < t->n_ops; k++)
    if (!read_note (t, k, n, err))
      return false;
  return true;
}

/* Saved, freed by the program, and unpacked only later. */
static bool is_saved (const notes *n, const tensor *x, int32_t i) {
  return !x->persistent && n->free_after[i] != NO_OP && n->free_after[i] + 1 < n->back_before[i];
}

static tensor_again again_of (const notes *n, const tensor *x, int32_t i) {
  if (x->persistent || x->born_before != NO_OP || n->once[i])
    return AGAIN_NEVER;
  return is_saved (n, x, i) ? AGAIN_STAYS : AGAIN_PASSES;
}

/* Stretches of ops [first, last] during which a tensor has to be there, though none may use it. */
typedef struct stretch {
  int32_t tensor, first, last;
} stretch;

static int32_t stretches_of (const trace *t, const uses *u, const notes *n, stretch *out) {
  int32_t count = 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const use *of = u->at + u->offset[x];
    bool saved = is_saved (n, &t->tensors[x], x);
    if (uses_count (u, x) == 0 || (!saved && again_of (n, &t->tensors[x], x) != AGAIN_PASSES))
      continue;
    int32_t last = of[uses_count (u, x) - 1].op;
    out[count++] = (stretch){ x, of[0].op, saved ? n->free_after[x] : last };
    if (saved)
      out[count++] = (stretch){ x, n->back_before[x], last };
  }
  return count;
}

/* The rooms of an op's lists; 0: a list is still another's. */
typedef struct rooms {
  int64_t reads, side;
} rooms;

static bool add_to (index_list *list, int32_t tensor, int64_t *room, arena *a, error *err) {
  const int32_t *before = list->at;
  bool foreign = *room == 0;
  int32_t *more =
      arena_grow (a, foreign ? NULL : list->at, room, (int64_t)list->count + 1, sizeof *more, err);
  if (!more)
    return false;
  if (foreign && list->count > 0)
    memcpy (more, before, (size_t)list->count * sizeof *more);
  list->at = more;
  list->at[list->count++] = tensor;
  return true;
}

/* The ops' lists with what has to be there read as well: on the side, for a copy does not ask. */
static bool hold (int32_t n_ops, const stretch *held, int32_t n_held, arena *a, op *ops,
                  error *err) {
  rooms *room = NEW (a, n_ops, rooms, err);
  if (!room)
    return false;
  for (int32_t i = 0; i < n_held; i++)
    for (int32_t k = held[i].first; k <= held[i].last; k++) {
      op *o = &ops[k];
      if (op_touches (o, held[i].tensor))
        continue;
      if (!add_to (&o->reads, held[i].tensor, &room[k].reads, a, err) ||
          !add_to (&o->side, held[i].tensor, &room[k].side, a, err))
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
    out->tensors[x].again = (uint8_t)again_of (&n, &t->tensors[x], x);
    out->tensors[x].pinned |=
        !n.leaves[x] && !is_saved (&n, &t->tensors[x], x) && out->tensors[x].again != AGAIN_PASSES;
  }
  return hold (t->n_ops, held, stretches_of (t, &u, &n, held), a, out->ops, err);
}
