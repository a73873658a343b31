/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry link`: measure the link and write a device file. */
#include "executor/link/link.h"

#include "base/order.h"
#include "base/units.h"
#include "cli/figures/host_table.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/drivers.h"
#include "cli/inputs/hosts.h"
#include "executor/driver/host.h"
#include "trace/cards.h"

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
  return device_named (c, name ? name : "titanx-pascal", &dev) &&
         link_emulate (d, &dev, NULL, &c->err);
}

typedef struct question {
  driver driver;
  bool emulated;
  int64_t most_bytes;
  host_limits limits;
} question;

static bool measure_card (call *c, question *q, link_result *out) {
  if (!driver_start (&q->driver, 0, &c->err))
    return false;
  bool good = link_measure (&q->driver, q->emulated, q->most_bytes, q->limits.available_bytes / 2,
                            c->arena, out, &c->err);
  driver_stop (&q->driver);
  return good;
}

/* ---- all cards ---- */

enum { PINNED_PARTS = 4 }; /* all but one of these may be pinned */

/* Its cards are named by the device file that fits what they call themselves. */
static bool name_cards (call *c, const link_result *r, gpu_host *out) {
  const char *given = call_text (c, "device"), *known = card_device (r->device.name);
  out->device = given ? given : known;
  return out->device ||
         error_set (
             &c->err, ERR_usage,
             "there is no device file for a %s: `ferry link -o card.json` makes one; give it "
             "by --device",
             r->device.name);
}

static bool describe_real (call *c, const question *q, const link_result *r, gpu_host *out) {
  const host_limits *h = &q->limits;
  out->name = "this machine";
  out->source = "measured by ferry link --all";
  out->host_bytes = h->memory_bytes;
  out->pinned_bytes = min_of (h->lock_bytes, h->memory_bytes / PINNED_PARTS * (PINNED_PARTS - 1));
  return name_cards (c, r, out);
}

/* The host whose links are planted, and found again. */
static bool emulate_host (call *c, question *q, gpu_host *out) {
  const char *name = call_text (c, "host");
  device card;
  if (!host_and_card (c, name ? name : "hgx-h100", out, &card) ||
      !link_emulate (&q->driver, &card, out, &c->err))
    return false;
  out->source = "measured by ferry link --all on the emulated host";
  return true;
}

static int run_all (call *c, question *q) {
  gpu_host h = { 0 };
  link_result r;
  const char *path = call_text (c, "output");
  if ((q->emulated && !emulate_host (c, q, &h)) || !measure_card (c, q, &r) ||
      (!q->emulated && !describe_real (c, q, &r, &h)))
    return call_failed (c);
  h.has_link = true;
  h.link = r.device.link;
  h.n_groups = 0;
  if (!link_measure_host (&q->driver, q->emulated, q->most_bytes, c->arena, &h, &c->err) ||
      (path && !host_store (&h, path, &c->err)))
    return call_failed (c);
  if (c->json) {
    json_writer w;
    json_begin (&w, 2);
    host_write (&w, &h);
    return call_print_json (c, &w) ? EXIT_YES : call_failed (c);
  }
  host_print (&h);
  return EXIT_YES;
}

static int run (call *c) {
  const char *library;
  question q = { .limits = host_limits_read () };
  link_result r;
  bool all = call_flag (c, "all");
  if (!call_driver (c, &library, &q.emulated) || !call_quantity (c, "most", &q.most_bytes) ||
      (!all && call_text (c, "host") &&
       !call_usage (c, "--host goes with --all: it names the emulated host")) ||
      !driver_open (&q.driver, library, &c->err))
    return call_failed (c);
  if (all)
    return run_all (c, &q);
  bool good = (!q.emulated || emulate (c, &q.driver)) && measure_card (c, &q, &r);
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
  { 0, "all", NULL,
    "measure all cards at once, all but one, and in pairs, out, in, and both ways; a host file "
    "comes "
    "out" },
  { 0, "host", "NAME|FILE",
    "with --all: the host whose cards are emulated, a name of `ferry hosts` or a host file "
    "(hgx-h100)" },
  OPTION_OUTPUT ("write what was found as a device file, with --all as a host file"),
  OPTIONS_END,
};

const cli_command command_link = {
  .name = "link",
  .says = "measure the link between host and device",
  .operands = "",
  .least = 0,
  .most = 0,
  .about =
      "Copies pinned memory each way, both ways at once, and beside a running kernel, over a "
      "range of sizes, and prints medians of five. With -o it writes a device file, with which "
      "`ferry solve` plans for this machine.\n"
      "With --all, copies of several cards run at once, which shows the cards that share a link "
      "and what it carries. The file is for --host.\n",
  .options = options,
  .json = true,
  .run = run,
};
