/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/unit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

enum { PLACE = 512 }; /* members of a group or of the pool are rounded up to it */

int64_t unit_member_bytes (int64_t bytes) {
  return (bytes + PLACE - 1) / PLACE * PLACE;
}

/* Touched by an op or persistent; else it is nothing. */
static bool is_something (const trace *t, const uses *u, int32_t x) {
  return uses_count (u, x) > 0 || t->tensors[x].persistent;
}

static bool join_groups (const trace *t, const uses *tensor_uses, const index_list *groups,
                         int32_t n_groups, units *out, error *err) {
  for (int32_t g = 0; g < n_groups; g++) {
    unit_info *unit = &out->at[t->n_tensors + g];
    if (groups[g].count < 1)
      return error_set (err, ERR_input, "group %d has no tensor", g);
    for (int32_t i = 0; i < groups[g].count; i++) {
      int32_t x = groups[g].at[i];
      if (x < 0 || x >= t->n_tensors || !is_something (t, tensor_uses, x))
        return error_set (err, ERR_input, "group %d names tensor %d, which is nothing", g, x);
      if (out->group_of[x] >= 0)
        return error_set (err, ERR_input, "tensor %d is in two groups, %d and %d", x,
                          out->group_of[x], g);
      if (i > 0 && t->tensors[x].persistent != unit->persistent)
        return error_set (err, ERR_input, "group %d mixes persistent and other tensors", g);
      out->group_of[x] = g;
      unit->bytes += unit_member_bytes (t->tensors[x].bytes);
      unit->persistent = t->tensors[x].persistent;
      unit->pinned |= t->tensors[x].pinned;
      unit->whole |= t->tensors[x].whole;
    }
  }
  return true;
}

/* Whoever adds up units, or multiplies them by a rate, may do so in 64 bits and in 128. */
static bool fit_together (const trace *t, const uses *u, error *err) {
  int64_t total = 0;
  for (int32_t x = 0; x < t->n_tensors && total <= MOST_UNITS_BYTES; x++)
    total += is_something (t, u, x) ? unit_member_bytes (t->tensors[x].bytes) : 0;
  return total <= MOST_UNITS_BYTES ||
         error_set (err, ERR_input, "the tensors of this trace add up to more than 2^60 bytes");
}

/* The members' uses merged: sorted by op with a marker per op, since members are few and their rows
   are sorted already. */
static int compare_uses (const void *a, const void *b) {
  return order_int32 (&((const use *)a)->op, &((const use *)b)->op);
}

static int32_t merge_group (const index_list *group, const uses *u, use *to) {
  int32_t n = 0, kept = 0;
  for (int32_t i = 0; i < group->count; i++) {
    int32_t x = group->at[i];
    memcpy (to + n, u->at + u->offset[x], (size_t)uses_count (u, x) * sizeof *to);
    n += uses_count (u, x);
  }
  qsort (to, (size_t)n, sizeof *to, compare_uses);
  for (int32_t i = 0; i < n; i++)
    if (kept > 0 && to[kept - 1].op == to[i].op) {
      to[kept - 1].reads |= to[i].reads;
      to[kept - 1].writes |= to[i].writes;
    } else
      to[kept++] = to[i];
  return kept;
}

static void fill_uses (const trace *t, const uses *u, const index_list *groups, units *out) {
  int32_t used = 0;
  for (int32_t i = 0; i < out->count; i++) {
    out->use_offset[i] = used;
    if (out->at[i].bytes == 0)
      continue;
    if (i < t->n_tensors) {
      memcpy (out->uses + used, u->at + u->offset[i], (size_t)uses_count (u, i) * sizeof (use));
      used += uses_count (u, i);
    } else
      used += merge_group (&groups[i - t->n_tensors], u, out->uses + used);
    out->at[i].first = used > out->use_offset[i] ? out->uses[out->use_offset[i]].op : NO_OP;
    out->at[i].last = used > out->use_offset[i] ? out->uses[used - 1].op : NO_OP;
  }
  out->use_offset[out->count] = used;
}

bool units_of (const trace *t, const index_list *groups, int32_t n_groups, int64_t granule_bytes,
               int64_t pool_below_bytes, arena *a, units *out, error *err) {
  assert (granule_bytes > 0);
  uses u;
  if (!uses_of (t, a, &u, err) || !fit_together (t, &u, err))
    return false;
  *out = (units){ .trace = t, .count = t->n_tensors + n_groups };
  if (!ALLOC (a, out->at, out->count, err) || !ALLOC (a, out->group_of, t->n_tensors, err) ||
      !ALLOC (a, out->use_offset, (int64_t)out->count + 1, err) ||
      !ALLOC (a, out->uses, u.offset[t->n_tensors], err))
    return false;
  memset (out->group_of, 0xff, (size_t)t->n_tensors * sizeof *out->group_of);
  for (int32_t i = 0; i < out->count; i++)
    out->at[i].first = out->at[i].last = NO_OP;
  if (!join_groups (t, &u, groups, n_groups, out, err))
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    if (out->group_of[x] >= 0 || !is_something (t, &u, x))
      continue;
    if (t->tensors[x].bytes < pool_below_bytes)
      out->pool_bytes += unit_member_bytes (t->tensors[x].bytes);
    else
      out->at[x] = (unit_info){ .bytes = t->tensors[x].bytes,
                                .persistent = t->tensors[x].persistent,
                                .pinned = t->tensors[x].pinned,
                                .whole = t->tensors[x].whole,
                                .first = NO_OP,
                                .last = NO_OP };
  }
  for (int32_t i = 0; i < out->count; i++)
    out->at[i].granules = units_div_up (out->at[i].bytes, granule_bytes);
  fill_uses (t, &u, groups, out);
  return true;
}

int64_t unit_part_first (const unit_info *u, int32_t part, int32_t of) {
  assert (of > 0);
  return units_scale (part, u->granules, of);
}

int64_t unit_part_bytes (const unit_info *u, int64_t granule_bytes, int32_t part, int32_t of) {
  int64_t first = unit_part_first (u, part, of) * granule_bytes;
  int64_t end = unit_part_first (u, part + 1, of) * granule_bytes;
  return (end < u->bytes ? end : u->bytes) - first;
}
