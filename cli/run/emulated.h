/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --emulated: the device that --driver emulated gives a program. */
#pragma once

#include "cli/call/call.h"
#include "executor/shim/step/block.h"
#include "trace/device.h"

/* clang-format off */
#define OPTION_RUN_EMULATED { 0, "emulated", "KEY=VALUE,...", "of the emulated device: " \
  "clock=real|virtual, memory=SIZE, granule=SIZE, link=RATE, share=N (of 1000000 of it), " \
  "device=NAME|FILE (its link and granule), costs=none|h200 (of the host's calls), " \
  "bytes=all|none, fuzz=TIME, seed=N, races=yes" }
/* clang-format on */

/* The card's link. */
void emulated_set_device (emu_config *e, const device *d);
bool emulated_read (call *c, shim_config *o) MUST_CHECK;
