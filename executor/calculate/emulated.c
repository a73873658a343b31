/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops on the emulated device: a kernel for each kind, known by its name, that is the CPU's function
   of the kind on the bytes behind the device's addresses. */
#include <math.h>
#include <string.h>

#include "executor/calculate/calculate.h"
#include "executor/emu/emu.h"

enum { PARAMS = 4 };

typedef struct emulated {
  ops *ops;
  CUmodule module;
  CUfunction function[COMPUTE_KINDS];
} emulated;

/* A launch's parameters. */
typedef struct arguments {
  calculation *c;
  const calculate_op *o;
  int64_t step, counter;
} arguments;

static const emu_param layout[PARAMS] = { { offsetof (arguments, c), sizeof (void *) },
                                          { offsetof (arguments, o), sizeof (void *) },
                                          { offsetof (arguments, step), 8 },
                                          { offsetof (arguments, counter), 8 } };

static const char *const names[COMPUTE_KINDS] = {
#define COMPUTE(kind, ...) "ferry_" #kind,
#include "trace/compute.def"
};

static int64_t ns_of (const emu_launch *l) {
  return ((const arguments *)l->params)->o->ns;
}

static void run (const emu_launch *l) {
  const arguments *x = l->params;
  calculation *c = x->c;
  const calculate_op *o = x->o;
  const emulated *e = c->own;
  if (c->failed.code != ERR_none) {
    c->losses[x->step] = NAN;
    return;
  }
  for (int32_t i = 0; i < o->n_inputs; i++)
    feed_input (c->feed, o->inputs[i].tensor, x->step, o->inputs[i].first_item,
                o->inputs[i].end_item, o->inputs[i].at);
  ops_call call = ops_bound_there (&o->binding, x->counter);
  error wrong = { 0 };
  if (ops_run (e->ops, &call, &wrong)) {
    c->losses[x->step] += ops_loss (&call);
    return;
  }
  c->losses[x->step] = NAN;
  error_set (&c->failed, (error_code)wrong.code, "step %lld, op %d (%.80s): %.200s",
             (long long)x->step, o->index, c->room->rewritten->trace->ops[o->index].name,
             wrong.text);
}

/* Each piece of each operand, and what the launch itself brings. */
static void touches (const emu_launch *l, emu_touch tell, void *context) {
  const arguments *x = l->params;
  const calculate_op *o = x->o;
  const ops_binding *b = &o->binding;
  const trace *t = x->c->room->rewritten->trace;
  operand operands[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (&b->c, operands);
  for (int32_t i = 0; i < o->n_inputs; i++)
    tell (context, (CUdeviceptr)(uintptr_t)o->inputs[i].at, o->inputs[i].bytes, true);
  for (int k = 0; k < n; k++)
    for (int32_t j = b->offset[k]; j < b->offset[k + 1]; j++)
      tell (context, (CUdeviceptr)(uintptr_t)b->pieces[j].data, t->tensors[b->tensors[j]].bytes,
            operand_writes (&operands[k]));
}

static bool refuse_bf16 (const calculation *c, error *err) {
  for (int32_t i = 0; i < c->room->rewritten->trace->n_ops; i++)
    if (c->ops[i].binding.c.dtype == DTYPE_BF16)
      return error_set (err, ERR_input,
                        "op %d (%.80s) is in bf16 and the CPU calculates in fp32: make the trace "
                        "with --dtype fp32",
                        i, c->room->rewritten->trace->ops[i].name);
  return true;
}

static bool enlist_all (const driver *d, bool declare, error *err) {
  emu_register enlist;
  void *entry = driver_symbol (d, EMU_REGISTER);
  if (entry == NULL)
    return error_set (err, ERR_unreachable, "%s is not the emulator: it has no %s", d->path,
                      EMU_REGISTER);
  memcpy (&enlist, &entry, sizeof enlist);
  for (int k = 0; k < COMPUTE_KINDS; k++) {
    emu_kernel it = { names[k], layout, PARAMS, run, ns_of, declare ? touches : NULL };
    if (!driver_ok (d, enlist (&it), EMU_REGISTER, err))
      return false;
  }
  return true;
}

static bool open (calculation *c, bool declare, error *err) {
  const driver *d = c->driver;
  emulated *e = NEW (c->arena, 1, emulated, err);
  if (e == NULL || !refuse_bf16 (c, err) || !enlist_all (d, declare, err) ||
      !driver_ok (d, d->module_load (&e->module, "the kernels of each kind of op"),
                  "cuModuleLoadData", err))
    return false;
  for (int k = 0; k < COMPUTE_KINDS; k++)
    if (!driver_ok (d, d->module_get_function (&e->function[k], e->module, names[k]),
                    "cuModuleGetFunction", err))
      return false;
  e->ops = ops_new (err);
  c->own = e;
  return e->ops != NULL;
}

static bool launch (calculation *c, CUstream s, const calculate_op *o, int64_t step,
                    int64_t counter, error *err) {
  const emulated *e = c->own;
  arguments x = { c, o, step, counter };
  void *params[PARAMS] = { &x.c, &x.o, &x.step, &x.counter };
  return driver_ok (
      c->driver,
      c->driver->launch (e->function[o->binding.c.kind], 1, 1, 1, 1, 1, 1, 0, s, params, NULL),
      "cuLaunchKernel", err);
}

static void close (calculation *c) {
  ops_free (((emulated *)c->own)->ops);
}

const calculator calculator_emulated = { "the emulated device", open, launch, close };
