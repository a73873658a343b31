/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines, steps, areas, bands and dots over a number, with their marks. */
#include "base/order.h"
#include "plot/svg_inner.h"

enum { FRAME = 2400, FINEST = 5 /* two changes closer than this are drawn as one */ };

int32_t series_height (const figure *f) {
  (void)f;
  return FRAME;
}

static void include (int64_t value, int64_t *low, int64_t *high) {
  if (value == FIGURE_HOLE)
    return;
  if (value < *low)
    *low = value;
  if (value > *high)
    *high = value;
}

void figure_x_range (const figure *f, int64_t *low, int64_t *high) {
  *low = f->x_start;
  *high = f->x_end;
  if (f->x_end > f->x_start)
    return;
  *low = INT64_MAX;
  *high = INT64_MIN;
  for (int32_t i = 0; i < f->n_series; i++)
    for (int32_t k = 0; k < f->series[i].n_points; k++)
      include (f->series[i].points[k].x, low, high);
  for (int32_t i = 0; i < f->n_lanes; i++)
    for (int32_t k = 0; k < f->lanes[i].n_spans; k++) {
      include (f->lanes[i].spans[k].start, low, high);
      include (f->lanes[i].spans[k].end, low, high);
    }
  if (*low > *high)
    *low = *high = 0;
  int64_t room = *high / 40 - *low / 40; /* dots at the ends are whole */
  *low = f->x.from_zero ? 0 : *low - (*low >= 0 && room > *low ? *low : room);
  *high += room;
}

void figure_y_range (const figure *f, int64_t *low, int64_t *high) {
  *low = INT64_MAX;
  *high = INT64_MIN;
  for (int32_t i = 0; i < f->n_series; i++)
    for (int32_t k = 0; k < f->series[i].n_points; k++) {
      const figure_point *p = &f->series[i].points[k];
      include (p->y, low, high);
      if (f->series[i].kind == FIGURE_BAND && p->y != FIGURE_HOLE)
        include (p->low, low, high);
    }
  for (int32_t i = 0; i < f->n_marks; i++)
    if (f->marks[i].kind != MARK_X)
      include (f->marks[i].y, low, high);
  if (*low > *high)
    *low = *high = 0;
  if (f->y.from_zero) {
    include (0, low, high);
    return;
  }
  int64_t room = (*high - *low) / 12 + *high / 100; /* a line that hardly varies looks flat */
  *low -= *low >= 0 && room > *low ? *low : room;
}

/* The highest of the points from `i` on that fall on one place, and the next one behind them. */
static int32_t next_point (const canvas *c, const figure_series *s, int32_t i, int64_t *top) {
  int32_t from = place_x (c, s->points[i].x);
  *top = s->points[i].y;
  for (i++; i < s->n_points && place_x (c, s->points[i].x) < from + FINEST; i++)
    if (s->points[i].y > *top)
      *top = s->points[i].y;
  return i;
}

/* Steps: what is too fine to see shows its highest and then its last value. */
static void draw_steps (canvas *c, const figure_series *s) {
  pen *p = c->pen;
  bool area = s->kind == FIGURE_AREA, open = false;
  int32_t floor = c->top + c->height, x = 0;
  pen_put (p, area ? "<path class=\"f-%s\" d=\"" : "<path class=\"line%s s-%s\" d=\"",
           area        ? tone_names[s->tone]
           : s->dashed ? " dash"
                       : "",
           tone_names[s->tone]);
  for (int32_t i = 0; i < s->n_points;) {
    int64_t top;
    int32_t next = next_point (c, s, i, &top);
    int64_t last = s->points[next - 1].y;
    x = place_x (c, s->points[i].x);
    if (open)
      pen_put (p, "H%s", tenths (x).text);
    if (top == FIGURE_HOLE || last == FIGURE_HOLE) {
      if (open && area)
        pen_put (p, "V%sZ", tenths (floor).text);
      open = false;
      i = next;
      continue;
    }
    if (!open)
      pen_put (p, area ? "M%s %s" : "M%s ", tenths (x).text, tenths (floor).text);
    pen_put (p, open || area ? "V%s" : "%s", tenths (place_y (c, top)).text);
    open = true;
    if (last != top)
      pen_put (p, "H%sV%s", tenths (x + FINEST).text, tenths (place_y (c, last)).text);
    i = next;
  }
  if (open)
    pen_put (p, "H%s", tenths (c->left + c->width).text);
  if (open && area)
    pen_put (p, "V%sZ", tenths (floor).text);
  pen_put (p, "\"/>\n");
}

static void draw_line (canvas *c, const figure_series *s) {
  pen *p = c->pen;
  pen_put (p, "<path class=\"line%s s-%s\" d=\"", s->dashed ? " dash" : "", tone_names[s->tone]);
  bool open = false;
  for (int32_t i = 0; i < s->n_points; i++) {
    const figure_point *at = &s->points[i];
    if (at->y != FIGURE_HOLE)
      pen_put (p, "%s%s %s", open ? "L" : "M", tenths (place_x (c, at->x)).text,
               tenths (place_y (c, at->y)).text);
    open = at->y != FIGURE_HOLE;
  }
  pen_put (p, "\"/>\n");
}

