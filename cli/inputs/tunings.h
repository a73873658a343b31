/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every strategy and number of the search, for `--tune list`, and what they did. */
#pragma once

#include "solver/options/options.h"

void tunings_list (void);
/* For -v, on standard error: a row for each strategy that did something. */
void tunings_tell (const search_stats *s);
