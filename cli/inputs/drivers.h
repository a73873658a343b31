/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --driver: which library stands behind the driver's table. */
#pragma once

#include "cli/call/call.h"

/* clang-format off */
#define OPTION_DRIVER { 0, "driver", "emulated|cuda", "what carries it out: the emulated device " \
  "(the default), or the GPU of this machine" }
/* clang-format on */

/* The emulator's library, or NULL for the real driver. *emulated says which. */
bool call_driver (call *c, const char **library, bool *emulated) MUST_CHECK;
/* The emulator's path: FERRY_EMU, beside the program, or where it was installed. */
const char *emulator_path (char *buffer, int size);