/* Each run of points without a hole: along the tops, and back along the bottoms. */
static void draw_band (canvas *c, const figure_series *s) {
  pen *p = c->pen;
  pen_put (p, "<path class=\"band f-%s\" d=\"", tone_names[s->tone]);
  for (int32_t i = 0; i < s->n_points;) {
    int32_t end = i;
    for (; end < s->n_points && s->points[end].y != FIGURE_HOLE; end++)
      pen_put (p, "%s%s %s", end == i ? "M" : "L", tenths (place_x (c, s->points[end].x)).text,
               tenths (place_y (c, s->points[end].y)).text);
    for (int32_t k = end - 1; k >= i; k--)
      pen_put (p, "L%s %s", tenths (place_x (c, s->points[k].x)).text,
               tenths (place_y (c, s->points[k].low)).text);
    pen_put (p, end > i ? "Z" : "");
    i = end > i ? end : i + 1;
  }
  pen_put (p, "\"/>\n");
}

static void draw_dots (canvas *c, const figure_series *s) {
  char x[UNITS_TEXT], y[UNITS_TEXT];
  for (int32_t i = 0; i < s->n_points; i++) {
    const figure_point *at = &s->points[i];
    if (at->y == FIGURE_HOLE)
      continue;
    pen_put (c->pen, "<circle class=\"f-%s\" cx=\"%s\" cy=\"%s\" r=\"4\"><title>",
             tone_names[s->tone], tenths (place_x (c, at->x)).text,
             tenths (place_y (c, at->y)).text);
    pen_text (c->pen, at->note ? at->note : s->name);
    pen_put (c->pen, ": %s at %s</title></circle>\n", scale_text (c->f->y.unit, at->y, y),
             scale_text (c->f->x.unit, at->x, x));
  }
}

/* Is anything drawn below this line? Then there is no room for a name. */
static bool has_below (const figure *f, int64_t y) {
  for (int32_t i = 0; i < f->n_series; i++)
    for (int32_t k = 0; k < f->series[i].n_points; k++)
      if (f->series[i].points[k].y != FIGURE_HOLE && f->series[i].points[k].y < y)
        return true;
  return false;
}

static void draw_mark (canvas *c, const figure_mark *m) {
  const char *tone = tone_names[m->tone];
  int32_t x = place_x (c, m->x), y = place_y (c, m->y), right = c->left + c->width;
  if (m->kind == MARK_Y) {
    pen_put (c->pen, "<path class=\"mark s-%s\" d=\"M%s %sH%s\"/>\n", tone, tenths (c->left).text,
             tenths (y).text, tenths (right).text);
    bool under = !has_below (c->f, m->y) && y + 180 < c->top + c->height;
    canvas_text (c, right - 40, under ? y + 150 : y - 50, "halo end", m->name);
    return;
  }
  bool turned = x + 100 + text_width (m->name) > right;
  const char *class = turned ? "halo end" : "halo";
  int32_t beside = turned ? x - 80 : x + 80;
  if (m->kind == MARK_X) {
    pen_put (c->pen, "<path class=\"mark s-%s\" d=\"M%s %sV%s\"/>\n", tone, tenths (x).text,
             tenths (c->top).text, tenths (c->top + c->height).text);
    canvas_text (c, beside, c->top + 120, class, m->name);
  } else {
    pen_put (c->pen, "<circle class=\"ring s-%s\" cx=\"%s\" cy=\"%s\" r=\"7\"/>\n", tone,
             tenths (x).text, tenths (y).text);
    canvas_text (c, beside + (turned ? -20 : 20), y - 80 < c->top + 120 ? y + 160 : y - 80, class,
                 m->name);
  }
}

void draw_series (canvas *c) {
  int64_t low, high;
  figure_x_range (c->f, &low, &high);
  c->x = scale_of (c->f->x.unit, low, high, min_of (c->width / 650, 12), false);
  figure_y_range (c->f, &low, &high);
  c->y = scale_of (c->f->y.unit, low, high, 6, true);
  open_plot (c, "series");
  draw_y_axis (c);
  draw_x_axis (c);
  /* layers of a stack reach down to the floor, so the lowest comes last */
  for (int32_t i = c->f->n_series - 1; i >= 0; i--)
    if (c->f->series[i].kind == FIGURE_AREA)
      draw_steps (c, &c->f->series[i]);
  for (int32_t i = 0; i < c->f->n_series; i++) {
    const figure_series *s = &c->f->series[i];
    switch (s->kind) {
    case FIGURE_STEP:
      draw_steps (c, s);
      break;
    case FIGURE_LINE:
      draw_line (c, s);
      break;
    case FIGURE_BAND:
      draw_band (c, s);
      break;
    case FIGURE_POINTS:
      draw_dots (c, s);
      break;
    default:
      break;
    }
  }
  for (int32_t i = 0; i < c->f->n_marks; i++)
    draw_mark (c, &c->f->marks[i]);
  pen_put (c->pen, "</g>\n");
}
