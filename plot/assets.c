/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/assets.h"

#include "plot/assets.inc" /* made by plot/embed.sh */

const asset asset_page_css = { page_css, sizeof page_css };
const asset asset_page_js = { page_js, sizeof page_js };
