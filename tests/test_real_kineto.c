/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded Kineto files against numbers that were counted off them by other means. */
#include <string.h>

#include "tests/real_case.h"

static int launched_from (const kineto *k, const char *thread) {
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    slice name = k->threads.texts[k->launches[k->gpu[i].launch].thread];
    n += slice_is (name, thread);
  }
  return n;
}

/* Pairs by the thread of the alloc and that of the free. */
typedef struct classes {
  int64_t n[2][2], bytes[2][2];
} classes;

static classes sum_classes (const kineto *k, const kineto_blocks *b, const char *main_thread) {
  classes c = { 0 };
  for (int32_t i = 0; i < b->count; i++) {
    const kineto_block *x = &b->at[i];
    if (x->alloc == NONE || x->release == NONE)
      continue;
    int from = !slice_is (k->threads.texts[k->memory[x->alloc].thread], main_thread);
    int to = !slice_is (k->threads.texts[k->memory[x->release].thread], main_thread);
    c.n[from][to]++;
    c.bytes[from][to] += x->bytes;
  }
  return c;
}

static int count_sizes (const kineto *k, int *odd) {
  int64_t sizes[512];
  int n = 0;
  *odd = 0;
  for (int32_t i = 0; i < k->n_memory; i++) {
    int64_t size = k->memory[i].bytes;
    if (size < 0)
      continue;
    *odd += size % 512 != 0;
    int at = 0;
    while (at < n && sizes[at] != size)
      at++;
    ck_assert_int_lt (at, 512);
    if (at == n)
      sizes[n++] = size;
  }
  return n;
}

static int count_outside (const kineto *k) {
  int n = 0;
  for (int32_t i = 0; i < k->n_memory; i++)
    n += k->memory[i].around == NONE;
  return n;
}

CLAIM (a_resnet_step_of_2021_has_its_ops_and_times) {
  opened o;
  open_kineto (&o, "kineto/resnet50_v100_b32_step6.kineto.json.gz", true);
  const kineto *k = &o.k;
  ck_assert (k->old_dialect);
  ck_assert_int_eq (k->n_events, 8818);
  ck_assert_int_eq (k->n_ops, 3413);
  ck_assert_int_eq (k->n_steps, 1);
  ck_assert_int_eq (k->n_launches, 2014);
  count_gpu (k, (int[]){ 1478, 2, 63 }, 102254);
  ck_assert_int_eq (count_owners (k), 1268);
  ck_assert_int_eq (o.it.n_runs, 1268);
  ck_assert_int_eq (launched_from (k, "5555/5555"), 923);
  ck_assert_int_eq (launched_from (k, "5555/5786"), 620);
  stream_sum s = sum_stream (k, 7);
  ck_assert_int_eq (s.sum, 102254000);
  ck_assert_int_eq (s.gap, 21578000);
  ck_assert_int_eq (s.largest, 654000);
  ck_assert_int_eq (o.it.span_ns, 123832000);
  ck_assert_int_eq (o.it.window.end_ns - o.it.window.start_ns, 123884000);
  int64_t copied = 0, forward = 0, backward = 0, both = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    copied += k->gpu[i].kind == GPU_MEMCPY ? k->gpu[i].bytes : 0;
  ck_assert_int_eq (copied, 19267840);
  char seen[2][100000] = { { 0 } };
  int64_t least = INT64_MAX;
  for (int32_t i = 0; i < k->n_ops; i++)
    if (k->ops[i].sequence >= 0 && k->ops[i].sequence < least)
      least = k->ops[i].sequence;
  for (int32_t i = 0; i < k->n_ops; i++)
    if (k->ops[i].sequence >= 0 && k->ops[i].sequence - least < 100000)
      seen[k->ops[i].has_forward_thread][k->ops[i].sequence - least] = 1;
  for (int i = 0; i < 100000; i++) {
    forward += seen[0][i];
    backward += seen[1][i];
    both += seen[0][i] && seen[1][i];
  }
  ck_assert_int_eq (forward, 179);
  ck_assert_int_eq (backward, 178);
  ck_assert_int_eq (both, 178);
  import_case_close (&o.c);
}

