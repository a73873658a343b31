/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Questions about addresses. */
#include <string.h>

#include "executor/emu/core.h"

static bool answer (const machine *m, CUpointer_attribute a, void *out, uint64_t at) {
  const range *r = memory_range (m, at);
  bool host = r != NULL && (r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED);
  const void *pool = r != NULL && r->kind == RANGE_ASYNC ? (const void *)&m->pool_used : NULL;
  switch (a) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(const void **)out = r == NULL ? NULL : &m->cards[r->card];
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned int *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)out = at;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)out = (void *)(uintptr_t)at;
    return host;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)out = r == NULL ? 0 : r->card;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    *(int *)out = 0;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(CUdeviceptr *)out = r == NULL ? 0 : r->at;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)out = r == NULL ? 0 : (size_t)r->bytes;
    return r != NULL;
  case CU_POINTER_ATTRIBUTE_MAPPED:
    *(int *)out = host || memory_mapping (m, at) != NULL;
    return true;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(const void **)out = pool;
    return r != NULL;
  default:
    return false;
  }
}

CUresult cuPointerGetAttribute (void *out, CUpointer_attribute a, CUdeviceptr at) {
  ENTER (m, machine_enter (true, &refused));
  bool good = out != NULL && answer (m, a, out, at);
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Unknown addresses are no error here: the answers are zero. */
CUresult cuPointerGetAttributes (unsigned int count, CUpointer_attribute *a, void **out,
                                 CUdeviceptr at) {
  ENTER (m, machine_enter (true, &refused));
  bool good = a != NULL && out != NULL;
  for (unsigned int i = 0; good && i < count; i++) {
    good = out[i] != NULL;
    if (good && !answer (m, a[i], out[i], at))
      memset (out[i], 0,
              a[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || a[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                      a[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
                      a[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                      a[i] == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
                  ? sizeof (int)
                  : sizeof (void *));
  }
  return machine_leave (m, good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetAddressRange_v2 (CUdeviceptr *base, size_t *size, CUdeviceptr at) {
  ENTER (m, machine_enter (true, &refused));
  const mapping *p = memory_mapping (m, at);
  if (p == NULL)
    return machine_leave (m, CUDA_ERROR_NOT_FOUND);
  if (base != NULL)
    *base = p->at;
  if (size != NULL)
    *size = (size_t)p->bytes;
  return machine_leave (m, CUDA_SUCCESS);
}
