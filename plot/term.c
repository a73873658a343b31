/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/term_inner.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { LABEL = TERM_LABEL, DOTS_X = TERM_DOTS_X, DOTS_Y = TERM_DOTS_Y };
enum { MOST_COLUMNS = TERM_MOST_COLUMNS, LANE_NAME = 10, SHARE = 6 };

static const char red[] = "\x1b[31m", blue[] = "\x1b[34m", plain[] = "\x1b[0m";

bool term_put (bytes *out, error *err, const char *format, ...) {
  char text[256];
  va_list args;
  va_start (args, format);
  int length = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  assert (length >= 0 && length < (int)sizeof text);
  return bytes_append (out, text, length, err);
}

int term_columns (const term_style *style, int beside) {
  int columns = style->columns - beside;
  return columns < 8 ? 8 : columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
}

/* ---- an amount over time ---- */

/* The largest amount in each of `n` equal pieces of the time. */
static void largest_in_pieces (const term_point *points, int32_t count, int64_t end_ns,
                               int64_t *most, int n) {
  int64_t from = points[0].at_ns, span = end_ns - from;
  memset (most, 0, (size_t)n * sizeof *most);
  for (int32_t i = 0; i < count; i++) {
    int64_t next = i + 1 < count ? points[i + 1].at_ns : end_ns;
    if (next <= points[i].at_ns)
      continue;
    int64_t first = units_scale (points[i].at_ns - from, n, span);
    int64_t last = units_scale (next - 1 - from, n, span);
    for (int64_t k = first; k <= last && k < n; k++)
      if (points[i].bytes > most[k])
        most[k] = points[i].bytes;
  }
}

/* The dots, of `height`, that an amount fills; something is never nothing. */
static int filled (int64_t bytes, int64_t top, int height) {
  int64_t dots = units_scale (bytes, height, top);
  return (int)(dots == 0 && bytes > 0 ? 1 : dots);
}

unsigned term_dot (int x, int y) {
  static const unsigned left[] = { 0x40, 0x04, 0x02, 0x01 }, right[] = { 0x80, 0x20, 0x10, 0x08 };
  return x ? right[y] : left[y];
}

