/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/calculate/cuda.h"

#include <math.h>
#include <string.h>

#include "executor/emu/emu.h"

enum {
  BLOCKS = 1056, /* eight of an H100's 132 processors; a kernel shares its work among any number */
  THREADS = 256, /* as the kernels' sums count on */
  SLOTS = CALCULATE_AHEAD + 1
};

typedef struct zeroed {
  CUdeviceptr at;
  int64_t bytes;
} zeroed;

/* The places of an op's losses, for each of the steps that may be under way. */
typedef struct loss_slot {
  calculation *c;
  const struct planned *op;
  int64_t step;
  float *losses;
} loss_slot;

/* A stretch of an op: by a library, or by a kernel. */
typedef struct stretch_plan {
  kernel_work work;
  library_call library;
  int32_t phases;
} stretch_plan;

typedef struct planned {
  stretch_plan *stretches;
  zeroed *zeros; /* written whole by the part with item 0 */
  int32_t n_stretches, n_zeros;
  char *staged[SLOTS]; /* pinned, its inputs */
  loss_slot *loss[SLOTS];
  int32_t loss_operand; /* -1: none */
  int64_t n_losses;
} planned;

typedef struct cuda {
  CUmodule module[2]; /* for fp32, and for bf16; NULL: not needed */
  CUfunction function[2][KERNELS];
  libraries libraries;
  planned *ops;
  char *pinned;
  int64_t taken_bytes;
  int32_t *failed;
  double *partials; /* one place for all: one op follows the other */
  int64_t most_partials, partials_at;
} cuda;

/* ---- kernels ---- */

/* The emulated device needs no table of functions: the work says its kind. */
static void run_on_host (const emu_launch *l) {
  kernel_work k;
  memcpy (&k, l->params, sizeof k);
  (k.c.dtype == DTYPE_BF16 ? kernel_ops_bf16 : kernel_ops_fp32)[k.c.kind](k);
}

static void add_bias_on_host (const emu_launch *l) {
  kernel_work k;
  memcpy (&k, l->params, sizeof k);
  (k.c.dtype == DTYPE_BF16 ? kernel_ops_bf16 : kernel_ops_fp32)[KERNEL_ADD_BIAS](k);
}

static int64_t ns_of (const emu_launch *l) {
  kernel_work k;
  memcpy (&k, l->params, sizeof k);
  return k.ns;
}

static bool enlist_all (const driver *d, void *entry, const char *const *names, error *err) {
  static const emu_param layout[1] = { { 0, sizeof (kernel_work) } };
  emu_register enlist;
  memcpy (&enlist, &entry, sizeof enlist);
  for (int i = 0; i < KERNELS; i++) {
    emu_kernel it = { names[i], layout, 1, i == KERNEL_ADD_BIAS ? add_bias_on_host : run_on_host,
                      ns_of,    NULL };
    if (!driver_ok (d, enlist (&it), EMU_REGISTER, err))
      return false;
  }
  return true;
}

static bool load_type (const calculation *c, cuda *u, bool bf16, error *err) {
  const driver *d = c->driver;
  const char *const *names = bf16 ? kernel_names_bf16 : kernel_names_fp32;
  const char *ptx = bf16 ? calculate_ptx_bf16 : calculate_ptx_fp32;
  void *entry = driver_symbol (d, EMU_REGISTER);
  if (entry != NULL && !enlist_all (d, entry, names, err))
    return false;
  if (entry == NULL && ptx == NULL)
    return error_set (err, ERR_unreachable,
                      "this ferry has no GPU kernels built in: configure it --with-cuda where nvcc is "
                      "(FERRY_CONFIGURE=--with-cuda ./dev build), or use --driver emulated");
  if (!driver_ok (d, d->module_load (&u->module[bf16], entry != NULL ? "kernels" : ptx),
                  "cuModuleLoadData", err))
    return false;
  for (int i = 0; i < KERNELS; i++)
    if (!driver_ok (d, d->module_get_function (&u->function[bf16][i], u->module[bf16], names[i]),
                    "cuModuleGetFunction", err))
      return false;
  return true;
}

/* A driver takes a while to compile them: only those of the types that there are. */
static bool load (const calculation *c, cuda *u, error *err) {
  for (int32_t i = 0; i < c->room->rewritten->trace->n_ops; i++) {
    bool bf16 = c->ops[i].binding.c.dtype == DTYPE_BF16;
    if (u->module[bf16] == NULL && !load_type (c, u, bf16, err))
      return false;
  }
  return true;
}

/* ---- pinned memory: counted first, then taken ---- */

static void *pin (cuda *u, int64_t bytes) {
  int64_t at = u->taken_bytes;
  u->taken_bytes += (bytes + 63) / 64 * 64;
  return u->pinned == NULL ? NULL : u->pinned + at;
}

/* ---- ops ---- */

static int64_t items_of (const ops_binding *b, int operand) {
  int64_t n = 0;
  for (int32_t j = b->offset[operand]; j < b->offset[operand + 1]; j++)
    n += b->pieces[j].items;
  return n;
}

