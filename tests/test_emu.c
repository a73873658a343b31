/* The emulated driver: one test for each semantic of docs/emulator.md, on both clocks where the
   clock matters (loop index 0: real, 1: virtual). */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tests/emu_case.h"

enum { G = 65536 };

static emu_case e;
static driver *const d = &e.d;

static void start (int clock) {
  emu_config c = emu_case_config (clock == 0 ? EMU_REAL : EMU_VIRTUAL);
  emu_case_start (&e, &c);
}

/* ---- kernels ---- */

typedef struct add_params {
  CUdeviceptr at;
  int64_t count, ns;
  uint32_t add;
} add_params;

static const emu_param add_layout[] = { { offsetof (add_params, at), 8 },
                                        { offsetof (add_params, count), 8 },
                                        { offsetof (add_params, ns), 8 },
                                        { offsetof (add_params, add), 4 } };

static void add_run (const emu_launch *l) {
  const add_params *p = l->params;
  uint32_t *words = (uint32_t *)(uintptr_t)p->at;
  for (int64_t i = 0; l->bytes && i < p->count; i++)
    words[i] += p->add;
}

static int64_t add_ns (const emu_launch *l) {
  return ((const add_params *)l->params)->ns;
}

static void add_touches (const emu_launch *l, emu_touch tell, void *context) {
  const add_params *p = l->params;
  if (p->count > 0)
    tell (context, p->at, p->count * 4, true);
}

/* Declared: the race checker and the mapping check see it; silent: only the memory itself does. */
static const emu_kernel declared = { "add", add_layout, 4, add_run, add_ns, add_touches };
static const emu_kernel silent = { "add_silently", add_layout, 4, add_run, add_ns, NULL };

static CUfunction function (const emu_kernel *k) {
  CUmodule module;
  CUfunction f;
  OK (e.register_kernel (k));
  OK (d->module_load (&module, "image"));
  OK (d->module_get_function (&f, module, k->name));
  return f;
}

static CUresult add (CUfunction f, CUstream s, CUdeviceptr at, int64_t count, uint32_t by,
                     int64_t ns) {
  void *params[] = { &at, &count, &ns, &by };
  return d->launch (f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL);
}

static CUstream stream_new (unsigned int flags) {
  CUstream s;
  OK (d->stream_create (&s, flags));
  return s;
}

static CUevent event_new (void) {
  CUevent v;
  OK (d->event_create (&v, CU_EVENT_DEFAULT));
  return v;
}

static int64_t time_of (CUevent v) {
  int64_t ns;
  OK (e.event_time (v, &ns));
  return ns;
}

static CUdeviceptr alloc (size_t bytes) {
  CUdeviceptr p;
  OK (d->mem_alloc (&p, bytes));
  OK (d->set_bytes (p, 0, bytes));
  return p;
}

static uint32_t word (CUdeviceptr at) {
  uint32_t w;
  OK (d->copy_out (&w, at, sizeof w));
  return w;
}

static void *pinned (size_t bytes) {
  void *p;
  OK (d->mem_host_alloc (&p, bytes, CU_MEMHOSTALLOC_PORTABLE));
  return p;
}

static const CUmemAllocationProp plain = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

static CUmemGenericAllocationHandle create (size_t bytes) {
  CUmemGenericAllocationHandle h;
  OK (d->mem_create (&h, bytes, &plain, 0));
  return h;
}

static CUdeviceptr reserve (size_t bytes) {
  CUdeviceptr p;
  OK (d->mem_reserve (&p, bytes, 0, 0, 0));
  return p;
}

static void allow (CUdeviceptr at, size_t bytes, unsigned int flags) {
  CUmemAccessDesc a = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, flags };
  OK (d->mem_set_access (at, bytes, &a, 1));
}

