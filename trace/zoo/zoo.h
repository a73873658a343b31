/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Networks by name: one training step of each, with all its tensors, real saved-for-backward sets,
   times by roofline, and what each op calculates.  docs/zoo.md says what is assumed. */
#pragma once

#include "trace/compute.h"
#include "trace/device.h"
#include "trace/trace.h"

/* The most pixels, tokens and classes, and the largest divisor; and the most items of a batch. */
#define ZOO_MOST ((int64_t)1 << 24)
#define ZOO_MOST_BATCH ((int64_t)1 << 16)

typedef enum zoo_optimizer { ZOO_SGD, ZOO_MOMENTUM, ZOO_ADAM, ZOO_OPTIMIZERS } zoo_optimizer;
extern const char *const zoo_optimizer_names[ZOO_OPTIMIZERS + 1]; /* NULL at the end */

/* Ranks that train together divide among them nothing (data parallel), the optimizer's state
   and the gradients (ZeRO-2), or the parameters too (ZeRO-3, FSDP). */
typedef enum zoo_shard { ZOO_SHARD_none, ZOO_SHARD_state, ZOO_SHARD_all, ZOO_SHARDS } zoo_shard;
extern const char *const zoo_shard_names[ZOO_SHARDS + 1]; /* NULL at the end */

typedef struct zoo_request {
  const char *name;
  int64_t batch;
  int64_t image, seq; /* edge in pixels; tokens.  0: what the network was published with */
  compute_dtype dtype;
  zoo_optimizer optimizer;
  bool explicit_attention; /* with the score matrix in memory */
  bool workspaces;         /* convolutions hold column buffers */
  /* Smaller relatives for tests and the emulator: channels and heads, and repeated blocks, divided
     by these (0 or 1: as published; never below one); classes or words instead of the published
     number. */
  int64_t width_divisor, depth_divisor, classes;
  int64_t ranks; /* 0 and 1: one alone */
  zoo_shard shard;
  int64_t fabric_bytes_per_s; /* between the cards of ranks: the bus bandwidth of a ring */
  const device *device;
} zoo_request;

typedef struct zoo_network {
  const char *name, *description;
  int64_t image, seq; /* the meaning of 0 in the request; 0: it has none */
  int64_t parameters; /* as published, at that image or seq; 0: not known */
  const char *source; /* of that number */
} zoo_network;

/* All that have a row of their own; resnet takes further depths. */
const zoo_network *zoo_list (int *count);

/* ERR_usage where no network has that name, with the nearest that has one. */
bool zoo_knows (const char *name, error *err) MUST_CHECK;

/* The step as a trace in the arena. */
trace *zoo_trace (const zoo_request *r, arena *a, error *err) MUST_CHECK;

/* Elements of its parameters, from the update ops; 0 for a trace that is not of the zoo. */
int64_t zoo_parameters (const trace *t);
