/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/zoo/parallel.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/units.h"
#include "trace/build.h"

enum { COMPUTE_STREAM, COLLECTIVE_STREAM };
enum { NO_TENSOR = -1 };

/* PyTorch's DistributedDataParallel (bucket_cap_mb, and its first bucket) and DeepSpeed's
   reduce_bucket_size and allgather_bucket_size, 5 x 10^8 elements. */
#define DDP_FIRST_BYTES ((int64_t)1 << 20)
#define DDP_BUCKET_BYTES ((int64_t)25 << 20)
#define ZERO_BUCKET_ELEMENTS ((int64_t)500000000)

/* Ops between two gatherings of parameters. */
typedef struct session {
  int32_t first, end; /* ops of t */
  int32_t gathered;   /* the op that brings its parameters; or NO_OP */
  int32_t last_made;  /* its last op in the new step */
} session;

typedef struct parallel {
  const trace *t;
  const zoo_request *r;
  arena *a;
  error *err;
  trace_builder *b;
  int32_t *place;      /* per op of t: its place in the new step */
  int32_t *now, *next; /* per tensor of t: what ops use in its place; in the session to come */
  int32_t *gradient_of, *param_of; /* per op of t: of an update; or NO_TENSOR */
  int32_t *last_write; /* per tensor of t: the last op before the updates that writes it */
  int32_t *reduced;    /* per tensor of t: the op that reduces this gradient */
  int32_t *bucket;     /* gradients, or parameters, that wait for a collective */
  int32_t *gathering;  /* parameters that the collective at hand brings */
  int32_t n_bucket, n_buckets, first_update, n_left;
  int64_t bucket_bytes;
  session *sessions;
  int32_t *session_of; /* per op of t before the updates; -1: none has begun */
  int32_t n_sessions;
} parallel;

static int64_t share_of (const parallel *p, int64_t bytes) {
  return units_div_up (bytes, p->r->ranks);
}

/* By the count of nccl-tests, a ring moves (N - 1) / N of the bytes once, or twice for a sum that
   all get. */
static int64_t ring_ns (const parallel *p, collective_kind kind, int64_t bytes) {
  int64_t times = kind == COLLECTIVE_all_reduce ? 2 : 1;
  int64_t moved = units_scale (bytes, times * (p->r->ranks - 1), p->r->ranks);
  return units_scale (moved, 1000000000, p->r->fabric_bytes_per_s) + p->r->device->roofline.op_ns;
}

static int32_t put_collective (parallel *p, collective_kind kind, const char *name, int64_t bytes,
                               op_phase phase, int32_t after) {
  int32_t k = build_op (p->b, name, phase, ring_ns (p, kind, bytes));
  op *o = build_op_at (p->b, k);
  o->stream = COLLECTIVE_STREAM;
  o->collective = kind;
  o->group_bytes = bytes;
  o->group = "data";
  if (after != NO_OP)
    build_after (p->b, after);
  return k;
}

static const char *numbered (parallel *p, const char *what, int32_t number) {
  return arena_format (p->a, p->err, "%s%d", what, number);
}

static int64_t bytes_of (const parallel *p, int32_t x) {
  return p->t->tensors[x].bytes;
}

/* ---- the step as it is ---- */

static int32_t one_of (const trace *t, const index_list *list, tensor_kind kind) {
  for (int32_t i = 0; i < list->count; i++)
    if (t->tensors[list->at[i]].kind == kind)
      return list->at[i];
  return NO_TENSOR;
}

static bool find_updates (parallel *p) {
  const trace *t = p->t;
  p->first_update = t->n_ops;
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    bool updates = o->phase == OP_UPDATE;
    p->gradient_of[k] = updates ? one_of (t, &o->reads, TENSOR_GRADIENT) : NO_TENSOR;
    p->param_of[k] = updates ? one_of (t, &o->writes, TENSOR_PARAMETER) : NO_TENSOR;
    if (updates && p->first_update == t->n_ops)
      p->first_update = k;
    if (!updates && p->first_update < t->n_ops)
      return error_set (p->err, ERR_usage,
                        "%s updates parameters in the middle of its step: several ranks of it are "
                        "not known",
                        p->r->name);
    for (int32_t i = 0; !updates && i < o->writes.count; i++)
      p->last_write[o->writes.at[i]] = k;
    p->n_left += p->gradient_of[k] != NO_TENSOR;
  }
  return true;
}

