/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/host_table.h"

#include <stdio.h>

#include "base/units.h"

static void print_host (const gpu_host *h) {
  char all[UNITS_TEXT], pinned[UNITS_TEXT], out[UNITS_TEXT], in[UNITS_TEXT], both[UNITS_TEXT];
  printf ("%s: %d x %s, %s of memory, %s of it may be pinned\n", h->name, h->n_cards, h->device,
          units_bytes (all, h->host_bytes), units_bytes (pinned, h->pinned_bytes));
  printf ("  %-10s %12s %12s %25s\n", "", "to host", "to device", "both ways");
  printf ("  %-10s %12s %12s %25s\n", "a card", units_rate (out, h->link.d2h_bytes_per_s),
          units_rate (in, h->link.h2d_bytes_per_s), units_rate (both, h->link.both_bytes_per_s));
}

static void print_group (const host_group *g) {
  char out[UNITS_TEXT], in[UNITS_TEXT], both[COPY_WAYS][UNITS_TEXT];
  const char *between = "; cards ";
  printf ("  %-10.10s %12s %12s %12s %12s", g->name, units_rate (out, g->one_way[WAY_out]),
          units_rate (in, g->one_way[WAY_in]), units_rate (both[WAY_out], g->both[WAY_out]),
          units_rate (both[WAY_in], g->both[WAY_in]));
  for (uint64_t at = g->cards; at; at &= at - 1, between = ",")
    printf ("%s%d", between, __builtin_ctzll (at));
  if (g->network[WAY_out] || g->network[WAY_in])
    printf ("; beside %s out and %s in of a network card", units_rate (out, g->network[WAY_out]),
            units_rate (in, g->network[WAY_in]));
  puts ("");
}

void host_print (const gpu_host *h) {
  print_host (h);
  for (int32_t g = 0; g < h->n_groups; g++)
    print_group (&h->groups[g]);
  if (*h->source)
    printf ("  %s\n", h->source);
}
