/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded memory snapshots, kernels of a simulator and intervals against numbers that were counted
   off them by other means; and that every importer repeats itself. */
#include <string.h>

#include "tests/real_case.h"
#include "trace/import/snapshot/snapshot.h"

/* ---- memory snapshot ---- */

CLAIM (a_snapshot_has_its_blocks_and_its_peak) {
  import_case c;
  snapshot s;
  open_real (&c, "snapshot/medium_128_training_memory_snapshot.pickle");
  ck_assert (snapshot_read (&c.job, &c.file, &s));
  ck_assert_int_eq (s.n_events, 19136);
  ck_assert_int_eq (s.n_allocs, 6526);
  ck_assert_int_eq (s.requested_frees, 6305);
  ck_assert_int_eq (s.completed_frees, 6305);
  ck_assert_int_eq (s.unseen_frees, 438);
  ck_assert_int_eq (s.pairs, 5867);
  ck_assert_int_eq (s.size_mismatches, 0);
  ck_assert_int_eq (s.start_bytes, 5095321600);
  ck_assert_int_eq (s.peak_bytes, 7013335044);
  ck_assert_int_eq (s.peak_event, 9966);
  ck_assert_int_eq (s.net_bytes, 1713213444);
  ck_assert_int_eq (s.allocated_bytes, 34448091337);
  ck_assert_int_eq (s.largest_bytes, 40960000);
  ck_assert_int_eq (s.active_bytes, 6808535044);
  ck_assert_int_eq (s.padded_bytes, 6816891392);
  ck_assert_int_eq (s.reserved_bytes, 7235174400);
  ck_assert_int_eq (s.live_count, 659);
  ck_assert_int_eq (s.live_bytes, 5098680324);
  ck_assert_int_eq (s.segments, 377);
  ck_assert_int_eq (s.n_segment_blocks, 918);
  ck_assert_int_eq (s.active_blocks, 885);
  ck_assert_int_eq (s.last_us - s.first_us, 168000);
  ck_assert (!s.times_decrease);
  int odd = 0;
  for (int32_t i = 0; i < s.n_blocks; i++)
    odd += s.blocks[i].alloc >= 0 && s.blocks[i].bytes % 512 != 0;
  ck_assert_int_eq (odd, 51);
  import_case_close (&c);
}

CLAIM (a_snapshot_says_who_holds_the_peak_and_is_not_plannable) {
  import_report r;
  trace *t = import_one ("snapshot/medium_128_training_memory_snapshot.pickle", &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_int_eq (r.peak_bytes, 7013335044);
  ck_assert_ptr_nonnull (strstr (r.advice, "has lifetimes and sizes but no ops"));
  bool python = false;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    ck_assert_ptr_null (strchr (t->tensors[i].name, '/')); /* base names only */
    python |= strncmp (t->tensors[i].name, "model.py:", 9) == 0;
  }
  ck_assert (python);
}

/* ---- simulators ---- */

typedef struct g10_numbers {
  const char *file;
  int64_t kernels, tensors, globals, global_bytes, other_bytes, total_ns, shortest_ns, longest_ns;
  int64_t peak, peak_op, peak_all, working_set, working_op, ins, outs, both, read_first,
      read_first_bytes, largest;
} g10_numbers;

static const g10_numbers g10[] = {
  { "g10/bert_base_b256.json",
    1369,
    1463,
    156,
    17823494144,
    141134852096,
    7285465722,
    9216,
    145863677,
    33458749440,
    486,
    51282243584,
    2415919104,
    1331,
    2546,
    1532,
    278,
    53,
    6946816,
    402653184 },
  { "g10/resnet152_b256.json",
    1299,
    3366,
    622,
    242307072,
    246615396352,
    106107349675,
    3072,
    626364441,
    58676908032,
    423,
    58919215104,
    3288358912,
    1237,
    3162,
    3467,
    723,
    0,
    0,
    1247285248 },
};

/* Peak of tensors that are not persistent, by obvious loops. */
static void ck_live (const trace *t, const g10_numbers *e) {
  int32_t *first = calloc ((size_t)t->n_tensors, sizeof *first);
  int32_t *last = calloc ((size_t)t->n_tensors, sizeof *last);
  int64_t peak = 0, peak_op = 0, set = 0, set_op = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    first[i] = last[i] = -1;
  for (int32_t k = 0; k < t->n_ops; k++)
    for (int w = 0; w < 2; w++) {
      const index_list *l = w ? &t->ops[k].writes : &t->ops[k].reads;
      for (int32_t j = 0; j < l->count; j++) {
        if (first[l->at[j]] < 0)
          first[l->at[j]] = k;
        last[l->at[j]] = k;
      }
    }
  for (int32_t k = 0; k < t->n_ops; k++) {
    int64_t live = 0, used = 0;
    for (int32_t i = 0; i < t->n_tensors; i++)
      if (!t->tensors[i].persistent && first[i] >= 0 && first[i] <= k && k <= last[i])
        live += t->tensors[i].bytes;
    if (live > peak) {
      peak = live;
      peak_op = k;
    }
    const op *o = &t->ops[k];
    for (int32_t j = 0; j < o->reads.count; j++)
      used += t->tensors[o->reads.at[j]].bytes;
    for (int32_t j = 0; j < o->writes.count; j++)
      used += list_holds (&o->reads, o->writes.at[j]) ? 0 : t->tensors[o->writes.at[j]].bytes;
    if (used > set) {
      set = used;
      set_op = k;
    }
  }
  ck_assert_int_eq (peak, e->peak);
  ck_assert_int_eq (peak_op, e->peak_op);
  ck_assert_int_eq (set, e->working_set);
  ck_assert_int_eq (set_op, e->working_op);
  free (first);
  free (last);
}