CLAIM (a_resnet_step_of_2021_has_its_memory_paired_by_size) {
  opened o;
  kineto_blocks b;
  kineto_peak peak;
  int odd;
  open_kineto (&o, "kineto/resnet50_v100_b32_step6.kineto.json.gz", true);
  kineto_sum (&o.k, o.it.device, o.it.window, &peak);
  ck_assert_int_eq (peak.allocs, 690);
  ck_assert_int_eq (peak.frees, 690);
  ck_assert_int_eq (peak.allocated_bytes, 10441475584);
  ck_assert_int_eq (peak.largest_bytes, 116195328);
  ck_assert_int_eq (peak.above_bytes, 2791505408);
  ck_assert_int_eq (peak.end_bytes, 0);
  ck_assert_int_eq (peak.baseline_bytes, -1);
  ck_assert_int_eq (count_sizes (&o.k, &odd), 53);
  ck_assert_int_eq (odd, 0);
  ck_assert_int_eq (o.k.n_memory, 1380);
  ck_assert_int_eq (count_outside (&o.k), 611);
  ck_assert_int_eq (o.k.cpu_memory_events, 447);
  ck_assert (kineto_pair (&o.c.job, &o.k, o.it.device, &b));
  ck_assert (!b.by_address && !b.has_totals);
  ck_assert_int_eq (b.count, 690);
  ck_assert_int_eq (b.unpaired_allocs + b.unpaired_frees, 0);
  classes c = sum_classes (&o.k, &b, "5555/5555");
  ck_assert_int_eq (c.n[0][0], 84);
  ck_assert_int_eq (c.bytes[0][0], 780555264);
  ck_assert_int_eq (c.n[0][1], 213);
  ck_assert_int_eq (c.bytes[0][1], 2738700800);
  ck_assert_int_eq (c.n[1][1], 393);
  ck_assert_int_eq (c.bytes[1][1], 6922219520);
  import_case_close (&o.c);
}

CLAIM (a_data_parallel_step_of_2022_has_its_ops_and_times) {
  opened o;
  open_kineto (&o, "kineto/hta_ddp2_v100_step3.kineto.json.gz", true);
  const kineto *k = &o.k;
  ck_assert (!k->old_dialect);
  ck_assert_int_eq (k->n_events, 30315);
  ck_assert_int_eq (k->n_ops - k->n_annotations, 11336);
  ck_assert_int_eq (k->n_annotations + k->n_steps, 407);
  count_gpu (k, (int[]){ 3874, 408, 176 }, 188214);
  ck_assert_int_eq (count_owners (k), 4108);
  ck_assert_int_eq (launched_from (k, "783658/783658"), 1743);
  ck_assert_int_eq (launched_from (k, "783658/785244"), 2715);
  ck_assert_int_eq (o.it.stream, 7);
  stream_sum s7 = sum_stream (k, 7), s14 = sum_stream (k, 14);
  ck_assert_int_eq (s7.n, 4054);
  ck_assert_int_eq (s7.sum, 128696000);
  ck_assert_int_eq (s7.gap, 231587000);
  ck_assert_int_eq (s14.n, 404);
  ck_assert_int_eq (s14.sum, 59518000);
  ck_assert_int_eq (s14.gap, 71290000);
  ck_assert_int_eq (o.it.span_ns, 360283000);
  ck_assert_int_eq (o.it.window.end_ns - o.it.window.start_ns, 365256000);
  /* owners and runs of both streams together */
  int32_t runs = o.it.n_runs;
  o.it.stream = 14;
  ck_assert (kineto_runs (&o.c.job, k, o.it.window, &o.it));
  ck_assert_int_eq (runs + o.it.n_runs, 4108);
  int64_t copied = 0;
  for (int32_t i = 0; i < k->n_gpu; i++)
    copied += k->gpu[i].kind == GPU_MEMCPY ? k->gpu[i].bytes : 0;
  ck_assert_int_eq (copied, 1178557520);
  import_case_close (&o.c);
}

