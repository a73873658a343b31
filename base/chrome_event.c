/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/chrome_event.h"

#include <stdio.h>

enum { PROCESS = 1 };

void chrome_event_us (json_writer *w, const char *key, int64_t ns) {
  char text[32];
  int64_t size = ns < 0 ? -ns : ns;
  snprintf (text, sizeof text, "%s%lld.%03lld", ns < 0 ? "-" : "", (long long)(size / 1000),
            (long long)(size % 1000));
  json_add_raw (w, key, text);
}

void chrome_event_lane (json_writer *w, int64_t lane, const char *name) {
  json_open_object (w);
  json_add_object (w, "args");
  json_add_text (w, "name", name);
  json_close_object (w);
  json_add_text (w, "name", "thread_name");
  json_add_text (w, "ph", "M");
  json_add_int (w, "pid", PROCESS);
  json_add_int (w, "tid", lane);
  json_close_object (w);
}

void chrome_event_span (json_writer *w, int64_t lane, const char *name, int64_t start_ns,
                        int64_t length_ns, const char *arg, int64_t value) {
  json_open_object (w);
  if (arg) {
    json_add_object (w, "args");
    json_add_int (w, arg, value);
    json_close_object (w);
  }
  chrome_event_us (w, "dur", length_ns);
  json_add_text (w, "name", name);
  json_add_text (w, "ph", "X");
  json_add_int (w, "pid", PROCESS);
  json_add_int (w, "tid", lane);
  chrome_event_us (w, "ts", start_ns);
  json_close_object (w);
}
