/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two FIFO orders and the waits: complete, once each, and in range. */
#include "trace/check/inner.h"

static bool lists_once (checker *c, bool in) {
  const plan *p = c->p;
  const char *name = in ? "in_order" : "out_order";
  check_rule rule = in ? RULE_in_order : RULE_out_order;
  const int32_t *order = in ? p->in_order : p->out_order;
  int32_t n = in ? p->n_ins : p->n_outs;
  int32_t *place = NEW (c->a, p->n_moves, int32_t, c->err);
  if (!place)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++)
    place[i] = -1;
  for (int32_t i = 0; i < n; i++) {
    int32_t m = order[i];
    if (m < 0 || m >= p->n_moves)
      return check_breaks (c, rule, name, i, NULL, "move %d is not in 0 to %d", m, p->n_moves - 1);
    if (!in && p->moves[m].clean)
      return check_breaks (c, rule, name, i, NULL, "move %d is clean and has no out", m);
    if (place[m] >= 0)
      return check_breaks (c, rule, name, i, NULL, "move %d stands at %d already", m, place[m]);
    place[m] = i;
  }
  for (int32_t m = 0; m < p->n_moves; m++)
    if (place[m] < 0 && (in || !p->moves[m].clean))
      return check_breaks (c, rule, name, -1, NULL, "move %d is not in it", m);
  if (in)
    c->in_place = place;
  else
    c->out_place = place;
  return true;
}

static bool counts (int32_t wait, int32_t most) {
  return wait == NO_WAIT || (wait >= -most && wait <= most);
}

static bool op_waits_hold (checker *c) {
  const plan *p = c->p;
  if (!(c->wait_outs = NEW (c->a, c->n_ops, int32_t, c->err)))
    return false;
  bool *has_row = NEW (c->a, c->n_ops, bool, c->err);
  if (!has_row)
    return false;
  for (int32_t k = 0; k < c->n_ops; k++)
    c->wait_outs[k] = NO_WAIT;
  for (int32_t i = 0; i < p->n_op_waits; i++) {
    op_wait x = p->op_waits[i];
    if (x.op < 0 || x.op >= c->n_ops)
      return check_breaks (c, RULE_op_wait, "op_waits", i, "op", "%d is not in 0 to %d", x.op,
                           c->n_ops - 1);
    if (has_row[x.op])
      return check_breaks (c, RULE_op_wait, "op_waits", i, "op", "op %d has a row already", x.op);
    if (!counts (x.outs, p->n_outs))
      return check_breaks (c, RULE_op_wait, "op_waits", i, "outs", "%d is not in %d to %d", x.outs,
                           -p->n_outs, p->n_outs);
    has_row[x.op] = true;
    c->wait_outs[x.op] = x.outs;
  }
  return true;
}

bool check_orders (checker *c) {
  if (!lists_once (c, false) || !lists_once (c, true) || !op_waits_hold (c))
    return false;
  for (int32_t i = 0; i < c->p->n_moves; i++) {
    const move *x = &c->p->moves[i];
    if (!counts (x->in_ops, c->n_ops))
      return check_breaks (c, RULE_in_wait, "moves", i, "in_ops", "%d is not in %d to %d",
                           x->in_ops, -c->n_ops, c->n_ops);
    if (!counts (x->in_outs, c->p->n_outs))
      return check_breaks (c, RULE_in_wait, "moves", i, "in_outs", "%d is not in %d to %d",
                           x->in_outs, -c->p->n_outs, c->p->n_outs);
  }
  return true;
}
