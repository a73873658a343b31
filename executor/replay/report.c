/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A replay's observations, as JSON and as a Chrome trace. */
#include "executor/replay/replay.h"

#include <assert.h>
#include <stdio.h>

#include "base/chrome_event.h"

static void put_event (json_writer *w, const char *name, int queue, int32_t step, int64_t zero_ns,
                       const span *s) {
  chrome_event_span (w, queue, name, s->start_ns - zero_ns, s->end_ns - s->start_ns, "step", step);
}

static const char *unit_name (const plan *p, const trace *t, int32_t unit) {
  return unit < t->n_tensors ? t->tensors[unit].name
                             : t->tensors[p->groups[unit - t->n_tensors].at[0]].name;
}

static void put_moves (json_writer *w, const plan *p, const replay_result *r, const span *spans,
                       int queue, int32_t step, int64_t zero_ns) {
  char name[200];
  for (int32_t m = 0; m < p->n_moves; m++) {
    if (spans[m].start_ns < 0)
      continue;
    snprintf (name, sizeof name, "%.150s %d/%d",
              unit_name (p, r->rewritten.trace, p->moves[m].unit), p->moves[m].part,
              p->moves[m].of);
    put_event (w, name, queue, step, zero_ns, &spans[m]);
  }
}

bool replay_chrome (const plan *p, const replay_result *r, bytes *out, error *err) {
  assert (p && r && out);
  const trace *t = r->rewritten.trace;
  int64_t zero_ns = r->timed > 0 ? r->ops[0].start_ns : 0;
  for (int64_t i = 0; i < (int64_t)r->timed * p->n_moves; i++) {
    if (r->ins[i].start_ns >= 0 && r->ins[i].start_ns < zero_ns)
      zero_ns = r->ins[i].start_ns; /* a copy in may begin before its step's first op */
    if (r->outs[i].start_ns >= 0 && r->outs[i].start_ns < zero_ns)
      zero_ns = r->outs[i].start_ns;
  }
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_add_text (&w, "displayTimeUnit", "ns");
  json_put_key (&w, "traceEvents");
  json_open_array (&w);
  chrome_event_lane (&w, 0, "compute");
  chrome_event_lane (&w, 1, "copies to the host");
  chrome_event_lane (&w, 2, "copies to the device");
  for (int32_t step = 0; step < r->timed; step++) {
    for (int32_t k = 0; k < t->n_ops; k++)
      put_event (&w, t->ops[k].name, 0, step, zero_ns, &r->ops[(int64_t)step * t->n_ops + k]);
    put_moves (&w, p, r, r->outs + (int64_t)step * p->n_moves, 1, step, zero_ns);
    put_moves (&w, p, r, r->ins + (int64_t)step * p->n_moves, 2, step, zero_ns);
  }
  json_close_array (&w);
  json_close_object (&w);
  return json_finish (&w, out, err);
}

bool replay_json (const replay_result *r, bytes *out, error *err) {
  assert (r && out);
  const trace *t = r->rewritten.trace;
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_add_int (&w, "device_bytes", r->device_bytes);
  json_add_bool (&w, "exact", r->exact);
  json_add_int (&w, "host_bytes", r->host_bytes);
  json_add_int (&w, "issued_copies", r->issued_copies);
  json_add_int (&w, "issued_waits", r->issued_waits);
  json_add_int (&w, "iterations", r->steps);
  json_add_bool (&w, "laden", r->laden);
  json_add_int (&w, "largest_start_difference_ns", r->largest_ns);
  json_add_int (&w, "median_start_difference_ns", r->median_ns);
  json_add_int (&w, "mismatched_words", (int64_t)r->found.count);
  json_add_int (&w, "plan_waits", r->plan_waits);
  json_put_key (&w, "predicted");
  predicted_write (&w, &r->predicted);
  json_add_int (&w, "races", r->n_races);
  json_put_key (&w, "seen");
  predicted_write (&w, &r->seen);
  json_add_int (&w, "waits", r->waits);
  json_put_key (&w, "worst");
  json_open_array (&w);
  for (int32_t i = 0; i < r->n_worst; i++) {
    json_open_object (&w);
    json_add_text (&w, "name", t->ops[r->worst[i].op].name);
    json_add_int (&w, "op", r->worst[i].op);
    json_add_int (&w, "predicted_ns", r->worst[i].predicted_ns);
    json_add_int (&w, "seen_ns", r->worst[i].seen_ns);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_close_object (&w);
  return json_finish (&w, out, err);
}
