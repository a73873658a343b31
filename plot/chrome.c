/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/chrome.h"

#include "base/chrome_event.h"

enum { PROCESS = 1 };

static const char *const tone_names[] = {
#define TONE(name, light, dark) #name,
#include "plot/tones.def"
#undef TONE
};

/* A row's name, or its place among the rows. */
static void put_name (json_writer *w, const char *what, int32_t row, const char *name) {
  json_open_object (w);
  json_add_object (w, "args");
  if (name)
    json_add_text (w, "name", name);
  else
    json_add_int (w, "sort_index", row);
  json_close_object (w);
  json_add_text (w, "name", what);
  json_add_text (w, "ph", "M");
  json_add_int (w, "pid", PROCESS);
  json_add_int (w, "tid", row);
  json_close_object (w);
}

static void put_slice (json_writer *w, int32_t row, const figure_span *s) {
  json_open_object (w);
  if (s->bytes > 0) {
    json_add_object (w, "args");
    json_add_int (w, "bytes", s->bytes);
    json_close_object (w);
  }
  json_add_text (w, "cat", tone_names[s->tone]);
  chrome_event_us (w, "dur", s->end - s->start);
  json_add_text (w, "name", s->tone == TONE_stall || !s->name ? tone_names[s->tone] : s->name);
  json_add_text (w, "ph", "X");
  json_add_int (w, "pid", PROCESS);
  json_add_int (w, "tid", row);
  chrome_event_us (w, "ts", s->start);
  json_close_object (w);
}

static void put_count (json_writer *w, const figure_series *s, const figure_point *p) {
  json_open_object (w);
  json_add_object (w, "args");
  json_add_int (w, "bytes", p->y);
  json_close_object (w);
  json_add_text (w, "name", s->name);
  json_add_text (w, "ph", "C");
  json_add_int (w, "pid", PROCESS);
  chrome_event_us (w, "ts", p->x);
  json_close_object (w);
}

static void put_arrow (json_writer *w, const chrome_arrow *a, int32_t id, bool end) {
  json_open_object (w);
  if (end)
    json_add_text (w, "bp", "e"); /* it ends at the slice around it, not at the next one */
  json_add_text (w, "cat", "swap");
  json_add_int (w, "id", id);
  json_add_text (w, "name", "swap");
  json_add_text (w, "ph", end ? "f" : "s");
  json_add_int (w, "pid", PROCESS);
  json_add_int (w, "tid", 1 + (end ? a->to_lane : a->from_lane));
  chrome_event_us (w, "ts", end ? a->to_ns : a->from_ns);
  json_close_object (w);
}

bool chrome_text (const chrome_trace *t, bytes *out, error *err) {
  json_writer w;
  json_begin_object (&w, 2);
  json_add_text (&w, "displayTimeUnit", "ms");
  json_add_array (&w, "otherData");
  for (int32_t i = 0; i < t->n_facts; i++) {
    json_open_object (&w);
    json_add_int (&w, "exact", t->facts[i].exact);
    json_add_text (&w, "key", t->facts[i].key);
    json_add_text (&w, "text", t->facts[i].text);
    json_close_object (&w);
  }
  json_close_array (&w);
  json_add_array (&w, "traceEvents");
  put_name (&w, "process_name", 0, t->title);
  for (int32_t i = 0; i < t->n_lanes; i++) {
    put_name (&w, "thread_name", 1 + i, t->lanes[i].name);
    put_name (&w, "thread_sort_index", 1 + i, NULL);
  }
  for (int32_t i = 0; i < t->n_lanes; i++)
    for (int32_t k = 0; k < t->lanes[i].n_spans; k++)
      put_slice (&w, 1 + i, &t->lanes[i].spans[k]);
  for (int32_t i = 0; i < t->n_counters; i++)
    for (int32_t k = 0; k < t->counters[i].n_points; k++)
      put_count (&w, &t->counters[i], &t->counters[i].points[k]);
  for (int32_t i = 0; i < t->n_arrows; i++) {
    put_arrow (&w, &t->arrows[i], i, false);
    put_arrow (&w, &t->arrows[i], i, true);
  }
  json_close_array (&w);
  json_close_object (&w);
  return json_finish (&w, out, err);
}
