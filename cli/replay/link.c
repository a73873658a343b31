/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry link`: measure the link and write a device file. */
#include "executor/link.h"

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/drivers.h"
#include "executor/driver/host.h"

static void print_rows (const link_result *r) {
  printf ("%10s %12s %12s   %12s %12s   %12s %12s\n", "bytes", "out", "in", "out, both", "in, both",
          "out, busy", "in, busy");
  for (int32_t i = 0; i < r->n_rows; i++) {
    const link_row *x = &r->rows[i];
    char n[UNITS_TEXT], t[6][UNITS_TEXT];
    printf ("%10s %12s %12s   %12s %12s   %12s %12s\n", units_bytes (n, x->bytes),
            units_time (t[0], x->out_ns), units_time (t[1], x->in_ns),
            units_time (t[2], x->both_out_ns), units_time (t[3], x->both_in_ns),
            units_time (t[4], x->busy_out_ns), units_time (t[5], x->busy_in_ns));
  }
  const device_link *l = &r->device.link;
  char out[UNITS_TEXT], in[UNITS_TEXT], both[UNITS_TEXT], cost[UNITS_TEXT];
  printf ("out %s, in %s, both together %s; a copy costs %s besides\n",
          units_rate (out, l->d2h_bytes_per_s), units_rate (in, l->h2d_bytes_per_s),
          units_rate (both, l->both_bytes_per_s), units_time (cost, l->copy_ns));
}

static bool emulate (call *c, const driver *d) {
  const char *name = call_text (c, "device");
  device dev;
  return device_named (c, name ? name : "titanx-pascal", &dev) && link_emulate (d, &dev, &c->err);
}

static int run (call *c) {
  const char *library;
  bool emulated;
  int64_t most = 0;
  driver d = { 0 };
  link_result r;
  host_limits h = host_limits_read ();
  if (!call_driver (c, &library, &emulated) || !call_quantity (c, "most", &most) ||
      !driver_open (&d, library, &c->err) || (emulated && !emulate (c, &d)) ||
      !driver_start (&d, 0, &c->err))
    return call_failed (c);
  bool good = link_measure (&d, emulated, most, h.available_bytes / 2, c->arena, &r, &c->err);
  driver_stop (&d);
  const char *path = call_text (c, "output");
  if (!good || (path && !device_store (&r.device, path, &c->err)))
    return call_failed (c);
  if (c->json) {
    json_writer w;
    json_begin (&w, 2);
    device_write (&w, &r.device);
    return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
  }
  print_rows (&r);
  return EXIT_YES;
}

static const cli_option options[] = {
  OPTION_DRIVER,
  { 'd', "device", "NAME|FILE", "the card whose link is emulated (titanx-pascal)" },
  { 0, "most", "SIZE", "the largest copy that is tried (256MiB)", RANGE_SIZE },
  OPTION_OUTPUT ("write what was found as a device file"),
  OPTIONS_END,
};

const cli_command command_link = {
  .name = "link",
  .says = "measure the link between host and device",
  .operands = "",
  .least = 0,
  .most = 0,
  .about = "Copies pinned memory each way, both ways at once, and beside a running kernel, over a "
           "range of sizes, and prints medians of five. With -o, a device file comes out, by which "
           "`ferry solve` plans for this machine.\n",
  .options = options,
  .json = true,
  .run = run,
};
