/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and fills.  Which way a copy goes follows from its addresses; pageable host memory is
   staged at the call, pinned memory is read when the copy runs. */
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

/* Bytes that a copy or a memset writes belong to its maker from here on. */
static bool add_touch (const machine *m, command *c, uint64_t at, int64_t bytes, bool writes) {
  touch t = {
    .at = at, .bytes = bytes, .how = writes ? EMU_WRITES | EMU_BEGINS : 0, .tag = m->tag
  };
  return command_touch (c, &t);
}

static bool is_known (const machine *m, uint64_t at) {
  return memory_is_device (m, at) || memory_is_pinned (m, at);
}

typedef struct copying {
  uint64_t to, from;
  int64_t bytes; /* of a row */
  bool to_device, from_device, waits;
  int64_t more_rows, to_pitch, from_pitch;
} copying;

static bool touch_rows (const machine *m, command *c, const copying *w, bool writes) {
  uint64_t at = writes ? w->to : w->from;
  int64_t pitch = writes ? w->to_pitch : w->from_pitch;
  bool good = true;
  for (int64_t y = 0; good && y <= w->more_rows; y++)
    good = add_touch (m, c, at + (uint64_t)(y * pitch), w->bytes, writes);
  return good;
}

static bool stage (command *c, const copying *w) {
  char *to = c->as.copy.staged = malloc ((size_t)c->as.copy.bytes);
  for (int64_t y = 0; to != NULL && y <= w->more_rows; y++)
    memcpy (to + y * w->bytes, (const char *)(uintptr_t)w->from + y * w->from_pitch,
            (size_t)w->bytes);
  return to != NULL;
}

static command *copy_command (machine *m, stream *s, const copying *w) {
  command *c = command_new (m, s, COMMAND_COPY);
  if (c == NULL)
    return NULL;
  c->direction = w->to_device == w->from_device ? COPY_BESIDE : w->to_device ? COPY_IN : COPY_OUT;
  c->as.copy.to = w->to;
  c->as.copy.from = w->from;
  c->as.copy.rows = w->more_rows + 1;
  c->as.copy.bytes = w->bytes * c->as.copy.rows;
  c->as.copy.to_pitch = w->to_pitch;
  c->as.copy.from_pitch = w->from_pitch;
  bool good = is_known (m, w->from) ? touch_rows (m, c, w, false) : stage (c, w);
  if (good && is_known (m, w->to))
    good = touch_rows (m, c, w, true);
  if (good)
    return c;
  command_drop (m, c);
  return NULL;
}

