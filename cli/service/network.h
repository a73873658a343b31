/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An upload that names a network of the zoo in place of a profile, as the page's examples do. */
#pragma once

#include "cli/call/call.h"
#include "trace/trace.h"

#define NETWORK_FORMAT "ferry-network/1"

/* {"format": NETWORK_FORMAT, "network": NAME, "batch": N, "device": NAME}, and where it differs
   from what was published "dtype", "optimizer", "image", "seq", "classes", "width_divisor",
   "depth_divisor". */
trace *network_read (call *c, const char *text, int64_t size);
