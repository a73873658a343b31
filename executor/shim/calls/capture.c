/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/calls/capture.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/calls/calls.h"
#include "executor/shim/follow/follow.h"
#include "executor/shim/record/order.h"
#include "executor/shim/state/wraps.h"

typedef struct piece {
  CUdeviceptr at;
  int64_t bytes;
  CUstream stream; /* that freed it last, while it was captured */
  bool freed, within;
} piece;

struct graph_memory {
  int32_t holders, n, capacity;
  piece *pieces;
  graph_memory *next; /* of all there are */
};

typedef struct capture {
  CUstream origin;
  uint64_t id;
  held memory;
} capture;

enum { MOST_CAPTURES = 16 };

struct captures {
  capture at[MOST_CAPTURES];
  graph_memory *all;
};

static uint64_t id_of (const shim *s, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  if (s->real.capture_info == NULL ||
      s->real.capture_info (stream, &status, &id, NULL, NULL, NULL, NULL) != CUDA_SUCCESS)
    return 0;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : id;
}

bool capture_has (const shim *s, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return s->captured > 0 && s->real.stream_is_capturing != NULL &&
         s->real.stream_is_capturing (stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult capture_prepare (shim *s, const op *o) {
  op own = { .kind = o->kind,
             .stream = s->in,
             .stream_bit = STREAM_IN,
             .name = o->name,
             .refs = o->refs,
             .n_refs = o->n_refs,
             .number = --s->repeats };
  if (o->kind == OP_LAUNCH || o->n_refs == 0)
    return CUDA_SUCCESS;
  bool good = op_make_room (s, &own);
  for (int32_t i = 0; i < o->n_refs; i++) /* nothing is known of what they hold */
    s->tensors[o->refs[i]].last_op = shim_next_op (s);
  return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- memory ---- */

static piece *piece_of (const graph_memory *g, CUdeviceptr at) {
  for (int32_t i = 0; i < g->n; i++)
    if (g->pieces[i].at == at)
      return &g->pieces[i];
  return NULL;
}

/* A piece that the same stream has freed before: its next owner comes behind the last. */
static piece *used_before (const graph_memory *g, int64_t bytes, CUstream stream) {
  piece *best = NULL;
  for (int32_t i = 0; i < g->n; i++) {
    piece *p = &g->pieces[i];
    if (p->within && p->stream == stream && p->bytes >= bytes && p->bytes / 2 <= bytes &&
        (best == NULL || p->bytes < best->bytes))
      best = p;
  }
  return best;
}

static capture *capture_of (const shim *s, CUstream stream) {
  uint64_t id = id_of (s, stream);
  for (int32_t i = 0; i < MOST_CAPTURES && id != 0 && s->captures != NULL; i++)
    if (s->captures->at[i].id == id)
      return &s->captures->at[i];
  return NULL;
}

static graph_memory *memory_of (shim *s, capture *c) {
  graph_memory *g = c->memory.n > 0 ? c->memory.at[0] : calloc (1, sizeof *g);
  if (g == NULL || c->memory.n > 0)
    return g;
  c->memory.at = malloc (sizeof (graph_memory *));
  if (c->memory.at == NULL) {
    free (g);
    return NULL;
  }
  g->holders = 1;
  g->next = s->captures->all;
  s->captures->all = g;
  c->memory.at[c->memory.n++] = g;
  return g;
}

static bool has_room (graph_memory *g) {
  if (g->n < g->capacity)
    return true;
  int32_t capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
  piece *moved = realloc (g->pieces, (size_t)capacity * sizeof *moved);
  if (moved == NULL)
    return false;
  g->pieces = moved;
  g->capacity = capacity;
  return true;
}

CUresult capture_allocate (shim *s, CUdeviceptr *out, size_t bytes, CUstream stream) {
  capture *c = capture_of (s, stream);
  graph_memory *g = c == NULL ? NULL : memory_of (s, c);
  if (g == NULL || !has_room (g))
    return g == NULL ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_OUT_OF_MEMORY;
  piece *again = out == NULL ? NULL : used_before (g, (int64_t)bytes, stream);
  if (again != NULL) {
    again->freed = again->within = false;
    *out = again->at;
    return CUDA_SUCCESS;
  }
  CUresult r = memory_serve (s, out, bytes, NULL, true);
  if (r == CUDA_SUCCESS)
    g->pieces[g->n++] = (piece){ .at = *out, .bytes = (int64_t)bytes };
  return r;
}

CUresult capture_free (shim *s, CUdeviceptr at, CUstream stream) {
  const capture *c = capture_of (s, stream);
  piece *p = c == NULL || c->memory.n == 0 ? NULL : piece_of (c->memory.at[0], at);
  if (p == NULL || p->freed)
    return CUDA_ERROR_INVALID_VALUE;
  p->freed = p->within = true;
  p->stream = stream;
  return CUDA_SUCCESS;
}

bool capture_keeps (shim *s, CUdeviceptr at) {
  for (graph_memory *g = s->captures == NULL ? NULL : s->captures->all; g != NULL; g = g->next) {
    piece *p = piece_of (g, at);
    if (p == NULL)
      continue;
    p->freed = true;
    return true;
  }
  return false;
}

bool held_add (held *h, const held *more) {
  graph_memory **moved = realloc (h->at, (size_t)(h->n + more->n + 1) * sizeof (graph_memory *));
  if (moved == NULL)
    return false;
  h->at = moved;
  for (int32_t i = 0; i < more->n; i++) {
    bool there = false;
    for (int32_t k = 0; k < h->n; k++)
      there = there || h->at[k] == more->at[i];
    if (there)
      continue;
    more->at[i]->holders++;
    h->at[h->n++] = more->at[i];
  }
  return true;
}

static void forget (shim *s, const graph_memory *g) {
  graph_memory **from = &s->captures->all;
  while (*from != g)
    from = &(*from)->next;
  *from = g->next;
}

void held_drop (shim *s, held *h) {
  for (int32_t i = 0; i < h->n; i++) {
    graph_memory *g = h->at[i];
    if (--g->holders > 0)
      continue;
    forget (s, g);
    for (int32_t k = 0; k < g->n; k++)
      if (g->pieces[k].freed)
        (void)memory_release (s, g->pieces[k].at, stream_all (s));
    free (g->pieces);
    free (g);
  }
  free (h->at);
  *h = (held){ 0 };
}

/* ---- begin and end ---- */

/* Before: what the stream has done is waited for through the stream of copies in, since an event of
   the captured one would be part of the graph. */
static bool enter (shim **out, CUstream stream) {
  if (!shim_enter (out))
    return false;
  shim *s = *out;
  follow_disturbed (s);
  stream_hand_over (s, stream);
  if (s->captures == NULL)
    s->captures = calloc (1, sizeof *s->captures);
  if (s->captures != NULL)
    return true;
  (void)shim_leave (s, CUDA_SUCCESS);
  return false;
}

static CUresult begun (shim *s, CUstream stream, CUresult r) {
  capture *rows = s->captures->at;
  for (int32_t i = 0; r == CUDA_SUCCESS && i < MOST_CAPTURES; i++)
    if (rows[i].id == 0) {
      rows[i] = (capture){ .origin = stream, .id = id_of (s, stream) };
      s->captured += rows[i].id != 0;
      break;
    }
  return shim_leave (s, r);
}

CUresult wrap_capture (CUstream stream, CUstreamCaptureMode how) {
  shim *s;
  if (shim_real ()->capture_begin == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!enter (&s, stream))
    return shim_real ()->capture_begin (stream, how);
  return begun (s, stream, s->real.capture_begin (stream, how));
}

CUresult wrap_capture_ptsz (CUstream stream, CUstreamCaptureMode how) {
  return wrap_capture (own_stream (stream), how);
}

CUresult wrap_capture_old (CUstream stream) {
  return wrap_capture (stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult wrap_capture_old_ptsz (CUstream stream) {
  return wrap_capture (own_stream (stream), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult wrap_capture_to (CUstream stream, CUgraph g, const CUgraphNode *nodes,
                          const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode how) {
  CUresult (*real) (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
                    CUstreamCaptureMode) = shim_symbol ("cuStreamBeginCaptureToGraph");
  shim *s;
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!enter (&s, stream))
    return real (stream, g, nodes, edges, n, how);
  return begun (s, stream, real (stream, g, nodes, edges, n, how));
}

CUresult wrap_capture_to_ptsz (CUstream stream, CUgraph g, const CUgraphNode *nodes,
                               const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode how) {
  return wrap_capture_to (own_stream (stream), g, nodes, edges, n, how);
}

/* A capture that failed is over as well, once the driver says so. */
CUresult wrap_capture_end (CUstream stream, CUgraph *out) {
  shim *s;
  if (shim_real ()->capture_end == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!shim_enter (&s))
    return shim_real ()->capture_end (stream, out);
  capture *c = capture_of (s, stream);
  CUresult r = s->real.capture_end (stream, out);
  if (c != NULL && c->origin == stream && id_of (s, stream) != c->id) {
    if (r == CUDA_SUCCESS && c->memory.n > 0)
      graphs_captured (s, *out, &c->memory);
    held_drop (s, &c->memory);
    *c = (capture){ 0 };
    s->captured--;
  }
  return shim_leave (s, r);
}

CUresult wrap_capture_end_ptsz (CUstream stream, CUgraph *out) {
  return wrap_capture_end (own_stream (stream), out);
}
