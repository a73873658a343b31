/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The doors to cuBLAS and cuDNN, with libraries behind them that stand in for the two: every
   product and convolution beside the CPU's own, choices and refusals, and networks that train by
   them on the emulated device. */
#include "executor/libraries/libraries.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/calculate/cuda.h"
#include "executor/libraries/cudnn_types.h"
#include "tests/fakes.h"
#include "tests/op_bench.h"
#include "tests/op_cases.h"
#include "tests/suite.h"
#include "tests/train_case.h"

extern const int abi_compared;

enum { BATCH = 7, STEP = 3, WORKSPACE = 1 << 16 };
#define TOLERANCE 3e-5
#define BLAS "tests/fake_cublas.so"
#define DNN "tests/fake_cudnn.so"

static const libraries_options both = { .blas = BLAS, .dnn = DNN };

static fake_state *state_of (const char *path, const char *name) {
  fake_state_of *get;
  void *library = dlopen (path, RTLD_NOW), *entry = NULL;
  if (library != NULL)
    entry = dlsym (library, name);
  ck_assert_msg (entry != NULL, "%s has no %s", path, name);
  memcpy (&get, &entry, sizeof get);
  return get ();
}

typedef struct fakes {
  fake_state *blas, *dnn;
} fakes;

static fakes find_fakes (void) {
  return (fakes){ state_of (BLAS, "fake_cublas_state"), state_of (DNN, "fake_cudnn_state") };
}

static void nothing_was_refused (const fakes *f) {
  ck_assert_msg (f->blas->refused == NULL, "cuBLAS was given %s", f->blas->refused);
  ck_assert_msg (f->dnn->refused == NULL, "cuDNN was given %s", f->dnn->refused);
}

/* ---- each kind ---- */

static libraries open_both (void) {
  libraries l;
  error err = { 0 };
  ck_assert_msg (libraries_open (&l, &both, &err), "%s", err.text);
  return l;
}

static void must_run (libraries *l, const kernel_work *w, int64_t *by_library) {
  error err = { 0 };
  bool done = false, bias = false;
  library_call c = libraries_prepare (l, w);
  if (c.takes)
    ck_assert_msg (libraries_run (l, NULL, &c, w, &done, &bias, &err), "%s: %s",
                   compute_kind_names[w->c.kind], err.text);
  libraries_forget (l, &c);
  kernel_on_host *const *kernels = w->c.dtype == DTYPE_BF16 ? kernel_ops_bf16 : kernel_ops_fp32;
  if (done && bias)
    kernels[KERNEL_ADD_BIAS](libraries_bias (w));
  *by_library += done;
}

static int64_t taken, given;

