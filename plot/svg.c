/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/svg.h"

#include <string.h>

#include "plot/svg_inner.h"

enum {
  TITLE = 260,   /* a figure's title and the room below */
  LEGEND = 200,  /* a row of the legend */
  X_AXIS = 480,  /* ticks and title of the x axis */
  LEFT = 700,    /* of the frame, where no name is longer */
  MARGIN = 160,  /* right of the frame */
  PAGE_TOP = 560, /* title and subtitle */
  SVG_WIDTH = 9600
};

const char *const tone_names[FIGURE_TONES] = {
#define TONE(name, light, dark) #name,
#include "plot/tones.def"
#undef TONE
};

static const char *const light_tones[] = {
#define TONE(name, light, dark) light,
#include "plot/tones.def"
#undef TONE
};

static const char *const dark_tones[] = {
#define TONE(name, light, dark) dark,
#include "plot/tones.def"
#undef TONE
};

/* ---- style ---- */

static void put_tones (pen *p, const char *const *tones) {
  for (int i = 0; i < FIGURE_TONES; i++)
    pen_put (p, ".f-%s{fill:%s}.s-%s{stroke:%s}\n", tone_names[i], tones[i], tone_names[i],
             tones[i]);
}

static void put_style (pen *p) {
  pen_put (p,
           "text{font:12px system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}\n"
           ".title{font-size:15px;font-weight:600}.head{font-size:18px;font-weight:600}\n"
           ".small{fill:#555}.key{font-weight:600}.end{text-anchor:end}"
           ".mid{text-anchor:middle}\n"
           ".paper{fill:#fff}.on{fill:#fff;font-size:11px;text-anchor:middle;pointer-events:none}"
           "\n");
  pen_put (p, ".halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}\n"
              ".grid{stroke:#e3e3e3;fill:none}.axis{stroke:#777;fill:none}\n"
              ".line{fill:none;stroke-width:2px;stroke-linejoin:round}.dash{stroke-dasharray:6 4}\n"
              ".mark{stroke-width:1.5px;stroke-dasharray:6 4}.ring{fill:none;stroke-width:2px}\n"
              ".band{opacity:.22}\n");
  put_tones (p, light_tones);
  pen_put (p, "@media screen and (prefers-color-scheme:dark){\n"
              "text{fill:#e6e6e6}.small{fill:#b0b0b0}.paper{fill:#16181d}.on{fill:#111}\n"
              ".halo{stroke:#16181d}.grid{stroke:#33363d}.axis{stroke:#999}\n");
  put_tones (p, dark_tones);
  pen_put (p, "}\n");
}

bool svg_style (bytes *out, error *err) {
  pen p = { out, err, false };
  put_style (&p);
  return pen_done (&p);
}

/* ---- parts that every kind has ---- */

bool figure_has_bars (const figure *f) {
  return f->n_series > 0 && f->series[0].kind == FIGURE_BARS;
}

/* About 7 pixels a character at 12 pixels; characters, not bytes. */
int32_t text_width (const char *text) {
  int32_t width = 0;
  for (; *text; text++)
    width += (*text & 0xc0) != 0x80 ? TEXT_CHARACTER : 0;
  return width;
}

void canvas_text (canvas *c, int32_t x, int32_t y, const char *class, const char *text) {
  pen_put (c->pen, "<text x=\"%s\" y=\"%s\"", tenths (x).text, tenths (y).text);
  if (*class)
    pen_put (c->pen, " class=\"%s\"", class);
  pen_put (c->pen, ">");
  pen_text (c->pen, text);
  pen_put (c->pen, "</text>\n");
}

/* A text as far as there is room, and all of it for hover. */
void canvas_short (canvas *c, int32_t x, int32_t y, const char *class, const char *text,
                   int32_t room) {
  char part[256];
  size_t end = 0;
  int32_t width = 0;
  if (text_width (text) <= room) {
    canvas_text (c, x, y, class, text);
    return;
  }
  while (text[end] && end < sizeof part - 1) {
    if ((text[end] & 0xc0) != 0x80 && (width += TEXT_CHARACTER) > room - TEXT_CHARACTER)
      break;
    part[end] = text[end];
    end++;
  }
  part[end] = 0;
  pen_put (c->pen, "<text x=\"%s\" y=\"%s\" class=\"%s\"><title>", tenths (x).text, tenths (y).text,
           class);
  pen_text (c->pen, text);
  pen_put (c->pen, "</title>");
  pen_text (c->pen, part);
  pen_put (c->pen, "\xe2\x80\xa6</text>\n");
}

typedef struct legend {
  canvas *c; /* NULL: only counts rows */
  int32_t left, right, x, y;
  int rows;
} legend;

