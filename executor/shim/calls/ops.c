/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The path of one op: which tensors it touches, room for them, the call, what is remembered.  A
   tensor is found where an 8-byte word of the parameters is an address of ours; a false hit costs
   room, never a wrong byte. */
#include <stdlib.h>
#include <string.h>

#include "executor/shim/again/again.h"
#include "executor/shim/again/repeat.h"
#include "executor/shim/calls/calls.h"
#include "executor/shim/calls/capture.h"
#include "executor/shim/follow/follow.h"
#include "executor/shim/follow/learn.h"
#include "executor/shim/record/again_ops.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"
#include "executor/shim/state/wraps.h"

/* ---- an op ---- */

static _Thread_local shim *entered AT_START;

bool op_enter (op *o, op_kind kind, CUstream stream, bool waits) {
  shim *s;
  if (!shim_enter (&s))
    return false;
  entered = s;
  o->kind = kind;
  o->stream = stream;
  o->stream_bit = stream_bit (s, stream);
  o->waits = o->apart = waits;
  o->function = NULL;
  o->name = 0;
  o->token = (uint64_t)kind;
  o->refs = o->few;
  o->n_refs = 0;
  o->capacity = sizeof o->few / sizeof *o->few;
  o->number = s->ops;
  o->link_bytes = 0;
  o->told = false;
  o->to = o->from = 0;
  o->bytes = 0;
  o->facts = NULL;
  o->again = NULL;
  o->trial = NULL;
  o->may_repeat = false;
  o->learn_slot = NONE;
  o->captured = capture_has (s, stream);
  o->loose = false;
  return true;
}

void op_mix (op *o, uint64_t word) {
  o->token = shim_mix (o->token, word);
}

static bool has_more (op *o) {
  bool few = o->refs == o->few;
  int32_t *moved = realloc (few ? NULL : o->refs, 2 * (size_t)o->capacity * sizeof *moved);
  if (moved == NULL)
    return false;
  if (few)
    memcpy (moved, o->few, sizeof o->few);
  o->refs = moved;
  o->capacity *= 2;
  return true;
}

static inline void push (op *o, int32_t t) {
  if (o->n_refs < o->capacity || has_more (o))
    o->refs[o->n_refs++] = t;
}

static void add (op *o, int32_t t) {
  for (int32_t i = 0; i < o->n_refs; i++)
    if (o->refs[i] == t)
      return;
  push (o, t);
}

static int32_t live_at (const shim *s, CUdeviceptr at) {
  int32_t t = area_tensor_at (s, at);
  return t >= 0 && s->tensors[t].live ? t : NONE;
}

/* The one that ends there. */
static int32_t live_before (const shim *s, CUdeviceptr at) {
  int32_t t = live_at (s, at - 1);
  return t != NONE && at == s->tensors[t].at + (uint64_t)s->tensors[t].bytes ? t : NONE;
}

/* Within a tensor, or where one begins behind an empty page, none ends. */
static bool may_end_there (const shim *s, CUdeviceptr at, int32_t t) {
  int32_t page = t == NONE ? 0 : s->tensors[t].first_page;
  return t == NONE || at < s->tensors[t].at ||
         (at == s->tensors[t].at && page > 0 && s->pages[page - 1].tensor != 0);
}

static void touch (shim *s, op *o, CUdeviceptr at) {
  int32_t t = live_at (s, at), before = may_end_there (s, at, t) ? live_before (s, at) : NONE;
  if (t != NONE)
    add (o, t);
  if (before != NONE)
    add (o, before);
}

void op_touch (op *o, CUdeviceptr at) {
  if (area_has (entered, at))
    touch (entered, o, at);
}

/* Those that the op has are known by their stamp. */
void op_touch_all (shim *s, op *o, const CUdeviceptr *at, int32_t n) {
  for (int32_t i = 0; i < 2 * n; i++) {
    int32_t t = i % 2 == 0 ? live_at (s, at[i / 2]) : live_before (s, at[i / 2]);
    if (t == NONE || s->tensors[t].stamp == o->number)
      continue;
    s->tensors[t].stamp = o->number;
    push (o, t);
  }
}

/* The words of a parameter block that are addresses of ours. */
static void scan (shim *s, op *o, const char *from, size_t bytes) {
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy (&word, from + i, 8);
    if (area_has (s, word))
      touch (s, o, word);
  }
}

/* Addresses that go to the device as data: their tensors may be used by any kernel from now on. A
   kernel reads them at multiples of eight there, wherever the host has them. */
