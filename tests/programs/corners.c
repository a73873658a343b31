/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single things that programs do, by name: corners MODULE STEPS NAME.
   pending     a small tensor is freed on one stream, and small ones are made on another from then on
   addresses   small tensors while all of the address space is taken, and once some is free again */
#include <stdio.h>
#include <string.h>

#include "tests/programs/gpu.h"

static CUstream new_stream (const gpu *g) {
  CUstream s;
  gpu_must (g, g->stream_create (&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return s;
}

static CUevent new_event (const gpu *g) {
  CUevent e;
  gpu_must (g, g->event_create (&e, 0), "cuEventCreate");
  return e;
}

/* Does a stream that makes a small tensor wait for the long copy of one that frees none now? */
static void pending (gpu *g) {
  enum { BYTES = 4 << 20, ROUNDS = 3 };
  CUstream other[] = { new_stream (g), CU_STREAM_PER_THREAD }, s = new_stream (g);
  CUevent there = new_event (g), here = new_event (g);
  void *host;
  gpu_must (g, g->mem_host_alloc (&host, BYTES, 0), "cuMemHostAlloc");
  for (int k = 0; k < 2; k++) {
    CUdeviceptr large = gpu_alloc (g, BYTES / 4, other[k]), small = gpu_alloc (g, 128, other[k]);
    gpu_must (g, g->set_bytes_async (large, 1, BYTES, other[k]), "fill");
    gpu_free (g, small, other[k]);
    small = gpu_alloc (g, 128, s); /* who waits for that free waits now, for next to nothing */
    for (int i = 0; i < ROUNDS; i++) {
      gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
      gpu_must (g, g->copy_out_async (host, large, BYTES, other[k]), "copy");
      g->event_record (there, other[k]);
      small = gpu_alloc (g, 128, s);
      gpu_must (g, g->set_bytes_async (small, 1, 512, s), "fill");
      g->event_record (here, s);
      gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
      float ms = 0;
      gpu_must (g, g->event_elapsed (&ms, here, there), "cuEventElapsedTime");
      printf ("%d: the fill is %s the copy\n", k, ms > 0 ? "beside" : "behind");
    }
    gpu_free (g, large, other[k]);
  }
}

/* Granules of 4 GiB: there are so few of them that the address space is soon taken. */
static void addresses (gpu *g) {
  enum { MOST = 1024 };
  const size_t unit = (size_t)8 << 20, small = 200 * unit, large = 300 * unit;
  CUdeviceptr at[3] = { 0 }, many[MOST];
  int n = 0, again = 0;
  for (int i = 0; i < 2; i++) /* no third has room beside them */
    gpu_must (g, g->mem_alloc_async (&at[i], small, NULL), "cuMemAllocAsync");
  while (n < MOST && g->mem_alloc_async (&many[n], large, NULL) == CUDA_SUCCESS)
    n++;
  printf ("%s\n", n > 0 && n < MOST ? "all is taken" : "there is no end");
  for (int i = 0; i < 3; i++)
    printf ("a small one: %u\n", g->mem_alloc_async (&at[2], small, NULL));
  printf ("a smaller one: %u\n", g->mem_alloc_async (&at[2], unit, NULL));
  gpu_must (g, g->mem_free_async (at[2], NULL), "cuMemFreeAsync");
  gpu_must (g, g->mem_free_async (many[n / 2], NULL), "cuMemFreeAsync");
  gpu_must (g, g->mem_alloc_async (&at[2], small, NULL), "cuMemAllocAsync");
  gpu_must (g, g->set_bytes_async (at[2], 1, 512, NULL), "fill");
  for (int i = 0; i < 3; i++)
    gpu_must (g, g->mem_free_async (at[i], NULL), "cuMemFreeAsync");
  for (int i = 0; i < n; i++)
    again += i != n / 2 && g->mem_free_async (many[i], NULL) == CUDA_SUCCESS;
  printf ("%s\n", again == n - 1 ? "all were freed" : "some were not");
}

int main (int argc, char **argv) {
#define CORNER(name) \
  { #name, name }
  static const struct {
    const char *name;
    void (*run) (gpu *g);
  } all[] = { CORNER (pending), CORNER (addresses) };
  gpu g;
  gpu_open (&g, argc, argv);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (argc > 3 && strcmp (argv[3], all[i].name) == 0)
      all[i].run (&g);
  gpu_close (&g);
  return 0;
}
