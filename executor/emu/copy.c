/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and fills.  Which way a copy goes follows from its addresses; pageable host memory is
   staged at the call, pinned memory is read when the copy runs. */
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

/* Bytes that a copy or a memset writes belong to its maker from here on. */
static bool add_touch (command *c, uint64_t at, int64_t bytes, bool writes) {
  touch t = {
    .at = at, .bytes = bytes, .how = writes ? EMU_WRITES | EMU_BEGINS : 0, .tag = machine_tag ()
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
  box box; /* of more than one row; else zero */
} copying;

static bool touch_rows (command *c, uint64_t at, bool writes) {
  const box *b = &c->as.copy.box;
  int64_t pitch = writes ? b->to_pitch : b->from_pitch;
  int64_t slice = writes ? b->to_slice : b->from_slice;
  bool good = true;
  for (int64_t i = 0; good && i < b->rows * b->planes; i++)
    good =
        add_touch (c, at + (uint64_t)(i / b->rows * slice + i % b->rows * pitch), b->width, writes);
  return good;
}

bool copy_stage (command *c) {
  const box *b = &c->as.copy.box;
  const char *from = (const char *)(uintptr_t)c->as.copy.from;
  char *to = c->as.copy.staged = malloc ((size_t)c->as.copy.bytes);
  for (int64_t i = 0; to != NULL && i < b->rows * b->planes; i++)
    memcpy (to + i * b->width, from + i / b->rows * b->from_slice + i % b->rows * b->from_pitch,
            (size_t)b->width);
  return to != NULL;
}

static command *copy_command (machine *m, stream *s, const copying *w) {
  command *c = command_new (m, s, COMMAND_COPY);
  if (c == NULL)
    return NULL;
  c->direction = w->to_device == w->from_device ? COPY_BESIDE : w->to_device ? COPY_IN : COPY_OUT;
  c->as.copy.to = w->to;
  c->as.copy.from = w->from;
  c->as.copy.box = w->box.rows > 0 ? w->box : (box){ w->bytes, 1, 1, 0, 0, 0, 0 };
  c->as.copy.bytes = c->as.copy.box.width * c->as.copy.box.rows * c->as.copy.box.planes;
  bool good = is_known (m, w->from) ? touch_rows (c, w->from, false) : copy_stage (c);
  if (good && is_known (m, w->to))
    good = touch_rows (c, w->to, true);
  if (good)
    return c;
  command_drop (m, c);
  return NULL;
}

static bool is_sound (const machine *m, const copying *w) {
  return w->bytes >= 0 && w->to != 0 && w->from != 0 && (!w->to_device || is_known (m, w->to)) &&
         (!w->from_device || is_known (m, w->from));
}

static CUresult copy (machine *m, stream *s, const copying *w) {
  if (s == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (w->bytes == 0)
    return CUDA_SUCCESS;
  if (!is_sound (m, w))
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
  if (r == CUDA_SUCCESS && s->capture == NULL && ((w->waits && !staged) || to_pageable))
    r = stream_finish (m, s);
  command_drop (m, c);
  return r;
}

static CUresult copy_call (copying w, CUstream on, bool own_directions) {
  ENTER (m, machine_enter (true, &refused));
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

EXPORT CUresult cuMemcpy (CUdeviceptr to, CUdeviceptr from, size_t bytes);

CUresult cuMemcpy (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_call ((copying){ .to = to, .from = from, .bytes = (int64_t)bytes, .waits = true },
                    NULL, true);
}

/* ---- rows that lie apart, and planes of them ---- */

EXPORT CUresult cuMemcpy2D_v2 (const CUDA_MEMCPY2D *c);
EXPORT CUresult cuMemcpy2DUnaligned_v2 (const CUDA_MEMCPY2D *c);
EXPORT CUresult cuMemcpy2DAsync_v2 (const CUDA_MEMCPY2D *c, CUstream on);
EXPORT CUresult cuMemcpy3D_v2 (const CUDA_MEMCPY3D *c);
EXPORT CUresult cuMemcpy3DAsync_v2 (const CUDA_MEMCPY3D *c, CUstream on);

static uint64_t first_of (unsigned int type, const void *host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST                                      ? (uintptr_t)host
         : type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED ? device
                                                                         : 0;
}

/* Rows lie within their pitch, and planes one behind the other. */
static bool is_box (const CUDA_MEMCPY3D *c) {
  enum { MOST = 1 << 30 };
  const size_t all[] = { c->WidthInBytes, c->Height,    c->Depth,       c->srcPitch,    c->dstPitch,
                         c->srcHeight,    c->dstHeight, c->srcXInBytes, c->dstXInBytes, c->srcY,
                         c->dstY,         c->srcZ,      c->dstZ };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] > MOST)
      return false;
  bool rows = c->Height > 1 || c->Depth > 1;
  return (!rows || (c->srcPitch >= c->WidthInBytes + c->srcXInBytes &&
                    c->dstPitch >= c->WidthInBytes + c->dstXInBytes)) &&
         (c->Depth <= 1 ||
          (c->srcHeight >= c->Height + c->srcY && c->dstHeight >= c->Height + c->dstY));
}

/* The copy that it describes; false: that is not sound. */
static bool read_box (const CUDA_MEMCPY3D *c, copying *w) {
  if (c == NULL || !is_box (c))
    return false;
  bool any = c->Height > 0 && c->Depth > 0;
  *w = (copying){ .to = first_of (c->dstMemoryType, c->dstHost, c->dstDevice),
                  .from = first_of (c->srcMemoryType, c->srcHost, c->srcDevice),
                  .bytes = any ? (int64_t)c->WidthInBytes : 0,
                  .box = { (int64_t)c->WidthInBytes, (int64_t)c->Height, (int64_t)c->Depth,
                           (int64_t)c->dstPitch, (int64_t)c->srcPitch,
                           (int64_t)(c->dstPitch * c->dstHeight),
                           (int64_t)(c->srcPitch * c->srcHeight) } };
  if (w->to == 0 || w->from == 0)
    return false;
  w->to += (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch + c->dstXInBytes;
  w->from += (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch + c->srcXInBytes;
  return true;
}

static CUresult copy_box (const CUDA_MEMCPY3D *c, CUstream on, bool waits) {
  copying w;
  if (!read_box (c, &w))
    return CUDA_ERROR_INVALID_VALUE;
  w.waits = waits;
  return copy_call (w, on, true);
}

CUresult box_command (machine *m, stream *s, const CUDA_MEMCPY3D *p, command **out) {
  copying w;
  if (!read_box (p, &w) || w.bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  w.to_device = memory_is_device (m, w.to);
  w.from_device = memory_is_device (m, w.from);
  *out = copy_command (m, s, &w);
  return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* One plane. */
static CUresult copy_2d (const CUDA_MEMCPY2D *c, CUstream on, bool waits) {
  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D all = { .srcXInBytes = c->srcXInBytes,
                        .srcY = c->srcY,
                        .srcMemoryType = c->srcMemoryType,
                        .srcHost = c->srcHost,
                        .srcDevice = c->srcDevice,
                        .srcPitch = c->srcPitch,
                        .dstXInBytes = c->dstXInBytes,
                        .dstY = c->dstY,
                        .dstMemoryType = c->dstMemoryType,
                        .dstHost = c->dstHost,
                        .dstDevice = c->dstDevice,
                        .dstPitch = c->dstPitch,
                        .WidthInBytes = c->WidthInBytes,
                        .Height = c->Height,
                        .Depth = 1 };
  return copy_box (&all, on, waits);
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

CUresult cuMemcpy3D_v2 (const CUDA_MEMCPY3D *c) {
  return copy_box (c, NULL, true);
}

CUresult cuMemcpy3DAsync_v2 (const CUDA_MEMCPY3D *c, CUstream on) {
  return copy_box (c, on, false);
}

/* ---- fills ---- */

CUresult set_command (machine *m, stream *s, uint64_t to, uint32_t value, size_t count, int width,
                      command **out) {
  if (!is_known (m, to) || to % (uint64_t)width != 0 || count == 0 || count > (size_t)1 << 53)
    return CUDA_ERROR_INVALID_VALUE;
  command *c = command_new (m, s, COMMAND_SET);
  if (c == NULL || !add_touch (c, to, (int64_t)count * width, true)) {
    command_drop (m, c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  c->as.set.to = to;
  c->as.set.count = (int64_t)count;
  c->as.set.value = value;
  c->as.set.width = width;
  *out = c;
  return CUDA_SUCCESS;
}

static CUresult set (uint64_t to, uint32_t value, size_t count, int width, CUstream on,
                     bool waits) {
  ENTER (m, machine_enter (true, &refused));
  stream *s = stream_of (m, on);
  if (s == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (count == 0)
    return machine_leave (m, CUDA_SUCCESS);
  command *c = NULL;
  CUresult r = set_command (m, s, to, value, count, width, &c);
  if (r == CUDA_SUCCESS)
    r = command_issue (m, c);
  if (r == CUDA_SUCCESS && waits)
    r = stream_finish (m, s);
  return machine_leave (m, r);
}

EXPORT CUresult cuMemsetD16_v2 (CUdeviceptr to, unsigned short value, size_t count);
EXPORT CUresult cuMemsetD16Async (CUdeviceptr to, unsigned short value, size_t count, CUstream on);

CUresult cuMemsetD8_v2 (CUdeviceptr to, unsigned char value, size_t count) {
  return set (to, value, count, 1, NULL, true);
}

CUresult cuMemsetD16_v2 (CUdeviceptr to, unsigned short value, size_t count) {
  return set (to, value, count, 2, NULL, true);
}

CUresult cuMemsetD16Async (CUdeviceptr to, unsigned short value, size_t count, CUstream on) {
  return set (to, value, count, 2, on, false);
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

/* Both entries of one width of a value. */
#define FILL(bits, type)                                                                          \
  EXPORT CUresult cuMemsetD2D##bits##_v2 (CUdeviceptr to, size_t pitch, type value, size_t width, \
                                          size_t height);                                         \
  EXPORT CUresult cuMemsetD2D##bits##Async (CUdeviceptr to, size_t pitch, type value,             \
                                            size_t width, size_t height, CUstream on);            \
  CUresult cuMemsetD2D##bits##_v2 (CUdeviceptr to, size_t pitch, type value, size_t width,        \
                                   size_t height) {                                               \
    return set_2d (to, pitch, value, width, height, (bits) / 8, NULL, true);                      \
  }                                                                                               \
  CUresult cuMemsetD2D##bits##Async (CUdeviceptr to, size_t pitch, type value, size_t width,      \
                                     size_t height, CUstream on) {                                \
    return set_2d (to, pitch, value, width, height, (bits) / 8, on, false);                       \
  }

FILL (8, unsigned char)
FILL (16, unsigned short)
FILL (32, unsigned int)
