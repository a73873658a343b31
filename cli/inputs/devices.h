/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cards by name: the device files that ferry ships, and which of them a trace was made for. */
#pragma once

#include "cli/call/call.h"
#include "trace/device.h"

/* Is it the name of a file, and not of a device that ferry ships? */
bool device_is_file (const char *name);
/* By name or file. */
bool device_named (call *c, const char *name, device *out) MUST_CHECK;

/* --device, else the one that the trace's source names; *found is false where there is neither. */
bool device_for (call *c, const trace *t, device *out, bool *found) MUST_CHECK;
/* The same, an error where there is neither, and device_tell_times. */
bool device_needed (call *c, const trace *t, device *out) MUST_CHECK;
/* A note where the trace's times are of another card than the one that is planned for. */
bool device_tell_times (call *c, const trace *t, const device *planned) MUST_CHECK;

/* --host, else all that the device's file gives. */
bool device_host (call *c, const device *d, int64_t *host_bytes) MUST_CHECK;

/* The names, those of the newest cards first; NULL on failure. */
const char *const *device_names (call *c, int *count) MUST_CHECK;

/* The folder of the shipped devices: of FERRY_DATADIR, beside the program in a build tree or an
   installation that was moved, or where it was installed. */
const char *device_folder (call *c);
