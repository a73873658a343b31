/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams whose work the program records for a graph: it is not done yet, so nothing is brought for
   it, and no event of ferry's may come into it.  Memory that is asked for meanwhile is the graph's:
   it keeps its address as long as the graph can be launched. */
#pragma once

#include "executor/shim/state/shim.h"

typedef struct graph_memory graph_memory;

/* Those of one graph, or of one that can be launched. */
typedef struct held {
  graph_memory **at;
  int32_t n;
} held;

bool capture_has (const shim *s, CUstream stream);

/* A captured op's tensors are there, as the driver may look at them. */
CUresult capture_prepare (shim *s, const op *o);
CUresult capture_allocate (shim *s, CUdeviceptr *out, size_t bytes, CUstream stream);
CUresult capture_free (shim *s, CUdeviceptr at, CUstream stream);
/* It is a graph's, which may be launched again, though the program has freed it. */
bool capture_keeps (shim *s, CUdeviceptr at);

bool held_add (held *h, const held *more); /* false: no memory */
void held_drop (shim *s, held *h);

/* graphs.c: a graph was captured with that memory */
void graphs_captured (shim *s, CUgraph g, const held *memory);
