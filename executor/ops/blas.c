/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/ops/blas.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "config.h"
#include "executor/driver/symbols.h"

/* ---- OpenBLAS ---- */

/* cblas.h's own numbers. */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

#ifdef USE_OPENBLAS
static const symbol_row rows[] = {
  { offsetof (blas, sgemm), "cblas_sgemm", true },
  { offsetof (blas, set_threads), "openblas_set_num_threads", true },
  { offsetof (blas, config), "openblas_get_config", true },
};

/* One whose integers have 64 bits has other functions under the same names. */
static bool usable (void *library, blas *b) {
  return symbols_take (library, rows, sizeof rows / sizeof rows[0], b) == NULL &&
         strstr (b->config (), "USE64BITINT") == NULL;
}
#endif

void blas_open (blas *b) {
  *b = (blas){ NULL, NULL, NULL };
#ifdef USE_OPENBLAS
  /* It is never unloaded, so the handle need not be kept: its threads may outlive any call. */
  void *library = dlopen ("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL)
    return;
  if (!usable (library, b))
    *b = (blas){ NULL, NULL, NULL };
  dlclose (library);
#endif
}

const char *blas_name (const blas *b) {
  return b->sgemm != NULL ? b->config () : "own loops";
}

static int narrow (int64_t x) {
  assert (x >= 0 && x <= INT_MAX);
  return (int)x;
}

void blas_sgemm (const blas *l, const blas_product *p, const float *a, const float *b, float *c) {
  if (l->sgemm == NULL) {
    blas_own_sgemm (p, a, b, c);
    return;
  }
  if (p->m == 0 || p->n == 0)
    return;
  l->set_threads (1); /* a store; with more, sums would depend on how many there are */
  l->sgemm (ROW_MAJOR, p->transpose_a ? TRANSPOSED : AS_IT_IS,
            p->transpose_b ? TRANSPOSED : AS_IT_IS, narrow (p->m), narrow (p->n), narrow (p->k),
            p->alpha, a, narrow (p->a_row), b, narrow (p->b_row), p->beta, c, narrow (p->c_row));
}

/* ---- own loops ----
   Blocks of b and a are copied into strips of WIDE columns and HIGH rows, so that the innermost
   loop reads both in order and keeps HIGH x WIDE sums in registers.  Each element of c is the sum
   of its products in blocks of DEEP, each summed in the order of k. */

enum { HIGH = 4, WIDE = 8, DEEP = 256, ROWS = 64, COLUMNS = 256 };

typedef float lane __attribute__ ((vector_size (16), aligned (4)));

static void pack_a (const blas_product *p, const float *a, int64_t i0, int64_t rows, int64_t k0,
                    int64_t deep, float *out) {
  for (int64_t i = 0; i < rows; i += HIGH)
    for (int64_t k = 0; k < deep; k++)
      for (int64_t r = i; r < i + HIGH; r++)
        *out++ = r >= rows        ? 0
                 : p->transpose_a ? a[(k0 + k) * p->a_row + i0 + r]
                                  : a[(i0 + r) * p->a_row + k0 + k];
}

static void pack_b (const blas_product *p, const float *b, int64_t j0, int64_t columns, int64_t k0,
                    int64_t deep, float *out) {
  for (int64_t j = 0; j < columns; j += WIDE)
    for (int64_t k = 0; k < deep; k++)
      for (int64_t s = j; s < j + WIDE; s++)
        *out++ = s >= columns     ? 0
                 : p->transpose_b ? b[(j0 + s) * p->b_row + k0 + k]
                                  : b[(k0 + k) * p->b_row + j0 + s];
}

static void strip (int64_t deep, const float *a, const float *b, float sums[HIGH][WIDE]) {
  lane low[HIGH] = { { 0 } }, high[HIGH] = { { 0 } };
  for (int64_t k = 0; k < deep; k++, a += HIGH, b += WIDE) {
    lane left = *(const lane *)b, right = *(const lane *)(b + 4);
    for (int i = 0; i < HIGH; i++) {
      low[i] += a[i] * left;
      high[i] += a[i] * right;
    }
  }
  for (int i = 0; i < HIGH; i++) {
    memcpy (sums[i], &low[i], sizeof low[i]);
    memcpy (sums[i] + 4, &high[i], sizeof high[i]);
  }
}

static void block (const blas_product *p, int64_t rows, int64_t columns, int64_t deep,
                   const float *a, const float *b, float *c) {
  float sums[HIGH][WIDE];
  for (int64_t j = 0; j < columns; j += WIDE)
    for (int64_t i = 0; i < rows; i += HIGH) {
      strip (deep, a + i * deep, b + j * deep, sums);
      for (int64_t r = i; r < i + HIGH && r < rows; r++)
        for (int64_t s = j; s < j + WIDE && s < columns; s++)
          c[r * p->c_row + s] += p->alpha * sums[r - i][s - j];
    }
}

void blas_own_sgemm (const blas_product *p, const float *a, const float *b, float *c) {
  assert (p->m >= 0 && p->n >= 0 && p->k >= 0);
  float packed_a[ROWS * DEEP], packed_b[COLUMNS * DEEP];
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++)
      c[i * p->c_row + j] = p->beta == 0 ? 0 : p->beta * c[i * p->c_row + j];
  for (int64_t k = 0; k < p->k; k += DEEP) {
    int64_t deep = p->k - k < DEEP ? p->k - k : DEEP;
    for (int64_t j = 0; j < p->n; j += COLUMNS) {
      int64_t columns = p->n - j < COLUMNS ? p->n - j : COLUMNS;
      pack_b (p, b, j, columns, k, deep, packed_b);
      for (int64_t i = 0; i < p->m; i += ROWS) {
        int64_t rows = p->m - i < ROWS ? p->m - i : ROWS;
        pack_a (p, a, i, rows, k, deep, packed_a);
        block (p, rows, columns, deep, packed_a, packed_b, c + i * p->c_row + j);
      }
    }
  }
}
