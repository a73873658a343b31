/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/order.h"
#include "trace/simulate/loop.h"

static bool copy_may_start (const sim_lane *lane, const sim_copy *c, int32_t step) {
  return lane->ops_done >= (int64_t)step * lane->n_ops + c->ops &&
         lane->outs_done >= (int64_t)step * lane->n_outs + c->outs;
}

/* The copy that could start first of those that are a program's own ops; among equals, by place in
   the list. */
static sim_stream *own_copy (const sim_lane *lane, copy_way way) {
  const sim_beside *b = lane->beside;
  sim_stream *best = NULL;
  for (int32_t j = 0; b && b->bytes && j < lane->n_streams; j++) {
    sim_stream *s = &lane->streams[j];
    if (s->ready_ns >= 0 && (way == WAY_out ? b->bytes[s->op] < 0 : b->bytes[s->op] > 0) &&
        (!best || s->ready_ns < best->ready_ns ||
         (s->ready_ns == best->ready_ns && s->op < best->op)))
      best = s;
  }
  return best;
}

/* The head, of those that may start, that could first. */
static int32_t copy_choose (loop *l, int32_t card, copy_way way, sim_stream **stream) {
  const engine *e = &l->engines[card][way];
  bool out = way == WAY_out;
  int32_t best = -1, end = l->r->host ? card + 1 : l->r->n_lanes;
  int64_t best_ns = NEVER_NS;
  *stream = NULL;
  for (int32_t i = card; i < end; i++) {
    sim_lane *lane = &l->r->lanes[i];
    if (e->lane == i)
      continue; /* its head is on its way */
    sim_stream *own = own_copy (lane, way);
    if (own && own->ready_ns < best_ns) {
      best = i;
      best_ns = own->ready_ns;
      *stream = own;
    }
    int64_t *ready_ns = out ? &lane->out_ready_ns : &lane->in_ready_ns;
    if (*ready_ns < 0) {
      bool may = out ? lane->n_outs && copy_may_start (lane, &lane->outs[lane->out], lane->out_step)
                     : lane->n_ins && copy_may_start (lane, &lane->ins[lane->in], lane->in_step);
      if (!may)
        continue;
      *ready_ns = l->now_ns;
    }
    if (*ready_ns < best_ns) {
      best = i;
      best_ns = *ready_ns;
      *stream = NULL;
    }
  }
  return best;
}

static void queue_starts (loop *l, sim_lane *lane, copy_way way, engine *e) {
  bool out = way == WAY_out;
  const sim_copy *c = out ? &lane->outs[lane->out] : &lane->ins[lane->in];
  loop_note (l, lane, out ? lane->out_step : lane->in_step, out ? KIND_OUT : KIND_IN, 0, c->move);
  e->work = (wide)c->bytes * NANO;
  if (out)
    lane->out_ready_ns = -1;
  else
    lane->in_ready_ns = -1;
}

static void own_starts (loop *l, sim_lane *lane, sim_stream *s, engine *e) {
  int64_t bytes = lane->beside->bytes[s->op];
  op_start (l, lane, s);
  s->op_end_ns = NEVER_NS; /* the engine's */
  e->work = (wide)(bytes < 0 ? -bytes : bytes) * NANO;
}

void copy_start (loop *l, int32_t card, copy_way way) {
  engine *e = &l->engines[card][way];
  sim_stream *stream;
  int32_t i = copy_choose (l, card, way, &stream);
  if (e->lane >= 0 || i < 0 || (way == WAY_out && l->outs_held))
    return;
  e->lane = i;
  e->stream = stream;
  e->carries = false;
  e->latency_end_ns = l->now_ns + l->r->copy_ns;
  if (stream)
    own_starts (l, &l->r->lanes[i], stream, e);
  else
    queue_starts (l, &l->r->lanes[i], way, e);
}

static void queue_ends (loop *l, sim_lane *lane, copy_way way) {
  bool out = way == WAY_out;
  const sim_copy *c = out ? &lane->outs[lane->out] : &lane->ins[lane->in];
  int32_t step = out ? lane->out_step : lane->in_step;
  loop_note (l, lane, step, out ? KIND_OUT : KIND_IN, 1, c->move);
  if (out) {
    lane->outs_done++;
    if (++lane->out == lane->n_outs) {
      lane->out = 0;
      lane->out_step++;
      loop_count_steps (l, lane);
    }
  } else {
    lane->ins_done++;
    if (++lane->in == lane->n_ins) {
      lane->in = 0;
      lane->in_step++;
      loop_count_steps (l, lane);
    }
  }
}

void copy_end (loop *l, int32_t card, copy_way way) {
  engine *e = &l->engines[card][way];
  sim_lane *lane = &l->r->lanes[e->lane];
  e->lane = -1;
  e->carries = false;
  l->flows_changed = true;
  if (e->stream)
    op_end (l, lane, e->stream);
  else
    queue_ends (l, lane, way);
}

/* Sets the rate from now on; false where the end would pass all time. */
static bool engine_rate (loop *l, engine *e, int64_t rate) {
  if (!e->carries || (e->rate == rate && e->end_ns != NEVER_NS))
    return true;
  wide carried = (wide)e->rate * (wide)(l->now_ns - e->from_ns);
  e->work -= carried < e->work ? carried : e->work;
  e->from_ns = l->now_ns;
  e->rate = rate;
  wide left_ns = (e->work + (wide)rate - 1) / (wide)rate;
  if (left_ns > (wide)LAST_NS)
    return false;
  e->end_ns = l->now_ns + (int64_t)left_ns;
  return true;
}

static bool carry_alone (loop *l) {
  engine *out = &l->engines[0][WAY_out], *in = &l->engines[0][WAY_in];
  bool both = out->carries && in->carries;
  const link_rates *rates = &l->r->rates;
  return engine_rate (l, out, both ? rates->out_both : rates->out_alone) &&
         engine_rate (l, in, both ? rates->in_both : rates->in_alone);
}

static bool carry_together (loop *l) {
  host_flows flows = { 0 };
  for (int32_t card = 0; card < l->n_cards; card++)
    for (int way = 0; way < COPY_WAYS; way++)
      flows.carries[way] |= (uint64_t)l->engines[card][way].carries << card;
  host_rates (l->r->host, &l->r->rates, &flows);
  for (int32_t card = 0; card < l->n_cards; card++)
    for (int way = 0; way < COPY_WAYS; way++)
      if (!engine_rate (l, &l->engines[card][way], flows.rate[way][card]))
        return false;
  return true;
}

bool copies_carry (loop *l) {
  for (int32_t card = 0; card < l->n_cards; card++)
    for (int way = 0; way < COPY_WAYS; way++) {
      engine *e = &l->engines[card][way];
      if (e->lane < 0 || e->carries || e->latency_end_ns > l->now_ns)
        continue;
      e->carries = l->flows_changed = true;
      e->rate = 0;
      e->from_ns = l->now_ns;
      e->end_ns = NEVER_NS;
    }
  if (!l->flows_changed)
    return true;
  l->flows_changed = false;
  return l->r->host ? carry_together (l) : carry_alone (l);
}

int64_t engine_next (const engine *e) {
  return e->lane < 0 ? NEVER_NS : e->carries ? e->end_ns : e->latency_end_ns;
}
