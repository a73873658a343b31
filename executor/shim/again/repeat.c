/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/again/repeat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "executor/shim/memory/memory.h"
#include "executor/shim/state/guard.h"

enum { MOST_SMALL = 16, MOST_ATTRIBUTES = 8, UNIT = 512 };

typedef struct piece { /* a small tensor */
  CUdeviceptr at;
  int64_t bytes;
} piece;

struct repeat {
  bool kept; /* for this step */
  op_kind kind;
  CUdeviceptr to, from; /* of a copy or a fill */
  int64_t moved_bytes;
  uint32_t value;
  int32_t value_bytes;
  CUfunction function;
  CUlaunchConfig how;
  CUlaunchAttribute attributes[MOST_ATTRIBUTES];
  int32_t bit, name, n_params;
  char *bytes; /* of the parameters */
  size_t capacity;
  void **params;
  int32_t *refs, n_refs;
  piece small[MOST_SMALL];
  int32_t n_small;
  CUdeviceptr aside; /* twice as large as all of these: as they were before it, and meanwhile */
  int64_t aside_bytes;
};

/* How it begins beside the launch before; a launch by itself begins behind it. */
static bool is_left_out (unsigned int id) {
  return id == CU_LAUNCH_ATTRIBUTE_IGNORE || id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
}

/* It says where blocks run, and nothing of what they do. */
static bool is_kept (unsigned int id) {
  static const unsigned int kept[] = { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                       CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                                       CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                       CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                                       CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                                       CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                       CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT };
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (kept[i] == id)
      return true;
  return false;
}

static bool can_keep (const CUlaunchConfig *l) {
  bool good = l->numAttrs <= MOST_ATTRIBUTES;
  for (unsigned int i = 0; good && i < l->numAttrs; i++)
    good = is_left_out (l->attrs[i].id) || is_kept (l->attrs[i].id);
  return good;
}

static void keep_attributes (repeat *r, const CUlaunchConfig *l) {
  r->how.attrs = r->attributes;
  r->how.numAttrs = 0;
  for (unsigned int i = 0; l != NULL && i < l->numAttrs; i++)
    if (!is_left_out (l->attrs[i].id))
      r->attributes[r->how.numAttrs++] = l->attrs[i];
}

bool repeat_can (const op *o, const CUlaunchConfig *l, void **extra) {
  return o->kind == OP_LAUNCH && o->function != NULL && !o->function->has_lists &&
         o->stream_bit != MANY_STREAMS && can_keep (l) && extra == NULL;
}

/* Memory of the host or of a library may hold something else by then. */
bool repeat_can_move (const shim *s, const op *o) {
  bool copies = o->kind == OP_COPY && area_has (s, o->to) && area_has (s, o->from);
  bool fills = o->kind == OP_SET && o->value_bytes > 0 && area_has (s, o->to);
  return (copies || fills) && o->bytes > 0 && !o->apart && o->stream_bit != MANY_STREAMS;
}

bool repeat_is_kept (const repeat *r) {
  return r != NULL && r->kept;
}

int32_t repeat_refs (const repeat *r, const int32_t **tensors) {
  *tensors = r->refs;
  return r->n_refs;
}

int32_t repeat_name (const repeat *r) {
  return r->name;
}

int32_t repeat_stream (const repeat *r, CUstream *stream) {
  *stream = r->how.hStream;
  return r->bit;
}

void repeat_free (shim *s, repeat *r) {
  if (r == NULL)
    return;
  if (r->aside != 0)
    (void)small_free (s, r->aside, (uint64_t)1 << r->bit);
  free (r->bytes);
  free (r->params);
  free (r->refs);
  free (r);
}

/* ---- parameters ---- */

static bool has_room (repeat *r, int32_t n_params, size_t bytes, int32_t n_refs) {
  char *data = bytes > r->capacity ? realloc (r->bytes, bytes) : r->bytes;
  void **params = realloc (r->params, ((size_t)n_params + 1) * sizeof *params);
  int32_t *refs = realloc (r->refs, ((size_t)n_refs + 1) * sizeof *refs);
  r->bytes = data != NULL ? data : r->bytes;
  r->params = params != NULL ? params : r->params;
  r->refs = refs != NULL ? refs : r->refs;
  if (bytes > r->capacity && data != NULL)
    r->capacity = bytes;
  return (bytes == 0 || data != NULL) && params != NULL && refs != NULL;
}