static void put_entry (legend *l, const char *name, const char *tone, const figure_series *s) {
  int32_t width = 200 + text_width (name) + 120;
  if (l->x > l->left && l->x + width > l->right) {
    l->x = l->left;
    l->y += LEGEND;
    l->rows++;
  }
  if (l->c) {
    pen *p = l->c->pen;
    bool drawn = s && (s->kind == FIGURE_LINE || s->kind == FIGURE_STEP);
    if (drawn)
      pen_put (p, "<path class=\"line%s s-%s\" d=\"M%s %sh14\"/>", s->dashed ? " dash" : "", tone,
               tenths (l->x).text, tenths (l->y - 40).text);
    else if (s && s->kind == FIGURE_POINTS)
      pen_put (p, "<circle class=\"f-%s\" cx=\"%s\" cy=\"%s\" r=\"4\"/>", tone,
               tenths (l->x + 70).text, tenths (l->y - 40).text);
    else
      pen_put (p, "<rect class=\"%sf-%s\" x=\"%s\" y=\"%s\" width=\"14\" height=\"10\"/>",
               s && s->kind == FIGURE_BAND ? "band " : "", tone, tenths (l->x).text,
               tenths (l->y - 90).text);
    canvas_text (l->c, l->x + 200, l->y, "", name);
  }
  l->x += width;
}

/* Its title says what the only series is. */
static bool has_legend (const figure *f) {
  return f->n_series + f->n_lanes > 1;
}

static void put_entries (legend *l, const figure *f) {
  bool tones[FIGURE_TONES] = { false };
  for (int32_t i = 0; i < f->n_series; i++)
    put_entry (l, f->series[i].name, tone_names[f->series[i].tone], &f->series[i]);
  for (int32_t i = 0; i < f->n_lanes; i++)
    for (int32_t k = 0; k < f->lanes[i].n_spans; k++)
      tones[f->lanes[i].spans[k].tone] = true;
  for (int i = 0; i < FIGURE_TONES; i++)
    if (tones[i])
      put_entry (l, tone_names[i], tone_names[i], NULL);
}

static int32_t frame_left (const figure *f) {
  if (!f->n_lanes && !figure_has_bars (f))
    return LEFT;
  int32_t widest = 0;
  for (int32_t i = 0; i < f->n_lanes; i++)
    if (text_width (f->lanes[i].name) > widest)
      widest = text_width (f->lanes[i].name);
  for (int32_t i = 0; i < f->x.n_names && !f->n_lanes; i++)
    if (text_width (f->x.names[i]) > widest)
      widest = text_width (f->x.names[i]);
  int32_t most = SVG_WIDTH / 3; /* the rest is for the bars */
  widest += f->n_lanes ? 140 : 220;
  return widest < LEFT ? LEFT : widest > most ? most : widest;
}

static int legend_rows (const figure *f) {
  legend l = { .left = frame_left (f), .right = SVG_WIDTH - MARGIN, .rows = 1 };
  if (!has_legend (f))
    return 0;
  l.x = l.left;
  put_entries (&l, f);
  return l.rows;
}

static int32_t inner_height (const figure *f) {
  return f->n_lanes ? lanes_height (f) : figure_has_bars (f) ? bars_height (f) : series_height (f);
}

static int32_t whole_height (const figure *f) {
  return TITLE + LEGEND * legend_rows (f) + 200 + inner_height (f) + X_AXIS;
}

int32_t place_x (const canvas *c, int64_t value) {
  return c->left + scale_place (&c->x, value, c->width);
}

int32_t place_y (const canvas *c, int64_t value) {
  return c->top + c->height - scale_place (&c->y, value, c->height);
}

void open_plot (canvas *c, const char *kind) {
  pen_put (c->pen,
           "<g class=\"plot\" data-kind=\"%s\" data-left=\"%s\" data-top=\"%s\" data-width=\"%s\" "
           "data-height=\"%s\" data-low=\"%lld\" data-high=\"%lld\">\n",
           kind, tenths (c->left).text, tenths (c->top).text, tenths (c->width).text,
           tenths (c->height).text, (long long)c->x.low, (long long)c->x.high);
}

static void put_axis_title (canvas *c, const figure_axis *axis, const scale *s, int32_t x,
                            int32_t y, const char *class) {
  pen_put (c->pen, "<text class=\"small %s\" x=\"%s\" y=\"%s\">", class, tenths (x).text,
           tenths (y).text);
  pen_text (c->pen, axis->title ? axis->title : "");
  if (*s->unit_name)
    pen_put (c->pen, " (%s)", s->unit_name);
  pen_put (c->pen, "</text>\n");
}

