/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A card and its link, as far as a plan depends on them. */
#pragma once

#include "base/json.h"
#include "trace/trace.h"

#define DEVICE_FORMAT "ferry-device/1"
#define DEVICE_LEAST_RATE ((int64_t)1000000) /* of a link, bytes a second */

typedef struct device_link {
  int64_t d2h_bytes_per_s, h2d_bytes_per_s;
  int64_t both_bytes_per_s; /* of the sum, while both directions are busy */
  int64_t copy_ns;
} device_link;

/* One op's best rates; 0: not known. An op takes as long as the larger of its flops at its
   type's rate and its bytes at the memory's, divided by the share of the peak that is reached, and
   op_ns on top. */
typedef struct device_roofline {
  int64_t fp32_flops, tf32_flops, bf16_flops, fp16_flops;
  int64_t memory_bytes_per_s;
  int64_t efficiency_ppm; /* of both rates; default 10^6 */
  int64_t op_ns;          /* default 0 */
} device_roofline;

typedef struct device {
  const char *name;
  int64_t memory_bytes, reserved_bytes, granule_bytes;
  device_link link;
  int64_t host_bytes, section_ns, share_ppm;
  bool has_roofline;
  device_roofline roofline;
} device;

/* The four rates of docs/machine-model.md, section "Copies"; share_ppm 10^6 leaves them whole. */
typedef struct link_rates {
  int64_t out_alone, in_alone, out_both, in_both;
} link_rates;

bool device_load (const char *path, const read_options *o, arena *a, device *out,
                  error *err) MUST_CHECK;
bool device_parse (const char *text, int64_t size, const read_options *o, arena *a, device *out,
                   error *err) MUST_CHECK;
bool device_read (const json *j, const read_options *o, arena *a, device *out,
                  error *err) MUST_CHECK;
bool device_validate (const device *d, error *err) MUST_CHECK;
void device_write (json_writer *w, const device *d);
bool device_store (const device *d, const char *path, error *err) MUST_CHECK;

/* The member `link`, which host files have too. */
bool device_read_link (const json *j, const read_options *o, device_link *out,
                       error *err) MUST_CHECK;
void device_write_link (json_writer *w, const device_link *l);

link_rates device_rates (const device_link *link, int64_t share_ppm);
