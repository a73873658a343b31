/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver's graphs: captured, built, asked for, launched, changed.  Where the clock
   matters, on both (loop index 0: real, 1: virtual). */
#include <pthread.h>

#include "tests/emu_calls.h"
#include "tests/suite.h"

enum { GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL, RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED };

#define IS(code, call) ck_assert_uint_eq ((call), (code))

static CUgraphExec ready (CUgraph g) {
  CUgraphExec x;
  OK (d->graph_instantiate (&x, g, 0));
  return x;
}

static size_t count (CUgraph g) {
  size_t n;
  OK (d->graph_nodes (g, NULL, &n));
  return n;
}

static CUgraphNode node_at (CUgraph g, size_t i) {
  CUgraphNode all[16];
  size_t n = 16;
  OK (d->graph_nodes (g, all, &n));
  ck_assert_uint_lt (i, n);
  return all[i];
}

CLAIM_EACH (captured_work_runs_when_it_is_launched_and_each_time, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUstreamCaptureStatus status;
  OK (d->capture_begin (s, GLOBAL));
  OK (d->stream_is_capturing (s, &status));
  ck_assert_uint_eq (status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK (d->set_words_async (at + 4, 7, 1, s));
  OK (add (f, s, at, 2, 3, 1000));
  OK (d->copy_within_async (at + 8, at, 8, s));
  CUgraph g;
  OK (d->capture_end (s, &g));
  OK (d->stream_is_capturing (s, &status));
  ck_assert_uint_eq (status, CU_STREAM_CAPTURE_STATUS_NONE);
  OK (d->ctx_synchronize ());
  ck_assert_uint_eq (word (at), 0);
  ck_assert_uint_eq (count (g), 3);
  CUgraphExec x = ready (g);
  OK (d->graph_destroy (g));
  for (uint32_t i = 1; i <= 3; i++) {
    OK (d->graph_launch (x, s));
    OK (d->stream_synchronize (s));
    ck_assert_uint_eq (word (at), 3 * i);
    ck_assert_uint_eq (word (at + 8), 3 * i);
    ck_assert_uint_eq (word (at + 12), 10);
  }
  OK (d->exec_destroy (x));
  IS (CUDA_ERROR_INVALID_VALUE, d->graph_launch (x, s));
}

CLAIM (branches_run_side_by_side_and_are_joined) {
  start (1);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent fork = event_new (), join = event_new (), before = event_new (), after = event_new ();
  OK (d->capture_begin (s, GLOBAL));
  OK (add (f, s, at, 1, 1, 1000000));
  OK (d->event_record (fork, s));
  OK (d->stream_wait_event (o, fork, 0));
  OK (add (f, o, at + 4096, 1, 5, 3000000));
  OK (d->event_record (join, o));
  OK (add (f, s, at, 1, 1, 3000000));
  OK (d->stream_wait_event (s, join, 0));
  OK (d->copy_within_async (at + 4, at + 4096, 4, s));
  CUgraph g;
  OK (d->capture_end (s, &g));
  CUgraphExec x = ready (g);
  OK (d->event_record (before, s));
  OK (d->graph_launch (x, s));
  OK (d->event_record (after, s));
  OK (d->ctx_synchronize ());
  ck_assert_uint_eq (word (at), 2);
  ck_assert_uint_eq (word (at + 4), 5);
  int64_t took = time_of (after) - time_of (before);
  ck_assert_int_ge (took, 4000000);
  ck_assert_int_lt (took, 5000000);
}

/* Launches of one graph take turns, whatever their streams. */
CLAIM (two_launches_of_a_graph_take_turns) {
  start (1);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent first = event_new (), second = event_new ();
  OK (d->capture_begin (s, GLOBAL));
  OK (add (f, s, at, 1, 1, 2000000));
  CUgraph g;
  OK (d->capture_end (s, &g));
  CUgraphExec x = ready (g);
  OK (d->graph_launch (x, s));
  OK (d->event_record (first, s));
  OK (d->graph_launch (x, o));
  OK (d->event_record (second, o));
  OK (d->ctx_synchronize ());
  ck_assert_uint_eq (word (at), 2);
  ck_assert_int_eq (time_of (second) - time_of (first), 2000000);
}

CLAIM (what_a_capture_does_not_allow_is_said_and_ends_it) {
  start (1);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING),
           b = stream_new (CU_STREAM_DEFAULT);
  CUdeviceptr at = alloc (G), more;
  CUevent outside = event_new (), v = event_new ();
  CUgraph g;
  OK (d->event_record (outside, o));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d->capture_begin (NULL, GLOBAL));
  OK (d->capture_begin (s, GLOBAL));
  IS (CUDA_ERROR_INVALID_VALUE, d->capture_begin (s, GLOBAL));
  IS (CUDA_ERROR_STREAM_CAPTURE_ISOLATION, d->stream_wait_event (s, outside, 0));
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->set_words_async (at, 1, 1, s));
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->capture_end (s, &g));
  OK (d->capture_begin (s, RELAXED));
  OK (d->event_record (v, s));
  IS (CUDA_ERROR_CAPTURED_EVENT, d->event_query (v));
  OK (d->capture_end (s, &g));
  OK (d->capture_begin (s, RELAXED));
  OK (d->event_record (v, s));
  OK (d->stream_wait_event (o, v, 0));
  OK (d->set_words_async (at, 1, 1, o));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, d->capture_end (o, &g));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNJOINED, d->capture_end (s, &g));
  OK (d->capture_begin (b, RELAXED));
  IS (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, d->set_words_async (at, 1, 1, NULL));
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->capture_end (b, &g));
  OK (d->capture_begin (s, GLOBAL));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d->mem_alloc (&more, G));
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->capture_end (s, &g));
  OK (d->capture_begin (s, RELAXED));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d->ctx_synchronize ());
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->capture_end (s, &g));
}

