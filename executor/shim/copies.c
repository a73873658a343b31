/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies and fills: ops whose addresses are known from the call.  A synchronous one waits without
   the lock, its tensors held. */
#include "executor/shim/copies.h"

#include "executor/shim/wraps.h"

void copy_about (op *o, const char *name, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  shim *s = shim_of_process ();
  o->name = shim_name (s, name);
  op_mix (o, (uint64_t)o->name << 32 ^ bytes);
  op_touch (o, to);
  op_touch (o, from);
  bool there = area_has (s, to), here = area_has (s, from);
  if (o->kind == OP_COPY && there != here)
    o->link_bytes = there ? (int64_t)bytes : -(int64_t)bytes;
}

bool copy_is_host (CUdeviceptr at) {
  const driver *real = &shim_of_process ()->real;
  unsigned type = CU_MEMORYTYPE_DEVICE;
  if (area_has (shim_of_process (), at) || real->pointer_attribute == NULL)
    return false;
  return real->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS ||
         type == CU_MEMORYTYPE_HOST;
}

CUresult wrap_copy (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpy");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_COPY, NULL, true, "copy", to, from, bytes, copy_is_host (from), real (to, from, bytes));
}

CUresult wrap_copy_ptds (CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUresult (*real) (CUdeviceptr, CUdeviceptr, size_t) = shim_symbol ("cuMemcpy_ptds");
  if (real == NULL)
    return wrap_copy (to, from, bytes);
  AS_OP (OP_COPY, CU_STREAM_PER_THREAD, true, "copy", to, from, bytes, copy_is_host (from),
         real (to, from, bytes));
}

CUresult wrap_copy_async (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  AS_OP (OP_COPY, stream, false, "copy", to, from, bytes, copy_is_host (from),
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
  AS_OP (OP_SET, NULL, true, "fill", to, 0, count * 1, false, real (to, value, count));
}

CUresult wrap_set8_ptds (CUdeviceptr to, unsigned char value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned char, size_t) = shim_symbol ("cuMemsetD8_v2_ptds");
  if (real == NULL)
    return wrap_set8 (to, value, count);
  AS_OP (OP_SET, CU_STREAM_PER_THREAD, true, "fill", to, 0, count * 1, false,
         real (to, value, count));
}

CUresult wrap_set8_async (CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  AS_OP (OP_SET, stream, false, "fill", to, 0, count * 1, false,
         shim_real ()->set_bytes_async (to, value, count, stream));
}

CUresult wrap_set8_async_ptsz (CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return wrap_set8_async (to, value, count, own_stream (stream));
}

CUresult wrap_set16 (CUdeviceptr to, unsigned short value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t) = shim_symbol ("cuMemsetD16_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_SET, NULL, true, "fill", to, 0, count * 2, false, real (to, value, count));
}

CUresult wrap_set16_ptds (CUdeviceptr to, unsigned short value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t) = shim_symbol ("cuMemsetD16_v2_ptds");
  if (real == NULL)
    return wrap_set16 (to, value, count);
  AS_OP (OP_SET, CU_STREAM_PER_THREAD, true, "fill", to, 0, count * 2, false,
         real (to, value, count));
}

CUresult wrap_set16_async (CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  CUresult (*real) (CUdeviceptr, unsigned short, size_t, CUstream) =
      shim_symbol ("cuMemsetD16Async");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_SET, stream, false, "fill", to, 0, count * 2, false, real (to, value, count, stream));
}

CUresult wrap_set16_async_ptsz (CUdeviceptr to, unsigned short value, size_t count,
                                CUstream stream) {
  return wrap_set16_async (to, value, count, own_stream (stream));
}

CUresult wrap_set32 (CUdeviceptr to, unsigned int value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned int, size_t) = shim_symbol ("cuMemsetD32_v2");
  if (real == NULL)
    return CUDA_ERROR_NOT_FOUND;
  AS_OP (OP_SET, NULL, true, "fill", to, 0, count * 4, false, real (to, value, count));
}

CUresult wrap_set32_ptds (CUdeviceptr to, unsigned int value, size_t count) {
  CUresult (*real) (CUdeviceptr, unsigned int, size_t) = shim_symbol ("cuMemsetD32_v2_ptds");
  if (real == NULL)
    return wrap_set32 (to, value, count);
  AS_OP (OP_SET, CU_STREAM_PER_THREAD, true, "fill", to, 0, count * 4, false,
         real (to, value, count));
}

CUresult wrap_set32_async (CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  AS_OP (OP_SET, stream, false, "fill", to, 0, count * 4, false,
         shim_real ()->set_words_async (to, value, count, stream));
}

CUresult wrap_set32_async_ptsz (CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return wrap_set32_async (to, value, count, own_stream (stream));
}
