/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one door to cuBLAS, which is opened at run time.  What it calculates is the same in every
   run: no atomics, no algorithm of its own choice among streams, and the only memory that it works
   in is what is given with each product. */
#pragma once

#include "executor/driver/driver.h"
#include "trace/compute.h"

typedef struct cublas cublas;

/* `count` products of row major matrices: c (m x n) = alpha op (a) op (b) + beta c.  A row of the
   stored matrix is a_row (b_row, c_row) elements behind the one before, a matrix a_next behind. */
typedef struct cublas_product {
  compute_dtype dtype;
  int64_t m, n, k, count;
  bool transpose_a, transpose_b;
  int64_t a_row, b_row, c_row, a_next, b_next, c_next;
  float alpha, beta;
  const void *a, *b;
  void *c;
  void *workspace; /* NULL: none */
  int64_t workspace_bytes;
} cublas_product;

/* path NULL: wherever the system finds one of the versions that we know. A context is current. NULL
   and no error where there is none. */
bool cublas_open (const char *path, cublas **out, error *err) MUST_CHECK;
void cublas_close (cublas *b); /* NULL is allowed */
int cublas_version (const cublas *b);

/* Sizes that do not fit its interface: false. */
bool cublas_takes (const cublas_product *p);
/* *done: false where it would need more to work in than it is given: nothing happened. */
bool cublas_multiply (cublas *b, CUstream s, const cublas_product *p, bool *done,
                      error *err) MUST_CHECK;
