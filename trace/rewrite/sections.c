/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops cut along the batch.  A split tensor is cut where any of its users is, so a user of few parts
   touches several pieces; pieces are numbered as the new ops first name them. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/rewrite/emit.h"

enum { MOST_ROWS = INT32_MAX / 4 };

/* The boundaries of one cut tensor, 0 and the batch included, and its pieces' numbers. */
typedef struct cut {
  int64_t *at;
  int32_t *pieces; /* -1: not named yet */
  int64_t count;   /* of pieces; 0: the tensor is not cut */
} cut;

typedef struct cutting {
  const trace *t;
  const section *sections;
  int32_t n_sections;
  int64_t section_ns;
  emit e;
  int32_t *section_of;             /* per op, or -1 */
  cut *cuts;                       /* per tensor */
  int32_t *first_part, *last_part; /* per op: its place in the new order */
} cutting;

static int64_t parts_of (const cutting *c, int32_t op) {
  return c->section_of[op] < 0 ? 1 : c->sections[c->section_of[op]].parts;
}

static int64_t boundary (const cutting *c, int64_t part, int64_t parts) {
  return units_scale (part, c->t->batch, parts);
}

/* ---- the request ---- */

static bool refuse_section (const cutting *c, int32_t s, const char *text, int64_t value,
                            int64_t limit) {
  char where[64];
  snprintf (where, sizeof where, "/sections/%d", s);
  return error_at (c->e.err, ERR_input, where, text, (long long)value, (long long)limit);
}

static bool mark_section (cutting *c, int32_t s) {
  const section *x = &c->sections[s];
  if (x->first < 0 || x->first >= x->end || x->end > c->t->n_ops)
    return refuse_section (c, s, "the range of ops is empty or passes op %lld of %lld", x->end,
                           c->t->n_ops);
  if (s > 0 && x->first < c->sections[s - 1].end)
    return refuse_section (c, s, "op %lld stands before the end of the section before, %lld",
                           x->first, c->sections[s - 1].end);
  if (x->parts < 2 || x->parts > c->t->batch)
    return refuse_section (c, s, "%lld parts are not between 2 and the batch, %lld", x->parts,
                           c->t->batch);
  if (x->parts > MOST_ROWS / (x->end - x->first))
    return refuse_section (c, s, "%lld parts of each op make more than %lld ops", x->parts,
                           MOST_ROWS);
  for (int32_t i = x->first; i < x->end; i++) {
    if (x->parts > c->t->ops[i].parts)
      return refuse_section (c, s, "op %lld runs in at most %lld parts", i, c->t->ops[i].parts);
    c->section_of[i] = s;
  }
  return true;
}

/* Part 0 runs through the whole range before part 1: a whole tensor that an op of the range writes
   must not be read, or written afresh, between its parts. `written` holds, per tensor, the last
   section that writes it. */
static bool depth_is_sound (cutting *c, int32_t s, int32_t *written) {
  const section *x = &c->sections[s];
  const trace *t = c->t;
  for (int32_t i = x->first; i < x->end; i++) {
    const op *o = &t->ops[i];
    for (int32_t j = 0; j < o->writes.count; j++) {
      int32_t y = o->writes.at[j];
      if (!t->tensors[y].split && written[y] == s && !list_has (&o->reads, y))
        return refuse_section (
            c, s, "depth first: op %lld writes whole tensor %lld afresh between parts", i, y);
      written[y] = s;
    }
  }
  for (int32_t i = x->first; i < x->end; i++) {
    const op *o = &t->ops[i];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t y = o->reads.at[j];
      if (!t->tensors[y].split && written[y] == s && !list_has (&o->writes, y))
        return refuse_section (
            c, s, "depth first: op %lld reads whole tensor %lld between its parts", i, y);
    }
  }
  return true;
}

static bool look (cutting *c) {
  int32_t *written = NEW (c->e.arena, c->t->n_tensors, int32_t, c->e.err);
  if (!written)
    return false;
  memset (written, 0xff, (size_t)c->t->n_tensors * sizeof *written);
  memset (c->section_of, 0xff, (size_t)c->t->n_ops * sizeof *c->section_of);
  for (int32_t s = 0; s < c->n_sections; s++)
    if (!mark_section (c, s) ||
        (c->sections[s].order == SECTION_DEPTH && !depth_is_sound (c, s, written)))
      return false;
  return true;
}

/* ---- cuts of tensors ---- */

/* Merges the boundaries of `parts` into those that are there. */
static bool add_boundaries (cutting *c, cut *x, int64_t parts) {
  error *err = c->e.err;
  int64_t *merged = NEW (c->e.arena, x->count + parts + 1, int64_t, err);
  if (!merged)
    return false;
  int64_t n = 0, i = 0, j = 0;
  while (j <= parts || (x->count && i <= x->count)) {
    bool old = x->count && i <= x->count;
    int64_t b = j <= parts ? boundary (c, j, parts) : INT64_MAX;
    int64_t least = old && x->at[i] < b ? x->at[i] : b;
    i += old && x->at[i] == least;
    j += b == least;
    merged[n++] = least;
  }
  x->at = merged;
  x->count = n - 1;
  return true;
}

/* A tensor's users in one section share their boundaries, and neighbours are many: remember the
   last section whose boundaries a tensor has got. */