static size_t padded (size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

static bool keep_params (repeat *r, const op *o, void **params) {
  const function *f = o->function;
  int32_t n_params = f != NULL ? f->n_params : 0;
  size_t bytes = 0;
  for (int32_t i = 0; i < n_params; i++)
    bytes += padded (f->sizes[i]);
  if (!has_room (r, n_params, bytes, o->n_refs))
    return false;
  bytes = 0;
  for (int32_t i = 0; i < n_params; i++) {
    r->params[i] = r->bytes + bytes;
    if (r->n_params == 0 || GUARD (params))
      memcpy (r->params[i], params[i], f->sizes[i]);
    bytes += padded (f->sizes[i]);
  }
  memcpy (r->refs, o->refs, (size_t)o->n_refs * sizeof *r->refs);
  r->n_refs = o->n_refs;
  r->n_params = n_params;
  return true;
}

/* ---- small tensors ---- */

/* false: there are too many. */
static bool add_small (const shim *s, repeat *r, CUdeviceptr at) {
  CUdeviceptr first = 0;
  int64_t bytes = area_has (s, at) ? small_bytes_at (s, at, &first) : 0;
  for (int32_t i = 0; i < r->n_small; i++)
    if (r->small[i].at == first)
      return true;
  if (bytes == 0)
    return true;
  if (r->n_small == MOST_SMALL)
    return false;
  r->small[r->n_small++] = (piece){ first, bytes };
  return true;
}

static bool find_small (const shim *s, repeat *r, const function *f) {
  bool good = true;
  r->n_small = 0;
  if (f == NULL)
    return add_small (s, r, r->to) && add_small (s, r, r->from);
  for (int32_t i = 0; i < f->n_params; i++)
    for (size_t k = 0; k + 8 <= f->sizes[i]; k += 8) {
      uint64_t word;
      memcpy (&word, (const char *)r->params[i] + k, 8);
      good = good && add_small (s, r, word) && add_small (s, r, word - 1);
    }
  return good;
}

static int64_t small_bytes (const repeat *r) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < r->n_small; i++)
    bytes += r->small[i].bytes;
  return bytes;
}

static void keep_how (repeat *r, const op *o, const CUlaunchConfig *l, CUfunction f) {
  r->kind = o->kind;
  r->to = o->to;
  r->from = o->from;
  r->moved_bytes = o->bytes;
  r->value = o->value;
  r->value_bytes = o->value_bytes;
  r->function = f;
  r->how = l != NULL ? *l : (CUlaunchConfig){ 0 };
  r->how.hStream = o->stream;
  keep_attributes (r, l);
  r->bit = o->stream_bit;
  r->name = o->name;
}

/* Room of ferry's own, once; the programs of a group share none of it. */
static bool has_aside (shim *s, repeat *r) {
  int64_t bytes = 2 * small_bytes (r);
  if (bytes <= r->aside_bytes)
    return true;
  if (r->aside != 0)
    (void)small_free (s, r->aside, (uint64_t)1 << r->bit);
  r->aside_bytes = 0;
  r->aside = bytes <= s->chunk_bytes / 4 && small_has_room (s, bytes)
                 ? small_allocate (s, bytes, NULL, true)
                 : 0;
  r->aside_bytes = r->aside != 0 ? bytes : 0;
  return r->aside != 0;
}

/* To a half of what is aside, or back. */
static bool move_small (shim *s, const repeat *r, int half, bool back) {
  CUdeviceptr at = r->aside + (uint64_t)(half * small_bytes (r));
  bool good = true;
  for (int32_t i = 0; good && i < r->n_small; i++) {
    const piece *p = &r->small[i];
    good = s->real.copy_within_async (back ? p->at : at, back ? at : p->at, (size_t)p->bytes,
                                      r->how.hStream) == CUDA_SUCCESS;
    at += (uint64_t)p->bytes;
  }
  return good;
}

