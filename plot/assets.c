/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/assets.h"

#include "plot/assets.inc" /* made by plot/embed.sh */

const asset assets[ASSETS] = {
  [ASSET_PAGE_HTML] = { "page.html", "text/html; charset=utf-8", page_html, sizeof page_html },
  [ASSET_PAGE_CSS] = { "page.css", "text/css; charset=utf-8", page_css, sizeof page_css },
  [ASSET_PAGE_JS] = { "page.js", "text/javascript; charset=utf-8", page_js, sizeof page_js },
  [ASSET_FIGURES_JS] = { "figures.js", "text/javascript; charset=utf-8", figures_js,
                         sizeof figures_js },
};