/* Parameters of one block are gathered together: "h3", "layer1.0". */
static size_t block_length (const char *name) {
  size_t n = strcspn (name, ".");
  if (name[n] == '.' && isdigit ((unsigned char)name[n + 1]))
    n += 1 + strspn (name + n + 1, "0123456789");
  return n;
}

static bool same_block (const char *a, const char *b) {
  size_t n = block_length (a);
  return n == block_length (b) && strncmp (a, b, n) == 0;
}

static bool find_sessions (parallel *p) {
  const trace *t = p->t;
  const char *block = NULL;
  if (!ALLOC (p->a, p->sessions, (int64_t)t->n_ops + 1, p->err) ||
      !ALLOC (p->a, p->session_of, t->n_ops, p->err))
    return false;
  for (int32_t k = 0; k < p->first_update; k++) {
    int32_t x = one_of (t, &t->ops[k].reads, TENSOR_PARAMETER);
    if (x != NO_TENSOR && (!block || !same_block (block, t->tensors[x].name))) {
      block = t->tensors[x].name;
      p->sessions[p->n_sessions++] = (session){ k, k, NO_OP, NO_OP };
    }
    p->session_of[k] = p->n_sessions - 1;
    if (p->n_sessions)
      p->sessions[p->n_sessions - 1].end = k + 1;
  }
  return true;
}

/* NULL where parameters are not gathered, none have been so far, or they are updated. */
static session *session_at (const parallel *p, int32_t k) {
  bool any = p->r->shard == ZOO_SHARD_all && k < p->first_update && p->session_of[k] >= 0;
  return any ? &p->sessions[p->session_of[k]] : NULL;
}

/* ---- tensors ---- */

/* State that is divided has the same numbers as before: tensors are added behind. */
static void put_tensors (parallel *p) {
  for (int32_t x = 0; x < p->t->n_tensors; x++) {
    const tensor *y = &p->t->tensors[x];
    bool divided = (p->r->shard != ZOO_SHARD_none && y->kind == TENSOR_OPTIMIZER &&
                    p->last_write[x] == NO_OP) ||
                   (p->r->shard == ZOO_SHARD_all && y->kind == TENSOR_PARAMETER);
    int32_t made = build_tensor (p->b, y->name, divided ? share_of (p, y->bytes) : y->bytes,
                                 (tensor_kind)y->kind);
    tensor *z = build_tensor_at (p->b, made);
    z->persistent = y->persistent;
    z->pinned = y->pinned;
    z->split = y->split;
    p->now[x] = p->next[x] = x;
  }
}

/* ---- collectives ---- */

/* Gradients that are complete, in the order in which the backward pass makes them. */
static void reduce_bucket (parallel *p, int32_t after) {
  bool all = p->r->shard == ZOO_SHARD_none;
  collective_kind kind = all ? COLLECTIVE_all_reduce : COLLECTIVE_reduce_scatter;
  int32_t k = put_collective (p, kind, numbered (p, "gradients", p->n_buckets++), p->bucket_bytes,
                              OP_BACKWARD, after);
  for (int32_t i = 0; i < p->n_bucket; i++) {
    int32_t g = p->bucket[i];
    build_read (p->b, g);
    p->reduced[g] = k;
    if (all) {
      build_write (p->b, g);
      continue;
    }
    const char *name = arena_format (p->a, p->err, "%s.shard", p->t->tensors[g].name);
    p->now[g] = build_tensor (p->b, name, share_of (p, bytes_of (p, g)), TENSOR_GRADIENT);
    build_write (p->b, p->now[g]);
  }
  p->n_bucket = 0;
  p->bucket_bytes = 0;
}

