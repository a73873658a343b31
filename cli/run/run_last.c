/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/run_last.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 4 };

/* One line of the shim's: four numbers and a name. */
static bool read_line (char *line, last_span *out) {
  int64_t number[NUMBERS];
  char *at = line;
  for (int i = 0; i < NUMBERS; i++) {
    char *end;
    number[i] = strtoll (at, &end, 10);
    if (end == at || *end != ' ')
      return false;
    at = end + 1;
  }
  *out = (last_span){ number[0], number[1], number[2], number[3], at };
  return out->lane >= 0 && out->lane < LAST_LANES && out->ns >= 0;
}

bool last_read (call *c, const program_run *r, last_step *out) {
  char path[SHIM_PATH + 64], *rest = NULL;
  bytes text = { 0 };
  *out = (last_step){ 0 };
  if (!file_read_raw (program_file (r, path, sizeof path, SHIM_LAST, -1), (int64_t)1 << 30, &text,
                      &c->err))
    return false;
  int64_t lines = 0;
  for (int64_t i = 0; i < text.size; i++)
    lines += text.data[i] == '\n';
  char *own = arena_string (c->arena, text.data, &c->err);
  bytes_free (&text);
  if (!ALLOC (c->arena, out->spans, lines + 1, &c->err) || !own)
    return false;
  for (char *line = strtok_r (own, "\n", &rest); line && out->n_spans <= lines;
       line = strtok_r (NULL, "\n", &rest))
    out->n_spans += read_line (line, &out->spans[out->n_spans]);
  return true;
}

const char *last_lane (call *c, int64_t lane) {
  return lane == LAST_OUT  ? "copies out"
         : lane == LAST_IN ? "copies in"
                           : arena_format (c->arena, &c->err, "stream %lld", (long long)lane);
}
