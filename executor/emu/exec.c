/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs that are ready to be launched.  Nodes are dealt to chains: one is the stream of the
   launch, each other one a stream of the graph's own, with a wait where a node depends on another
   chain's. */
#include <stdlib.h>
#include <string.h>

#include "executor/emu/graph.h"

enum { MOST_CHAINS = 8 };

typedef struct link {
  CUgraphNodeType type;
  command *c;
  CUevent event;
  const node *of; /* never followed: a handle that parameters are set by */
  int32_t *deps, n_deps, chain;
  bool awaited; /* by another chain */
} link;

struct exec {
  link *links;
  int32_t n, capacity;
  stream *chains[MOST_CHAINS]; /* but the first */
  int32_t tails[MOST_CHAINS], n_chains;
  command *last; /* launches of it take turns */
  held memory;
};

bool graphs_exec_keeps (const machine *m, uint64_t at) {
  for (int32_t i = 0; i < m->graphs->n_execs; i++)
    if (held_frees (&m->graphs->execs[i]->memory, at))
      return true;
  return false;
}

static exec *exec_of (const machine *m, CUgraphExec handle) {
  for (int32_t i = 0; i < m->graphs->n_execs; i++)
    if ((CUgraphExec)m->graphs->execs[i] == handle)
      return m->graphs->execs[i];
  return NULL;
}

/* ---- made ready ---- */

static int32_t add_link (machine *m, exec *x, const node *n, const int32_t *deps, int32_t n_deps) {
  if (x->n == x->capacity) {
    int32_t capacity = x->capacity == 0 ? 64 : 2 * x->capacity;
    link *moved = realloc (x->links, (size_t)capacity * sizeof *moved);
    if (moved == NULL)
      return -1;
    x->links = moved;
    x->capacity = capacity;
  }
  link own = { .type = n->type, .event = n->event, .of = n, .n_deps = n_deps };
  own.c = n->c == NULL ? NULL : command_again (m, NULL, n->c);
  own.deps = calloc ((size_t)n_deps + 1, sizeof *own.deps);
  x->links[x->n++] = own; /* it goes with the others, whatever is missing */
  if (own.deps == NULL || (n->c != NULL && own.c == NULL))
    return -1;
  memcpy (own.deps, deps, (size_t)n_deps * sizeof *deps);
  return x->n - 1;
}

/* A child's nodes stand in the place of theirs, behind what it depends on; the node itself is their
   end. */
static bool add_graph (machine *m, exec *x, const graph *g, const int32_t *before, int32_t n) {
  int32_t *at = calloc ((size_t)g->n + 1, sizeof *at);
  bool good = at != NULL;
  for (int32_t i = 0; good && i < g->n; i++) {
    const node *own = g->nodes[i];
    int32_t *deps = calloc ((size_t)(own->n_deps + n + 1), sizeof *deps), n_deps = 0;
    good = deps != NULL;
    for (int32_t k = 0; good && k < own->n_deps; k++)
      deps[n_deps++] = at[own->deps[k]->place];
    for (int32_t k = 0; good && own->n_deps == 0 && k < n; k++)
      deps[n_deps++] = before[k];
    int32_t first = x->n;
    if (good && own->child != NULL) {
      good = add_graph (m, x, own->child, deps, n_deps);
      int32_t *moved = good ? realloc (deps, (size_t)(x->n + n_deps + 1) * sizeof *deps) : NULL;
      deps = moved != NULL ? moved : deps;
      good = moved != NULL;
      for (int32_t k = first; good && k < x->n; k++)
        deps[n_deps++] = k;
    }
    good = good && (at[i] = add_link (m, x, own, deps, n_deps)) >= 0;
    free (deps);
  }
  free (at);
  return good;
}

static bool deal (machine *m, exec *x) {
  x->n_chains = 1;
  x->tails[0] = -1;
  for (int32_t i = 0; i < x->n; i++) {
    link *own = &x->links[i];
    own->chain = x->tails[0] < 0 ? 0 : -1;
    for (int32_t k = 0; own->chain < 0 && k < own->n_deps; k++)
      if (x->tails[x->links[own->deps[k]].chain] == own->deps[k])
        own->chain = x->links[own->deps[k]].chain;
    if (own->chain < 0 && x->n_chains < MOST_CHAINS) {
      x->chains[x->n_chains] = stream_add (m, contexts_card (m), CU_STREAM_NON_BLOCKING);
      if (x->chains[x->n_chains] == NULL)
        return false;
      own->chain = x->n_chains++;
    }
    own->chain = own->chain < 0 ? 0 : own->chain;
    x->tails[own->chain] = i;
  }
  for (int32_t i = 0; i < x->n; i++)
    for (int32_t k = 0; k < x->links[i].n_deps; k++) {
      link *dep = &x->links[x->links[i].deps[k]];
      dep->awaited = dep->awaited || dep->chain != x->links[i].chain;
    }
  return true;
}

