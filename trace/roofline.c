/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/roofline.h"

#include <assert.h>

int64_t roofline_rate (const device_roofline *r, compute_dtype dtype, bool product) {
  if (!product || dtype == DTYPE_FP32)
    return r->fp32_flops;
  return dtype == DTYPE_BF16 ? r->bf16_flops : r->tf32_flops;
}

/* work / (rate x share), in ns, rounded up.  work < 2^57 and 10^15 < 2^50 fit into 128 bits. */
static __int128 time_of (int64_t work, int64_t per_s, int64_t share_ppm) {
  __int128 speed = (__int128)per_s * share_ppm;
  return ((__int128)work * 1000000000 * 1000000 + speed - 1) / speed;
}

bool roofline_ns (const device *d, const compute *c, int64_t *ns, error *err) {
  assert (d && c && ns);
  const char *kind = compute_kind_names[c->kind];
  if (!d->has_roofline)
    return error_set (err, ERR_input,
                      "device %s tells no roofline: how fast is %s there? Give its file one "
                      "(docs/formats.md)",
                      d->name, kind);
  const device_roofline *r = &d->roofline;
  int64_t flops = compute_flops (c), bytes = compute_bytes (c);
  int64_t rate = roofline_rate (r, c->dtype, compute_is_product (c));
  if (flops > 0 && rate <= 0)
    return error_set (err, ERR_input,
                      "device %s tells no rate for %s: give roofline.%s_flops or another --dtype",
                      d->name, compute_dtype_names[c->dtype], compute_dtype_names[c->dtype]);
  if (r->memory_bytes_per_s <= 0)
    return error_set (err, ERR_input, "device %s tells no roofline.memory_bytes_per_s", d->name);
  int64_t share = r->efficiency_ppm > 0 ? r->efficiency_ppm : 1000000;
  __int128 by_memory = time_of (bytes, r->memory_bytes_per_s, share);
  __int128 by_flops = flops > 0 ? time_of (flops, rate, share) : 0;
  __int128 whole = (by_flops > by_memory ? by_flops : by_memory) + r->op_ns;
  if (whole > MOST_NS)
    return error_set (err, ERR_input, "%s would take more than 2^53 ns on %s", kind, d->name);
  *ns = (int64_t)whole;
  return true;
}
