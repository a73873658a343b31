/* --svg, --html and --tsv: pictures as files, the same for every command that has them. */
#ifndef FERRY_CLI_FIGURES_PICTURE_FILES_H
#define FERRY_CLI_FIGURES_PICTURE_FILES_H

#include "cli/call/call.h"
#include "plot/figure.h"

/* clang-format off */
#define OPTIONS_OF_DRAWINGS \
  { 0, "svg", "FILE", "the picture as SVG, light and dark" }, \
  { 0, "html", "FILE", "the picture as one page with hover and tables" }, \
  { 0, "width", "N", "pixels of the picture's width, 320 to 4000; without it, 960" }
#define OPTIONS_OF_PICTURES \
  { 0, "tsv", "FILE", "the picture's numbers as tab-separated text" }, \
  OPTIONS_OF_DRAWINGS
/* clang-format on */

/* Writes those files that were asked for; any: whether one was. */
bool picture_files (call *c, const figure_page *page, bool *any) MUST_CHECK;

#endif
