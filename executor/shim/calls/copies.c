/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and fills: ops whose addresses are known from the call.  A synchronous one waits without
   the lock, its tensors held; so does one of memory that is not pinned, whatever its name says. */
#include "executor/shim/calls/calls.h"
#include "executor/shim/state/wraps.h"

/* The driver takes such bytes piece by piece, for which the call waits. */
static bool is_pageable (CUdeviceptr at) {
  const driver *real = &shim_of_process ()->real;
  unsigned type;
  return at != 0 && real->pointer_attribute != NULL && !area_has (shim_of_process (), at) &&
         real->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS;
}

/* The stretch of an op; a host address is nobody's. */
static void about (op *o, const char *name, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  shim *s = shim_of_process ();
  o->name = shim_name (s, name);
  op_mix (o, (uint64_t)o->name << 32 ^ bytes);
  op_touch (o, to);
  op_touch (o, from);
  o->to = to;
  o->from = from;
  o->bytes = (int64_t)bytes;
  o->value_bytes = 0;
  bool there = area_has (s, to), here = area_has (s, from);
  if (o->kind == OP_COPY && there != here)
    o->link_bytes = there ? (int64_t)bytes : -(int64_t)bytes;
  if (o->kind != OP_COPY || o->waits)
    return;
  o->waits = is_pageable (to);
  o->apart = o->waits || is_pageable (from);
}

/* A copy may name the host's memory by the same kind of address. Memory that nobody has registered
   is nobody's to the driver, and the host's. */
static bool is_host (CUdeviceptr at) {
  const driver *real = &shim_of_process ()->real;
  unsigned type = CU_MEMORYTYPE_DEVICE;
  if (area_has (shim_of_process (), at) || real->pointer_attribute == NULL)
    return false;
  return real->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS ||
         type == CU_MEMORYTYPE_HOST;
}

/* `call` makes the call of an op that knows what it touches. */
#define RUN_OP(o, call)         \
  CUresult r = op_prepare (&o); \
  if (r != CUDA_SUCCESS)        \
    o.waits = o.apart = false;  \
  else                          \
    r = call;                   \
  return op_leave (&o, r)

#define AS_OP(kind, stream, blocks, name, to, from, bytes, payload, call) \
  op o;                                                                   \
  if (!op_enter (&o, kind, stream, blocks))                               \
    return call;                                                          \
  about (&o, name, to, from, bytes);                                      \
  if (payload)                                                            \
    op_payload (&o, to, (const void *)(uintptr_t)(from), bytes);          \
  RUN_OP (o, call)

/* A fill of elements that lie behind one another. */
#define AS_FILL(stream, blocks, bits, call)               \
  op o;                                                   \
  if (!op_enter (&o, OP_SET, stream, blocks))             \
    return call;                                          \
  about (&o, "fill", to, 0, count *(size_t)((bits) / 8)); \
  o.value = value;                                        \
  o.value_bytes = (bits) / 8;                             \
  RUN_OP (o, call)

CUresult wrap_copy (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpy");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_COPY, NULL, true, "copy", to, from, bytes, is_host (from), real (to, from, bytes));
}

CUresult wrap_copy_ptds (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpy_ptds");
  if (real == NULL)
    return wrap_copy (to, from, bytes);
  AS_OP (OP_COPY, CU_STREAM_PER_THREAD, true, "copy", to, from, bytes, is_host (from),
         real (to, from, bytes));
}

CUresult wrap_copy_async (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  AS_OP (OP_COPY, stream, false, "copy", to, from, bytes, is_host (from),
         shim_real ()->copy_async (to, from, bytes, stream));
}

CUresult wrap_copy_async_ptsz (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return wrap_copy_async (to, from, bytes, own_stream (stream));
}

CUresult wrap_in (CUdeviceptr to, const void *from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, const void *, size_t) = shim_symbol ("cuMemcpyHtoD_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_COPY, NULL, true, "copy to device", to, (CUdeviceptr)(uintptr_t)from, bytes, true,
         real (to, from, bytes));
}

CUresult wrap_in_ptds (CUdeviceptr to, const void *from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, const void *, size_t) = shim_symbol ("cuMemcpyHtoD_v2_ptds");
  if (real == NULL)
    return wrap_in (to, from, bytes);
  AS_OP (OP_COPY, CU_STREAM_PER_THREAD, true, "copy to device", to, (CUdeviceptr)(uintptr_t)from,
         bytes, true, real (to, from, bytes));
}

CUresult wrap_in_async (CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  AS_OP (OP_COPY, stream, false, "copy to device", to, (CUdeviceptr)(uintptr_t)from, bytes, true,
         shim_real ()->copy_in_async (to, from, bytes, stream));
}

