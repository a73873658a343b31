/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emulated driver, docs/emulator.md 10: engines and the two clocks (loop index 0: real, 1:
   virtual). */
#include <stdlib.h>

#include "base/random.h"
#include "tests/emu_calls.h"
#include "tests/suite.h"

enum { N = 20000000, COPIES = 3, WAYS = 4, ATTEMPTS = 5 }; /* 20 ms at 1 GB/s */

typedef struct copying {
  CUfunction f;
  CUdeviceptr at[COPIES];
  char *host;
  CUstream stream[WAYS];
  CUevent end[WAYS], go;
} copying;

static void begin (copying *c) {
  *c = (copying){ .f = function (&silent), .go = event_new () };
  for (int i = 0; i < COPIES; i++)
    OK (d->mem_alloc (&c->at[i], N));
  c->host = pinned (COPIES * N);
  for (int i = 0; i < WAYS; i++) {
    c->stream[i] = stream_new (CU_STREAM_NON_BLOCKING);
    c->end[i] = event_new ();
  }
}

/* A copy out, one in, another out, and an op, all asked for at once: when each ended. */
static void all_at_once (copying *c, int64_t t[WAYS]) {
  OK (d->event_record (c->go, c->stream[0]));
  OK (d->copy_out_async (c->host, c->at[0], N, c->stream[0]));
  OK (d->event_record (c->end[0], c->stream[0]));
  OK (d->copy_in_async (c->at[1], c->host + N, N, c->stream[1]));
  OK (d->event_record (c->end[1], c->stream[1]));
  OK (d->copy_out_async (c->host + 2 * N, c->at[2], N, c->stream[2]));
  OK (d->event_record (c->end[2], c->stream[2]));
  OK (add (c->f, c->stream[3], c->at[0], 0, 1, N));
  OK (d->event_record (c->end[3], c->stream[3]));
  OK (d->ctx_synchronize ());
  for (int i = 0; i < WAYS; i++)
    t[i] = time_of (c->end[i]) - time_of (c->go);
}

CLAIM_EACH (one_copy_each_way_runs_at_once_and_two_of_one_way_take_turns, 0, 2) {
  start (_i);
  copying c;
  int64_t t[WAYS], apart = 0;
  begin (&c);
  if (_i == 1) {
    all_at_once (&c, t);
    /* 10 us and 20,000,000 bytes at 1 byte a ns. */
    ck_assert_int_eq (t[0], 20010000);
    ck_assert_int_eq (t[1], 20010000);
    ck_assert_int_eq (t[2], 40020000);
    ck_assert_int_eq (t[3], 20000000);
    return;
  }
  /* Threads on a busy machine may be late, and what is late is caught up with: the ends of copies
     that take turns come nearer, once in a while. */
  for (int i = 0; i < ATTEMPTS && apart < 15000000; i++) {
    all_at_once (&c, t);
    apart = llabs (t[2] - t[0]);
  }
  ck_assert_int_ge (apart, 15000000);
}

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

CLAIM (shared_copies_end_at_the_nanosecond_that_counting_by_hand_gives) {
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

CLAIM (the_virtual_clock_is_the_same_in_every_run) {
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

CLAIM (seconds_of_device_time_take_no_time_and_need_no_memory) {
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

CLAIM (a_held_stream_starts_nothing_and_the_rest_goes_as_far_as_it_can) {
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

int main (void) {
  return suite_run ("emu clock", 30);
}
