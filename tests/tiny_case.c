/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tiny_case.h"

#include "trace/build.h"

enum { MOST_OPS = 6, MOST_TENSORS = 4, MOST_IDLE = 6 };

/* One nanosecond carries 64 bytes / step, so that any multiple of 64 bytes ends with one. */
static int64_t rate_of (random_state *r) {
  static const int64_t steps[] = { 100, 125, 160, 200, 250, 320, 400, 500 };
  return 64000000000 / steps[random_between (r, 0, 7)];
}

static void add_tensors (trace_builder *b, random_state *r, int32_t count) {
  for (int32_t x = 0; x < count; x++) {
    bool weight = random_chance (r, 350000);
    int64_t bytes = TINY_GRANULE * random_between (r, 1, random_chance (r, 500000) ? 3 : 1);
    if (random_chance (r, 250000))
      bytes -= 64 * random_between (r, 1, 7);
    build_tensor (b, "t", bytes < TINY_GRANULE ? TINY_GRANULE : bytes,
                  weight ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
  }
}

/* Each tensor is used by two ops at least, if there are as many. */
static void add_ops (trace_builder *b, random_state *r, int32_t n_ops, int32_t n_tensors) {
  for (int32_t k = 0; k < n_ops; k++) {
    build_op (b, "op", OP_FORWARD, random_between (r, 1, 8) * 500);
    build_op_at (b, k)->gap_ns = random_chance (r, 200000) ? random_between (r, 1, 3) * 250 : 0;
    build_op_at (b, k)->workspace_bytes =
        random_chance (r, 300000) ? TINY_GRANULE * random_between (r, 1, 2) : 0;
    for (int32_t x = 0; x < n_tensors; x++) {
      bool twice = k == x % n_ops || k == n_ops - 1 - x % 2;
      if (!twice && !random_chance (r, 200000))
        continue;
      if (random_chance (r, 400000) || (k == x % n_ops && !build_tensor_at (b, x)->persistent))
        build_write (b, x);
      else
        build_read (b, x);
    }
  }
}

static int64_t granules_of (int64_t bytes) {
  return (bytes + TINY_GRANULE - 1) / TINY_GRANULE;
}

int64_t tiny_idle (const trace *t) {
  int64_t idle = 0;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int32_t uses = 0;
    for (int32_t k = 0; k < t->n_ops; k++)
      uses += op_touches (&t->ops[k], x);
    idle += (uses - !t->tensors[x].persistent) * granules_of (t->tensors[x].bytes);
  }
  return idle;
}

void tiny_levels (const trace *t, int64_t *peak, int64_t *floor) {
  *peak = *floor = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t all = granules_of (t->ops[k].workspace_bytes), used = all;
    for (int32_t x = 0; x < t->n_tensors; x++) {
      bool before = t->tensors[x].persistent, behind = before;
      for (int32_t i = 0; i < t->n_ops; i++) {
        before |= i <= k && op_touches (&t->ops[i], x);
        behind |= i >= k && op_touches (&t->ops[i], x);
      }
      int64_t granules = granules_of (t->tensors[x].bytes);
      all += before && behind ? granules : 0;
      used += op_touches (&t->ops[k], x) ? granules : 0;
    }
    *peak = all > *peak ? all : *peak;
    *floor = used > *floor ? used : *floor;
  }
}

void tiny_device (random_state *r, device *out) {
  *out = (device){ .name = "tiny",
                   .memory_bytes = (int64_t)1 << 40,
                   .host_bytes = (int64_t)1 << 40,
                   .granule_bytes = TINY_GRANULE,
                   .share_ppm = 1000000 };
  out->link.d2h_bytes_per_s = rate_of (r);
  out->link.h2d_bytes_per_s = random_chance (r, 500000) ? out->link.d2h_bytes_per_s : rate_of (r);
  out->link.both_bytes_per_s = out->link.d2h_bytes_per_s + out->link.h2d_bytes_per_s;
}

/* A device and a budget for the trace; false: there is nothing to move, or too much. */
static bool finish (trace_builder *b, random_state *r, int64_t step_ns, int64_t most_idle,
                    tiny_case *out, error *err) {
  int64_t peak, floor;
  *out = (tiny_case){ .trace = build_finish (b, err) };
  if (!out->trace)
    return false;
  tiny_levels (out->trace, &peak, &floor);
  tiny_device (r, &out->device);
  out->device.link.copy_ns = random_chance (r, 500000) ? random_between (r, 1, 10) * step_ns : 0;
  if (peak <= floor || tiny_idle (out->trace) > most_idle)
    return false;
  out->budget_bytes = random_between (r, floor, peak - 1) * TINY_GRANULE;
  return true;
}

bool tiny_make_odd (uint64_t seed, arena *a, tiny_case *out, error *err) {
  enum { MOST_ODD_OPS = 7, MOST_ODD_TENSORS = 6, MOST_ODD_IDLE = 14 };
  random_state r = random_seed (seed * 0x9e3779b97f4a7c15u + 47);
  int32_t n_ops = (int32_t)random_between (&r, 4, MOST_ODD_OPS);
  int32_t n_tensors = (int32_t)random_between (&r, 3, MOST_ODD_TENSORS);
  trace_builder *b = build_new (a, "tiny", 1, err);
  if (!b)
    return false;
  for (int32_t x = 0; x < n_tensors; x++)
    build_tensor (b, "t", 64 * random_between (&r, 2, 32),
                  random_chance (&r, 400000) ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
  add_ops (b, &r, n_ops, n_tensors);
  return finish (b, &r, 10, MOST_ODD_IDLE, out, err);
}

bool tiny_make (uint64_t seed, arena *a, tiny_case *out, error *err) {
  random_state r = random_seed (seed * 0x9e3779b97f4a7c15u + 11);
  int32_t n_ops = (int32_t)random_between (&r, 3, MOST_OPS);
  int32_t n_tensors = (int32_t)random_between (&r, 2, MOST_TENSORS);
  trace_builder *b = build_new (a, "tiny", 1, err);
  if (!b)
    return false;
  add_tensors (b, &r, n_tensors);
  add_ops (b, &r, n_ops, n_tensors);
  return finish (b, &r, 100, MOST_IDLE, out, err);
}
