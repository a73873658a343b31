/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A row a lane, a box a span.  Spans too narrow to be told apart are one box, so
   that a step of a hundred thousand ops is still a small file. */
#include "base/order.h"
#include "plot/svg_inner.h"

enum { ROW = 340, BOX = 260, NARROW = 12, NEAR = 2, THINNEST = 4 };

int32_t lanes_height (const figure *f) {
  return ROW * f->n_lanes;
}

typedef struct box {
  int32_t left, right;
  figure_tone tone;
  int32_t first, count; /* spans */
  int64_t busy, bytes;
} box;

static void put_title (canvas *c, const figure_lane *lane, const box *b) {
  char text[UNITS_TEXT];
  const figure_span *s = &lane->spans[b->first];
  pen_put (c->pen, "<title>");
  if (b->count > 1)
    pen_put (c->pen, "%d of %s", b->count, tone_names[b->tone]);
  else
    pen_text (c->pen, s->name ? s->name : tone_names[b->tone]);
  pen_put (c->pen, ": %s", scale_text (c->f->x.unit, b->busy, text));
  if (b->bytes > 0)
    pen_put (c->pen, ", %s", scale_text (FIGURE_BYTES, b->bytes, text));
  if (b->count == 1)
    pen_put (c->pen, ", from %s", scale_text (c->f->x.unit, s->start, text));
  pen_put (c->pen, "</title></rect>\n");
}

static void put_box (canvas *c, const figure_lane *lane, int32_t y, const box *b) {
  int32_t width = b->right - b->left < THINNEST ? THINNEST : b->right - b->left;
  pen_put (c->pen, "<rect class=\"f-%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">",
           tone_names[b->tone], tenths (b->left).text, tenths (y).text, tenths (width).text,
           tenths (BOX).text);
  put_title (c, lane, b);
  const char *name = lane->spans[b->first].name;
  if (b->count == 1 && name && text_width (name) < width)
    canvas_text (c, b->left + width / 2, y + BOX / 2 + 40, "on", name);
}

static void draw_lane (canvas *c, const figure_lane *lane, int32_t y) {
  box b = { .count = 0 };
  for (int32_t i = 0; i < lane->n_spans; i++) {
    const figure_span *s = &lane->spans[i];
    if (s->end <= c->x.low || s->start >= c->x.high || s->end <= s->start)
      continue;
    int32_t left = place_x (c, s->start), right = place_x (c, s->end);
    bool joins = b.count > 0 && s->tone == b.tone && left <= b.right + NEAR &&
                 right - left < NARROW && b.right - b.left < NARROW * 4;
    if (joins) {
      b.right = right > b.right ? right : b.right;
      b.count++;
    } else {
      if (b.count > 0)
        put_box (c, lane, y, &b);
      b = (box){ left, right, s->tone, i, 1, 0, 0 };
    }
    b.busy += s->end - s->start;
    b.bytes += s->bytes;
  }
  if (b.count > 0)
    put_box (c, lane, y, &b);
}

void draw_lanes (canvas *c) {
  int64_t low, high;
  figure_x_range (c->f, &low, &high);
  c->x = scale_of (c->f->x.unit, low, high, min_of (c->width / 650, 12), false);
  open_plot (c, "lanes");
  draw_x_axis (c);
  for (int32_t i = 0; i < c->f->n_lanes; i++) {
    int32_t y = c->top + ROW * i + (ROW - BOX) / 2;
    canvas_text (c, c->left - 100, y + BOX / 2 + 40, "end", c->f->lanes[i].name);
    draw_lane (c, &c->f->lanes[i], y);
  }
  for (int32_t i = 0; i < c->f->n_marks; i++)
    if (c->f->marks[i].kind == MARK_X)
      pen_put (c->pen, "<path class=\"mark s-%s\" d=\"M%s %sV%s\"/>\n",
               tone_names[c->f->marks[i].tone], tenths (place_x (c, c->f->marks[i].x)).text,
               tenths (c->top).text, tenths (c->top + c->height).text);
  pen_put (c->pen, "</g>\n");
}
