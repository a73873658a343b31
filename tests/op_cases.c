/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/op_cases.h"

#define CONV(...)                                                 \
  {                                                               \
    .kind = COMPUTE_conv_fwd, .conv = {.groups = 1, __VA_ARGS__ } \
  }
#define DECONV(...)                                                 \
  {                                                                 \
    .kind = COMPUTE_deconv_fwd, .conv = {.groups = 1, __VA_ARGS__ } \
  }
#define IN(c, d, h, w) .in_channels = c, .in_d = d, .in_h = h, .in_w = w
#define OUT(c, d, h, w) .out_channels = c, .out_d = d, .out_h = h, .out_w = w
#define KERNEL(d, h, w) .kernel_d = d, .kernel_h = h, .kernel_w = w
#define STRIDE(d, h, w) .stride_d = d, .stride_h = h, .stride_w = w
#define PAD(d, h, w) .pad_d = d, .pad_h = h, .pad_w = w
#define SPACE_IN(d, h, w) .in_d = d, .in_h = h, .in_w = w
#define SPACE_OUT(d, h, w) .out_d = d, .out_h = h, .out_w = w
#define BACK(...) \
  .back = { __VA_ARGS__ }, .n_back = sizeof (compute_kind[]){ __VA_ARGS__ } / sizeof (compute_kind)
#define CONV_BACK BACK (COMPUTE_conv_bwd_data, COMPUTE_conv_bwd_weights, COMPUTE_bias_bwd)
#define DECONV_BACK BACK (COMPUTE_deconv_bwd_data, COMPUTE_deconv_bwd_weights, COMPUTE_bias_bwd)
#define Y .outs = { { "y", "dy" } }
#define LOSS .outs = { { "loss", NULL } }

