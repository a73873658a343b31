/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels: host functions known by name, whatever the module.  A launch copies its parameters. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/emu/core.h"

EXPORT CUresult emuRegisterKernel (const emu_kernel *k);

enum { MOST_PARAM_BYTES = 4096 };

CUresult emuRegisterKernel (const emu_kernel *k) {
  if (k == NULL || k->name == NULL || k->n_params < 0)
    return CUDA_ERROR_INVALID_VALUE;
  int64_t bytes = 0;
  for (int32_t i = 0; i < k->n_params; i++) {
    if (k->params[i].offset < (size_t)bytes || k->params[i].bytes > MOST_PARAM_BYTES)
      return CUDA_ERROR_INVALID_VALUE;
    bytes = (int64_t)(k->params[i].offset + k->params[i].bytes);
  }
  machine *m = machine_enter_stuck ();
  if (m == NULL)
    return CUDA_ERROR_NOT_INITIALIZED;
  kernel **moved = realloc (m->kernels, (size_t)(m->n_kernels + 1) * sizeof *moved);
  if (moved != NULL)
    m->kernels = moved;
  kernel *own = calloc (1, sizeof *own);
  if (moved == NULL || own == NULL || bytes > MOST_PARAM_BYTES) {
    free (own);
    return machine_leave (m, CUDA_ERROR_OUT_OF_MEMORY);
  }
  own->told = *k;
  own->param_bytes = bytes;
  m->kernels[m->n_kernels++] = own;
  return machine_leave (m, CUDA_SUCCESS);
}

static kernel *kernel_of (const machine *m, const void *handle) {
  for (int32_t i = m->n_kernels - 1; i >= 0; i--)
    if (m->kernels[i] == handle)
      return m->kernels[i];
  return NULL;
}

static kernel *kernel_named (const machine *m, const char *name) {
  for (int32_t i = m->n_kernels - 1; i >= 0; i--)
    if (strcmp (m->kernels[i]->told.name, name) == 0)
      return m->kernels[i];
  return NULL;
}

static CUresult load (void **out, const void *image) {
  ENTER (m, machine_enter (true, &refused));
  CUresult r = out == NULL     ? CUDA_ERROR_INVALID_VALUE
               : image == NULL ? CUDA_ERROR_INVALID_IMAGE
                               : CUDA_SUCCESS;
  if (r == CUDA_SUCCESS)
    *out = &m->kernels;
  return machine_leave (m, r);
}

static CUresult get (void **out, const void *module, const char *name) {
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL || name == NULL || module != (const void *)&m->kernels)
    return machine_leave (m, out == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE
                                                         : CUDA_ERROR_INVALID_HANDLE);
  kernel *k = kernel_named (m, name);
  *out = k;
  return machine_leave (m, k == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
}

CUresult cuModuleLoadData (CUmodule *out, const void *image) {
  return load ((void **)out, image);
}

/* A name without a folder is one in this folder, as for a driver; dlopen would look elsewhere. */
static void *open_object (const char *path) {
  char here[PATH_MAX + 2];
  if (strchr (path, '/') == NULL && strlen (path) < PATH_MAX) {
    snprintf (here, sizeof here, "./%s", path);
    path = here;
  }
  return dlopen (path, RTLD_NOW | RTLD_LOCAL);
}

/* A file of code for this device is a shared object; it stays open, as its kernels may be queued.
 */
CUresult cuModuleLoad (CUmodule *out, const char *path) {
  void *object = path == NULL ? NULL : open_object (path);
  const emu_kernel *k = object == NULL ? NULL : dlsym (object, EMU_MODULE);
  if (k == NULL)
    return path == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_IMAGE;
  for (; k->name != NULL; k++) {
    CUresult r = emuRegisterKernel (k);
    if (r != CUDA_SUCCESS)
      return r;
  }
  return load ((void **)out, object);
}

EXPORT CUresult cuModuleUnload (CUmodule module);