void draw_x_axis (canvas *c) {
  char label[UNITS_TEXT];
  int32_t bottom = c->top + c->height;
  for (int i = 0; i < c->x.n_ticks; i++) {
    int32_t x = place_x (c, c->x.ticks[i]);
    pen_put (c->pen, "<path class=\"grid\" d=\"M%s %sV%s\"/>", tenths (x).text,
             tenths (c->top).text, tenths (bottom + 50).text);
    canvas_text (c, x, bottom + 180, "mid", scale_label (&c->x, i, label));
  }
  pen_put (c->pen, "<path class=\"axis\" d=\"M%s %sH%s\"/>\n", tenths (c->left).text,
           tenths (bottom).text, tenths (c->left + c->width).text);
  put_axis_title (c, figure_has_bars (c->f) ? &c->f->y : &c->f->x, &c->x, c->left + c->width / 2,
                  bottom + 360, "mid");
}

void draw_y_axis (canvas *c) {
  char label[UNITS_TEXT];
  for (int i = 0; i < c->y.n_ticks; i++) {
    int32_t y = place_y (c, c->y.ticks[i]);
    pen_put (c->pen, "<path class=\"grid\" d=\"M%s %sH%s\"/>", tenths (c->left).text,
             tenths (y).text, tenths (c->left + c->width).text);
    canvas_text (c, c->left - 70, y + 40, "end", scale_label (&c->y, i, label));
  }
  put_axis_title (c, &c->f->y, &c->y, 140, c->top - 110, "y");
}

/* ---- one figure, a page ---- */

static void put_figure (pen *p, const figure *f, int32_t top) {
  canvas c = { .pen = p, .f = f, .left = frame_left (f) };
  int rows = legend_rows (f);
  canvas_text (&c, 140, top + 180, "title", f->title);
  legend l = { &c, c.left, SVG_WIDTH - MARGIN, c.left, top + TITLE + 120, 1 };
  if (rows)
    put_entries (&l, f);
  c.top = top + TITLE + LEGEND * rows + 200;
  c.width = SVG_WIDTH - MARGIN - c.left;
  c.height = inner_height (f);
  if (f->n_lanes)
    draw_lanes (&c);
  else if (figure_has_bars (f))
    draw_bars (&c);
  else
    draw_series (&c);
}

static void open_svg (pen *p, int32_t height, const char *title) {
  pen_put (p,
           "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=\"%s\" "
           "height=\"%s\" role=\"img\"><title>",
           tenths (SVG_WIDTH).text, tenths (height).text, tenths (SVG_WIDTH).text,
           tenths (height).text);
  pen_text (p, title);
  pen_put (p, "</title>\n");
}

bool svg_figure (const figure *f, bytes *out, error *err) {
  pen p = { out, err, false };
  open_svg (&p, whole_height (f), f->title);
  put_figure (&p, f, 0);
  pen_put (&p, "</svg>\n");
  return pen_done (&p);
}

/* "step 12.3 ms", one after the other; returns the bottom of the last row. */
static int32_t put_facts (canvas *c, const figure_page *page, int32_t y, bool draw) {
  int32_t x = 140;
  for (int32_t i = 0; i < page->n_facts; i++) {
    const figure_fact *fact = &page->facts[i];
    int32_t key = text_width (fact->key), all = key + text_width (fact->text) + 100;
    if (x > 140 && x + all > SVG_WIDTH - MARGIN) {
      x = 140;
      y += LEGEND;
    }
    if (draw) {
      pen_put (c->pen, "<text x=\"%s\" y=\"%s\"><tspan class=\"small\">", tenths (x).text,
               tenths (y).text);
      pen_text (c->pen, fact->key);
      pen_put (c->pen, "</tspan> <tspan class=\"key\">");
      pen_text (c->pen, fact->text);
      pen_put (c->pen, "</tspan></text>\n");
    }
    x += all + 160;
  }
  return page->n_facts ? y : y - LEGEND;
}

bool svg_page (const figure_page *page, bytes *out, error *err) {
  pen p = { out, err, false };
  canvas c = { .pen = &p };
  int32_t head = page->subtitle && *page->subtitle ? PAGE_TOP : PAGE_TOP - LEGEND;
  int32_t height = put_facts (&c, page, head + 120, false) + 160;
  for (int32_t i = 0; i < page->n_figures; i++)
    height += whole_height (&page->figures[i]);
  open_svg (&p, height, page->title);
  pen_put (&p, "<style>\n");
  put_style (&p);
  pen_put (&p, "</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n");
  canvas_text (&c, 140, 300, "head", page->title);
  if (page->subtitle && *page->subtitle)
    canvas_text (&c, 140, 500, "small", page->subtitle);
  int32_t top = put_facts (&c, page, head + 120, true) + 160;
  for (int32_t i = 0; i < page->n_figures; i++) {
    put_figure (&p, &page->figures[i], top);
    top += whole_height (&page->figures[i]);
  }
  pen_put (&p, "</svg>\n");
  return pen_done (&p);
}
