/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A replay's observations, as JSON and as a Chrome trace. */
#include "executor/replay/replay.h"

#include <assert.h>
#include <stdio.h>

#include "base/chrome_event.h"
#include "base/order.h"
#include "executor/replay/script.h"

/* A rank's events: its lanes follow those of the rank before. */
typedef struct events {
  json_writer *w;
  const plan *p;
  const replay_result *r;
  int first_lane;
  int64_t zero_ns;
} events;

static void put_event (const events *e, const char *name, int queue, int32_t step, const span *s) {
  chrome_event_span (e->w, e->first_lane + queue, name, s->start_ns - e->zero_ns,
                     s->end_ns - s->start_ns, "step", step);
}

static const char *unit_name (const plan *p, const trace *t, int32_t unit) {
  return unit < t->n_tensors ? t->tensors[unit].name
                             : t->tensors[p->groups[unit - t->n_tensors].at[0]].name;
}

static void put_moves (const events *e, const span *spans, int queue, int32_t step) {
  char name[200];
  const move *moves = e->p->moves;
  for (int32_t m = 0; m < e->p->n_moves; m++) {
    if (spans[m].start_ns < 0)
      continue;
    snprintf (name, sizeof name, "%.150s %d/%d",
              unit_name (e->p, e->r->rewritten.trace, moves[m].unit), moves[m].part, moves[m].of);
    put_event (e, name, queue, step, &spans[m]);
  }
}

/* A copy in may begin before its step's first op. */
static int64_t first_ns (const plan *p, const replay_result *r) {
  int64_t first = r->timed > 0 ? r->ops[0].start_ns : 0;
  for (int32_t k = 1; r->timed > 0 && k < r->rewritten.trace->n_ops; k++)
    first = min_of (first, r->ops[k].start_ns);
  for (int64_t i = 0; i < (int64_t)r->timed * p->n_moves; i++) {
    if (r->ins[i].start_ns >= 0)
      first = min_of (first, r->ins[i].start_ns);
    if (r->outs[i].start_ns >= 0)
      first = min_of (first, r->outs[i].start_ns);
  }
  return first;
}

/* A lane for each stream. */
static void put_lanes (const events *e, int32_t rank, int32_t ranks) {
  static const char *const names[WALK_QUEUES] = { "compute", "copies to the host",
                                                  "copies to the device" };
  char of_rank[24] = "", name[80];
  if (ranks > 1)
    snprintf (of_rank, sizeof of_rank, "rank %d: ", rank);
  for (int i = 0; i < script_streams (e->r->rewritten.trace); i++) {
    if (i < WALK_QUEUES)
      snprintf (name, sizeof name, "%s%s", of_rank, names[i]);
    else
      snprintf (name, sizeof name, "%scompute, stream %d", of_rank, i - WALK_QUEUES + 1);
    chrome_event_lane (e->w, e->first_lane + i, name);
  }
}

static void put_rank (const events *e) {
  const trace *t = e->r->rewritten.trace;
  for (int32_t step = 0; step < e->r->timed; step++) {
    for (int32_t k = 0; k < t->n_ops; k++)
      put_event (e, t->ops[k].name, script_stream_of_op (&t->ops[k]), step,
                 &e->r->ops[(int64_t)step * t->n_ops + k]);
    put_moves (e, e->r->outs + (int64_t)step * e->p->n_moves, 1, step);
    put_moves (e, e->r->ins + (int64_t)step * e->p->n_moves, 2, step);
  }
}

bool replay_chrome (const sim_job *jobs, const replay_result *r, int32_t ranks, bytes *out,
                    error *err) {
  assert (jobs && r && ranks > 0 && out);
  int64_t zero_ns = INT64_MAX;
  for (int32_t i = 0; i < ranks; i++)
    zero_ns = min_of (zero_ns, first_ns (jobs[i].plan, &r[i]));
  json_writer w;
  json_begin_object (&w, 2);
  json_add_text (&w, "displayTimeUnit", "ns");
  json_add_array (&w, "traceEvents");
  int lane = 0;
  for (int32_t i = 0; i < ranks; i++) {
    events e = { &w, jobs[i].plan, &r[i], lane, zero_ns };
    put_lanes (&e, i, ranks);
    put_rank (&e);
    lane += script_streams (r[i].rewritten.trace);
  }
  json_close_array (&w);
  json_close_object (&w);
  return json_finish (&w, out, err);
}

void replay_write (json_writer *w, const replay_result *r) {
  assert (w && r);
  const trace *t = r->rewritten.trace;
  json_open_object (w);
  json_add_int (w, "device_bytes", r->device_bytes);
  json_add_bool (w, "exact", r->exact);
  json_add_int (w, "host_bytes", r->host_bytes);
  json_add_int (w, "issued_copies", r->issued_copies);
  json_add_int (w, "issued_waits", r->issued_waits);
  json_add_int (w, "iterations", r->steps);
  json_add_bool (w, "laden", r->laden);
  json_add_int (w, "largest_start_difference_ns", r->largest_ns);
  json_add_int (w, "median_start_difference_ns", r->median_ns);
  json_add_int (w, "mismatched_words", (int64_t)r->found.count);
  json_add_int (w, "plan_waits", r->plan_waits);
  predicted_write (w, "predicted", &r->predicted);
  json_add_int (w, "races", r->n_races);
  predicted_write (w, "seen", &r->seen);
  json_add_int (w, "waits", r->waits);
  json_add_array (w, "worst");
  for (int32_t i = 0; i < r->n_worst; i++) {
    json_open_object (w);
    json_add_text (w, "name", t->ops[r->worst[i].op].name);
    json_add_int (w, "op", r->worst[i].op);
    json_add_int (w, "predicted_ns", r->worst[i].predicted_ns);
    json_add_int (w, "seen_ns", r->worst[i].seen_ns);
    json_close_object (w);
  }
  json_close_array (w);
  json_close_object (w);
}

bool replay_json (const replay_result *r, bytes *out, error *err) {
  assert (r && out);
  json_writer w;
  json_begin (&w, 2);
  replay_write (&w, r);
  return json_finish (&w, out, err);
}
