/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded execution traces, alone and with the Kineto file of the same run, and a Chakra file,
   against numbers that were counted off them by other means. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "tests/real_case.h"
#include "trace/import/chakra/chakra.h"
#include "trace/import/et/et.h"

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

typedef struct edge {
  int64_t axis, bytes;
} edge;

/* Ends are included, so at one place births come before deaths. */
static int by_axis (const void *a, const void *b) {
  const edge *x = a, *y = b;
  return ORDER (x->axis, y->axis) ?: ORDER (y->bytes, x->bytes);
}

/* Greatest sum of bytes of defined generations alive at one place of the axis, and all bytes of
   those that were there before. */
static bool find_peak (import_job *job, const generations *g, int64_t *defined, int64_t *before) {
  edge *edges = NEW (job->scratch, 2 * (int64_t)g->count, edge, job->err);
  if (!edges)
    return false;
  int64_t n = 0, live = 0;
  *defined = *before = 0;
  for (int32_t i = 0; i < g->count; i++) {
    const generation *x = &g->at[i];
    if (!x->defined) {
      *before += x->bytes;
      continue;
    }
    edges[n++] = (edge){ x->first_axis, x->bytes };
    edges[n++] = (edge){ x->last_axis, -x->bytes };
  }
  if (n)
    qsort (edges, (size_t)n, sizeof *edges, by_axis);
  for (int64_t i = 0; i < n; i++) {
    live += edges[i].bytes;
    if (live > *defined)
      *defined = live;
  }
  return true;
}

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
  ck_assert (et_read (&c->job, &c->file, e) && et_settle (&c->job, e, -1, false));
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

CLAIM (a_resnet_execution_trace_has_its_generations) {
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
  ck_assert (find_peak (&c.job, &e.generations, &defined, &before));
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

CLAIM (what_aten_empty_returns_is_reused_in_a_resnet_step) {
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

CLAIM (an_execution_trace_alone_has_a_peak_and_no_plan) {
  import_report r;
  trace *t = import_one ("et/resnet50_ddp_b32_step7.et.json.gz", &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_str_eq (r.advice,
                    "no durations in an execution trace. Add the Kineto file of the same run");
  ck_assert_int_eq (r.peak_bytes, 3089965868);
  ck_assert_int_eq (r.zero_tensors, 159);
  ck_assert_int_eq (r.n_tensors, 1192 - 159);
}

CLAIM (a_recommendation_model_joins_by_name_sequence) {
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
  ck_assert (find_peak (&c.job, &e.generations, &defined, &before));
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
  ck_assert_int_eq (t->source.confidence, CONFIDENCE_TOUCHED);
  ck_assert_str_eq (
      t->source.doubt,
      "gpu time: 14.1 % of GPU time is in ops; 5.88 ms on other streams; "
      "lists: 2 autograd nodes and Functions do not, so all that they may use counts");
  ck_assert_int_eq (r.busy_ns, 971000);
  /* that of last mentions, and what two autograd nodes may still read of what was saved for them */
  ck_assert_int_ge (r.peak_bytes, 5133944648);
  ck_assert_int_le (r.peak_bytes, 5133944648 + 5133944648 / 10000);
}

CLAIM (the_order_of_the_two_files_does_not_matter) {
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

CLAIM (files_of_two_runs_are_refused_by_the_first_difference) {
  import_report r;
  error err = { 0 };
  ck_assert_ptr_null (
      import_real ((const char *[]){ "kineto/resnet50_v100_b32_step6.kineto.json.gz",
                                     "et/resnet50_ddp_b32_step7.et.json.gz" },
                   2, &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "the two files are not of one run: thread"));
  ck_assert_ptr_nonnull (strstr (err.text, "first difference at op"));
}

CLAIM (four_kernels_join_but_hold_no_iteration) {
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
  ck_assert (find_peak (&c.job, &e.generations, &defined, &before));
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

/* ---- Chakra ---- */

CLAIM (a_chakra_file_has_its_nodes_and_generations) {
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
  ck_assert (find_peak (&c.job, &x.generations, &defined, &before));
  ck_assert_int_eq (defined, 2763672992);
  ck_assert_int_eq (defined + before, 3089838120);
  import_case_close (&c);
}

CLAIM (a_chakra_trace_keeps_the_time_of_the_compute_stream) {
  import_report r;
  trace *t = import_one ("chakra/chakra.0.et", &r);
  ck_assert_int_eq (r.busy_ns, 292828000);
  ck_assert_int_eq (r.idle_ns, 0);
  ck_assert_ptr_nonnull (strstr (t->source.doubt, "gaps are unknown"));
  ck_assert (trace_is_plannable (t));
  ck_assert_int_ge (r.peak_bytes, 3089838120);
  ck_assert_int_le (r.peak_bytes, 3089838120 + 3089838120 / 100);
}

int main (void) {
  return suite_run_real ("real et", 20);
}
