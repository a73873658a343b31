/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Amounts by name, as bars that lie: names are read without turning one's head, however many. */
#include "base/order.h"
#include "plot/svg_inner.h"

enum { BAR = 150, BETWEEN = 90, VALUE = 900 /* room for the number behind the longest bar */ };

static int32_t group_height (const figure *f) {
  return BAR * f->n_series + BETWEEN;
}

int32_t bars_height (const figure *f) {
  return group_height (f) * (f->x.n_names > 0 ? f->x.n_names : 1);
}

static void draw_hole (canvas *c, const figure_point *at, int32_t y) {
  canvas_short (c, c->left + 60, y + 120, "small halo", at->note ? at->note : "none",
                c->width + VALUE - 60);
}

static void draw_bar (canvas *c, const figure_series *s, const figure_point *at, int32_t y) {
  char text[UNITS_TEXT];
  int32_t zero = place_x (c, 0), end = place_x (c, at->y);
  int32_t left = end < zero ? end : zero, width = end < zero ? zero - end : end - zero;
  pen_put (c->pen, "<rect class=\"f-%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"><title>",
           tone_names[s->tone], tenths (left).text, tenths (y).text, tenths (width).text,
           tenths (BAR - 20).text);
  pen_text (c->pen, s->name);
  if (at->note) {
    pen_put (c->pen, ": ");
    pen_text (c->pen, at->note);
  }
  pen_put (c->pen, "</title></rect>");
  canvas_text (c, (end > zero ? end : zero) + 50, y + 110, "halo",
               scale_text (c->f->y.unit, at->y, text));
}

static void draw_points (canvas *c, bool holes) {
  for (int32_t k = 0; k < c->f->n_series; k++)
    for (int32_t i = 0; i < c->f->series[k].n_points; i++) {
      const figure_point *at = &c->f->series[k].points[i];
      int32_t y = c->top + group_height (c->f) * (int32_t)at->x + BETWEEN / 2 + BAR * k;
      if (holes && at->y == FIGURE_HOLE)
        draw_hole (c, at, y);
      else if (!holes && at->y != FIGURE_HOLE)
        draw_bar (c, &c->f->series[k], at, y);
    }
}

void draw_bars (canvas *c) {
  int64_t low, high;
  figure_y_range (c->f, &low, &high);
  if (low > 0)
    low = 0; /* a bar's length is its amount */
  if (high < 0)
    high = 0;
  c->width -= VALUE;
  c->x = scale_of (c->f->y.unit, low, high, min_of (c->width / 700, 12), true);
  open_plot (c, "bars");
  draw_x_axis (c);
  for (int32_t i = 0; i < c->f->x.n_names; i++)
    canvas_short (c, c->left - 100, c->top + group_height (c->f) * i + group_height (c->f) / 2 + 40,
                  "end", c->f->x.names[i], c->left - 140);
  draw_points (c, false);
  for (int32_t i = 0; i < c->f->n_marks; i++) {
    const figure_mark *m = &c->f->marks[i];
    if (m->kind != MARK_Y)
      continue;
    int32_t x = place_x (c, m->y);
    pen_put (c->pen, "<path class=\"mark s-%s\" d=\"M%s %sV%s\"/>\n", tone_names[m->tone],
             tenths (x).text, tenths (c->top).text, tenths (c->top + c->height).text);
    canvas_text (c, x, c->top - 20, "halo mid", m->name);
  }
  draw_points (c, true); /* words are not crossed by a mark */
  pen_put (c->pen, "</g>\n");
}
