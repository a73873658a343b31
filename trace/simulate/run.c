/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/run.h"

#include <assert.h>

#include "base/order.h"
#include "trace/host_rates.h"

#define LAST_NS ((int64_t)1 << 62)
#define NANO 1000000000
#define NEVER_NS INT64_MAX

typedef unsigned __int128 wide;

typedef struct engine {
  int32_t lane; /* the lane whose copy the engine carries; -1: free */
  bool carries;
  int64_t latency_end_ns, from_ns, end_ns, rate;
  wide work; /* bytes x 10^9 */
} engine;

typedef struct loop {
  sim_run *r;
  int64_t now_ns;
  int32_t n_cards;
  int32_t running, ran;       /* lanes that run ops now, and when the shares were dealt last */
  bool shares_changed, asked; /* a lane's op set changed; `until` is to be asked */
  bool flows_changed;         /* the set of engines that carry */
  bool outs_held;
  engine engines[HOST_MOST_CARDS][COPY_WAYS];
} loop;

/* Ops have their card's whole speed: nobody else's run on it at the same time. */
static bool is_alone (const sim_run *r) {
  return r->n_lanes == 1 || r->host || r->turns;
}

/* ---- states ---- */

enum { KIND_OP, KIND_OUT, KIND_IN };

static uint64_t weight_of (int kind, int end, int32_t place) {
  uint64_t z =
      ((uint64_t)(uint32_t)place << 3 | (uint64_t)kind << 1 | (uint64_t)end) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) | 1;
}

/* A sum of times, each with a random weight of 64 bits, in 128: two different steps agree by chance
   once in 2^64. */