bool term_braille (bytes *out, unsigned dots, error *err) {
  unsigned code = 0x2800 | dots;
  char text[3] = { (char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
                   (char)(0x80 | (code & 63)) };
  return code == 0x2800 ? bytes_append (out, " ", 1, err) : bytes_append (out, text, 3, err);
}

typedef struct area {
  const term_style *style;
  int64_t most[MOST_COLUMNS * DOTS_X];
  int64_t top, limit;
  int rows, columns, limit_row;
} area;

static bool put_cell (const area *a, int row, int column, bytes *out, error *err) {
  int dots[DOTS_X], any = 0;
  for (int x = 0; x < DOTS_X; x++) {
    int64_t bytes = a->most[column * DOTS_X + x];
    int left = filled (bytes, a->top, a->rows * DOTS_Y) - row * DOTS_Y;
    dots[x] = left < 0 ? 0 : left > DOTS_Y ? DOTS_Y : left;
    any += dots[x];
  }
  if (!any && row == a->limit_row)
    return bytes_append (out, "-", 1, err);
  if (!a->style->utf8)
    return bytes_append (out, any >= DOTS_Y ? "#" : any ? "." : " ", 1, err);
  unsigned code = 0;
  for (int x = 0; x < DOTS_X; x++)
    for (int y = 0; y < dots[x]; y++)
      code |= term_dot (x, y);
  return term_braille (out, code, err);
}

static bool put_row (const area *a, int row, const char *limit_name, bytes *out, error *err) {
  char label[UNITS_TEXT] = "";
  if (row == a->rows - 1)
    units_bytes (label, a->top);
  else if (row == a->limit_row)
    snprintf (label, sizeof label, "%.10s", limit_name);
  else if (row == 0)
    snprintf (label, sizeof label, "0");
  const char *bar = a->style->utf8 ? "\xe2\x94\x82" : "|";
  bool over = a->limit > 0 && row > a->limit_row;
  bool ok = term_put (out, err, "%*s %s", LABEL - 2, label, bar);
  if (a->style->color)
    ok = ok && term_put (out, err, "%s", over ? red : blue);
  int64_t size = out->size;
  for (int x = 0; x < a->columns && ok; x++)
    ok = put_cell (a, row, x, out, err);
  while (ok && out->size > size && out->data[out->size - 1] == ' ')
    out->size--; /* blanks at the end */
  return ok && term_put (out, err, "%s\n", a->style->color ? plain : "");
}

bool term_area (const term_amount *m, int rows, const term_style *style, bytes *out, error *err) {
  if (m->n_points < 1 || m->end_ns <= m->points[0].at_ns)
    return true;
  area a = { .style = style, .rows = rows, .limit = m->limit_bytes, .limit_row = -1 };
  a.columns = term_columns (style, LABEL);
  largest_in_pieces (m->points, m->n_points, m->end_ns, a.most, a.columns * DOTS_X);
  for (int x = 0; x < a.columns * DOTS_X; x++)
    if (a.most[x] > a.top)
      a.top = a.most[x];
  if (a.limit > 0 && a.limit <= a.top)
    a.limit_row = (int)units_scale (a.limit, rows, a.top) - (a.limit == a.top);
  else
    a.limit = 0;
  if (a.top == 0)
    return true;
  bool ok = true;
  for (int row = rows - 1; row >= 0 && ok; row--)
    ok = put_row (&a, row, m->limit_name, out, err);
  char time[UNITS_TEXT];
  units_time (time, m->end_ns - m->points[0].at_ns);
  return ok && term_put (out, err, "%*s0%*s\n", LABEL, "", a.columns - 1, time);
}

/* ---- lanes ---- */

/* Adds the part of [start, end) in each piece; what lies outside of [0, period) wraps around. */
static void add_busy (int64_t *busy, int n, int64_t period, int64_t start, int64_t end) {
  if (end - start >= period) {
    for (int k = 0; k < n; k++)
      busy[k] += units_scale (k + 1, period, n) - units_scale (k, period, n);
    return;
  }
  int64_t shift = start % period + (start % period < 0 ? period : 0) - start;
  start += shift;
  end += shift;
  for (int k = (int)units_scale (start, n, period); start < end; k++) {
    int64_t piece_end = units_scale (k + 1, period, n);
    int64_t until = end < piece_end ? end : piece_end;
    if (until > start) {
      busy[k % n] += until - start;
      start = until;
    }
  }
}

static bool put_lane (const term_lane *lane, int64_t end_ns, int columns, const term_style *style,
                      bytes *out, error *err) {
  static const char *const blocks[] = { " ", "\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93",
                                        "\xe2\x96\x88" };
  static const char *const ascii[] = { " ", ".", ":", "=", "#" };
  int64_t busy[MOST_COLUMNS] = { 0 }, total = 0;
  for (int32_t i = 0; i < lane->n_spans; i++)
    if (lane->spans[i].end_ns > lane->spans[i].start_ns) {
      add_busy (busy, columns, end_ns, lane->spans[i].start_ns, lane->spans[i].end_ns);
      total += lane->spans[i].end_ns - lane->spans[i].start_ns;
    }
  bool ok =
      term_put (out, err, "%*s %s", LANE_NAME, lane->name, style->utf8 ? "\xe2\x94\x82" : "|");
  for (int k = 0; k < columns && ok; k++) {
    int64_t piece = units_scale (k + 1, end_ns, columns) - units_scale (k, end_ns, columns);
    int64_t shade = piece ? units_scale (busy[k], 4, piece) : 0;
    shade = shade > 4 ? 4 : shade == 0 && busy[k] > 0 ? 1 : shade;
    const char *glyph = style->utf8 ? blocks[shade] : ascii[shade];
    ok = bytes_append (out, glyph, (int64_t)strlen (glyph), err);
  }
  return ok && term_put (out, err, "%s%4d%%\n", style->utf8 ? "\xe2\x94\x82" : "|",
                         (int)units_scale (total, 100, end_ns));
}

bool term_lanes (const term_lane *lanes, int count, int64_t end_ns, const term_style *style,
                 bytes *out, error *err) {
  bool ok = true;
  int columns = term_columns (style, LABEL + SHARE);
  for (int i = 0; i < count && ok && end_ns > 0; i++)
    ok = put_lane (&lanes[i], end_ns, columns, style, out, err);
  return ok;
}
