/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_chrome.h"

#include <stdlib.h>
#include <string.h>

#include "base/chrome_event.h"

enum { NUMBERS = 4, LANES = 64 };

/* One line of the shim's: four numbers and a name. */
typedef struct shown {
  int64_t number[NUMBERS]; /* stream, start, length, bytes */
  const char *name;
} shown;

static bool read_line (char *line, shown *out) {
  char *at = line;
  for (int i = 0; i < NUMBERS; i++) {
    char *end;
    out->number[i] = strtoll (at, &end, 10);
    if (end == at || *end != ' ')
      return false;
    at = end + 1;
  }
  out->name = at;
  return out->number[0] >= 0 && out->number[0] < LANES && out->number[2] >= 0;
}

static void put_lane (call *c, json_writer *w, int64_t lane) {
  const char *name = lane == 0   ? "copies out"
                     : lane == 1 ? "copies in"
                                 : arena_format (c->arena, &c->err, "stream %lld", (long long)lane);
  chrome_event_lane (w, lane, name ? name : "");
}

bool run_chrome (call *c, const program_run *r, const char *output) {
  char path[SHIM_PATH + 64], *rest = NULL;
  bool lanes[LANES] = { false };
  json_writer w;
  bytes text = { 0 }, made = { 0 };
  if (!file_read_raw (program_file (r, path, sizeof path, SHIM_LAST, -1), (int64_t)1 << 30, &text,
                      &c->err))
    return false;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_text (&w, "displayTimeUnit", "ns");
  json_put_key (&w, "traceEvents");
  json_open_array (&w);
  for (char *line = strtok_r (text.data, "\n", &rest); line; line = strtok_r (NULL, "\n", &rest)) {
    shown s;
    if (!read_line (line, &s))
      continue;
    if (!lanes[s.number[0]])
      put_lane (c, &w, s.number[0]);
    lanes[s.number[0]] = true;
    chrome_event_span (&w, s.number[0], s.name, s.number[1], s.number[2],
                       s.number[3] > 0 ? "bytes" : NULL, s.number[3]);
  }
  json_close_array (&w);
  json_close_object (&w);
  bool good = json_finish (&w, &made, &c->err) && call_write (c, output, made.data, made.size);
  bytes_free (&text);
  bytes_free (&made);
  return good;
}