static bool cut_tensors (cutting *c) {
  const trace *t = c->t;
  int32_t *last = NEW (c->e.arena, t->n_tensors, int32_t, c->e.err);
  if (!last)
    return false;
  memset (last, 0xff, (size_t)t->n_tensors * sizeof *last);
  for (int32_t i = 0; i < t->n_ops; i++) {
    const index_list *lists[] = { &t->ops[i].reads, &t->ops[i].writes };
    if (c->section_of[i] < 0)
      continue;
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++) {
        int32_t x = lists[which]->at[j];
        if (!t->tensors[x].split || last[x] == c->section_of[i])
          continue;
        last[x] = c->section_of[i];
        if (!add_boundaries (c, &c->cuts[x], parts_of (c, i)))
          return false;
      }
  }
  for (int32_t x = 0; x < t->n_tensors; x++) {
    cut *k = &c->cuts[x];
    if (!k->count)
      continue;
    if (!ALLOC (c->e.arena, k->pieces, k->count, c->e.err))
      return false;
    memset (k->pieces, 0xff, (size_t)k->count * sizeof *k->pieces);
    c->e.made->tensors[x].persistent = false; /* it is nothing from now on */
  }
  return true;
}

/* ---- the new ops ---- */

static int64_t piece_at (const cut *k, int64_t item) {
  int64_t low = 0, high = k->count;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (k->at[middle] < item)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool name_piece (cutting *c, int32_t tensor, int64_t piece) {
  cut *k = &c->cuts[tensor];
  struct tensor like = c->t->tensors[tensor];
  origin from = { .index = tensor, .first_item = k->at[piece], .end_item = k->at[piece + 1] };
  like.bytes = emit_share (like.bytes, from.first_item, from.end_item, c->t->batch);
  like.split = false; /* there is nothing left to cut, and it may have less than a byte an item */
  k->pieces[piece] = emit_tensor (&c->e, &like, from);
  return k->pieces[piece] >= 0;
}

static bool put_list (cutting *c, int which, const index_list *list, int64_t first, int64_t end) {
  for (int32_t i = 0; i < list->count; i++) {
    int32_t x = list->at[i];
    cut *k = &c->cuts[x];
    if (!k->count) {
      if (!emit_index (&c->e, which, x))
        return false;
      continue;
    }
    for (int64_t p = piece_at (k, first); p < k->count && k->at[p] < end; p++)
      if ((k->pieces[p] < 0 && !name_piece (c, x, p)) || !emit_index (&c->e, which, k->pieces[p]))
        return false;
  }
  return true;
}

static bool put_part (cutting *c, int32_t i, int64_t part) {
  const op *o = &c->t->ops[i];
  int64_t parts = parts_of (c, i), batch = c->t->batch;
  int64_t first = boundary (c, part, parts), end = boundary (c, part + 1, parts);
  int64_t extra_ns = part > 0 ? c->section_ns : 0;
  op like = *o;
  like.ns = emit_share (o->ns, first, end, batch) + extra_ns;
  like.workspace_bytes = emit_share (o->workspace_bytes, first, end, batch);
  like.gap_ns = part == 0 ? o->gap_ns : 0;
  if (parts > 1)
    like.parts = 1;
  if (part == 0)
    c->first_part[i] = c->e.made->n_ops;
  c->last_part[i] = c->e.made->n_ops;
  origin from = { .index = i, .first_item = first, .end_item = end };
  if (!emit_op (&c->e, &like, from, i, first, end, batch, extra_ns) ||
      !put_list (c, EMIT_READS, &o->reads, first, end))
    return false;
  /* A part adds to what an earlier one has written whole, so it is read as well. */
  for (int32_t j = 0; part > 0 && j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    if (!c->cuts[x].count && !list_has (&o->reads, x) && !emit_index (&c->e, EMIT_READS, x))
      return false;
  }
  if (!put_list (c, EMIT_WRITES, &o->writes, first, end) ||
      !put_list (c, EMIT_SIDE, &o->side, first, end))
    return false;
  for (int32_t j = 0; j < o->after.count; j++) /* the parts so far */
    if (!emit_index (&c->e, EMIT_AFTER, c->last_part[o->after.at[j]]))
      return false;
  return true;
}

static bool put_ops (cutting *c) {
  for (int32_t i = 0; i < c->t->n_ops;) {
    int32_t s = c->section_of[i];
    if (s < 0 || c->sections[s].order == SECTION_LEVEL) {
      for (int64_t part = 0; part < parts_of (c, i); part++)
        if (!put_part (c, i, part))
          return false;
      i++;
      continue;
    }
    for (int64_t part = 0; part < c->sections[s].parts; part++)
      for (int32_t k = i; k < c->sections[s].end; k++)
        if (!put_part (c, k, part))
          return false;
    i = c->sections[s].end;
  }
  return true;
}

bool rewrite_sections (const trace *t, const section *sections, int32_t n_sections,
                       int64_t section_ns, arena *a, rewritten *out, error *err) {
  assert (t && (sections || n_sections == 0));
  cutting c = { .t = t, .sections = sections, .n_sections = n_sections, .section_ns = section_ns };
  if (!emit_begin (&c.e, t, NULL, a, err))
    return false;
  if (!ALLOC (a, c.section_of, t->n_ops, err) || !ALLOC (a, c.cuts, t->n_tensors, err) ||
      !ALLOC (a, c.first_part, t->n_ops, err) || !ALLOC (a, c.last_part, t->n_ops, err) ||
      !look (&c) || !cut_tensors (&c) || !put_ops (&c))
    return false;
  for (int32_t x = 0; x < c.e.made->n_tensors; x++) {
    tensor *y = &c.e.made->tensors[x];
    if (y->born_before != NO_OP)
      y->born_before = c.first_part[y->born_before];
    if (y->dies_after != NO_OP)
      y->dies_after = c.last_part[y->dies_after];
  }
  return emit_end (&c.e, out);
}
