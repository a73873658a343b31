/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traces of any size with the shape of known networks, for benches and for tests that need size
   more than truth. */
#pragma once

#include "trace/build.h"

typedef enum synthetic_kind {
  SYNTHETIC_GPT,
  SYNTHETIC_RESNET,
  SYNTHETIC_RANDOM,
  SYNTHETIC_SHUFFLED /* GPT whose optimizer visits the weights in random order */
} synthetic_kind;

/* About `ops` ops; the seed matters to the last two kinds. */
trace *synthetic (synthetic_kind kind, int32_t ops, uint64_t seed, arena *a, error *err) MUST_CHECK;
