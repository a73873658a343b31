/* SPDX-License-Identifier: GPL-3.0-or-later */
/* If no stretch of equal parts fits, since the ops may run in different numbers of them: each op by
   itself in as few as bring what it needs under the budget, or under a share of it. */
#include <assert.h>

#include "base/order.h"
#include "base/units.h"
#include "solver/sections/sections.h"
#include "trace/uses.h"

static int64_t most_parts (const trace *t, const solve_options *o, int32_t op) {
  int64_t most = t->ops[op].parts < t->batch ? t->ops[op].parts : t->batch;
  if (o->sections == SECTIONS_OFF)
    return 1;
  if (o->sections != SECTIONS_FIXED)
    return most;
  return o->section_parts <= most ? o->section_parts : 1;
}

/* Adds to each op what has to be there of tensor x, or x's share of its parts where it is split.
   What is pinned is there between its uses too, as the ops stand; `any`: in any order, or along
   chains of parts, that is known of what lives on alone. */
static void add_needs (const trace *t, const uses *u, int32_t x, const solve_options *any,
                       int64_t *whole, int64_t *shared) {
  const tensor *at = &t->tensors[x];
  int32_t from = u->offset[x], end = u->offset[x + 1], next = from;
  int32_t first = at->persistent || from == end ? 0 : u->at[from].op;
  int32_t last = at->persistent ? t->n_ops - 1 : from == end ? -1 : u->at[end - 1].op;
  bool in_parts = at->split && !at->persistent && any && any->sections != SECTIONS_OFF;
  bool stays = at->pinned && (at->persistent || !any || any->order == ORDER_AS_IS) && !in_parts;
  for (int32_t i = from; i < end; i++)
    *(at->split && (!at->pinned || in_parts) ? &shared[u->at[i].op] : &whole[u->at[i].op]) +=
        at->bytes;
  for (int32_t k = first; stays && k <= last; k++)
    if (next < end && u->at[next].op == k)
      next++;
    else
      whole[k] += at->bytes;
}

typedef struct needs {
  int64_t *whole, *shared; /* per op */
} needs;

static bool needs_of (const trace *t, const solve_options *any, arena *a, needs *out, error *err) {
  uses u;
  *out = (needs){ NEW (a, t->n_ops, int64_t, err), NEW (a, t->n_ops, int64_t, err) };
  if (!out->whole || !out->shared || !uses_of (t, a, &u, err))
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++)
    add_needs (t, &u, x, any, out->whole, out->shared);
  for (int32_t k = 0; k < t->n_ops; k++)
    out->shared[k] += t->ops[k].workspace_bytes;
  return true;
}

static int64_t bytes_in (const trace *t, const needs *n, int32_t op, int64_t parts) {
  return n->whole[op] + units_scale (n->shared[op], units_div_up (t->batch, parts), t->batch);
}

/* The fewest parts, which may be as many as a batch has items, or all where none fit. */
static int64_t fewest (const trace *t, const needs *n, int32_t op, int64_t most,
                       int64_t room_bytes) {
  int64_t low = 1, high = most;
  while (low < high) {
    int64_t parts = low + (high - low) / 2;
    if (bytes_in (t, n, op, parts) > room_bytes)
      low = parts + 1;
    else
      high = parts;
  }
  return low;
}

bool sections_fit (const trace *t, const solve_options *o, int64_t share_ppm, arena *a,
                   variant *out, error *err) {
  assert (share_ppm >= 0 && out);
  int64_t room_bytes = units_scale (o->budget_bytes, share_ppm, 1000000);
  needs n;
  *out = (variant){ .name = "each as it needs" };
  out->sections = NEW (a, t->n_ops, section, err);
  if (!out->sections || !needs_of (t, NULL, a, &n, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t most = most_parts (t, o, k), parts = fewest (t, &n, k, most, room_bytes);
    if (parts > 1 && o->sections == SECTIONS_FIXED)
      parts = most;
    if (parts > 1)
      out->sections[out->n_sections++] = (section){ k, k + 1, parts, SECTION_LEVEL };
  }
  return true;
}

bool sections_floor (const trace *t, const solve_options *o, arena *a, int64_t *bytes, error *err) {
  assert (t && bytes);
  needs n;
  *bytes = 0;
  if (!needs_of (t, o, a, &n, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    /* a part of most items has at least each share rounded down, so a byte less a list entry */
    int64_t parts = most_parts (t, o, k), slack = t->ops[k].reads.count + t->ops[k].writes.count;
    int64_t least = bytes_in (t, &n, k, parts) - (parts > 1 ? slack + 1 : 0);
    *bytes = least > *bytes ? least : *bytes;
  }
  return true;
}

bool sections_move_pins (const trace *t, const solve_options *o) {
  for (int32_t x = 0; x < t->n_tensors; x++) {
    const tensor *at = &t->tensors[x];
    if (at->pinned && !at->persistent &&
        (o->order != ORDER_AS_IS || (at->split && o->sections != SECTIONS_OFF)))
      return true;
  }
  return false;
}

bool sections_lower (const trace *t, const solve_options *o, arena *a, int64_t *bytes, error *err) {
  int64_t least;
  if (!sections_move_pins (t, o))
    return true;
  if (!sections_floor (t, o, a, &least, err))
    return false;
  *bytes = min_of (*bytes, least);
  return true;
}
