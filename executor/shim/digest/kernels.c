/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/digest/kernels.h"

#include <string.h>

#include "executor/shim/digest/digest.h"

enum { THREADS = 256, BLOCKS = 264, WORDS_A_THREAD = 8 };

/* ---- the same on the emulated device, which is told of them first ---- */

typedef struct digest_params {
  uint64_t at;
  int64_t bytes;
  uint64_t to;
} digest_params;

static void digest_run (const emu_launch *l) {
  const digest_params *p = l->params;
  if (l->bytes)
    *(uint64_t *)(uintptr_t)p->to += digest_of ((const void *)(uintptr_t)p->at, p->bytes);
}

/* Two terabytes a second, as memory of the H200's sort is read. */
static int64_t digest_ns (const emu_launch *l) {
  return 2000 + ((const digest_params *)l->params)->bytes / 2000;
}

static void digest_touches (const emu_launch *l, emu_touch tell, void *context) {
  const digest_params *p = l->params;
  tell (context, p->at, p->bytes, 0);
  tell (context, p->to, sizeof (uint64_t), EMU_WRITES);
}

typedef struct copy_params {
  uint64_t from, to;
  int64_t bytes;
  uint64_t a, b, told;
} copy_params;

static uint64_t word_at (uint64_t at) {
  return *(const uint64_t *)(uintptr_t)at;
}

static void copy_run (const emu_launch *l) {
  const copy_params *p = l->params;
  if (!l->bytes || word_at (p->a) == word_at (p->b))
    return;
  memcpy ((void *)(uintptr_t)p->to, (const void *)(uintptr_t)p->from, (size_t)p->bytes);
  *(uint64_t *)(uintptr_t)p->told = 1;
}

static int64_t copy_ns (const emu_launch *l) {
  (void)l;
  return 2000;
}

static void copy_touches (const emu_launch *l, emu_touch tell, void *context) {
  const copy_params *p = l->params;
  tell (context, p->from, p->bytes, 0);
  tell (context, p->to, p->bytes, EMU_WRITES);
}

static const emu_param copy_layout[] = {
  { offsetof (copy_params, from), 8 },  { offsetof (copy_params, to), 8 },
  { offsetof (copy_params, bytes), 8 }, { offsetof (copy_params, a), 8 },
  { offsetof (copy_params, b), 8 },     { offsetof (copy_params, told), 8 }
};

static const emu_param digest_layout[] = { { offsetof (digest_params, at), 8 },
                                           { offsetof (digest_params, bytes), 8 },
                                           { offsetof (digest_params, to), 8 } };

static bool tell_emulator (void) {
  const emu_kernel digest = { "ferry_digest", digest_layout, 3,
                              digest_run,     digest_ns,     digest_touches };
  const emu_kernel copy = { "ferry_copy_unless", copy_layout, 6, copy_run, copy_ns, copy_touches };
  emu_register enlist;
  void *entry = shim_symbol (EMU_REGISTER);
  memcpy (&enlist, &entry, sizeof enlist);
  return entry != NULL && enlist (&digest) == CUDA_SUCCESS && enlist (&copy) == CUDA_SUCCESS;
}

/* ---- on any device ---- */

bool kernels_ready (shim *s) {
  own_kernels *k = &s->own;
  CUmodule module;
  if (k->tried)
    return k->digest != NULL;
  k->tried = true;
  if ((s->block->config.emulated && !tell_emulator ()) ||
      s->real.module_load (&module, digest_ptx) != CUDA_SUCCESS ||
      s->real.module_get_function (&k->digest, module, "ferry_digest") != CUDA_SUCCESS ||
      s->real.module_get_function (&k->copy_unless, module, "ferry_copy_unless") != CUDA_SUCCESS)
    k->digest = NULL;
  return k->digest != NULL;
}

static unsigned int blocks_for (int64_t bytes) {
  int64_t blocks = bytes / 8 / (THREADS * WORDS_A_THREAD) + 1;
  return (unsigned int)(blocks < BLOCKS ? blocks : BLOCKS);
}

bool digest_queue (shim *s, CUdeviceptr at, int64_t bytes, CUdeviceptr to, CUstream stream) {
  void *params[] = { &at, &bytes, &to };
  s->block->seen.own_launches++;
  return kernels_ready (s) && s->real.launch (s->own.digest, blocks_for (bytes), 1, 1, THREADS, 1,
                                              1, 0, stream, params, NULL) == CUDA_SUCCESS;
}

bool copy_unless_queue (shim *s, const unless *u, CUstream stream) {
  unless own = *u;
  void *params[] = { &own.from, &own.to, &own.bytes, &own.a, &own.b, &own.told };
  s->block->seen.own_launches++;
  return kernels_ready (s) &&
         s->real.launch (s->own.copy_unless, blocks_for (own.bytes), 1, 1, THREADS, 1, 1, 0, stream,
                         params, NULL) == CUDA_SUCCESS;
}
