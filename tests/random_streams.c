/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/random_streams.h"

static void wait_for (op *o, int32_t before) {
  if (!list_has (&o->after, before))
    o->after.at[o->after.count++] = before;
}

static bool writes (const trace *t, int32_t k, int32_t x) {
  return list_has (&t->ops[k].writes, x) || t->tensors[x].born_before == k;
}

static bool touches (const trace *t, int32_t k, int32_t x) {
  return op_touches (&t->ops[k], x) || t->tensors[x].born_before == k;
}

/* One of the two writes a tensor of both, or is the first to use it. */
static bool conflict (const trace *t, int32_t i, int32_t k) {
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int32_t first = 0;
    while (first < k && !touches (t, first, x))
      first++;
    if (touches (t, i, x) && touches (t, k, x) &&
        (writes (t, i, x) || writes (t, k, x) || (!t->tensors[x].persistent && first == i)))
      return true;
  }
  return false;
}

bool random_streams (random_state *r, trace *t, bool ordered, arena *a, error *err) {
  int32_t streams = (int32_t)random_between (r, 2, 4);
  for (int32_t k = 0; k < t->n_ops; k++) {
    op *o = &t->ops[k];
    o->stream = (int32_t)random_between (r, 0, streams - 1);
    o->after = (index_list){ NEW (a, t->n_ops, int32_t, err), 0 };
    if (!o->after.at)
      return false;
    for (int32_t i = 0; i < k; i++)
      if (random_chance (r, 150000) || (ordered && conflict (t, i, k)))
        wait_for (o, i);
  }
  t->n_streams = trace_count_streams (t);
  return true;
}
