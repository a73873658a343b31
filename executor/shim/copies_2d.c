/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and fills of rows that lie apart, as programs make them whose images have a pitch. */
#include "executor/shim/copies.h"
#include "executor/shim/wraps.h"

typedef struct side {
  CUdeviceptr at; /* of the first byte; 0: an array's */
  size_t pitch;
  bool is_host;
} side;

static side side_of (unsigned int type, const void *host, CUdeviceptr device, size_t pitch,
                     size_t x, size_t y) {
  side s = { .pitch = pitch };
  if (type == CU_MEMORYTYPE_HOST)
    s.at = (CUdeviceptr)(uintptr_t)host;
  else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED)
    s.at = device;
  s.is_host = type == CU_MEMORYTYPE_HOST || (s.at != 0 && copy_is_host (s.at));
  s.at += s.at == 0 ? 0 : y * pitch + x;
  return s;
}

/* The host's addresses in it, row by row. */
static void payload (op *o, const side *to, const side *from, size_t width, size_t height) {
  size_t bytes;
  if (!from->is_host || __builtin_mul_overflow (width, height, &bytes) || bytes > PAYLOAD_BYTES)
    return;
  for (size_t y = 0; y < height && width > 0; y++)
    op_payload (o, to->at + y * to->pitch, (const char *)(uintptr_t)from->at + y * from->pitch,
                width);
}

typedef CUresult (*copy_entry) (const CUDA_MEMCPY2D *c);
typedef CUresult (*copy_async_entry) (const CUDA_MEMCPY2D *c, CUstream stream);

/* An array is nobody's tensor: the driver says what it thinks of it. */
static CUresult copy (const CUDA_MEMCPY2D *c, CUstream stream, copy_entry real,
                      copy_async_entry real_async) {
  op o;
  if (real == NULL && real_async == NULL)
    return CUDA_ERROR_NOT_FOUND;
  if (c == NULL || !op_enter (&o, OP_COPY, stream, real != NULL))
    return real != NULL ? real (c) : real_async (c, stream);
  side to =
      side_of (c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstXInBytes, c->dstY);
  side from =
      side_of (c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcXInBytes, c->srcY);
  copy_about (&o, "copy in two dimensions", to.at, from.at, c->WidthInBytes * c->Height);
  op_mix (&o, c->WidthInBytes);
  payload (&o, &to, &from, c->WidthInBytes, c->Height);
  CUresult r = op_prepare (&o);
  if (r != CUDA_SUCCESS)
    o.waits = false;
  else
    r = real != NULL ? real (c) : real_async (c, stream);
  return op_leave (&o, r);
}

CUresult wrap_copy_2d (const CUDA_MEMCPY2D *c) {
  return copy (c, NULL, (copy_entry)shim_symbol ("cuMemcpy2D_v2"), NULL);
}

CUresult wrap_copy_2d_ptds (const CUDA_MEMCPY2D *c) {
  copy_entry real = (copy_entry)shim_symbol ("cuMemcpy2D_v2_ptds");
  return real == NULL ? wrap_copy_2d (c) : copy (c, CU_STREAM_PER_THREAD, real, NULL);
}

CUresult wrap_copy_2d_unaligned (const CUDA_MEMCPY2D *c) {
  return copy (c, NULL, (copy_entry)shim_symbol ("cuMemcpy2DUnaligned_v2"), NULL);
}

CUresult wrap_copy_2d_unaligned_ptds (const CUDA_MEMCPY2D *c) {
  copy_entry real = (copy_entry)shim_symbol ("cuMemcpy2DUnaligned_v2_ptds");
  return real == NULL ? wrap_copy_2d_unaligned (c) : copy (c, CU_STREAM_PER_THREAD, real, NULL);
}

CUresult wrap_copy_2d_async (const CUDA_MEMCPY2D *c, CUstream stream) {
  return copy (c, stream, NULL, (copy_async_entry)shim_symbol ("cuMemcpy2DAsync_v2"));
}

CUresult wrap_copy_2d_async_ptsz (const CUDA_MEMCPY2D *c, CUstream stream) {
  return wrap_copy_2d_async (c, own_stream (stream));
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
