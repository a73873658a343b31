/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry doctor`: what this machine can do. */
#include <string.h>

#include "base/units.h"
#include "cli/inputs/drivers.h"
#include "cli/inputs/inputs.h"
#include "executor/driver/driver.h"
#include "executor/driver/host.h"
#include "executor/room/room.h"
#include "trace/check/check.h"

/* *left: what is free of its memory. */
static void say_device (const driver *d, int64_t *left) {
  char name[128] = "", total_text[UNITS_TEXT], free_text[UNITS_TEXT];
  size_t free_bytes = 0, total = 0;
  d->device_get_name (name, sizeof name, d->device);
  d->mem_get_info (&free_bytes, &total);
  *left = (int64_t)free_bytes;
  printf ("  %s, CUDA %d.%d, %s of memory, %s free\n", name, d->version / 1000,
          d->version % 1000 / 10, units_bytes (total_text, (int64_t)total),
          units_bytes (free_text, (int64_t)free_bytes));
}

/* True where the driver works. */
static bool say_driver (const char *what, const char *path, int64_t *left) {
  driver d = { 0 };
  error err = { 0 };
  bool works = driver_open (&d, path, &err) && driver_start (&d, 0, &err);
  printf ("%-9s %s\n", what, works ? "works" : "no");
  if (works)
    say_device (&d, left);
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

/* A plan's needs, beside what is there: false where it cannot be had. gpu_left: -1 without one. */
static bool say_plan (const room *r, int64_t gpu_left) {
  host_limits h = host_limits_read ();
  char device[UNITS_TEXT], host[UNITS_TEXT];
  printf ("plan      takes %s of the device and pins %s of the host\n",
          units_bytes (device, r->device_bytes), units_bytes (host, r->host_bytes));
  bool memory = h.available_bytes == 0 || r->host_bytes <= h.available_bytes;
  bool room_there = gpu_left < 0 || r->device_bytes <= gpu_left;
  if (!memory)
    printf ("  the host has not so much memory to spare; solve again with a smaller --host\n");
  if (r->host_bytes > h.lock_bytes)
    printf (
        "  it pins more than may be locked; if the driver refuses, raise the limit (ulimit -l)\n");
  if (!room_there)
    printf ("  the GPU has not so much free; free it, or solve again with a smaller --budget\n");
  if (memory && room_there)
    printf ("  there is room for it\n");
  return memory && room_there;
}

static bool read_plan (call *c, room *out) {
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  rewritten *rw = p ? NEW (c->arena, 1, rewritten, &c->err) : NULL;
  check_rule broken;
  return rw && check_plan (t, p, c->arena, &broken, &c->err) &&
         plan_rewrite (t, p, c->arena, rw, &c->err) &&
         room_plan (NULL, rw, p, c->arena, out, &c->err);
}

static int run (call *c) {
  char path[4096];
  room r;
  int64_t gpu_left = -1, emulated_left;
  if (c->n_operands == 1 &&
      !error_set (&c->err, ERR_usage, "a plan is looked at with its trace; give both"))
    return call_failed (c);
  if (c->n_operands == 2 && !read_plan (c, &r))
    return call_failed (c);
  say_host ();
  bool gpu = say_driver ("gpu", NULL, &gpu_left);
  bool emulated = say_driver ("emulator", emulator_path (path, sizeof path), &emulated_left);
  if (!gpu)
    printf ("plans can be made here and replayed on the emulated device\n");
  bool fits = c->n_operands != 2 || say_plan (&r, gpu_left);
  return fits && (emulated || gpu) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = { OPTION_STRICT, OPTIONS_END };

const cli_command command_doctor = {
  .name = "doctor",
  .says = "say what this machine can do",
  .operands = "[TRACE PLAN]",
  .least = 0,
  .most = 2,
  .about =
      "Looks at the host's memory and its limits, at the GPU's driver and at the emulated one. "
      "With "
      "a trace and a plan for it, also at whether there is room for what the plan takes on both "
      "sides, before anything is taken; the exit status is then 1 where there is none.\n",
  .options = options,
  .run = run,
};