static int64_t bucket_limit (const parallel *p) {
  if (p->r->shard == ZOO_SHARD_none)
    return p->n_buckets ? DDP_BUCKET_BYTES : DDP_FIRST_BYTES;
  return ZERO_BUCKET_ELEMENTS * (p->r->dtype == DTYPE_BF16 ? 2 : 4);
}

static void take_gradients (parallel *p, int32_t k) {
  const session *s = session_at (p, k);
  bool ends = s && s->end == k + 1;
  const index_list *writes = &p->t->ops[k].writes;
  for (int32_t i = 0; i < writes->count; i++) {
    int32_t g = writes->at[i];
    if (p->last_write[g] != k || p->reduced[g] != NO_OP - 1)
      continue;
    p->bucket[p->n_bucket++] = g;
    p->bucket_bytes += bytes_of (p, g);
    p->n_left--;
  }
  bool full = p->r->shard != ZOO_SHARD_all && p->bucket_bytes >= bucket_limit (p);
  if (p->n_bucket && (ends || full || p->n_left == 0))
    reduce_bucket (p, p->place[k]);
}

/* Updated shards become whole parameters again. */
static void gather_bucket (parallel *p, int32_t after) {
  put_collective (p, COLLECTIVE_all_gather, numbered (p, "parameters", p->n_buckets++),
                  p->bucket_bytes, OP_UPDATE, after);
  for (int32_t i = 0; i < p->n_bucket; i++) {
    build_read (p->b, p->bucket[i]);
    build_write (p->b, p->bucket[i]);
  }
  p->n_bucket = 0;
  p->bucket_bytes = 0;
}

/* One session ahead, and not before the one two back has ended: its parameters have gone then. */
static void gather_session (parallel *p, int32_t s) {
  if (s >= p->n_sessions)
    return;
  session *x = &p->sessions[s];
  int64_t bytes = 0;
  int32_t n = 0;
  for (int32_t k = x->first; k < x->end; k++)
    for (int32_t i = 0; i < p->t->ops[k].reads.count; i++) {
      int32_t y = p->t->ops[k].reads.at[i];
      if (p->t->tensors[y].kind != TENSOR_PARAMETER || p->next[y] != y)
        continue;
      p->next[y] =
          build_tensor (p->b, arena_format (p->a, p->err, "%s.whole", p->t->tensors[y].name),
                        bytes_of (p, y), TENSOR_TEMPORARY);
      p->gathering[n++] = y;
      bytes += bytes_of (p, y);
    }
  x->gathered =
      put_collective (p, COLLECTIVE_all_gather, numbered (p, "gather", s), bytes,
                      p->t->ops[x->first].phase, s > 1 ? p->sessions[s - 2].last_made : NO_OP);
  for (int32_t i = 0; i < n; i++) {
    build_read (p->b, p->gathering[i]);
    build_write (p->b, p->next[p->gathering[i]]);
  }
}

/* ---- ops ---- */

static void begin_session (parallel *p, int32_t s) {
  if (s == 0)
    gather_session (p, 0);
  for (int32_t x = 0; x < p->t->n_tensors; x++)
    if (p->t->tensors[x].kind == TENSOR_PARAMETER) {
      p->now[x] = p->next[x];
      p->next[x] = x;
    }
  gather_session (p, s + 1);
}

