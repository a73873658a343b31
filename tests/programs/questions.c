/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks the driver about addresses and about its pool, and for what it has to refuse, in every step
   of a small training loop; prints what it answers. */
#include <stdio.h>
#include <string.h>

#include "tests/programs/gpu.h"

enum { N = 24576, WEIGHTS = 8, ASKED = 10 };

static const CUpointer_attribute asked[ASKED] = {
  CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
  CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
  CU_POINTER_ATTRIBUTE_MAPPED,           CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
};

/* As far as it is the same in every run: addresses by what they are apart from the one asked for.
 */
static void say_word (const gpu *g, CUpointer_attribute a, uint64_t word, CUdeviceptr at) {
  if (a == CU_POINTER_ATTRIBUTE_CONTEXT)
    printf (" context %d", word == (uintptr_t)g->context ? 1 : word == 0 ? 0 : -1);
  else if ((a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
            a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) &&
           word != 0)
    printf (" at%+lld", (long long)(word - at));
  else
    printf (" %llx", (unsigned long long)word);
}

static void ask_address (const gpu *g, const char *what, CUdeviceptr at) {
  uint64_t word[ASKED];
  void *out[ASKED];
  CUpointer_attribute all[ASKED];
  CUdeviceptr base = 0;
  size_t bytes = 0;
  for (int i = 0; i < ASKED; i++) {
    bool is_int = asked[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                  asked[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                  asked[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                  asked[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
                  asked[i] == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE;
    all[i] = asked[i];
    word[i] = is_int ? 0x5a5a5a5a : 0x5a5a5a5a5a5a5a5a;
    out[i] = &word[i];
  }
  printf ("%s: %u", what, g->pointer_attributes (ASKED, all, out, at));
  for (int i = 0; i < ASKED; i++)
    say_word (g, asked[i], word[i], at);
  for (int i = 0; i < ASKED; i++) {
    word[i] = 77;
    printf (" %u%s", g->pointer_attribute (&word[i], asked[i], at), word[i] == 77 ? "-" : "");
  }
  CUresult r = g->address_range (&base, &bytes, at);
  printf (" range %u %lld %zu\n", r, r == 0 ? (long long)(at - base) : 0, bytes);
}

static void ask_pool (const gpu *g) {
  static const CUmemPool_attribute attributes[] = { CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                                    CU_MEMPOOL_ATTR_USED_MEM_HIGH,
                                                    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH };
  CUmemoryPool pool;
  uint64_t value, none = 0, some = 1;
  gpu_must (g, g->device_default_pool (&pool, 0), "cuDeviceGetDefaultMemPool");
  printf ("pool");
  for (int i = 0; i < 3; i++) {
    gpu_must (g, g->pool_get (pool, attributes[i], &value), "cuMemPoolGetAttribute");
    printf (" %llu", (unsigned long long)value);
  }
  printf (" %u %u\n", g->pool_set (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none),
          g->pool_set (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &some));
}

/* Calls that a driver refuses, and of which nothing stays. */
static void ask_nonsense (gpu *g, CUdeviceptr weight) {
  CUfunction add;
  long n = N;
  void *parameters[] = { &weight, &weight, &weight, &n };
  CUdeviceptr none = 0;
  gpu_must (g, g->module_get_function (&add, g->module, "add"), "add");
  printf ("refused %u %u %u %u %u %u %u\n",
          g->launch (NULL, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL),
          g->launch (add, 0, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL),
          g->launch (add, 1, 1, 1, 4096, 1, 1, 0, NULL, parameters, NULL), g->mem_alloc (&none, 0),
          g->mem_free (weight + 64), g->mem_free_async (weight + 4096, NULL),
          g->copy_in (weight, NULL, 4));
}

int main (int argc, char **argv) {
  gpu g;
  CUdeviceptr weight[WEIGHTS], plain, small;
  gpu_open (&g, argc, argv);
  for (int i = 0; i < WEIGHTS; i++) {
    weight[i] = gpu_alloc (&g, N, NULL);
    gpu_fill (&g, weight[i], N, i, NULL);
  }
  gpu_must (&g, g.mem_alloc (&plain, 3 * N), "cuMemAlloc");
  for (int i = 0; i < g.steps; i++) {
    CUdeviceptr t[WEIGHTS];
    for (int k = 0; k < WEIGHTS; k++) {
      t[k] = gpu_alloc (&g, N, NULL);
      LAUNCH (&g, "add", NULL, N, &t[k], k > 0 ? &t[k - 1] : &weight[0], &weight[k]);
    }
    small = gpu_alloc (&g, 1 + 200 * (i % 3), NULL);
    ask_address (&g, "weight", weight[1]);
    ask_address (&g, "within", t[0] + 4 * N - 1);
    ask_address (&g, "small", small);
    ask_address (&g, "plain", plain);
    ask_address (&g, "nobody's", 0x1000);
    gpu_must (&g, g.ctx_synchronize (), "cuCtxSynchronize");
    ask_pool (&g);
    ask_nonsense (&g, weight[2]);
    for (int k = WEIGHTS - 1; k >= 0; k--) {
      LAUNCH (&g, "relu_back", NULL, N, &weight[k], &weight[k], &t[k]);
      gpu_free (&g, t[k], NULL);
    }
    gpu_free (&g, small, NULL);
    gpu_say_digest (&g, "weight", weight[i % WEIGHTS], N);
  }
  gpu_close (&g);
  return 0;
}
