/* Real profiles, recorded by other projects, against numbers that were counted off them by other
   means.  They are too large to ship: FERRY_REAL_TRACES says where they are; without it this is
   skipped. */
#include <stdio.h>
#include <string.h>

#include "tests/import_case.h"
#include "trace/import/chakra.h"
#include "trace/import/et.h"
#include "trace/import/kineto.h"
#include "trace/import/snapshot.h"

static const char *real (const char *name, char path[600]) {
  snprintf (path, 600, "%s/%s", getenv ("FERRY_REAL_TRACES"), name);
  return path;
}

static void open_real (import_case *c, const char *name) {
  char path[600];
  import_case_open (c, real (name, path));
}

static trace *import_real (const char *const *names, int n, import_report *report, error *err) {
  char paths[2][600];
  const char *at[2] = { paths[0], paths[1] };
  trace *t = NULL;
  for (int i = 0; i < n; i++)
    real (names[i], paths[i]);
  bool ok = import_files (at, n, NULL, import_arena (), &t, report, err);
  ck_assert_int_eq (ok, t != NULL);
  return t;
}

static trace *import_one (const char *name, import_report *report) {
  error err = { 0 };
  char line[sizeof (error)];
  trace *t = import_real (&name, 1, report, &err);
  ck_assert_msg (t != NULL, "%s", error_line (&err, line, sizeof line));
  return t;
}

/* ---- Kineto ---- */

typedef struct opened {
  import_case c;
  kineto k;
  kineto_iteration it;
} opened;

static void open_kineto (opened *o, const char *name, bool steps) {
  open_real (&o->c, name);
  ck_assert (kineto_read (&o->c.job, &o->c.file, &o->k));
  ck_assert (kineto_nest (&o->c.job, &o->k));
  if (!steps)
    return;
  ck_assert (kineto_choose (&o->c.job, &o->k, &o->it));
  ck_assert (kineto_runs (&o->c.job, &o->k, o->it.window, &o->it));
}

static void count_gpu (const kineto *k, int expected[3], int64_t sum_us) {
  int64_t n[3] = { 0 }, sum = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    n[k->gpu[i].kind]++;
    sum += k->gpu[i].ns;
    ck_assert_int_ne (k->gpu[i].launch, NONE);
    ck_assert_int_ne (k->gpu[i].owner, NONE);
  }
  ck_assert_int_eq (n[GPU_KERNEL], expected[0]);
  ck_assert_int_eq (n[GPU_MEMCPY], expected[1]);
  ck_assert_int_eq (n[GPU_MEMSET], expected[2]);
  ck_assert_int_eq (sum, sum_us * 1000);
}

static int count_owners (const kineto *k) {
  char *seen = calloc ((size_t)k->n_ops, 1);
  int n = 0;
  for (int32_t i = 0; i < k->n_gpu; i++) {
    n += !seen[k->gpu[i].owner];
    seen[k->gpu[i].owner] = 1;
  }
  free (seen);
  return n;
}

/* GPU events, duration and idle time of one stream, in order of start, by obvious loops. */
typedef struct stream_sum {
  int64_t n, sum, gap, largest;
} stream_sum;

static stream_sum sum_stream (const kineto *k, int64_t stream) {
  stream_sum s = { 0 };
  int64_t end = -1;
  for (;;) {
    const kineto_gpu *next = NULL; /* the first that starts at or behind the end of the last */
    for (int32_t i = 0; i < k->n_gpu; i++) {
      const kineto_gpu *g = &k->gpu[i];
      if (g->stream == stream && g->start_ns >= end && g->ns > 0 &&
          (!next || g->start_ns < next->start_ns))
        next = g;
    }
    if (!next)
      break;
    if (end >= 0) {
      s.gap += next->start_ns - end;
      if (next->start_ns - end > s.largest)
        s.largest = next->start_ns - end;
    }
    end = next->start_ns + next->ns;
    s.sum += next->ns;
  }
  for (int32_t i = 0; i < k->n_gpu; i++)
    s.n += k->gpu[i].stream == stream;
  return s;
}

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