static void fill_workspace (const calculation *c, int32_t op, kernel_work *w) {
  int32_t stay = c->room->stays.work_stay[op];
  w->workspace_bytes = stay < 0 ? 0 : c->room->rewritten->trace->ops[op].workspace_bytes;
  w->workspace = stay < 0 ? NULL : (void *)(uintptr_t)c->room->stay_at[stay];
}

static void fill_stretches (const calculation *c, cuda *u, const calculate_op *from_op,
                            planned *p) {
  operand o[COMPUTE_MOST_OPERANDS];
  const ops_binding *b = &from_op->binding;
  ops_call call = ops_bound_there (b, 0);
  int n = compute_operands (&b->c, o);
  p->n_stretches = p->n_zeros = 0;
  int64_t table_bytes = kernel_work_table_bytes (&call);
  void **table = table_bytes > 0 ? pin (u, table_bytes) : NULL;
  for (int64_t from = 0, items; from < b->end_item - b->first_item; from += items) {
    kernel_work w;
    items = kernel_work_fill (&call, from, table, &w);
    w.failed = u->failed;
    w.partials = u->partials;
    fill_workspace (c, from_op->index, &w);
    if (kernel_work_partials (&w) > u->most_partials)
      u->most_partials = kernel_work_partials (&w);
    if (p->stretches != NULL)
      p->stretches[p->n_stretches] =
          (stretch_plan){ .work = w,
                          .library = libraries_prepare (&u->libraries, &w),
                          .phases = kernel_work_phases (&w) };
    p->n_stretches++;
  }
  for (int i = 0; i < n; i++)
    if (kernel_work_zeroes (&call, i, &o[i])) {
      if (p->zeros != NULL)
        p->zeros[p->n_zeros] =
            (zeroed){ (CUdeviceptr)(uintptr_t)call.operands[i].pieces[0].data, o[i].bytes };
      p->n_zeros++;
    }
}

static void fill_loss (calculation *c, cuda *u, const ops_binding *b, planned *p) {
  p->loss_operand = b->copy                            ? -1
                    : b->c.kind == COMPUTE_entropy_fwd ? 3
                    : b->c.kind == COMPUTE_binary_fwd  ? 1
                                                       : -1;
  if (p->loss_operand < 0)
    return;
  p->n_losses = items_of (b, p->loss_operand);
  for (int i = 0; i < SLOTS; i++) {
    loss_slot *l = pin (u, (int64_t)sizeof *l);
    float *losses = pin (u, p->n_losses * (int64_t)sizeof (float));
    if (l != NULL)
      *l = (loss_slot){ .c = c, .op = p, .losses = losses };
    p->loss[i] = l;
  }
}

/* Once to count, once to fill. */
static void fill_ops (calculation *c, cuda *u) {
  u->taken_bytes = 0;
  u->failed = pin (u, (int64_t)sizeof *u->failed);
  for (int32_t i = 0; i < c->room->rewritten->trace->n_ops; i++) {
    planned *p = &u->ops[i];
    const calculate_op *o = &c->ops[i];
    int64_t bytes = 0;
    fill_stretches (c, u, o, p);
    fill_loss (c, u, &o->binding, p);
    for (int32_t k = 0; k < o->n_inputs; k++)
      bytes += (o->inputs[k].bytes + 63) / 64 * 64;
    for (int s = 0; s < SLOTS && bytes > 0; s++)
      p->staged[s] = pin (u, bytes);
  }
  u->partials_at = u->taken_bytes;
  pin (u, u->most_partials * (int64_t)sizeof (double));
}

