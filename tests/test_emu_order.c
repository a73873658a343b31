/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver, docs/emulator.md 1 to 6 and 9: what runs before what, which calls are
   refused, and how entries are found.  Where the clock matters, on both (loop index 0: real, 1:
   virtual). */
#include <pthread.h>

#include "tests/emu_calls.h"
#include "tests/suite.h"

/* ---- order ---- */

CLAIM_EACH (a_launch_copies_its_parameters_at_the_call, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  int64_t count = 1, ns = 2000000;
  uint32_t by = 5;
  void *params[] = { &at, &count, &ns, &by };
  OK (d->launch (f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
  by = 100;
  add_params all = { at, 1, 0, 7 };
  size_t bytes = sizeof all;
  void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &all, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                    CU_LAUNCH_PARAM_END };
  OK (d->launch (f, 1, 1, 1, 1, 1, 1, 0, s, NULL, extra));
  all.add = 100;
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at), 12);
}

CLAIM_EACH (a_stream_is_first_in_first_out_and_two_are_not_ordered, 0, 2) {
  start (_i);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  OK (add (f, s, at, 1, 3, 3000000));
  OK (d->set_words_async (at + 4, 9, 1, s));
  OK (d->copy_within_async (at + 8, at, 8, s));
  CUevent slow = event_new (), quick = event_new ();
  OK (d->event_record (slow, s));
  OK (add (f, o, at + 64, 1, 1, 0));
  OK (d->event_record (quick, o));
  OK (d->ctx_synchronize ());
  ck_assert_uint_eq (word (at + 8), 3);
  ck_assert_uint_eq (word (at + 12), 9);
  if (_i == 1)
    ck_assert_int_lt (time_of (quick), time_of (slow));
}

CLAIM_EACH (a_wait_captures_the_record_as_it_stands_at_the_call, 0, 2) {
  start (_i);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent v = event_new (), behind = event_new (), before = event_new ();
  OK (d->stream_wait_event (o, v, 0)); /* never recorded: no wait */
  OK (add (f, s, at, 1, 1, 4000000));
  OK (d->event_record (before, s));
  OK (d->event_record (v, s));
  OK (d->stream_wait_event (o, v, 0));
  OK (d->event_record (behind, o));
  OK (add (f, s, at, 1, 1, 20000000));
  OK (d->event_record (v, s)); /* later: changes nothing for o */
  OK (d->ctx_synchronize ());
  int64_t first = time_of (before), second = time_of (behind), last = time_of (v);
  ck_assert_int_ge (second, first);
  if (_i == 1)
    ck_assert_int_eq (last - second, 20000000);
}

CLAIM_EACH (the_legacy_stream_joins_blocking_streams_and_no_others, 0, 2) {
  start (_i);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (G);
  CUstream b = stream_new (CU_STREAM_DEFAULT), n = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent on_b = event_new (), on_n = event_new (), legacy = event_new (), after = event_new ();
  OK (add (f, b, at, 1, 1, 5000000));
  OK (d->event_record (on_b, b));
  OK (add (f, n, at + 64, 1, 1, 30000000));
  OK (d->event_record (on_n, n));
  OK (add (f, NULL, at, 1, 1, 1000000));
  OK (d->event_record (legacy, NULL));
  OK (add (f, b, at, 1, 1, 0));
  OK (d->event_record (after, b));
  OK (d->ctx_synchronize ());
  ck_assert_int_ge (time_of (legacy), time_of (on_b));
  ck_assert_int_ge (time_of (after), time_of (legacy));
  if (_i == 1) {
    ck_assert_int_eq (time_of (legacy) - time_of (on_b), 1000000);
    ck_assert_int_lt (time_of (after), time_of (on_n));
  }
}

CLAIM_EACH (pageable_memory_is_staged_at_the_call_and_pinned_memory_read_later, 0, 2) {
  start (_i);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  uint32_t pageable = 1, *pin = pinned (4096);
  *pin = 1;
  OK (add (f, s, at + 64, 1, 1, 20000000));
  OK (d->copy_in_async (at, &pageable, 4, s));
  OK (d->copy_in_async (at + 4, pin, 4, s));
  pageable = 2;
  *pin = 2;
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at), 1);
  ck_assert_uint_eq (word (at + 4), 2);
  /* A synchronous copy from pageable memory joins nothing that it need not. */
  OK (add (f, s, at + 64, 1, 1, 20000000));
  OK (d->copy_in (at + 8, &pageable, 4));
  ck_assert_uint_eq (d->stream_query (s), CUDA_ERROR_NOT_READY);
  OK (d->stream_synchronize (s));
}

