/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs before they are launched: their nodes, built one by one, asked for, copied. */
#include "executor/emu/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool pointers_add (void ***rows, int32_t *n, void *row) {
  assert (row && *n >= 0 && (*rows || *n == 0));
  if ((*n & (*n - 1)) == 0) {
    void **moved = realloc (*rows, (*n == 0 ? 1 : 2 * (size_t)*n) * sizeof *moved);
    if (moved == NULL)
      return false;
    *rows = moved;
  }
  (*rows)[(*n)++] = row;
  return true;
}

void pointers_remove (void **rows, int32_t *n, const void *row) {
  assert (*n >= 0 && (rows || *n == 0));
  for (int32_t i = 0; i < *n; i++)
    if (rows[i] == row) {
      memmove (rows + i, rows + i + 1, (size_t)(--*n - i) * sizeof *rows);
      return;
    }
}

graph *graph_of (const machine *m, CUgraph handle) {
  for (int32_t i = 0; i < m->graphs->n_graphs; i++)
    if ((CUgraph)m->graphs->graphs[i] == handle)
      return m->graphs->graphs[i];
  return NULL;
}

/* Children are in the table as well, so that their nodes are found. */
node *node_of (const machine *m, CUgraphNode handle) {
  for (int32_t i = 0; i < m->graphs->n_graphs; i++)
    for (int32_t k = 0; k < m->graphs->graphs[i]->n; k++)
      if ((CUgraphNode)m->graphs->graphs[i]->nodes[k] == handle)
        return m->graphs->graphs[i]->nodes[k];
  return NULL;
}

graph *graph_new (machine *m, bool is_child) {
  graph *g = calloc (1, sizeof *g);
  if (g != NULL && !pointers_add ((void ***)&m->graphs->graphs, &m->graphs->n_graphs, g)) {
    free (g);
    return NULL;
  }
  if (g != NULL)
    g->is_child = is_child;
  return g;
}

node *graph_add (machine *m, graph *g, CUgraphNodeType type, command *c, node *const *deps,
                 int32_t n) {
  assert (n >= 0 && (deps || n == 0));
  node *own = calloc (1, sizeof *own);
  node **rows = calloc ((size_t)n + 1, sizeof (node *));
  if (own == NULL || rows == NULL || !pointers_add ((void ***)&g->nodes, &g->n, own)) {
    free (own);
    free (rows);
    command_drop (m, c);
    return NULL;
  }
  for (int32_t i = 0; i < n; i++)
    rows[i] = deps[i];
  *own = (node){ .type = type, .c = c, .deps = rows, .n_deps = n, .place = g->n - 1 };
  if (c != NULL)
    c->stream = NULL;
  return own;
}

bool held_add (held *h, graph_memory *g) {
  for (int32_t i = 0; i < h->n; i++)
    if (h->at[i] == g)
      return true;
  g->holders++;
  return pointers_add ((void ***)&h->at, &h->n, g);
}

/* Pieces that the program has freed go; the rest are like any other. */
void held_drop (machine *m, held *h) {
  for (int32_t i = 0; i < h->n; i++) {
    graph_memory *g = h->at[i];
    if (--g->holders > 0)
      continue;
    for (int32_t k = 0; k < g->n; k++)
      if (g->pieces[k].freed)
        memory_free_now (m, g->pieces[k].at);
    free (g->pieces);
    free (g);
  }
  free (h->at);
  *h = (held){ 0 };
}

struct graph_piece *held_piece (const held *h, uint64_t at) {
  for (int32_t i = 0; i < h->n; i++)
    for (int32_t k = 0; k < h->at[i]->n; k++)
      if (h->at[i]->pieces[k].at == at)
        return &h->at[i]->pieces[k];
  return NULL;
}

bool held_frees (held *h, uint64_t at) {
  struct graph_piece *p = held_piece (h, at);
  if (p != NULL)
    p->freed = true;
  return p != NULL;
}

void graph_drop (machine *m, graph *g) {
  for (int32_t i = 0; i < g->n; i++) {
    node *n = g->nodes[i];
    command_drop (m, n->c);
    if (n->child != NULL)
      graph_drop (m, n->child);
    free (n->deps);
    free (n->params);
    free (n);
  }
  free (g->nodes);
  held_drop (m, &g->memory);
  pointers_remove ((void **)m->graphs->graphs, &m->graphs->n_graphs, g);
  free (g);
}