CLAIM (a_relaxed_thread_may_call_what_a_capture_forbids) {
  start (1);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUstreamCaptureMode mode = RELAXED;
  CUdeviceptr more;
  CUgraph g;
  OK (d->capture_begin (s, GLOBAL));
  OK (d->capture_mode (&mode));
  ck_assert_uint_eq (mode, GLOBAL);
  OK (d->mem_alloc (&more, G));
  OK (d->capture_mode (&mode));
  ck_assert_uint_eq (mode, RELAXED);
  OK (d->capture_end (s, &g));
}

static void *end_elsewhere (void *s) {
  CUgraph g;
  OK (d->ctx_set_current (e.d.context));
  return (void *)(uintptr_t)d->capture_end (s, &g);
}

CLAIM (a_capture_ends_in_its_thread) {
  start (1);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  pthread_t t;
  void *said;
  CUgraph g;
  OK (d->capture_begin (s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ck_assert_int_eq (pthread_create (&t, NULL, end_elsewhere, s), 0);
  pthread_join (t, &said);
  IS (CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, (CUresult)(uintptr_t)said);
  OK (d->capture_end (s, &g));
}

/* ---- nodes ---- */

CLAIM (nodes_tell_what_they_were_made_of) {
  start (1);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUgraph g, copy;
  OK (d->capture_begin (s, GLOBAL));
  OK (add (f, s, at, 2, 3, 1000));
  OK (d->copy_within_async (at + 64, at, 32, s));
  OK (d->set_words_async (at + 128, 9, 4, s));
  OK (d->capture_end (s, &g));
  OK (d->graph_clone (&copy, g));
  OK (d->graph_destroy (g));
  CUgraphNodeType type;
  CUDA_KERNEL_NODE_PARAMS k;
  CUDA_MEMCPY3D c;
  CUDA_MEMSET_NODE_PARAMS m;
  OK (d->node_type (node_at (copy, 1), &type));
  ck_assert_uint_eq (type, CU_GRAPH_NODE_TYPE_MEMCPY);
  OK (d->node_kernel (node_at (copy, 0), &k));
  ck_assert_ptr_eq (k.func, f);
  ck_assert_uint_eq (*(CUdeviceptr *)k.kernelParams[0], at);
  ck_assert_uint_eq (*(uint32_t *)k.kernelParams[3], 3);
  OK (d->node_copy (node_at (copy, 1), &c));
  ck_assert_uint_eq (c.dstDevice, at + 64);
  ck_assert_uint_eq (c.srcDevice, at);
  ck_assert_uint_eq (c.WidthInBytes * c.Height * c.Depth, 32);
  OK (d->node_set (node_at (copy, 2), &m));
  ck_assert_uint_eq (m.dst, at + 128);
  ck_assert_uint_eq (m.elementSize * m.width, 16);
  IS (CUDA_ERROR_INVALID_VALUE, d->node_set (node_at (copy, 0), &m));
  IS (CUDA_ERROR_INVALID_VALUE, d->graph_destroy (g));
}

static CUDA_KERNEL_NODE_PARAMS of_add (CUfunction f, void **params) {
  return (CUDA_KERNEL_NODE_PARAMS){ .func = f,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = params };
}

static int called;
static void call (void *user) {
  called += *(int *)user;
}

CLAIM (a_graph_can_be_built_node_by_node) {
  start (1);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent v = event_new ();
  int64_t n = 1, ns = 1000;
  uint32_t by = 4;
  int one = 1;
  CUDA_KERNEL_NODE_PARAMS k = of_add (f, (void *[]){ &at, &n, &ns, &by });
  CUDA_MEMSET_NODE_PARAMS m = { .dst = at, .value = 6, .elementSize = 4, .width = 1, .height = 1 };
  CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                      .srcDevice = at,
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                      .dstDevice = at + 8,
                      .WidthInBytes = 4,
                      .Height = 1,
                      .Depth = 1 };
  CUDA_HOST_NODE_PARAMS h = { call, &one };
  CUgraph inner, g;
  CUgraphNode set, child, copy, last, end;
  OK (d->graph_create (&inner, 0));
  OK (d->graph_add_kernel (&last, inner, NULL, 0, &k));
  OK (d->graph_create (&g, 0));
  OK (d->graph_add_set (&set, g, NULL, 0, &m, NULL));
  OK (d->graph_add_child (&child, g, &set, 1, inner));
  OK (d->graph_destroy (inner));
  OK (d->graph_add_copy (&copy, g, &child, 1, &c, NULL));
  OK (d->graph_add_host (&last, g, &copy, 1, &h));
  OK (d->graph_add_record (&end, g, &last, 1, v));
  OK (d->graph_add_empty (&last, g, &end, 1));
  OK (d->graph_launch (ready (g), s));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at + 8), 10);
  ck_assert_int_eq (called, 1);
  OK (d->event_query (v));
}