CLAIM_EACH (kernels_of_a_simulator_map_one_to_one, 0, 2) {
  const g10_numbers *e = &g10[_i];
  import_report r;
  trace *t = import_one (e->file, &r);
  ck_assert_int_eq (t->n_ops, e->kernels);
  ck_assert_int_eq (t->n_tensors, e->tensors);
  ck_assert_int_eq (trace_total_ns (t), e->total_ns);
  ck_assert_int_eq (r.n_warnings, 0);
  int64_t n[2] = { 0 }, bytes[2] = { 0 }, inputs = 0, input_bytes = 0, largest = 0;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    n[x->persistent]++;
    bytes[x->persistent] += x->bytes;
    inputs += x->kind == TENSOR_INPUT;
    input_bytes += x->kind == TENSOR_INPUT ? x->bytes : 0;
    ck_assert_int_eq (x->born_before, x->kind == TENSOR_INPUT ? 0 : NO_OP);
    largest = x->bytes > largest ? x->bytes : largest;
  }
  ck_assert_int_eq (n[1], e->globals);
  ck_assert_int_eq (bytes[1], e->global_bytes);
  ck_assert_int_eq (bytes[0], e->other_bytes);
  ck_assert_int_eq (inputs, e->read_first);
  ck_assert_int_eq (input_bytes, e->read_first_bytes);
  ck_assert_int_eq (largest, e->largest);
  int64_t ins = 0, outs = 0, both = 0, shortest = INT64_MAX, longest = 0;
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    ins += o->reads.count;
    outs += o->writes.count;
    for (int32_t j = 0; j < o->writes.count; j++)
      both += list_holds (&o->reads, o->writes.at[j]);
    shortest = o->ns < shortest ? o->ns : shortest;
    longest = o->ns > longest ? o->ns : longest;
  }
  ck_assert_int_eq (ins, e->ins);
  ck_assert_int_eq (outs, e->outs);
  ck_assert_int_eq (both, e->both);
  ck_assert_int_eq (shortest, e->shortest_ns);
  ck_assert_int_eq (longest, e->longest_ns);
  ck_live (t, e);
  /* inputs are alive from the start, which the published peak does not count */
  ck_assert_int_ge (r.peak_bytes, e->peak_all);
  ck_assert_int_le (r.peak_bytes, e->peak_all + e->read_first_bytes);
}

/* ---- intervals ---- */

CLAIM_EACH (interval_files_have_their_peaks, 0, 3) {
  static const struct {
    const char *file;
    int64_t n, sum, peak, largest;
  } rows[] = { { "minimalloc/A.csv", 154, 15071232, 1048576, 656384 },
               { "minimalloc/B.csv", 170, 17871872, 1048576, 632832 },
               { "minimalloc/C.csv", 203, 21476352, 1039360, 712704 } };
  import_report r;
  trace *t = import_one (rows[_i].file, &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_int_eq (t->n_tensors, rows[_i].n);
  int64_t sum = 0, largest = 0;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    sum += t->tensors[i].bytes;
    largest = t->tensors[i].bytes > largest ? t->tensors[i].bytes : largest;
  }
  ck_assert_int_eq (sum, rows[_i].sum);
  ck_assert_int_eq (largest, rows[_i].largest);
  ck_assert_int_eq (r.peak_bytes, rows[_i].peak);
  ck_assert_str_eq (t->ops[0].name, "t=0");
}

/* ---- all ---- */

CLAIM_EACH (the_same_files_give_the_same_bytes, 0, 3) {
  static const char *const names[] = { "kineto/resnet50_v100_b32_step6.kineto.json.gz",
                                       "kineto/hta_ddp2_v100_step3.kineto.json.gz",
                                       "chakra/chakra.0.et" };
  import_report r[2];
  bytes a, b;
  error err = { 0 };
  ck_assert (trace_text (import_one (names[_i], &r[0]), TRACE_PACKED, &a, &err));
  ck_assert (trace_text (import_one (names[_i], &r[1]), TRACE_PACKED, &b, &err));
  ck_assert_int_eq (a.size, b.size);
  ck_assert_int_eq (memcmp (a.data, b.data, (size_t)a.size), 0);
  bytes_free (&a);
  bytes_free (&b);
}

int main (void) {
  return suite_run_real ("real files", 20);
}
