/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/calls/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/record/order.h"
#include "executor/shim/state/wraps.h"

typedef struct graph {
  CUgraph handle;
  held memory;
  struct graph *next;
} graph;

struct graphs {
  exec *execs;
  graph *captured; /* those with memory of their own */
};

static graphs *graphs_of (shim *s) {
  if (s->graphs == NULL)
    s->graphs = calloc (1, sizeof *s->graphs);
  return s->graphs;
}

/* The driver may look at the memory of copies and fills when it is told of them. */
static CUresult bring (shim *s, const node_use *uses, int32_t n) {
  op o = { .kind = OP_COPY, .refs = o.few, .capacity = sizeof o.few / sizeof *o.few };
  o.number = --s->repeats;
  o.name = shim_name (s, "the copies of a cuda graph");
  for (int32_t i = 0; i < n; i++)
    if (uses[i].is_copy)
      op_touch_all (s, &o, uses[i].at, uses[i].n);
  CUresult r = capture_prepare (s, &o);
  if (o.refs != o.few)
    free (o.refs);
  return r;
}

static void exec_free (shim *s, exec *x) {
  if (x == NULL)
    return;
  for (int32_t i = 0; i < x->n; i++)
    free (x->nodes[i].at);
  free (x->nodes);
  free (x->events);
  held_drop (s, &x->memory);
  free (x);
}

static void name_it (shim *s, exec *x) {
  char text[120];
  snprintf (text, sizeof text, "a cuda graph of %d nodes, first %.64s", (int)x->n,
            x->n_kernels > 0 ? s->names[x->name] : "no kernel");
  x->name = shim_name (s, text);
}

/* ---- made ready, and away ---- */

static graph **row_of (graphs *g, CUgraph handle) {
  graph **from = &g->captured;
  while (*from != NULL && (*from)->handle != handle)
    from = &(*from)->next;
  return from;
}

void graphs_captured (shim *s, CUgraph handle, const held *memory) {
  graphs *g = graphs_of (s);
  graph **row = g == NULL ? NULL : row_of (g, handle);
  if (row != NULL && *row == NULL && (*row = calloc (1, sizeof **row)) != NULL)
    (*row)->handle = handle;
  if (row != NULL && *row != NULL)
    (void)held_add (&(*row)->memory, memory);
}

