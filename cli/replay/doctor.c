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

/* One driver, as it was found. */
typedef struct found {
  bool works;
  char name[128], why[sizeof ((error *)0)->text];
  int version;
  int64_t free_bytes, total_bytes; /* -1: it does not work */
} found;

static found look_at_driver (const char *path) {
  found f = { .free_bytes = -1, .total_bytes = -1 };
  driver d = { 0 };
  error err = { 0 };
  f.works = driver_open (&d, path, &err) && driver_start (&d, 0, &err);
  if (f.works) {
    size_t free_bytes = 0, total = 0;
    d.device_get_name (f.name, sizeof f.name, d.device);
    d.mem_get_info (&free_bytes, &total);
    f.free_bytes = (int64_t)free_bytes;
    f.total_bytes = (int64_t)total;
    f.version = d.version;
  } else
    snprintf (f.why, sizeof f.why, "%s", err.text);
  driver_stop (&d);
  return f;
}

static void say_driver (const char *what, const found *f) {
  char total[UNITS_TEXT], left[UNITS_TEXT];
  printf ("%-9s %s\n", what, f->works ? "works" : "no");
  if (f->works)
    printf ("  %s, CUDA %d.%d, %s of memory, %s free\n", f->name, f->version / 1000,
            f->version % 1000 / 10, units_bytes (total, f->total_bytes),
            units_bytes (left, f->free_bytes));
  else
    printf ("  %s\n", f->why);
}

static void put_driver (json_writer *w, const char *key, const found *f) {
  json_add_object (w, key);
  json_add_int (w, "cuda_version", f->version);
  json_add_int (w, "free_bytes", f->free_bytes);
  json_add_int (w, "memory_bytes", f->total_bytes);
  json_add_text (w, "name", f->works ? f->name : NULL);
  json_add_text (w, "why", f->works ? NULL : f->why);
  json_add_bool (w, "works", f->works);
  json_close_object (w);
}

static void say_host (const host_limits *h) {
  char all[UNITS_TEXT], left[UNITS_TEXT], lock[UNITS_TEXT];
  printf ("host      %s of memory, %s available\n", units_bytes (all, h->memory_bytes),
          units_bytes (left, h->available_bytes));
  if (h->lock_bytes == INT64_MAX)
    printf ("  memory may be locked without limit\n");
  else
    printf ("  %s may be locked by a process (ulimit -l); a driver that minds it refuses to pin "
            "more\n",
            units_bytes (lock, h->lock_bytes));
}

/* A plan's needs, beside what is there. */
typedef struct asked {
  room room;
  bool host, device; /* is there enough of it? */
} asked;

static bool is_room (const asked *q) {
  return q->host && q->device;
}

static void say_plan (const asked *q, const host_limits *h) {
  char device[UNITS_TEXT], host[UNITS_TEXT];
  printf ("plan      takes %s of the device and pins %s of the host\n",
          units_bytes (device, q->room.device_bytes), units_bytes (host, q->room.host_bytes));
  if (!q->host)
    printf ("  the host has less memory to spare; solve again with a smaller --host\n");
  if (q->room.host_bytes > h->lock_bytes)
    printf (
        "  it pins more than may be locked; if the driver refuses, raise the limit (ulimit -l)\n");
  if (!q->device)
    printf ("  the GPU has less free; free it, or solve again with a smaller --budget\n");
  if (is_room (q))
    printf ("  there is room for it\n");
}

static bool read_plan (call *c, room *out) {
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  rewritten *rw = p ? NEW (c->arena, 1, rewritten, &c->err) : NULL;
  check_rule broken;
  if (rw && check_plan (t, p, c->arena, &broken, &c->err) &&
      plan_rewrite (t, p, c->arena, rw, &c->err) && room_plan (NULL, rw, p, c->arena, out, &c->err))
    return true;
  if (rw)
    error_in_file (&c->err, c->operands[1]);
  return false;
}

static bool print_json (call *c, const host_limits *h, const found *gpu, const found *emulated,
                        const asked *q) {
  json_writer w;
  json_begin_object (&w, 2);
  put_driver (&w, "emulator", emulated);
  put_driver (&w, "gpu", gpu);
  json_add_object (&w, "host");
  json_add_int (&w, "available_bytes", h->available_bytes);
  json_add_int (&w, "lock_bytes", h->lock_bytes == INT64_MAX ? -1 : h->lock_bytes);
  json_add_int (&w, "memory_bytes", h->memory_bytes);
  json_close_object (&w);
  json_put_key (&w, "plan");
  if (q) {
    json_open_object (&w);
    json_add_int (&w, "device_bytes", q->room.device_bytes);
    json_add_bool (&w, "fits", is_room (q));
    json_add_int (&w, "host_bytes", q->room.host_bytes);
    json_close_object (&w);
  } else
    json_put_null (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  char path[4096];
  asked q = { 0 };
  bool planned = c->n_operands == 2;
  if (c->n_operands == 1 && !call_usage (c, "a plan is looked at with its trace; give both"))
    return call_failed (c);
  if (planned && !read_plan (c, &q.room))
    return call_failed (c);
  host_limits h = host_limits_read ();
  found gpu = look_at_driver (NULL);
  found emulated = look_at_driver (emulator_path (path, sizeof path));
  q.host = h.available_bytes == 0 || q.room.host_bytes <= h.available_bytes;
  q.device = !gpu.works || q.room.device_bytes <= gpu.free_bytes;
  if (c->json && !print_json (c, &h, &gpu, &emulated, planned ? &q : NULL))
    return call_failed (c);
  if (!c->json) {
    say_host (&h);
    say_driver ("gpu", &gpu);
    say_driver ("emulator", &emulated);
    if (!gpu.works)
      printf ("plans can be made here and replayed on the emulated device\n");
    if (planned)
      say_plan (&q, &h);
  }
  return (!planned || is_room (&q)) && (emulated.works || gpu.works) ? EXIT_YES : EXIT_NO;
}

const cli_command command_doctor = {
  .name = "doctor",
  .says = "say what this machine can do",
  .operands = "[TRACE PLAN]",
  .least = 0,
  .most = 2,
  .about =
      "Looks at the host's memory and its limits, at the GPU's driver and at the emulated one. "
      "With a trace and a plan for it, also at whether there is room for what the plan takes on "
      "both sides, before anything is taken; the exit status is then 1 where there is none.\n",
  .json = true,
  .run = run,
};
