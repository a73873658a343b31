/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry hosts`: which hosts can be named. */
#include "cli/figures/host_table.h"
#include "cli/inputs/beside.h"
#include "cli/inputs/hosts.h"

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
    else if (c->verbose) {
      if (i > 0)
        puts ("");
      host_print (&h);
    } else
      puts (names[i]);
  }
  json_close_array (&w);
  if (!c->json)
    bytes_free (&w.out);
  return !c->json || call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

const cli_command command_hosts = {
  .name = "hosts",
  .says = "list the known hosts",
  .operands = "",
  .about =
      "Lists the host files that ferry ships: machines with several cards that share links; with "
      "-v their memory, the rates of one card alone and of all cards of a group together, and "
      "where the figures come from; as JSON the files themselves.\n",
  .json = true,
  .run = run,
};
