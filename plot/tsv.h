/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbers of a page's figures as tab-separated text: for each figure a line "# id: title", a
   line of column names, a line a row; an empty line between figures. */
#pragma once

#include "base/arena.h"
#include "base/file.h"
#include "plot/figure.h"

bool tsv_page (const figure_page *page, arena *scratch, bytes *out, error *err) MUST_CHECK;
