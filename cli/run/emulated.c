/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/emulated.h"

#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"

enum { GRANULE_STEP = 4096 };

static bool is_one_of (const char *value, const char *no, const char *yes, bool *out) {
  *out = strcmp (value, yes) == 0;
  return *out || strcmp (value, no) == 0;
}

static bool set_rate (emu_config *e, const char *value, error *wrong) {
  bool good = units_parse_rate (value, &e->d2h_bytes_per_s, wrong) && e->d2h_bytes_per_s > 0;
  e->h2d_bytes_per_s = e->d2h_bytes_per_s;
  e->both_bytes_per_s = 0;
  return good;
}

void emulated_set_device (emu_config *e, const device *d) {
  e->d2h_bytes_per_s = d->link.d2h_bytes_per_s;
  e->h2d_bytes_per_s = d->link.h2d_bytes_per_s;
  e->both_bytes_per_s = d->link.both_bytes_per_s;
  e->copy_ns = d->link.copy_ns;
  e->share_ppm = d->share_ppm;
}

static bool set_device (call *c, emu_config *e, const char *value) {
  device d;
  if (!device_named (c, value, &d))
    return false;
  emulated_set_device (e, &d);
  e->granule_bytes = d.granule_bytes;
  return true;
}

/* Figures of data/gpu/h200-experiments.json; the memory's rate is the card's own figure. */
static bool set_costs (emu_config *e, const char *value) {
  bool is_h200 = false;
  if (!is_one_of (value, "none", "h200", &is_h200))
    return false;
  e->launch_ns = is_h200 ? 4222 : 0;
  e->event_ns = is_h200 ? 684 : 0;
  e->map_ns = is_h200 ? 35891 : 0;
  e->memory_bytes_per_s = is_h200 ? 4800000000000 : 0;
  return true;
}

static bool set_key (call *c, emu_config *e, const char *key, const char *value) {
  error wrong = { 0 };
  bool good = true, yes = false;
  int64_t seed = 0;
  if (strcmp (key, "clock") == 0) {
    good = is_one_of (value, "real", "virtual", &yes);
    e->clock = yes ? EMU_VIRTUAL : EMU_REAL;
  } else if (strcmp (key, "bytes") == 0) {
    good = is_one_of (value, "all", "none", &yes);
    e->bytes = yes ? EMU_NONE : EMU_ALL;
  } else if (strcmp (key, "memory") == 0)
    good = units_parse_bytes (value, &e->memory_bytes, &wrong) && e->memory_bytes > 0;
  else if (strcmp (key, "granule") == 0)
    good = units_parse_bytes (value, &e->granule_bytes, &wrong) && e->granule_bytes > 0 &&
           e->granule_bytes % GRANULE_STEP == 0;
  else if (strcmp (key, "link") == 0)
    good = set_rate (e, value, &wrong);
  else if (strcmp (key, "device") == 0)
    return set_device (c, e, value);
  else if (strcmp (key, "costs") == 0)
    good = set_costs (e, value);
  else if (strcmp (key, "share") == 0)
    good = units_parse_count (value, 1, 1000000, &e->share_ppm, &wrong);
  else if (strcmp (key, "fuzz") == 0)
    good = units_parse_time (value, &e->fuzz_ns, &wrong);
  else if (strcmp (key, "seed") == 0) {
    good = units_parse_count (value, 0, INT64_MAX, &seed, &wrong);
    e->fuzz_seed = (uint64_t)seed;
  } else if (strcmp (key, "races") == 0)
    good = e->races = strcmp (value, "yes") == 0;
  else
    return call_usage (c, "--emulated: there is no `%s`; see `ferry %s --help`", key,
                       c->command->name);
  return good || call_usage (c, "--emulated: `%s` is no value for %s", value, key);
}

bool emulated_read (call *c, shim_config *o) {
  o->emulated = true;
  o->emu = (emu_config){ .memory_bytes = o->budget_bytes > 0 ? o->budget_bytes : (int64_t)1 << 30,
                         .granule_bytes = 65536,
                         .d2h_bytes_per_s = 12000000000,
                         .h2d_bytes_per_s = 12000000000,
                         .copy_ns = 10000,
                         .clock = EMU_VIRTUAL };
  char *text = call_text (c, "emulated")
                   ? arena_string (c->arena, call_text (c, "emulated"), &c->err)
                   : NULL;
  if (call_text (c, "emulated") && !text)
    return false;
  for (char *at = text; at && *at;) {
    char *comma = strchr (at, ','), *equals = strchr (at, '=');
    if (comma)
      *comma = 0;
    if (!equals || (comma && equals > comma))
      return call_usage (c, "--emulated: `%s` is not KEY=VALUE", at);
    *equals = 0;
    if (!set_key (c, &o->emu, at, equals + 1))
      return false;
    at = comma ? comma + 1 : NULL;
  }
  return true;
}
