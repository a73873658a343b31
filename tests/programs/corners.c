/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single things that programs do, by name: corners MODULE STEPS NAME.
   pending     a small tensor is freed on one stream, and small ones are made on another later
   addresses   small tensors while all of the address space is taken, and once some is free again
   epochs      another step after every twelve, for as many as there are steps
   ahead       the host waits for no step
   pauses      one tensor of twenty granules, used again and again
   values      a stream writes numbers and waits for them, on the device and elsewhere
   pageable    copies of memory that is not pinned last until another thread has gone on
   held        the same, and the other thread needs the room of what is copied */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/gpu.h"

/* Does a stream that makes a small tensor wait for the long copy of one that frees none now? */
static void pending (gpu *g) {
  enum { BYTES = 4 << 20, ROUNDS = 3 };
  CUstream other[] = { gpu_stream (g), CU_STREAM_PER_THREAD }, s = gpu_stream (g);
  CUevent there = gpu_event (g, 0), here = gpu_event (g, 0);
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

static void train (gpu *g, int steps, int of_a_kind, bool waits) {
  enum { WEIGHTS = 4, FLOATS = 65536, MADE = 16384 };
  CUdeviceptr w[WEIGHTS];
  for (int i = 0; i < WEIGHTS; i++) {
    w[i] = gpu_alloc (g, FLOATS, NULL);
    gpu_fill (g, w[i], FLOATS, i, NULL);
  }
  for (int k = 0; k < steps; k++) {
    CUdeviceptr t = gpu_alloc (g, MADE, NULL);
    gpu_fill (g, t, MADE - 256 * (k / of_a_kind), 1, NULL);
    for (int i = 0; i < WEIGHTS; i++)
      LAUNCH (g, "add", NULL, MADE, &t, &t, &w[i]);
    for (int i = WEIGHTS - 1; i >= 0; i--)
      LAUNCH (g, "add", NULL, MADE, &w[i], &w[i], &t);
    gpu_free (g, t, NULL);
    if (waits)
      gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
  }
}

static void epochs (gpu *g) {
  enum { OF_A_KIND = 12 };
  train (g, OF_A_KIND * g->steps, OF_A_KIND, true);
}

static void ahead (gpu *g) {
  train (g, g->steps, g->steps, false);
}

static void pauses (gpu *g) {
  enum { FLOATS = 20 * 16384 };
  CUdeviceptr at = gpu_alloc (g, FLOATS, NULL);
  for (int i = 0; i < g->steps; i++) {
    gpu_fill (g, at, FLOATS, i, NULL);
    usleep (5000);
  }
  printf ("went well\n");
}

static void values (gpu *g) {
  static const char *const names[] = { "cuStreamWriteValue32", "cuStreamWaitValue64" };
  static const char *const versions[] = { "", "_v2", "_ptsz", "_v2_ptsz" };
  CUdeviceptr large = gpu_alloc (g, 32768, NULL), small = gpu_alloc (g, 8, NULL);
  void *host;
  gpu_must (g, g->mem_host_alloc (&host, 4096, 0), "cuMemHostAlloc");
  CUdeviceptr at[] = { large, small, (CUdeviceptr)(uintptr_t)host };
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 4; k++) {
      char symbol[64];
      CUresult (*call) (CUstream, CUdeviceptr, uint64_t, unsigned int);
      snprintf (symbol, sizeof symbol, "%s%s", names[i], versions[k]);
      *(void **)&call = dlsym (g->library, symbol);
      for (int j = 0; call != NULL && j < 3; j++)
        printf ("%u%c", call (NULL, at[j], 0, 0), j < 2 ? ' ' : '\n');
    }
}

/* A copy in a stream that stands still until `went_on`, or for so long. */
typedef struct copier {
  gpu *g;
  CUdeviceptr at;
  size_t bytes;
  bool out;
  int most_ms;
  atomic_bool begins, went_on;
} copier;

static void stand_still (void *own) {
  copier *c = own;
  for (int i = 0; i < c->most_ms && !atomic_load (&c->went_on); i++)
    usleep (1000);
}

static void *copy_slowly (void *own) {
  copier *c = own;
  gpu *g = c->g;
  void *host = calloc (1, c->bytes);
  gpu_must (g, g->ctx_set_current (g->context), "cuCtxSetCurrent");
  CUstream s = gpu_stream (g);
  gpu_must (g, g->launch_host_func (s, stand_still, c), "cuLaunchHostFunc");
  atomic_store (&c->begins, true);
  if (host != NULL)
    gpu_must (g,
              c->out ? g->copy_out_async (host, c->at, c->bytes, s)
                     : g->copy_in_async (c->at, host, c->bytes, s),
              "copy");
  gpu_must (g, g->stream_synchronize (s), "cuStreamSynchronize");
  free (host);
  return NULL;
}

static void copy_beside (gpu *g, bool out, size_t bytes, int most_ms) {
  copier c = { .g = g, .bytes = bytes, .out = out, .most_ms = most_ms };
  CUstream s = gpu_stream (g);
  CUdeviceptr other;
  pthread_t thread;
  gpu_must (g, g->mem_alloc_async (&c.at, bytes, NULL), "cuMemAllocAsync");
  gpu_must (g, g->mem_alloc_async (&other, bytes, s), "cuMemAllocAsync");
  gpu_must (g, g->set_bytes_async (c.at, 1, bytes, NULL), "fill");
  gpu_must (g, g->ctx_synchronize (), "cuCtxSynchronize");
  if (pthread_create (&thread, NULL, copy_slowly, &c) != 0)
    exit (5);
  while (!atomic_load (&c.begins))
    usleep (1000);
  usleep (20000); /* the copy has begun, or all the same goes well */
  gpu_must (g, g->set_bytes_async (other, 2, bytes, s), "fill");
  atomic_store (&c.went_on, true);
  gpu_must (g, g->stream_synchronize (s), "cuStreamSynchronize");
  pthread_join (thread, NULL);
  gpu_free (g, c.at, NULL);
  gpu_free (g, other, s);
  printf ("both went on\n");
}

static void pageable (gpu *g) {
  copy_beside (g, true, 1 << 20, 60000);
  copy_beside (g, false, 1 << 20, 60000);
}

static void held (gpu *g) {
  copy_beside (g, true, 600 << 10, 100);
}

int main (int argc, char **argv) {
#define CORNER(name) \
  { #name, name }
  static const struct {
    const char *name;
    void (*run) (gpu *g);
  } all[] = { CORNER (pending), CORNER (addresses), CORNER (epochs),   CORNER (ahead),
              CORNER (pauses),  CORNER (values),    CORNER (pageable), CORNER (held) };
  gpu g;
  gpu_open (&g, argc, argv);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (argc > 3 && strcmp (argv[3], all[i].name) == 0)
      all[i].run (&g);
  gpu_close (&g);
  return 0;
}