CUresult wrap_in_async_ptsz (CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return wrap_in_async (to, from, bytes, own_stream (stream));
}

CUresult wrap_out (void *to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (void *, CUdeviceptr, size_t) = shim_symbol ("cuMemcpyDtoH_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_COPY, NULL, true, "copy to host", (CUdeviceptr)(uintptr_t)to, from, bytes, false,
         real (to, from, bytes));
}

CUresult wrap_out_ptds (void *to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (void *, CUdeviceptr, size_t) = shim_symbol ("cuMemcpyDtoH_v2_ptds");
  if (real == NULL)
    return wrap_out (to, from, bytes);
  AS_OP (OP_COPY, CU_STREAM_PER_THREAD, true, "copy to host", (CUdeviceptr)(uintptr_t)to, from,
         bytes, false, real (to, from, bytes));
}

CUresult wrap_out_async (void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  AS_OP (OP_COPY, stream, false, "copy to host", (CUdeviceptr)(uintptr_t)to, from, bytes, false,
         shim_real ()->copy_out_async (to, from, bytes, stream));
}

CUresult wrap_out_async_ptsz (void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return wrap_out_async (to, from, bytes, own_stream (stream));
}

CUresult wrap_within (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpyDtoD_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_COPY, NULL, true, "copy within the device", to, from, bytes, false,
         real (to, from, bytes));
}

CUresult wrap_within_ptds (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpyDtoD_v2_ptds");
  if (real == NULL)
    return wrap_within (to, from, bytes);
  AS_OP (OP_COPY, CU_STREAM_PER_THREAD, true, "copy within the device", to, from, bytes, false,
         real (to, from, bytes));
}

CUresult wrap_within_async (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  AS_OP (OP_COPY, stream, false, "copy within the device", to, from, bytes, false,
         shim_real ()->copy_within_async (to, from, bytes, stream));
}

CUresult wrap_within_async_ptsz (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return wrap_within_async (to, from, bytes, own_stream (stream));
}

CUresult wrap_set8 (CUdeviceptr to, unsigned char value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned char, size_t) = shim_symbol ("cuMemsetD8_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_FILL (NULL, true, 8, real (to, value, count));
}

CUresult wrap_set8_ptds (CUdeviceptr to, unsigned char value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned char, size_t) = shim_symbol ("cuMemsetD8_v2_ptds");
  if (real == NULL)
    return wrap_set8 (to, value, count);
  AS_FILL (CU_STREAM_PER_THREAD, true, 8, real (to, value, count));
}

CUresult wrap_set8_async (CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  AS_FILL (stream, false, 8, shim_real ()->set_bytes_async (to, value, count, stream));
}

CUresult wrap_set8_async_ptsz (CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return wrap_set8_async (to, value, count, own_stream (stream));
}

CUresult wrap_set16 (CUdeviceptr to, unsigned short value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t) = shim_symbol ("cuMemsetD16_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_FILL (NULL, true, 16, real (to, value, count));
}

CUresult wrap_set16_ptds (CUdeviceptr to, unsigned short value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t) = shim_symbol ("cuMemsetD16_v2_ptds");
  if (real == NULL)
    return wrap_set16 (to, value, count);
  AS_FILL (CU_STREAM_PER_THREAD, true, 16, real (to, value, count));
}

CUresult wrap_set16_async (CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t, CUstream) =
      shim_symbol ("cuMemsetD16Async");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_FILL (stream, false, 16, real (to, value, count, stream));
}

CUresult wrap_set16_async_ptsz (CUdeviceptr to, unsigned short value, size_t count,
                                CUstream stream) {
  return wrap_set16_async (to, value, count, own_stream (stream));
}

CUresult wrap_set32 (CUdeviceptr to, unsigned int value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned int, size_t) = shim_symbol ("cuMemsetD32_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_FILL (NULL, true, 32, real (to, value, count));
}

CUresult wrap_set32_ptds (CUdeviceptr to, unsigned int value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned int, size_t) = shim_symbol ("cuMemsetD32_v2_ptds");
  if (real == NULL)
    return wrap_set32 (to, value, count);
  AS_FILL (CU_STREAM_PER_THREAD, true, 32, real (to, value, count));
}

CUresult wrap_set32_async (CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  AS_FILL (stream, false, 32, shim_real ()->set_words_async (to, value, count, stream));
}

CUresult wrap_set32_async_ptsz (CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return wrap_set32_async (to, value, count, own_stream (stream));
}

/* ---- rows that lie apart, as those of images with a pitch, and planes of them ---- */