/* A call in stretches, as calculator_cuda makes it, of kinds that need one launch only. */
static bool run_libraries (ops *unused, const ops_call *call, error *err) {
  operand o[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (call->c, o);
  libraries l = open_both ();
  void *workspace = aligned_alloc (256, WORKSPACE);
  (void)unused, (void)err;
  for (int i = 0; i < n; i++)
    if (kernel_work_zeroes (call, i, &o[i]))
      memset (call->operands[i].pieces[0].data, 0, (size_t)o[i].bytes);
  for (int64_t from = 0, items; from < call->end_item - call->first_item; from += items) {
    kernel_work w;
    items = kernel_work_fill (call, from, NULL, &w);
    w.workspace = workspace;
    w.workspace_bytes = WORKSPACE;
    must_run (&l, &w, &taken);
    given++;
  }
  free (workspace);
  libraries_close (&l);
  return true;
}

static bool is_theirs (compute_kind kind) {
  return (kind >= COMPUTE_conv_fwd && kind <= COMPUTE_deconv_bwd_weights) ||
         (kind >= COMPUTE_linear_fwd && kind <= COMPUTE_linear_bwd_weights) ||
         kind == COMPUTE_matmul;
}

static void compare (op_bench *b, const compute *c, const char *name) {
  static const int64_t parts[] = { 1, 3 }, cuts[] = { -1, 4 };
  if (!is_theirs (c->kind))
    return;
  op_bench_supply (b, c);
  op_bench_saved before = op_bench_save (b);
  b->run = NULL;
  op_bench_run (b, c, 1, -1, STEP);
  op_bench_saved expected = op_bench_save (b);
  for (size_t k = 0; k < 4; k++) {
    b->run = run_libraries;
    op_bench_restore (b, &before);
    op_bench_run (b, c, parts[k / 2], cuts[k % 2], STEP);
    for (int i = 0; i < expected.n; i++)
      ck_assert_msg (op_bench_alike (&b->arrays[i], expected.data[i], TOLERANCE), "%s (%s): %s",
                     name, compute_kind_names[c->kind], b->arrays[i].name);
  }
  op_bench_restore (b, &expected);
  b->run = NULL;
  op_bench_forget (&before);
  op_bench_forget (&expected);
}

static void compare_type (compute_dtype dtype) {
  for (int i = 0; i < op_cases_count; i++) {
    const gradient_case *g = &op_cases[i];
    op_bench b;
    compute c = op_with_batch (&g->c, BATCH);
    c.dtype = dtype;
    op_bench_begin (&b, 17);
    op_bench_supply (&b, &c);
    if (is_theirs (c.kind)) {
      compare (&b, &c, g->name);
      for (int k = 0; k < g->n_back; k++) {
        compute back = op_back_of (&c, g->back[k]);
        compare (&b, &back, g->name);
      }
    }
    op_bench_end (&b);
  }
}

CLAIM_EACH (products_and_convolutions_are_theirs_and_give_what_the_cpu_gives, 0, 3) {
  fakes f = find_fakes ();
  f.dnn->needs_bytes = f.blas->needs_bytes = _i == 0 ? 0 : 1024;
  compare_type (_i == 2 ? DTYPE_TF32 : DTYPE_FP32);
  nothing_was_refused (&f);
  ck_assert_msg (taken == given && given > 100, "%lld of %lld stretches were theirs",
                 (long long)taken, (long long)given);
  ck_assert_int_gt (f.blas->calls, 20);
  ck_assert_int_gt (f.dnn->calls, 20);
  ck_assert_int_eq (f.blas->tf32, _i == 2 ? f.blas->calls : 0);
  ck_assert_int_eq (f.blas->open + f.dnn->open, 0);
}

/* ---- choices ---- */

static kernel_work little_conv (float *x, float *w, float *y) {
  compute_conv s = { .batch = 1,
                     .in_channels = 1,
                     .out_channels = 1,
                     .in_d = 1,
                     .in_h = 4,
                     .in_w = 4,
                     .out_d = 1,
                     .out_h = 4,
                     .out_w = 4,
                     .kernel_d = 1,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .stride_d = 1,
                     .stride_h = 1,
                     .stride_w = 1,
                     .pad_h = 1,
                     .pad_w = 1,
                     .groups = 1 };
  kernel_work k = { .c = { .kind = COMPUTE_conv_fwd, .conv = s }, .items = 1 };
  k.at[0] = x;
  k.at[1] = w;
  k.at[3] = y;
  return k;
}

CLAIM (what_needs_more_room_than_the_plan_gives_is_left_to_kernels) {
  fakes f = find_fakes ();
  float x[16] = { 1 }, w[9] = { 1 }, y[16];
  kernel_work k = little_conv (x, w, y);
  libraries l = open_both ();
  f.dnn->needs_bytes = 4096;
  library_call c = libraries_prepare (&l, &k);
  ck_assert (!c.takes);
  k.workspace = aligned_alloc (256, 4096);
  k.workspace_bytes = 4096;
  c = libraries_prepare (&l, &k);
  ck_assert (c.takes && c.conv != NULL);
  libraries_forget (&l, &c);
  /* cuBLAS only says so when it is asked to multiply. */
  kernel_work p = { .c = { .kind = COMPUTE_linear_fwd, .linear = { 1, 1, 3, 3, 0, 0 } },
                    .items = 1 };
  p.at[0] = x;
  p.at[1] = w;
  p.at[3] = y;
  f.blas->needs_bytes = 4096;
  for (int i = 0; i < 2; i++) {
    error err = { 0 };
    bool done = true, bias;
    c = libraries_prepare (&l, &p);
    ck_assert (c.takes && libraries_run (&l, NULL, &c, &p, &done, &bias, &err));
    ck_assert_int_eq (done, i);
    p.workspace = k.workspace;
    p.workspace_bytes = 4096;
  }
  free (k.workspace);
  nothing_was_refused (&f);
  libraries_close (&l);
}

CLAIM (results_of_another_size_are_left_to_kernels) {
  float x[16], w[9], y[16];
  kernel_work k = little_conv (x, w, y);
  libraries l = open_both ();
  k.c.conv.out_h = 3; /* the last line is not asked for */
  library_call c = libraries_prepare (&l, &k);
  ck_assert (!c.takes);
  libraries_close (&l);
}

CLAIM (a_library_that_is_not_there_is_no_error_and_a_wrong_file_is) {
  libraries l;
  error err = { 0 };
  char text[LIBRARIES_TEXT];
  ck_assert (libraries_open (&l, &(libraries_options){ .search = false }, &err));
  ck_assert_str_eq (libraries_name (&l, text), "");
  ck_assert (!libraries_open (&l, &(libraries_options){ .blas = "/nowhere/libcublas.so" }, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "no cuBLAS: /nowhere/libcublas.so"));
  error other = { 0 };
  ck_assert (!libraries_open (&l, &(libraries_options){ .dnn = BLAS }, &other));
  ck_assert_str_eq (other.text, "cuDNN has no cudnnCreate; version 9 is needed");
  l = open_both ();
  ck_assert_str_eq (libraries_name (&l, text), "cuBLAS 13.2.5 and cuDNN 9.13.0");
  libraries_close (&l);
}

/* ---- whole networks ---- */

enum { STEPS = 2 };

typedef struct listened {
  double far;
} listened;

static train_result train (train_case *c, train_room room, const libraries_options *l) {
  error err = { 0 };
  train_result r;
  train_options o = train_case_options (STEPS);
  o.kernels = true;
  o.compare = false;
  if (l != NULL)
    o.libraries = *l;
  if (!train_run (c->trace, train_case_plan (c, room), &o, c->a, &r, &err))
    ck_abort_msg ("%s: %s", c->trace->name, err.text);
  return r;
}

/* Nets 1, 5: convolutions in two dimensions, and products of heads; FERRY_SOAK asks for three
   dimensions too, as whole networks. */
CLAIM_EACH (a_network_learns_the_same_bits_by_libraries_under_every_plan, 0,
            getenv ("FERRY_SOAK") ? 3 : 2) {
  static const int nets[] = { 1, 5, 2 };
  fakes f = find_fakes ();
  train_case c;
  train_case_open (&c, &small_nets[nets[_i]], MIXED);
  train_result alone = train (&c, AMPLE, NULL);
  train_result ample = train (&c, AMPLE, &both), floor = train (&c, FLOOR, &both);
  nothing_was_refused (&f);
  ck_assert_str_eq (ample.how, "cuBLAS 13.2.5 and cuDNN 9.13.0");
  ck_assert_str_eq (alone.how, "");
  ck_assert_int_gt (f.blas->calls + f.dnn->calls, 10);
  ck_assert_int_eq (f.blas->open + f.dnn->open, 0);
  ck_assert_str_eq (ample.digest, floor.digest);
  for (int i = 0; i < STEPS; i++)
    ck_assert_msg (fabs (ample.losses[i] - alone.losses[i]) < 1e-4 * fabs (alone.losses[i]),
                   "%s: %g with, %g without", c.trace->name, ample.losses[i], alone.losses[i]);
  train_case_close (&c);
}

/* ---- the interface itself ---- */

CLAIM (our_layouts_are_those_of_their_headers) {
  cudnnConvolutionFwdAlgoPerf_t f;
  ck_assert_uint_eq (sizeof f, 48);
  ck_assert_uint_eq (offsetof (cudnnConvolutionFwdAlgoPerf_t, memory), 16);
  ck_assert_uint_eq (offsetof (cudnnConvolutionFwdAlgoPerf_t, determinism), 24);
  ck_assert_uint_eq (offsetof (cudnnConvolutionFwdAlgoPerf_t, mathType), 28);
  ck_assert_int_ge (abi_compared, 0); /* the comparison itself is made by the compiler */
}

int main (void) {
  return suite_run ("libraries", 120);
}