bool repeat_keep (shim *s, op *o, const CUlaunchConfig *l, CUfunction f, void **params,
                  repeat **out, shim_unfit *why) {
  repeat *r = *out = *out != NULL ? *out : calloc (1, sizeof **out);
  *why = UNFIT_SMALL;
  if (r == NULL)
    return false;
  r->kept = false;
  if (params == NULL && o->function != NULL && o->function->n_params > 0)
    return false;
  keep_how (r, o, l, f);
  r->kept = keep_params (r, o, params) && find_small (s, r, o->function) && has_aside (s, r) &&
            move_small (s, r, 0, false);
  return r->kept;
}

/* ---- again ---- */

/* Streams of the program's, but its own. */
static uint64_t other_streams (const shim *s, const repeat *r) {
  uint64_t all = (uint64_t)1 << STREAM_LEGACY;
  for (int32_t i = FIRST_USER_STREAM; i < s->n_streams; i++)
    if (s->streams[i] != NULL)
      all |= (uint64_t)1 << i;
  return all & ~((uint64_t)1 << r->bit);
}

bool repeat_is_alone (shim *s) {
  enum { PATIENCE = 20000 };
  const struct timespec moment = { 0, 500000 };
  for (int i = 0; __atomic_load_n (&s->apart, __ATOMIC_SEQ_CST) > 0 && i < PATIENCE; i++)
    nanosleep (&moment, NULL);
  return __atomic_load_n (&s->apart, __ATOMIC_SEQ_CST) == 0;
}

bool repeat_make_room (shim *s, repeat *r) {
  op o = { .kind = r->kind,
           .stream = r->how.hStream,
           .stream_bit = r->bit,
           .name = r->name,
           .refs = r->refs,
           .n_refs = r->n_refs,
           .number = --s->repeats };
  bool good = (r->n_small == 0 || !GUARD (alone) || repeat_is_alone (s)) && op_make_room (s, &o);
  for (int32_t i = 0; i < r->n_refs; i++)
    s->tensors[r->refs[i]].last_op = shim_next_op (s);
  if (good && r->n_small > 0 && GUARD (settled))
    wait_for (s, r->how.hStream, r->bit, other_streams (s, r));
  return good;
}

bool repeat_put_aside (shim *s, const repeat *r) {
  return move_small (s, r, 1, false);
}

static bool fill (shim *s, const repeat *r) {
  CUresult (*set_halves) (CUdeviceptr, unsigned short, size_t, CUstream);
  size_t count = (size_t)(r->moved_bytes / r->value_bytes);
  switch (r->value_bytes) {
  case 1:
    return s->real.set_bytes_async (r->to, (unsigned char)r->value, count, r->how.hStream) ==
           CUDA_SUCCESS;
  case 2:
    set_halves = shim_symbol ("cuMemsetD16Async");
    return set_halves (r->to, (unsigned short)r->value, count, r->how.hStream) == CUDA_SUCCESS;
  default:
    return s->real.set_words_async (r->to, r->value, count, r->how.hStream) == CUDA_SUCCESS;
  }
}

static bool launch (shim *s, const repeat *r) {
  const CUlaunchConfig *l = &r->how;
  if (r->kind == OP_SET)
    return fill (s, r);
  if (r->kind == OP_COPY)
    return s->real.copy_within_async (r->to, r->from, (size_t)r->moved_bytes, l->hStream) ==
           CUDA_SUCCESS;
  if (l->numAttrs > 0)
    return s->real.launch_ex (l, r->function, r->params, NULL) == CUDA_SUCCESS;
  return s->real.launch (r->function, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX,
                         l->blockDimY, l->blockDimZ, l->sharedMemBytes, l->hStream, r->params,
                         NULL) == CUDA_SUCCESS;
}

bool repeat_launch (shim *s, const repeat *r) {
  s->block->seen.remakes++;
  return repeat_put_aside (s, r) && (!GUARD (given) || move_small (s, r, 0, true)) &&
         launch (s, r) && (!GUARD (undone) || move_small (s, r, 1, true));
}

void repeat_done (shim *s, const repeat *r) {
  uint64_t bit = (uint64_t)1 << r->bit;
  s->work[r->bit]++;
  for (int32_t i = 0; i < r->n_refs; i++) {
    tensor *t = &s->tensors[r->refs[i]];
    t->behind |= bit;
    t->behind_seen = bit;
    t->first = NONE;
  }
  if (r->n_small > 0 && other_streams (s, r) != 0 && GUARD (fence)) {
    s->fence |= bit;
    s->fence_seen = bit;
  }
}