static void note (loop *l, sim_lane *lane, int32_t step, int kind, int end, int32_t place) {
  l->r->events++;
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

static void record (loop *l, const sim_lane *lane, int32_t step, span *rows, int32_t row,
                    bool end) {
  const sim_record *to = l->r->record;
  if (!to || to->step != step || &l->r->lanes[to->lane] != lane)
    return;
  if (end)
    rows[row].end_ns = l->now_ns;
  else
    rows[row].start_ns = l->now_ns;
}

/* Steps end in order: so do the items of each queue. */
static void count_steps (loop *l, sim_lane *lane) {
  int64_t n = lane->steps_done;
  while (lane->ops_done >= (n + 1) * lane->n_ops && lane->outs_done >= (n + 1) * lane->n_outs &&
         lane->ins_done >= (n + 1) * lane->n_ins) {
    lane->steps_done = (int32_t)++n;
    l->asked = true;
  }
}

/* ---- ops ---- */

/* Ranks begin a step when the last of them has ended the one before. */
static bool step_may_start (const sim_run *r, int32_t step) {
  for (int32_t i = 0; i < r->n_lanes; i++)
    if (r->lanes[i].op_step < step)
      return false;
  return true;
}

static bool begins_step (const sim_lane *lane, int32_t k) {
  return lane->beside ? lane->beside->waits_for[k] == 0 : k == 0;
}

static bool op_may_start (const loop *l, const sim_lane *lane, const sim_stream *s) {
  if (s->op == SIM_NO_OP || l->now_ns < s->gap_end_ns)
    return false;
  const sim_op *o = &lane->ops[s->op];
  return (!l->r->host || !begins_step (lane, s->op) || step_may_start (l->r, lane->op_step)) &&
         (o->ins == INT32_MIN || lane->ins_done >= (int64_t)lane->op_step * lane->n_ins + o->ins) &&
         (o->outs == INT32_MIN ||
          lane->outs_done >= (int64_t)lane->op_step * lane->n_outs + o->outs);
}

static void op_start (loop *l, sim_lane *lane, sim_stream *s) {
  const sim_op *o = &lane->ops[s->op];
  note (l, lane, lane->op_step, KIND_OP, 0, s->op);
  if (l->r->record)
    record (l, lane, lane->op_step, l->r->record->ops, s->op, false);
  if (s->op == 0 && lane->op_step < SIM_JOB_STEPS) {
    lane->starts_ns[lane->op_step] = l->now_ns;
    l->asked = true;
  }
  s->running = true;
  s->ready_ns = -1;
  s->op_from_ns = l->now_ns;
  if (is_alone (l->r) || o->ns == 0)
    s->op_end_ns = l->now_ns + o->ns;
  else {
    s->op_work = (wide)o->ns * NANO;
    s->op_end_ns = NEVER_NS; /* until the shares are dealt */
    l->shares_changed = true;
  }
  if (lane->running++ == 0)
    l->running++;
}

static void head_is (const loop *l, sim_lane *lane, sim_stream *s, int32_t k) {
  s->op = k;
  s->gap_end_ns = l->now_ns + lane->ops[k].gap_ns;
}

static void begin_beside (const loop *l, sim_lane *lane) {
  sim_beside *b = lane->beside;
  b->prefix = 0;
  for (int32_t k = 0; k < lane->n_ops; k++) {
    b->ended[k] = false;
    b->left[k] = b->waits_for[k];
    if (b->left[k] == 0)
      head_is (l, lane, &lane->streams[b->stream_of[k]], k);
  }
}

/* The next op of a stream is its head once nothing is left that it waits for; all ops of a step
   have ended before the next step begins. */
static void end_beside (loop *l, sim_lane *lane, sim_stream *s) {
  sim_beside *b = lane->beside;
  int32_t k = s->op;
  s->op = SIM_NO_OP;
  b->ended[k] = true;
  for (; b->prefix < lane->n_ops && b->ended[b->prefix]; b->prefix++)
    lane->ops_done++;
  for (int32_t i = b->first[k]; i < b->first[k + 1]; i++)
    if (--b->left[b->next[i]] == 0)
      head_is (l, lane, &lane->streams[b->stream_of[b->next[i]]], b->next[i]);
  if (b->prefix < lane->n_ops)
    return;
  lane->op_step++;
  count_steps (l, lane);
  begin_beside (l, lane);
}

static void op_end (loop *l, sim_lane *lane, sim_stream *s) {
  note (l, lane, lane->op_step, KIND_OP, 1, s->op);
  if (l->r->record)
    record (l, lane, lane->op_step, l->r->record->ops, s->op, true);
  s->running = false;
  if (--lane->running == 0)
    l->running--;
  l->shares_changed = true;
  if (lane->beside) {
    end_beside (l, lane, s);
    return;
  }
  lane->ops_done++;
  if (++s->op == lane->n_ops) {
    s->op = 0;
    lane->op_step++;
    count_steps (l, lane);
  }
  s->gap_end_ns = l->now_ns + lane->ops[s->op].gap_ns;
}

/* The head that could start first; among equals by job, then by place in the list. */
static bool op_turn (loop *l) {
  sim_lane *of = NULL;
  sim_stream *best = NULL;
  if (l->running)
    return false;
  for (int32_t i = 0; i < l->r->n_lanes; i++)
    for (int32_t j = 0; j < l->r->lanes[i].n_streams; j++) {
      sim_stream *s = &l->r->lanes[i].streams[j];
      if (s->ready_ns < 0 ||
          (best && (s->ready_ns > best->ready_ns || (s->ready_ns == best->ready_ns &&
                                                     (of != &l->r->lanes[i] || s->op > best->op)))))
        continue;
      of = &l->r->lanes[i];
      best = s;
    }
  if (best)
    op_start (l, of, best);
  return best;
}

static bool waits_for_ranks (const sim_run *r, const sim_op *o) {
  return r->host && o->group >= 0;
}

/* The stream of a rank that has come to that collective; NULL: none has. */
static sim_stream *arrival (const sim_lane *lane, const sim_op *o) {
  for (int32_t j = 0; j < lane->n_streams; j++) {
    sim_stream *s = &lane->streams[j];
    if (s->ready_ns >= 0 && lane->ops[s->op].group == o->group && lane->ops[s->op].nth == o->nth)
      return s;
  }
  return NULL;
}

/* A collective begins in all ranks that have its group when the last of them has come to it. */
static bool ranks_meet (loop *l) {
  bool any = false;
  for (int32_t i = 0; i < l->r->n_lanes; i++)
    for (int32_t j = 0; j < l->r->lanes[i].n_streams; j++) {
      const sim_stream *s = &l->r->lanes[i].streams[j];
      if (s->ready_ns < 0)
        continue;
      const sim_op *o = &l->r->lanes[i].ops[s->op];
      bool all = true;
      for (int32_t k = 0; all && k < l->r->n_lanes; k++)
        all = !l->r->lanes[k].in_group[o->group] || arrival (&l->r->lanes[k], o);
      for (int32_t k = 0; all && k < l->r->n_lanes; k++)
        if (l->r->lanes[k].in_group[o->group])
          op_start (l, &l->r->lanes[k], arrival (&l->r->lanes[k], o));
      any |= all;
    }
  return any;
}

/* One pass over the lanes; true if anything happened, since ops of no length end at once. */
static bool ops_advance (loop *l) {
  bool any = false, arrived = false;
  for (int32_t i = 0; i < l->r->n_lanes; i++) {
    sim_lane *lane = &l->r->lanes[i];
    for (int32_t j = 0; j < lane->n_streams; j++) {
      sim_stream *s = &lane->streams[j];
      if (s->running && s->op_end_ns <= l->now_ns) {
        op_end (l, lane, s);
        any = true;
      }
      if (s->running || s->ready_ns >= 0 || !op_may_start (l, lane, s))
        continue;
      s->ready_ns = l->now_ns;
      if (waits_for_ranks (l->r, &lane->ops[s->op]))
        arrived = true;
      else if (!l->r->turns) {
        op_start (l, lane, s);
        any = true;
      }
    }
  }
  if (arrived && ranks_meet (l))
    any = true;
  if (l->r->turns && op_turn (l))
    any = true;
  return any;
}

/* Equal shares of the speed: who runs has changed, so everybody's end has. */
static void ops_share (loop *l) {
  int32_t ran = l->ran;
  l->ran = l->running;
  l->shares_changed = false;
  if (is_alone (l->r) || !l->running)
    return;
  wide before = ran ? (wide)(NANO / ran) : 0, now = (wide)(NANO / l->running);
  for (int32_t i = 0; i < l->r->n_lanes; i++)
    for (int32_t j = 0; j < l->r->lanes[i].n_streams; j++) {
      sim_stream *s = &l->r->lanes[i].streams[j];
      if (!s->running)
        continue;
      s->op_work -= before * (wide)(l->now_ns - s->op_from_ns);
      s->op_from_ns = l->now_ns;
      s->op_end_ns = l->now_ns + (int64_t)((s->op_work + now - 1) / now);
    }
}

/* ---- copies ---- */

static bool copy_may_start (const sim_lane *lane, const sim_copy *c, int32_t step) {
  return lane->ops_done >= (int64_t)step * lane->n_ops + c->ops &&
         lane->outs_done >= (int64_t)step * lane->n_outs + c->outs;
}

/* The head, of those that may start, that could first. */
static int32_t copy_choose (loop *l, int32_t card, copy_way way) {
  const engine *e = &l->engines[card][way];
  bool out = way == WAY_out;
  int32_t best = -1, end = l->r->host ? card + 1 : l->r->n_lanes;
  int64_t best_ns = NEVER_NS;
  for (int32_t i = card; i < end; i++) {
    sim_lane *lane = &l->r->lanes[i];
    if (e->lane == i)
      continue; /* its head is on its way */
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
    }
  }
  return best;
}

