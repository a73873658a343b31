/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_chrome.h"

#include "base/chrome_event.h"
#include "cli/run/run_last.h"

static void put_lane (call *c, json_writer *w, int64_t lane) {
  const char *name = last_lane (c, lane);
  chrome_event_lane (w, lane, name ? name : "");
}

bool run_chrome (call *c, const program_run *r, const char *output) {
  bool lanes[LAST_LANES] = { false };
  last_step step;
  json_writer w;
  bytes made = { 0 };
  if (!last_read (c, r, &step))
    return false;
  json_begin_object (&w, 0);
  json_add_text (&w, "displayTimeUnit", "ns");
  json_add_array (&w, "traceEvents");
  for (int32_t i = 0; i < step.n_spans; i++) {
    const last_span *s = &step.spans[i];
    if (!lanes[s->lane])
      put_lane (c, &w, s->lane);
    lanes[s->lane] = true;
    chrome_event_span (&w, s->lane, s->name, s->start_ns, s->ns, s->bytes > 0 ? "bytes" : NULL,
                       s->bytes);
  }
  json_close_array (&w);
  json_close_object (&w);
  bool good = json_finish (&w, &made, &c->err) && call_write (c, output, made.data, made.size);
  bytes_free (&made);
  return good;
}
