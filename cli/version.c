#include "config.h"

#include "cli/call/call.h"
#include "trace/device.h"
#include "trace/plan.h"
#include "trace/trace.h"

static int run (call *c) {
  if (!c->json) {
    printf ("ferry %s\n", PACKAGE_VERSION);
    return EXIT_YES;
  }
  json_writer w;
  json_begin (&w, 1);
  json_open_object (&w);
  json_put_key (&w, "formats");
  json_open_array (&w);
  json_put_text (&w, DEVICE_FORMAT);
  json_put_text (&w, PLAN_FORMAT);
  json_put_text (&w, TRACE_FORMAT);
  json_close_array (&w);
  json_add_text (&w, "version", PACKAGE_VERSION);
  json_close_object (&w);
  return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
}

const cli_command command_version = {
  .name = "version",
  .says = "say which ferry this is",
  .operands = "",
  .about = "Prints the version; as JSON also the file formats that are read and written.\n",
  .json = true,
  .run = run,
};
