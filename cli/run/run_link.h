/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The link of this machine's card, for which plans are made where nobody names another. */
#pragma once

#include "cli/run/program.h"
#include "trace/device.h"

/* Takes a second, and nothing that stays: it is measured in a process of its own. False: it could
   not be, and `out` is as it was. */
bool run_link (call *c, const program_run *r, device_link *out) MUST_CHECK;
