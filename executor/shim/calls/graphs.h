/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A graph that can be launched: one op, of all that its nodes' parameters name.  Addresses are kept
   rather than tensors, and looked up at each launch. */
#pragma once

#include "executor/shim/calls/capture.h"

typedef struct node_use {
  CUgraphNode node;
  CUdeviceptr *at;
  int32_t n, capacity;
  bool is_copy, on_link; /* on_link: a copy that may carry addresses */
  CUDA_MEMCPY3D copy;
} node_use;

typedef struct exec {
  CUgraphExec handle;
  node_use *nodes;
  int32_t n, capacity;
  CUevent *events; /* that it records */
  int32_t n_events;
  held memory;
  int32_t name, n_kernels;
  uint64_t token;
  bool loose;
  struct exec *next;
} exec;

/* A node more, of which nothing is known yet. NULL: no memory. */
node_use *node_add (exec *x, CUgraphNode node);
CUresult node_read_kernel (shim *s, exec *x, node_use *u, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult node_read_copy (node_use *u, const CUDA_MEMCPY3D *p);
CUresult node_read_set (node_use *u, const CUDA_MEMSET_NODE_PARAMS *p);
/* All nodes, those of graphs in it too; one whose use of memory is not seen is refused by name. */
CUresult nodes_read (shim *s, exec *x, CUgraph g);
