/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/big_trace.h"

#include <stdio.h>

#include "base/random.h"
#include "trace/build.h"

enum { MIB = 1 << 20 };

/* Three ops a layer: forward, backward, update. */
trace *big_trace (int32_t n_ops, arena *a, error *err) {
  int32_t layers = n_ops / 3 < 1 ? 1 : n_ops / 3;
  random_state r = random_seed (1);
  trace_builder *b = build_new (a, "layers", 64, err);
  if (!b)
    return NULL;
  char name[32];
  int32_t before = build_tensor (b, "input", 4 * MIB, TENSOR_INPUT), first = build_tensors (b);
  build_tensor_at (b, before)->born_before = 0;
  for (int32_t i = 0; i < layers; i++) {
    snprintf (name, sizeof name, "layer%d.weight", i);
    build_tensor (b, name, 2 * MIB, TENSOR_PARAMETER);
    snprintf (name, sizeof name, "layer%d.out", i);
    build_tensor (b, name, random_between (&r, 6, 40) * MIB, TENSOR_ACTIVATION);
    snprintf (name, sizeof name, "layer%d.gradient", i);
    build_tensor (b, name, 2 * MIB, TENSOR_GRADIENT);
  }
  for (int32_t i = 0; i < layers; i++) {
    snprintf (name, sizeof name, "layer%d.fwd", i);
    build_op (b, name, OP_FORWARD, random_between (&r, 800000, 1600000));
    build_read (b, i ? first + 3 * (i - 1) + 1 : before);
    build_read (b, first + 3 * i);
    build_write (b, first + 3 * i + 1);
  }
  for (int32_t i = layers - 1; i >= 0; i--) {
    snprintf (name, sizeof name, "layer%d.bwd", i);
    build_op (b, name, OP_BACKWARD, random_between (&r, 1600000, 3200000));
    build_read (b, first + 3 * i + 1);
    build_read (b, first + 3 * i);
    build_write (b, first + 3 * i + 2);
  }
  for (int32_t i = 0; i < layers; i++) {
    snprintf (name, sizeof name, "layer%d.update", i);
    build_op (b, name, OP_UPDATE, 20000);
    build_read (b, first + 3 * i + 2);
    build_read (b, first + 3 * i);
    build_write (b, first + 3 * i);
  }
  return build_finish (b, err);
}

bool big_wishes (const trace *t, int32_t most, arena *a, wish **out, int32_t *count, error *err) {
  int32_t layers = (t->n_tensors - 1) / 3;
  *count = layers - 1 < most ? layers - 1 : most;
  *out = NEW (a, *count, wish, err);
  for (int32_t i = 0; *out && i < *count; i++)
    (*out)[i] = (wish){ .unit = 1 + 3 * i + 1,
                        .of = 1,
                        .out_after = i + 1,
                        .in_before = 2 * layers - 1 - i,
                        .in_not_before = NO_WAIT };
  return *out;
}

device big_device (void) {
  return (device){ .name = "bench",
                   .memory_bytes = (int64_t)1 << 50,
                   .granule_bytes = 2 * MIB,
                   .link = { .d2h_bytes_per_s = 25000000000,
                             .h2d_bytes_per_s = 25000000000,
                             .both_bytes_per_s = 44000000000,
                             .copy_ns = 10000 },
                   .host_bytes = (int64_t)1 << 50,
                   .share_ppm = 1000000 };
}
