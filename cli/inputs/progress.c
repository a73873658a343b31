/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define OFTEN_NS ((int64_t)200000000)
#define SELDOM_NS ((int64_t)10000000000)
enum { LINE = 200, BAR = 20 };

static void add (char *line, const char *text) {
  size_t length = strlen (line);
  snprintf (line + length, LINE - length, "%s", text);
}

static void add_bar (char *line, const going *g) {
  char text[80];
  int full = (int)((int64_t)BAR * g->done / g->all);
  snprintf (text, sizeof text, " [%.*s%*s] %d of %d", full, "####################", BAR - full, "",
            g->done, g->all);
  add (line, text);
}

static void add_time (char *line, const call *c, int64_t now) {
  char a[UNITS_TEXT], text[80];
  const going *g = &c->going;
  int64_t second = 1000000000, spent = (now - g->began_ns) / second * second, left = -1;
  if (c->deadline_ns > now)
    left = (c->deadline_ns - now) / second * second;
  else if (g->all && g->done > 0 && g->done < g->all)
    left = (now - g->began_ns) / g->done * (g->all - g->done) / second * second;
  if (spent >= second) {
    snprintf (text, sizeof text, ", %s", units_time (a, spent));
    add (line, text);
  }
  if (left >= second) {
    snprintf (text, sizeof text, ", about %s left", units_time (a, left));
    add (line, text);
  }
}

static void make_line (const call *c, int64_t now, char *line) {
  char a[UNITS_TEXT], text[80];
  const going *g = &c->going;
  snprintf (line, LINE, "%s:", c->command->name);
  if (g->all)
    add_bar (line, g);
  else if (g->done) {
    snprintf (text, sizeof text, " %d tried", g->done);
    add (line, text);
  } else
    add (line, " searching");
  if (g->best_ns > 0) {
    snprintf (text, sizeof text, ", best %s", units_time (a, g->best_ns));
    add (line, text);
  }
  if (g->best_ns > 0 && g->bound_ns > 0) {
    snprintf (text, sizeof text, ", gap %.2f %%",
              100.0 * ((double)g->best_ns / (double)g->bound_ns - 1));
    add (line, text);
  }
  add_time (line, c, now);
}

/* A step further is shown at once where that is live: another may follow before a line is due. */
static void look (call *c, bool further) {
  going *g = &c->going;
  int64_t now = monotonic_ns ();
  char line[LINE];
  if (!g->began_ns)
    g->began_ns = g->shown_ns = now;
  bool live = isatty (STDERR_FILENO);
  bool due = (live && further) || now - g->shown_ns >= (live ? OFTEN_NS : SELDOM_NS);
  if (c->quiet || g->silent || !due || (!live && !c->verbose))
    return;
  g->shown_ns = now;
  make_line (c, now, line);
  if (live)
    fprintf (stderr, "\r\033[K%.*s", c->columns - 1, line);
  else
    fprintf (stderr, "ferry: %s\n", line);
  g->live = live;
  fflush (stderr);
}

void progress_look (call *c) {
  look (c, false);
}

void progress_done (call *c, int32_t done, int32_t all, int64_t step_ns) {
  going *g = &c->going;
  bool further = done > g->done, changed = done != g->done;
  g->done = done;
  g->all = all;
  if (step_ns >= 0) {
    g->best_ns = step_ns;
    g->bound_ns = 0;
  }
  if (changed)
    call_tell_done (c);
  look (c, further);
  if (all && done >= all)
    call_clear_line (c);
}
