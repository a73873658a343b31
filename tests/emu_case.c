/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/emu_case.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

const char *emu_case_path (void) {
  const char *path = getenv ("FERRY_EMU");
  return path != NULL ? path : "./libferry-emu.so";
}

emu_config emu_case_config (emu_clock clock) {
  return (emu_config){ .memory_bytes = 64 << 20,
                       .granule_bytes = 65536,
                       .d2h_bytes_per_s = 1000000000,
                       .h2d_bytes_per_s = 1000000000,
                       .copy_ns = 10000,
                       .clock = clock };
}

static void find (const driver *d, const char *name, void *out) {
  void *entry = driver_symbol (d, name);
  ck_assert_msg (entry != NULL, "the emulator has no %s", name);
  memcpy (out, &entry, sizeof entry);
}

void emu_case_start (emu_case *e, const emu_config *c) {
  error err = { 0 };
  if (!driver_open (&e->d, emu_case_path (), &err))
    ck_abort_msg ("%s", err.text);
  emu_configure configure;
  find (&e->d, EMU_CONFIGURE, &configure);
  find (&e->d, EMU_REGISTER, &e->register_kernel);
  find (&e->d, EMU_NOW, &e->now);
  find (&e->d, EMU_EVENT_TIME, &e->event_time);
  find (&e->d, EMU_ADVANCE, &e->advance);
  find (&e->d, EMU_HOLD, &e->hold);
  find (&e->d, EMU_RACES, &e->races);
  find (&e->d, EMU_HOST_TOUCHES, &e->host_touches);
  OK (configure (c));
  if (!driver_start (&e->d, 0, &err))
    ck_abort_msg ("%s", err.text);
}