/* Its kernels stay, for the same reason. */
CUresult cuModuleUnload (CUmodule module) {
  ENTER (m, machine_enter (true, &refused));
  bool is_one = (const void *)module == (const void *)&m->kernels;
  return machine_leave (m, is_one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuModuleGetFunction (CUfunction *out, CUmodule module, const char *name) {
  return get ((void **)out, module, name);
}

CUresult cuLibraryLoadData (CUlibrary *out, const void *image, CUjit_option *jit, void **jit_values,
                            unsigned int n_jit, CUlibraryOption *options, void **values,
                            unsigned int n_options) {
  (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n_options;
  return load ((void **)out, image);
}

CUresult cuLibraryGetKernel (CUkernel *out, CUlibrary library, const char *name) {
  return get ((void **)out, library, name);
}

static CUresult name_of (const char **out, const void *f) {
  ENTER (m, machine_enter (true, &refused));
  const kernel *k = kernel_of (m, f);
  if (out != NULL && k != NULL)
    *out = k->told.name;
  return machine_leave (m, out == NULL ? CUDA_ERROR_INVALID_VALUE
                           : k == NULL ? CUDA_ERROR_INVALID_HANDLE
                                       : CUDA_SUCCESS);
}

CUresult cuFuncGetName (const char **out, CUfunction f) {
  return name_of (out, f);
}

CUresult cuKernelGetName (const char **out, CUkernel f) {
  return name_of (out, f);
}

static CUresult param (const void *f, size_t index, size_t *offset, size_t *bytes) {
  ENTER (m, machine_enter (true, &refused));
  const kernel *k = kernel_of (m, f);
  if (k == NULL)
    return machine_leave (m, CUDA_ERROR_INVALID_HANDLE);
  if (offset == NULL || index >= (size_t)k->told.n_params)
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  *offset = k->told.params[index].offset;
  if (bytes != NULL)
    *bytes = k->told.params[index].bytes;
  return machine_leave (m, CUDA_SUCCESS);
}

CUresult cuFuncGetParamInfo (CUfunction f, size_t index, size_t *offset, size_t *bytes) {
  return param (f, index, offset, bytes);
}

CUresult cuKernelGetParamInfo (CUkernel f, size_t index, size_t *offset, size_t *bytes) {
  return param (f, index, offset, bytes);
}

/* ---- launches ---- */

typedef struct gathering {
  command *c;
  uint64_t tag;
  bool failed;
} gathering;

static void gather (void *context, CUdeviceptr at, int64_t bytes, unsigned int how) {
  gathering *g = context;
  touch t = { .at = at, .bytes = bytes, .how = how, .tag = g->tag };
  if (!command_touch (g->c, &t))
    g->failed = true;
}

/* The parameters: an array of pointers, or one buffer in `extra`. */
static bool copy_params (const kernel *k, char *to, void **params, void **extra) {
  if (params != NULL && extra != NULL)
    return false;
  if (params != NULL) {
    for (int32_t i = 0; i < k->told.n_params; i++)
      memcpy (to + k->told.params[i].offset, params[i], k->told.params[i].bytes);
    return true;
  }
  const void *buffer = NULL;
  size_t bytes = 0;
  for (; extra != NULL && *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *(size_t *)extra[1];
    else
      return false;
  if ((int64_t)bytes < k->param_bytes)
    return false;
  if (k->param_bytes > 0)
    memcpy (to, buffer, (size_t)k->param_bytes);
  return true;
}

CUresult kernel_command (machine *m, stream *s, const CUlaunchConfig *l, CUfunction f,
                         void **params, void **extra, command **out) {
  const kernel *k = kernel_of (m, f);
  if (k == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  uint64_t threads = (uint64_t)l->blockDimX * l->blockDimY * l->blockDimZ;
  if (l->gridDimX == 0 || l->gridDimY == 0 || l->gridDimZ == 0 || threads == 0 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  command *c = command_new (m, s, COMMAND_KERNEL);
  if (c == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  c->as.run.kernel = k;
  bool there = command_params (c);
  emu_launch *a = &c->as.run.launch;
  *a = (emu_launch){ .params = c->as.run.params,
                     .grid = { l->gridDimX, l->gridDimY, l->gridDimZ },
                     .block = { l->blockDimX, l->blockDimY, l->blockDimZ },
                     .bytes = m->config.bytes == EMU_ALL,
                     .memory_bytes_per_s = m->config.memory_bytes_per_s };
  if (!there || !copy_params (k, c->as.run.params, params, extra)) {
    command_drop (m, c);
    return there ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  gathering g = { .c = c, .tag = machine_tag () };
  if (k->told.touches != NULL)
    k->told.touches (a, gather, &g);
  if (g.failed) {
    command_drop (m, c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = c;
  return CUDA_SUCCESS;
}

static CUresult launch (machine *m, const CUlaunchConfig *l, CUfunction f, void **params,
                        void **extra) {
  stream *s = stream_of (m, l->hStream);
  command *c = NULL;
  CUresult r =
      s == NULL ? CUDA_ERROR_INVALID_HANDLE : kernel_command (m, s, l, f, params, extra, &c);
  return r == CUDA_SUCCESS ? command_issue (m, c) : r;
}

/* Entries do not call each other by name: who stands before the driver would be asked again. */
static CUresult launch_call (const CUlaunchConfig *l, CUfunction f, void **params, void **extra) {
  ENTER (m, machine_enter (true, &refused));
  return machine_leave (m, l == NULL ? CUDA_ERROR_INVALID_VALUE : launch (m, l, f, params, extra));
}

CUresult cuLaunchKernelEx (const CUlaunchConfig *l, CUfunction f, void **params, void **extra) {
  return launch_call (l, f, params, extra);
}

CUresult cuLaunchKernel (CUfunction f, unsigned int grid_x, unsigned int grid_y,
                         unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                         unsigned int block_z, unsigned int shared_bytes, CUstream on,
                         void **params, void **extra) {
  CUlaunchConfig l = { .gridDimX = grid_x,
                       .gridDimY = grid_y,
                       .gridDimZ = grid_z,
                       .blockDimX = block_x,
                       .blockDimY = block_y,
                       .blockDimZ = block_z,
                       .sharedMemBytes = shared_bytes,
                       .hStream = on };
  return launch_call (&l, f, params, extra);
}

#define COOPERATIVE                                                                          \
  CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,               \
      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, \
      CUstream on, void **params
EXPORT CUresult cuLaunchCooperativeKernel (COOPERATIVE);

CUresult cuLaunchCooperativeKernel (COOPERATIVE) {
  return cuLaunchKernel (f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, on, params,
                         NULL);
}

/* A tensor map is opaque; the address stands in it as a plain word, as it is believed to. */
CUresult cuTensorMapEncodeTiled (CUtensorMap *out, CUtensorMapDataType type, uint32_t rank,
                                 void *at, const uint64_t *dims, const uint64_t *strides,
                                 const uint32_t *box, const uint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  (void)interleave, (void)swizzle, (void)promotion, (void)fill;
  ENTER (m, machine_enter (true, &refused));
  if (out == NULL || rank < 1 || rank > 5 || dims == NULL || box == NULL || steps == NULL ||
      (rank > 1 && strides == NULL) || (uintptr_t)at % 16 != 0 ||
      !memory_is_device (m, (uintptr_t)at))
    return machine_leave (m, CUDA_ERROR_INVALID_VALUE);
  memset (out, 0, sizeof *out);
  out->opaque[0] = (uintptr_t)at;
  out->opaque[1] = (uint64_t)type << 32 | rank;
  for (uint32_t i = 0; i < rank; i++)
    out->opaque[2 + i] = dims[i];
  return machine_leave (m, CUDA_SUCCESS);
}