void op_payload (op *o, CUdeviceptr to, const void *from, size_t bytes) {
  shim *s = entered;
  op found = { .refs = found.few, .capacity = sizeof found.few / sizeof *found.few };
  size_t skip = -(size_t)to & 7;
  if (from == NULL || bytes > PAYLOAD_BYTES || bytes < skip)
    return;
  scan (s, &found, (const char *)from + skip, bytes - skip);
  for (int32_t i = 0; i < found.n_refs; i++) {
    s->tensors[found.refs[i]].escaped = GUARD (tables);
    add (o, found.refs[i]);
  }
  if (found.refs != found.few)
    free (found.refs);
}

/* A tensor that the op is not known to leave alone has to be copied when it leaves. */
static void note_writes (shim *s, const op *o) {
  for (int32_t i = 0; i < o->n_refs; i++)
    if (o->facts == NULL || (o->facts[i] != FACT_SAME && o->facts[i] != FACT_READ))
      s->tensors[o->refs[i]].last_write = o->number;
}

CUresult op_prepare (op *o) {
  shim *s = entered;
  if (o->captured) {
    o->waits = o->apart = false;
    return capture_prepare (s, o);
  }
  o->token = beat_token (o->token, o->loose || (o->function != NULL && o->function->has_lists));
  s->ops++;
  s->at_hand++;
  s->block->seen.ops++;
  if (o->kind != OP_LAUNCH)
    o->may_repeat = repeat_can_move (s, o) && !again_is_unfit (s, o->token);
  follow_before (s, o);
  note_writes (s, o);
  learn_ready (s);
  if (o->link_bytes < 0)
    again_look (s, true);
  if (!op_make_room (s, o))
    return shim_is_gone () ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_OUT_OF_MEMORY;
  learn_before (s, o);
  record_before (s, o, follow_times (s));
  if (o->again != NULL && o->kind != OP_LAUNCH)
    follow_keep (s, o, NULL, NULL, NULL);
  if (!o->apart)
    return CUDA_SUCCESS;
  for (int32_t i = 0; i < o->n_refs; i++)
    s->tensors[o->refs[i]].holds++;
  __atomic_add_fetch (&s->apart, 1, __ATOMIC_SEQ_CST);
  (void)shim_leave (s, CUDA_SUCCESS);
  (void)shim_set_inside (true);
  return CUDA_SUCCESS;
}

static CUresult look (shim *s, const op *o, CUresult r) {
  shim_block *b = s->block;
  if (r != CUDA_ERROR_ILLEGAL_ADDRESS || b->faults++ > 0)
    return r;
  bool exact = b->config.strict == SHIM_STRICT_SYNC && o != NULL;
  const char *name = o != NULL ? s->names[o->name] : record_last (s, 1);
  strncpy (b->fault_op, name, sizeof b->fault_op - 1);
  if (exact)
    shim_say (s, "illegal address: op %lld `%s` used a tensor that its parameters do not name",
              (long long)o->number, name);
  else
    shim_say (s,
              "illegal address%s: a kernel used a tensor that its parameters do not name; last "
              "launches: %s, %s, %s; rerun with --strict=sync, which names it",
              s->strict ? " (strict)" : "", name, record_last (s, 2), record_last (s, 3));
  return r;
}

CUresult op_leave (op *o, CUresult r) {
  shim *s = entered;
  if (o->captured) {
    if (o->refs != o->few)
      free (o->refs);
    return shim_leave (s, r);
  }
  if (o->apart && s != NULL && shim_is_inside ()) {
    __atomic_sub_fetch (&s->apart, 1, __ATOMIC_SEQ_CST);
    shim_begin (s);
    for (int32_t i = 0; i < o->n_refs; i++)
      s->tensors[o->refs[i]].holds--;
  }
  record_left (s, o);
  s->at_hand--;
  s->work[o->stream_bit]++; /* again: a wait that came between has not waited for the op */
  if (r == CUDA_SUCCESS) {
    record_after (s, o);
    learn_after (s, o);
    if (s->block->config.strict == SHIM_STRICT_SYNC && s->strict && s->captured == 0)
      r = s->real.ctx_synchronize ();
    if (s->strict && o->function != NULL)
      o->function->clean = true;
    again_kept (s, o->again, o);
    follow_after (s, o);
  }
  r = look (s, o, r == CUDA_SUCCESS ? s->fault : r);
  if (o->refs != o->few)
    free (o->refs);
  return shim_leave (s, r);
}

CUresult shim_look (CUresult r) {
  shim *s;
  if (r != CUDA_ERROR_ILLEGAL_ADDRESS || !shim_enter (&s))
    return r;
  return shim_leave (s, look (s, NULL, r));
}

/* ---- launches ---- */