static bool plan_ops (calculation *c, cuda *u, error *err) {
  int32_t n = c->room->rewritten->trace->n_ops;
  void *pinned;
  if ((u->ops = NEW (c->arena, n, planned, err)) == NULL)
    return false;
  fill_ops (c, u);
  for (int32_t i = 0; i < n; i++) {
    planned *p = &u->ops[i];
    if ((p->stretches = NEW (c->arena, p->n_stretches, stretch_plan, err)) == NULL ||
        (p->zeros = NEW (c->arena, p->n_zeros, zeroed, err)) == NULL)
      return false;
  }
  if (!driver_ok (c->driver,
                  c->driver->mem_host_alloc (&pinned, (size_t)u->taken_bytes,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                  "cuMemHostAlloc", err))
    return false;
  u->pinned = pinned;
  u->partials = (double *)(void *)(u->pinned + u->partials_at);
  fill_ops (c, u);
  *u->failed = 0;
  return true;
}

static bool open (calculation *c, bool declare, error *err) {
  (void)declare;
  cuda *u = NEW (c->arena, 1, cuda, err);
  if (u == NULL)
    return false;
  c->own = u;
  if (c->driver->launch_host_func == NULL)
    return error_set (err, ERR_unreachable, "%s has no cuLaunchHostFunc", c->driver->path);
  if (!libraries_open (&u->libraries, &c->libraries, err))
    return false;
  libraries_name (&u->libraries, c->how);
  return load (c, u, err) && plan_ops (c, u, err);
}

/* ---- a launch ---- */

static bool bring_inputs (calculation *c, const calculate_op *o, const planned *p, CUstream s,
                          int64_t step, error *err) {
  char *from = p->staged[step % SLOTS];
  for (int32_t i = 0; i < o->n_inputs; i++) {
    const calculate_input *x = &o->inputs[i];
    feed_input (c->feed, x->tensor, step, x->first_item, x->end_item, from);
    if (!driver_ok (
            c->driver,
            c->driver->copy_in_async ((CUdeviceptr)(uintptr_t)x->at, from, (size_t)x->bytes, s),
            "cuMemcpyHtoDAsync", err))
      return false;
    from += (x->bytes + 63) / 64 * 64;
  }
  return true;
}

/* On a thread of the driver's, in the stream's turn; the host looks only at what has ended. */
static void add_losses (void *slot) {
  const loss_slot *l = slot;
  const cuda *u = l->c->own;
  double sum = 0;
  for (int64_t i = 0; i < l->op->n_losses; i++)
    sum += l->losses[i];
  l->c->losses[l->step] += *u->failed != 0 ? NAN : sum;
  if (*u->failed != 0)
    error_set (&l->c->failed, ERR_input, "step %lld: a token or class is out of range",
               (long long)l->step);
}

static bool take_losses (calculation *c, const calculate_op *o, const planned *p, CUstream s,
                         int64_t step, error *err) {
  const ops_binding *b = &o->binding;
  loss_slot *l = p->loss[step % SLOTS];
  float *to = l->losses;
  l->step = step;
  for (int32_t j = b->offset[p->loss_operand]; j < b->offset[p->loss_operand + 1]; j++) {
    const ops_piece *piece = &b->pieces[j];
    if (!driver_ok (c->driver,
                    c->driver->copy_out_async (to, (CUdeviceptr)(uintptr_t)piece->data,
                                               (size_t)piece->items * sizeof (float), s),
                    "cuMemcpyDtoHAsync", err))
      return false;
    to += piece->items;
  }
  return driver_ok (c->driver, c->driver->launch_host_func (s, add_losses, l), "cuLaunchHostFunc",
                    err);
}

static bool launch_kernel (const calculation *c, CUstream s, int kernel, kernel_work *w,
                           error *err) {
  const cuda *u = c->own;
  void *params[1] = { w };
  CUfunction f = u->function[w->c.dtype == DTYPE_BF16][kernel];
  return driver_ok (c->driver,
                    c->driver->launch (f, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL),
                    "cuLaunchKernel", err);
}

static bool by_library (const calculation *c, CUstream s, stretch_plan *p, bool *done, error *err) {
  cuda *u = c->own;
  bool bias = false;
  if (!libraries_run (&u->libraries, s, &p->library, &p->work, done, &bias, err))
    return false;
  if (!*done || !bias)
    return true;
  kernel_work w = libraries_bias (&p->work);
  return launch_kernel (c, s, KERNEL_ADD_BIAS, &w, err);
}

static bool launch_stretch (const calculation *c, CUstream s, stretch_plan *p, int64_t counter,
                            int64_t ns, error *err) {
  bool done = false;
  if (p->library.takes && !by_library (c, s, p, &done, err))
    return false;
  p->library.takes = done; /* a refusal is for good */
  p->work.step = counter;
  for (int32_t phase = 0; !done && phase < p->phases; phase++) {
    p->work.phase = phase;
    p->work.ns = phase == 0 ? ns : 0;
    if (!launch_kernel (c, s, (int)p->work.c.kind, &p->work, err))
      return false;
  }
  return true;
}

static bool launch (calculation *c, CUstream s, const calculate_op *o, int64_t step,
                    int64_t counter, error *err) {
  const cuda *u = c->own;
  const driver *d = c->driver;
  const planned *p = &u->ops[o->index];
  if (!bring_inputs (c, o, p, s, step, err))
    return false;
  for (int32_t i = 0; i < p->n_zeros; i++)
    if (!driver_ok (d, d->set_bytes_async (p->zeros[i].at, 0, (size_t)p->zeros[i].bytes, s),
                    "cuMemsetD8Async", err))
      return false;
  for (int32_t i = 0; i < p->n_stretches; i++)
    if (!launch_stretch (c, s, &p->stretches[i], counter, i == 0 ? o->ns : 0, err))
      return false;
  return p->loss_operand < 0 || take_losses (c, o, p, s, step, err);
}

static void close (calculation *c) {
  cuda *u = c->own;
  for (int32_t i = 0; u->ops != NULL && i < c->room->rewritten->trace->n_ops; i++)
    for (int32_t k = 0; u->ops[i].stretches != NULL && k < u->ops[i].n_stretches; k++)
      libraries_forget (&u->libraries, &u->ops[i].stretches[k].library);
  libraries_close (&u->libraries);
  if (u->pinned != NULL)
    c->driver->mem_free_host (u->pinned);
}

const calculator calculator_cuda = { "a GPU", open, launch, close };
