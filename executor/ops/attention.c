/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention without the score matrix: some queries at a time, their scores in memory that is used
   again.  Also what stands around it: softmax of a matrix that is there, rotary positions, heads
   that several queries share. */
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "executor/ops/inner.h"

enum { QUERIES = 64 }; /* at a time */

/* One item and head; the row strides are in elements. */
typedef struct head {
  const compute_attention *s;
  const blas *blas;
  const float *q, *k, *v, *y, *dy, *lse;
  float *y_out, *lse_out, *dq, *dk, *dv;
  int64_t q_row, k_row, y_row;
  int64_t random; /* the number that its first element draws */
  int64_t step;
} head;

/* How many keys query i sees. */
static int64_t seen (const compute_attention *s, int64_t i) {
  int64_t n = s->causal ? i + s->keys - s->queries + 1 : s->keys;
  return n < 0 ? 0 : n;
}

static float *offset (float *x, int64_t by) {
  return x == NULL ? NULL : x + by;
}

/* Operands: forward q, k, v, y, lse; backward dy, q, k, v, y, lse, dq, dk, dv. */
static head head_of (const work *w, bool back, int64_t item, int64_t h) {
  const compute_attention *s = &w->c->attention;
  int64_t kv = h / (s->heads / s->kv_heads), width = s->width;
  int64_t q_heads = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
  head r = {
    .s = s, .blas = w->blas, .step = w->step, .q_row = q_heads * width, .y_row = s->heads * width
  };
  r.k_row = s->packed ? r.q_row : s->kv_heads * width;
  int64_t q_at = item * s->queries * r.q_row + h * width, k_at, v_at;
  if (s->packed) {
    k_at = item * s->queries * r.q_row + (s->heads + kv) * width;
    v_at = k_at + s->kv_heads * width;
  } else {
    k_at = v_at = item * s->keys * r.k_row + kv * width;
  }
  int q = back ? 1 : 0, k = s->packed ? q : q + 1, v = s->packed ? q : q + 2;
  r.q = offset (ops_float (w, q), q_at);
  r.k = offset (ops_float (w, k), k_at);
  r.v = offset (ops_float (w, v), v_at);
  int64_t y_at = item * s->queries * r.y_row + h * width;
  int64_t lse_at = (item * s->heads + h) * s->queries;
  if (back) {
    r.dy = offset (ops_float (w, 0), y_at);
    r.y = offset (ops_float (w, 4), y_at);
    r.lse = offset (ops_float (w, 5), lse_at);
    r.dq = offset (ops_float (w, 6), q_at);
    r.dk = offset (ops_float (w, s->packed ? 6 : 7), k_at);
    r.dv = offset (ops_float (w, s->packed ? 6 : 8), v_at);
  } else {
    r.y_out = offset (ops_float (w, 3), y_at);
    r.lse_out = offset (ops_float (w, 4), lse_at);
  }
  r.random = s->offset + ((w->first_item + item) * s->heads + h) * s->queries * s->keys;
  return r;
}

static float scale_of (const compute_attention *s) {
  return 1 / sqrtf ((float)s->width);
}

/* Scores of queries [from, to). */
static void scores_of (const head *h, int64_t from, int64_t to, float *scores) {
  blas_product p = { .m = to - from,
                     .n = h->s->keys,
                     .k = h->s->width,
                     .transpose_b = true,
                     .a_row = h->q_row,
                     .b_row = h->k_row,
                     .c_row = h->s->keys,
                     .alpha = scale_of (h->s) };
  blas_sgemm (h->blas, &p, h->q + from * h->q_row, h->k, scores);
}

static bool kept (const head *h, int64_t query, int64_t key) {
  const compute_attention *s = h->s;
  int64_t n = h->random + query * s->keys + key;
  return s->rate_ppm == 0 || ops_keeps (ops_random (s->seed, h->step, n), s->rate_ppm);
}

static float kept_scale (const compute_attention *s) {
  return 1 / (1 - (float)s->rate_ppm / 1e6f);
}

/* The softmax of a row of n, 0 behind it; returns the logarithm of the sum of exponentials. */
static float softmax_row (float *x, int64_t n, int64_t columns) {
  float most = -INFINITY;
  double sum = 0;
  for (int64_t j = 0; j < n; j++)
    most = x[j] > most ? x[j] : most;
  for (int64_t j = 0; j < n; j++)
    sum += x[j] = expf (x[j] - most);
  float scale = n > 0 ? (float)(1 / sum) : 0;
  for (int64_t j = 0; j < columns; j++)
    x[j] = j < n ? x[j] * scale : 0;
  return most + logf ((float)sum);
}