void exec_drop (machine *m, exec *x) {
  struct graphs *all = m->graphs;
  if (x->last != NULL && !m->closing)
    (void)command_finish (m, x->last);
  command_drop (m, x->last);
  for (int32_t i = 1; i < x->n_chains && !m->closing; i++)
    stream_remove (m, x->chains[i]);
  for (int32_t i = 0; i < x->n; i++) {
    command_drop (m, x->links[i].c);
    free (x->links[i].deps);
  }
  free (x->links);
  held_drop (m, &x->memory);
  pointers_remove ((void **)all->execs, &all->n_execs, x);
  free (x);
}

static bool hold_all (exec *x, const graph *g) {
  bool good = true;
  for (int32_t i = 0; i < g->memory.n; i++)
    good = good && held_add (&x->memory, g->memory.at[i]);
  return good;
}

/* A driver looks at the memory of copies and fills here: it has to be there. */
static bool is_mapped (const machine *m, const graph *g) {
  for (int32_t i = 0; i < g->n; i++) {
    const node *n = g->nodes[i];
    if ((n->child != NULL && !is_mapped (m, n->child)) ||
        (n->type != CU_GRAPH_NODE_TYPE_KERNEL && n->c != NULL &&
         execute_check (m, n->c) != CUDA_SUCCESS))
      return false;
  }
  return true;
}

static CUresult instantiate (machine *m, CUgraphExec *out, const graph *g, uint64_t flags) {
  if (out == NULL || g == NULL || (flags & ~(uint64_t)11) != 0 || !is_mapped (m, g))
    return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 ? CUDA_ERROR_NOT_SUPPORTED
                                                                    : CUDA_ERROR_INVALID_VALUE;
  exec *x = calloc (1, sizeof *x);
  if (x == NULL || !pointers_add ((void ***)&m->graphs->execs, &m->graphs->n_execs, x)) {
    free (x);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!add_graph (m, x, g, NULL, 0) || !deal (m, x) || !hold_all (x, g)) {
    exec_drop (m, x);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = (CUgraphExec)x;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags (CUgraphExec *out, CUgraph handle, unsigned long long flags) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, instantiate (m, out, graph_of (m, handle), flags));
}

