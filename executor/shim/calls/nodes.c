/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The nodes of a graph: which addresses their parameters name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/calls/graphs.h"

static void *grown (void *rows, int32_t n, int32_t *capacity, size_t size) {
  if (n < *capacity)
    return rows;
  int32_t more = *capacity == 0 ? 8 : 2 * *capacity;
  void *moved = realloc (rows, (size_t)more * size);
  *capacity = moved != NULL ? more : *capacity;
  return moved;
}

static void add_address (node_use *u, CUdeviceptr at) {
  for (int32_t i = 0; i < u->n; i++)
    if (u->at[i] == at)
      return;
  CUdeviceptr *moved = grown (u->at, u->n, &u->capacity, sizeof *moved);
  if (moved == NULL)
    return;
  u->at = moved;
  u->at[u->n++] = at;
}

static void see (void *use, const void *from, size_t bytes) {
  const shim *s = shim_of_process ();
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy (&word, (const char *)from + i, 8);
    if (area_has (s, word))
      add_address (use, word);
  }
}

node_use *node_add (exec *x, CUgraphNode node) {
  node_use *moved = grown (x->nodes, x->n, &x->capacity, sizeof *moved);
  if (moved == NULL)
    return NULL;
  x->nodes = moved;
  x->nodes[x->n] = (node_use){ .node = node };
  return &x->nodes[x->n++];
}

CUresult node_read_kernel (shim *s, exec *x, node_use *u, const CUDA_KERNEL_NODE_PARAMS *p) {
  CUresult why;
  const function *f =
      function_of (s, p->func != NULL ? p->func : (CUfunction)(void *)p->kern, &why);
  if (f == NULL)
    return why;
  function_params (f, p->kernelParams, p->extra, see, u);
  x->loose = x->loose || f->has_lists;
  x->name = x->n_kernels++ == 0 ? f->name : x->name;
  x->token =
      shim_mix (shim_mix (x->token, f->name_hash), (uint64_t)p->gridDimX << 32 | p->gridDimY);
  return CUDA_SUCCESS;
}

CUresult node_read_copy (node_use *u, const CUDA_MEMCPY3D *p) {
  const shim *s = shim_of_process ();
  const CUdeviceptr both[] = { p->dstDevice, p->srcDevice };
  for (int i = 0; i < 2; i++)
    if (area_has (s, both[i]))
      add_address (u, both[i]);
  u->is_copy = true;
  u->on_link = !area_has (s, p->srcDevice);
  u->copy = *p;
  return CUDA_SUCCESS;
}

CUresult node_read_set (node_use *u, const CUDA_MEMSET_NODE_PARAMS *p) {
  u->is_copy = true;
  if (area_has (shim_of_process (), p->dst))
    add_address (u, p->dst);
  return CUDA_SUCCESS;
}

static CUresult read_record (shim *s, exec *x, CUgraphNode node) {
  CUevent *moved = realloc (x->events, (size_t)(x->n_events + 1) * sizeof *moved);
  if (moved == NULL || s->real.node_record == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  x->events = moved;
  return s->real.node_record (node, &x->events[x->n_events++]);
}

/* Nodes whose use of memory is not seen. */
static CUresult refuse (CUgraphNodeType type) {
  static const char *const what[] = {
    "an external semaphore", "an external semaphore", "memory by a node",
    "memory by a node",      "memory operations",     "a condition",
  };
  size_t i = (size_t)type - 8;
  char text[96];
  snprintf (text, sizeof text, "a cuda graph with %s",
            i < sizeof what / sizeof *what ? what[i] : "a node of a kind that is not known");
  return shim_refuse ("cuGraphInstantiate", text, "leave it out of the graph");
}

static CUresult read_node (shim *s, exec *x, CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS k;
  CUDA_MEMCPY3D c;
  CUDA_MEMSET_NODE_PARAMS m;
  CUgraphNodeType type;
  CUgraph child;
  CUresult r = s->real.node_type (node, &type);
  node_use *u = node_add (x, node);
  if (r != CUDA_SUCCESS || u == NULL)
    return r != CUDA_SUCCESS ? r : CUDA_ERROR_OUT_OF_MEMORY;
  x->token = shim_mix (x->token, type);
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    r = s->real.node_kernel (node, &k);
    return r == CUDA_SUCCESS ? node_read_kernel (s, x, u, &k) : r;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    r = s->real.node_copy (node, &c);
    return r == CUDA_SUCCESS ? node_read_copy (u, &c) : r;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    r = s->real.node_set (node, &m);
    return r == CUDA_SUCCESS ? node_read_set (u, &m) : r;
  case CU_GRAPH_NODE_TYPE_GRAPH:
    r = s->real.node_child (node, &child);
    return r == CUDA_SUCCESS ? nodes_read (s, x, child) : r;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return read_record (s, x, node);
  case CU_GRAPH_NODE_TYPE_HOST:
  case CU_GRAPH_NODE_TYPE_EMPTY:
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return CUDA_SUCCESS;
  default:
    return refuse (type);
  }
}

CUresult nodes_read (shim *s, exec *x, CUgraph g) {
  size_t n = 0;
  const driver *d = &s->real;
  if (d->graph_nodes == NULL || d->node_type == NULL || d->node_kernel == NULL ||
      d->node_copy == NULL || d->node_set == NULL || d->node_child == NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUresult r = d->graph_nodes (g, NULL, &n);
  CUgraphNode *nodes = r == CUDA_SUCCESS ? calloc (n + 1, sizeof *nodes) : NULL;
  if (nodes == NULL)
    return r != CUDA_SUCCESS ? r : CUDA_ERROR_OUT_OF_MEMORY;
  if (n > 0)
    r = d->graph_nodes (g, nodes, &n);
  for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
    r = read_node (s, x, nodes[i]);
  free (nodes);
  return r;
}
