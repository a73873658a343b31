/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/keep_kth.h"

#include <string.h>

#include "solver/recompute/drops.h"

/* The block that a name belongs to: up to its last part that is a number, or all but the last. */
static size_t block_of (const char *name) {
  size_t end = 0, last = 0;
  for (size_t i = 0; name[i]; i++)
    if (name[i] == '.') {
      last = i;
      if (i && strchr ("0123456789", name[i - 1]))
        end = i;
    }
  return end ? end : last;
}

static void choose (const trace *t, const device *d, const drop *drops, int32_t n, int32_t k,
                    bool blocks, uint8_t *chosen) {
  int32_t at = 0, last = -1;
  memset (chosen, 0, (size_t)n);
  for (int32_t i = 0; i < n; i++) {
    if (drops[i].bytes < d->granule_bytes || t->ops[drops[i].after].phase != OP_FORWARD ||
        t->ops[drops[i].before].phase == OP_FORWARD)
      continue;
    const char *name = t->tensors[drops[i].tensor].name;
    const char *before = last < 0 ? "" : t->tensors[drops[last].tensor].name;
    size_t size = block_of (name);
    bool next = !blocks || last < 0 || size != block_of (before) || memcmp (name, before, size);
    chosen[i] = blocks || at % k != 0;
    if (blocks && next && last >= 0 && at % k == 0)
      chosen[last] = 0;
    at += next;
    last = i;
  }
}

static bool try_all (const trace *t, const solve_options *o, int32_t most_k, arena *a,
                     kept_kth *out, error *err) {
  uses u;
  drop *drops;
  int32_t n;
  uint8_t *over = NEW (a, t->n_ops, uint8_t, err), *chosen;
  if (!over || !uses_of (t, a, &u, err))
    return false;
  memset (over, 1, (size_t)t->n_ops);
  if (!drops_find (&(drops_request){ .trace = t, .over = over }, a, &drops, &n, NULL, err) ||
      !(chosen = NEW (a, n, uint8_t, err)))
    return false;
  for (int32_t i = 0; i < 2 * most_k; i++) {
    arena_mark mark = arena_here (a);
    variant v = { .name = "every k-th" };
    variant_value value;
    int32_t k = i / 2 + 1;
    choose (t, o->device, drops, n, k, i % 2, chosen);
    drop_choice choice = { .chosen = chosen };
    if (!drops_entries (&(drop_list){ .trace = t, .uses = &u, .at = drops, .count = n }, &choice, a,
                        &v.recomputes, &v.n_recomputes, err) ||
        !variant_try (t, &v, o, 0, a, &value, err))
      return false;
    if (value.step_ns < out->step_ns)
      *out = (kept_kth){ value.step_ns, k, i % 2 };
    arena_back (a, mark);
  }
  return true;
}

bool keep_kth (const trace *t, const solve_options *o, int32_t most_k, kept_kth *out, error *err) {
  *out = (kept_kth){ .step_ns = INT64_MAX };
  arena *a = arena_new (0);
  bool ok = a ? try_all (t, o, most_k, a, out, err) : error_set (err, ERR_memory, "out of memory");
  arena_free (a);
  return ok;
}

bool greedy_drops (const trace *t, const solve_options *o, bool keeps, int64_t limit_ticks,
                   arena *a, recompute_result *out, error *err) {
  tuning by = o->tuning ? *o->tuning : tuning_shipped;
  solve_options with = *o;
  for (int i = 0; i < STRATEGIES; i++)
    by.off[i] |= strcmp (strategy_rows[i].stage, "DROPS") == 0 && i != STRATEGY_DROPS_prefixes &&
                 i != STRATEGY_DROPS_fit;
  with.tuning = &by;
  recompute_request q = {
    .trace = t, .options = &with, .keeps = keeps, .limit_ticks = limit_ticks
  };
  return recompute_search (&q, a, out, err);
}
