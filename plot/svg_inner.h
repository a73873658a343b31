/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the parts of the SVG writer; lengths are in tenths of a pixel. */
#pragma once

#include "plot/figure.h"
#include "plot/pen.h"
#include "plot/scale.h"

enum { TEXT_CHARACTER = 70 };

/* The place of one figure; x and y are set before its parts draw. */
typedef struct canvas {
  pen *pen;
  const figure *f;
  int32_t left, top, width, height; /* of the frame */
  scale x, y;
} canvas;

extern const char *const tone_names[FIGURE_TONES];

bool figure_has_bars (const figure *f);
/* Wide enough for `text` in the usual size, in tenths. */
int32_t text_width (const char *text);
void canvas_text (canvas *c, int32_t x, int32_t y, const char *class, const char *text);
void canvas_short (canvas *c, int32_t x, int32_t y, const char *class, const char *text,
                   int32_t room);

int32_t series_height (const figure *f);
int32_t lanes_height (const figure *f);
int32_t bars_height (const figure *f);
/* Each draws its frame, ticks and contents. */
void draw_series (canvas *c);
void draw_lanes (canvas *c);
void draw_bars (canvas *c);

void draw_x_axis (canvas *c);
void draw_y_axis (canvas *c);
void open_plot (canvas *c, const char *kind);
int32_t place_x (const canvas *c, int64_t value);
int32_t place_y (const canvas *c, int64_t value);
/* The ends of the x axis: what the figure says, or what its points span. */
void figure_x_range (const figure *f, int64_t *low, int64_t *high);
void figure_y_range (const figure *f, int64_t *low, int64_t *high);