CLAIM_EACH (what_is_ready_can_be_changed_and_launches_that_are_queued_are_not, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  int64_t n = 1, ns = 1000;
  uint32_t by = 4;
  CUgraph g, other, longer;
  CUgraphNode own, more;
  CUDA_KERNEL_NODE_PARAMS k = of_add (f, (void *[]){ &at, &n, &ns, &by });
  OK (d->graph_create (&g, 0));
  OK (d->graph_add_kernel (&own, g, NULL, 0, &k));
  CUgraphExec x = ready (g);
  OK (e.hold (s, 1));
  OK (d->graph_launch (x, s));
  by = 100;
  OK (d->exec_kernel (x, own, &k));
  OK (d->graph_launch (x, s));
  OK (e.hold (s, 0));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at), 104);
  by = 1000;
  OK (d->graph_create (&other, 0));
  OK (d->graph_add_kernel (&more, other, NULL, 0, &k));
  CUgraphExecUpdateResultInfo info;
  OK (d->exec_update (x, other, &info));
  OK (d->graph_launch (x, s));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at), 1104);
  OK (d->graph_clone (&longer, other));
  OK (d->graph_add_kernel (&more, longer, NULL, 0, &k));
  IS (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, d->exec_update (x, longer, &info));
  ck_assert_uint_eq (info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

/* ---- memory ---- */

static size_t free_bytes (void) {
  size_t bytes, total;
  OK (d->mem_get_info (&bytes, &total));
  return bytes;
}

CLAIM (memory_of_a_graph_stays_as_long_as_anyone_can_launch_it) {
  start (1);
  CUfunction f = function (&declared);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr kept, within;
  size_t before = free_bytes ();
  CUgraph g;
  OK (d->capture_begin (s, GLOBAL));
  OK (d->mem_alloc_async (&kept, G, s));
  OK (d->mem_alloc_async (&within, G, s));
  OK (d->set_words_async (within, 1, 1, s));
  OK (add (f, s, within, 1, 2, 10));
  OK (d->copy_within_async (kept, within, 4, s));
  OK (d->mem_free_async (within, s));
  IS (CUDA_ERROR_INVALID_VALUE, d->mem_free_async (within, s));
  OK (d->capture_end (s, &g));
  CUgraphExec x = ready (g);
  OK (d->graph_destroy (g));
  for (int i = 0; i < 2; i++) {
    OK (d->graph_launch (x, s));
    OK (d->stream_synchronize (s));
    ck_assert_uint_eq (word (kept), 3);
    OK (d->mem_free_async (kept, s));
  }
  ck_assert_uint_eq (free_bytes (), before - 2 * (size_t)G);
  OK (d->exec_destroy (x));
  ck_assert_uint_eq (free_bytes (), before);
}

CLAIM (memory_that_was_freed_in_a_capture_goes_when_that_fails) {
  start (1);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr kept, within;
  size_t before = free_bytes ();
  CUgraph g;
  OK (d->capture_begin (s, RELAXED));
  OK (d->mem_alloc_async (&kept, G, s));
  OK (d->mem_alloc_async (&within, G, s));
  OK (d->mem_free_async (within, s));
  IS (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d->ctx_synchronize ());
  IS (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d->capture_end (s, &g));
  ck_assert_uint_eq (free_bytes (), before - (size_t)G);
  OK (d->mem_free_async (kept, s));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (free_bytes (), before);
}

CLAIM (copies_of_a_graph_need_their_memory_when_it_is_made_ready) {
  start (1);
  CUdeviceptr at = reserve (G), near = alloc (G);
  CUmemGenericAllocationHandle h = create (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUgraph g;
  CUgraphExec x;
  map (at, G, h);
  OK (d->capture_begin (s, GLOBAL));
  OK (d->copy_within_async (near, at, 4, s));
  OK (d->capture_end (s, &g));
  OK (d->mem_unmap (at, G));
  IS (CUDA_ERROR_INVALID_VALUE, d->graph_instantiate (&x, g, 0));
  map (at, G, h);
  OK (d->graph_instantiate (&x, g, 0));
}

/* ---- races ---- */

static int races_of (bool joins) {
  emu_config c = emu_case_config (EMU_VIRTUAL);
  c.races = true;
  emu_case_start (&e, &c);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  int64_t n = 1, ns = 1000;
  uint32_t by = 4;
  CUDA_KERNEL_NODE_PARAMS k = of_add (f, (void *[]){ &at, &n, &ns, &by });
  CUgraph g;
  CUgraphNode first, own;
  emu_race found;
  int n_races = 0;
  OK (d->graph_create (&g, 0));
  OK (d->graph_add_kernel (&first, g, NULL, 0, &k));
  OK (d->graph_add_empty (&own, g, NULL, 0));
  OK (d->graph_add_kernel (&own, g, joins ? (CUgraphNode[]){ first, own } : &own, joins ? 2 : 1,
                           &k));
  OK (d->graph_launch (ready (g), s));
  OK (d->stream_synchronize (s));
  OK (e.races (&found, 1, &n_races));
  return n_races;
}

CLAIM (branches_that_nothing_orders_are_a_race) {
  ck_assert_int_eq (races_of (true), 0);
  ck_assert_int_gt (races_of (false), 0);
}

int main (void) {
  return suite_run ("emu graph", 30);
}
