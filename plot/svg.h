/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures as SVG text: light and dark by a media query, light in print, fixed decimals.  No script;
   hover titles are those of SVG.  docs/pictures.md says what is drawn how. */
#ifndef FERRY_PLOT_SVG_H
#define FERRY_PLOT_SVG_H

#include "base/file.h"
#include "plot/figure.h"

enum { SVG_WIDTH = 960, SVG_LEAST_WIDTH = 320, SVG_MOST_WIDTH = 4000 };

/* A file of its own: title, facts, all figures. width in pixels, 0: SVG_WIDTH. */
bool svg_page (const figure_page *page, int width, bytes *out, error *err) MUST_CHECK;

/* One figure as an element inside a page, whose style svg_style gives. The group of class "plot"
   has the ends of its axes as data- attributes. */
bool svg_figure (const figure *f, int width, bytes *out, error *err) MUST_CHECK;
bool svg_style (bytes *out, error *err) MUST_CHECK;

#endif
