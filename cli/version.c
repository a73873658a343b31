/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "config.h"

#include "cli/call/call.h"
#include "cli/commit.h"
#include "trace/device.h"
#include "trace/plan.h"
#include "trace/trace.h"

static int run (call *c) {
  if (!c->json) {
    printf ("ferry %s%s%s%s\n", PACKAGE_VERSION, *FERRY_COMMIT ? " (" : "", FERRY_COMMIT,
            *FERRY_COMMIT ? ")" : "");
    return EXIT_YES;
  }
  json_writer w;
  json_begin_object (&w, 1);
  json_add_text (&w, "commit", *FERRY_COMMIT ? FERRY_COMMIT : NULL);
  json_add_array (&w, "formats");
  json_put_text (&w, DEVICE_FORMAT);
  json_put_text (&w, PLAN_FORMAT);
  json_put_text (&w, TRACE_FORMAT);
  json_close_array (&w);
  json_add_text (&w, "licence", "GPL-3.0-or-later");
  json_add_text (&w, "version", PACKAGE_VERSION);
  json_close_object (&w);
  return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

const cli_command command_version = {
  .name = "version",
  .says = "say which ferry this is",
  .operands = "",
  .about =
      "Prints the version and the commit that it was built from; as JSON also the licence and the "
      "file formats that are read and written.\n",
  .json = true,
  .run = run,
};
