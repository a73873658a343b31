/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of a zoo network, but its batch and its card; for every command that
   builds one. */
#pragma once

#include "cli/call/call.h"
#include "trace/zoo/zoo.h"

/* clang-format off */
#define OPTIONS_OF_ZOO \
  { 0, "image", "N", \
    "edge of the images in pixels; default: as published", { UNITS_COUNT, 1, ZOO_MOST } }, \
  { 0, "seq", "N", \
    "tokens of a sequence; default: as published", { UNITS_COUNT, 1, ZOO_MOST } }, \
  { 0, "dtype", "fp32|bf16|tf32", "type of weights, activations and gradients; default: fp32" }, \
  { 0, "optimizer", "sgd|momentum|adam", "the optimizer; default: momentum" }, \
  { 0, "explicit-attention", NULL, "attention with its score matrix in memory" }, \
  { 0, "workspaces", NULL, "convolutions hold column buffers while they run" }, \
  { 0, "classes", "N", \
    "classes or words, instead of the published number", { UNITS_COUNT, 1, ZOO_MOST } }, \
  { 0, "width-divisor", "N", \
    "divide the number of channels or heads by N", { UNITS_COUNT, 1, ZOO_MOST } }, \
  { 0, "depth-divisor", "N", \
    "divide the number of blocks by N", { UNITS_COUNT, 1, ZOO_MOST } }
/* clang-format on */

/* The first operand and these options. */
bool zoo_options_read (call *c, zoo_request *r) MUST_CHECK;
