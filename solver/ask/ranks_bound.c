/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/ask/ranks_bound.h"

#include "base/order.h"
#include "solver/flow/step.h"

/* Tensors that no op of a step writes: what the host has of them may be good for ever. */
static bool mark_written (const trace *t, arena *a, bool **out, error *err) {
  *out = NEW (a, t->n_tensors, bool, err);
  for (int32_t k = 0; *out && k < t->n_ops; k++)
    for (int32_t i = 0; i < t->ops[k].writes.count; i++)
      (*out)[t->ops[k].writes.at[i]] = true;
  return *out;
}

/* Per op, the bytes of tensors that no op writes and that may be away there. */
static int64_t *clean_bytes (const gaps *g, const bool *written, arena *a, error *err) {
  int64_t *clean = NEW (a, (int64_t)g->n_ops + 1, int64_t, err);
  for (int32_t i = 0; clean && i < g->count; i++) {
    const gap *x = &g->at[i];
    int64_t bytes = g->units->at[x->unit].bytes;
    if (x->unused || written[x->unit])
      continue;
    clean[x->after + 1] += bytes;
    clean[x->before] -= bytes;
    clean[0] += x->before <= x->after ? bytes : 0;
  }
  for (int32_t k = 0; clean && k < g->n_ops; k++)
    clean[k + 1] += clean[k];
  return clean;
}

/* The bytes that are away at an op came in again in that step. Those that a step writes also went
   out in it, since the host had older ones. */
static void count_crossing (const trace *t, const gaps *g, const int64_t *clean, crossing *out) {
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t in = g->base_bytes[k] - g->unused_bytes - g->room_bytes - g->slack_bytes[k];
    int64_t both = max_of (0, in) + max_of (0, in - clean[k]);
    out->bytes[WAY_in] = max_of (out->bytes[WAY_in], in);
    out->bytes[WAY_out] = max_of (out->bytes[WAY_out], in - clean[k]);
    out->both_bytes = max_of (out->both_bytes, both);
  }
}

bool crossing_of (const trace *t, int64_t budget_bytes, crossing *out, error *err) {
  arena *scratch = arena_made (err);
  counted_step s;
  bool *written;
  *out = (crossing){ 0 };
  bool ok = scratch && step_count_bytes (t, budget_bytes, scratch, &s, err) &&
            mark_written (t, scratch, &written, err);
  const int64_t *clean = ok ? clean_bytes (&s.gaps, written, scratch, err) : NULL;
  if (clean)
    count_crossing (t, &s.gaps, clean, out);
  arena_free (scratch);
  return clean;
}

static int64_t carried_ns (__int128 bytes, int64_t rate) {
  __int128 ns = bytes * 1000000000 / rate;
  return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

/* A group never carries more than one way's rate, nor, both ways together, than the largest of
   these and of what it carries both ways. */
int64_t crossing_ns (const host_group *g, const crossing *ranks, int32_t n) {
  __int128 out = 0, in = 0, both = 0;
  int64_t most =
      max_of (max_of (g->one_way[WAY_out], g->one_way[WAY_in]), g->both[WAY_out] + g->both[WAY_in]);
  for (int32_t i = 0; i < n; i++)
    if (g->cards >> i & 1) {
      out += ranks[i].bytes[WAY_out];
      in += ranks[i].bytes[WAY_in];
      both += ranks[i].both_bytes;
    }
  return max_of (carried_ns (both, most), max_of (carried_ns (out, g->one_way[WAY_out]),
                                                  carried_ns (in, g->one_way[WAY_in])));
}