static bool copy_nodes (machine *m, graph *to, const graph *g) {
  for (int32_t i = 0; i < g->n; i++) {
    const node *n = g->nodes[i];
    command *c = n->c == NULL ? NULL : command_again (m, NULL, n->c);
    node *own =
        n->c != NULL && c == NULL ? NULL : graph_add (m, to, n->type, c, n->deps, n->n_deps);
    if (own == NULL)
      return false;
    for (int32_t k = 0; k < n->n_deps; k++)
      own->deps[k] = to->nodes[n->deps[k]->place];
    own->event = n->event;
    own->memory = n->memory;
    if (n->child != NULL && (own->child = graph_copy (m, n->child, true)) == NULL)
      return false;
  }
  for (int32_t i = 0; i < g->memory.n; i++)
    if (!held_add (&to->memory, g->memory.at[i]))
      return false;
  return true;
}

graph *graph_copy (machine *m, const graph *g, bool is_child) {
  graph *to = graph_new (m, is_child);
  if (to == NULL || copy_nodes (m, to, g))
    return to;
  graph_drop (m, to);
  return NULL;
}

/* ---- calls about graphs ---- */

CUresult cuGraphCreate (CUgraph *out, unsigned int flags) {
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL || flags != 0)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = (CUgraph)graph_new (m, false);
  return machine_leave (m, *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

/* Enters with a graph; NULL and the reason otherwise. */
static machine *enter_graph (CUgraph handle, graph **g, CUresult *refused) {
  machine *m = machine_enter (true, refused);
  if (m == NULL)
    return NULL;
  *g = graph_of (m, handle);
  if (*g != NULL)
    return m;
  *refused = CUDA_ERROR_INVALID_VALUE;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

CUresult cuGraphDestroy (CUgraph handle) {
  graph *g;
  ENTER (m, enter_graph (handle, &g, &refused));
  if (g->is_child)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  graph_drop (m, g);
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuGraphClone (CUgraph *out, CUgraph handle) {
  graph *g;
  ENTER (m, enter_graph (handle, &g, &refused));
  if (out == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *out = (CUgraph)graph_copy (m, g, false);
  return machine_leave (m, *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuGraphGetNodes (CUgraph handle, CUgraphNode *out, size_t *n) {
  graph *g;
  ENTER (m, enter_graph (handle, &g, &refused));
  if (n == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; out != NULL && i < *n; i++)
    out[i] = i < (size_t)g->n ? (CUgraphNode)g->nodes[i] : NULL;
  if (out == NULL || *n > (size_t)g->n)
    *n = (size_t)g->n;
  return machine_leave (m, CUDA_SUCCESS);
}

/* ---- building ---- */

CUresult graph_kernel (machine *m, const CUDA_KERNEL_NODE_PARAMS *p, command **out) {
  CUlaunchConfig l = { .gridDimX = p->gridDimX,
                       .gridDimY = p->gridDimY,
                       .gridDimZ = p->gridDimZ,
                       .blockDimX = p->blockDimX,
                       .blockDimY = p->blockDimY,
                       .blockDimZ = p->blockDimZ,
                       .sharedMemBytes = p->sharedMemBytes };
  CUfunction f = p->func != NULL ? p->func : (CUfunction)(void *)p->kern;
  return kernel_command (m, NULL, &l, f, p->kernelParams, p->extra, out);
}

CUresult graph_set (machine *m, const CUDA_MEMSET_NODE_PARAMS *p, command **out) {
  if (p->height != 1 || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return CUDA_ERROR_INVALID_VALUE;
  return set_command (m, NULL, p->dst, p->value, p->width, (int)p->elementSize, out);
}

/* The node that the call asks for: `r` and `c` say what became of its parameters. */
static CUresult add (machine *m, CUgraphNode *out, graph *g, const CUgraphNode *deps, size_t n,
                     CUgraphNodeType type, CUresult r, command *c) {
  bool good = out != NULL && n < 1 << 20 && (n == 0 || deps != NULL);
  node **rows = good ? calloc (n + 1, sizeof (node *)) : NULL;
  for (size_t i = 0; rows != NULL && i < n; i++) {
    rows[i] = node_of (m, deps[i]);
    good = good && rows[i] != NULL && rows[i]->place < g->n && g->nodes[rows[i]->place] == rows[i];
  }
  node *own = NULL;
  if (good && rows != NULL && r == CUDA_SUCCESS)
    own = graph_add (m, g, type, c, rows, (int32_t)n);
  else if (r == CUDA_SUCCESS && c != NULL)
    command_drop (m, c);
  free (rows);
  if (r != CUDA_SUCCESS || own == NULL)
    return r != CUDA_SUCCESS ? r : good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  *out = (CUgraphNode)own;
  return CUDA_SUCCESS;
}

#define NODE_PARAMETERS CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n

/* `make` sets r and c from the call's parameters, which are there where `given`. */
#define ADD(type, given, make)                          \
  CUresult r = CUDA_SUCCESS;                            \
  command *c = NULL;                                    \
  graph *g;                                             \
  ENTER (m, enter_graph (handle, &g, &refused));        \
  if (!(given))                                         \
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE); \
  make;                                                 \
  r = add (m, out, g, deps, n, type, r, c)

CUresult cuGraphAddKernelNode_v2 (NODE_PARAMETERS, const CUDA_KERNEL_NODE_PARAMS *p) {
  ADD (CU_GRAPH_NODE_TYPE_KERNEL, p != NULL, r = graph_kernel (m, p, &c));
  return machine_leave (m, r);
}

CUresult cuGraphAddMemcpyNode (NODE_PARAMETERS, const CUDA_MEMCPY3D *p, CUcontext context) {
  (void)context;
  ADD (CU_GRAPH_NODE_TYPE_MEMCPY, p != NULL, r = box_command (m, NULL, p, &c));
  return machine_leave (m, r);
}

CUresult cuGraphAddMemsetNode (NODE_PARAMETERS, const CUDA_MEMSET_NODE_PARAMS *p,
                               CUcontext context) {
  (void)context;
  ADD (CU_GRAPH_NODE_TYPE_MEMSET, p != NULL, r = graph_set (m, p, &c));
  return machine_leave (m, r);
}

static CUresult host_command (machine *m, const CUDA_HOST_NODE_PARAMS *p, command **out) {
  *out = command_new (m, NULL, COMMAND_HOST);
  if (*out == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  (*out)->as.host.function = p->fn;
  (*out)->as.host.user = p->userData;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode (NODE_PARAMETERS, const CUDA_HOST_NODE_PARAMS *p) {
  ADD (CU_GRAPH_NODE_TYPE_HOST, p != NULL && p->fn != NULL, r = host_command (m, p, &c));
  return machine_leave (m, r);
}

CUresult cuGraphAddEmptyNode (NODE_PARAMETERS) {
  ADD (CU_GRAPH_NODE_TYPE_EMPTY, true, (void)0);
  return machine_leave (m, r);
}

CUresult cuGraphAddChildGraphNode (NODE_PARAMETERS, CUgraph child) {
  ADD (CU_GRAPH_NODE_TYPE_GRAPH, graph_of (m, child) != NULL, (void)0);
  if (r == CUDA_SUCCESS) {
    node *own = node_of (m, *out);
    own->child = graph_copy (m, graph_of (m, child), true);
    r = own->child == NULL ? CUDA_ERROR_OUT_OF_MEMORY : r;
  }
  return machine_leave (m, r);
}

CUresult cuGraphAddEventRecordNode (NODE_PARAMETERS, CUevent e) {
  ADD (CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_of (m, e) != NULL, (void)0);
  if (r == CUDA_SUCCESS)
    node_of (m, *out)->event = e;
  return machine_leave (m, r);
}

CUresult cuGraphAddEventWaitNode (NODE_PARAMETERS, CUevent e) {
  ADD (CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_of (m, e) != NULL, (void)0);
  if (r == CUDA_SUCCESS)
    node_of (m, *out)->event = e;
  return machine_leave (m, r);
}

/* ---- questions about a node ---- */

/* Enters with a node of the type; NULL and the reason otherwise. */
static machine *enter_node (CUgraphNode handle, int type, bool given, node **n, CUresult *refused) {
  machine *m = machine_enter (true, refused);
  if (m == NULL)
    return NULL;
  *n = node_of (m, handle);
  if (*n != NULL && given && (type < 0 || (*n)->type == (CUgraphNodeType)type))
    return m;
  *refused = CUDA_ERROR_INVALID_VALUE;
  machine_leave (m, CUDA_SUCCESS);
  return NULL;
}

#define ASK(type, given) \
  node *n;               \
  ENTER (m, enter_node (handle, (int)(type), given, &n, &refused))

CUresult cuGraphNodeGetType (CUgraphNode handle, CUgraphNodeType *out) {
  ASK (-1, out != NULL);
  *out = n->type;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeGetParams_v2 (CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
  ASK (CU_GRAPH_NODE_TYPE_KERNEL, out != NULL);
  const emu_kernel *k = &n->c->as.run.kernel->told;
  const emu_launch *l = &n->c->as.run.launch;
  if (n->params == NULL)
    n->params = calloc ((size_t)k->n_params + 1, sizeof *n->params);
  if (n->params == NULL)
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  for (int32_t i = 0; i < k->n_params; i++)
    n->params[i] = (char *)n->c->as.run.params + k->params[i].offset;
  *out = (CUDA_KERNEL_NODE_PARAMS){ .func = (CUfunction)(void *)(uintptr_t)n->c->as.run.kernel,
                                    .gridDimX = l->grid[0],
                                    .gridDimY = l->grid[1],
                                    .gridDimZ = l->grid[2],
                                    .blockDimX = l->block[0],
                                    .blockDimY = l->block[1],
                                    .blockDimZ = l->block[2],
                                    .kernelParams = n->params };
  return machine_leave (m, CUDA_SUCCESS);
}

/* The place of an address, as the driver tells it: the host's or the device's. */
static void tell_side (const machine *m, uint64_t at, unsigned int *type, CUdeviceptr *device,
                       const void **host) {
  bool there = memory_is_device (m, at);
  *type = there ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  *device = there ? at : 0;
  *host = there ? NULL : (const void *)(uintptr_t)at;
}

CUresult cuGraphMemcpyNodeGetParams (CUgraphNode handle, CUDA_MEMCPY3D *out) {
  ASK (CU_GRAPH_NODE_TYPE_MEMCPY, out != NULL);
  const box *b = &n->c->as.copy.box;
  const void *to = NULL;
  *out = (CUDA_MEMCPY3D){ .WidthInBytes = (size_t)b->width,
                          .Height = (size_t)b->rows,
                          .Depth = (size_t)b->planes,
                          .srcPitch = (size_t)b->from_pitch,
                          .dstPitch = (size_t)b->to_pitch };
  if (b->from_pitch > 0)
    out->srcHeight = (size_t)(b->from_slice / b->from_pitch);
  if (b->to_pitch > 0)
    out->dstHeight = (size_t)(b->to_slice / b->to_pitch);
  tell_side (m, n->c->as.copy.from, &out->srcMemoryType, &out->srcDevice, &out->srcHost);
  tell_side (m, n->c->as.copy.to, &out->dstMemoryType, &out->dstDevice, &to);
  out->dstHost = (void *)(uintptr_t)to;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuGraphMemsetNodeGetParams (CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out) {
  ASK (CU_GRAPH_NODE_TYPE_MEMSET, out != NULL);
  *out = (CUDA_MEMSET_NODE_PARAMS){ .dst = n->c->as.set.to,
                                    .value = n->c->as.set.value,
                                    .elementSize = (unsigned int)n->c->as.set.width,
                                    .width = (size_t)n->c->as.set.count,
                                    .height = 1 };
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuGraphChildGraphNodeGetGraph (CUgraphNode handle, CUgraph *out) {
  ASK (CU_GRAPH_NODE_TYPE_GRAPH, out != NULL);
  *out = (CUgraph)n->child;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuGraphEventRecordNodeGetEvent (CUgraphNode handle, CUevent *out) {
  ASK (CU_GRAPH_NODE_TYPE_EVENT_RECORD, out != NULL);
  *out = n->event;
  return machine_leave (m, CUDA_SUCCESS);
}
