/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --svg, --html and --tsv: pictures as files, the same for every command that has them. */
#pragma once

#include "cli/call/call.h"
#include "plot/figure.h"

/* clang-format off */
#define OPTIONS_OF_DRAWINGS \
  { 0, "svg", "FILE", "the picture as SVG, light and dark" }, \
  { 0, "html", "FILE", "the picture as one page with hover and tables" }
#define OPTIONS_OF_PICTURES \
  { 0, "tsv", "FILE", "the picture's numbers as tab-separated text" }, \
  OPTIONS_OF_DRAWINGS
/* clang-format on */

#define OPTION_TSV                                                  \
  {                                                                 \
    0, "tsv", "FILE",                                               \
        "the result as tab-separated values, in this file instead " \
        "of a table; - is standard output"                          \
  }

/* Rows that a command writes by itself, for the file of its --tsv. */
typedef struct tsv_text {
  FILE *to;
  char *text;
  size_t size;
} tsv_text;
bool tsv_open (call *c, tsv_text *t) MUST_CHECK;
bool tsv_close (call *c, tsv_text *t) MUST_CHECK;

/* The --svg and --html of a page whose --tsv is the command's own. */
bool picture_drawings (call *c, const figure_page *page) MUST_CHECK;
/* Writes those files that were asked for; any: whether one was. */
bool picture_files (call *c, const figure_page *page, bool *any) MUST_CHECK;