typedef struct side {
  CUdeviceptr at; /* of the first byte; 0: an array's */
  size_t pitch, slice;
  bool is_host;
} side;

static side side_of (unsigned int type, const void *host, CUdeviceptr device, size_t pitch,
                     size_t height) {
  side s = { .pitch = pitch, .slice = pitch * height };
  if (type == CU_MEMORYTYPE_HOST)
    s.at = (CUdeviceptr)(uintptr_t)host;
  else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED)
    s.at = device;
  s.is_host = type == CU_MEMORYTYPE_HOST || (s.at != 0 && is_host (s.at));
  return s;
}

static void begin_at (side *s, size_t x, size_t y, size_t z) {
  if (s->at != 0)
    s->at += z * s->slice + y * s->pitch + x;
}

/* The host's addresses in it, row by row. */
static void payload (op *o, const side *to, const side *from, const size_t *of) {
  size_t plane, bytes;
  if (!from->is_host || __builtin_mul_overflow (of[0], of[1], &plane) ||
      __builtin_mul_overflow (plane, of[2], &bytes) || bytes > PAYLOAD_BYTES || bytes == 0)
    return;
  for (size_t z = 0; z < of[2]; z++)
    for (size_t y = 0; y < of[1]; y++)
      op_payload (o, to->at + z * to->slice + y * to->pitch,
                  (const char *)(uintptr_t)from->at + z * from->slice + y * from->pitch, of[0]);
}

/* An array is nobody's tensor: the driver says what it thinks of it.  `of`: the bytes of a row,
   rows, planes. */
static void about_box (op *o, const char *name, const side *to, const side *from,
                       const size_t *of) {
  about (o, name, to->at, from->at, of[0] * of[1] * of[2]);
  o->bytes = 0;
  op_mix (o, of[0]);
  payload (o, to, from, of);
}

static void about_rows (op *o, const CUDA_MEMCPY2D *c) {
  side to = side_of (c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, 0);
  side from = side_of (c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, 0);
  begin_at (&to, c->dstXInBytes, c->dstY, 0);
  begin_at (&from, c->srcXInBytes, c->srcY, 0);
  about_box (o, "copy in two dimensions", &to, &from,
             (const size_t[]){ c->WidthInBytes, c->Height, 1 });
}

static void sides_of (const CUDA_MEMCPY3D *c, side *to, side *from) {
  *to = side_of (c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstHeight);
  *from = side_of (c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcHeight);
  begin_at (to, c->dstXInBytes, c->dstY, c->dstZ);
  begin_at (from, c->srcXInBytes, c->srcY, c->srcZ);
}

static void about_planes (op *o, const CUDA_MEMCPY3D *c) {
  side to, from;
  sides_of (c, &to, &from);
  about_box (o, "copy in three dimensions", &to, &from,
             (const size_t[]){ c->WidthInBytes, c->Height, c->Depth });
}

void op_carried (op *o, const CUDA_MEMCPY3D *c) {
  side to, from;
  sides_of (c, &to, &from);
  payload (o, &to, &from, (const size_t[]){ c->WidthInBytes, c->Height, c->Depth });
}

