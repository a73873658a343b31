/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/explain/order.h"

#include <stdio.h>

#include "trace/rewrite/order.h"

/* An op counts as moved where it runs before one that the trace has first: what is merely pushed
   back by others stands where it stood among the rest. */
bool order_of (call *c, const trace *t, const plan *p, order_told *out) {
  const trace *ordered;
  int32_t *order, most = -1;
  *out = (order_told){ .far = NO_OP, .name = "" };
  if (!trace_reorder (t, p->order, p->n_order, c->arena, &ordered, &order, &c->err))
    return false;
  int32_t *least = order ? NEW (c->arena, (int64_t)t->n_ops + 1, int32_t, &c->err) : NULL;
  if (!least)
    return !order;
  least[t->n_ops] = INT32_MAX; /* the first op of the trace that runs at a place or behind it */
  for (int32_t i = t->n_ops - 1; i >= 0; i--)
    least[i] = order[i] < least[i + 1] ? order[i] : least[i + 1];
  for (int32_t i = 0; i < t->n_ops; i++) {
    int32_t k = order[i];
    if (least[i + 1] > k)
      continue;
    out->ops++;
    out->updates += t->ops[k].phase == OP_UPDATE;
    if (k - i > most) {
      most = out->passed = k - i;
      out->far = k;
      out->name = t->ops[k].name ? t->ops[k].name : "";
    }
  }
  return true;
}

void order_print (const order_told *o) {
  if (o->ops)
    printf (
        "\nin another order: %d ops run before ops that the trace has first, %d of them updates; "
        "op %d (%s) runs %d places earlier\n",
        o->ops, o->updates, o->far, o->name, o->passed);
}

void order_put (json_writer *w, const order_told *o) {
  json_add_object (w, "order");
  json_add_int (w, "ops", o->ops);
  json_add_int (w, "updates", o->updates);
  json_close_object (w);
}
