/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A cuBLAS for the emulated device, in plain loops: a library that the door opens as it opens the
   real one. It refuses what the real one would refuse or what no plan knows of: a product without a
   workspace of its own after a stream was set, matrices whose rows overlap, types that do not go
   together.  Work is done in the stream's turn; without a stream, at once. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "executor/ops/bf16.h"
#include "executor/libraries/cublas_types.h"
#include "tests/fakes.h"

#pragma GCC visibility push(default) /* the build hides what is not told to be seen */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* they stand in cublas_v2.h */

struct cublasContext {
  cudaStream_t stream;
  int atomics, has_workspace; /* given since the stream was set */
  void *workspace;
  size_t workspace_bytes;
};

static fake_state state;

fake_state *fake_cublas_state (void) {
  return &state;
}

/* ---- what is done ---- */

typedef struct matrix {
  const void *at;
  cudaDataType type;
  long long row, next; /* column major: row is the leading dimension */
  int transposed;
} matrix;

typedef struct product {
  matrix a, b, c;
  int m, n, k, count;
  float alpha, beta;
} product;

static float number (const matrix *x, long long i) {
  return x->type == CUDA_R_16BF ? bf16_number (((const uint16_t *)x->at)[i])
                                : ((const float *)x->at)[i];
}

static float element_of (const matrix *x, int batch, int i, int j) {
  return number (x, batch * x->next + (x->transposed ? j + i * x->row : i + j * x->row));
}

static void multiply (void *context) {
  product *p = context;
  for (int h = 0; h < p->count; h++)
    for (int j = 0; j < p->n; j++)
      for (int i = 0; i < p->m; i++) {
        long long at = h * p->c.next + i + j * p->c.row;
        float sum = 0;
        for (int k = 0; k < p->k; k++)
          sum += element_of (&p->a, h, i, k) * element_of (&p->b, h, k, j);
        sum = p->alpha * sum + (p->beta != 0 ? p->beta * number (&p->c, at) : 0);
        if (p->c.type == CUDA_R_16BF)
          ((uint16_t *)(uintptr_t)p->c.at)[at] = bf16_of (sum);
        else
          ((float *)(uintptr_t)p->c.at)[at] = sum;
      }
  free (p);
}

/* ---- the interface ---- */

cublasStatus_t cublasCreate_v2 (cublasHandle_t *h) {
  *h = calloc (1, sizeof **h);
  (*h)->atomics = 1; /* until it is told otherwise */
  state.open++;
  return *h != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2 (cublasHandle_t h) {
  free (h);
  state.open--;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2 (cublasHandle_t h, int *version) {
  (void)h;
  *version = 130205;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2 (cublasHandle_t h, cudaStream_t s) {
  h->stream = s;
  h->has_workspace = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2 (cublasHandle_t h, void *at, size_t size) {
  if ((uintptr_t)at % 256 != 0 || (size > 0 && at == NULL))
    return fake_refuse (&state, "a workspace", CUBLAS_STATUS_INVALID_VALUE);
  h->has_workspace = 1;
  h->workspace = at;
  h->workspace_bytes = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode (cublasHandle_t h, cublasMath_t mode) {
  (void)h;
  return mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
             ? CUBLAS_STATUS_SUCCESS
             : fake_refuse (&state, "a math mode", CUBLAS_STATUS_INVALID_VALUE);
}

cublasStatus_t cublasSetAtomicsMode (cublasHandle_t h, cublasAtomicsMode_t mode) {
  h->atomics = mode != CUBLAS_ATOMICS_NOT_ALLOWED;
  return CUBLAS_STATUS_SUCCESS;
}

static int goes_together (cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t how) {
  if (a != b || a != c)
    return 0;
  return a == CUDA_R_16BF ? how == CUBLAS_COMPUTE_32F
                          : a == CUDA_R_32F && (how == CUBLAS_COMPUTE_32F_PEDANTIC ||
                                                how == CUBLAS_COMPUTE_32F_FAST_TF32);
}

static int aligned (const void *at, cudaDataType type) {
  return at != NULL && (uintptr_t)at % (type == CUDA_R_16BF ? 2 : 4) == 0;
}

/* Rows (columns, as the library sees them) may not overlap, nor may the results of two products. */
static int lies_well (const matrix *x, int lines, int columns, int count, int written) {
  int first = x->transposed ? columns : lines, second = x->transposed ? lines : columns;
  long long extent = (second - 1) * x->row + first;
  return x->row >= first && aligned (x->at, x->type) && x->next >= 0 &&
         (!written || count == 1 || x->next >= first) && extent > 0;
}

cublasStatus_t cublasGemmStridedBatchedEx (cublasHandle_t h, cublasOperation_t op_a,
                                           cublasOperation_t op_b, int m, int n, int k,
                                           const void *alpha, const void *a, cudaDataType a_type,
                                           int a_row, long long a_next, const void *b,
                                           cudaDataType b_type, int b_row, long long b_next,
                                           const void *beta, void *c, cudaDataType c_type,
                                           int c_row, long long c_next, int count,
                                           cublasComputeType_t how, cublasGemmAlgo_t algo) {
  product p = { { a, a_type, a_row, a_next, op_a == CUBLAS_OP_T },
                { b, b_type, b_row, b_next, op_b == CUBLAS_OP_T },
                { c, c_type, c_row, c_next, 0 },
                m,
                n,
                k,
                count,
                *(const float *)alpha,
                *(const float *)beta };
  if (h->atomics || !h->has_workspace)
    return fake_refuse (&state, "atomics, or a workspace of its own", CUBLAS_STATUS_INVALID_VALUE);
  if (m < 1 || n < 1 || k < 1 || count < 1 || algo != CUBLAS_GEMM_DEFAULT || op_a > CUBLAS_OP_T ||
      op_b > CUBLAS_OP_T || !goes_together (a_type, b_type, c_type, how) ||
      !lies_well (&p.a, m, k, count, 0) || !lies_well (&p.b, k, n, count, 0) ||
      !lies_well (&p.c, m, n, count, 1))
    return fake_refuse (&state, "sizes, steps or types", CUBLAS_STATUS_INVALID_VALUE);
  if (h->workspace_bytes < state.needs_bytes)
    return CUBLAS_STATUS_ALLOC_FAILED;
  state.tf32 += how == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (h->workspace_bytes > 0)
    state.with_workspace++;
  return fake_do (&state, h->stream, multiply, &p, sizeof p) ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_ALLOC_FAILED;
}
