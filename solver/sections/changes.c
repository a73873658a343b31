/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/sections/changes.h"

#include <assert.h>
#include <string.h>

void changes_insert (changing *c, int32_t at, section s) {
  assert (at >= 0 && at <= c->n);
  memmove (c->at + at + 1, c->at + at, (size_t)(c->n - at) * sizeof *c->at);
  c->at[at] = s;
  c->n++;
}

static bool leave_out (changing *c) {
  if (c->n == 1)
    return false;
  memmove (c->at + c->i, c->at + c->i + 1, (size_t)(c->n - c->i - 1) * sizeof *c->at);
  c->n--;
  return true;
}

static bool coarser (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->sections == SECTIONS_FIXED || s->parts < 4)
    return false;
  s->parts /= 2;
  return true;
}

static bool finer (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->sections == SECTIONS_FIXED)
    return false;
  s->parts += (s->parts + 1) / 2;
  return true;
}

static bool turn_round (changing *c) {
  section *s = &c->at[c->i];
  if (c->o->section_orders != ORDERS_AUTO)
    return false;
  s->order = s->order == SECTION_DEPTH ? SECTION_LEVEL : SECTION_DEPTH;
  return true;
}

/* The op at which half of the section's time has passed. */
static int32_t middle (const changing *c) {
  const section *s = &c->at[c->i];
  int64_t all_ns = 0, ns = 0;
  int32_t k = s->first;
  for (int32_t i = s->first; i < s->end; i++)
    all_ns += c->t->ops[i].ns;
  while (k + 1 < s->end && 2 * ns < all_ns)
    ns += c->t->ops[k++].ns;
  return k > s->first ? k : s->first + 1;
}

static bool halve (changing *c) {
  section *s = &c->at[c->i], second = *s;
  if (s->end - s->first < 2)
    return false;
  s->end = second.first = middle (c);
  changes_insert (c, c->i + 1, second);
  return true;
}

/* The half that needs less memory in fewer parts: a stretch of its own. */
static bool coarser_half (changing *c, bool first) {
  if (c->o->sections == SECTIONS_FIXED || c->at[c->i].parts < 4 || !halve (c))
    return false;
  c->at[first ? c->i : c->i + 1].parts /= 2;
  return true;
}

static bool coarser_first (changing *c) {
  return coarser_half (c, true);
}

static bool coarser_second (changing *c) {
  return coarser_half (c, false);
}

static bool join (changing *c) {
  section *s = &c->at[c->i];
  if (c->i + 1 == c->n || s[1].first != s->end)
    return false;
  s->end = s[1].end;
  c->i++;
  return leave_out (c);
}

static bool longer (changing *c) {
  section *s = &c->at[c->i];
  int32_t most = c->i + 1 < c->n ? s[1].first : c->t->n_ops;
  if (s->end == most || c->t->ops[s->end].parts < s->parts)
    return false;
  s->end++;
  return true;
}

static bool shorter (changing *c) {
  section *s = &c->at[c->i];
  if (s->end - s->first < 2)
    return false;
  s->end--;
  return true;
}

static bool earlier (changing *c) {
  section *s = &c->at[c->i];
  int32_t least = c->i ? s[-1].end : 0;
  if (s->first == least || c->t->ops[s->first - 1].parts < s->parts)
    return false;
  s->first--;
  return true;
}

static bool later (changing *c) {
  section *s = &c->at[c->i];
  if (s->end - s->first < 2)
    return false;
  s->first++;
  return true;
}

bool (*const changes[]) (changing *c) = { leave_out, coarser,       finer,          turn_round,
                                          halve,     coarser_first, coarser_second, join,
                                          longer,    shorter,       earlier,        later };
_Static_assert(sizeof changes / sizeof *changes == CHANGES, "as many as the header says");
