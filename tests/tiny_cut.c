/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tiny_case.h"
#include "trace/build.h"

enum { BATCH = 6, BYTES = 64 * BATCH, MOST_TENSORS = 4 };

static void add_tensors (trace_builder *b, random_state *r, int32_t count, bool parts) {
  static const int64_t sizes[] = { 1, 2, 2, 4 };
  for (int32_t x = 0; x < count; x++) {
    bool weight = random_chance (r, 250000);
    int32_t i = build_tensor (b, "t", BYTES * sizes[random_between (r, 0, 3)],
                              weight ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    build_tensor_at (b, i)->split = parts && !weight && random_chance (r, 800000);
  }
}

/* Each tensor is used by two ops at least, if there are as many; an activation is written first. */
static void add_ops (trace_builder *b, random_state *r, int32_t n_ops, int32_t n_tensors,
                     bool parts) {
  for (int32_t k = 0; k < n_ops; k++) {
    build_op (b, "op", OP_FORWARD, random_between (r, 1, 6) * 500);
    build_op_at (b, k)->parts = parts && random_chance (r, 750000) ? random_between (r, 2, 3) : 1;
    build_op_at (b, k)->workspace_bytes = random_chance (r, 150000) ? TINY_GRANULE : 0;
    for (int32_t x = 0; x < n_tensors; x++) {
      bool first = k == x % n_ops, twice = first || k == n_ops - 1 - x % 2;
      if (!twice && !random_chance (r, 200000))
        continue;
      if ((first && !build_tensor_at (b, x)->persistent) || random_chance (r, 250000))
        build_write (b, x);
      else
        build_read (b, x);
    }
  }
}

bool tiny_make_cut (uint64_t seed, bool parts, int32_t most_ops, arena *a, tiny_case *out,
                    error *err) {
  random_state r = random_seed (seed * 0x9e3779b97f4a7c15u + 29);
  int32_t n_tensors = (int32_t)random_between (&r, 2, parts ? MOST_TENSORS - 1 : MOST_TENSORS);
  int64_t peak, floor;
  trace_builder *b = build_new (a, "tiny", BATCH, err);
  if (!b)
    return false;
  add_tensors (b, &r, n_tensors, parts);
  add_ops (b, &r, (int32_t)random_between (&r, most_ops - 1, most_ops), n_tensors, parts);
  *out = (tiny_case){ .trace = build_finish (b, err) };
  if (!out->trace)
    return false;
  tiny_device (&r, &out->device);
  out->device.section_ns = random_between (&r, 0, 4) * 100;
  tiny_levels (out->trace, &peak, &floor);
  if (peak < 3)
    return false;
  out->budget_bytes = random_between (&r, peak > 4 ? peak - 3 : 2, peak - 1) * TINY_GRANULE;
  return true;
}