static CUresult copy (machine *m, stream *s, const copying *w) {
  if (s == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (w->bytes == 0)
    return CUDA_SUCCESS;
  if (w->bytes < 0 || w->to == 0 || w->from == 0 ||
      (w->to_device && !memory_is_device (m, w->to) && !memory_is_pinned (m, w->to)) ||
      (w->from_device && !memory_is_device (m, w->from) && !memory_is_pinned (m, w->from)))
    return CUDA_ERROR_INVALID_VALUE;
  bool to_pageable = !is_known (m, w->to);
  command *c = copy_command (m, s, w);
  if (c == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  command_hold (c);
  CUresult r = command_issue (m, c);
  bool staged = c->as.copy.staged != NULL;
  /* Into pageable memory the call returns when the bytes are there; from it, once they are staged.
   */
  if (r == CUDA_SUCCESS && ((w->waits && !staged) || to_pageable))
    r = stream_finish (m, s);
  command_drop (m, c);
  return r;
}

static CUresult copy_call (copying w, CUstream on, bool own_directions) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  if (own_directions) {
    w.to_device = memory_is_device (m, w.to);
    w.from_device = memory_is_device (m, w.from);
  }
  return machine_leave (m, copy (m, stream_of (m, on), &w));
}

CUresult cuMemcpyAsync (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
  return copy_call ((copying){ .to = to, .from = from, .bytes = (int64_t)bytes }, on, true);
}

CUresult cuMemcpyHtoDAsync_v2 (CUdeviceptr to, const void *from, size_t bytes, CUstream on) {
  return copy_call ((copying){ to, (uintptr_t)from, (int64_t)bytes, true, false, false }, on,
                    false);
}

CUresult cuMemcpyDtoHAsync_v2 (void *to, CUdeviceptr from, size_t bytes, CUstream on) {
  return copy_call ((copying){ (uintptr_t)to, from, (int64_t)bytes, false, true, false }, on,
                    false);
}

CUresult cuMemcpyDtoDAsync_v2 (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
  return copy_call ((copying){ to, from, (int64_t)bytes, true, true, false }, on, false);
}

CUresult cuMemcpyHtoD_v2 (CUdeviceptr to, const void *from, size_t bytes) {
  return copy_call ((copying){ to, (uintptr_t)from, (int64_t)bytes, true, false, true }, NULL,
                    false);
}

CUresult cuMemcpyDtoH_v2 (void *to, CUdeviceptr from, size_t bytes) {
  return copy_call ((copying){ (uintptr_t)to, from, (int64_t)bytes, false, true, true }, NULL,
                    false);
}

CUresult cuMemcpyDtoD_v2 (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_call ((copying){ to, from, (int64_t)bytes, true, true, false }, NULL, false);
}

/* ---- rows that lie apart ---- */

EXPORT CUresult cuMemcpy2D_v2 (const CUDA_MEMCPY2D *c);
EXPORT CUresult cuMemcpy2DUnaligned_v2 (const CUDA_MEMCPY2D *c);
EXPORT CUresult cuMemcpy2DAsync_v2 (const CUDA_MEMCPY2D *c, CUstream on);
EXPORT CUresult cuMemsetD2D8_v2 (CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                 size_t height);
EXPORT CUresult cuMemsetD2D32_v2 (CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                  size_t height);
EXPORT CUresult cuMemsetD2D8Async (CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                   size_t height, CUstream on);

static uint64_t first_of (unsigned int type, const void *host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST                                      ? (uintptr_t)host
         : type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED ? device
                                                                         : 0;
}

static CUresult copy_2d (const CUDA_MEMCPY2D *c, CUstream on, bool waits) {
  enum { MOST = 1 << 30 };
  if (c == NULL || c->WidthInBytes > MOST || c->Height > MOST || c->srcPitch > MOST ||
      c->dstPitch > MOST || (c->Height > 1 && c->srcPitch < c->WidthInBytes + c->srcXInBytes) ||
      (c->Height > 1 && c->dstPitch < c->WidthInBytes + c->dstXInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  copying w = { .to = first_of (c->dstMemoryType, c->dstHost, c->dstDevice),
                .from = first_of (c->srcMemoryType, c->srcHost, c->srcDevice),
                .bytes = (int64_t)c->WidthInBytes,
                .waits = waits,
                .more_rows = (int64_t)c->Height - 1,
                .to_pitch = (int64_t)c->dstPitch,
                .from_pitch = (int64_t)c->srcPitch };
  if (w.to == 0 || w.from == 0)
    return CUDA_ERROR_INVALID_VALUE;
  w.to += c->dstY * c->dstPitch + c->dstXInBytes;
  w.from += c->srcY * c->srcPitch + c->srcXInBytes;
  w.bytes = c->Height == 0 ? 0 : w.bytes;
  return copy_call (w, on, true);
}

CUresult cuMemcpy2D_v2 (const CUDA_MEMCPY2D *c) {
  return copy_2d (c, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2 (const CUDA_MEMCPY2D *c) {
  return copy_2d (c, NULL, true);
}

CUresult cuMemcpy2DAsync_v2 (const CUDA_MEMCPY2D *c, CUstream on) {
  return copy_2d (c, on, false);
}

/* ---- fills ---- */

static CUresult set (uint64_t to, uint32_t value, size_t count, int width, CUstream on,
                     bool waits) {
  CUresult refused;
  machine *m = machine_enter (true, &refused);
  if (m == NULL)
    return refused;
  stream *s = stream_of (m, on);
  if (s == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (count == 0)
    return machine_leave (m, CUDA_SUCCESS);
  if (!is_known (m, to) || to % (uint64_t)width != 0 || count > (size_t)1 << 53)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  command *c = command_new (m, s, COMMAND_SET);
  if (c == NULL || !add_touch (m, c, to, (int64_t)count * width, true)) {
    if (c != NULL)
      command_drop (m, c);
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  }
  c->as.set.to = to;
  c->as.set.count = (int64_t)count;
  c->as.set.value = value;
  c->as.set.width = width;
  CUresult r = command_issue (m, c);
  if (r == CUDA_SUCCESS && waits)
    r = stream_finish (m, s);
  return machine_leave (m, r);
}

CUresult cuMemsetD8_v2 (CUdeviceptr to, unsigned char value, size_t count) {
  return set (to, value, count, 1, NULL, true);
}

CUresult cuMemsetD32_v2 (CUdeviceptr to, unsigned int value, size_t count) {
  return set (to, value, count, 4, NULL, true);
}

CUresult cuMemsetD8Async (CUdeviceptr to, unsigned char value, size_t count, CUstream on) {
  return set (to, value, count, 1, on, false);
}

CUresult cuMemsetD32Async (CUdeviceptr to, unsigned int value, size_t count, CUstream on) {
  return set (to, value, count, 4, on, false);
}

/* A command a row: a fill takes no time of the link. */
static CUresult set_2d (uint64_t to, size_t pitch, uint32_t value, size_t width, size_t height,
                        int bytes, CUstream on, bool waits) {
  CUresult r = CUDA_SUCCESS;
  for (size_t y = 0; y < height && r == CUDA_SUCCESS; y++)
    r = set (to + y * pitch, value, width, bytes, on, waits && y + 1 == height);
  return r;
}

CUresult cuMemsetD2D8_v2 (CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                          size_t height) {
  return set_2d (to, pitch, value, width, height, 1, NULL, true);
}

CUresult cuMemsetD2D32_v2 (CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                           size_t height) {
  return set_2d (to, pitch, value, width, height, 4, NULL, true);
}

CUresult cuMemsetD2D8Async (CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                            size_t height, CUstream on) {
  return set_2d (to, pitch, value, width, height, 1, on, false);
}