CUresult cuGraphExecDestroy (CUgraphExec handle) {
  ENTER (m, machine_enter (true, &refused));
  exec *x = exec_of (m, handle);
  if (x != NULL)
    exec_drop (m, x);
  return machine_leave (m, x == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

/* ---- launched ---- */

/* A mark in a stream; the caller holds it. */
static CUresult tell (machine *m, stream *s, command **out) {
  *out = command_take (m, s, COMMAND_RECORD);
  if (*out == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  command_hold (*out);
  return command_issue (m, *out);
}

static CUresult launch_link (machine *m, const exec *x, int32_t i, stream *s, command **told) {
  const link *own = &x->links[i];
  CUresult r = CUDA_SUCCESS;
  for (int32_t k = 0; k < own->n_deps && r == CUDA_SUCCESS; k++)
    if (x->links[own->deps[k]].chain != own->chain)
      r = command_await (m, s, told[own->deps[k]]);
  if (r == CUDA_SUCCESS && own->c != NULL) {
    command *c = command_again (m, s, own->c);
    r = c == NULL ? CUDA_ERROR_OUT_OF_MEMORY : command_issue (m, c);
  }
  if (r == CUDA_SUCCESS && own->event != NULL)
    r = own->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? event_record_on (m, own->event, s)
                                                     : event_wait_on (m, own->event, s);
  if (r == CUDA_SUCCESS && own->awaited)
    r = tell (m, s, &told[i]);
  return r;
}

static CUresult launch_all (machine *m, exec *x, stream *s, command **told) {
  command *mark = NULL;
  CUresult r = x->last == NULL || x->last->done ? CUDA_SUCCESS : command_await (m, s, x->last);
  if (x->n_chains > 1 && r == CUDA_SUCCESS)
    r = tell (m, s, &mark);
  for (int32_t i = 1; i < x->n_chains && r == CUDA_SUCCESS; i++)
    r = command_await (m, x->chains[i], mark);
  command_drop (m, mark);
  for (int32_t i = 0; i < x->n && r == CUDA_SUCCESS; i++)
    r = launch_link (m, x, i, x->links[i].chain == 0 ? s : x->chains[x->links[i].chain], told);
  for (int32_t i = 1; i < x->n_chains && r == CUDA_SUCCESS; i++) {
    r = tell (m, x->chains[i], &mark);
    r = r == CUDA_SUCCESS ? command_await (m, s, mark) : r;
    command_drop (m, mark);
  }
  command_drop (m, x->last);
  x->last = NULL;
  return r == CUDA_SUCCESS ? tell (m, s, &x->last) : r;
}

CUresult cuGraphLaunch (CUgraphExec handle, CUstream on) {
  ENTER (m, machine_enter (true, &refused));
  exec *x = exec_of (m, handle);
  stream *s = stream_of (m, on);
  if (x == NULL || s == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  if (s->capture != NULL || capture_is_implicit (m, s))
    return machine_leave (m, s->capture != NULL ? CUDA_ERROR_NOT_SUPPORTED
                                                : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  machine_spend (m, m->config.launch_ns);
  command **told = calloc ((size_t)x->n + 1, sizeof (command *));
  CUresult r = told == NULL ? CUDA_ERROR_OUT_OF_MEMORY : launch_all (m, x, s, told);
  for (int32_t i = 0; told != NULL && i < x->n; i++)
    command_drop (m, told[i]);
  free (told);
  return machine_leave (m, r);
}

/* ---- changed ---- */

static link *link_of (const machine *m, CUgraphExec handle, CUgraphNode of, CUgraphNodeType type) {
  exec *x = exec_of (m, handle);
  for (int32_t i = 0; x != NULL && i < x->n; i++)
    if ((CUgraphNode)(uintptr_t)x->links[i].of == of && x->links[i].type == type)
      return &x->links[i];
  return NULL;
}

/* Launches that are queued keep what they were given. */
static void replace (machine *m, link *own, command *c) {
  command_drop (m, own->c);
  own->c = c;
}

#define SET(type, make)                                                    \
  ENTER (m, machine_enter (true, &refused));                               \
  link *own = link_of (m, handle, of, type);                               \
  command *c = NULL;                                                       \
  CUresult r = own == NULL || p == NULL ? CUDA_ERROR_INVALID_VALUE : make; \
  if (r == CUDA_SUCCESS)                                                   \
    replace (m, own, c);                                                   \
  return machine_leave (m, r)

CUresult cuGraphExecKernelNodeSetParams_v2 (CUgraphExec handle, CUgraphNode of,
                                            const CUDA_KERNEL_NODE_PARAMS *p) {
  SET (CU_GRAPH_NODE_TYPE_KERNEL, graph_kernel (m, p, &c));
}

CUresult cuGraphExecMemcpyNodeSetParams (CUgraphExec handle, CUgraphNode of, const CUDA_MEMCPY3D *p,
                                         CUcontext context) {
  (void)context;
  SET (CU_GRAPH_NODE_TYPE_MEMCPY, box_command (m, NULL, p, &c));
}

CUresult cuGraphExecMemsetNodeSetParams (CUgraphExec handle, CUgraphNode of,
                                         const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  (void)context;
  SET (CU_GRAPH_NODE_TYPE_MEMSET, graph_set (m, p, &c));
}

static bool is_alike (const exec *a, const exec *b) {
  bool good = a->n == b->n;
  for (int32_t i = 0; good && i < a->n; i++) {
    const link *x = &a->links[i], *y = &b->links[i];
    good = x->type == y->type && x->n_deps == y->n_deps &&
           memcmp (x->deps, y->deps, (size_t)x->n_deps * sizeof *x->deps) == 0;
  }
  return good;
}

/* The other graph's commands in place of its own; the handles of its nodes stay. */
static CUresult update (machine *m, exec *x, const graph *g, CUgraphExecUpdateResultInfo *info) {
  CUgraphExec made = NULL;
  CUresult r = instantiate (m, &made, g, 0);
  if (r != CUDA_SUCCESS)
    return r;
  exec *other = (exec *)made;
  if (!is_alike (x, other)) {
    exec_drop (m, other);
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (int32_t i = 0; i < x->n; i++) {
    command *was = x->links[i].c;
    x->links[i].c = other->links[i].c;
    other->links[i].c = was;
    x->links[i].event = other->links[i].event;
  }
  exec_drop (m, other);
  return hold_all (x, g) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphExecUpdate_v2 (CUgraphExec handle, CUgraph with,
                               CUgraphExecUpdateResultInfo *info) {
  ENTER (m, machine_enter (true, &refused));
  exec *x = exec_of (m, handle);
  const graph *g = graph_of (m, with);
  if (x == NULL || g == NULL || info == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *info = (CUgraphExecUpdateResultInfo){ 0 };
  return machine_leave (m, update (m, x, g, info));
}

/* ---- the machine's ---- */

bool graphs_start (machine *m) {
  m->graphs = calloc (1, sizeof *m->graphs);
  return m->graphs != NULL;
}

void graphs_stop (machine *m) {
  struct graphs *all = m->graphs;
  if (all == NULL)
    return;
  while (all->n_execs > 0)
    exec_drop (m, all->execs[0]);
  while (all->n_captures > 0)
    capture_end (m, all->captures[0]);
  while (all->n_graphs > 0) /* the first is no child: a child is made after its parent */
    graph_drop (m, all->graphs[0]);
  free (all->execs);
  free (all->captures);
  free (all->graphs);
  free (all);
}
