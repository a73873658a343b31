/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver's race checker, and the fuzzer that shows a race by what comes out (loop
   index 0: the real clock, 1: the virtual one). */
#include <string.h>

#include "tests/emu_calls.h"
#include "tests/suite.h"

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

#ifdef __SANITIZE_THREAD__
enum {
  FIRST_CLOCK = 1
}; /* on the real one the planted races are those of threads, and found as such */
#else
enum { FIRST_CLOCK = 0 };
#endif

CLAIM_EACH (each_missing_order_is_found_on_the_first_run, FIRST_CLOCK, 2) {
  emu_race r = { "" };
  for (int what = 0; what < LEFT_OUT; what++) {
    int n = carry_out_without (_i, (left_out)what, &r);
    ck_assert_msg ((n > 0) == (what != NOTHING), "case %d: %d races: %s", what, n, r.text);
  }
}

CLAIM (a_race_is_told_with_both_accesses) {
  emu_race r = { "" };
  ck_assert_int_eq (carry_out_without (1, WAIT_OF_COPY, &r), 1);
  ck_assert_ptr_nonnull (strstr (r.text, "add (actor "));
  ck_assert_ptr_nonnull (strstr (r.text, " writes and copy to host (actor "));
  ck_assert_ptr_nonnull (strstr (r.text, " reads bytes ["));
}

CLAIM (two_addresses_of_one_place_race_and_neighbours_do_not) {
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

static void begin_touches (const emu_launch *l, emu_touch tell, void *context) {
  const add_params *p = l->params;
  if (p->count > 0)
    tell (context, p->at, p->count * 4, EMU_WRITES | EMU_BEGINS);
}

/* One stream, so that everything is ordered: what is wrong is who uses the bytes. */
CLAIM (bytes_belong_to_the_address_that_began_last) {
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

CLAIM (pinned_bytes_belong_to_the_tag_that_wrote_them) {
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

CLAIM_EACH (the_legacy_stream_and_queries_order_for_the_checker_too, 0, 2) {
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

CLAIM_EACH (the_fuzzer_shows_a_race_and_spares_an_ordered_program, 0, 2) {
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

/* Three tensors in two slots with aliased addresses: five iterations, each with its sum checked. */
CLAIM_EACH (three_tensors_live_in_two_slots_without_mapping_in_between, 0, 2) {
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

int main (void) {
  return suite_run ("emu races", 30);
}
