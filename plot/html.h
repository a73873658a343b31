/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A page in one file, with nothing to be fetched: the page of one plan where there is data for it,
   else each figure as SVG, with hover and keys, and its numbers as a table behind it. */
#pragma once

#include "base/arena.h"
#include "base/file.h"
#include "plot/figure.h"

bool html_page (const figure_page *page, arena *scratch, bytes *out, error *err) MUST_CHECK;