/* clang-format off */
const gradient_case op_cases[] = {
  { "conv 3 x 2", CONV (IN (3, 1, 7, 6), OUT (5, 1, 3, 4), KERNEL (1, 3, 2), STRIDE (1, 2, 2),
                        PAD (0, 0, 1), .bias = 1), CONV_BACK, Y },
  { "conv 3 x 3 padded", CONV (IN (2, 1, 5, 9), OUT (3, 1, 5, 9), KERNEL (1, 3, 3),
                               STRIDE (1, 1, 1), PAD (0, 1, 1), .bias = 1), CONV_BACK, Y },
  { "conv of a point", CONV (IN (4, 1, 3, 5), OUT (7, 1, 3, 5), KERNEL (1, 1, 1), STRIDE (1, 1, 1),
                             .bias = 1), CONV_BACK, Y },
  { "conv of every other point", CONV (IN (3, 1, 5, 5), OUT (4, 1, 3, 3), KERNEL (1, 1, 1),
                                       STRIDE (1, 2, 2), .bias = 1), CONV_BACK, Y },
  { "conv with a stride beyond its kernel", CONV (IN (2, 1, 8, 11), OUT (3, 1, 3, 3),
      KERNEL (1, 2, 2), STRIDE (1, 3, 4), .bias = 1), CONV_BACK, Y },
  { "conv of groups", { .kind = COMPUTE_conv_fwd, .conv = { .groups = 2, IN (4, 1, 5, 4),
      OUT (6, 1, 5, 4), KERNEL (1, 3, 3), STRIDE (1, 1, 1), PAD (0, 1, 1), .bias = 1 } },
    CONV_BACK, Y },
  { "conv in three dimensions", CONV (IN (2, 4, 3, 5), OUT (3, 2, 3, 3), KERNEL (2, 3, 3),
      STRIDE (2, 1, 2), PAD (0, 1, 1), .bias = 1), CONV_BACK, Y },
  { "conv wider than its input", CONV (IN (2, 1, 2, 3), OUT (3, 1, 2, 3), KERNEL (1, 5, 7),
      STRIDE (1, 1, 1), PAD (0, 2, 3), .bias = 1), CONV_BACK, Y },
  { "deconv", DECONV (IN (3, 1, 3, 4), OUT (2, 1, 6, 8), KERNEL (1, 4, 4), STRIDE (1, 2, 2),
                      PAD (0, 1, 1), .bias = 1), DECONV_BACK, Y },
  { "deconv in three dimensions", DECONV (IN (3, 2, 3, 2), OUT (2, 4, 6, 4), KERNEL (2, 2, 2),
      STRIDE (2, 2, 2), .bias = 1), DECONV_BACK, Y },
  { "deconv from a point", DECONV (IN (5, 1, 1, 1), OUT (2, 1, 4, 4), KERNEL (1, 4, 4),
      STRIDE (1, 1, 1)), BACK (COMPUTE_deconv_bwd_data, COMPUTE_deconv_bwd_weights), Y },
  { "deconv of groups", { .kind = COMPUTE_deconv_fwd, .conv = { .groups = 3, IN (3, 1, 2, 3),
      OUT (6, 1, 5, 7), KERNEL (1, 3, 3), STRIDE (1, 2, 2), .bias = 1 } }, DECONV_BACK, Y },
  { "linear", { .kind = COMPUTE_linear_fwd, .linear = { .rows = 3, .in = 5, .out = 7, .bias = 1 } },
    BACK (COMPUTE_linear_bwd_data, COMPUTE_linear_bwd_weights, COMPUTE_bias_bwd), Y },
  { "attention", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 4, .kv_heads = 2,
      .queries = 5, .keys = 7, .width = 3 } }, BACK (COMPUTE_attention_bwd), Y },
  { "causal attention", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 2, .kv_heads = 2,
      .queries = 6, .keys = 6, .width = 5, .causal = 1, .packed = 1 } },
    BACK (COMPUTE_attention_bwd), Y },
  { "long attention with dropout", { .kind = COMPUTE_attention_fwd, .attention = { .heads = 2,
      .kv_heads = 1, .queries = 67, .keys = 70, .width = 2, .causal = 1, .rate_ppm = 200000,
      .seed = 5, .offset = 11 } }, BACK (COMPUTE_attention_bwd), Y },
  { "repeat", { .kind = COMPUTE_repeat_fwd, .repeat = { .rows = 3, .kv_heads = 2, .copies = 3,
      .width = 2 } }, BACK (COMPUTE_repeat_bwd), Y },
  { "rotary", { .kind = COMPUTE_rotary_fwd, .rotary = { .rows = 5, .heads = 3, .width = 4,
      .theta = 100 } }, BACK (COMPUTE_rotary_bwd), .outs = { { "x", "dy" } } },
  { "max pool", { .kind = COMPUTE_maxpool_fwd, .pool = { .channels = 2, SPACE_IN (1, 7, 5),
      SPACE_OUT (1, 4, 3), KERNEL (1, 3, 3), STRIDE (1, 2, 2), PAD (0, 1, 1) } },
    BACK (COMPUTE_maxpool_bwd), Y, .grid = true },
  { "max pool in three dimensions", { .kind = COMPUTE_maxpool_fwd, .pool = { .channels = 2,
      SPACE_IN (4, 2, 6), SPACE_OUT (2, 1, 3), KERNEL (2, 2, 2), STRIDE (2, 2, 2) } },
    BACK (COMPUTE_maxpool_bwd), Y, .grid = true },
  { "average pool", { .kind = COMPUTE_avgpool_fwd, .pool = { .channels = 3, SPACE_IN (1, 5, 6),
      SPACE_OUT (1, 3, 3), KERNEL (1, 3, 2), STRIDE (1, 2, 2), PAD (0, 1, 0) } },
    BACK (COMPUTE_avgpool_bwd), Y },
  { "adaptive pool", { .kind = COMPUTE_adaptive_fwd, .pool = { .channels = 2, SPACE_IN (1, 5, 2),
      SPACE_OUT (1, 3, 7) } }, BACK (COMPUTE_adaptive_bwd), Y },
  { "crop", { .kind = COMPUTE_crop_fwd, .pool = { .channels = 2, SPACE_IN (3, 6, 5),
      SPACE_OUT (2, 3, 5) } }, BACK (COMPUTE_crop_bwd), Y },
  { "batch norm", { .kind = COMPUTE_batchnorm_fwd, .batchnorm = { .channels = 3, .inner = 4,
      .affine = 1, .eps_ppt = 10000000, .momentum_ppm = 100000 } }, BACK (COMPUTE_batchnorm_bwd), Y },
  { "plain batch norm", { .kind = COMPUTE_batchnorm_fwd, .batchnorm = { .channels = 2, .inner = 5,
      .eps_ppt = 1000000000 } }, BACK (COMPUTE_batchnorm_bwd), Y },
  { "layer norm", { .kind = COMPUTE_layernorm_fwd, .rownorm = { .rows = 3, .width = 7,
      .eps_ppt = 10000000 } }, BACK (COMPUTE_layernorm_bwd), Y },
  { "rms norm", { .kind = COMPUTE_rmsnorm_fwd, .rownorm = { .rows = 3, .width = 7,
      .eps_ppt = 10000000 } }, BACK (COMPUTE_rmsnorm_bwd), Y },
  { "relu", { .kind = COMPUTE_relu_fwd, .relu = { .size = 13, .slope_ppm = 0 } },
    BACK (COMPUTE_relu_bwd), Y, .grid = true },
  { "leaky relu", { .kind = COMPUTE_relu_fwd, .relu = { .size = 13, .slope_ppm = 200000 } },
    BACK (COMPUTE_relu_bwd), Y, .grid = true },
  { "tanh", { .kind = COMPUTE_tanh_fwd, .map = { .size = 13 } }, BACK (COMPUTE_tanh_bwd), Y },
  { "sigmoid", { .kind = COMPUTE_sigmoid_fwd, .map = { .size = 13 } }, BACK (COMPUTE_sigmoid_bwd),
    Y },
  { "swiglu", { .kind = COMPUTE_swiglu_fwd, .map = { .size = 13 } }, BACK (COMPUTE_swiglu_bwd), Y,
    .low = -3, .high = 3 },
  { "gelu", { .kind = COMPUTE_gelu_fwd, .gelu = { .size = 13 } }, BACK (COMPUTE_gelu_bwd), Y,
    .low = -3, .high = 3 },
  { "gelu by tanh", { .kind = COMPUTE_gelu_fwd, .gelu = { .size = 13, .tanh = 1 } },
    BACK (COMPUTE_gelu_bwd), Y, .low = -3, .high = 3 },
  { "dropout", { .kind = COMPUTE_dropout_fwd, .dropout = { .size = 17, .rate_ppm = 300000,
      .seed = 3, .offset = 100 } }, BACK (COMPUTE_dropout_bwd), Y },
  { "softmax", { .kind = COMPUTE_softmax_fwd, .softmax = { .heads = 2, .queries = 3,
      .columns = 5 } }, BACK (COMPUTE_softmax_bwd), Y },
  { "causal softmax", { .kind = COMPUTE_softmax_fwd, .softmax = { .heads = 2, .queries = 3,
      .columns = 5, .causal = 1 } }, BACK (COMPUTE_softmax_bwd), Y },
  { "entropy", { .kind = COMPUTE_entropy_fwd, .entropy = { .rows = 3, .classes = 6, .inner = 1,
      .weight_ppm = 300000 } }, BACK (COMPUTE_entropy_bwd), LOSS, .limit = 6 },
  { "entropy of voxels", { .kind = COMPUTE_entropy_fwd, .entropy = { .rows = 1, .classes = 3,
      .inner = 7 } }, BACK (COMPUTE_entropy_bwd), LOSS, .limit = 3 },
  { "binary entropy of 1", { .kind = COMPUTE_binary_fwd, .binary = { .size = 5, .label = 1 } },
    BACK (COMPUTE_binary_bwd), LOSS, .low = 0.2, .high = 0.8 },
  { "binary entropy of 0", { .kind = COMPUTE_binary_fwd, .binary = { .size = 5 } },
    BACK (COMPUTE_binary_bwd), LOSS, .low = 0.2, .high = 0.8 },
  { "embedding", { .kind = COMPUTE_embedding_fwd, .embedding = { .rows = 7, .width = 3,
      .table_rows = 4 } }, BACK (COMPUTE_embedding_bwd), Y, .limit = 4 },
  { "position", { .kind = COMPUTE_position_fwd, .position = { .rows = 3, .width = 5,
      .table_rows = 6 } }, BACK (COMPUTE_position_bwd), .outs = { { "x", "dy" } } },
  { "prepend", { .kind = COMPUTE_prepend_fwd, .rows = { .rows = 3, .width = 5 } },
    BACK (COMPUTE_prepend_bwd), Y },
  { "select", { .kind = COMPUTE_select_fwd, .rows = { .rows = 3, .width = 5, .row = 1 } },
    BACK (COMPUTE_select_bwd), Y },
  { "add a row", { .kind = COMPUTE_addrow_fwd, .rows = { .rows = 3, .width = 5 } },
    BACK (COMPUTE_addrow_bwd), Y },
  { "concat", { .kind = COMPUTE_concat_fwd, .concat = { .outer = 2, .sizes_count = 3,
      .sizes = { 3, 1, 4 } } }, BACK (COMPUTE_concat_bwd), Y },
  { "lstm", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 5, .has_dh = 1, .has_dc = 1 } },
    BACK (COMPUTE_lstm_bwd), .outs = { { "h", "dh" }, { "c", "dc" } } },
  { "lstm without what comes to c", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 3,
      .has_dh = 1 } }, BACK (COMPUTE_lstm_bwd), .outs = { { "h", "dh" } } },
  { "lstm without what comes to h", { .kind = COMPUTE_lstm_fwd, .lstm = { .hidden = 3,
      .has_dc = 1 } }, BACK (COMPUTE_lstm_bwd), .outs = { { "c", "dc" } } },
};
/* clang-format on */
const int op_cases_count = sizeof op_cases / sizeof op_cases[0];

