/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/kernels/kernels.h"

#include <assert.h>
#include <string.h>

enum { WAIT_PARAMS = 1, TOUCH_PARAMS = KERNELS_MOST_PARAMS, BLOCKS = 264, THREADS = 256 };

static uint64_t seed_of (uint32_t tensor, int64_t version) {
  return ((uint64_t)tensor + 1) * 0x9e3779b97f4a7c15u + (uint64_t)version * 0xd1342543de82ef95u;
}

static uint64_t word_of (uint64_t seed, int64_t word) {
  return (seed ^ (uint64_t)word) * 0x2545f4914f6cdd1du;
}

/* One multiplication a word, so that checking a gigabyte takes about a second. The version is in
   the high half, so that a stale copy differs in every word. */
int64_t kernels_fill (void *at, int64_t bytes, int64_t offset, uint32_t tensor, int64_t version) {
  assert (bytes >= 0 && offset % 8 == 0);
  char *to = at;
  uint64_t seed = seed_of (tensor, version), w;
  int64_t whole = bytes / 8 * 8, word = offset / 8;
  for (int64_t i = 0; i < whole; i += 8, word++) {
    w = word_of (seed, word);
    memcpy (to + i, &w, 8);
  }
  w = word_of (seed, word);
  memcpy (to + whole, &w, (size_t)(bytes - whole));
  return 0;
}

int64_t kernels_check (const void *at, int64_t bytes, int64_t offset, uint32_t tensor,
                       int64_t version, int64_t *first_bad) {
  assert (bytes >= 0 && offset % 8 == 0 && first_bad);
  const char *from = at;
  uint64_t seed = seed_of (tensor, version), w, got;
  int64_t whole = bytes / 8 * 8, word = offset / 8, bad = 0;
  for (int64_t i = 0; i < whole; i += 8, word++) {
    memcpy (&got, from + i, 8);
    if (got != word_of (seed, word) && bad++ == 0)
      *first_bad = offset + i;
  }
  w = word_of (seed, word);
  if (memcmp (from + whole, &w, (size_t)(bytes - whole)) != 0 && bad++ == 0)
    *first_bad = offset + whole;
  return bad;
}

/* ---- on the emulator ---- */

typedef struct wait_params {
  int64_t ns;
} wait_params;

static int64_t wait_ns (const emu_launch *l) {
  return ((const wait_params *)l->params)->ns;
}

static int64_t touch_ns (const emu_launch *l) {
  return ((const kernel_op *)l->params)->ns;
}

static void touch_run (const emu_launch *l) {
  const kernel_op *o = l->params;
  for (int64_t i = 0; l->bytes && i < o->count; i++) {
    const kernel_operand *x = &o->operands[i];
    void *at = (void *)(uintptr_t)x->at;
    int64_t version = o->step * x->per_step + x->version, first = 0;
    if ((x->mode & OPERAND_FILL) != 0)
      kernels_fill (at, x->bytes, x->offset, x->tensor, version);
    if ((x->mode & OPERAND_READ) != 0) {
      int64_t bad = kernels_check (at, x->bytes, x->offset, x->tensor, version, &first);
      if (bad > 0 && o->found->count == 0)
        *o->found = (mismatch){ 0, o->op, o->step, x->tensor, first };
      o->found->count += (uint64_t)bad;
    }
    if ((x->mode & OPERAND_WRITE) != 0)
      kernels_fill (at, x->bytes, x->offset, x->tensor, version + 1);
  }
}

static void touch_tell (const emu_launch *l, emu_touch tell, void *context) {
  const kernel_op *o = l->params;
  for (int64_t i = 0; i < o->count; i++) {
    uint32_t mode = o->operands[i].mode;
    tell (context, o->operands[i].at, o->operands[i].bytes,
          ((mode & (OPERAND_WRITE | OPERAND_FILL)) != 0 ? EMU_WRITES : 0) |
              ((mode & OPERAND_BEGIN) != 0 ? EMU_BEGINS : 0));
  }
}

static const emu_param wait_layout[WAIT_PARAMS] = { { 0, 8 } };
static const emu_param touch_layout[TOUCH_PARAMS] = {
  { offsetof (kernel_op, operands), 8 }, { offsetof (kernel_op, count), 8 },
  { offsetof (kernel_op, step), 8 },     { offsetof (kernel_op, ns), 8 },
  { offsetof (kernel_op, op), 8 },       { offsetof (kernel_op, found), 8 }
};

static bool tell_emulator (const driver *d, bool declare, error *err) {
  emu_kernel wait = { "ferry_wait", wait_layout, WAIT_PARAMS, NULL, wait_ns, NULL };
  emu_kernel touch = { "ferry_touch", touch_layout, TOUCH_PARAMS, touch_run, touch_ns, NULL };
  if (declare)
    touch.touches = touch_tell;
  emu_register enlist;
  void *entry = driver_symbol (d, EMU_REGISTER);
  if (entry == NULL)
    return error_set (err, ERR_unreachable, "%s is not the emulator: it has no %s", d->path,
                      EMU_REGISTER);
  memcpy (&enlist, &entry, sizeof enlist);
  return driver_ok (d, enlist (&wait), EMU_REGISTER, err) &&
         driver_ok (d, enlist (&touch), EMU_REGISTER, err);
}

/* ---- on any driver ---- */

bool kernels_load (const driver *d, bool emulated, bool declare, kernels *out, error *err) {
  if (emulated && !tell_emulator (d, declare, err))
    return false;
  return driver_ok (d, d->module_load (&out->module, kernels_ptx), "cuModuleLoadData", err) &&
         driver_ok (d, d->module_get_function (&out->wait, out->module, "ferry_wait"),
                    "cuModuleGetFunction", err) &&
         driver_ok (d, d->module_get_function (&out->touch, out->module, "ferry_touch"),
                    "cuModuleGetFunction", err);
}

void kernels_wait_launch (const kernels *k, int64_t *ns, kernel_launch *out) {
  *out = (kernel_launch){ k->wait, 1, 1, { ns } };
}

void kernels_touch_launch (const kernels *k, kernel_op *o, int64_t *step, kernel_launch *out) {
  *out = (kernel_launch){
    k->touch, BLOCKS, THREADS, { &o->operands, &o->count, step, &o->ns, &o->op, &o->found }
  };
}

static bool launch (const driver *d, CUstream s, kernel_launch *l, error *err) {
  return driver_ok (
      d, d->launch (l->function, l->blocks, 1, 1, l->threads, 1, 1, 0, s, l->params, NULL),
      "cuLaunchKernel", err);
}

bool kernels_wait (const driver *d, const kernels *k, CUstream s, int64_t ns, error *err) {
  kernel_launch l;
  kernels_wait_launch (k, &ns, &l);
  return launch (d, s, &l, err);
}

bool kernels_touch (const driver *d, const kernels *k, CUstream s, const kernel_op *o, error *err) {
  kernel_op own = *o;
  kernel_launch l;
  kernels_touch_launch (k, &own, &own.step, &l);
  return launch (d, s, &l, err);
}
