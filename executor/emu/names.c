/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entry points by name, in both ABIs of the question. */
#include <string.h>

#include "executor/emu/core.h"

EXPORT CUresult cuGetProcAddress (const char *name, void **out, int version, uint64_t flags);

static const struct {
  const char *symbol;
  void *entry;
} entries[] = {
#define DRIVER(field, symbol, must, parameters) { #symbol, (void *)symbol },
#include "executor/driver/driver.def"
#undef DRIVER
};

/* The version from which on a name means what is exported here; of all others any version from
   2.0 on will do. */
static const struct {
  const char *name;
  int version;
} since[] = {
  { "cuDeviceGetUuid", 11040 },
  { "cuDeviceTotalMem", 3020 },
  { "cuDevicePrimaryCtxRetain", 7000 },
  { "cuDevicePrimaryCtxRelease", 11000 },
  { "cuDevicePrimaryCtxReset", 11000 },
  { "cuCtxDestroy", 4000 },
  { "cuCtxCreate", 3020 },
  { "cuCtxPushCurrent", 4000 },
  { "cuCtxPopCurrent", 4000 },
  { "cuEventDestroy", 4000 },
  { "cuFuncGetName", 12030 },
  { "cuFuncGetParamInfo", 12040 },
  { "cuKernelGetName", 12030 },
  { "cuKernelGetParamInfo", 12040 },
  { "cuLaunchHostFunc", 10000 },
  { "cuLaunchKernel", 4000 },
  { "cuLaunchKernelEx", 11060 },
  { "cuLibraryGetKernel", 12000 },
  { "cuLibraryLoadData", 12000 },
  { "cuMemAddressReserve", 10020 },
  { "cuMemAlloc", 3020 },
  { "cuMemAllocAsync", 11020 },
  { "cuMemAllocFromPoolAsync", 11020 },
  { "cuMemCreate", 10020 },
  { "cuMemFree", 3020 },
  { "cuMemFreeAsync", 11020 },
  { "cuMemGetAddressRange", 3020 },
  { "cuMemGetInfo", 3020 },
  { "cuMemHostRegister", 6050 },
  { "cuMemMap", 10020 },
  { "cuMemSetAccess", 10020 },
  { "cuMemUnmap", 10020 },
  { "cuMemcpyDtoD", 3020 },
  { "cuMemcpyDtoDAsync", 3020 },
  { "cuMemcpyDtoH", 3020 },
  { "cuMemcpyDtoHAsync", 3020 },
  { "cuMemcpyHtoD", 3020 },
  { "cuMemcpyHtoDAsync", 3020 },
  { "cuMemsetD32", 3020 },
  { "cuMemsetD8", 3020 },
  { "cuStreamDestroy", 4000 },
  { "cuTensorMapEncodeTiled", 12000 },
};

static int since_version (const char *name) {
  for (size_t i = 0; i < sizeof since / sizeof *since; i++)
    if (strcmp (since[i].name, name) == 0)
      return since[i].version;
  return 2000;
}

/* Equal but for a version at the symbol's end. */
static bool is_named (const char *symbol, const char *name) {
  size_t n = strlen (name);
  return strncmp (symbol, name, n) == 0 && (symbol[n] == 0 || strcmp (symbol + n, "_v2") == 0);
}

static CUdriverProcAddressQueryResult look_up (const char *name, int version, void **out) {
  *out = NULL;
  if (strcmp (name, "cuGetProcAddress") == 0) {
    *out = version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
    return version < 11030 ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SUCCESS;
  }
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (!is_named (entries[i].symbol, name))
      continue;
    if (version < since_version (name))
      return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    *out = entries[i].entry;
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

/* Per-thread forms are not offered: who asks for them gets the plain ones, whose stream 0 is the
   legacy stream and orders more than was asked for. */
CUresult cuGetProcAddress_v2 (const char *name, void **out, int version, uint64_t flags,
                              CUdriverProcAddressQueryResult *status) {
  if (name == NULL || out == NULL || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult r = look_up (name, version, out);
  if (r != CU_GET_PROC_ADDRESS_SUCCESS)
    *out = NULL;
  if (status != NULL) {
    *status = r;
    return CUDA_SUCCESS;
  }
  return r == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress (const char *name, void **out, int version, uint64_t flags) {
  return cuGetProcAddress_v2 (name, out, version, flags, NULL);
}

CUresult cuGetExportTable (const void **out, const CUuuid *id) {
  if (out == NULL || id == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
