/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/solve_cases.h"

#include "trace/zoo/zoo.h"

const solve_network solve_networks[SOLVE_NETWORKS] = {
  { "vgg16", 256, 0 },    { "resnet50", 256, 0 },    { "resnet152", 128, 0 },
  { "unet3d", 2, 0 },     { "gpt2-xl", 8, 0 },       { "bert-large", 32, 0 },
  { "charrnn", 64, 256 }, { "densenet121", 128, 0 }, { "inception3", 128, 0 },
};
const int64_t solve_links[SOLVE_LINKS] = { 12, 25, 50 };
const int solve_percents[SOLVE_PERCENTS] = { 80, 60, 50, 40 };

device solve_card (int64_t gb_per_s) {
  int64_t rate = gb_per_s * 1000000000;
  return (device){
    .name = "bench",
    .memory_bytes = (int64_t)1 << 46,
    .granule_bytes = 2 << 20,
    .host_bytes = (int64_t)1 << 46,
    .share_ppm = 1000000,
    .link = { rate, rate, 2 * rate, 10000 },
    .has_roofline = true,
    .roofline = { .fp32_flops = 10970000000000, .memory_bytes_per_s = 480000000000 },
  };
}

trace *solve_trace (const solve_network *n, const device *card, arena *a, error *err) {
  zoo_request z = { .name = n->name,
                    .batch = n->batch,
                    .seq = n->seq,
                    .dtype = DTYPE_FP32,
                    .optimizer = ZOO_MOMENTUM,
                    .device = card };
  return zoo_trace (&z, a, err);
}