CLAIM_EACH (memory_of_the_pool_is_valid_in_stream_order, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr a, b;
  size_t most = 48 << 20; /* two do not fit at once */
  uint32_t got[2];
  OK (d->mem_alloc_async (&a, most, s));
  OK (d->set_words_async (a, 5, 1, s));
  OK (add (f, s, a, 1, 1, 1000000));
  OK (d->copy_out_async (&got[0], a, 4, s));
  OK (d->mem_free_async (a, s));
  ck_assert_uint_eq (d->mem_free_async (a, s), CUDA_ERROR_INVALID_VALUE);
  OK (d->mem_alloc_async (&b, most, s));
  OK (d->set_words_async (b, 7, 1, s));
  OK (d->copy_out_async (&got[1], b, 4, s));
  OK (d->mem_free_async (b, s));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (got[0], 6);
  ck_assert_uint_eq (got[1], 7);
  size_t left, total;
  OK (d->mem_get_info (&left, &total));
  ck_assert_uint_eq (left, total);
}

CLAIM (the_pool_answers_what_a_framework_asks_it) {
  start (1);
  CUmemoryPool pool;
  uint64_t v = UINT64_MAX;
  int on = 0;
  OK (d->device_default_pool (&pool, 0));
  OK (d->pool_set (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
  OK (d->pool_set (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
  on = 1;
  OK (d->pool_get (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
  ck_assert_int_eq (on, 0);
  CUdeviceptr p;
  OK (d->mem_alloc_from_pool (&p, 1000, pool, NULL));
  OK (d->pool_get (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
  ck_assert_uint_eq (v, 1024);
  OK (d->mem_free_async (p, NULL));
  OK (d->stream_synchronize (NULL));
  OK (d->pool_get (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
  ck_assert_uint_eq (v, 0);
  OK (d->pool_get (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
  ck_assert_uint_eq (v, 1024);
  v = 0;
  OK (d->pool_set (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
  OK (d->pool_get (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
  ck_assert_uint_eq (v, 0);
  OK (d->pool_trim (pool, 0));
  ck_assert_uint_eq (d->pool_get (pool, 77, &v), CUDA_ERROR_INVALID_VALUE);
}

/* ---- errors ---- */

CLAIM_EACH (a_wrong_argument_is_forgotten_at_once, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent v = event_new ();
  OK (d->event_destroy (v));
  ck_assert_uint_eq (d->event_record (v, s), CUDA_ERROR_INVALID_HANDLE);
  ck_assert_uint_eq (d->launch (f, 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->launch ((CUfunction)&v, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL),
                     CUDA_ERROR_INVALID_HANDLE);
  ck_assert_uint_eq (d->copy_in (12345, &v, 4), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->stream_synchronize ((CUstream)&v), CUDA_ERROR_INVALID_HANDLE);
  OK (add (f, s, at, 1, 4, 0));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (word (at), 4);
}

CLAIM (without_init_or_context_calls_say_so) {
  error err = { 0 };
  ck_assert_msg (driver_open (d, emu_case_path (), &err), "%s", err.text);
  int n;
  ck_assert_uint_eq (d->device_get_count (&n), CUDA_ERROR_NOT_INITIALIZED);
  OK (d->init (0));
  CUdeviceptr p;
  ck_assert_uint_eq (d->mem_alloc (&p, 512), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext ctx, current;
  OK (d->primary_retain (&ctx, 0));
  ck_assert_uint_eq (d->mem_alloc (&p, 512), CUDA_ERROR_INVALID_CONTEXT);
  OK (d->ctx_push (ctx));
  OK (d->mem_alloc (&p, 512));
  OK (d->ctx_get_current (&current));
  ck_assert_ptr_eq (current, ctx);
  OK (d->ctx_pop (&current));
  ck_assert_ptr_eq (current, ctx);
  ck_assert_uint_eq (d->mem_alloc (&p, 512), CUDA_ERROR_INVALID_CONTEXT);
  unsigned int flags;
  int active;
  OK (d->primary_state (0, &flags, &active));
  ck_assert_int_eq (active, 1);
  ck_assert_uint_eq (d->device_get (&n, 1), CUDA_ERROR_INVALID_DEVICE);
}

static CUresult from_callback;

static void calls_the_driver (void *user) {
  *(uint32_t *)user += 1;
  from_callback = d->ctx_synchronize ();
}

CLAIM_EACH (a_host_function_runs_in_order_and_may_not_call_the_driver, 0, 2) {
  start (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  uint32_t *seen = pinned (4);
  *seen = 0;
  OK (add (f, s, at, 1, 41, 1000));
  OK (d->copy_out_async (seen, at, 4, s));
  OK (d->launch_host_func (s, calls_the_driver, seen));
  OK (d->stream_synchronize (s));
  ck_assert_uint_eq (*seen, 42);
  ck_assert_uint_eq (from_callback, CUDA_ERROR_NOT_PERMITTED);
}

/* ---- parameters, entries, threads ---- */

CLAIM (parameters_are_told_one_by_one_and_no_further) {
  start (1);
  CUfunction f = function (&declared);
  size_t offset, bytes;
  OK (d->func_get_param (f, 3, &offset, &bytes));
  ck_assert_uint_eq (offset, offsetof (add_params, add));
  ck_assert_uint_eq (bytes, 4);
  ck_assert_uint_eq (d->func_get_param (f, 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  OK (d->ctx_synchronize ());
  CUlibrary library;
  CUkernel k;
  const char *name;
  OK (d->library_load (&library, "image", NULL, NULL, 0, NULL, NULL, 0));
  ck_assert_uint_eq (d->library_get_kernel (&k, library, "absent"), CUDA_ERROR_NOT_FOUND);
  OK (d->library_get_kernel (&k, library, "add"));
  OK (d->kernel_get_param (k, 0, &offset, &bytes));
  OK (d->func_get_name (&name, (CUfunction)k));
  ck_assert_str_eq (name, "add");
  ck_assert_uint_eq (d->module_load (&(CUmodule){ 0 }, NULL), CUDA_ERROR_INVALID_IMAGE);
}

CLAIM (entry_points_are_found_by_name_in_both_abis) {
  start (1);
  void *p = NULL;
  CUdriverProcAddressQueryResult status;
  OK (d->get_proc_address ("cuMemGetInfo", &p, 12000, 0, &status));
  ck_assert_ptr_eq (p, (void *)d->mem_get_info);
  OK (d->get_proc_address ("cuMemGetInfo", &p, 3010, 0, &status));
  ck_assert_uint_eq (status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  ck_assert_ptr_null (p);
  OK (d->get_proc_address ("cuGreenCtxCreate", &p, 13000, 0, &status));
  ck_assert_uint_eq (status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CUresult (*old) (const char *, void **, int, uint64_t);
  OK (d->get_proc_address ("cuGetProcAddress", (void **)&old, 11030, 0, &status));
  ck_assert_ptr_ne ((void *)old, (void *)d->get_proc_address);
  OK (old ("cuMemcpyHtoDAsync", &p, 11030, 0));
  ck_assert_ptr_eq (p, (void *)d->copy_in_async);
  ck_assert_uint_eq (old ("cuNoSuchThing", &p, 11030, 0), CUDA_ERROR_NOT_FOUND);
  const void *table;
  CUuuid id;
  OK (d->device_get_uuid (&id, 0));
  ck_assert_uint_eq (d->get_export_table (&table, &id), CUDA_ERROR_NOT_FOUND);
}

static void *launch_from_a_thread (void *stream) {
  CUdeviceptr at;
  if (d->ctx_set_current (d->context) != CUDA_SUCCESS || d->mem_alloc (&at, G) != CUDA_SUCCESS)
    return "no context";
  CUfunction f = function (&declared);
  for (int i = 0; i < 200; i++)
    if (add (f, stream, at, 16, 1, 0) != CUDA_SUCCESS)
      return "no launch";
  return d->stream_synchronize (stream) == CUDA_SUCCESS ? NULL : "no end";
}

CLAIM_EACH (several_host_threads_may_call_at_once, 0, 2) {
  start (_i);
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq (
        pthread_create (&t[i], NULL, launch_from_a_thread, stream_new (CU_STREAM_NON_BLOCKING)), 0);
  for (int i = 0; i < 4; i++) {
    void *said;
    pthread_join (t[i], &said);
    ck_assert_msg (said == NULL, "%s", (char *)said);
  }
}

int main (void) {
  return suite_run ("emu order", 30);
}