static void head_forward (const head *h, float *scores) {
  const compute_attention *s = h->s;
  for (int64_t from = 0; from < s->queries; from += QUERIES) {
    int64_t to = min_of (from + QUERIES, s->queries);
    scores_of (h, from, to, scores);
    for (int64_t i = from; i < to; i++) {
      float *row = scores + (i - from) * s->keys;
      h->lse_out[i] = softmax_row (row, min_of (seen (s, i), s->keys), s->keys);
      for (int64_t j = 0; s->rate_ppm > 0 && j < seen (s, i); j++)
        row[j] = kept (h, i, j) ? row[j] * kept_scale (s) : 0;
    }
    blas_product p = { .m = to - from,
                       .n = s->width,
                       .k = s->keys,
                       .a_row = s->keys,
                       .b_row = h->k_row,
                       .c_row = h->y_row,
                       .alpha = 1 };
    blas_sgemm (h->blas, &p, scores, h->v, h->y_out + from * h->y_row);
  }
}

void op_attention_fwd (const work *k) {
  const compute_attention *s = &k->c->attention;
  float *scores = ops_scratch (k, min_of (QUERIES, s->queries) * s->keys);
  if (scores == NULL)
    return;
  for (int64_t item = 0; item < k->items; item++)
    for (int64_t i = 0; i < s->heads; i++) {
      head h = head_of (k, false, item, i);
      head_forward (&h, scores);
    }
}

/* p holds scores and becomes what dropout left of the probabilities; dp, which holds the gradient
   of those, becomes that of the scores. */
static void rows_back (const head *h, int64_t from, int64_t to, float *p, float *dp) {
  const compute_attention *s = h->s;
  float scale = kept_scale (s);
  for (int64_t i = from; i < to; i++, p += s->keys, dp += s->keys) {
    const float *y = h->y + i * h->y_row, *dy = h->dy + i * h->y_row;
    double dot = 0;
    for (int64_t j = 0; j < s->width; j++)
      dot += (double)y[j] * dy[j];
    for (int64_t j = 0; j < s->keys; j++) {
      bool sees = j < seen (s, i), keeps = sees && kept (h, i, j);
      float probability = sees ? expf (p[j] - h->lse[i]) : 0;
      float gradient = keeps ? dp[j] * scale : 0;
      dp[j] = sees ? probability * (gradient - (float)dot) : 0;
      p[j] = keeps ? probability * scale : 0;
    }
  }
}

/* The blocks of queries are added up in their order, the heads that share a key in theirs. */
static void head_backward (const head *h, float *scores, float *dscores) {
  const compute_attention *s = h->s;
  for (int64_t from = 0; from < s->queries; from += QUERIES) {
    int64_t to = min_of (from + QUERIES, s->queries);
    const float *dy = h->dy + from * h->y_row;
    scores_of (h, from, to, scores);
    blas_product dp = { .m = to - from,
                        .n = s->keys,
                        .k = s->width,
                        .transpose_b = true,
                        .a_row = h->y_row,
                        .b_row = h->k_row,
                        .c_row = s->keys,
                        .alpha = 1 };
    blas_sgemm (h->blas, &dp, dy, h->v, dscores);
    rows_back (h, from, to, scores, dscores);
    blas_product to_keys = { .m = s->keys,
                             .n = s->width,
                             .k = to - from,
                             .transpose_a = true,
                             .a_row = s->keys,
                             .b_row = h->y_row,
                             .c_row = h->k_row,
                             .alpha = 1,
                             .beta = 1 };
    blas_sgemm (h->blas, &to_keys, scores, dy, h->dv);
    to_keys.alpha = scale_of (s);
    to_keys.b_row = h->q_row;
    blas_sgemm (h->blas, &to_keys, dscores, h->q + from * h->q_row, h->dk);
    blas_product dq = { .m = to - from,
                        .n = s->width,
                        .k = s->keys,
                        .a_row = s->keys,
                        .b_row = h->k_row,
                        .c_row = h->q_row,
                        .alpha = scale_of (s) };
    blas_sgemm (h->blas, &dq, dscores, h->k, h->dq + from * h->q_row);
  }
}

