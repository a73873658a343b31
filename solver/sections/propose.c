/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One form in one number of parts, as a list of sections. */
#include <assert.h>

#include "solver/sections/sections.h"

const char *const sections_form_names[SECTIONS_FORMS + 1] = {
  "level", "level-tight", "depth", "depth-tight", "depth-phases", NULL,
};

/* ---- chains ---- */

/* read_in and written_in: per tensor, first + 1 of the chain that reads it without writing it, or
   writes it, whole. */
static bool may_follow (const trace *t, int32_t k, int32_t mark, const int32_t *read_in,
                        const int32_t *written_in) {
  const op *o = &t->ops[k];
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t y = o->writes.at[j];
    if (!t->tensors[y].split &&
        ((written_in[y] == mark && !list_has (&o->reads, y)) || read_in[y] == mark))
      return false;
  }
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t y = o->reads.at[j];
    if (!t->tensors[y].split && written_in[y] == mark && !list_has (&o->writes, y))
      return false;
  }
  return true;
}

int32_t sections_chain_end (const trace *t, int32_t first, int32_t end, int64_t parts,
                            int32_t *read_in, int32_t *written_in) {
  assert (first >= 0 && first < end && end <= t->n_ops && parts > 1);
  int32_t mark = first + 1, k = first;
  for (; k < end && t->ops[k].parts >= parts; k++) {
    const op *o = &t->ops[k];
    if (!may_follow (t, k, mark, read_in, written_in))
      return k;
    for (int32_t j = 0; j < o->writes.count; j++)
      if (!t->tensors[o->writes.at[j]].split)
        written_in[o->writes.at[j]] = mark;
    for (int32_t j = 0; j < o->reads.count; j++)
      if (!t->tensors[o->reads.at[j]].split && !list_has (&o->writes, o->reads.at[j]))
        read_in[o->reads.at[j]] = mark;
  }
  return k;
}

/* ---- proposals ---- */

/* [*from, *to): the ops from the first that is over the budget while nothing moves to the last. */
static bool tight_ops (const trace *t, const solve_options *o, arena *a, int32_t *from, int32_t *to,
                       error *err) {
  arena_mark mark = arena_here (a);
  counted_step *step = NEW (a, 1, counted_step, err);
  bool ok = step && step_count_bytes (t, o->budget_bytes, a, step, err);
  const gaps *g = ok ? &step->gaps : NULL;
  *from = *to = 0;
  for (int32_t k = 0; ok && k < t->n_ops; k++)
    if (g->base_bytes[k] - g->unused_bytes > g->room_bytes) {
      *from = *to ? *from : k;
      *to = k + 1;
    }
  arena_back (a, mark);
  return ok;
}

bool sections_propose (const trace *t, const solve_options *o, sections_form form, int64_t parts,
                       arena *a, variant *out, error *err) {
  assert (parts > 0 && form >= 0 && form < SECTIONS_FORMS);
  int32_t from = 0, to = t->n_ops;
  bool depth = form >= SECTIONS_DEPTH_ALL;
  bool tight = form == SECTIONS_LEVEL_TIGHT || form == SECTIONS_DEPTH_TIGHT;
  *out = (variant){ .name = sections_form_names[form] };
  out->sections = NEW (a, t->n_ops, section, err);
  int32_t *read_in = NEW (a, t->n_tensors, int32_t, err);
  int32_t *written_in = NEW (a, t->n_tensors, int32_t, err);
  if (!out->sections || !read_in || !written_in || (tight && !tight_ops (t, o, a, &from, &to, err)))
    return false;
  for (int32_t k = from; k < to;) {
    if (t->ops[k].parts < parts) {
      k++;
      continue;
    }
    int32_t stop = k + 1;
    while (stop < to && t->ops[stop].parts >= parts &&
           (form != SECTIONS_DEPTH_PHASES || t->ops[stop].phase == t->ops[k].phase))
      stop++;
    if (depth)
      stop = sections_chain_end (t, k, stop, parts, read_in, written_in);
    section_order order = depth && stop > k + 1 ? SECTION_DEPTH : SECTION_LEVEL;
    section *last = out->n_sections ? &out->sections[out->n_sections - 1] : NULL;
    if (order == SECTION_LEVEL && last && last->order == SECTION_LEVEL && last->end == k)
      last->end = stop;
    else
      out->sections[out->n_sections++] = (section){ k, stop, parts, order };
    k = stop;
  }
  return true;
}
