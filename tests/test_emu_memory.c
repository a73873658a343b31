/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver, docs/emulator.md 7, 8, 11 and 12: mapped addresses, how much memory there
   is, and what an address is asked.  Where the clock matters, on both (loop index 0: real, 1:
   virtual). */
#include <dlfcn.h>

#include "tests/emu_calls.h"
#include "tests/suite.h"

/* ---- virtual memory ---- */

CLAIM_EACH (two_addresses_of_one_handle_see_the_same_bytes, 0, 2) {
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

CLAIM (what_the_documentation_forbids_is_an_error) {
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

/* Loop: clock x what is wrong with the address. */
CLAIM_EACH (an_address_that_is_not_mapped_is_an_error_that_stays, 0, 12) {
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

CLAIM_EACH (unmapping_under_queued_work_is_refused_or_faults_when_it_runs, 0, 2) {
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

/* ---- limits and planted faults ---- */

CLAIM_EACH (out_of_memory_is_2_and_later_calls_work, 0, 2) {
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

CLAIM (memory_can_be_smaller_than_told_and_pinning_refused) {
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

CLAIM_EACH (a_copy_that_fails_ends_the_context, 0, 2) {
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

CLAIM_EACH (a_pinned_buffer_that_a_queued_copy_names_cannot_be_freed, 0, 2) {
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

/* ---- addresses ---- */

CLAIM (addresses_answer_questions) {
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

/* Against loops that say which byte goes where. */
CLAIM (a_copy_in_three_dimensions_moves_what_lies_in_the_box) {
  enum { PITCH = 40, ROWS = 9, PLANES = 5, BYTES = PITCH * ROWS * PLANES, WIDE = 64 };
  static unsigned char from[BYTES], to[WIDE * 7 * PLANES], wanted[sizeof to];
  CUresult (*copy) (const CUDA_MEMCPY3D *);
  start (1);
  *(void **)&copy = dlsym (d->library, "cuMemcpy3D_v2");
  ck_assert_ptr_nonnull ((void *)copy);
  for (int i = 0; i < BYTES; i++)
    from[i] = (unsigned char)(i * 37 + i / 251);
  CUdeviceptr at = alloc (BYTES);
  OK (d->copy_in (at, from, BYTES));
  CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                      .srcDevice = at,
                      .srcPitch = PITCH,
                      .srcHeight = ROWS,
                      .srcXInBytes = 3,
                      .srcY = 2,
                      .srcZ = 1,
                      .dstMemoryType = CU_MEMORYTYPE_HOST,
                      .dstHost = to,
                      .dstPitch = WIDE,
                      .dstHeight = 7,
                      .dstXInBytes = 11,
                      .dstY = 1,
                      .dstZ = 2,
                      .WidthInBytes = 30,
                      .Height = 6,
                      .Depth = 3 };
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 6; y++)
      for (int x = 0; x < 30; x++)
        wanted[((z + 2) * 7 + y + 1) * WIDE + x + 11] =
            from[((z + 1) * ROWS + y + 2) * PITCH + x + 3];
  OK (copy (&c));
  ck_assert_mem_eq (to, wanted, sizeof to);
  c.srcHeight = 7; /* its rows would lie in two planes */
  ck_assert_uint_eq (copy (&c), CUDA_ERROR_INVALID_VALUE);
  c.Depth = 0;
  OK (copy (&c));
}

CLAIM (a_tensor_map_holds_the_address_as_a_plain_word) {
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

int main (void) {
  return suite_run ("emu memory", 30);
}