CLAIM (a_data_parallel_step_of_2022_has_its_memory_paired_by_address) {
  opened o;
  kineto_blocks b;
  kineto_peak peak;
  int odd;
  open_kineto (&o, "kineto/hta_ddp2_v100_step3.kineto.json.gz", true);
  ck_assert (o.k.unsorted);
  kineto_sum (&o.k, o.it.device, o.it.window, &peak);
  ck_assert_int_eq (peak.allocs, 2677);
  ck_assert_int_eq (peak.frees, 2677);
  ck_assert_int_eq (peak.allocated_bytes, 10493824000);
  ck_assert_int_eq (peak.largest_bytes, 98566144);
  ck_assert_int_eq (count_sizes (&o.k, &odd), 96);
  ck_assert_int_eq (peak.baseline_bytes, 4096614400);
  ck_assert_int_eq (peak.above_bytes, 2532893696);
  ck_assert_int_eq (peak.peak_total_bytes, 6629508096);
  ck_assert_int_eq (peak.peak_reserved_bytes, 12782141440);
  ck_assert_int_eq (peak.end_bytes, 0);
  ck_assert_int_eq (o.k.n_memory, 5354);
  ck_assert_int_eq (count_outside (&o.k), 3);
  ck_assert (kineto_pair (&o.c.job, &o.k, o.it.device, &b));
  ck_assert (b.by_address && b.has_totals);
  ck_assert_int_eq (b.count, 2677);
  ck_assert_int_eq (b.size_mismatches, 0);
  ck_assert_int_eq (b.unpaired_allocs + b.unpaired_frees, 0);
  ck_assert_int_eq (b.breaks, 0);
  ck_assert_int_eq (o.k.unsorted_breaks, 2);
  classes c = sum_classes (&o.k, &b, "783658/783658");
  ck_assert_int_eq (c.n[0][0], 543);
  ck_assert_int_eq (c.bytes[0][0], 1793742848);
  ck_assert_int_eq (c.n[0][1], 316);
  ck_assert_int_eq (c.bytes[0][1], 1329586176);
  ck_assert_int_eq (c.n[1][1], 1818);
  ck_assert_int_eq (c.bytes[1][1], 7370494976);
  import_case_close (&o.c);
}

CLAIM (kineto_traces_keep_the_time_and_the_peak_of_the_file) {
  import_report r;
  trace *t = import_one ("kineto/resnet50_v100_b32_step6.kineto.json.gz", &r);
  ck_assert_int_eq (trace_total_ns (t), 123832000);
  ck_assert_int_eq (r.busy_ns, 102254000);
  ck_assert_int_eq (r.peak_bytes, 2791505408);
  ck_assert_int_eq (t->source.confidence, CONFIDENCE_APPROXIMATE);
  ck_assert_ptr_nonnull (strstr (t->source.doubt, "identity guessed"));
  t = import_one ("kineto/hta_ddp2_v100_step3.kineto.json.gz", &r);
  ck_assert_int_eq (trace_total_ns (t), 360283000);
  ck_assert_int_le (r.peak_bytes, 6629508096 + 6629508096 / 20);
  ck_assert_int_ge (r.peak_bytes, 6629508096 - 6629508096 / 20);
  ck_assert_int_eq (r.n_warnings, 0);
  ck_assert (trace_is_plannable (t));
}

CLAIM (a_kineto_file_without_memory_shows_durations_and_is_not_plannable) {
  import_report r;
  trace *t = import_one ("et_kineto/dlrm_8gpu_rank0.kineto.json.gz", &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_int_eq (r.n_tensors, 0);
  ck_assert_ptr_nonnull (strstr (r.advice, "profile_memory=True"));
}

int main (void) {
  return suite_run_real ("real kineto", 20);
}
