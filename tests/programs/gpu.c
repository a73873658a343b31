/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/programs/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gpu_must (const gpu *g, CUresult r, const char *what) {
  const char *name = NULL;
  if (r == CUDA_SUCCESS)
    return;
  while (r == CUDA_ERROR_DEINITIALIZED) /* another thread ends the process */
    pause ();
  g->get_error_name (r, &name);
  fprintf (stderr, "%s: %s\n", what, name == NULL ? "an error" : name);
  exit (3);
}

/* As a runtime does: the driver by its name, then each entry through the driver's own question. */
void gpu_open (gpu *g, int argc, char **argv) {
  memset (g, 0, sizeof *g);
  if (argc < 2) {
    fprintf (stderr, "usage: %s MODULE [STEPS]\n", argv[0]);
    exit (2);
  }
  g->steps = argc > 2 ? (int)strtol (argv[2], NULL, 10) : 12;
  g->library = dlopen ("libcuda.so.1", RTLD_NOW);
  if (g->library == NULL) {
    fprintf (stderr, "%s\n", dlerror ());
    exit (4);
  }
  CUresult (*ask) (const char *, void **, int, uint64_t, CUdriverProcAddressQueryResult *);
  *(void **)&ask = dlsym (g->library, "cuGetProcAddress_v2");
#define DRIVER(field, symbol, must, parameters)                                               \
  {                                                                                           \
    char name[64];                                                                            \
    void *found = NULL;                                                                       \
    snprintf (name, sizeof name, "%s", #symbol);                                              \
    if (strlen (name) > 3 && strcmp (name + strlen (name) - 3, "_v2") == 0)                   \
      name[strlen (name) - 3] = 0;                                                            \
    if (ask (name, &found, 12080, 0, &(CUdriverProcAddressQueryResult){ 0 }) != CUDA_SUCCESS) \
      found = NULL;                                                                           \
    *(void **)&g->field = found;                                                              \
  }
#include "executor/driver/driver.def"
#undef DRIVER
  CUdevice device;
  const char *ordinal = getenv ("GPU_DEVICE");
  gpu_must (g, g->init (0), "cuInit");
  gpu_must (g, g->device_get (&device, ordinal ? (int)strtol (ordinal, NULL, 10) : 0), "cuDeviceGet");
  gpu_must (g, g->primary_retain (&g->context, device), "cuDevicePrimaryCtxRetain");
  gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
  gpu_must (g, g->module_load_file (&g->module, argv[1]), argv[1]);
}

void gpu_close (gpu *g) {
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
}

CUstream gpu_stream (const gpu *g) {
  CUstream s;
  gpu_must (g, g->stream_create (&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return s;
}

CUevent gpu_event (const gpu *g, unsigned flags) {
  CUevent e;
  gpu_must (g, g->event_create (&e, flags), "cuEventCreate");
  return e;
}

CUdeviceptr gpu_alloc (gpu *g, long floats, CUstream s) {
  CUdeviceptr at = 0;
  gpu_must (g, g->mem_alloc_async (&at, (size_t)floats * sizeof (float), s), "cuMemAllocAsync");
  return at;
}

void gpu_free (gpu *g, CUdeviceptr at, CUstream s) {
  gpu_must (g, g->mem_free_async (at, s), "cuMemFreeAsync");
}

void gpu_launch (gpu *g, const char *kernel, CUstream s, long count, int n, void **parameters) {
  enum { MOST = 16, THREADS = 256 };
  void *all[MOST];
  CUfunction f;
  gpu_must (g, g->module_get_function (&f, g->module, kernel), kernel);
  memcpy (all, parameters, (size_t)n * sizeof *all);
  all[n] = &count;
  gpu_must (g,
            g->launch (f, (unsigned int)((count + THREADS - 1) / THREADS), 1, 1, THREADS, 1, 1, 0,
                       s, all, NULL),
            kernel);
}

void gpu_fill (gpu *g, CUdeviceptr at, long floats, long seed, CUstream s) {
  LAUNCH (g, "fill", s, floats, &at, &seed);
}

void gpu_say_scalar (gpu *g, const char *what, int step, CUdeviceptr at, CUstream s) {
  uint32_t bits = 0;
  gpu_must (g, g->copy_out_async (&bits, at, sizeof bits, s), "cuMemcpyDtoHAsync");
  gpu_must (g, g->stream_synchronize (s), "cuStreamSynchronize");
  printf ("%s %d %08x\n", what, step, bits);
}

void gpu_say_digest (gpu *g, const char *what, CUdeviceptr at, long floats) {
  size_t bytes = (size_t)floats * sizeof (float);
  unsigned char *host = calloc (bytes + 1, 1); /* a device without bytes leaves it alone */
  uint64_t digest = 14695981039346656037u;
  if (host == NULL)
    exit (5);
  gpu_must (g, g->copy_out (host, at, bytes), "cuMemcpyDtoH");
  for (size_t i = 0; i < bytes; i++)
    digest = (digest ^ host[i]) * 1099511628211u;
  printf ("%s %016llx\n", what, (unsigned long long)digest);
  free (host);
}
