/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

bool slots_from (const int32_t *first, int32_t count, int32_t n_ops, arena *a, slots *out,
                 error *err) {
  assert (count > 0 && n_ops >= count && first[0] == 0);
  if (count < 1 || first[0] != 0 || first[count - 1] >= n_ops)
    return error_set (err, ERR_input, "slots do not begin at op 0 and end with op %d", n_ops - 1);
  *out = (slots){ .count = count };
  out->first = NEW (a, (int64_t)count + 1, int32_t, err);
  out->of_op = NEW (a, n_ops, int32_t, err);
  if (!out->first || !out->of_op)
    return false;
  memcpy (out->first, first, (size_t)count * sizeof *first);
  out->first[count] = n_ops;
  for (int32_t j = 0; j < count; j++) {
    if (out->first[j] >= out->first[j + 1])
      return error_set (err, ERR_input, "slot %d is empty", j);
    for (int32_t k = out->first[j]; k < out->first[j + 1]; k++)
      out->of_op[k] = j;
  }
  return true;
}

static const uint8_t *loose_of (const gaps *g) {
  return g->loosened ? g->loosened->loose : NULL;
}

/* Slots begin where a mark stands, inside a loose run only at a seam, and at each seam. */
static bool from_marks (const bool *begins, const gaps *g, arena *a, slots *out, error *err) {
  int32_t count = 0, n = g->n_ops;
  const uint8_t *loose = loose_of (g);
  int32_t *first = NEW (a, n, int32_t, err);
  if (!first)
    return false;
  for (int32_t k = 0; k < n; k++)
    if (k == 0 || (g->seam && g->seam[k]) || (begins[k] && !loose_follows (loose, k)))
      first[count++] = k;
  if (!slots_from (first, count, n, a, out, err))
    return false;
  out->loose = loose;
  return true;
}

bool slots_can_split (const slots *s, int32_t j) {
  assert (j >= 0 && j < s->count);
  for (int32_t k = s->first[j] + 1; k < s->first[j + 1]; k++)
    if (!loose_follows (s->loose, k))
      return true;
  return false;
}

static void alone (bool *begins, int32_t n, int32_t k) {
  begins[k] = true;
  if (k + 1 < n)
    begins[k + 1] = true;
}

static bool over (const gaps *g, int32_t k) {
  return g->base_bytes[k] > g->room_bytes;
}

/* The op of [first, end) that is furthest over the budget, or NO_OP. */
static int32_t worst_op (const gaps *g, int32_t first, int32_t end) {
  int32_t worst = NO_OP;
  for (int32_t k = first; k < end; k++)
    if (over (g, k) && (worst == NO_OP || g->base_bytes[k] > g->base_bytes[worst]))
      worst = k;
  return worst;
}

bool slots_each (const gaps *g, arena *a, slots *out, error *err) {
  assert (g->n_ops > 0);
  bool *begins = NEW (a, g->n_ops, bool, err);
  if (!begins)
    return false;
  memset (begins, true, (size_t)g->n_ops);
  return from_marks (begins, g, a, out, err);
}

static int by_size (const void *x, const void *y) {
  return order_int64 (y, x); /* the largest first */
}

/* Ops whose traffic alone fills the link for a block; no more of them than blocks, or a trace where
   every op has such tensors would not be merged at all. */
static bool mark_hubs (const gaps *g, double block_ns, int32_t blocks, const device *dev,
                       bool *begins, arena *a, error *err) {
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  int32_t n = g->n_ops;
  int64_t *out = NEW (a, n, int64_t, err), *in = NEW (a, n, int64_t, err);
  int64_t *sorted = NEW (a, n, int64_t, err);
  if (!out || !in || !sorted)
    return false;
  for (int32_t i = 0; i < g->count; i++)
    if (g->at[i].useful && !g->at[i].unused) {
      out[g->at[i].release] += gaps_room (g, g->at[i].unit);
      in[g->at[i].before] += gaps_room (g, g->at[i].unit);
    }
  for (int32_t k = 0; k < n; k++)
    sorted[k] = out[k] = out[k] > in[k] ? out[k] : in[k];
  qsort (sorted, (size_t)n, sizeof *sorted, by_size);
  int64_t rate = r.out_alone < r.in_alone ? r.out_alone : r.in_alone;
  double least = block_ns * (double)rate / 1e9;
  if (n > blocks && (double)sorted[blocks] > least)
    least = (double)sorted[blocks];
  for (int32_t k = 0; k < n; k++)
    if ((double)out[k] > least)
      alone (begins, n, k);
  return true;
}

bool slots_blocks (const gaps *g, const device *dev, int32_t blocks, int64_t step_ns, arena *a,
                   slots *out, error *err) {
  assert (blocks > 0 && step_ns >= 0);
  int32_t n = g->n_ops, first = 0;
  const op *ops = g->units->trace->ops;
  bool *begins = NEW (a, n, bool, err);
  double block_ns = (double)trace_total_ns (g->units->trace) / blocks, at_ns = 0;
  if (!begins || !mark_hubs (g, (double)step_ns / blocks, blocks, dev, begins, a, err))
    return false;
  int64_t block = 0;
  for (int32_t k = 0; k < n; k++) {
    at_ns += (double)(ops[k].ns + ops[k].gap_ns);
    int64_t now = block_ns > 0 ? (int64_t)(at_ns / block_ns) : 0;
    if (now == block && k + 1 < n)
      continue;
    int32_t worst = worst_op (g, first, k + 1);
    begins[first] = true;
    if (worst != NO_OP)
      alone (begins, n, worst);
    block = now;
    first = k + 1;
  }
  return from_marks (begins, g, a, out, err);
}

typedef struct candidate {
  double score;
  int32_t slot;
} candidate;

static int by_score (const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->score != b->score)
    return a->score < b->score ? 1 : -1;
  return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static void split_one (const gaps *g, int32_t first, int32_t end, bool *begins) {
  const op *ops = g->units->trace->ops;
  int32_t worst = worst_op (g, first, end);
  if (worst != NO_OP) {
    alone (begins, g->n_ops, worst);
    return;
  }
  int64_t total_ns = 0, at_ns = 0;
  int32_t split = NO_OP;
  for (int32_t k = first; k < end; k++)
    total_ns += ops[k].ns + ops[k].gap_ns;
  for (int32_t k = first; k + 1 < end && (split == NO_OP || 2 * at_ns < total_ns); k++) {
    at_ns += ops[k].ns + ops[k].gap_ns;
    if (!loose_follows (loose_of (g), k + 1))
      split = k + 1;
  }
  if (split != NO_OP)
    begins[split] = true;
}

bool slots_split (const gaps *g, const slots *from, const double *score, int32_t splits, arena *a,
                  slots *out, error *err) {
  assert (splits > 0 && score && from->count > 0);
  candidate *list = NEW (a, from->count, candidate, err);
  bool *begins = NEW (a, g->n_ops, bool, err);
  int32_t n = 0;
  if (!list || !begins)
    return false;
  for (int32_t j = 0; j < from->count; j++) {
    begins[from->first[j]] = true;
    if (slots_can_split (from, j) && score[j] > 0)
      list[n++] = (candidate){ score[j], j };
  }
  if (!n)
    return false;
  qsort (list, (size_t)n, sizeof *list, by_score);
  for (int32_t i = 0; i < n && i < splits; i++)
    split_one (g, from->first[list[i].slot], from->first[list[i].slot + 1], begins);
  return from_marks (begins, g, a, out, err);
}
