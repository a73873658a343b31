/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/walk/demands.h"

#include <assert.h>

const char *const walk_queue_names[WALK_QUEUES] = { "op", "out", "in" };

typedef struct collector {
  const demands *d;
  walk_wait *to;
  int32_t n;
} collector;

static void add (collector *c, walk_queue queue, int32_t position, int32_t lag) {
  assert (c->n < WALK_MOST_DEMANDS);
  assert (position >= 0 && position < c->d->count[queue]);
  c->to[c->n++] = (walk_wait){ queue, position, lag, false };
}

/* A count of items that have ended, relative to the item's step. */
static void add_count (collector *c, walk_queue queue, int32_t wanted) {
  int32_t n = c->d->count[queue];
  if (wanted == NO_WAIT || n == 0)
    return;
  assert (wanted <= n);
  if (wanted > 0)
    add (c, queue, wanted - 1, 0);
  else if (wanted > -n)
    add (c, queue, n - 1 + wanted, 1);
  else
    add (c, queue, n - 1, 2);
}

/* Its own copy out, of the step before where it wraps; or the op behind which it is dropped. */
static void add_own (collector *c, int32_t index) {
  const move *m = &c->d->plan->moves[index];
  int32_t lag = m->in_before <= m->out_after ? 1 : 0;
  if (m->clean)
    add (c, WALK_OPS, m->out_after, lag);
  else
    add (c, WALK_OUTS, c->d->out_place[index], lag);
}

int32_t demands_of (const demands *d, walk_queue queue, int32_t position,
                    walk_wait out[WALK_MOST_DEMANDS]) {
  assert (queue < WALK_QUEUES && position >= 0 && position < d->count[queue]);
  const plan *p = d->plan;
  collector c = { .d = d, .to = out };
  if (queue == WALK_OPS) {
    if (d->last_in[position] >= 0)
      add (&c, WALK_INS, d->last_in[position], 0);
    add_count (&c, WALK_OUTS, d->outs[position]);
  } else if (queue == WALK_OUTS)
    add (&c, WALK_OPS, p->moves[p->out_order[position]].out_after, 0);
  else {
    const move *m = &p->moves[p->in_order[position]];
    add_count (&c, WALK_OPS, m->in_ops);
    add_count (&c, WALK_OUTS, m->in_outs);
    add_own (&c, p->in_order[position]);
  }
  return c.n;
}

int64_t demands_count (const demands *d, const walk_wait *w) {
  assert (w->queue < WALK_QUEUES && w->position < d->count[w->queue]);
  return w->position + 1 - (int64_t)w->lag * d->count[w->queue];
}

static bool is_count (int32_t wanted, int32_t n) {
  return wanted == NO_WAIT || (wanted >= -n && wanted <= n);
}

static bool is_there (const demands *d, int32_t index) {
  const move *m = &d->plan->moves[index];
  int32_t n_ops = d->count[WALK_OPS];
  return m->out_after >= 0 && m->out_after < n_ops && m->in_before >= 0 && m->in_before < n_ops &&
         is_count (m->in_ops, n_ops) && is_count (m->in_outs, d->count[WALK_OUTS]) &&
         (m->clean || d->out_place[index] >= 0);
}

static bool read_orders (demands *d, error *err) {
  const plan *p = d->plan;
  for (int32_t i = 0; i < p->n_outs; i++) {
    if (p->out_order[i] < 0 || p->out_order[i] >= p->n_moves)
      return error_set (err, ERR_input, "out_order names move %d, which is not there",
                        p->out_order[i]);
    d->out_place[p->out_order[i]] = i;
  }
  for (int32_t i = 0; i < p->n_moves; i++)
    if (!is_there (d, i))
      return error_set (err, ERR_input, "move %d names ops or copies that are not there", i);
  for (int32_t i = 0; i < p->n_ins; i++) {
    if (p->in_order[i] < 0 || p->in_order[i] >= p->n_moves)
      return error_set (err, ERR_input, "in_order names move %d, which is not there",
                        p->in_order[i]);
    d->last_in[p->moves[p->in_order[i]].in_before] = i;
  }
  return true;
}

static bool read_op_waits (demands *d, error *err) {
  for (int32_t i = 0; i < d->plan->n_op_waits; i++) {
    const op_wait *w = &d->plan->op_waits[i];
    if (w->op < 0 || w->op >= d->count[WALK_OPS] || !is_count (w->outs, d->count[WALK_OUTS]))
      return error_set (err, ERR_input, "op_waits names op %d or copies that are not there", w->op);
    d->outs[w->op] = w->outs;
  }
  return true;
}

bool demands_make (const plan *p, int32_t n_ops, arena *a, demands *out, error *err) {
  assert (p && n_ops >= 0);
  *out = (demands){ .plan = p, .count = { n_ops, p->n_outs, p->n_ins } };
  if ((out->out_place = NEW (a, p->n_moves, int32_t, err)) == NULL ||
      (out->last_in = NEW (a, n_ops, int32_t, err)) == NULL ||
      (out->outs = NEW (a, n_ops, int32_t, err)) == NULL)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++)
    out->out_place[i] = -1;
  for (int32_t i = 0; i < n_ops; i++) {
    out->last_in[i] = -1;
    out->outs[i] = NO_WAIT;
  }
  return read_orders (out, err) && read_op_waits (out, err);
}
