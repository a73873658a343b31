/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs of commands: captured from streams or built node by node, made ready, launched. */
#pragma once

#include "executor/emu/core.h"

/* Allocated while a stream was captured: there as long as a graph or an exec holds it. */
typedef struct graph_memory {
  int32_t holders, n;
  struct graph_piece {
    uint64_t at;
    bool freed;
  } * pieces;
} graph_memory;

typedef struct held {
  graph_memory **at;
  int32_t n;
} held;

typedef struct graph graph;

typedef struct node {
  CUgraphNodeType type;
  command *c; /* of a kernel, a copy, a fill, a host function; it is copied for each launch */
  struct node **deps;
  int32_t n_deps;
  int32_t place; /* in its graph: behind those that it depends on */
  graph *child;
  CUevent event;
  uint64_t memory;
  void **params; /* of a kernel, once they were asked for */
  bool seen;     /* while a graph is walked */
} node;

struct graph {
  node **nodes;
  int32_t n;
  bool is_child; /* its node's */
  held memory;
};

/* A sequence of streams that are captured together. */
typedef struct capture {
  uint64_t id;
  graph *to;
  stream *origin;
  CUstreamCaptureMode mode;
  bool invalid;
  const void *thread;
} capture;

typedef struct exec exec;

struct graphs {
  graph **graphs;
  exec **execs;
  capture **captures;
  int32_t n_graphs, n_execs, n_captures;
  uint64_t last_capture;
};

/* graph.c */
graph *graph_of (const machine *m, CUgraph handle); /* NULL: there is none */
node *node_of (const machine *m, CUgraphNode handle);
graph *graph_new (machine *m, bool is_child);
/* A copy of all nodes with their commands; `m`'s unless it is a child. */
graph *graph_copy (machine *m, const graph *g, bool is_child);
void graph_drop (machine *m, graph *g);
/* At the end; the node owns `c`. NULL: no memory, and `c` was dropped. */
node *graph_add (machine *m, graph *g, CUgraphNodeType type, command *c, node *const *deps,
                 int32_t n);
bool held_add (held *h, graph_memory *g);
void held_drop (machine *m, held *h);
struct graph_piece *held_piece (const held *h, uint64_t at); /* NULL: it is none of these */
/* The program frees it: it goes with the last that holds it. false: it is none of these. */
bool held_frees (held *h, uint64_t at);
/* The command that a call's parameters describe, of no stream. */
CUresult graph_kernel (machine *m, const CUDA_KERNEL_NODE_PARAMS *p, command **out);
CUresult graph_set (machine *m, const CUDA_MEMSET_NODE_PARAMS *p, command **out);
/* A row of an array that holds pointers. false: no memory. */
bool pointers_add (void ***rows, int32_t *n, void *row);
void pointers_remove (void **rows, int32_t *n, const void *row); /* the others keep their order */

/* capture.c */
void capture_end (machine *m, capture *c); /* no stream is captured by it any more */

/* exec.c */
void exec_drop (machine *m, exec *x);
