/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/libraries/cublas.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "executor/libraries/cublas_types.h"
#include "executor/driver/symbols.h"

enum { WORKSPACE_ALIGNMENT = 256 };

struct cublas {
  void *library;
  cublasHandle_t handle;
  int version;
#define CUBLAS(field, symbol, parameters) cublasStatus_t (*field) parameters;
#include "executor/libraries/cublas.def"
#undef CUBLAS
};

static const symbol_row rows[] = {
#define CUBLAS(field, symbol, parameters) { offsetof (cublas, field), #symbol, true },
#include "executor/libraries/cublas.def"
#undef CUBLAS
};

static bool ok (cublasStatus_t s, const char *call, error *err) {
  return s == CUBLAS_STATUS_SUCCESS || error_set (err, ERR_device, "%s: status %u", call, s);
}

static void *find (const char *path) {
  static const char *const names[] = { "libcublas.so.13", "libcublas.so.12" };
  void *found = path != NULL ? dlopen (path, RTLD_NOW | RTLD_LOCAL) : NULL;
  for (size_t i = 0; path == NULL && found == NULL && i < sizeof names / sizeof names[0]; i++)
    found = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
  return found;
}

static bool read_table (cublas *b, error *err) {
  const char *missing = symbols_take (b->library, rows, sizeof rows / sizeof rows[0], b);
  return missing == NULL ||
         error_set (err, ERR_unreachable, "cuBLAS has no %s; version 12 or 13 is needed", missing);
}

/* The math mode forbids what would round more than a product's own type does. */
static bool start (cublas *b, error *err) {
  return ok (b->create (&b->handle), "cublasCreate", err) &&
         ok (b->get_version (b->handle, &b->version), "cublasGetVersion", err) &&
         ok (b->set_atomics_mode (b->handle, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode",
             err) &&
         ok (b->set_math_mode (b->handle,
                               (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
             "cublasSetMathMode", err);
}

bool cublas_open (const char *path, cublas **out, error *err) {
  *out = NULL;
  void *library = find (path);
  if (library == NULL)
    return path == NULL || error_set (err, ERR_unreachable, "no cuBLAS: %s", dlerror ());
  cublas *b = calloc (1, sizeof *b);
  if (b == NULL) {
    dlclose (library);
    return error_set (err, ERR_memory, "no memory for cuBLAS");
  }
  b->library = library;
  if (read_table (b, err) && start (b, err)) {
    *out = b;
    return true;
  }
  cublas_close (b);
  return false;
}

void cublas_close (cublas *b) {
  if (b == NULL)
    return;
  if (b->handle != NULL)
    b->destroy (b->handle);
  dlclose (b->library);
  free (b);
}

int cublas_version (const cublas *b) {
  return b->version;
}

bool cublas_takes (const cublas_product *p) {
  const int64_t sizes[] = { p->m, p->n, p->k, p->count, p->a_row, p->b_row, p->c_row };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i] < 1 || sizes[i] > INT_MAX)
      return false;
  return true;
}

/* Column major, as cuBLAS sees it, a row major matrix is its transpose: so c' = op (b)' op (a)'. */
bool cublas_multiply (cublas *b, CUstream s, const cublas_product *p, bool *done, error *err) {
  assert (b && p && done);
  cudaDataType type = p->dtype == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
  cublasComputeType_t how = p->dtype == DTYPE_BF16   ? CUBLAS_COMPUTE_32F
                            : p->dtype == DTYPE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                     : CUBLAS_COMPUTE_32F_PEDANTIC;
  bool aligned = (uintptr_t)p->workspace % WORKSPACE_ALIGNMENT == 0;
  size_t room = p->workspace != NULL && aligned ? (size_t)p->workspace_bytes : 0;
  /* In this order: a new stream brings the library's own workspace back, which no plan knows of. */
  if (!ok (b->set_stream (b->handle, (cudaStream_t)s), "cublasSetStream", err) ||
      !ok (b->set_workspace (b->handle, room > 0 ? p->workspace : NULL, room), "cublasSetWorkspace",
           err))
    return false;
  cublasStatus_t r = b->gemm (b->handle, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                              p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->n, (int)p->m,
                              (int)p->k, &p->alpha, p->b, type, (int)p->b_row, p->b_next, p->a,
                              type, (int)p->a_row, p->a_next, &p->beta, p->c, type, (int)p->c_row,
                              p->c_next, (int)p->count, how, CUBLAS_GEMM_DEFAULT);
  *done = r != CUBLAS_STATUS_ALLOC_FAILED && r != CUBLAS_STATUS_NOT_SUPPORTED;
  return !*done || ok (r, "cublasGemmStridedBatchedEx", err);
}
