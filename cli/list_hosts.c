/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry hosts`: which hosts can be named. */
#include "base/units.h"
#include "cli/inputs/beside.h"
#include "cli/inputs/hosts.h"

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
  puts ("");
}

static void print_table (const gpu_host *h, bool first) {
  if (!first)
    puts ("");
  print_host (h);
  for (int32_t g = 0; g < h->n_groups; g++)
    print_group (&h->groups[g]);
  if (*h->source)
    printf ("  %s\n", h->source);
}

static int run (call *c) {
  int count;
  const char *const *names = data_names (c, "hosts", &count);
  if (!names)
    return call_failed (c);
  json_writer w;
  json_begin (&w, 2);
  json_open_array (&w);
  for (int i = 0; i < count; i++) {
    gpu_host h;
    if (!host_named (c, names[i], &h)) {
      bytes_free (&w.out);
      return call_failed (c);
    }
    if (c->json)
      host_write (&w, &h);
    else if (c->verbose)
      print_table (&h, i == 0);
    else
      puts (names[i]);
  }
  json_close_array (&w);
  if (!c->json)
    bytes_free (&w.out);
  return !c->json || call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

const cli_command command_hosts = {
  .name = "hosts",
  .says = "list the hosts that can be named",
  .operands = "",
  .about = "Lists the host files that ferry ships: machines with several cards that share links; "
           "with -v their memory, the rates of one card alone and of all cards of a group "
           "together, and where the figures come from; as JSON the files themselves.\n",
  .json = true,
  .run = run,
};
