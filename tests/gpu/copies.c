/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast a replay's copies are beside a bare loop of asynchronous copies of the same size, each
   way: mapped granules and one pinned arena against plain allocations.
     copies [LIBRARY]
   Prints one JSON object; ends with 1 where a replay reaches less than 95 % of the loop from 16 MiB
   on, with 77 where there is no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/replay/replay.h"
#include "trace/build.h"

enum { SIZES = 4, COPIES = 8, STEPS = 9, GRANULE = 2 << 20, WAYS = 2 };
enum { NO_GPU = 77, LEAST_PPM = 950000 };

static const int64_t sizes[SIZES] = { 4 << 20, 16 << 20, 64 << 20, 256 << 20 };
static const int64_t judged_bytes = 16 << 20;

static const device any = { .name = "any",
                            .memory_bytes = (int64_t)1 << 40,
                            .granule_bytes = GRANULE,
                            .link = { 12000000000, 12000000000, 22000000000, 10000 },
                            .host_bytes = (int64_t)1 << 40,
                            .share_ppm = 1000000 };

static void must (bool good, const error *err) {
  if (good)
    return;
  fprintf (stderr, "copies: %s\n", err->text);
  exit (EXIT_FAILURE);
}

static int compare_ns (const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* ---- the bare loop ---- */

typedef struct loop {
  driver d;
  CUstream s;
  CUevent begin, end;
  CUdeviceptr device;
  void *host;
} loop;

static void configure (const driver *d) {
  emu_configure c;
  error err = { 0 };
  emu_config config = { .memory_bytes = (int64_t)1 << 40,
                        .granule_bytes = GRANULE,
                        .d2h_bytes_per_s = any.link.d2h_bytes_per_s,
                        .h2d_bytes_per_s = any.link.h2d_bytes_per_s,
                        .both_bytes_per_s = any.link.both_bytes_per_s,
                        .copy_ns = any.link.copy_ns,
                        .clock = EMU_VIRTUAL,
                        .bytes = EMU_NONE };
  void *entry = driver_symbol (d, EMU_CONFIGURE);
  if (entry == NULL)
    return;
  memcpy (&c, &entry, sizeof c);
  must (driver_ok (d, c (&config), EMU_CONFIGURE, &err), &err);
}

static bool there_is_none (const char *library) {
  driver d;
  error err = { 0 };
  bool works = driver_open (&d, library, &err);
  if (works) {
    configure (&d);
    works = driver_start (&d, 0, &err);
  }
  if (works)
    driver_stop (&d);
  else
    fprintf (stderr, "copies: %s\n", err.text);
  return !works;
}

static void loop_open (loop *l, const char *library, int64_t bytes) {
  error err = { 0 };
  *l = (loop){ 0 };
  driver *d = &l->d;
  must (driver_open (d, library, &err), &err);
  configure (d);
  must (
      driver_start (d, 0, &err) &&
          driver_ok (d, d->stream_create (&l->s, CU_STREAM_NON_BLOCKING), "cuStreamCreate", &err) &&
          driver_ok (d, d->event_create (&l->begin, CU_EVENT_DEFAULT), "cuEventCreate", &err) &&
          driver_ok (d, d->event_create (&l->end, CU_EVENT_DEFAULT), "cuEventCreate", &err) &&
          driver_ok (d, d->mem_alloc (&l->device, (size_t)bytes), "cuMemAlloc", &err) &&
          driver_ok (d, d->mem_host_alloc (&l->host, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE),
                     "cuMemHostAlloc", &err),
      &err);
}

static void loop_close (loop *l) {
  const driver *d = &l->d;
  d->mem_free_host (l->host);
  d->mem_free (l->device);
  d->event_destroy (l->begin);
  d->event_destroy (l->end);
  d->stream_destroy (l->s);
  driver_stop (&l->d);
}

static int64_t round_of (const loop *l, int way, int64_t bytes) {
  const driver *d = &l->d;
  error err = { 0 };
  float ms = 0;
  must (driver_ok (d, d->event_record (l->begin, l->s), "cuEventRecord", &err), &err);
  for (int i = 0; i < COPIES; i++)
    must (driver_ok (d,
                     way == 0 ? d->copy_out_async (l->host, l->device, (size_t)bytes, l->s)
                              : d->copy_in_async (l->device, l->host, (size_t)bytes, l->s),
                     "a copy", &err),
          &err);
  must (driver_ok (d, d->event_record (l->end, l->s), "cuEventRecord", &err) &&
            driver_ok (d, d->stream_synchronize (l->s), "cuStreamSynchronize", &err) &&
            driver_ok (d, d->event_elapsed (&ms, l->begin, l->end), "cuEventElapsedTime", &err),
        &err);
  return (int64_t)((double)ms * 1e6 / COPIES);
}

/* Of one copy, each way; the first round warms up. */
static void bare (const char *library, int64_t bytes, int64_t ns[WAYS]) {
  loop l;
  loop_open (&l, library, bytes);
  for (int way = 0; way < WAYS; way++) {
    int64_t seen[STEPS];
    round_of (&l, way, bytes);
    for (int i = 0; i < STEPS; i++)
      seen[i] = round_of (&l, way, bytes);
    qsort (seen, STEPS, sizeof *seen, compare_ns);
    ns[way] = seen[STEPS / 2];
  }
  loop_close (&l);
}

/* ---- the replay ---- */

/* A tensor is written, leaves while an op does not need it, and is read: nothing else is on the
   link. The op takes as long as both copies at 4 GB/s. */
static trace *trace_of (int64_t bytes, arena *a) {
  error err = { 0 };
  trace_builder *b = build_new (a, "copies", 1, &err);
  must (b != NULL, &err);
  build_source (b, "bench", "");
  build_tensor (b, "x", bytes, TENSOR_ACTIVATION);
  build_op (b, "write", OP_FORWARD, 1000000);
  build_write (b, 0);
  build_op (b, "idle", OP_FORWARD, bytes / 2 + 2000000);
  build_op (b, "read", OP_BACKWARD, 1000000);
  build_read (b, 0);
  trace *t = build_finish (b, &err);
  must (t != NULL, &err);
  return t;
}

static int64_t median_span (const span *s, int32_t count) {
  int64_t ns[STEPS];
  for (int32_t i = 0; i < count; i++)
    ns[i] = s[i].end_ns - s[i].start_ns;
  qsort (ns, (size_t)count, sizeof *ns, compare_ns);
  return ns[count / 2];
}

static void replayed (const char *library, int64_t bytes, int64_t ns[WAYS]) {
  error err = { 0 };
  arena *a = arena_new (0);
  trace *t = trace_of (bytes, a);
  char digest[TRACE_DIGEST];
  must (trace_digest (t, digest, &err), &err);
  int32_t granules = (int32_t)(bytes / GRANULE), zero = 0;
  move m = {
    .unit = 0, .of = 1, .out_after = 0, .in_before = 2, .in_ops = NO_WAIT, .in_outs = NO_WAIT
  };
  stay stays[2] = { { STAY_TENSOR, 0, 0, 0, 1 }, { STAY_MOVE, 0, 0, 1, 1 } };
  granule_run runs[2] = { { 0, granules }, { granules, granules } };
  plan p = { .trace_digest = digest,
             .device = any,
             .budget_bytes = 2 * bytes,
             .host_bytes = bytes,
             .moves = &m,
             .n_moves = 1,
             .out_order = &zero,
             .n_outs = 1,
             .in_order = &zero,
             .n_ins = 1,
             .placement = { .granule_bytes = GRANULE,
                            .granules = 2 * granules,
                            .stays = stays,
                            .n_stays = 2,
                            .runs = runs,
                            .n_runs = 2 } };
  bool emulated = library != NULL;
  replay_options o = { .library = library,
                       .emulated = emulated,
                       .clock = emulated ? EMU_VIRTUAL : EMU_REAL,
                       .bytes = emulated ? EMU_NONE : EMU_ALL,
                       .iterations = STEPS };
  replay_result r;
  must (replay_run (t, &p, &o, a, &r, &err), &err);
  ns[0] = median_span (r.outs, r.timed);
  ns[1] = median_span (r.ins, r.timed);
  arena_free (a);
}

int main (int argc, char **argv) {
  const char *library = argc > 1 ? argv[1] : NULL;
  if (there_is_none (library))
    return NO_GPU;
  bool good = true;
  printf ("{\"copies\": [");
  for (int i = 0; i < SIZES; i++) {
    int64_t plain_ns[WAYS], ours_ns[WAYS];
    bare (library, sizes[i], plain_ns);
    replayed (library, sizes[i], ours_ns);
    for (int way = 0; way < WAYS; way++) {
      int64_t ppm = ours_ns[way] == 0 ? 0 : plain_ns[way] * 1000000 / ours_ns[way];
      good = good && (sizes[i] < judged_bytes || ppm >= LEAST_PPM);
      printf (
          "%s\n {\"bare_ns\": %lld, \"bytes\": %lld, \"rate_ppm\": %lld, \"replayed_ns\": %lld, "
          "\"way\": \"%s\"}",
          i + way == 0 ? "" : ",", (long long)plain_ns[way], (long long)sizes[i], (long long)ppm,
          (long long)ours_ns[way], way == 0 ? "out" : "in");
    }
  }
  printf ("\n], \"enough\": %s}\n", good ? "true" : "false");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
