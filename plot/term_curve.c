/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two lines over memory, what was found and what is proved: dots of braille, or one character a
 * cell.
 */
#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "plot/term_inner.h"

enum { MOST_ROWS = 40, DOTTED = 3 /* columns to a dot of the bound */ };

typedef struct picture {
  const term_curve_point *points;
  int32_t count;
  int columns, rows;
  int64_t low_ns, top_ns; /* of the axis */
  unsigned step[MOST_ROWS][TERM_MOST_COLUMNS], bound[MOST_ROWS][TERM_MOST_COLUMNS];
} picture;

static int64_t value_of (const term_curve_point *p, bool bound) {
  return bound ? p->bound_ns : p->step_ns;
}

/* Between the two points around it; -1 where there is none. */
static int64_t value_at (const picture *p, int dot, bool bound) {
  int64_t low = p->points[0].budget_bytes, wide = p->points[p->count - 1].budget_bytes - low;
  int64_t at = low + units_scale (wide, dot, p->columns * TERM_DOTS_X - 1);
  int32_t i = 0;
  while (i + 2 < p->count && p->points[i + 1].budget_bytes <= at)
    i++;
  const term_curve_point *a = &p->points[i], *b = &p->points[p->count > 1 ? i + 1 : i];
  int64_t x = value_of (a, bound), y = value_of (b, bound);
  if (x < 0 || y < 0 || b->budget_bytes <= a->budget_bytes)
    return at >= b->budget_bytes ? y : -1;
  int64_t part = at - a->budget_bytes, all = b->budget_bytes - a->budget_bytes;
  return y >= x ? x + units_scale (y - x, part, all) : x - units_scale (x - y, part, all);
}

static int height_of (const picture *p, int64_t value_ns) {
  int dots = p->rows * TERM_DOTS_Y;
  int64_t at = units_scale (value_ns - p->low_ns, dots - 1, p->top_ns - p->low_ns);
  return at < 0 ? 0 : at >= dots ? dots - 1 : (int)at;
}

/* A line without holes where it is steep. */
static void draw_line (picture *p, bool bound) {
  int before = -1;
  for (int dot = 0; dot < p->columns * TERM_DOTS_X; dot++) {
    int64_t value_ns = value_at (p, dot, bound);
    if (value_ns < 0) {
      before = -1;
      continue;
    }
    int here = height_of (p, value_ns), low = here, high = here;
    if (before >= 0 && before > here + 1)
      high = before - 1;
    if (before >= 0 && before < here - 1)
      low = before + 1;
    before = here;
    for (int y = low; y <= high && (!bound || dot % DOTTED == 0); y++)
      (bound ? p->bound : p->step)[y / TERM_DOTS_Y][dot / TERM_DOTS_X] |=
          term_dot (dot % TERM_DOTS_X, y % TERM_DOTS_Y);
  }
}

static bool put_row (const picture *p, int row, int last_row, const term_style *style, bytes *out,
                     error *err) {
  char label[UNITS_TEXT] = "";
  if (row == p->rows - 1)
    units_time (label, p->top_ns);
  else if (row == last_row)
    units_time (label, p->points[p->count - 1].step_ns);
  else if (row == 0)
    units_time (label, p->low_ns);
  bool ok =
      term_put (out, err, "%*s %s", TERM_LABEL - 2, label, style->utf8 ? "\xe2\x94\x82" : "|");
  int end = p->columns;
  while (end > 0 && !p->step[row][end - 1] && !p->bound[row][end - 1])
    end--;
  for (int x = 0; x < end && ok; x++) {
    unsigned step = p->step[row][x], bound = p->bound[row][x];
    ok = style->utf8 ? term_braille (out, step | bound, err)
                     : bytes_append (out,
                                     step    ? "*"
                                     : bound ? "."
                                             : " ",
                                     1, err);
  }
  return ok && term_put (out, err, "\n");
}

static bool put_knee (const picture *p, int64_t knee_bytes, bytes *out, error *err) {
  char text[UNITS_TEXT];
  int64_t low = p->points[0].budget_bytes, wide = p->points[p->count - 1].budget_bytes - low;
  int at = (int)units_scale (knee_bytes - low, p->columns - 1, wide);
  units_bytes (text, knee_bytes);
  int length = (int)sizeof "knee" + (int)strlen (text);
  return at + 2 + length <= p->columns
             ? term_put (out, err, "%*s^ knee %s\n", TERM_LABEL + at, "", text)
             : term_put (out, err, "%*sknee %s ^\n", TERM_LABEL + at - length - 1, "", text);
}

/* From near the least to the most, so that the lines fill the picture; what hardly varies looks
   flat. */
static void set_axis (picture *p) {
  int64_t least_ns = INT64_MAX;
  for (int32_t i = 0; i < p->count; i++)
    for (int k = 0; k < 2; k++) {
      int64_t ns = value_of (&p->points[i], k);
      if (ns > p->top_ns)
        p->top_ns = ns;
      if (ns >= 0 && ns < least_ns)
        least_ns = ns;
    }
  int64_t room_ns = (p->top_ns - least_ns) / 12 + p->top_ns / 100;
  p->low_ns = least_ns > room_ns ? least_ns - room_ns : 0;
}

bool term_curve (const term_curve_point *points, int32_t count, int64_t knee_bytes, int rows,
                 const term_style *style, bytes *out, error *err) {
  picture p = { .points = points, .count = count, .rows = rows };
  char first[UNITS_TEXT], last[UNITS_TEXT];
  assert (rows >= 2 && rows <= MOST_ROWS);
  p.columns = term_columns (style, TERM_LABEL);
  set_axis (&p);
  if (count < 2 || p.top_ns <= 0 || points[count - 1].budget_bytes <= points[0].budget_bytes)
    return true;
  draw_line (&p, true);
  draw_line (&p, false);
  int64_t end_ns = points[count - 1].step_ns;
  int last_row = end_ns > 0 ? height_of (&p, end_ns) / TERM_DOTS_Y : -1;
  bool ok = true;
  for (int row = rows - 1; row >= 0 && ok; row--)
    ok = put_row (&p, row, last_row, style, out, err);
  units_bytes (first, points[0].budget_bytes);
  units_bytes (last, points[count - 1].budget_bytes);
  int room = p.columns - (int)strlen (last);
  return ok &&
         term_put (out, err, "%*s%-*s%s\n", TERM_LABEL, "", room > 10 ? room : 10, first, last) &&
         (knee_bytes < 0 || put_knee (&p, knee_bytes, out, err)) &&
         term_put (out, err, "%*s%s\n", TERM_LABEL, "",
                   style->utf8 ? "line: the step that was found; dots: what no plan can beat"
                               : "*: the step that was found; .: what no plan can beat");
}
