/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/random.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/summary.h"

static summary summed (const trace *t, arena *a) {
  summary s;
  error err = { 0 };
  ck_assert_msg (summary_of (t, a, &s, &err), "%s", err.text);
  return s;
}

static const trace *parsed (const char *text, arena *a) {
  error err = { 0 };
  const trace *t = trace_parse (text, (int64_t)strlen (text), NULL, a, &err);
  ck_assert_msg (t != NULL, "%s %s", err.where, err.text);
  return t;
}

/* The figures of one trace, worked out by hand, are tests/cases/info-figures. */

static const char one_tensor[] = "{\"format\":\"ferry-trace/1\",\"tensors\":[{\"bytes\":8,"
                                 "\"born_before\":0,\"dies_after\":3}],\"ops\":[{},"
                                 "{\"writes\":[0]},{\"reads\":[0]},{},{}]}";

CLAIM_IN_ARENA (born_before_and_dies_after_widen_a_life) {
  summary s = summed (parsed (one_tensor, a), a);
  static const int64_t bytes_at[] = { 8, 8, 8, 8, 0 };
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq (s.bytes_at[i], bytes_at[i]);
}

/* Op 1 runs beside op 0, which takes longer; op 2 waits for both. */
CLAIM_IN_ARENA (of_streams_that_are_idle_side_by_side_only_the_gaps_of_a_path_count) {
  const char text[] =
      "{\"format\":\"ferry-trace/1\",\"tensors\":[],\"ops\":[{\"ns\":50,\"gap_ns\":3},"
      "{\"ns\":20,\"gap_ns\":7,\"stream\":1},"
      "{\"ns\":10,\"gap_ns\":5,\"after\":[1]}]}";
  summary s = summed (parsed (text, a), a);
  ck_assert_int_eq (s.idle_ns, 8);
  ck_assert_int_eq (s.compute_ns, 80);
}

CLAIM_IN_ARENA (sums_beyond_64_bits_are_an_error) {
  summary s;
  trace_builder *b = build_new (a, "huge", 1, &err);
  for (int i = 0; i < 40000; i++)
    build_tensor (b, "", MOST_TENSOR_BYTES, TENSOR_PARAMETER);
  build_op (b, "", OP_OTHER, 1);
  trace *t = build_finish (b, &err);
  ck_assert_ptr_nonnull (t);
  ck_assert (!summary_of (t, a, &s, &err));
  ck_says (&err, "/tensors: together more than 2^63 bytes");
}

/* ---- against loops that share nothing with it ---- */

static const trace *random_trace (random_state *r, arena *a) {
  error err = { 0 };
  int32_t ops = (int32_t)random_between (r, 1, 12), tensors = (int32_t)random_between (r, 0, 15);
  trace_builder *b = build_new (a, "", random_between (r, 1, 9), &err);
  for (int32_t x = 0; x < tensors; x++) {
    build_tensor (b, "", random_between (r, 9, 1000), (tensor_kind)random_between (r, 0, 6));
    build_tensor_at (b, x)->pinned = random_chance (r, 100000);
    build_tensor_at (b, x)->split = random_chance (r, 500000);
  }
  for (int32_t i = 0; i < ops; i++) {
    build_op (b, "", OP_OTHER, random_between (r, 0, 9));
    build_op_at (b, i)->workspace_bytes = random_between (r, 0, 300);
    build_op_at (b, i)->parts = random_between (r, 1, 12);
    for (int k = 0; k < 4 && tensors; k++)
      if (random_chance (r, 500000))
        build_read (b, (int32_t)random_between (r, 0, tensors - 1));
      else
        build_write (b, (int32_t)random_between (r, 0, tensors - 1));
  }
  const trace *t = build_finish (b, &err);
  ck_assert_msg (t != NULL, "%s %s", err.where, err.text);
  return t;
}

static bool lives (const trace *t, int32_t op, int32_t x) {
  bool before = false, after = false;
  for (int32_t i = 0; i < t->n_ops; i++)
    if (op_touches (&t->ops[i], x)) {
      before |= i <= op;
      after |= i >= op;
    }
  return t->tensors[x].persistent || (before && after);
}

/* What the largest of the sections of an op holds, one section after the other. */
static int64_t largest_section (const trace *t, int32_t i) {
  int64_t parts = t->ops[i].parts < t->batch ? t->ops[i].parts : t->batch, most = 0;
  for (int64_t p = 0; p < parts; p++) {
    int64_t from = p * t->batch / parts, to = (p + 1) * t->batch / parts;
    int64_t w = t->ops[i].workspace_bytes;
    int64_t sum = w * to / t->batch - w * from / t->batch;
    for (int32_t x = 0; x < t->n_tensors; x++) {
      const tensor *at = &t->tensors[x];
      if (at->pinned ? lives (t, i, x) : op_touches (&t->ops[i], x))
        sum += at->split && !at->pinned ? at->bytes * to / t->batch - at->bytes * from / t->batch
                                        : at->bytes;
    }
    most = sum > most ? sum : most;
  }
  return most;
}

CLAIM (random_traces_agree_with_plain_loops) {
  random_state r = random_seed (17);
  for (int round = 0; round < 2000; round++) {
    arena *a = arena_new (0);
    const trace *t = random_trace (&r, a);
    summary s = summed (t, a);
    int64_t peak = 0, floor = 0, sections = 0;
    int32_t cut = 0;
    for (int32_t i = 0; i < t->n_ops; i++) {
      int64_t all = t->ops[i].workspace_bytes, set = all;
      for (int32_t x = 0; x < t->n_tensors; x++) {
        bool alive = lives (t, i, x);
        all += alive ? t->tensors[x].bytes : 0;
        set +=
            op_touches (&t->ops[i], x) || (alive && t->tensors[x].pinned) ? t->tensors[x].bytes : 0;
        cut += t->tensors[x].split;
      }
      ck_assert_int_eq (s.bytes_at[i], all);
      peak = all > peak ? all : peak;
      floor = set > floor ? set : floor;
      int64_t section = largest_section (t, i);
      sections = section > sections ? section : sections;
    }
    ck_assert_int_eq (s.peak_bytes, peak);
    ck_assert_int_eq (s.floor_bytes, floor);
    /* a bound from below that is short by less than a byte for each thing that is cut */
    ck_assert_int_le (s.floor_sections_bytes, sections);
    ck_assert_int_ge (s.floor_sections_bytes, sections - cut - 1);
    arena_free (a);
  }
}

CLAIM_IN_ARENA (every_failing_allocation_is_reported) {
  const trace *t = parsed (one_tensor, a);
  for (int n = 1; n <= 2; n++) {
    summary s;
    error err = { 0 };
    arena_fuse (a, n);
    ck_assert (!summary_of (t, a, &s, &err));
    ck_assert_int_eq (err.code, ERR_memory);
  }
}

int main (void) {
  return suite_run ("summary", 30);
}