compute op_with_batch (const compute *c, int64_t batch) {
  compute r = *c;
  r.at[0] = batch;
  return r;
}

compute op_back_of (const compute *forward, compute_kind kind) {
  compute c = *forward;
  c.kind = kind;
  if (kind == COMPUTE_bias_bwd && forward->kind == COMPUTE_linear_fwd) {
    const compute_linear *s = &forward->linear;
    c.bias = (compute_bias){ s->batch, s->rows, s->out, 1, 0 };
  } else if (kind == COMPUTE_bias_bwd) {
    const compute_conv *s = &forward->conv;
    c.bias = (compute_bias){ s->batch, 1, s->out_channels, s->out_d * s->out_h * s->out_w, 0 };
  } else if (kind >= COMPUTE_conv_fwd && kind <= COMPUTE_deconv_bwd_weights) {
    c.conv.bias = 0;
  } else if (kind == COMPUTE_linear_bwd_data || kind == COMPUTE_linear_bwd_weights) {
    c.linear.bias = 0;
  }
  return c;
}

void op_case_begin (op_bench *b, const gradient_case *g, const compute *c) {
  op_bench_begin (b, 17);
  b->grid = g->grid;
  if (g->high > g->low) {
    b->low = g->low;
    b->high = g->high;
  }
  b->limit = g->limit > 0 ? g->limit : 1;
  op_bench_supply (b, c);
}
