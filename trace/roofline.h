/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long an op takes on a device of which only peak rates are known. */
#pragma once

#include "trace/compute.h"
#include "trace/device.h"

/* max (flops / rate, bytes / memory rate) / efficiency, rounded up, + op_ns.  An error where the
   device tells no rate for what the op needs, or the time exceeds what a trace can hold. */
bool roofline_ns (const device *d, const compute *c, int64_t *ns, error *err) MUST_CHECK;
/* The flops per second of the op's products on this device; 0: not known. */
int64_t roofline_rate (const device_roofline *r, compute_dtype dtype, bool product);
