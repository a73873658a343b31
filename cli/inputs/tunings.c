/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/tunings.h"

#include <stdio.h>

#include "base/units.h"
#include "solver/tuning/tuning.h"

static void number (const tuning_row *r) {
  char value[24], range[56];
  for (int i = 0; i < r->count; i++) {
    snprintf (value, sizeof value, "%lld", (long long)tuning_shipped.at[r->first + i]);
    snprintf (range, sizeof range, "%lld to %lld", (long long)r->least, (long long)r->most);
    if (r->count == 1)
      printf ("%-26s %12s  %-24s %s\n", r->name, value, range, r->why);
    else
      printf ("%-22s.%-3d %12s  %-24s %s\n", r->name, i, value, range, i ? "" : r->why);
  }
}

void tunings_list (void) {
  puts ("strategies: NAME=0 switches one off\n");
  for (int i = 0; i < STRATEGIES; i++)
    printf ("%-9s %-14s %s\n", strategy_rows[i].stage, strategy_rows[i].name,
            strategy_rows[i].says);
  puts ("\nnumbers: NAME=VALUE, or NAME.K=VALUE for number K of a list\n");
  for (const tuning_row *r = tuning_rows; r->name; r++)
    number (r);
}

void tunings_tell (const search_stats *s) {
  char gained[UNITS_TEXT];
  fflush (stdout);
  fprintf (stderr, "\n%-8s %-14s %8s %6s %10s %14s\n", "stage", "strategy", "tried", "won",
           "gained", "spent");
  for (int i = 0; i < STRATEGIES; i++) {
    const strategy_row *r = &strategy_rows[i];
    const strategy_stats *at = &s->of[i];
    if (at->tried || at->won || at->spent)
      fprintf (stderr, "%-8s %-14s %8lld %6lld %10s %14lld\n", r->stage, r->name,
               (long long)at->tried, (long long)at->won, units_time (gained, at->gained_ns),
               (long long)at->spent);
  }
}
