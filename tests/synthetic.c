/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/synthetic.h"

#include "base/random.h"

/* An op's time: 100 TFLOP/s or 1.5 TB/s, whichever is slower, and 3 us. */
static int64_t op_ns (double flops, double bytes) {
  double ns = flops / 1e5, memory_ns = bytes / 1500;
  return (int64_t)(ns > memory_ns ? ns : memory_ns) + 3000;
}

typedef struct layer {
  int32_t in, out, weight, state, saved; /* -1: none */
  int64_t ns, weight_bytes, out_bytes;
} layer;

typedef struct network {
  trace_builder *b;
  layer *layers;
  int32_t n, now;
  int64_t now_bytes;
} network;

/* One layer forward: reads what is there and its weight, writes its output. */
static void forward (network *w, const char *name, int64_t out_bytes, int64_t weight_bytes,
                     double flops) {
  trace_builder *b = w->b;
  layer *l = &w->layers[w->n++];
  *l = (layer){ .in = w->now, .weight = -1, .state = -1, .saved = -1 };
  l->ns = op_ns (flops, (double)(w->now_bytes + out_bytes + weight_bytes));
  l->weight_bytes = weight_bytes;
  l->out_bytes = out_bytes;
  l->out = build_tensor (b, "", out_bytes, TENSOR_ACTIVATION);
  if (weight_bytes) {
    l->weight = build_tensor (b, "", weight_bytes, TENSOR_PARAMETER);
    l->state = build_tensor (b, "", 2 * weight_bytes, TENSOR_OPTIMIZER);
  }
  build_op (b, name, OP_FORWARD, l->ns);
  build_read (b, l->in);
  if (l->weight >= 0)
    build_read (b, l->weight);
  build_write (b, l->out);
  w->now = l->out;
  w->now_bytes = out_bytes;
}

/* Backward through all layers, then the optimizer in this order of weights. */
static void backward (network *w, random_state *order, arena *a, error *err) {
  trace_builder *b = w->b;
  int32_t *grad = NEW (a, w->n, int32_t, err), *turn = NEW (a, w->n, int32_t, err);
  if (!grad || !turn)
    return;
  int32_t above = build_tensor (b, "", w->now_bytes, TENSOR_GRADIENT);
  build_op (b, "loss", OP_BACKWARD, 10000);
  build_read (b, w->now);
  build_write (b, above);
  for (int32_t i = w->n - 1; i >= 0; i--) {
    layer *l = &w->layers[i];
    int32_t below =
        build_tensor (b, "", i ? w->layers[i - 1].out_bytes : l->out_bytes, TENSOR_GRADIENT);
    turn[i] = i;
    build_op (b, "bwd", OP_BACKWARD, 2 * l->ns);
    build_read (b, above);
    build_read (b, l->in);
    if (l->weight < 0)
      build_read (b, l->out);
    build_write (b, below);
    if (l->weight >= 0) {
      build_read (b, l->weight);
      grad[i] = build_tensor (b, "", l->weight_bytes, TENSOR_GRADIENT);
      build_write (b, grad[i]);
    }
    above = below;
  }
  for (int32_t i = w->n - 1; order && i > 0; i--) {
    int32_t j = (int32_t)random_between (order, 0, i), x = turn[i];
    turn[i] = turn[j];
    turn[j] = x;
  }
  for (int32_t k = 0; k < w->n; k++) {
    layer *l = &w->layers[turn[k]];
    if (l->weight < 0)
      continue;
    build_op (b, "update", OP_UPDATE, op_ns (0, 7 * (double)l->weight_bytes));
    build_read (b, grad[turn[k]]);
    build_read (b, l->weight);
    build_write (b, l->weight);
    build_read (b, l->state);
    build_write (b, l->state);
  }
}

static void gpt (network *w, int32_t ops) {
  int64_t h = 1600, tokens = 8192, x = tokens * h * 2, weight = h * h * 2;
  for (int32_t i = 0; i + 28 <= ops; i += 28) {
    double f = 2.0 * (double)tokens * (double)h * (double)h;
    forward (w, "norm", x, 0, 0);
    forward (w, "qkv", 3 * x, 3 * weight, 3 * f);
    forward (w, "attention", x, 0, 4.0 * (double)tokens * 1024 * (double)h);
    forward (w, "project", x, weight, f);
    forward (w, "add", x, 0, 0);
    forward (w, "norm", x, 0, 0);
    forward (w, "up", 4 * x, 4 * weight, 4 * f);
    forward (w, "gelu", 4 * x, 0, 0);
    forward (w, "down", x, 4 * weight, 4 * f);
    forward (w, "add", x, 0, 0);
    forward (w, "drop", x, 0, 0);
    forward (w, "scale", x, 0, 0);
  }
}

static void resnet (network *w, int32_t ops) {
  int32_t blocks = ops / 7 > 0 ? ops / 7 : 1;
  for (int32_t i = 0; i < blocks; i++) {
    int stage = (int)(4 * (int64_t)i / blocks);
    int64_t out = ((int64_t)200 << 20) >> stage, weight = ((int64_t)64 << 10) << (2 * stage);
    double f = 60.0 * (double)weight / 4 * (double)(out / 4) / (64 << stage);
    forward (w, "conv", out, weight, f);
    forward (w, "bn", out, 0, 0);
    forward (w, "relu", out, 0, 0);
  }
}

/* Every op writes one tensor and reads some of any age. */
static void random_net (trace_builder *b, int32_t ops, random_state *r) {
  for (int32_t k = 0; k < ops; k++) {
    int32_t t = build_tensor (b, "", random_between (r, 1 << 20, 192 << 20),
                              random_chance (r, 30000) ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    build_op (b, "op", OP_FORWARD, random_between (r, 20000, 2000000));
    for (int i = 0; i < 2 && t > 0; i++) {
      int64_t back = random_between (r, 1, 10);
      for (int64_t step = 10; step < t && random_chance (r, 600000); step *= 3)
        back += random_between (r, 0, step);
      build_read (b, back < t ? t - (int32_t)back : 0);
    }
    build_write (b, t);
  }
}

trace *synthetic (synthetic_kind kind, int32_t ops, uint64_t seed, arena *a, error *err) {
  trace_builder *b = build_new (a, "synthetic", 1, err);
  random_state r = random_seed (seed);
  if (!b)
    return NULL;
  if (kind == SYNTHETIC_RANDOM) {
    random_net (b, ops, &r);
    return build_finish (b, err);
  }
  network w = { .b = b, .layers = NEW (a, (int64_t)ops + 64, layer, err) };
  if (!w.layers)
    return NULL;
  w.now_bytes = 64 << 20;
  w.now = build_tensor (b, "input", w.now_bytes, TENSOR_INPUT);
  if (kind == SYNTHETIC_RESNET)
    resnet (&w, ops);
  else
    gpt (&w, ops);
  backward (&w, kind == SYNTHETIC_SHUFFLED ? &r : NULL, a, err);
  return build_finish (b, err);
}
