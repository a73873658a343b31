/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures as SVG text: light and dark by a media query, light in print, fixed decimals.  No script;
   hover titles are those of SVG.  docs/pictures.md says what is drawn how. */
#pragma once

#include "base/file.h"
#include "plot/figure.h"

/* A file of its own: title, facts, all figures. */
bool svg_page (const figure_page *page, bytes *out, error *err) MUST_CHECK;

/* One figure as an element inside a page, whose style svg_style gives. The group of class "plot"
   has the ends of its axes as data- attributes. */
bool svg_figure (const figure *f, bytes *out, error *err) MUST_CHECK;
bool svg_style (bytes *out, error *err) MUST_CHECK;
