/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the terminal's pictures. */
#pragma once

#include "plot/term.h"

enum { TERM_LABEL = 12, TERM_DOTS_X = 2, TERM_DOTS_Y = 4, TERM_MOST_COLUMNS = 400 };

bool term_put (bytes *out, error *err, const char *format, ...) PRINTF_LIKE (3, 4);
/* How many columns are left beside those for labels. */
int term_columns (const term_style *style, int beside);
/* One dot of a braille cell: x from the left, y from the bottom. */
unsigned term_dot (int x, int y);
bool term_braille (bytes *out, unsigned dots, error *err) MUST_CHECK;