static void map (CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle h) {
  OK (d->mem_map (at, bytes, 0, h, 0));
  allow (at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/* ---- 1 to 6: order ---- */

START_TEST (a_launch_copies_its_parameters_at_the_call) {
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
END_TEST

START_TEST (a_stream_is_first_in_first_out_and_two_are_not_ordered) {
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
END_TEST

START_TEST (a_wait_captures_the_record_as_it_stands_at_the_call) {
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
END_TEST

START_TEST (the_legacy_stream_joins_blocking_streams_and_no_others) {
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
END_TEST

START_TEST (pageable_memory_is_staged_at_the_call_and_pinned_memory_read_later) {
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
END_TEST

START_TEST (memory_of_the_pool_is_valid_in_stream_order) {
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
END_TEST

START_TEST (the_pool_answers_what_a_framework_asks_it) {
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
END_TEST

/* ---- 7, 8: virtual memory ---- */

START_TEST (two_addresses_of_one_handle_see_the_same_bytes) {
  start (_i);
  CUmemGenericAllocationHandle h[2] = { create (G), create (G) };
  CUdeviceptr a = reserve (2 * G), b = reserve (2 * G);
  for (int i = 0; i < 2; i++) {
    map (a + (CUdeviceptr)i * G, G, h[i]);
    map (b + (CUdeviceptr)(1 - i) * G, G, h[i]);
  }
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  uint32_t *got = pinned (8);
  for (uint32_t i = 1; i < 50; i++) {
    OK (d->set_words_async (a, i, G / 2, s));
    OK (d->copy_out_async (&got[0], b + G, 4, s));
    OK (d->set_words_async (b, i + 7, G / 2, s));
    OK (d->copy_out_async (&got[1], a + 2 * G - 4, 4, s));
    OK (d->stream_synchronize (s));
    ck_assert_uint_eq (got[0], i);
    ck_assert_uint_eq (got[1], i + 7);
  }
  OK (d->mem_unmap (a, 2 * G)); /* several mappings in one call */
  OK (d->mem_unmap (b, 2 * G));
  OK (d->mem_address_free (a, 2 * G));
  ck_assert_uint_eq (d->mem_address_free (b, G), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST (what_the_documentation_forbids_is_an_error) {
  start (1);
  CUmemGenericAllocationHandle h = create (4 * G), k = create (G);
  CUdeviceptr a = reserve (8 * G);
  ck_assert_uint_eq (d->mem_map (a, G, G, h, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_map (a, G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_map (a + 6 * G, 4 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_map (a + 512, 4 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  OK (d->mem_map (a, 4 * G, 0, h, 0));
  ck_assert_uint_eq (d->mem_map (a + G, G, 0, k, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_unmap (a, G), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_unmap (a, 5 * G), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_address_free (a, 8 * G), CUDA_ERROR_INVALID_VALUE);
  OK (d->mem_unmap (a, 4 * G));
  CUmemGenericAllocationHandle none;
  ck_assert_uint_eq (d->mem_create (&none, G + 1, &plain, 0), CUDA_ERROR_INVALID_VALUE);
  OK (d->mem_release (h));
  ck_assert_uint_eq (d->mem_release (h), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq (d->mem_map (a, 4 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Loop: clock x what is wrong with the address. */
START_TEST (an_address_that_is_not_mapped_is_an_error_that_stays) {
  start (_i % 2);
  CUfunction f = function (_i / 2 % 2 == 0 ? &silent : &declared);
  CUmemGenericAllocationHandle h = create (G);
  CUdeviceptr a = reserve (2 * G);
  OK (d->mem_map (a, G, 0, h, 0));
  if (_i / 4 == 0)
    allow (a, G, CU_MEM_ACCESS_FLAGS_PROT_READ);
  else if (_i / 4 == 1)
    allow (a, G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr bad = _i / 4 == 1 ? a + G : a; /* behind the mapping; read only; no access */
  OK (add (f, s, bad, 1, 1, 1000));          /* the call itself is fine */
  ck_assert_uint_eq (d->stream_synchronize (s), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr p;
  ck_assert_uint_eq (d->mem_alloc (&p, 512), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_uint_eq (d->ctx_synchronize (), CUDA_ERROR_ILLEGAL_ADDRESS);
  const char *name;
  OK (d->get_error_name (CUDA_ERROR_ILLEGAL_ADDRESS, &name));
  ck_assert_str_eq (name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}
END_TEST

START_TEST (unmapping_under_queued_work_is_refused_or_faults_when_it_runs) {
  for (int lenient = 0; lenient < 2; lenient++) {
    emu_config c = emu_case_config (_i == 0 ? EMU_REAL : EMU_VIRTUAL);
    c.lenient = lenient != 0;
    emu_case_start (&e, &c);
    CUfunction f = function (&declared);
    CUmemGenericAllocationHandle h = create (G);
    CUdeviceptr a = reserve (G);
    map (a, G, h);
    CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
    OK (add (f, s, a + 64, 0, 1, 20000000));
    OK (add (f, s, a, 1, 1, 0));
    CUresult r = d->mem_unmap (a, G);
    ck_assert_uint_eq (r, lenient ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    ck_assert_uint_eq (d->stream_synchronize (s),
                       lenient ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS);
  }
}
END_TEST

/* ---- 9: errors ---- */

START_TEST (a_wrong_argument_is_forgotten_at_once) {
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
END_TEST

START_TEST (without_init_or_context_calls_say_so) {
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
END_TEST

static CUresult from_callback;

static void calls_the_driver (void *user) {
  *(uint32_t *)user += 1;
  from_callback = d->ctx_synchronize ();
}

START_TEST (a_host_function_runs_in_order_and_may_not_call_the_driver) {
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
END_TEST

/* ---- 10: engines and clocks ---- */

START_TEST (one_copy_each_way_runs_at_once_and_two_of_one_way_take_turns) {
  start (_i);
  CUfunction f = function (&silent);
  enum { N = 20000000 }; /* 20 ms at 1 GB/s */
  CUdeviceptr a, b, c;
  OK (d->mem_alloc (&a, N));
  OK (d->mem_alloc (&b, N));
  OK (d->mem_alloc (&c, N));
  char *host = pinned (3 * N);
  CUstream s[4];
  CUevent v[4], go = event_new ();
  for (int i = 0; i < 4; i++) {
    s[i] = stream_new (CU_STREAM_NON_BLOCKING);
    v[i] = event_new ();
  }
  OK (d->event_record (go, s[0]));
  OK (d->copy_out_async (host, a, N, s[0]));
  OK (d->event_record (v[0], s[0]));
  OK (d->copy_in_async (b, host + N, N, s[1]));
  OK (d->event_record (v[1], s[1]));
  OK (d->copy_out_async (host + 2 * N, c, N, s[2]));
  OK (d->event_record (v[2], s[2]));
  OK (add (f, s[3], a, 0, 1, 20000000));
  OK (d->event_record (v[3], s[3]));
  OK (d->ctx_synchronize ());
  int64_t t[4];
  for (int i = 0; i < 4; i++)
    t[i] = time_of (v[i]) - time_of (go);
  if (_i == 1) {
    /* 10 us and 20,000,000 bytes at 1 byte a ns. */
    ck_assert_int_eq (t[0], 20010000);
    ck_assert_int_eq (t[1], 20010000);
    ck_assert_int_eq (t[2], 40020000);
    ck_assert_int_eq (t[3], 20000000);
    return;
  }
  /* Threads on a busy machine may be late, and what is late may be caught up with: by 4 ms. */
  int64_t first = t[0] < t[2] ? t[0] : t[2], second = t[0] < t[2] ? t[2] : t[0];
  ck_assert_int_ge (second - first, 15000000);
}
END_TEST

/* An oracle with nothing in common with the engine: it goes nanosecond by nanosecond. */
static void carry_by_hand (const int64_t alone[2], const int64_t both[2], int64_t copy_ns,
                           const int64_t begin[2], const int64_t bytes[2], int64_t end[2]) {
  __int128 left[2] = { (__int128)bytes[0] * 1000000000, (__int128)bytes[1] * 1000000000 };
  end[0] = end[1] = -1;
  for (int64_t t = 0; end[0] < 0 || end[1] < 0; t++) {
    bool carries[2];
    for (int i = 0; i < 2; i++) {
      if (end[i] < 0 && t >= begin[i] + copy_ns && left[i] <= 0)
        end[i] = t;
      carries[i] = end[i] < 0 && t >= begin[i] + copy_ns;
    }
    for (int i = 0; i < 2; i++)
      if (carries[i])
        left[i] -= carries[1 - i] ? both[i] : alone[i];
  }
}

START_TEST (shared_copies_end_at_the_nanosecond_that_counting_by_hand_gives) {
  random_state r = random_seed (7);
  for (int round = 0; round < 60; round++) {
    int64_t out = random_between (&r, 1000000000, 9000000000);
    int64_t in = random_between (&r, 1000000000, 9000000000);
    int64_t sum = random_between (&r, 1000000000, out + in + 1000000000);
    int64_t share = random_chance (&r, 500000) ? 1000000 : random_between (&r, 1, 1000000);
    emu_config c = emu_case_config (EMU_VIRTUAL);
    c.bytes = EMU_NONE;
    c.d2h_bytes_per_s = out;
    c.h2d_bytes_per_s = in;
    c.both_bytes_per_s = sum;
    c.share_ppm = share;
    c.copy_ns = random_between (&r, 0, 400);
    emu_case_start (&e, &c);
    CUfunction f = function (&silent);
    CUdeviceptr at;
    OK (d->mem_alloc (&at, 1 << 20));
    char *host = pinned (2 << 20);
    int64_t begin[2], bytes[2], end[2];
    CUevent v[2];
    for (int i = 0; i < 2; i++) {
      /* Few nanoseconds, so that counting them ends. */
      bytes[i] = random_between (&r, 1, share < 100000 ? 40 : 4000);
      begin[i] = random_between (&r, 0, 1500);
      CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
      v[i] = event_new ();
      OK (add (f, s, at, 0, 0, begin[i]));
      if (i == 0)
        OK (d->copy_out_async (host, at, (size_t)bytes[i], s));
      else
        OK (d->copy_in_async (at + 65536, host + (1 << 20), (size_t)bytes[i], s));
      OK (d->event_record (v[i], s));
    }
    OK (d->ctx_synchronize ());
    /* floor(min(own, max(sum/2, sum - other)) x share / 10^6), the half kept by doubling. */
    int64_t alone[2], both[2], own[2] = { out, in };
    for (int i = 0; i < 2; i++) {
      __int128 twice = 2 * (__int128)(sum - own[1 - i]);
      twice = twice < sum ? sum : twice;
      twice = twice > 2 * (__int128)own[i] ? 2 * (__int128)own[i] : twice;
      both[i] = (int64_t)(twice * share / 2000000);
      alone[i] = (int64_t)((__int128)own[i] * share / 1000000);
      both[i] = both[i] < 1 ? 1 : both[i];
      alone[i] = alone[i] < 1 ? 1 : alone[i];
    }
    if (bytes[0] / (alone[0] / 1000 + 1) > 4000 || bytes[1] / (alone[1] / 1000 + 1) > 4000)
      continue; /* milliseconds: too long to count */
    carry_by_hand (alone, both, c.copy_ns, begin, bytes, end);
    ck_assert_int_eq (time_of (v[0]), end[0]);
    ck_assert_int_eq (time_of (v[1]), end[1]);
  }
}
END_TEST

/* The same random program twice: on the virtual clock every event has the same time. */
static void random_program (uint64_t seed, int64_t *times, int n) {
  random_state r = random_seed (seed);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (1 << 20);
  char *host = pinned (1 << 20);
  enum { STREAMS = 5 };
  CUstream s[STREAMS];
  CUevent *v = calloc ((size_t)n, sizeof *v);
  for (int i = 0; i < STREAMS; i++)
    s[i] = stream_new (CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < n; i++) {
    CUstream on = s[random_between (&r, 0, STREAMS - 1)];
    if (i > 0 && random_chance (&r, 300000))
      OK (d->stream_wait_event (on, v[random_between (&r, 0, i - 1)], 0));
    size_t bytes = (size_t)random_between (&r, 1, 1 << 16);
    int what = (int)random_between (&r, 0, 2);
    if (what == 0)
      OK (add (f, on, at, 0, 0, random_between (&r, 0, 50000)));
    else if (what == 1)
      OK (d->copy_out_async (host, at, bytes, on));
    else
      OK (d->copy_in_async (at, host, bytes, on));
    v[i] = event_new ();
    OK (d->event_record (v[i], on));
  }
  OK (d->ctx_synchronize ());
  for (int i = 0; i < n; i++)
    times[i] = time_of (v[i]);
  free (v);
}

START_TEST (the_virtual_clock_is_the_same_in_every_run) {
  enum { N = 400 };
  int64_t first[N], second[N];
  for (uint64_t seed = 1; seed < 6; seed++) {
    start (1);
    random_program (seed, first, N);
    start (1);
    random_program (seed, second, N);
    ck_assert_mem_eq (first, second, sizeof first);
  }
}
END_TEST

START_TEST (seconds_of_device_time_take_no_time_and_need_no_memory) {
  emu_config c = emu_case_config (EMU_VIRTUAL);
  c.bytes = EMU_NONE;
  c.memory_bytes = (int64_t)1 << 40;
  emu_case_start (&e, &c);
  CUfunction f = function (&declared);
  CUdeviceptr at = reserve ((size_t)1 << 40);
  map (at, (size_t)1 << 39, create ((size_t)1 << 39));
  OK (add (f, NULL, at, 1000, 1, 3000000000000));
  OK (d->set_bytes_async (at, 0, (size_t)1 << 39, NULL));
  void *host = pinned ((size_t)1 << 36);
  OK (d->copy_out_async (host, at, (size_t)1 << 36, NULL));
  OK (d->stream_synchronize (NULL));
  int64_t now;
  OK (e.now (&now));
  ck_assert_int_eq (now, 3000000000000 + 10000 + ((int64_t)1 << 36));
  OK (add (f, NULL, at + ((CUdeviceptr)1 << 39), 1, 1, 0));
  ck_assert_uint_eq (d->stream_synchronize (NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST (a_held_stream_starts_nothing_and_the_rest_goes_as_far_as_it_can) {
  start (1);
  CUfunction f = function (&silent);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  CUevent v = event_new (), w = event_new ();
  OK (e.hold (s, 1));
  OK (add (f, s, 0, 0, 0, 1000));
  OK (d->event_record (v, s));
  OK (add (f, o, 0, 0, 0, 500));
  OK (d->stream_wait_event (o, v, 0));
  OK (d->event_record (w, o));
  OK (e.advance ());
  int64_t now;
  OK (e.now (&now));
  ck_assert_int_eq (now, 500);
  ck_assert_uint_eq (d->stream_synchronize (o), CUDA_ERROR_LAUNCH_TIMEOUT);
  OK (e.hold (s, 0));
  OK (d->stream_synchronize (o));
  ck_assert_int_eq (time_of (w), 1500);
}
END_TEST

/* ---- 11, 12, limits and planted faults ---- */

START_TEST (out_of_memory_is_2_and_later_calls_work) {
  start (_i);
  CUdeviceptr p, q;
  ck_assert_uint_eq (d->mem_alloc (&p, (64 << 20) + 1), 2);
  OK (d->mem_alloc (&p, 64 << 20));
  ck_assert_uint_eq (d->mem_alloc (&q, 1), 2);
  CUmemGenericAllocationHandle h;
  ck_assert_uint_eq (d->mem_create (&h, G, &plain, 0), 2);
  ck_assert_uint_eq (d->mem_alloc_async (&q, 512, NULL), 2);
  OK (d->mem_free (p));
  h = create (64 << 20);
  OK (d->mem_release (h));
  OK (d->mem_alloc (&p, 64 << 20));
}
END_TEST

START_TEST (memory_can_be_smaller_than_told_and_pinning_refused) {
  emu_config c = emu_case_config (EMU_VIRTUAL);
  c.missing_bytes = 1 << 20;
  c.pinned_bytes = 1 << 20;
  emu_case_start (&e, &c);
  size_t left, total;
  OK (d->mem_get_info (&left, &total));
  ck_assert_uint_eq (left, 64 << 20);
  CUdeviceptr p;
  ck_assert_uint_eq (d->mem_alloc (&p, 64 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  OK (d->mem_alloc (&p, 63 << 20));
  void *host;
  ck_assert_uint_eq (d->mem_host_alloc (&host, (1 << 20) + 1, 0), CUDA_ERROR_OUT_OF_MEMORY);
  OK (d->mem_host_alloc (&host, 1 << 20, 0));
  char own[64];
  ck_assert_uint_eq (d->mem_host_register (own, sizeof own, 0), CUDA_ERROR_OUT_OF_MEMORY);
  OK (d->mem_free_host (host));
  OK (d->mem_host_register (own, sizeof own, 0));
  ck_assert_uint_eq (d->mem_host_register (own, sizeof own, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  OK (d->mem_host_unregister (own));
  ck_assert_uint_eq (d->mem_host_unregister (own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
END_TEST

START_TEST (a_copy_that_fails_ends_the_context) {
  emu_config c = emu_case_config (_i == 0 ? EMU_REAL : EMU_VIRTUAL);
  c.failed_copy = 2;
  emu_case_start (&e, &c);
  CUdeviceptr at;
  OK (d->mem_alloc (&at, G));
  uint32_t *host = pinned (4);
  OK (d->copy_in (at, host, 4));
  ck_assert_uint_eq (d->copy_in (at, host, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
  ck_assert_uint_eq (d->ctx_synchronize (), CUDA_ERROR_ECC_UNCORRECTABLE);
}
END_TEST

START_TEST (parameters_are_told_one_by_one_and_no_further) {
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
END_TEST

START_TEST (a_pinned_buffer_that_a_queued_copy_names_cannot_be_freed) {
  start (_i);
  CUfunction f = function (&silent);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  void *host = pinned (G);
  OK (add (f, s, at, 0, 0, 20000000));
  OK (d->copy_out_async (host, at, G, s));
  ck_assert_uint_eq (d->mem_free_host (host), CUDA_ERROR_INVALID_VALUE);
  OK (d->stream_synchronize (s));
  OK (d->mem_free_host (host));
}
END_TEST

START_TEST (addresses_answer_questions) {
  start (1);
  CUdeviceptr at = alloc (1000), base = 0;
  unsigned int type = 0;
  int mapped = 0;
  size_t size = 0;
  OK (d->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 10));
  ck_assert_uint_eq (type, CU_MEMORYTYPE_DEVICE);
  OK (d->pointer_attribute (&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 10));
  ck_assert_uint_eq (base, at);
  void *host = pinned (10);
  OK (d->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)host));
  ck_assert_uint_eq (type, CU_MEMORYTYPE_HOST);
  OK (d->address_range (&base, &size, at + 999));
  ck_assert_uint_eq (base, at);
  ck_assert_uint_eq (size, 1024);
  CUdeviceptr r = reserve (G);
  OK (d->pointer_attribute (&mapped, CU_POINTER_ATTRIBUTE_MAPPED, r));
  ck_assert_int_eq (mapped, 0);
  CUpointer_attribute ask[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MAPPED };
  void *get[] = { &type, &mapped };
  OK (d->pointer_attributes (2, ask, get, (uintptr_t)&at)); /* not ours: zeros */
  ck_assert_uint_eq (type, 0);
  ck_assert_uint_eq (d->pointer_attribute (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&at),
                     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST (a_tensor_map_holds_the_address_as_a_plain_word) {
  start (1);
  CUdeviceptr at = alloc (G);
  CUtensorMap t;
  uint64_t dims[1] = { 64 };
  uint32_t box[1] = { 8 }, steps[1] = { 1 };
  OK (d->tensor_map_encode (&t, 7, 1, (void *)(uintptr_t)at, dims, NULL, box, steps, 0, 0, 0, 0));
  ck_assert_uint_eq (t.opaque[0], at);
  ck_assert_uint_eq (
      d->tensor_map_encode (&t, 7, 6, (void *)(uintptr_t)at, dims, NULL, box, steps, 0, 0, 0, 0),
      CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST (entry_points_are_found_by_name_in_both_abis) {
  start (1);
  void *p = NULL;
  CUdriverProcAddressQueryResult status;
  OK (d->get_proc_address ("cuMemGetInfo", &p, 12000, 0, &status));
  ck_assert_ptr_eq (p, (void *)d->mem_get_info);
  OK (d->get_proc_address ("cuMemGetInfo", &p, 3010, 0, &status));
  ck_assert_uint_eq (status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  ck_assert_ptr_null (p);
  OK (d->get_proc_address ("cuGraphLaunch", &p, 13000, 0, &status));
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
END_TEST

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

START_TEST (several_host_threads_may_call_at_once) {
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
END_TEST

/* ---- the race checker, the fuzzer ---- */

static int races (emu_race *first) {
  int n;
  OK (e.races (first, first == NULL ? 0 : 1, &n));
  return n;
}

static void start_races (int clock) {
  emu_config c = emu_case_config (clock == 0 ? EMU_REAL : EMU_VIRTUAL);
  c.races = true;
  emu_case_start (&e, &c);
}

/* A kernel writes, a copy on another stream carries it out, a kernel writes again, the host reads.
   One ordering is left out at a time. */
typedef enum left_out {
  NOTHING,
  WAIT_OF_COPY,
  WAIT_OF_SECOND_WRITER,
  WAIT_OF_HOST,
  RECORD_TOO_EARLY,
  WRONG_EVENT,
  FREE_TOO_EARLY,
  LEFT_OUT
} left_out;

static int carry_out_without (int clock, left_out what, emu_race *first) {
  start_races (clock);
  CUfunction f = function (&declared);
  CUstream a = stream_new (CU_STREAM_NON_BLOCKING), b = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr at;
  OK (d->mem_alloc (&at, G));
  void *host = pinned (G);
  CUevent made = event_new (), carried = event_new (), wrong = event_new ();
  OK (d->event_record (wrong, a));
  if (what == RECORD_TOO_EARLY)
    OK (d->event_record (made, a));
  OK (add (f, a, at, G / 4, 1, 1000));
  if (what != RECORD_TOO_EARLY)
    OK (d->event_record (made, a));
  if (what != WAIT_OF_COPY)
    OK (d->stream_wait_event (b, what == WRONG_EVENT ? wrong : made, 0));
  OK (d->copy_out_async (host, at, G, b));
  OK (d->event_record (carried, b));
  if (what != WAIT_OF_SECOND_WRITER)
    OK (d->stream_wait_event (a, carried, 0));
  OK (add (f, a, at, G / 4, 1, 1000));
  if (what == FREE_TOO_EARLY)
    OK (d->mem_free (at));
  OK (what == WAIT_OF_HOST ? d->stream_synchronize (stream_new (CU_STREAM_NON_BLOCKING))
                           : d->event_synchronize (carried));
  OK (e.host_touches (host, G, 0));
  OK (d->ctx_synchronize ());
  return races (first);
}

START_TEST (each_missing_order_is_found_on_the_first_run) {
  emu_race r = { "" };
  for (int what = 0; what < LEFT_OUT; what++) {
    int n = carry_out_without (_i, (left_out)what, &r);
    ck_assert_msg ((n > 0) == (what != NOTHING), "case %d: %d races: %s", what, n, r.text);
  }
}
END_TEST

START_TEST (a_race_is_told_with_both_accesses) {
  emu_race r = { "" };
  ck_assert_int_eq (carry_out_without (1, WAIT_OF_COPY, &r), 1);
  ck_assert_ptr_nonnull (strstr (r.text, "add (actor "));
  ck_assert_ptr_nonnull (strstr (r.text, " writes and copy to host (actor "));
  ck_assert_ptr_nonnull (strstr (r.text, " reads bytes ["));
}
END_TEST

START_TEST (two_addresses_of_one_place_race_and_neighbours_do_not) {
  start_races (1);
  CUfunction f = function (&declared);
  CUmemGenericAllocationHandle h = create (G);
  CUdeviceptr a = reserve (G), b = reserve (G);
  map (a, G, h);
  map (b, G, h);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING), o = stream_new (CU_STREAM_NON_BLOCKING);
  OK (add (f, s, a, 100, 1, 0));
  OK (add (f, o, b + 400, 100, 1, 0));
  ck_assert_int_eq (races (NULL), 0);
  OK (add (f, o, b + 396, 1, 1, 0));
  ck_assert_int_eq (races (NULL), 1);
  OK (d->ctx_synchronize ());
}
END_TEST

static void begin_touches (const emu_launch *l, emu_touch tell, void *context) {
  const add_params *p = l->params;
  if (p->count > 0)
    tell (context, p->at, p->count * 4, EMU_WRITES | EMU_BEGINS);
}

/* One stream, so that everything is ordered: what is wrong is who uses the bytes. */
START_TEST (bytes_belong_to_the_address_that_began_last) {
  static const emu_kernel beginning = { "begin", add_layout, 4, add_run, add_ns, begin_touches };
  emu_case_start (&e, &(emu_config){ .memory_bytes = 4 * G,
                                     .granule_bytes = G,
                                     .d2h_bytes_per_s = 1000000000,
                                     .h2d_bytes_per_s = 1000000000,
                                     .clock = EMU_VIRTUAL,
                                     .races = true,
                                     .owners = true });
  CUfunction use = function (&declared), begin = function (&beginning);
  CUmemGenericAllocationHandle h = create (G);
  CUdeviceptr a = reserve (G), b = reserve (G);
  map (a, G, h);
  map (b, G, h);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  void *host = pinned (G);
  OK (add (begin, s, a, 100, 1, 0));
  OK (add (use, s, a, 50, 1, 0));
  OK (add (begin, s, b, 100, 1, 0));
  OK (add (use, s, b, 100, 1, 0));
  OK (d->copy_in_async (a, host, G, s));
  OK (add (use, s, a, 100, 1, 0));
  ck_assert_int_eq (races (NULL), 0);
  OK (add (use, s, b + 396, 1, 1, 0)); /* a has them */
  emu_race r = { "" };
  ck_assert_int_eq (races (&r), 1);
  ck_assert_ptr_nonnull (strstr (r.text, "as different owners"));
  OK (d->ctx_synchronize ());
}
END_TEST

START_TEST (pinned_bytes_belong_to_the_tag_that_wrote_them) {
  emu_tag tag;
  emu_config c = emu_case_config (EMU_VIRTUAL);
  c.races = c.owners = true;
  emu_case_start (&e, &c);
  void *entry = driver_symbol (d, EMU_TAG);
  memcpy (&tag, &entry, sizeof tag);
  CUdeviceptr at = alloc (G);
  CUstream s = stream_new (CU_STREAM_NON_BLOCKING);
  void *host = pinned (G);
  OK (tag (1));
  OK (d->copy_out_async (host, at, G, s));
  OK (d->copy_in_async (at, host, G, s));
  OK (tag (2));
  OK (d->copy_out_async (host, at, 8, s));
  OK (d->copy_in_async (at, host, 8, s));
  ck_assert_int_eq (races (NULL), 0);
  OK (tag (1));
  OK (d->copy_in_async (at, host, G, s));
  ck_assert_int_eq (races (NULL), 1);
  OK (tag (0));
  OK (d->copy_in_async (at, host, G, s)); /* whose it is is not told: nothing to compare */
  ck_assert_int_eq (races (NULL), 1);
  OK (d->ctx_synchronize ());
}
END_TEST

START_TEST (the_legacy_stream_and_queries_order_for_the_checker_too) {
  start_races (_i);
  CUfunction f = function (&declared);
  CUdeviceptr at;
  OK (d->mem_alloc (&at, G));
  CUstream b = stream_new (CU_STREAM_DEFAULT), n = stream_new (CU_STREAM_NON_BLOCKING);
  OK (add (f, b, at, 1, 1, 1000));
  OK (add (f, NULL, at, 1, 1, 1000));
  OK (add (f, b, at, 1, 1, 1000));
  CUresult r;
  while ((r = d->stream_query (b)) == CUDA_ERROR_NOT_READY)
    ;
  OK (r);
  OK (add (f, n, at, 1, 1, 1000)); /* ordered by what the host has seen */
  OK (d->ctx_synchronize ());
  ck_assert_int_eq (races (NULL), 0);
}
END_TEST

/* What the fuzzer is for: a program with a race comes out differently under some seed, one without
   never does. */
static uint32_t fuzzed (int clock, uint64_t seed, bool waits) {
  emu_config c = emu_case_config (clock == 0 ? EMU_REAL : EMU_VIRTUAL);
  c.fuzz_ns = clock == 0 ? 300000 : 50000;
  c.fuzz_seed = seed;
  emu_case_start (&e, &c);
  CUfunction f = function (&declared);
  CUstream a = stream_new (CU_STREAM_NON_BLOCKING), b = stream_new (CU_STREAM_NON_BLOCKING);
  CUdeviceptr at = alloc (G);
  uint32_t *host = pinned (4);
  CUevent v = event_new ();
  OK (add (f, a, at, 1, 5, 1000));
  OK (d->event_record (v, a));
  if (waits)
    OK (d->stream_wait_event (b, v, 0));
  OK (d->copy_out_async (host, at, 4, b));
  OK (d->ctx_synchronize ());
  return *host;
}

START_TEST (the_fuzzer_shows_a_race_and_spares_an_ordered_program) {
  int stale = 0, rounds = _i == 0 ? 12 : 60;
  for (int seed = 1; seed <= rounds; seed++) {
    ck_assert_uint_eq (fuzzed (_i, (uint64_t)seed, true), 5);
    if (_i == 1) {
      uint32_t got = fuzzed (1, (uint64_t)seed, false);
      ck_assert_uint_eq (got, fuzzed (1, (uint64_t)seed, false));
      stale += got != 5;
    }
  }
  if (_i == 1) {
    ck_assert_int_gt (stale, 5);
    ck_assert_int_lt (stale, 55);
  }
}
END_TEST

/* Three tensors in two slots with aliased addresses: five iterations, each with its sum checked. */
START_TEST (three_tensors_live_in_two_slots_without_mapping_in_between) {
  emu_config c = emu_case_config (_i == 0 ? EMU_REAL : EMU_VIRTUAL);
  c.races = true;
  c.memory_bytes = 2 * 4 * G;
  emu_case_start (&e, &c);
  CUfunction f = function (&declared);
  enum { N = 4 * G };
  CUmemGenericAllocationHandle slot[2] = { create (N), create (N) };
  CUdeviceptr at[3];
  for (int i = 0; i < 3; i++) {
    at[i] = reserve (N);
    map (at[i], N, slot[i == 1]);
  }
  char *host = pinned (2 * (size_t)N);
  memset (host, 0, 2 * (size_t)N);
  CUstream run = stream_new (CU_STREAM_NON_BLOCKING), out = stream_new (CU_STREAM_NON_BLOCKING),
           in = stream_new (CU_STREAM_NON_BLOCKING);
  OK (d->set_bytes_async (at[0], 0, N, run));
  OK (d->set_bytes_async (at[1], 0, N, run));
  for (int step = 0; step < 10; step++) {
    int here = step % 2 == 0 ? 0 : 2, other = 2 - here; /* they share slot 0 */
    CUevent used = event_new (), gone = event_new (), back = event_new ();
    OK (add (f, run, at[here], N / 4, 1, 1000));
    OK (add (f, run, at[1], N / 4, 1, 1000));
    OK (d->event_record (used, run));
    OK (d->stream_wait_event (out, used, 0));
    OK (d->copy_out_async (host + (size_t)(here / 2) * N, at[here], N, out));
    OK (d->event_record (gone, out));
    OK (d->stream_wait_event (in, gone, 0));
    OK (d->copy_in_async (at[other], host + (size_t)(other / 2) * N, N, in));
    OK (d->event_record (back, in));
    OK (d->stream_wait_event (run, back, 0));
  }
  OK (d->ctx_synchronize ());
  for (int i = 0; i < 2; i++)
    for (size_t k = 0; k < N / 4; k++)
      ck_assert_uint_eq (((uint32_t *)(void *)host)[(size_t)i * N / 4 + k], 5);
  emu_race r;
  int n = races (&r);
  ck_assert_msg (n == 0, "%s", r.text);
}
END_TEST

static void add_order (TCase *c) {
  tcase_add_loop_test (c, a_launch_copies_its_parameters_at_the_call, 0, 2);
  tcase_add_loop_test (c, a_stream_is_first_in_first_out_and_two_are_not_ordered, 0, 2);
  tcase_add_loop_test (c, a_wait_captures_the_record_as_it_stands_at_the_call, 0, 2);
  tcase_add_loop_test (c, the_legacy_stream_joins_blocking_streams_and_no_others, 0, 2);
  tcase_add_loop_test (c, pageable_memory_is_staged_at_the_call_and_pinned_memory_read_later, 0, 2);
  tcase_add_loop_test (c, memory_of_the_pool_is_valid_in_stream_order, 0, 2);
  tcase_add_test (c, the_pool_answers_what_a_framework_asks_it);
  tcase_add_loop_test (c, two_addresses_of_one_handle_see_the_same_bytes, 0, 2);
  tcase_add_test (c, what_the_documentation_forbids_is_an_error);
  tcase_add_loop_test (c, an_address_that_is_not_mapped_is_an_error_that_stays, 0, 12);
  tcase_add_loop_test (c, unmapping_under_queued_work_is_refused_or_faults_when_it_runs, 0, 2);
  tcase_add_loop_test (c, a_wrong_argument_is_forgotten_at_once, 0, 2);
  tcase_add_test (c, without_init_or_context_calls_say_so);
  tcase_add_loop_test (c, a_host_function_runs_in_order_and_may_not_call_the_driver, 0, 2);
}

static void add_clocks (TCase *c) {
  tcase_add_loop_test (c, one_copy_each_way_runs_at_once_and_two_of_one_way_take_turns, 0, 2);
  tcase_add_test (c, shared_copies_end_at_the_nanosecond_that_counting_by_hand_gives);
  tcase_add_test (c, the_virtual_clock_is_the_same_in_every_run);
  tcase_add_test (c, seconds_of_device_time_take_no_time_and_need_no_memory);
  tcase_add_test (c, a_held_stream_starts_nothing_and_the_rest_goes_as_far_as_it_can);
  tcase_add_loop_test (c, out_of_memory_is_2_and_later_calls_work, 0, 2);
  tcase_add_test (c, memory_can_be_smaller_than_told_and_pinning_refused);
  tcase_add_loop_test (c, a_copy_that_fails_ends_the_context, 0, 2);
  tcase_add_test (c, parameters_are_told_one_by_one_and_no_further);
  tcase_add_loop_test (c, a_pinned_buffer_that_a_queued_copy_names_cannot_be_freed, 0, 2);
  tcase_add_test (c, addresses_answer_questions);
  tcase_add_test (c, a_tensor_map_holds_the_address_as_a_plain_word);
  tcase_add_test (c, entry_points_are_found_by_name_in_both_abis);
  tcase_add_loop_test (c, several_host_threads_may_call_at_once, 0, 2);
}

static void add_races (TCase *c) {
#ifdef __SANITIZE_THREAD__
  int first =
      1; /* on the real clock the planted races are races of threads, and are found as such */
#else
  int first = 0;
#endif
  tcase_add_loop_test (c, each_missing_order_is_found_on_the_first_run, first, 2);
  tcase_add_test (c, a_race_is_told_with_both_accesses);
  tcase_add_test (c, two_addresses_of_one_place_race_and_neighbours_do_not);
  tcase_add_test (c, bytes_belong_to_the_address_that_began_last);
  tcase_add_test (c, pinned_bytes_belong_to_the_tag_that_wrote_them);
  tcase_add_loop_test (c, the_legacy_stream_and_queries_order_for_the_checker_too, 0, 2);
  tcase_add_loop_test (c, the_fuzzer_shows_a_race_and_spares_an_ordered_program, 0, 2);
  tcase_add_loop_test (c, three_tensors_live_in_two_slots_without_mapping_in_between, 0, 2);
}

int main (void) {
  Suite *s = suite_create ("emu");
  TCase *order = tcase_create ("order"), *clocks = tcase_create ("clocks"),
        *race = tcase_create ("races");
  tcase_set_timeout (order, 30);
  tcase_set_timeout (clocks, 30);
  tcase_set_timeout (race, 30);
  add_order (order);
  add_clocks (clocks);
  add_races (race);
  suite_add_tcase (s, order);
  suite_add_tcase (s, clocks);
  suite_add_tcase (s, race);
  SRunner *r = srunner_create (s);
  srunner_run_all (r, CK_ENV);
  int failed = srunner_ntests_failed (r);
  srunner_free (r);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