void op_attention_bwd (const work *k) {
  const compute_attention *s = &k->c->attention;
  int64_t room = min_of (QUERIES, s->queries) * s->keys;
  float *scores = ops_scratch (k, 2 * room);
  if (scores == NULL)
    return;
  for (int i = 6; i < 9; i++)
    if (k->at[i] != NULL)
      memset (k->at[i], 0, (size_t)(k->items * k->elements[i]) * sizeof (float));
  for (int64_t item = 0; item < k->items; item++)
    for (int64_t i = 0; i < s->heads; i++) {
      head h = head_of (k, true, item, i);
      head_backward (&h, scores, scores + room);
    }
}

/* ---- softmax of what is in memory ---- */

void op_softmax_fwd (const work *k) {
  const compute_softmax *s = &k->c->softmax;
  const float *x = ops_float (k, 0);
  float *y = ops_out (k, 1, 0);
  int64_t rows = k->items * s->heads * s->queries;
  for (int64_t i = 0; i < rows; i++, x += s->columns, y += s->columns) {
    int64_t n = s->causal ? i % s->queries + s->columns - s->queries + 1 : s->columns;
    memmove (y, x, (size_t)s->columns * sizeof *y);
    softmax_row (y, n < 0 ? 0 : n, s->columns);
  }
}

void op_softmax_bwd (const work *k) {
  const compute_softmax *s = &k->c->softmax;
  const float *y = ops_float (k, 0), *dy = ops_float (k, 1);
  float *dx = ops_out (k, 2, 1);
  int64_t rows = k->items * s->heads * s->queries;
  for (int64_t i = 0; i < rows; i++, y += s->columns, dy += s->columns, dx += s->columns) {
    double dot = 0;
    for (int64_t j = 0; j < s->columns; j++)
      dot += (double)y[j] * dy[j];
    for (int64_t j = 0; j < s->columns; j++)
      dx[j] = y[j] * (dy[j] - (float)dot);
  }
}

/* ---- rotary positions ---- */

static void rotate (const work *k, float sign) {
  const compute_rotary *s = &k->c->rotary;
  int64_t half = s->width / 2, row = s->heads * s->width;
  float *turns = ops_scratch (k, 2 * half + 2);
  if (turns == NULL)
    return;
  for (int64_t r = 0; r < s->rows; r++) {
    for (int64_t i = 0; i < half; i++) {
      double angle = (double)r * pow ((double)s->theta, -2.0 * (double)i / (double)s->width);
      turns[2 * i] = (float)cos (angle);
      turns[2 * i + 1] = sign * (float)sin (angle);
    }
    for (int64_t h = 0; h < k->items * s->heads; h++) {
      float *x = ops_float (k, 0) + h / s->heads * s->rows * row + r * row;
      x += h % s->heads * s->width;
      for (int64_t i = 0; i < half; i++) {
        float a = x[i], b = x[half + i], cosine = turns[2 * i], sine = turns[2 * i + 1];
        x[i] = a * cosine - b * sine;
        x[half + i] = b * cosine + a * sine;
      }
    }
  }
}

void op_rotary_fwd (const work *k) {
  rotate (k, 1);
}

void op_rotary_bwd (const work *k) {
  rotate (k, -1);
}

/* ---- key and value heads that several query heads share ---- */

void op_repeat_fwd (const work *k) {
  const compute_repeat *s = &k->c->repeat;
  const float *x = ops_float (k, 0);
  float *y = ops_float (k, 1);
  for (int64_t i = 0; i < k->items * s->rows * s->kv_heads; i++, x += s->width)
    for (int64_t c = 0; c < s->copies; c++, y += s->width)
      memcpy (y, x, (size_t)s->width * sizeof *y);
}

void op_repeat_bwd (const work *k) {
  const compute_repeat *s = &k->c->repeat;
  const float *dy = ops_float (k, 0);
  float *dx = ops_float (k, 1);
  for (int64_t i = 0; i < k->items * s->rows * s->kv_heads; i++, dx += s->width)
    for (int64_t c = 0; c < s->copies; c++, dy += s->width)
      for (int64_t j = 0; j < s->width; j++)
        dx[j] = c == 0 ? dy[j] : dx[j] + dy[j];
}