static void copy_start (loop *l, int32_t card, copy_way way) {
  engine *e = &l->engines[card][way];
  bool out = way == WAY_out;
  int32_t i = copy_choose (l, card, way);
  if (e->lane >= 0 || i < 0 || (out && l->outs_held))
    return;
  sim_lane *lane = &l->r->lanes[i];
  const sim_copy *c = out ? &lane->outs[lane->out] : &lane->ins[lane->in];
  int32_t step = out ? lane->out_step : lane->in_step;
  note (l, lane, step, out ? KIND_OUT : KIND_IN, 0, c->move);
  if (l->r->record)
    record (l, lane, step, out ? l->r->record->outs : l->r->record->ins, c->move, false);
  e->lane = i;
  e->carries = false;
  e->latency_end_ns = l->now_ns + l->r->copy_ns;
  e->work = (wide)c->bytes * NANO;
  if (out)
    lane->out_ready_ns = -1;
  else
    lane->in_ready_ns = -1;
}

static bool copy_end (loop *l, int32_t card, copy_way way) {
  engine *e = &l->engines[card][way];
  bool out = way == WAY_out;
  if (e->lane < 0 || !e->carries || e->end_ns > l->now_ns)
    return false;
  sim_lane *lane = &l->r->lanes[e->lane];
  const sim_copy *c = out ? &lane->outs[lane->out] : &lane->ins[lane->in];
  int32_t step = out ? lane->out_step : lane->in_step;
  note (l, lane, step, out ? KIND_OUT : KIND_IN, 1, c->move);
  if (l->r->record)
    record (l, lane, step, out ? l->r->record->outs : l->r->record->ins, c->move, true);
  e->lane = -1;
  e->carries = false;
  l->flows_changed = true;
  if (out) {
    lane->outs_done++;
    if (++lane->out == lane->n_outs) {
      lane->out = 0;
      lane->out_step++;
      count_steps (l, lane);
    }
  } else {
    lane->ins_done++;
    if (++lane->in == lane->n_ins) {
      lane->in = 0;
      lane->in_step++;
      count_steps (l, lane);
    }
  }
  return true;
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

static bool copies_carry (loop *l) {
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

/* ---- time ---- */

static int64_t engine_next (const engine *e) {
  return e->lane < 0 ? NEVER_NS : e->carries ? e->end_ns : e->latency_end_ns;
}

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
    for (int32_t card = 0; card < l->n_cards; card++) {
      any |= copy_end (l, card, WAY_out);
      any |= copy_end (l, card, WAY_in);
    }
    any |= ops_advance (l);
  } while (any && !l->asked);
  if (any)
    return true;
  if (l->shares_changed)
    ops_share (l);
  for (int32_t card = 0; card < l->n_cards; card++) {
    copy_start (l, card, WAY_out);
    copy_start (l, card, WAY_in);
  }
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
    if (lane->beside)
      begin_beside (l, lane);
    else
      head_is (l, lane, &lane->streams[0], 0);
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
