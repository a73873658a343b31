/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/order.h"
#include "trace/simulate/loop.h"

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
  return (!l->r->together || !begins_step (lane, s->op) || step_may_start (l->r, lane->op_step)) &&
         (o->ins == INT32_MIN || lane->ins_done >= (int64_t)lane->op_step * lane->n_ins + o->ins) &&
         (o->outs == INT32_MIN ||
          lane->outs_done >= (int64_t)lane->op_step * lane->n_outs + o->outs);
}

void op_start (loop *l, sim_lane *lane, sim_stream *s) {
  const sim_op *o = &lane->ops[s->op];
  loop_note (l, lane, lane->op_step, KIND_OP, 0, s->op);
  if (s->op == 0 && lane->op_step < SIM_JOB_STEPS) {
    lane->starts_ns[lane->op_step] = l->now_ns;
    l->asked = true;
  }
  s->running = true;
  s->ready_ns = -1;
  s->op_from_ns = l->now_ns;
  if (l->alone || o->ns == 0)
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

void ops_begin (loop *l, sim_lane *lane) {
  if (lane->beside)
    begin_beside (l, lane);
  else
    head_is (l, lane, &lane->streams[0], 0);
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
  loop_count_steps (l, lane);
  begin_beside (l, lane);
}

void op_end (loop *l, sim_lane *lane, sim_stream *s) {
  loop_note (l, lane, lane->op_step, KIND_OP, 1, s->op);
  s->running = false;
  if (--lane->running == 0)
    l->running--;
  l->shares_changed = !l->alone;
  if (lane->beside) {
    end_beside (l, lane, s);
    return;
  }
  lane->ops_done++;
  if (++s->op == lane->n_ops) {
    s->op = 0;
    lane->op_step++;
    loop_count_steps (l, lane);
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

static bool is_copy (const sim_lane *lane, int32_t k) {
  return lane->beside && lane->beside->bytes && lane->beside->bytes[k] != 0;
}

static bool waits_for_ranks (const sim_lane *lane, int32_t k) {
  return lane->meetings && lane->meetings[k].group >= 0;
}

/* The stream of a rank that has come to that collective; NULL: none has. */
static sim_stream *arrival (const sim_lane *lane, sim_meeting at) {
  for (int32_t j = 0; j < lane->n_streams; j++) {
    sim_stream *s = &lane->streams[j];
    if (s->ready_ns >= 0 && lane->meetings[s->op].group == at.group &&
        lane->meetings[s->op].nth == at.nth)
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
      sim_meeting at = l->r->lanes[i].meetings[s->op];
      bool all = true;
      for (int32_t k = 0; all && k < l->r->n_lanes; k++)
        all = !l->r->lanes[k].in_group[at.group] || arrival (&l->r->lanes[k], at);
      for (int32_t k = 0; all && k < l->r->n_lanes; k++)
        if (l->r->lanes[k].in_group[at.group])
          op_start (l, &l->r->lanes[k], arrival (&l->r->lanes[k], at));
      any |= all;
    }
  return any;
}

bool ops_advance (loop *l) {
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
      if (is_copy (lane, s->op))
        continue; /* an engine takes it */
      if (waits_for_ranks (lane, s->op))
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
void ops_share (loop *l) {
  int32_t ran = l->ran;
  l->ran = l->running;
  l->shares_changed = false;
  if (!l->running)
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