/* Both kinds of a driver's entry for one kind of box; `real` or `real_async` is there, or none. */
#define BOX(name, type, about_it)                                          \
  typedef CUresult (*name##_entry) (const type *c);                        \
  typedef CUresult (*name##_async_entry) (const type *c, CUstream stream); \
  static CUresult name (const type *c, CUstream stream, name##_entry real, \
                        name##_async_entry real_async) {                   \
    op o;                                                                  \
    if (real == NULL && real_async == NULL)                                \
      return CUDA_ERROR_NOT_FOUND;                                         \
    if (c == NULL || !op_enter (&o, OP_COPY, stream, real != NULL))        \
      return real != NULL ? real (c) : real_async (c, stream);             \
    about_it (&o, c);                                                      \
    RUN_OP (o, real != NULL ? real (c) : real_async (c, stream));          \
  }

BOX (copy_rows, CUDA_MEMCPY2D, about_rows)
BOX (copy_planes, CUDA_MEMCPY3D, about_planes)

CUresult wrap_copy_2d (const CUDA_MEMCPY2D *c) {
  return copy_rows (c, NULL, (copy_rows_entry)shim_symbol ("cuMemcpy2D_v2"), NULL);
}

CUresult wrap_copy_2d_ptds (const CUDA_MEMCPY2D *c) {
  copy_rows_entry real = (copy_rows_entry)shim_symbol ("cuMemcpy2D_v2_ptds");
  return real == NULL ? wrap_copy_2d (c) : copy_rows (c, CU_STREAM_PER_THREAD, real, NULL);
}

CUresult wrap_copy_2d_unaligned (const CUDA_MEMCPY2D *c) {
  return copy_rows (c, NULL, (copy_rows_entry)shim_symbol ("cuMemcpy2DUnaligned_v2"), NULL);
}

CUresult wrap_copy_2d_unaligned_ptds (const CUDA_MEMCPY2D *c) {
  copy_rows_entry real = (copy_rows_entry)shim_symbol ("cuMemcpy2DUnaligned_v2_ptds");
  return real == NULL ? wrap_copy_2d_unaligned (c)
                      : copy_rows (c, CU_STREAM_PER_THREAD, real, NULL);
}

CUresult wrap_copy_2d_async (const CUDA_MEMCPY2D *c, CUstream stream) {
  return copy_rows (c, stream, NULL, (copy_rows_async_entry)shim_symbol ("cuMemcpy2DAsync_v2"));
}

CUresult wrap_copy_2d_async_ptsz (const CUDA_MEMCPY2D *c, CUstream stream) {
  return wrap_copy_2d_async (c, own_stream (stream));
}

CUresult wrap_copy_3d (const CUDA_MEMCPY3D *c) {
  return copy_planes (c, NULL, (copy_planes_entry)shim_symbol ("cuMemcpy3D_v2"), NULL);
}

CUresult wrap_copy_3d_ptds (const CUDA_MEMCPY3D *c) {
  copy_planes_entry real = (copy_planes_entry)shim_symbol ("cuMemcpy3D_v2_ptds");
  return real == NULL ? wrap_copy_3d (c) : copy_planes (c, CU_STREAM_PER_THREAD, real, NULL);
}

CUresult wrap_copy_3d_async (const CUDA_MEMCPY3D *c, CUstream stream) {
  return copy_planes (c, stream, NULL, (copy_planes_async_entry)shim_symbol ("cuMemcpy3DAsync_v2"));
}

CUresult wrap_copy_3d_async_ptsz (const CUDA_MEMCPY3D *c, CUstream stream) {
  return wrap_copy_3d_async (c, own_stream (stream));
}

/* The four entries of one width of a value. */
#define FILL(bits, type)                                                                           \
  CUresult wrap_set##bits##_2d (CUdeviceptr to, size_t pitch, type value, size_t width,            \
                                size_t height) {                                                   \
    CUresult (*real) (CUdeviceptr, size_t, type, size_t, size_t) =                                 \
        shim_symbol ("cuMemsetD2D" #bits "_v2");                                                   \
    if (real == NULL)                                                                              \
      return CUDA_ERROR_NOT_FOUND;                                                                 \
    AS_OP (OP_SET, NULL, true, "fill", to, 0, width *height *((bits) / 8), false,                  \
           real (to, pitch, value, width, height));                                                \
  }                                                                                                \
  CUresult wrap_set##bits##_2d_ptds (CUdeviceptr to, size_t pitch, type value, size_t width,       \
                                     size_t height) {                                              \
    CUresult (*real) (CUdeviceptr, size_t, type, size_t, size_t) =                                 \
        shim_symbol ("cuMemsetD2D" #bits "_v2_ptds");                                              \
    if (real == NULL)                                                                              \
      return wrap_set##bits##_2d (to, pitch, value, width, height);                                \
    AS_OP (OP_SET, CU_STREAM_PER_THREAD, true, "fill", to, 0, width *height *((bits) / 8), false,  \
           real (to, pitch, value, width, height));                                                \
  }                                                                                                \
  CUresult wrap_set##bits##_2d_async (CUdeviceptr to, size_t pitch, type value, size_t width,      \
                                      size_t height, CUstream stream) {                            \
    CUresult (*real) (CUdeviceptr, size_t, type, size_t, size_t, CUstream) =                       \
        shim_symbol ("cuMemsetD2D" #bits "Async");                                                 \
    if (real == NULL)                                                                              \
      return CUDA_ERROR_NOT_FOUND;                                                                 \
    AS_OP (OP_SET, stream, false, "fill", to, 0, width *height *((bits) / 8), false,               \
           real (to, pitch, value, width, height, stream));                                        \
  }                                                                                                \
  CUresult wrap_set##bits##_2d_async_ptsz (CUdeviceptr to, size_t pitch, type value, size_t width, \
                                           size_t height, CUstream stream) {                       \
    return wrap_set##bits##_2d_async (to, pitch, value, width, height, own_stream (stream));       \
  }

FILL (8, unsigned char)
FILL (16, unsigned short)
FILL (32, unsigned int)
