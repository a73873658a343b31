/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The contents of a picture, before anybody has drawn it: axes, series of whole numbers, lanes
   of spans, marks.  svg, html, term_figure and tsv draw the same figure; none knows where the
   numbers come from.  All of it belongs to the caller; figures are plain constants to those who
   draw. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FIGURE_HOLE INT64_MIN /* as a point's y: nothing here, and a line is broken */

/* The meaning of a number on an axis. A share is in millionths. Of FIGURE_NAME, x is an index of
   names. */
typedef enum figure_unit {
  FIGURE_BYTES,
  FIGURE_NS,
  FIGURE_SHARE,
  FIGURE_COUNT,
  FIGURE_NAME
} figure_unit;

/* Colours by what they mean, so that one thing has one colour in every picture. plot/tones.def has
   them for light and for dark. */
typedef enum figure_tone {
#define TONE(name, light, dark) TONE_##name,
#include "plot/tones.def"
#undef TONE
  FIGURE_TONES
} figure_tone;

typedef struct figure_axis {
  const char *title;
  figure_unit unit;
  bool from_zero;           /* else from the smallest value, with a little room */
  const char *const *names; /* of FIGURE_NAME */
  int32_t n_names;
} figure_axis;

/* low: where a band or a layer of a stack begins; 0 for the rest. note: for hover, or NULL. */
typedef struct figure_point {
  int64_t x, y, low;
  const char *note;
} figure_point;

typedef enum figure_kind {
  FIGURE_LINE,   /* straight from point to point */
  FIGURE_STEP,   /* y holds until the next point; the last one to the end of the axis */
  FIGURE_AREA,   /* a step filled down to low */
  FIGURE_BAND,   /* filled between low and y, straight from point to point */
  FIGURE_POINTS, /* dots */
  FIGURE_BARS    /* side by side with the other series of bars at the same x */
} figure_kind;

typedef struct figure_series {
  const char *name;
  figure_kind kind;
  figure_tone tone;
  bool dashed;
  const figure_point *points; /* by x, but those of bars */
  int32_t n_points;
} figure_series;

typedef struct figure_span {
  int64_t start, end;
  const char *name; /* or NULL */
  int64_t bytes;    /* that it carries; 0: none */
  figure_tone tone;
} figure_span;

/* Lanes say who is busy when: the spans of one do not overlap; they are cut at the ends of the x
   axis. */
typedef struct figure_lane {
  const char *name;
  const figure_span *spans;
  int32_t n_spans;
} figure_lane;

typedef enum figure_mark_kind {
  MARK_X,    /* a line upright at x */
  MARK_Y,    /* a line across at y */
  MARK_POINT /* a ring at (x, y) */
} figure_mark_kind;

typedef struct figure_mark {
  figure_mark_kind kind;
  int64_t x, y;
  const char *name;
  figure_tone tone;
} figure_mark;

/* Either series or lanes; x_end > x_start fixes the x axis, else the points say it. */
typedef struct figure {
  const char *id; /* one word, for links and tests */
  const char *title;
  figure_axis x, y;
  int64_t x_start, x_end;
  const figure_series *series;
  const figure_lane *lanes;
  const figure_mark *marks;
  int32_t n_series, n_lanes, n_marks;
} figure;

/* A line of text under the title: "step", "12.3 ms"; exact is the plain number behind it. */
typedef struct figure_fact {
  const char *key, *text;
  int64_t exact;
} figure_fact;

/* Figures one below the other. */
typedef struct figure_page {
  const char *title, *subtitle; /* subtitle may be NULL */
  const figure *figures;
  const figure_fact *facts;
  int32_t n_figures, n_facts;
  const char *data; /* JSON that the page's script draws in place of the figures, or NULL */
} figure_page;
