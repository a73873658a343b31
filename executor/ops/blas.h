/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one door to OpenBLAS, which is opened at run time, and own loops where it is not there.  A
   call is made by one thread, so what it gives depends on its sizes and numbers only: not on the
   number of cores, and not on where the operands lie. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Row major: c (m x n) = alpha op (a) op (b) + beta c; op (a) is m x k, op (b) is k x n.  A row of
   the stored matrix is a_row (b_row, c_row) elements behind the one before.  beta 0: c may hold
   anything. */
typedef struct blas_product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t a_row, b_row, c_row;
  float alpha, beta;
} blas_product;

/* OpenBLAS's functions; all NULL: own loops. */
typedef struct blas {
  void (*sgemm) (int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int a_row, const float *b, int b_row, float beta, float *c,
                 int c_row);
  void (*set_threads) (int count);
  char *(*config) (void);
} blas;

/* Looks for OpenBLAS, which then stays until the process ends. */
void blas_open (blas *b);
/* "OpenBLAS 0.3.21 ..." or "own loops". */
const char *blas_name (const blas *b);

void blas_sgemm (const blas *l, const blas_product *p, const float *a, const float *b, float *c);
/* The own loops, which are the same function where there is no OpenBLAS. */
void blas_own_sgemm (const blas_product *p, const float *a, const float *b, float *c);
