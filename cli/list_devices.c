/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry devices`: which cards can be named. */
#include "base/units.h"
#include "cli/inputs/devices.h"
#include "trace/cards.h"

/* A line with the year stands above the cards of that year. */
static void table_year (const char *name, int *year) {
  int own = card_year (name);
  if (own == *year)
    return;
  *year = own;
  if (own)
    printf ("%d\n", own);
  else
    puts ("year not known");
}

static void table_row (const device *d) {
  char memory[UNITS_TEXT], out[UNITS_TEXT], in[UNITS_TEXT], host[UNITS_TEXT];
  printf ("  %-20s %10s %12s %12s %10s\n", d->name, units_bytes (memory, d->memory_bytes),
          units_rate (out, d->link.d2h_bytes_per_s), units_rate (in, d->link.h2d_bytes_per_s),
          units_bytes (host, d->host_bytes));
}

static int run (call *c) {
  int count, year = -1;
  const char *const *names = device_names (c, &count);
  if (!names)
    return call_failed (c);
  json_writer w;
  json_begin (&w, 1);
  json_open_array (&w);
  if (c->verbose && !c->json)
    printf ("  %-20s %10s %12s %12s %10s\n", "name", "memory", "to host", "to device", "host");
  for (int i = 0; i < count; i++) {
    device d;
    if (!device_named (c, names[i], &d)) {
      bytes_free (&w.out);
      return call_failed (c);
    }
    if (c->json)
      device_write (&w, &d);
    else if (c->verbose) {
      table_year (names[i], &year);
      table_row (&d);
    } else
      puts (names[i]);
  }
  json_close_array (&w);
  if (!c->json)
    bytes_free (&w.out);
  else if (!call_print_json (c, &w))
    return call_failed (c);
  return EXIT_YES;
}

const cli_command command_devices = {
  .name = "devices",
  .says = "list the known cards",
  .operands = "",
  .about =
      "Lists the device files that ferry ships, the newest cards first; with -v a table of their "
      "memory and link by year, as JSON the files themselves.\n",
  .json = true,
  .run = run,
};