/* Its nodes are read, and whatever its copies use is on the device. */
static CUresult prepare (shim *s, CUgraph g, uint64_t flags, exec **out) {
  graphs *all = graphs_of (s);
  exec *x = *out = all == NULL ? NULL : calloc (1, sizeof *x);
  if (x == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
    return shim_refuse ("cuGraphInstantiate", "a cuda graph that the device launches",
                        "launch it from the host");
  CUresult r = nodes_read (s, x, g);
  if (r == CUDA_SUCCESS)
    r = bring (s, x->nodes, x->n);
  const graph *row = *row_of (all, g);
  if (r == CUDA_SUCCESS && row != NULL && !held_add (&x->memory, &row->memory))
    r = CUDA_ERROR_OUT_OF_MEMORY;
  name_it (s, x);
  return r;
}

static CUresult prepared (shim *s, exec *x, const CUgraphExec *handle, CUresult r) {
  if (r != CUDA_SUCCESS)
    exec_free (s, x);
  else {
    x->handle = *handle;
    x->next = s->graphs->execs;
    s->graphs->execs = x;
  }
  return shim_leave (s, r);
}

#define INSTANTIATE(out, g, flags, call)  \
  shim *s;                                \
  exec *x = NULL;                         \
  if (!shim_enter (&s))                   \
    return call;                          \
  CUresult r = prepare (s, g, flags, &x); \
  r = r == CUDA_SUCCESS ? call : r;       \
  return prepared (s, x, out, r)

CUresult wrap_instantiate (CUgraphExec *out, CUgraph g, CUgraphNode *bad, char *text, size_t room) {
  CUresult (*real) (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) =
      shim_symbol ("cuGraphInstantiate_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  INSTANTIATE (out, g, 0, real (out, g, bad, text, room));
}

CUresult wrap_instantiate_flags (CUgraphExec *out, CUgraph g, unsigned long long flags) {
  const driver *d = shim_real ();
  if (d->graph_instantiate == NULL)
    return CUDA_ERROR_NOT_FOUND;
  INSTANTIATE (out, g, flags, d->graph_instantiate (out, g, flags));
}

CUresult wrap_instantiate_params (CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
  CUresult (*real) (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *) =
      shim_symbol ("cuGraphInstantiateWithParams");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  INSTANTIATE (out, g, p == NULL ? 0 : p->flags, real (out, g, p));
}

CUresult wrap_graph_clone (CUgraph *out, CUgraph g) {
  shim *s;
  if (shim_real ()->graph_clone == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!shim_enter (&s))
    return shim_real ()->graph_clone (out, g);
  CUresult r = s->real.graph_clone (out, g);
  const graph *row = s->graphs == NULL ? NULL : *row_of (s->graphs, g);
  if (r == CUDA_SUCCESS && row != NULL)
    graphs_captured (s, *out, &row->memory);
  return shim_leave (s, r);
}

CUresult wrap_graph_destroy (CUgraph g) {
  shim *s;
  if (shim_real ()->graph_destroy == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!shim_enter (&s))
    return shim_real ()->graph_destroy (g);
  CUresult r = s->real.graph_destroy (g);
  graph **row = s->graphs == NULL ? NULL : row_of (s->graphs, g), *gone;
  if (r == CUDA_SUCCESS && row != NULL && (gone = *row) != NULL) {
    *row = gone->next;
    held_drop (s, &gone->memory);
    free (gone);
  }
  return shim_leave (s, r);
}

static exec *exec_of (const shim *s, CUgraphExec handle) {
  exec *x = s->graphs == NULL ? NULL : s->graphs->execs;
  while (x != NULL && x->handle != handle)
    x = x->next;
  return x;
}

CUresult wrap_exec_destroy (CUgraphExec handle) {
  shim *s;
  if (shim_real ()->exec_destroy == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!shim_enter (&s))
    return shim_real ()->exec_destroy (handle);
  exec *gone = exec_of (s, handle);
  CUresult r = s->real.exec_destroy (handle);
  if (r == CUDA_SUCCESS && gone != NULL) {
    exec **from = &s->graphs->execs;
    while (*from != gone)
      from = &(*from)->next;
    *from = gone->next;
    exec_free (s, gone);
  }
  return shim_leave (s, r);
}

/* ---- launched ---- */

/* Tensors that stand in what is copied have no stamp: they come behind all others. */
static void touch_all (shim *s, op *o, const exec *x) {
  for (int32_t i = 0; i < x->n; i++)
    op_touch_all (s, o, x->nodes[i].at, x->nodes[i].n);
  for (int32_t i = 0; i < x->n; i++)
    if (x->nodes[i].on_link)
      op_carried (o, &x->nodes[i].copy);
}

CUresult wrap_graph_launch (CUgraphExec handle, CUstream stream) {
  op o;
  if (shim_real ()->graph_launch == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!op_enter (&o, OP_LAUNCH, stream, false))
    return shim_real ()->graph_launch (handle, stream);
  shim *s = shim_of_process ();
  const exec *x = exec_of (s, handle);
  if (x == NULL) /* the driver knows it no better */
    return shim_leave (s, s->real.graph_launch (handle, stream));
  o.name = x->name;
  o.loose = x->loose;
  op_mix (&o, x->token);
  if (!o.captured)
    touch_all (s, &o, x);
  CUresult r = op_prepare (&o);
  if (r == CUDA_SUCCESS)
    r = s->real.graph_launch (handle, stream);
  for (int32_t i = 0; i < x->n_events; i++)
    order_forget (s->order, x->events[i]);
  return op_leave (&o, r);
}

CUresult wrap_graph_launch_ptsz (CUgraphExec handle, CUstream stream) {
  return wrap_graph_launch (handle, own_stream (stream));
}

/* ---- built and changed ---- */

/* For a call about one copy or fill, whose memory has to be there. */
#define BROUGHT(reads, call)                             \
  shim *s;                                               \
  node_use u = { 0 };                                    \
  if (!shim_enter (&s))                                  \
    return call;                                         \
  CUresult r = p == NULL ? CUDA_SUCCESS : reads (&u, p); \
  r = r == CUDA_SUCCESS ? bring (s, &u, 1) : r;          \
  r = r == CUDA_SUCCESS ? call : r

CUresult wrap_graph_copy (CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
                          const CUDA_MEMCPY3D *p, CUcontext context) {
  const driver *d = shim_real ();
  if (d->graph_add_copy == NULL)
    return CUDA_ERROR_NOT_FOUND;
  BROUGHT (node_read_copy, d->graph_add_copy (out, g, deps, n, p, context));
  free (u.at);
  return shim_leave (s, r);
}

CUresult wrap_graph_set (CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
                         const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  const driver *d = shim_real ();
  if (d->graph_add_set == NULL)
    return CUDA_ERROR_NOT_FOUND;
  BROUGHT (node_read_set, d->graph_add_set (out, g, deps, n, p, context));
  free (u.at);
  return shim_leave (s, r);
}

/* The node's use from now on; one of a graph that it was updated from is one more. */
static CUresult put_use (shim *s, CUgraphExec handle, CUgraphNode node, node_use *u, CUresult r) {
  exec *x = exec_of (s, handle);
  node_use *to = NULL;
  u->node = node;
  for (int32_t i = 0; r == CUDA_SUCCESS && x != NULL && i < x->n; i++)
    to = x->nodes[i].node == node ? &x->nodes[i] : to;
  if (r == CUDA_SUCCESS && x != NULL && to == NULL)
    to = node_add (x, node);
  if (to != NULL) {
    free (to->at);
    *to = *u;
  } else
    free (u->at);
  return shim_leave (s, r);
}

CUresult wrap_exec_copy (CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D *p,
                         CUcontext context) {
  const driver *d = shim_real ();
  if (d->exec_copy == NULL)
    return CUDA_ERROR_NOT_FOUND;
  BROUGHT (node_read_copy, d->exec_copy (handle, node, p, context));
  return put_use (s, handle, node, &u, r);
}

CUresult wrap_exec_set (CUgraphExec handle, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p,
                        CUcontext context) {
  const driver *d = shim_real ();
  if (d->exec_set == NULL)
    return CUDA_ERROR_NOT_FOUND;
  BROUGHT (node_read_set, d->exec_set (handle, node, p, context));
  return put_use (s, handle, node, &u, r);
}

static CUresult read_change (shim *s, CUgraphExec handle, node_use *u,
                             const CUDA_KERNEL_NODE_PARAMS *p) {
  exec unknown = { 0 }, *x = exec_of (s, handle);
  int32_t name = x == NULL ? 0 : x->name;
  uint64_t token = x == NULL ? 0 : x->token;
  x = x == NULL ? &unknown : x;
  CUresult r = node_read_kernel (s, x, u, p);
  x->name = name;
  x->token = token;
  return r;
}

CUresult wrap_exec_kernel (CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
  const driver *d = shim_real ();
  shim *s;
  node_use u = { 0 };
  if (d->exec_kernel == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!shim_enter (&s))
    return d->exec_kernel (handle, node, p);
  CUresult r = p == NULL ? CUDA_SUCCESS : read_change (s, handle, &u, p);
  return put_use (s, handle, node, &u, r == CUDA_SUCCESS ? d->exec_kernel (handle, node, p) : r);
}

CUresult wrap_exec_kernel_old (CUgraphExec handle, CUgraphNode node,
                               const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  CUDA_KERNEL_NODE_PARAMS own = { 0 };
  if (p != NULL)
    memcpy (&own, p, sizeof *p);
  return wrap_exec_kernel (handle, node, p == NULL ? NULL : &own);
}

/* The other graph's nodes are its own from now on. */
static CUresult updated (shim *s, CUgraphExec handle, exec *with, CUresult r) {
  exec *x = exec_of (s, handle);
  if (r == CUDA_SUCCESS && x != NULL && held_add (&x->memory, &with->memory)) {
    node_use *nodes = x->nodes;
    CUevent *events = x->events;
    int32_t n = x->n, capacity = x->capacity;
    x->nodes = with->nodes;
    x->n = with->n;
    x->capacity = with->capacity;
    x->events = with->events;
    x->n_events = with->n_events;
    x->loose = x->loose || with->loose;
    with->nodes = nodes;
    with->n = n;
    with->capacity = capacity;
    with->events = events;
  }
  exec_free (s, with);
  return shim_leave (s, r);
}

#define UPDATE(call)                     \
  shim *s;                               \
  exec *with = NULL;                     \
  if (!shim_enter (&s))                  \
    return call;                         \
  CUresult r = prepare (s, g, 0, &with); \
  return updated (s, handle, with, r == CUDA_SUCCESS ? call : r)

CUresult wrap_exec_update (CUgraphExec handle, CUgraph g, CUgraphExecUpdateResultInfo *info) {
  const driver *d = shim_real ();
  if (d->exec_update == NULL)
    return CUDA_ERROR_NOT_FOUND;
  UPDATE (d->exec_update (handle, g, info));
}

CUresult wrap_exec_update_old (CUgraphExec handle, CUgraph g, CUgraphNode *bad,
                               CUgraphExecUpdateResult *result) {
  CUresult (*real) (CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *) =
      shim_symbol ("cuGraphExecUpdate");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  UPDATE (real (handle, g, bad, result));
}
