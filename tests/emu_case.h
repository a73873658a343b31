/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A driver on the emulator, for tests: opened, configured and started in one call. */
#pragma once

#include "executor/driver/driver.h"
#include "executor/emu/emu.h"

typedef struct emu_case {
  driver d;
  emu_register register_kernel;
  emu_now now;
  emu_event_time event_time;
  emu_advance advance;
  emu_hold hold;
  emu_races races;
  emu_host_touches host_touches;
} emu_case;

const char *emu_case_path (void); /* of the emulator's library */
/* Bytes, 64 MiB, both engines 1 GB/s, 10 us a copy, on the given clock. */
emu_config emu_case_config (emu_clock clock);
/* Fails the test where something is missing. */
void emu_case_start (emu_case *e, const emu_config *c);

#define OK(call) ck_assert_uint_eq ((call), CUDA_SUCCESS)
