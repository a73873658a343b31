/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a driver really does, for the questions of docs/emulator.md that headers leave open (G1 to
   G5, G11, G14). experiments [LIBRARY]; prints one JSON object.  It uses the driver table only, so
   it also runs on the emulator, where its answers are the emulator's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "executor/kernels/kernels.h"

enum { ROUNDS = 1999, COPIES = 8, SPIN_MS = 200, SIZES = 3, PAIRS = 1000 };

static driver d;
static size_t granule;
static json_writer w;

static const CUmemAllocationProp *prop (void) {
  static CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
  p.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, d.device };
  return &p;
}

static int64_t now_ns (void) {
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What must work for the rest to mean anything. */
static void must (CUresult r, const char *what) {
  if (r == CUDA_SUCCESS)
    return;
  fprintf (stderr, "experiments: %s: %s\n", what, driver_error_name (&d, r));
  exit (EXIT_FAILURE);
}

static CUdeviceptr reserve (size_t bytes) {
  CUdeviceptr at;
  must (d.mem_reserve (&at, bytes, 0, 0, 0), "cuMemAddressReserve");
  return at;
}

static CUmemGenericAllocationHandle create (size_t bytes) {
  CUmemGenericAllocationHandle h;
  must (d.mem_create (&h, bytes, prop (), 0), "cuMemCreate");
  return h;
}

static CUresult allow (CUdeviceptr at, size_t bytes) {
  CUmemAccessDesc a = { prop ()->location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  return d.mem_set_access (at, bytes, &a, 1);
}

static CUstream stream (void) {
  CUstream s;
  must (d.stream_create (&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return s;
}

/* G1: granularity; an offset; less than a handle; a large reservation. */
static void limits (void) {
  CUdeviceptr at = reserve (8 * granule), large = 0;
  CUmemGenericAllocationHandle h = create (4 * granule);
  size_t recommended = 0;
  must (d.mem_granularity (&recommended, prop (), CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "granule");
  json_add_object (&w, "limits");
  json_add_int (&w, "granule_bytes", (int64_t)granule);
  CUresult r = d.mem_map (at, 2 * granule, 0, h, 0);
  json_add_text (&w, "map_less_than_a_handle", driver_error_name (&d, r));
  if (r == CUDA_SUCCESS)
    d.mem_unmap (at, 2 * granule);
  r = d.mem_map (at, 2 * granule, 2 * granule, h, 0);
  json_add_text (&w, "map_with_an_offset", driver_error_name (&d, r));
  if (r == CUDA_SUCCESS)
    d.mem_unmap (at, 2 * granule);
  json_add_int (&w, "recommended_bytes", (int64_t)recommended);
  r = d.mem_reserve (&large, (size_t)1 << 44, 0, 0, 0);
  json_add_text (&w, "reserve_16_tib", driver_error_name (&d, r));
  if (r == CUDA_SUCCESS)
    d.mem_address_free (large, (size_t)1 << 44);
  d.mem_release (h);
  d.mem_address_free (at, 8 * granule);
  json_close_object (&w);
}

/* G2: two addresses with their chunks in opposite order, written through one, read through the
 * other. */
static void aliases (void) {
  CUmemGenericAllocationHandle h[2] = { create (granule), create (granule) };
  CUdeviceptr a = reserve (2 * granule), b = reserve (2 * granule);
  for (int i = 0; i < 2; i++) {
    must (d.mem_map (a + (CUdeviceptr)i * granule, granule, 0, h[i], 0), "cuMemMap");
    must (d.mem_map (b + (CUdeviceptr)(1 - i) * granule, granule, 0, h[i], 0), "cuMemMap");
  }
  must (allow (a, 2 * granule), "cuMemSetAccess");
  must (allow (b, 2 * granule), "cuMemSetAccess");
  CUstream s = stream ();
  void *host;
  must (d.mem_host_alloc (&host, 8, 0), "cuMemHostAlloc");
  uint32_t *got = host;
  int64_t wrong = 0;
  for (uint32_t i = 1; i <= ROUNDS; i++) {
    must (d.set_words_async (a, i, granule / 2, s), "cuMemsetD32Async");
    must (d.copy_out_async (&got[0], b + granule, 4, s), "cuMemcpyDtoHAsync");
    must (d.set_words_async (b, i + 7, granule / 2, s), "cuMemsetD32Async");
    must (d.copy_out_async (&got[1], a + 2 * granule - 4, 4, s), "cuMemcpyDtoHAsync");
    must (d.stream_synchronize (s), "cuStreamSynchronize");
    wrong += (got[0] != i) + (got[1] != i + 7);
  }
  json_add_object (&w, "aliases");
  json_add_int (&w, "mismatches", wrong);
  json_add_int (&w, "rounds", ROUNDS);
  json_add_text (&w, "unmap_of_two_mappings", driver_error_name (&d, d.mem_unmap (a, 2 * granule)));
  json_close_object (&w);
  d.mem_unmap (b, 2 * granule);
  for (int i = 0; i < 2; i++)
    d.mem_release (h[i]);
  d.mem_free_host (host);
}

static void put_copies (const char *key, CUdeviceptr at, char *host, size_t bytes, CUstream s) {
  json_add_object (&w, key);
  for (int way = 0; way < 2; way++) {
    int64_t start = 0, issued = 0;
    for (int i = -1; i < COPIES; i++) {
      if (i == 0)
        start = now_ns ();
      must (way == 0 ? d.copy_in_async (at, host, bytes, s) : d.copy_out_async (host, at, bytes, s),
            "a copy");
      if (i < 0)
        must (d.stream_synchronize (s), "cuStreamSynchronize"); /* warm now */
    }
    issued = now_ns () - start;
    must (d.stream_synchronize (s), "cuStreamSynchronize");
    json_add_int (&w, way == 0 ? "in_issue_ns" : "out_issue_ns", issued / COPIES);
    json_add_int (&w, way == 0 ? "in_ns" : "out_ns", (now_ns () - start) / COPIES);
  }
  json_close_object (&w);
}

/* G3: what mapping costs by size of chunk, and copies of mapped against plain memory. */
static void costs (size_t total) {
  static const size_t chunks[SIZES] = { 2 << 20, 16 << 20, 64 << 20 };
  CUstream s = stream ();
  void *host;
  CUdeviceptr plain;
  must (d.mem_host_alloc (&host, total, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
  json_add_array (&w, "costs");
  for (int k = 0; k < SIZES; k++) {
    size_t chunk = chunks[k], n = total / chunk;
    CUdeviceptr at = reserve (total), back = reserve (total);
    CUmemGenericAllocationHandle *h = calloc (n, sizeof *h);
    if (h == NULL || n == 0)
      exit (EXIT_FAILURE);
    int64_t t0 = now_ns ();
    for (size_t i = 0; i < n; i++)
      h[i] = create (chunk);
    int64_t t1 = now_ns ();
    for (size_t i = 0; i < n; i++)
      must (d.mem_map (at + i * chunk, chunk, 0, h[i], 0), "cuMemMap");
    int64_t t2 = now_ns ();
    must (allow (at, total), "cuMemSetAccess");
    int64_t t3 = now_ns ();
    for (size_t i = 0; i < n; i++)
      must (d.mem_map (back + i * chunk, chunk, 0, h[n - 1 - i], 0), "cuMemMap");
    must (allow (back, total), "cuMemSetAccess");
    int64_t t4 = now_ns ();
    json_open_object (&w);
    json_add_int (&w, "access_ns_per_chunk", (t3 - t2) / (int64_t)n);
    json_add_int (&w, "chunk_bytes", (int64_t)chunk);
    json_add_int (&w, "create_ns_per_chunk", (t1 - t0) / (int64_t)n);
    json_add_int (&w, "map_ns_per_chunk", (t2 - t1) / (int64_t)n);
    put_copies ("mapped", back, host, total, s);
    json_add_int (&w, "second_map_and_access_ns_per_chunk", (t4 - t3) / (int64_t)n);
    json_close_object (&w);
    d.mem_unmap (at, total);
    d.mem_unmap (back, total);
    for (size_t i = 0; i < n; i++)
      d.mem_release (h[i]);
    free (h);
  }
  json_open_object (&w);
  must (d.mem_alloc (&plain, total), "cuMemAlloc");
  put_copies ("plain", plain, host, total, s);
  json_close_object (&w);
  json_close_array (&w);
  d.mem_free (plain);
  d.mem_free_host (host);
}

/* G4: does mapping wait for a kernel that has nothing to do with it? */
static void quiet (const kernels *k) {
  error err = { 0 };
  CUmemGenericAllocationHandle h = create (granule);
  CUdeviceptr at = reserve (granule);
  CUstream s = stream ();
  must (d.mem_map (at, granule, 0, h, 0), "cuMemMap");
  must (allow (at, granule), "cuMemSetAccess");
  int64_t t0 = now_ns ();
  if (!kernels_wait (&d, k, s, (int64_t)SPIN_MS * 1000000, &err))
    exit (EXIT_FAILURE);
  int64_t t1 = now_ns ();
  must (d.mem_unmap (at, granule), "cuMemUnmap");
  int64_t t2 = now_ns ();
  bool runs_after_unmap = d.stream_query (s) == CUDA_ERROR_NOT_READY;
  must (d.mem_map (at, granule, 0, h, 0), "cuMemMap");
  must (allow (at, granule), "cuMemSetAccess");
  int64_t t3 = now_ns ();
  bool runs = d.stream_query (s) == CUDA_ERROR_NOT_READY;
  must (d.stream_synchronize (s), "cuStreamSynchronize");
  json_add_object (&w, "beside_a_kernel");
  json_add_bool (&w, "kernel_runs_after_map", runs);
  json_add_bool (&w, "kernel_runs_after_unmap", runs_after_unmap);
  json_add_int (&w, "kernel_seen_ns", now_ns () - t0);
  json_add_int (&w, "map_and_access_ns", t3 - t2);
  json_add_int (&w, "unmap_ns", t2 - t1);
  json_close_object (&w);
}

/* G5: parameter info by function and by kernel handle, past the end too; the address in a tensor
 * map. */
static void parameters (const kernels *k) {
  size_t offset = 0, bytes = 0;
  json_add_object (&w, "parameters");
  if (d.func_get_param != NULL) {
    json_add_text (&w, "function_0",
                   driver_error_name (&d, d.func_get_param (k->touch, 0, &offset, &bytes)));
    json_add_text (&w, "function_past_the_end",
                   driver_error_name (&d, d.func_get_param (k->touch, 6, &offset, &bytes)));
  }
  CUlibrary library;
  CUkernel kernel;
  if (d.library_load != NULL && d.kernel_get_param != NULL &&
      d.library_load (&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS &&
      d.library_get_kernel (&kernel, library, "ferry_touch") == CUDA_SUCCESS) {
    json_add_text (
        &w, "function_query_of_a_kernel_handle",
        driver_error_name (&d, d.func_get_param ((CUfunction)(void *)kernel, 0, &offset, &bytes)));
    json_add_text (&w, "kernel_1",
                   driver_error_name (&d, d.kernel_get_param (kernel, 1, &offset, &bytes)));
    json_add_int (&w, "kernel_1_offset", (int64_t)offset);
  }
  CUdeviceptr at;
  must (d.mem_alloc (&at, 1 << 20), "cuMemAlloc");
  CUtensorMap map;
  uint64_t dims[2] = { 64, 64 }, strides[1] = { 64 * 4 };
  uint32_t box[2] = { 8, 8 }, steps[2] = { 1, 1 };
  CUresult r = d.tensor_map_encode == NULL
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : d.tensor_map_encode (&map, 7, 2, (void *)(uintptr_t)at, dims, strides, box,
                                          steps, 0, 0, 0, 0);
  json_add_text (&w, "tensor_map", driver_error_name (&d, r));
  int64_t word = -1;
  for (int i = 15; i >= 0 && r == CUDA_SUCCESS; i--) {
    uint64_t x;
    memcpy (&x, (const char *)&map + 8 * i, 8);
    if (x == at)
      word = i;
  }
  json_add_int (&w, "tensor_map_word_of_the_address", word);
  json_close_object (&w);
  d.mem_free (at);
}

/* Bytes one way, in copies of `piece`, all issued at once. */
static void issue_copies (int way, CUdeviceptr at, char *host, size_t piece, CUstream s) {
  for (int i = 0; i < COPIES; i++)
    must (way == 0 ? d.copy_in_async (at, host, piece, s) : d.copy_out_async (host, at, piece, s),
          "a copy");
}

/* How long `ways` (1: in, 2: out, 3: both) take, beside a kernel or not. */
static int64_t time_copies (const kernels *k, int ways, bool busy, CUdeviceptr at[2], char *host[2],
                            size_t piece, CUstream s[3]) {
  error err = { 0 };
  must (d.ctx_synchronize (), "cuCtxSynchronize");
  if (busy && !kernels_wait (&d, k, s[2], (int64_t)10 * SPIN_MS * 1000000, &err))
    exit (EXIT_FAILURE);
  int64_t start = now_ns ();
  for (int way = 0; way < 2; way++)
    if (ways >> way & 1)
      issue_copies (way, at[way], host[way], piece, s[way]);
  for (int way = 0; way < 2; way++)
    must (d.stream_synchronize (s[way]), "cuStreamSynchronize");
  return now_ns () - start;
}

/* G11: each way alone, both at once, and both beside a spinning kernel; what pinning costs when the
   driver allocates, and when memory that is there is registered. */
static void together (const kernels *k, size_t piece, size_t pinned) {
  CUdeviceptr at[2];
  char *host[2];
  CUstream s[3] = { stream (), stream (), stream () };
  for (int i = 0; i < 2; i++) {
    void *h;
    must (d.mem_alloc (&at[i], piece), "cuMemAlloc");
    must (d.mem_host_alloc (&h, piece, 0), "cuMemHostAlloc");
    host[i] = h;
  }
  time_copies (k, 3, false, at, host, piece, s); /* warm now */
  json_add_object (&w, "together");
  json_add_int (&w, "both_beside_a_kernel_ns", time_copies (k, 3, true, at, host, piece, s));
  json_add_int (&w, "both_ns", time_copies (k, 3, false, at, host, piece, s));
  json_add_int (&w, "bytes_each_way", (int64_t)piece * COPIES);
  json_add_int (&w, "in_ns", time_copies (k, 1, false, at, host, piece, s));
  json_add_int (&w, "out_ns", time_copies (k, 2, false, at, host, piece, s));
  must (d.ctx_synchronize (), "cuCtxSynchronize");
  void *h = NULL;
  int64_t t0 = now_ns ();
  CUresult r = d.mem_host_alloc (&h, pinned, 0);
  int64_t t1 = now_ns ();
  json_add_int (&w, "pinned_bytes", (int64_t)pinned);
  json_add_text (&w, "pinning_by_allocating", driver_error_name (&d, r));
  json_add_int (&w, "pinning_by_allocating_ns", t1 - t0);
  if (r == CUDA_SUCCESS)
    d.mem_free_host (h);
  h = aligned_alloc (2 << 20, pinned);
  if (h != NULL && d.mem_host_register != NULL) {
    memset (h, 1, pinned); /* first touch is not the driver's doing */
    t0 = now_ns ();
    r = d.mem_host_register (h, pinned, 0);
    t1 = now_ns ();
    json_add_text (&w, "pinning_by_registering", driver_error_name (&d, r));
    json_add_int (&w, "pinning_by_registering_ns", t1 - t0);
    if (r == CUDA_SUCCESS)
      d.mem_host_unregister (h);
  }
  free (h);
  json_close_object (&w);
  for (int i = 0; i < 2; i++) {
    d.mem_free (at[i]);
    d.mem_free_host (host[i]);
  }
}

/* What the host pays for PAIRS short kernels on one stream, each with a record behind it and a wait
   for it on another stream, or without. */
static int64_t time_pairs (const kernels *k, bool pairs, CUevent v, CUstream s[2]) {
  error err = { 0 };
  must (d.ctx_synchronize (), "cuCtxSynchronize");
  int64_t start = now_ns ();
  for (int i = 0; i < PAIRS; i++) {
    if (!kernels_wait (&d, k, s[0], 1000, &err))
      exit (EXIT_FAILURE);
    if (!pairs)
      continue;
    must (d.event_record (v, s[0]), "cuEventRecord");
    must (d.stream_wait_event (s[1], v, 0), "cuStreamWaitEvent");
  }
  int64_t ns = now_ns () - start;
  must (d.ctx_synchronize (), "cuCtxSynchronize");
  return ns;
}

/* G14: a record and a wait with each of 1000 ops. */
static void events (const kernels *k) {
  CUstream s[2] = { stream (), stream () };
  CUevent v;
  must (d.event_create (&v, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  time_pairs (k, true, v, s); /* warm now */
  int64_t bare = time_pairs (k, false, v, s), with = time_pairs (k, true, v, s);
  json_add_object (&w, "events");
  json_add_int (&w, "launch_ns", bare / PAIRS);
  json_add_int (&w, "ops", PAIRS);
  json_add_int (&w, "pair_ns", (with - bare) / PAIRS);
  json_close_object (&w);
  d.event_destroy (v);
}

/* G15: what a thread may ask for that has set no context, as PyTorch's backward pass begins. */
enum { ALLOCATE, ALLOCATE_0, COPY, FREE, HAS, LAUNCH, RECORD, SYNCHRONIZE, QUESTIONS };

typedef struct orphan {
  const kernels *k;
  CUstream stream;
  CUevent event;
  CUresult answer[QUESTIONS];
} orphan;

static void *ask (void *of) {
  orphan *o = of;
  CUcontext now = NULL;
  CUdeviceptr at = 0, other = 0;
  int32_t word = 0;
  error err = { 0 };
  CUresult *r = o->answer;
  r[HAS] = d.ctx_get_current (&now) == CUDA_SUCCESS && now == NULL ? CUDA_ERROR_INVALID_CONTEXT
                                                                   : CUDA_SUCCESS;
  r[ALLOCATE_0] = d.mem_alloc_async (&other, 1 << 20, NULL);
  r[ALLOCATE] = d.mem_alloc_async (&at, 1 << 20, o->stream);
  r[COPY] = at == 0 ? r[ALLOCATE] : d.copy_out_async (&word, at, sizeof word, o->stream);
  r[RECORD] = d.event_record (o->event, o->stream);
  r[LAUNCH] =
      kernels_wait (&d, o->k, o->stream, 1000000, &err) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  r[SYNCHRONIZE] = d.stream_synchronize (o->stream);
  r[FREE] = at == 0 ? r[ALLOCATE] : d.mem_free_async (at, o->stream);
  return NULL;
}

static void orphans (const kernels *k) {
  static const char *const names[QUESTIONS] = {
    "allocate_in_a_stream", "allocate_in_stream_0", "copy", "free", "has_one", "launch", "record",
    "synchronize"
  };
  orphan o = { .k = k, .stream = stream () };
  pthread_t t;
  must (d.event_create (&o.event, 0), "cuEventCreate");
  if (pthread_create (&t, NULL, ask, &o) != 0 || pthread_join (t, NULL) != 0)
    exit (EXIT_FAILURE);
  json_add_object (&w, "thread_without_context");
  for (int i = 0; i < QUESTIONS; i++)
    json_add_text (&w, names[i], driver_error_name (&d, o.answer[i]));
  json_close_object (&w);
}

int main (int argc, char **argv) {
  error err = { 0 };
  bytes text = { 0 };
  kernels k;
  bool emulated = argc > 1;
  char name[128] = "";
  if (!driver_open (&d, emulated ? argv[1] : NULL, &err)) {
    fprintf (stderr, "experiments: %s\n", err.text);
    return 77; /* nothing to try it on */
  }
  if (!driver_start (&d, 0, &err) || !kernels_load (&d, emulated, false, &k, &err)) {
    fprintf (stderr, "experiments: %s\n", err.text);
    return EXIT_FAILURE;
  }
  must (d.device_get_name (name, sizeof name, d.device), "cuDeviceGetName");
  must (d.mem_granularity (&granule, prop (), CU_MEM_ALLOC_GRANULARITY_MINIMUM), "granule");
  json_begin (&w, 2);
  json_open_object (&w);
  aliases ();
  quiet (&k);
  costs (emulated ? (size_t)64 << 20 : (size_t)512 << 20);
  json_add_text (&w, "device", name);
  json_add_int (&w, "driver", d.version);
  events (&k);
  limits ();
  parameters (&k);
  orphans (&k);
  together (&k, emulated ? (size_t)4 << 20 : (size_t)256 << 20,
            emulated ? (size_t)16 << 20 : (size_t)8 << 30);
  json_close_object (&w);
  if (!json_finish (&w, &text, &err)) {
    fprintf (stderr, "experiments: %s\n", err.text);
    return EXIT_FAILURE;
  }
  puts (text.data);
  bytes_free (&text);
  driver_stop (&d);
  return EXIT_SUCCESS;
}
