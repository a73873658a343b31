/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated device as it describes itself, and the names of errors. */
#include <stdio.h>
#include <string.h>

#include "executor/emu/core.h"

/* ---- errors ---- */

static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
#define ERROR(name, text) { name, #name, text },
#include "executor/emu/errors.def"
#undef ERROR
};

static CUresult error_text (CUresult code, const char **out, bool name) {
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code)
      *out = name ? errors[i].name : errors[i].text;
  return *out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorName (CUresult code, const char **out) {
  return error_text (code, out, true);
}

CUresult cuGetErrorString (CUresult code, const char **out) {
  return error_text (code, out, false);
}

/* ---- the device ---- */

CUresult cuDeviceGet (CUdevice *out, int ordinal) {
  CUresult r = machine_device (ordinal, out != NULL);
  if (r == CUDA_SUCCESS)
    *out = ordinal;
  return r;
}

CUresult cuDeviceGetCount (int *out) {
  CUresult r = machine_device (0, out != NULL);
  machine *m = r == CUDA_SUCCESS ? machine_enter (false, &r) : NULL;
  if (m == NULL)
    return r;
  *out = m->n_cards;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuDeviceGetName (char *out, int size, CUdevice d) {
  CUresult r = machine_device (d, out != NULL && size > 0);
  if (r == CUDA_SUCCESS)
    snprintf (out, (size_t)size, "emulated device");
  return r;
}

CUresult cuDeviceGetUuid_v2 (CUuuid *out, CUdevice d) {
  CUresult r = machine_device (d, out != NULL);
  if (r == CUDA_SUCCESS) {
    memcpy (out->bytes, "ferry-emulated-0", 16);
    out->bytes[15] = (char)('0' + d);
  }
  return r;
}

CUresult cuDeviceGetAttribute (int *out, CUdevice_attribute attribute, CUdevice d) {
  CUresult r = machine_device (d, out != NULL);
  if (r != CUDA_SUCCESS)
    return r;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *out = 1;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    *out = 2;
    return CUDA_SUCCESS;
  default:
    *out = 0;
    return CUDA_SUCCESS;
  }
}

CUresult cuDeviceTotalMem_v2 (size_t *out, CUdevice d) {
  CUresult r = machine_device (d, out != NULL);
  machine *m = r == CUDA_SUCCESS ? machine_enter (false, &r) : NULL;
  if (m == NULL)
    return r;
  *out = (size_t)m->config.memory_bytes;
  return machine_leave (m, CUDA_SUCCESS);
}