static void put_op (parallel *p, int32_t k) {
  const op *o = &p->t->ops[k];
  bool divided = p->r->shard != ZOO_SHARD_none && p->gradient_of[k] != NO_TENSOR;
  int32_t made = p->place[k] =
      build_op (p->b, o->name, o->phase, divided ? share_of (p, o->ns) : o->ns);
  op *z = build_op_at (p->b, made);
  z->gap_ns = o->gap_ns;
  z->workspace_bytes = o->workspace_bytes;
  z->parts = divided ? 1 : o->parts;
  z->stream = COMPUTE_STREAM;
  if (o->compute && !divided)
    build_compute (p->b, o->compute);
  for (int32_t i = 0; i < o->reads.count; i++)
    build_read (p->b, p->now[o->reads.at[i]]);
  for (int32_t i = 0; i < o->writes.count; i++)
    if (list_has (&o->side, o->writes.at[i]))
      build_side (p->b, p->now[o->writes.at[i]]);
    else
      build_write (p->b, p->now[o->writes.at[i]]);
  if (p->gradient_of[k] != NO_TENSOR)
    build_after (p->b, p->reduced[p->gradient_of[k]]);
}

/* Updates change the shards that a rank has, not what was gathered. */
static void use_shards (parallel *p) {
  for (int32_t x = 0; x < p->t->n_tensors; x++)
    if (p->t->tensors[x].kind == TENSOR_PARAMETER)
      p->now[x] = x;
}

static void put_step (parallel *p) {
  for (int32_t k = 0; k < p->t->n_ops; k++) {
    session *s = session_at (p, k);
    if (s && s->first == k)
      begin_session (p, p->session_of[k]);
    if (k == p->first_update)
      use_shards (p);
    put_op (p, k);
    if (s && s->first == k)
      build_after (p->b, s->gathered);
    if (s)
      s->last_made = p->place[k];
    if (k < p->first_update)
      take_gradients (p, k);
    if (p->r->shard == ZOO_SHARD_state && p->param_of[k] != NO_TENSOR) {
      p->bucket[p->n_bucket++] = p->param_of[k];
      p->bucket_bytes += bytes_of (p, p->param_of[k]);
      if (p->bucket_bytes >= bucket_limit (p) || k + 1 == p->t->n_ops)
        gather_bucket (p, p->place[k]);
    }
  }
}

static void put_lives (parallel *p) {
  for (int32_t x = 0; x < p->t->n_tensors; x++) {
    const tensor *y = &p->t->tensors[x];
    tensor *z = build_tensor_at (p->b, x);
    z->born_before = y->born_before == NO_OP ? NO_OP : p->place[y->born_before];
    z->dies_after = y->dies_after == NO_OP ? NO_OP : p->place[y->dies_after];
  }
}

static bool analyse_step (parallel *p) {
  int32_t **tensors[] = {
    &p->now, &p->next, &p->last_write, &p->reduced, &p->bucket, &p->gathering
  };
  int32_t **ops[] = { &p->place, &p->gradient_of, &p->param_of };
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
    if (!(*tensors[i] = NEW (p->a, p->t->n_tensors, int32_t, p->err)))
      return false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!(*ops[i] = NEW (p->a, p->t->n_ops, int32_t, p->err)))
      return false;
  for (int32_t x = 0; x < p->t->n_tensors; x++)
    p->last_write[x] = p->reduced[x] = NO_OP;
  if (!find_updates (p) || !find_sessions (p))
    return false;
  for (int32_t k = p->first_update; k < p->t->n_ops; k++)
    if (p->gradient_of[k] != NO_TENSOR)
      p->reduced[p->gradient_of[k]] = NO_OP - 1; /* to be */
  return p->first_update < p->t->n_ops ||
         error_set (p->err, ERR_usage, "%s updates nothing: its ranks have nothing to share",
                    p->r->name);
}

trace *zoo_parallel (const trace *t, const zoo_request *r, arena *a, error *err) {
  assert (t && r->ranks > 1 && r->fabric_bytes_per_s > 0);
  parallel p = { .t = t, .r = r, .a = a, .err = err };
  p.b = build_new (a, t->name, t->batch, err);
  if (!p.b || !analyse_step (&p))
    return NULL;
  put_tensors (&p);
  put_step (&p);
  put_lives (&p);
  trace *made = build_finish (p.b, err);
  if (!made || err->code) /* a name may lack memory */
    return NULL;
  made->source = t->source;
  return made;
}
