/* `ferry doctor`: what this machine can do. */
#include <string.h>

#include "base/units.h"
#include "cli/call.h"
#include "cli/drivers.h"
#include "executor/driver.h"
#include "executor/host.h"

static void say_device (const driver *d) {
  char name[128] = "", total_text[UNITS_TEXT], free_text[UNITS_TEXT];
  size_t left = 0, total = 0;
  d->device_get_name (name, sizeof name, d->device);
  d->mem_get_info (&left, &total);
  printf ("  %s, CUDA %d.%d, %s of memory, %s free\n", name, d->version / 1000,
          d->version % 1000 / 10, units_bytes (total_text, (int64_t)total),
          units_bytes (free_text, (int64_t)left));
}

/* True where the driver works. */
static bool say_driver (const char *what, const char *path) {
  driver d = { 0 };
  error err = { 0 };
  bool works = driver_open (&d, path, &err) && driver_start (&d, 0, &err);
  printf ("%-9s %s\n", what, works ? "works" : "no");
  if (works)
    say_device (&d);
  else
    printf ("  %s\n", err.text);
  driver_stop (&d);
  return works;
}

static void say_host (void) {
  host_limits h = host_limits_read ();
  char all[UNITS_TEXT], left[UNITS_TEXT], lock[UNITS_TEXT];
  printf ("host      %s of memory, %s available\n", units_bytes (all, h.memory_bytes),
          units_bytes (left, h.available_bytes));
  if (h.lock_bytes == INT64_MAX)
    printf ("  memory may be locked without limit\n");
  else
    printf ("  %s may be locked by a process (ulimit -l); a driver that minds it refuses to pin "
            "more\n",
            units_bytes (lock, h.lock_bytes));
}

static int run (call *c) {
  (void)c;
  char path[4096];
  say_host ();
  bool gpu = say_driver ("gpu", NULL);
  bool emulated = say_driver ("emulator", emulator_path (path, sizeof path));
  if (!gpu)
    printf ("plans can be made here and replayed on the emulated device\n");
  return emulated || gpu ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = { OPTIONS_END };

const cli_command command_doctor = {
  .name = "doctor",
  .says = "say what this machine can do",
  .operands = "",
  .least = 0,
  .most = 0,
  .about =
      "Looks at the host's memory and its limits, at the GPU's driver and at the emulated one.\n",
  .options = options,
  .run = run,
};