START_TEST (a_resnet_step_of_2021_has_its_ops_and_times) {
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
END_TEST

START_TEST (a_resnet_step_of_2021_has_its_memory_paired_by_size) {
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
END_TEST

START_TEST (a_data_parallel_step_of_2022_has_its_ops_and_times) {
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
END_TEST

START_TEST (a_data_parallel_step_of_2022_has_its_memory_paired_by_address) {
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
END_TEST

START_TEST (kineto_traces_keep_the_time_and_the_peak_of_the_file) {
  import_report r;
  trace *t = import_one ("kineto/resnet50_v100_b32_step6.kineto.json.gz", &r);
  ck_assert_int_eq (trace_total_ns (t), 123832000);
  ck_assert_int_eq (r.busy_ns, 102254000);
  ck_assert_int_eq (r.peak_bytes, 2791505408);
  ck_assert_int_eq (strncmp (t->source.confidence, "approximate:", 12), 0);
  ck_assert_ptr_nonnull (strstr (t->source.confidence, "identity guessed"));
  t = import_one ("kineto/hta_ddp2_v100_step3.kineto.json.gz", &r);
  ck_assert_int_eq (trace_total_ns (t), 360283000);
  ck_assert_int_le (r.peak_bytes, 6629508096 + 6629508096 / 20);
  ck_assert_int_ge (r.peak_bytes, 6629508096 - 6629508096 / 20);
  ck_assert_int_eq (r.n_warnings, 0);
  ck_assert (trace_is_plannable (t));
}
END_TEST

START_TEST (a_kineto_file_without_memory_shows_durations_and_is_not_plannable) {
  import_report r;
  trace *t = import_one ("et_kineto/dlrm_8gpu_rank0.kineto.json.gz", &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_int_eq (r.n_tensors, 0);
  ck_assert_ptr_nonnull (strstr (r.advice, "profile_memory=True"));
}
END_TEST

/* ---- execution traces ---- */

enum { FWD, BWD, OPT };

static int place_of (uint8_t phase) {
  return phase == PHASE_FWD ? FWD : phase == PHASE_BWD ? BWD : OPT;
}

typedef struct gen_sums {
  int64_t n[2], bytes[2]; /* before, defined */
  int64_t zero, zero_defined;
  int64_t class_n[3][3], class_bytes[3][3];
  int64_t kind_n[2][TENSOR_KINDS], kind_bytes[2][TENSOR_KINDS];
} gen_sums;

static gen_sums sum_generations (const generations *g, const walk_node *nodes) {
  gen_sums s = { 0 };
  bool optimizer = generations_have_optimizer (g);
  for (int32_t i = 0; i < g->count; i++) {
    const generation *x = &g->at[i];
    s.n[x->defined]++;
    s.bytes[x->defined] += x->bytes;
    s.zero += x->bytes == 0;
    s.zero_defined += x->bytes == 0 && x->defined;
    tensor_kind kind = generation_kind (x, nodes, optimizer);
    s.kind_n[x->defined][kind]++;
    s.kind_bytes[x->defined][kind] += x->bytes;
    if (!x->defined)
      continue;
    int from = place_of (generation_first_phase (x, nodes));
    int to = place_of (generation_last_phase (x, nodes));
    s.class_n[from][to]++;
    s.class_bytes[from][to] += x->bytes;
  }
  return s;
}

static void ck_class (const gen_sums *s, int from, int to, int64_t n, int64_t bytes) {
  ck_assert_int_eq (s->class_n[from][to], n);
  ck_assert_int_eq (s->class_bytes[from][to], bytes);
}

static void ck_kind (const gen_sums *s, bool defined, tensor_kind kind, int64_t n, int64_t bytes) {
  ck_assert_int_eq (s->kind_n[defined][kind], n);
  ck_assert_int_eq (s->kind_bytes[defined][kind], bytes);
}

static void open_et (import_case *c, et *e, const char *name) {
  open_real (c, name);
  ck_assert (et_read (&c->job, &c->file, e));
}

static void ck_nodes (const et *e, int nodes, int structural, int leaves, int naming) {
  int s = 0, l = 0, n = 0;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    s += e->nodes[i].structural;
    bool leaf = e->nodes[i].leaf && !e->nodes[i].structural;
    l += leaf;
    n += leaf && e->nodes[i].n_mentions;
  }
  ck_assert_int_eq (e->n_nodes, nodes);
  ck_assert_int_eq (s, structural);
  ck_assert_int_eq (l, leaves);
  ck_assert_int_eq (n, naming);
}

START_TEST (a_resnet_execution_trace_has_its_generations) {
  import_case c;
  et e;
  int64_t defined, before;
  open_et (&c, &e, "et/resnet50_ddp_b32_step7.et.json.gz");
  ck_nodes (&e, 4799, 3, 2746, 2743);
  ck_assert_int_eq (e.generations.n_storages, 797);
  ck_assert_int_eq (e.generations.count, 1192);
  gen_sums s = sum_generations (&e.generations, e.walk);
  ck_assert_int_eq (s.zero, 159);
  ck_assert_int_eq (s.zero_defined, 159);
  ck_assert_int_eq (s.n[0], 489);
  ck_assert_int_eq (s.bytes[0], 326292876);
  ck_assert_int_eq (s.n[1], 703);
  ck_assert_int_eq (s.bytes[1], 7049647704);
  ck_assert (generations_peak (&c.job, &e.generations, &defined, &before));
  ck_assert_int_eq (defined, 2763672992);
  ck_assert_int_eq (defined + before, 3089965868);
  ck_class (&s, FWD, BWD, 213, 2730177028);
  ck_class (&s, FWD, FWD, 116, 193144752);
  ck_class (&s, BWD, BWD, 213, 4024097796);
  ck_class (&s, BWD, OPT, 161, 102228128);
  ck_kind (&s, false, TENSOR_PARAMETER, 161 + 159, 102228128 + 212904);
  ck_kind (&s, false, TENSOR_OPTIMIZER, 161, 102228128);
  ck_kind (&s, false, TENSOR_GRADIENT, 5, 102228128);
  ck_kind (&s, false, TENSOR_INPUT, 3, 19395588);
  ck_kind (&s, true, TENSOR_GRADIENT, 161, 102228128);
  ck_kind (&s, true, TENSOR_ACTIVATION, 213, 2730177028);
  ck_kind (&s, true, TENSOR_TEMPORARY, 329, 4217242548);
  /* of the parameters, 161 are written by the optimizer alone and 159 are buffers */
  int64_t buffers = 0, buffer_bytes = 0;
  for (int32_t i = 0; i < e.generations.count; i++)
    if (!e.generations.at[i].defined && e.generations.at[i].written == PHASE_FWD) {
      buffers++;
      buffer_bytes += e.generations.at[i].bytes;
    }
  ck_assert_int_eq (buffers, 159);
  ck_assert_int_eq (buffer_bytes, 212904);
  import_case_close (&c);
}
END_TEST

START_TEST (what_aten_empty_returns_is_reused_in_a_resnet_step) {
  import_case c;
  et e;
  open_et (&c, &e, "et/resnet50_ddp_b32_step7.et.json.gz");
  id_map counts = id_map_new (c.job.scratch);
  int ids = 0, again = 0;
  for (int64_t i = 0; i < e.n_mentions; i++) {
    const mention *m = &e.mentions[i];
    if (!m->output || !slice_is (e.names.texts[e.nodes[m->node].name], "aten::empty"))
      continue;
    int32_t *n = id_map_at (&counts, m->storage, &c.err);
    *n = *n < 0 ? 1 : *n + 1;
    ids += *n == 1;
    again += *n == 2;
  }
  ck_assert_int_eq (ids, 256);
  ck_assert_int_eq (again, 102);
  import_case_close (&c);
}
END_TEST

START_TEST (an_execution_trace_alone_has_a_peak_and_no_plan) {
  import_report r;
  trace *t = import_one ("et/resnet50_ddp_b32_step7.et.json.gz", &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_str_eq (r.advice,
                    "no durations in an execution trace. Add the Kineto file of the same run");
  ck_assert_int_eq (r.peak_bytes, 3089965868);
  ck_assert_int_eq (r.zero_tensors, 159);
  ck_assert_int_eq (r.n_tensors, 1192 - 159);
}
END_TEST

START_TEST (a_recommendation_model_joins_by_name_sequence) {
  import_case c;
  et e;
  int64_t defined, before;
  opened o;
  open_et (&c, &e, "et_kineto/dlrm_8gpu_rank0.et.json.gz");
  ck_nodes (&e, 1675, 3, 861, 565);
  ck_assert_int_eq (e.generations.n_storages, 127);
  ck_assert_int_eq (e.generations.count, 246);
  gen_sums s = sum_generations (&e.generations, e.walk);
  ck_assert_int_eq (s.zero, 7);
  ck_assert_int_eq (s.n[0], 65);
  ck_assert_int_eq (s.bytes[0], 5132712580);
  ck_assert_int_eq (s.n[1], 181);
  ck_assert_int_eq (s.bytes[1], 12447288);
  ck_assert (generations_peak (&c.job, &e.generations, &defined, &before));
  ck_assert_int_eq (defined, 1232068);
  ck_assert_int_eq (defined + before, 5133944648);
  ck_class (&s, FWD, BWD, 14, 165192);
  ck_class (&s, BWD, BWD, 88, 3100474);
  ck_class (&s, FWD, FWD, 63, 6696370);
  ck_class (&s, OPT, OPT, 16, 2485252);

  open_kineto (&o, "et_kineto/dlrm_8gpu_rank0.kineto.json.gz", true);
  const kineto *k = &o.k;
  ck_assert_int_eq (k->n_events, 3290);
  ck_assert_int_eq (k->n_ops - k->n_annotations, 1633);
  ck_assert_int_eq (k->n_annotations + k->n_steps, 40);
  count_gpu (k, (int[]){ 245, 16, 0 }, 6851);
  ck_assert_int_eq (count_owners (k), 226);
  ck_assert_int_eq (o.it.window.end_ns - o.it.window.start_ns, 14455000);
  static const int64_t streams[4][3] = {
    { 7, 225, 971 }, { 22, 5, 6 }, { 24, 23, 76 }, { 84, 8, 5798 }
  };
  int64_t runs = 0;
  ck_assert_int_eq (o.it.stream, 7); /* not the one with most time */
  for (int i = 0; i < 4; i++) {
    stream_sum sum = sum_stream (k, streams[i][0]);
    ck_assert_int_eq (sum.n, streams[i][1]);
    ck_assert_int_eq (sum.sum, streams[i][2] * 1000);
    o.it.stream = streams[i][0];
    ck_assert (kineto_runs (&o.c.job, k, o.it.window, &o.it));
    runs += o.it.n_runs;
  }
  ck_assert_int_eq (runs, 234);
  /* joining by rf_id == External id with equal names would find only these */
  int wrong = 0;
  for (int32_t i = 0; i < e.n_nodes; i++)
    for (int32_t j = 0; !e.nodes[i].structural && j < k->n_ops; j++) {
      slice a = e.names.texts[e.nodes[i].name], b = k->names.texts[k->ops[j].name];
      wrong += k->ops[j].external_id == e.nodes[i].record_id && a.size == b.size &&
               memcmp (a.at, b.at, (size_t)a.size) == 0;
    }
  ck_assert_int_eq (wrong, 79);
  import_case_close (&o.c);
  import_case_close (&c);

  import_report r;
  error err = { 0 };
  trace *t = import_real ((const char *[]){ "et_kineto/dlrm_8gpu_rank0.kineto.json.gz",
                                            "et_kineto/dlrm_8gpu_rank0.et.json.gz" },
                          2, &r, &err);
  ck_assert_ptr_nonnull (t);
  ck_assert_str_eq (r.joined, "1672 of 1672 calls on 2 threads by name sequence");
  ck_assert_str_eq (t->source.confidence, "exact");
  ck_assert_int_eq (r.busy_ns, 971000);
  ck_assert_int_eq (r.peak_bytes, 5133944648);
}
END_TEST

START_TEST (the_order_of_the_two_files_does_not_matter) {
  import_report r[2];
  error err = { 0 };
  char a[TRACE_DIGEST], b[TRACE_DIGEST];
  trace *t = import_real ((const char *[]){ "et_kineto/dlrm_8gpu_rank0.kineto.json.gz",
                                            "et_kineto/dlrm_8gpu_rank0.et.json.gz" },
                          2, &r[0], &err);
  trace *u = import_real ((const char *[]){ "et_kineto/dlrm_8gpu_rank0.et.json.gz",
                                            "et_kineto/dlrm_8gpu_rank0.kineto.json.gz" },
                          2, &r[1], &err);
  ck_assert (t && u && trace_digest (t, a, &err) && trace_digest (u, b, &err));
  ck_assert_str_eq (a, b);
}
END_TEST

START_TEST (files_of_two_runs_are_refused_by_the_first_difference) {
  import_report r;
  error err = { 0 };
  ck_assert_ptr_null (
      import_real ((const char *[]){ "kineto/resnet50_v100_b32_step6.kineto.json.gz",
                                     "et/resnet50_ddp_b32_step7.et.json.gz" },
                   2, &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "the two files are not of one run: thread"));
  ck_assert_ptr_nonnull (strstr (err.text, "first difference at op"));
}
END_TEST

START_TEST (four_kernels_join_but_hold_no_iteration) {
  import_case c;
  et e;
  opened o;
  int64_t defined, before;
  open_et (&c, &e, "et_kineto/simple_add.et.json.gz");
  ck_nodes (&e, 38, 2, 16, 6);
  ck_assert_int_eq (e.generations.n_storages, 4);
  gen_sums s = sum_generations (&e.generations, e.walk);
  ck_assert_int_eq (s.n[1], 4);
  ck_assert_int_eq (s.bytes[1], 1048576);
  ck_assert_int_eq (s.n[0], 0);
  ck_assert (generations_peak (&c.job, &e.generations, &defined, &before));
  ck_assert_int_eq (defined, 786432);
  open_kineto (&o, "et_kineto/simple_add.kineto.json.gz", false);
  ck_assert_int_eq (o.k.n_events, 111);
  ck_assert_int_eq (o.k.n_ops - o.k.n_annotations, 28);
  ck_assert_int_eq (o.k.n_annotations, 8);
  ck_assert_int_eq (o.k.n_launches, 15);
  count_gpu (&o.k, (int[]){ 4, 0, 0 }, 16);
  ck_assert_int_eq (count_owners (&o.k), 4);
  ck_assert_int_eq (sum_stream (&o.k, 7).gap, 108903000);
  ck_assert_int_eq (o.k.n_steps, 0);
  import_case_close (&o.c);
  import_case_close (&c);
  import_report r;
  error err = { 0 };
  ck_assert_ptr_null (import_real (
      (const char *[]){ "et_kineto/simple_add.kineto.json.gz", "et_kineto/simple_add.et.json.gz" },
      2, &r, &err));
  ck_assert_str_eq (r.joined, "36 of 36 calls on 1 thread by name sequence");
  ck_assert_int_eq (err.code, ERR_infeasible);
  ck_assert_ptr_nonnull (strstr (err.text, "no complete iteration: call profiler.step()"));
}
END_TEST

/* ---- Chakra ---- */

START_TEST (a_chakra_file_has_its_nodes_and_generations) {
  import_case c;
  chakra x;
  int64_t defined, before;
  open_real (&c, "chakra/chakra.0.et");
  ck_assert (chakra_sniff (c.text.data, c.text.size));
  ck_assert (chakra_read (&c.job, &c.file, &x) && chakra_group_nodes (&c.job, &x));
  int64_t n[2] = { 0 }, types[8] = { 0 }, collective = 0, timed = 0, us = 0, started = 0;
  int64_t nodes7 = 0, us7 = 0, nodes14 = 0, us14 = 0;
  for (int32_t i = 0; i < x.n_nodes; i++) {
    const chakra_node *node = &x.nodes[i];
    n[node->is_cpu]++;
    types[node->type & 7]++;
    started += node->has_start;
    ck_assert (i == 0 || x.nodes[i - 1].id < node->id);
    if (node->is_cpu)
      continue;
    collective += node->type == CHAKRA_COLLECTIVE;
    timed += node->has_duration;
    us += node->us;
    nodes7 += node->thread == 7;
    us7 += node->thread == 7 ? node->us : 0;
    nodes14 += node->thread == 14;
    us14 += node->thread == 14 ? node->us : 0;
  }
  ck_assert_int_eq (x.n_nodes, 3664);
  ck_assert_int_eq (n[1], 2448);
  ck_assert_int_eq (n[0], 1216);
  ck_assert_int_eq (types[CHAKRA_COMPUTE], 3643);
  ck_assert_int_eq (types[CHAKRA_COLLECTIVE], 21);
  ck_assert_int_eq (collective, 7);
  ck_assert_int_eq (timed, 1059);
  ck_assert_int_eq (us, 329543);
  ck_assert_int_eq (nodes7, 1209);
  ck_assert_int_eq (us7, 292828);
  ck_assert_int_eq (nodes14, 7);
  ck_assert_int_eq (us14, 36715);
  ck_assert_int_eq (started, 0);
  ck_assert_int_eq (x.absent_control, 1277);
  ck_assert_int_eq (x.absent_data, 0);
  int with_gpu = 0;
  for (int32_t g = 0; g < x.n_groups; g++)
    with_gpu += x.groups[g].n_gpu > 0;
  ck_assert_int_eq (x.n_groups, 1232);
  ck_assert_int_eq (with_gpu, 899);
  ck_assert_int_eq (x.generations.n_storages, 821);
  ck_assert_int_gt (x.empty_tensors, 0);
  gen_sums s = sum_generations (&x.generations, x.walk);
  ck_assert_int_eq (x.generations.count, 1030);
  ck_assert_int_eq (s.n[0], 488);
  ck_assert_int_eq (s.bytes[0], 326165128);
  ck_assert_int_eq (s.n[1], 542);
  ck_assert_int_eq (s.bytes[1], 7152152148);
  ck_assert (generations_peak (&c.job, &x.generations, &defined, &before));
  ck_assert_int_eq (defined, 2763672992);
  ck_assert_int_eq (defined + before, 3089838120);
  import_case_close (&c);
}
END_TEST

START_TEST (a_chakra_trace_keeps_the_time_of_the_compute_stream) {
  import_report r;
  trace *t = import_one ("chakra/chakra.0.et", &r);
  ck_assert_int_eq (r.busy_ns, 292828000);
  ck_assert_int_eq (r.idle_ns, 0);
  ck_assert_ptr_nonnull (strstr (t->source.confidence, "gaps are unknown"));
  ck_assert (trace_is_plannable (t));
  ck_assert_int_ge (r.peak_bytes, 3089838120);
  ck_assert_int_le (r.peak_bytes, 3089838120 + 3089838120 / 100);
}
END_TEST

/* ---- memory snapshot ---- */

START_TEST (a_snapshot_has_its_blocks_and_its_peak) {
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
END_TEST

START_TEST (a_snapshot_says_who_holds_the_peak_and_is_not_plannable) {
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
END_TEST

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

START_TEST (kernels_of_a_simulator_map_one_to_one) {
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
END_TEST

/* ---- intervals ---- */

START_TEST (interval_files_have_their_peaks) {
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
END_TEST

/* ---- all ---- */

START_TEST (the_same_files_give_the_same_bytes) {
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
END_TEST

int main (void) {
  if (!getenv ("FERRY_REAL_TRACES")) {
    puts ("skipped: FERRY_REAL_TRACES is not set");
    return 77;
  }
  Suite *suite = suite_create ("import_real");
  TCase *all = tcase_create ("import_real");
  tcase_set_timeout (all, 20);
  tcase_add_test (all, a_resnet_step_of_2021_has_its_ops_and_times);
  tcase_add_test (all, a_resnet_step_of_2021_has_its_memory_paired_by_size);
  tcase_add_test (all, a_data_parallel_step_of_2022_has_its_ops_and_times);
  tcase_add_test (all, a_data_parallel_step_of_2022_has_its_memory_paired_by_address);
  tcase_add_test (all, kineto_traces_keep_the_time_and_the_peak_of_the_file);
  tcase_add_test (all, a_kineto_file_without_memory_shows_durations_and_is_not_plannable);
  tcase_add_test (all, a_resnet_execution_trace_has_its_generations);
  tcase_add_test (all, what_aten_empty_returns_is_reused_in_a_resnet_step);
  tcase_add_test (all, an_execution_trace_alone_has_a_peak_and_no_plan);
  tcase_add_test (all, a_recommendation_model_joins_by_name_sequence);
  tcase_add_test (all, the_order_of_the_two_files_does_not_matter);
  tcase_add_test (all, files_of_two_runs_are_refused_by_the_first_difference);
  tcase_add_test (all, four_kernels_join_but_hold_no_iteration);
  tcase_add_test (all, a_chakra_file_has_its_nodes_and_generations);
  tcase_add_test (all, a_chakra_trace_keeps_the_time_of_the_compute_stream);
  tcase_add_test (all, a_snapshot_has_its_blocks_and_its_peak);
  tcase_add_test (all, a_snapshot_says_who_holds_the_peak_and_is_not_plannable);
  tcase_add_loop_test (all, kernels_of_a_simulator_map_one_to_one, 0, 2);
  tcase_add_loop_test (all, interval_files_have_their_peaks, 0, 3);
  tcase_add_loop_test (all, the_same_files_give_the_same_bytes, 0, 3);
  suite_add_tcase (suite, all);
  SRunner *runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
