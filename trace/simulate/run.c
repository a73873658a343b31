/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/run.h"

#include <assert.h>

#include "base/order.h"
#include "trace/simulate/loop.h"

/* ---- states ---- */

static uint64_t weight_of (int kind, int end, int32_t place) {
  uint64_t z =
      ((uint64_t)(uint32_t)place << 3 | (uint64_t)kind << 1 | (uint64_t)end) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) | 1;
}

static void record (const loop *l, const sim_record *to, int kind, int end, int32_t place) {
  span *row = &(kind == KIND_OP ? to->ops : kind == KIND_OUT ? to->outs : to->ins)[place];
  if (end)
    row->end_ns = l->now_ns;
  else
    row->start_ns = l->now_ns;
}

/* A sum of times, each with a random weight of 64 bits, in 128: two different steps agree by chance
   once in 2^64. */
void loop_note (loop *l, sim_lane *lane, int32_t step, int kind, int end, int32_t place) {
  const sim_record *to = l->r->record;
  l->r->events++;
  if (to && to->step == step && &l->r->lanes[to->lane] == lane)
    record (l, to, kind, end, place);
  if (step >= SIM_STEPS)
    return;
  uint64_t weight = weight_of (kind, end, place);
  lane->states[step].sum += (wide)weight * (wide)l->now_ns;
  lane->states[step].weights += weight;
}

bool sim_same_state (const sim_run *r, int32_t a, int32_t b) {
  assert (a >= 0 && b >= 0);
  const int64_t *starts_ns = r->lanes[0].starts_ns;
  for (int32_t i = 0; i < r->n_lanes; i++) {
    const sim_state *x = &r->lanes[i].states[a], *y = &r->lanes[i].states[b];
    if (x->sum - x->weights * (wide)starts_ns[a] != y->sum - y->weights * (wide)starts_ns[b])
      return false;
  }
  return true;
}

/* Steps end in order: so do the items of each queue. */
void loop_count_steps (loop *l, sim_lane *lane) {
  int64_t n = lane->steps_done;
  while (lane->ops_done >= (n + 1) * lane->n_ops && lane->outs_done >= (n + 1) * lane->n_outs &&
         lane->ins_done >= (n + 1) * lane->n_ins) {
    lane->steps_done = (int32_t)++n;
    l->asked = true;
  }
}

/* ---- time ---- */

static int64_t next_event (const loop *l) {
  int64_t next = NEVER_NS;
  for (int32_t card = 0; card < l->n_cards; card++)
    next = min_of (next, min_of (engine_next (&l->engines[card][WAY_out]),
                                 engine_next (&l->engines[card][WAY_in])));
  for (int32_t i = 0; i < l->r->n_lanes; i++)
    for (int32_t j = 0; j < l->r->lanes[i].n_streams; j++) {
      const sim_stream *s = &l->r->lanes[i].streams[j];
      if (s->running)
        next = min_of (next, s->op_end_ns);
      else if (s->op != SIM_NO_OP && s->gap_end_ns > l->now_ns)
        next = min_of (next, s->gap_end_ns);
    }
  return next;
}

/* All that happens at this instant; ops of no length may make several rounds of it, and where a
   whole step has no length the rounds would never end: then `until` is asked in between. */
static bool instant (loop *l) {
  bool any;
  do {
    any = false;
    for (int32_t card = 0; card < l->n_cards; card++)
      for (int way = 0; way < COPY_WAYS; way++) {
        const engine *e = &l->engines[card][way];
        if (e->lane < 0 || !e->carries || e->end_ns > l->now_ns)
          continue;
        copy_end (l, card, (copy_way)way);
        any = true;
      }
    any |= ops_advance (l);
  } while (any && !l->asked);
  if (any)
    return true;
  if (l->shares_changed)
    ops_share (l);
  for (int32_t card = 0; card < l->n_cards; card++)
    for (int way = 0; way < COPY_WAYS; way++)
      if (l->engines[card][way].lane < 0 || l->line)
        copy_start (l, card, (copy_way)way);
  return copies_carry (l);
}

static void reset_lanes (loop *l) {
  for (int32_t i = 0; i < l->r->n_lanes; i++) {
    sim_lane *lane = &l->r->lanes[i];
    lane->op_step = lane->out_step = lane->out = lane->in_step = lane->in = lane->running = 0;
    lane->ops_done = lane->outs_done = lane->ins_done = 0;
    lane->out_ready_ns = lane->in_ready_ns = -1;
    for (int32_t j = 0; j < lane->n_streams; j++)
      lane->streams[j] = (sim_stream){ .op = SIM_NO_OP, .ready_ns = -1 };
    ops_begin (l, lane);
    lane->steps_done = 0;
    for (int s = 0; s < SIM_STEPS; s++)
      lane->states[s] = (sim_state){ 0, 0 };
    for (int s = 0; s < SIM_JOB_STEPS; s++)
      lane->starts_ns[s] = -1;
  }
}

bool sim_run_until (sim_run *r, bool (*until) (const sim_run *r, void *context), void *context,
                    error *err) {
  loop l = { .r = r, .n_cards = r->host ? r->n_lanes : 1, .outs_held = r->laden };
  l.alone = r->n_lanes == 1 || r->host || r->turns;
  l.line = r->n_lanes > 1 && !r->host;
  for (int32_t card = 0; card < l.n_cards; card++)
    l.engines[card][WAY_out].lane = l.engines[card][WAY_in].lane = -1;
  reset_lanes (&l);
  for (;;) {
    if (!instant (&l))
      return error_set (err, ERR_input, "simulated time passes 2^62 ns");
    if (l.asked) {
      l.asked = false;
      if (until (r, context))
        return true;
      continue;
    }
    int64_t next_ns = next_event (&l);
    if (next_ns == NEVER_NS) {
      if (!l.outs_held)
        return error_set (err, ERR_infeasible, "the plan hangs: op %lld of step %d waits for ever",
                          (long long)(r->lanes[0].ops_done % r->lanes[0].n_ops),
                          r->lanes[0].op_step);
      l.outs_held = false;
      continue;
    }
    if (next_ns > LAST_NS)
      return error_set (err, ERR_input, "simulated time passes 2^62 ns");
    assert (next_ns > l.now_ns);
    l.now_ns = next_ns;
  }
}