static void scan_stretch (void *o, const void *from, size_t bytes) {
  scan (entered, o, from, bytes);
}

static CUresult launch_extended (const shim *s, const op *o, const CUlaunchConfig *l, CUfunction f,
                                 void **params, void **extra) {
  CUlaunchConfig own = *l;
  own.hStream = o->stream;
  return s->real.launch_ex (&own, f, params, extra);
}

static CUresult launch (op *o, const CUlaunchConfig *l, CUfunction f, void **params, void **extra,
                        bool cooperative, bool extended) {
  shim *s = entered;
  CUresult why;
  o->function = function_of (s, f, &why);
  if (o->function == NULL)
    return shim_leave (s, why);
  o->name = o->function->name;
  s->block->seen.launches++;
  op_mix (o, o->function->name_hash);
  op_mix (o, (uint64_t)l->gridDimX << 32 | l->gridDimY << 16 | l->gridDimZ);
  op_mix (o, (uint64_t)l->blockDimX << 32 | l->blockDimY << 16 | l->blockDimZ);
  op_mix (o, l->sharedMemBytes);
  function_params (o->function, params, extra, scan_stretch, o);
  o->may_repeat = !cooperative && !o->captured && repeat_can (o, l, extra) &&
                  !again_is_unfit (s, beat_token (o->token, false));
  CUresult r = op_prepare (o);
  if (r != CUDA_SUCCESS)
    return op_leave (o, r);
  if (o->again != NULL)
    follow_keep (s, o, l, f, params);
  CUresult (*together) (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, unsigned int, CUstream, void **) =
      cooperative ? shim_symbol ("cuLaunchCooperativeKernel") : NULL;
  if (extended)
    r = launch_extended (s, o, l, f, params, extra);
  else if (together != NULL)
    r = together (f, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX, l->blockDimY,
                  l->blockDimZ, l->sharedMemBytes, o->stream, params);
  else
    r = s->real.launch (f, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX, l->blockDimY,
                        l->blockDimZ, l->sharedMemBytes, o->stream, params, extra);
  return op_leave (o, r);
}

#define LAUNCH_PARAMETERS                                                           \
  CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
      unsigned int by, unsigned int bz, unsigned int shared
#define LAUNCH_CONFIG(stream)                                                         \
  {                                                                                   \
    .gridDimX = gx, .gridDimY = gy, .gridDimZ = gz, .blockDimX = bx, .blockDimY = by, \
    .blockDimZ = bz, .sharedMemBytes = shared, .hStream = stream                      \
  }

CUresult wrap_launch (LAUNCH_PARAMETERS, CUstream stream, void **params, void **extra) {
  op o;
  CUlaunchConfig l = LAUNCH_CONFIG (stream);
  if (!op_enter (&o, OP_LAUNCH, stream, false))
    return shim_real ()->launch (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  return launch (&o, &l, f, params, extra, false, false);
}

CUresult wrap_launch_ptsz (LAUNCH_PARAMETERS, CUstream stream, void **params, void **extra) {
  return wrap_launch (f, gx, gy, gz, bx, by, bz, shared, own_stream (stream), params, extra);
}

CUresult wrap_cooperative (LAUNCH_PARAMETERS, CUstream stream, void **params) {
  op o;
  CUlaunchConfig l = LAUNCH_CONFIG (stream);
  CUresult (*real) (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                    unsigned int, unsigned int, unsigned int, CUstream, void **) =
      shim_symbol ("cuLaunchCooperativeKernel");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (!op_enter (&o, OP_LAUNCH, stream, false))
    return real (f, gx, gy, gz, bx, by, bz, shared, stream, params);
  return launch (&o, &l, f, params, NULL, true, false);
}

CUresult wrap_cooperative_ptsz (LAUNCH_PARAMETERS, CUstream stream, void **params) {
  return wrap_cooperative (f, gx, gy, gz, bx, by, bz, shared, own_stream (stream), params);
}

CUresult wrap_launch_ex (const CUlaunchConfig *l, CUfunction f, void **params, void **extra) {
  op o;
  if (shim_real ()->launch_ex == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (l == NULL || !op_enter (&o, OP_LAUNCH, l->hStream, false))
    return shim_real ()->launch_ex (l, f, params, extra);
  return launch (&o, l, f, params, extra, false, true);
}

CUresult wrap_launch_ex_ptsz (const CUlaunchConfig *l, CUfunction f, void **params, void **extra) {
  if (l == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  CUlaunchConfig own = *l;
  own.hStream = own_stream (l->hStream);
  return wrap_launch_ex (&own, f, params, extra);
}
