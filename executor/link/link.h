/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The link between host and device, measured: each direction alone, both at once, with and without
   compute running, over sizes; and what a device file needs besides. */
#pragma once

#include "executor/kernels/kernels.h"
#include "trace/host.h"

enum { LINK_SIZES = 7, LINK_ROUNDS = 5 };

typedef struct link_row {
  int64_t bytes;
  int64_t out_ns, in_ns;           /* alone; medians of LINK_ROUNDS */
  int64_t both_out_ns, both_in_ns; /* started together */
  int64_t busy_out_ns, busy_in_ns; /* alone, beside a running kernel */
} link_row;

typedef struct link_result {
  link_row rows[LINK_SIZES];
  int32_t n_rows;
  device device; /* ready to be stored; its name lives in the arena */
} link_result;

/* Makes the emulated device, before it is started, one with this link on the virtual clock, or,
   with a host, as many as that has cards: what is measured then is what was put in, which shows
   that the measuring is right. */
bool link_emulate (const driver *d, const device *dev, const gpu_host *h, error *err) MUST_CHECK;
/* The own link of each card, and the links that they share. */
void link_set_host (emu_config *c, const gpu_host *h);

/* most_bytes bounds a copy; 0: 256 MiB. The driver has been started. */
bool link_measure (const driver *d, bool emulated, int64_t most_bytes, int64_t host_bytes, arena *a,
                   link_result *out, error *err) MUST_CHECK;

/* The groups of cards that share a link, and what they carry: copies on all cards at once, on all
   but one, on pairs, and on each group that was found, out, in, and both ways. out->link is that of
   one card alone, measured before; fills n_cards and groups. d is open and not started. */
bool link_measure_host (const driver *d, bool emulated, int64_t most_bytes, arena *a, gpu_host *out,
                        error *err) MUST_CHECK;
