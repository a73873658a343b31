/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The style and the script of our pages, built into the program: plot/assets/page.css and page.js.
 */
#ifndef FERRY_PLOT_ASSETS_H
#define FERRY_PLOT_ASSETS_H

#include <stdint.h>

typedef struct asset {
  const void *data;
  int64_t size;
} asset;

extern const asset asset_page_css, asset_page_js;

#endif
