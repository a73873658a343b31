/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/rewrite/loosen.h"

#include <assert.h>
#include <string.h>

const char *const loose_order_names[LOOSE_ORDERS + 1] = { "level", "any", NULL };

int64_t loose_parts (const trace *t, int32_t op) {
  assert (op >= 0 && op < t->n_ops);
  return t->ops[op].parts < t->batch ? t->ops[op].parts : t->batch;
}

/* May a chain hold op p - 1 and op p?  By the rewriting's rule, no whole tensor that one
   writes is read, or written afresh, by the other between its parts. A chain of more ops has to
   keep the rule for these two as well. */
static bool may_chain (const trace *t, int32_t p) {
  const op *first = &t->ops[p - 1], *second = &t->ops[p];
  for (int32_t i = 0; i < first->writes.count; i++) {
    int32_t y = first->writes.at[i];
    bool reads = list_has (&second->reads, y), writes = list_has (&second->writes, y);
    if (!t->tensors[y].split && reads != writes)
      return false;
  }
  for (int32_t i = 0; i < second->writes.count; i++) {
    int32_t y = second->writes.at[i];
    if (!t->tensors[y].split && list_has (&first->reads, y) && !list_has (&first->writes, y))
      return false;
  }
  return true;
}

static bool has_wall (const trace *t, loose_orders orders, int32_t p) {
  if (loose_parts (t, p - 1) < 2 || loose_parts (t, p) < 2)
    return false;
  return orders == LOOSE_LEVEL || !may_chain (t, p);
}

bool trace_loosen (const trace *t, loose_orders orders, arena *a, loosened *out, error *err) {
  assert (t && out && orders < LOOSE_ORDERS);
  int64_t most = 2 * (int64_t)t->n_ops;
  trace *made = NEW (a, 1, trace, err);
  int32_t *to = NEW (a, t->n_ops, int32_t, err);
  *out = (loosened){ .trace = made, .orders = orders };
  if (most > INT32_MAX / 4)
    return error_set (err, ERR_limit, "%d ops are too many for a bound of all cuts", t->n_ops);
  if (!ALLOC (a, out->loose, most, err) || !ALLOC (a, out->of, most, err) || !made || !to)
    return false;
  *made = *t;
  if (!ALLOC (a, made->ops, most, err) || !ALLOC (a, made->tensors, t->n_tensors, err))
    return false;
  made->n_ops = made->n_samples = 0;
  made->ns_samples = NULL;
  for (int32_t k = 0; k < t->n_ops; k++) {
    if (k > 0 && has_wall (t, orders, k)) {
      out->of[made->n_ops] = NO_OP;
      made->ops[made->n_ops++] = (op){ .name = "between two ops", .parts = 1 };
    }
    to[k] = made->n_ops;
    out->loose[made->n_ops] = loose_parts (t, k) > 1;
    out->of[made->n_ops] = k;
    made->ops[made->n_ops++] = t->ops[k];
  }
  if (t->n_tensors > 0)
    memcpy (made->tensors, t->tensors, (size_t)t->n_tensors * sizeof *t->tensors);
  for (int32_t x = 0; x < t->n_tensors; x++) {
    tensor *y = &made->tensors[x];
    if (y->born_before != NO_OP)
      y->born_before = to[y->born_before];
    if (y->dies_after != NO_OP)
      y->dies_after = to[y->dies_after];
  }
  return true;
}
