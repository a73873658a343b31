/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When each copy happens in the one-at-a-time execution; orders and waits follow from that. */
#include "tests/random_maker.h"

/* A moment strictly between two ops, in [low, high]; low and high are such moments themselves. */
static int64_t moment (maker *m, int64_t low, int64_t high) {
  int64_t at = random_between (&m->r, low, high);
  int64_t within = (at % SLOT + SLOT) % SLOT;
  if (within < 2 || within > SLOT - 2)
    at += SLOT / 2 - within;
  return at < low ? low : at > high ? high : at;
}

static void time_outs (maker *m) {
  plan *p = m->plan;
  int64_t earliest = INT64_MAX;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *x = &p->moves[i];
    maker_move *y = &m->moves[i];
    int64_t op_end = ((int64_t)x->out_after + 1) * SLOT;
    int64_t latest = (int64_t)x->in_before * SLOT + (y->wraps ? m->period : 0) + SLOT - 3;
    if (random_chance (&m->r, 600000)) {
      int64_t soon = op_end + SLOT - 3;
      latest = latest < soon ? latest : soon;
    }
    y->out_at = x->clean ? op_end : moment (m, op_end + 2, latest);
    if (!x->clean && y->out_at < earliest)
      earliest = y->out_at;
  }
  /* An engine's step is over before its next one begins. */
  for (int32_t i = 0; i < p->n_moves; i++)
    if (!p->moves[i].clean && m->moves[i].out_at >= earliest + m->period)
      m->moves[i].out_at = earliest + m->period - 1;
}

static void time_ins (maker *m) {
  plan *p = m->plan;
  int64_t latest = INT64_MIN;
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *x = &p->moves[i];
    maker_move *y = &m->moves[i];
    int64_t low = y->out_at + 1, high = (int64_t)x->in_before * SLOT + SLOT - 2;
    if (x->clean)
      low++;
    low -= y->wraps ? m->period : 0;
    if (random_chance (&m->r, 500000) && high - SLOT + 4 > low)
      low = high - SLOT + 4;
    y->in_at = moment (m, low, high);
    latest = y->in_at > latest ? y->in_at : latest;
  }
  for (int32_t i = 0; i < p->n_moves; i++)
    if (m->moves[i].in_at <= latest - m->period)
      m->moves[i].in_at = latest - m->period + 1;
}

static int64_t order_key (const maker *m, int32_t i, bool in) {
  return in ? m->moves[i].in_at : m->moves[i].out_at;
}

static bool sort_moves (maker *m, bool in, int32_t **order, int32_t *count, error *err) {
  plan *p = m->plan;
  if (!(*order = NEW (m->a, p->n_moves, int32_t, err)))
    return false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    if (!in && p->moves[i].clean)
      continue;
    int32_t at = (*count)++;
    for (; at > 0 && order_key (m, (*order)[at - 1], in) > order_key (m, i, in); at--)
      (*order)[at] = (*order)[at - 1];
    (*order)[at] = i;
  }
  return true;
}

/* How many outs have ended before `at`, as a wait of that step counts them. */
static int32_t outs_before (const maker *m, int64_t at) {
  int32_t same = 0, last = 0;
  for (int32_t i = 0; i < m->plan->n_outs; i++) {
    int64_t out = m->moves[m->plan->out_order[i]].out_at;
    same += out < at;
    last += out - m->period < at;
  }
  return same ? same : last - m->plan->n_outs;
}

static int32_t ops_before (const maker *m, int64_t at) {
  int64_t slots = at >= 0 ? at / SLOT : -((-at + SLOT - 1) / SLOT);
  return (int32_t)(slots > m->t->n_ops ? m->t->n_ops : slots);
}

/* A wait as strong as the execution allows is kept, weakened or left out. */
static int32_t weaken (maker *m, int32_t most, int32_t least) {
  int64_t ppm = m->o->places == CASE_APART ? 500000 : m->o->drop_ppm;
  if (!random_chance (&m->r, ppm))
    return most;
  return random_chance (&m->r, 500000) ? NO_WAIT : maker_pick (m, least, most);
}

static bool derive_waits (maker *m, error *err) {
  plan *p = m->plan;
  if (!(p->op_waits = NEW (m->a, m->t->n_ops, op_wait, err)))
    return false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    p->moves[i].in_ops = weaken (m, ops_before (m, m->moves[i].in_at), -m->t->n_ops);
    if (p->n_outs > 0)
      p->moves[i].in_outs = weaken (m, outs_before (m, m->moves[i].in_at), -p->n_outs);
  }
  for (int32_t k = 0; k < m->t->n_ops && p->n_outs > 0; k++) {
    int32_t outs = weaken (m, outs_before (m, ((int64_t)k + 1) * SLOT), -p->n_outs);
    if (outs != NO_WAIT)
      p->op_waits[p->n_op_waits++] = (op_wait){ k, outs };
  }
  return true;
}

static void swap (int32_t *a, int32_t *b) {
  int32_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Still well formed, perhaps no longer live. */
static void disturb (maker *m) {
  plan *p = m->plan;
  if (p->n_moves == 0)
    return;
  move *x = &p->moves[maker_pick (m, 0, p->n_moves - 1)];
  switch (maker_pick (m, 0, 4)) {
  case 0:
    swap (&p->in_order[maker_pick (m, 0, p->n_ins - 1)],
          &p->in_order[maker_pick (m, 0, p->n_ins - 1)]);
    return;
  case 1:
    if (p->n_outs > 0)
      swap (&p->out_order[maker_pick (m, 0, p->n_outs - 1)],
            &p->out_order[maker_pick (m, 0, p->n_outs - 1)]);
    return;
  case 2:
    x->in_ops = maker_pick (m, -m->t->n_ops, m->t->n_ops);
    return;
  case 3:
    x->in_outs = maker_pick (m, -p->n_outs, p->n_outs);
    return;
  default:
    if (p->n_op_waits > 0)
      p->op_waits[maker_pick (m, 0, p->n_op_waits - 1)].outs =
          maker_pick (m, -p->n_outs, p->n_outs);
  }
}

bool maker_orders (maker *m, error *err) {
  plan *p = m->plan;
  time_outs (m);
  time_ins (m);
  if (!sort_moves (m, false, &p->out_order, &p->n_outs, err) ||
      !sort_moves (m, true, &p->in_order, &p->n_ins, err) || !derive_waits (m, err))
    return false;
  if (random_chance (&m->r, m->o->disturb_ppm))
    for (int32_t n = maker_pick (m, 1, 3); n > 0; n--)
      disturb (m);
  return true;
}
