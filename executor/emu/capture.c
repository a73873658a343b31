/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams that are captured: their work becomes nodes of a graph.  A stream joins by waiting for an
   event of the capture.  The calls that a driver forbids meanwhile end the capture. */
#include <stdlib.h>

#include "executor/emu/graph.h"

static _Thread_local CUstreamCaptureMode own_mode; /* of calls: which captures forbid them */
static _Thread_local char own_thread;              /* its address is the thread's */

static bool add_tip (stream *s, node *tip) {
  for (int32_t i = 0; i < s->n_tips; i++)
    if (s->tips[i] == tip)
      return true;
  return pointers_add ((void ***)&s->tips, &s->n_tips, tip);
}

/* ---- work of a captured stream ---- */

static CUresult take (machine *m, stream *s, CUgraphNodeType type, command *c, node **out) {
  if (s->capture->invalid) {
    command_drop (m, c);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  node *n = graph_add (m, s->capture->to, type, c, s->tips, s->n_tips);
  if (n == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  s->n_tips = 0;
  if (!add_tip (s, n))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (out != NULL)
    *out = n;
  return CUDA_SUCCESS;
}

CUresult capture_take (machine *m, command *c) {
  CUgraphNodeType type = c->kind == COMMAND_KERNEL ? CU_GRAPH_NODE_TYPE_KERNEL
                         : c->kind == COMMAND_COPY ? CU_GRAPH_NODE_TYPE_MEMCPY
                         : c->kind == COMMAND_SET  ? CU_GRAPH_NODE_TYPE_MEMSET
                                                   : CU_GRAPH_NODE_TYPE_HOST;
  return take (m, c->stream, type, c, NULL);
}

/* The memory that a capture allocates, which its graph holds from the first piece on; NULL: no
   memory. */
static graph_memory *memory_of (const capture *c) {
  held *h = &c->to->memory;
  graph_memory *g = h->n > 0 ? h->at[0] : calloc (1, sizeof *g);
  if (g != NULL && h->n == 0 && !held_add (h, g)) {
    free (g);
    return NULL;
  }
  return g;
}

CUresult capture_allocation (machine *m, stream *s, uint64_t at) {
  capture *c = s->capture;
  node *n = NULL;
  CUresult r = take (m, s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL, &n);
  if (r != CUDA_SUCCESS)
    return r;
  n->memory = at;
  graph_memory *g = memory_of (c);
  struct graph_piece *moved =
      g == NULL ? NULL : realloc (g->pieces, (size_t)(g->n + 1) * sizeof *moved);
  if (moved == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  g->pieces = moved;
  g->pieces[g->n++] = (struct graph_piece){ at, false };
  return CUDA_SUCCESS;
}

CUresult capture_free (machine *m, stream *s, uint64_t at) {
  if (s->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  struct graph_piece *p = held_piece (&s->capture->to->memory, at);
  node *n = NULL;
  if (p == NULL || p->freed)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult r = take (m, s, CU_GRAPH_NODE_TYPE_MEM_FREE, NULL, &n);
  if (r == CUDA_SUCCESS)
    n->memory = at;
  p->freed = p->freed || r == CUDA_SUCCESS;
  return r;
}

/* Memory of a graph that is there: the next launch has it again. */
bool capture_keeps (const machine *m, uint64_t at) {
  for (int32_t i = 0; i < m->graphs->n_graphs; i++)
    if (held_frees (&m->graphs->graphs[i]->memory, at))
      return true;
  return graphs_exec_keeps (m, at);
}

/* ---- events ---- */

static capture *capture_named (const machine *m, uint64_t id) {
  for (int32_t i = 0; i < m->graphs->n_captures; i++)
    if (m->graphs->captures[i]->id == id)
      return m->graphs->captures[i];
  return NULL;
}

CUresult capture_record (machine *m, stream *s, event *e) {
  if (s->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  node **tips = calloc ((size_t)s->n_tips + 1, sizeof (node *));
  if (tips == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (int32_t i = 0; i < s->n_tips; i++)
    tips[i] = s->tips[i];
  command_drop (m, e->recorded);
  e->recorded = NULL;
  free (e->tips);
  e->tips = tips;
  e->n_tips = s->n_tips;
  e->captured = s->capture->id;
  return CUDA_SUCCESS;
}

CUresult capture_wait (machine *m, stream *s, const event *e) {
  capture *of = e->captured != 0 ? capture_named (m, e->captured) : NULL;
  if (s->capture == NULL && of == NULL)
    return e->captured != 0 ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
  if (of == NULL && e->recorded == NULL)
    return CUDA_SUCCESS;
  if (of == NULL || (s->capture != NULL && s->capture != of)) {
    s->capture->invalid = true;
    return of == NULL ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (of->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s->legacy) {
    of->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  s->capture = of;
  for (int32_t i = 0; i < e->n_tips; i++)
    if (!add_tip (s, e->tips[i]))
      return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

/* ---- forbidden calls ---- */

bool capture_forbids (const machine *m) {
  bool any = false;
  for (int32_t i = 0; i < m->graphs->n_captures && own_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
       i++) {
    capture *c = m->graphs->captures[i];
    bool mine = c->thread == &own_thread;
    bool hit = (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                (mine || own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) ||
               (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && mine);
    c->invalid = c->invalid || hit;
    any = any || hit;
  }
  return any;
}

bool capture_any (const machine *m, bool end) {
  for (int32_t i = 0; end && i < m->graphs->n_captures; i++)
    m->graphs->captures[i]->invalid = true;
  return m->graphs->n_captures > 0;
}

/* The legacy stream would join a captured one. */
bool capture_is_implicit (const machine *m, const stream *s) {
  bool any = false;
  for (int32_t i = 0; s->legacy && i < m->n_streams && m->graphs->n_captures > 0; i++)
    if (m->streams[i]->capture != NULL && (m->streams[i]->flags & CU_STREAM_NON_BLOCKING) == 0) {
      m->streams[i]->capture->invalid = true;
      any = true;
    }
  return any;
}

CUresult cuThreadExchangeStreamCaptureMode (CUstreamCaptureMode *mode) {
  if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  CUstreamCaptureMode was = own_mode;
  own_mode = *mode;
  *mode = was;
  return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin (machine *m, stream *s, CUstreamCaptureMode mode) {
  if (s == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (s->legacy)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s->capture != NULL)
    return CUDA_ERROR_INVALID_VALUE;
  capture *c = calloc (1, sizeof *c);
  if (c == NULL || !pointers_add ((void ***)&m->graphs->captures, &m->graphs->n_captures, c)) {
    free (c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *c = (capture){ .id = ++m->graphs->last_capture,
                  .to = graph_new (m, false),
                  .origin = s,
                  .mode = mode,
                  .thread = &own_thread };
  c->invalid = c->to == NULL;
  s->capture = c;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2 (CUstream handle, CUstreamCaptureMode mode) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, begin (m, stream_of (m, handle), mode));
}

void capture_end (machine *m, capture *c) {
  struct graphs *g = m->graphs;
  for (int32_t i = 0; i < m->n_streams; i++)
    if (m->streams[i]->capture == c) {
      m->streams[i]->capture = NULL;
      m->streams[i]->n_tips = 0;
    }
  pointers_remove ((void **)g->captures, &g->n_captures, c);
  free (c);
}

static void mark (node *n) {
  if (n->seen)
    return;
  n->seen = true;
  for (int32_t i = 0; i < n->n_deps; i++)
    mark (n->deps[i]);
}

/* All work of the other streams is behind the origin's. */
static bool is_joined (const capture *c) {
  bool good = true;
  for (int32_t i = 0; i < c->to->n; i++)
    c->to->nodes[i]->seen = false;
  for (int32_t i = 0; i < c->origin->n_tips; i++)
    mark (c->origin->tips[i]);
  for (int32_t i = 0; i < c->to->n; i++)
    good = good && c->to->nodes[i]->seen;
  return good;
}

static CUresult finish (machine *m, stream *s, CUgraph *out) {
  capture *c = s == NULL ? NULL : s->capture;
  *out = NULL;
  if (c == NULL)
    return s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (c->origin != s)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != &own_thread)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult r = c->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : !is_joined (c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                : CUDA_SUCCESS;
  if (r == CUDA_SUCCESS)
    *out = (CUgraph)c->to;
  else if (c->to != NULL)
    graph_drop (m, c->to);
  capture_end (m, c);
  return r;
}

CUresult cuStreamEndCapture (CUstream handle, CUgraph *out) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE
                                       : finish (m, stream_of (m, handle), out));
}

/* ---- questions ---- */

CUresult cuStreamGetCaptureInfo_v3 (CUstream handle, CUstreamCaptureStatus *status, uint64_t *id,
                                    CUgraph *to, const CUgraphNode **deps,
                                    const CUgraphEdgeData **edges, size_t *n) {
  ENTER (m, machine_enter (true, &refused));
  const stream *s = stream_of (m, handle);
  if (s == NULL || status == NULL)
    return machine_leave (m, s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE);
  const capture *c = s->capture;
  *status = c == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
            : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (c == NULL)
    return machine_leave (m, CUDA_SUCCESS);
  if (id != NULL)
    *id = c->id;
  if (to != NULL)
    *to = (CUgraph)c->to;
  if (deps != NULL)
    *deps = (const CUgraphNode *)(const void *)s->tips;
  if (edges != NULL)
    *edges = NULL;
  if (n != NULL)
    *n = (size_t)s->n_tips;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing (CUstream handle, CUstreamCaptureStatus *out) {
  return cuStreamGetCaptureInfo_v3 (handle, out, NULL, NULL, NULL, NULL, NULL);
}
