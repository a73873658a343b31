/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/again/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/digest/kernels.h"
#include "executor/shim/memory/memory.h"

/* The first pair is everybody's. */
struct pairs {
  CUdeviceptr at;
  uint64_t *told; /* pinned: of each launch, 1 where a kernel has found a pair of it different */
  int32_t names[PAIRS_LAUNCHES]; /* of each: the kernel that ran again */
  int32_t n, n_told;
  uint64_t unseen; /* streams that have results whose pairs the host has not seen compared */
};

static CUdeviceptr word (const shim *s, int32_t pair, int32_t which) {
  return s->pairs->at + (2 * (uint64_t)pair + (uint64_t)which) * sizeof *s->pairs->told;
}

/* A small tensor of ferry's own. */
bool pairs_ready (shim *s) {
  pairs *g = s->pairs;
  if (g != NULL || (g = s->pairs = calloc (1, sizeof *g)) == NULL)
    return g != NULL && g->told != NULL;
  int64_t bytes = pairs_bytes (s->chunk_bytes);
  void *told = NULL;
  g->n = pairs_in (s->chunk_bytes);
  g->at =
      small_has_room (s, bytes) && kernels_ready (s) ? small_allocate (s, bytes, NULL, true) : 0;
  if (g->at == 0 || s->real.set_bytes (g->at, 0, (size_t)bytes) != CUDA_SUCCESS ||
      s->real.mem_host_alloc (&told, PAIRS_LAUNCHES * sizeof *g->told, CU_MEMHOSTALLOC_PORTABLE) !=
          CUDA_SUCCESS)
    return false;
  memset (told, 0, PAIRS_LAUNCHES * sizeof *g->told);
  g->told = told;
  return true;
}

int32_t pairs_take (const shim *s, int32_t *n) {
  return s->pairs->told != NULL && *n < s->pairs->n ? (*n)++ : 0;
}

CUdeviceptr pairs_word (const shim *s) {
  return s->pairs->at;
}

bool pair_clear (shim *s, int32_t pair, int32_t which, CUstream stream) {
  return s->real.set_bytes_async (word (s, pair, which), 0, sizeof (uint64_t), stream) ==
         CUDA_SUCCESS;
}

bool pair_add (shim *s, const tensor *t, int32_t pair, int32_t which, CUstream stream) {
  return digest_queue (s, t->at, t->bytes, word (s, pair, which), stream);
}

bool pair_digest (shim *s, const tensor *t, int32_t pair, int32_t which, CUstream stream) {
  return pair_clear (s, pair, which, stream) && pair_add (s, t, pair, which, stream);
}

bool pair_compare (shim *s, int32_t pair, const pairs_launch *l, CUdeviceptr at) {
  pairs *g = s->pairs;
  const unless u = { .from = at,
                     .to = &g->told[l->number],
                     .a = word (s, pair, 0),
                     .b = word (s, pair, 1),
                     .told = &g->told[l->number] };
  g->names[l->number] = l->name;
  g->n_told = l->number < g->n_told ? g->n_told : l->number + 1;
  g->unseen |= (uint64_t)1 << l->bit;
  return copy_unless_queue (s, &u, l->stream);
}

bool pair_read (shim *s, int32_t pair, uint64_t *both) {
  return s->real.copy_out (both, word (s, pair, 0), 2 * sizeof *both) == CUDA_SUCCESS;
}

int32_t pairs_look (shim *s, bool wait) {
  pairs *g = s->pairs;
  if (g == NULL || g->unseen == 0)
    return NONE;
  if (wait) {
    host_wait_for (s, g->unseen);
    g->unseen = 0;
  }
  for (int32_t i = 0; i < g->n_told; i++)
    if (__atomic_load_n (&g->told[i], __ATOMIC_ACQUIRE) != 0)
      return g->names[i];
  return NONE;
}
