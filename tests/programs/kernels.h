/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The arithmetic of the programs, one thread an element.  The same source is a module of the
   emulated device (kernels.c) and of a GPU (kernels.cu). */
#pragma once

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define THREAD static __device__ void
#else
#define THREAD static inline void
#endif

#define FIELD(type, name) type name;
#define DECLARE(name, parameters)    \
  typedef struct name##_parameters { \
    parameters (FIELD) long count;   \
  } name##_parameters;               \
  THREAD name##_thread (const name##_parameters *p, long i)

/* Values from a seed, between -0.5 and 0.5. */
#define FILL(P) P (float *, out) P (long, seed)
DECLARE (fill, FILL) {
  uint64_t z = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)p->seed * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 31) * 0x94d049bb133111ebu;
  p->out[i] = (float)((z >> 40) & 0xffff) / 65536.0f - 0.5f;
}

/* out (m x n) = a (m x k) times b (k x n); mode 1: a is k x m; 2: b is n x k; 4: added.  On the
   processor the first of eight threads makes the sums of all, each in the order of its own. */
#define MATMUL(P)  \
  P (float *, out) \
  P (const float *, a) P (const float *, b) P (long, m) P (long, k) P (long, n) P (long, mode)
#ifdef __CUDACC__
enum { LANES = 1 };
#else
enum { LANES = 8 };
#endif
DECLARE (matmul, MATMUL) {
  long lanes = p->n % LANES == 0 ? LANES : 1, row = i / p->n, column = i % p->n;
  long a_step = (p->mode & 1) ? p->m : 1, b_step = (p->mode & 2) ? 1 : p->n;
  long b_lane = (p->mode & 2) ? p->k : 1;
  const float *a = p->a + row * ((p->mode & 1) ? 1 : p->k), *b = p->b + column * b_lane;
  float sum[LANES];
  if (i % lanes > 0)
    return;
  for (long t = 0; t < lanes; t++)
    sum[t] = (p->mode & 4) ? p->out[i + t] : 0;
  for (long j = 0; j < p->k; j++, a += a_step, b += b_step)
    if (lanes == LANES)
      for (int t = 0; t < LANES; t++)
        sum[t] += *a * b[t * b_lane];
    else
      sum[0] += *a * *b;
  for (long t = 0; t < lanes; t++)
    p->out[i + t] = sum[t];
}

#define RELU(P) P (float *, out) P (const float *, in)
DECLARE (relu, RELU) {
  p->out[i] = p->in[i] > 0 ? p->in[i] : 0.1f * p->in[i];
}

#define RELU_BACK(P) P (float *, out) P (const float *, gradient) P (const float *, in)
DECLARE (relu_back, RELU_BACK) {
  p->out[i] = p->in[i] > 0 ? p->gradient[i] : 0.1f * p->gradient[i];
}

/* Half the squared distance and its gradient; the loss is a sum in one thread. */
#define DISTANCE(P) P (float *, gradient) P (const float *, in) P (const float *, wanted)
DECLARE (distance, DISTANCE) {
  p->gradient[i] = (p->in[i] - p->wanted[i]) / (float)p->count;
}

#define SUM_SQUARES(P) P (float *, out) P (const float *, in) P (long, n)
DECLARE (sum_squares, SUM_SQUARES) {
  float sum = 0;
  for (long j = 0; j < p->n; j++)
    sum += p->in[j] * p->in[j];
  p->out[i] = sum;
}

#define UPDATE(P) \
  P (float *, weight) P (float *, momentum) P (const float *, gradient) P (float, rate)
DECLARE (update, UPDATE) {
  p->momentum[i] = 0.9f * p->momentum[i] + p->gradient[i];
  p->weight[i] -= p->rate * p->momentum[i];
}

#define ADD(P) P (float *, out) P (const float *, a) P (const float *, b)
DECLARE (add, ADD) {
  p->out[i] = p->a[i] + p->b[i];
}

/* The tensors are named by an array on the device: out = their sum. */
#define ADD_ALL(P) P (float *, out) P (float *const *, many) P (long, n)
DECLARE (add_all, ADD_ALL) {
  float sum = 0;
  for (long j = 0; j < p->n; j++)
    sum += p->many[j][i];
  p->out[i] = sum;
}

/* A cell of four gates in one matrix of 4 x width columns: what it remembers, and what it says. */
#define CELL(P)      \
  P (float *, state) \
  P (float *, said) P (const float *, gates) P (const float *, before) P (long, width)
DECLARE (cell, CELL) {
  const float *g = p->gates + i / p->width * 4 * p->width + i % p->width;
  float keep = g[0] / (1 + fabsf (g[0])), take = g[p->width] / (1 + fabsf (g[p->width]));
  float now = g[2 * p->width] / (1 + fabsf (g[2 * p->width]));
  float out = g[3 * p->width] / (1 + fabsf (g[3 * p->width]));
  float state = 0.5f * (keep + 1) * p->before[i] + 0.5f * (take + 1) * now;
  p->state[i] = state;
  p->said[i] = 0.5f * (out + 1) * state / (1 + fabsf (state));
}

/* Of the gates: not the true derivative, but a function of everything that it needs. */
#define CELL_BACK(P)               \
  P (float *, gates_gradient)      \
  P (const float *, said_gradient) \
  P (const float *, gates) P (const float *, state) P (const float *, before) P (long, width)
DECLARE (cell_back, CELL_BACK) {
  long row = i / (4 * p->width), column = i % p->width, at = row * p->width + column;
  float g = p->gates[i], slope = 1 / ((1 + fabsf (g)) * (1 + fabsf (g)));
  p->gates_gradient[i] = p->said_gradient[at] * slope * (1 + p->state[at]) * (1 + p->before[at]);
}

/* 3 x 3, the border repeated; images x channels x side x side. */
#define CONV(P)    \
  P (float *, out) \
  P (const float *, in) P (const float *, weight) P (long, from) P (long, to) P (long, side)
DECLARE (conv, CONV) {
  long x = i % p->side, y = i / p->side % p->side, c = i / p->side / p->side % p->to;
  long image = i / p->side / p->side / p->to;
  float sum = 0;
  for (long f = 0; f < p->from; f++)
    for (long k = 0; k < 9; k++) {
      long u = x + k % 3 - 1, v = y + k / 3 - 1;
      u = u < 0 ? 0 : u >= p->side ? p->side - 1 : u;
      v = v < 0 ? 0 : v >= p->side ? p->side - 1 : v;
      sum += p->in[((image * p->from + f) * p->side + v) * p->side + u] *
             p->weight[(c * p->from + f) * 9 + k];
    }
  p->out[i] = sum;
}

/* The same weights the other way round. */
#define CONV_BACK(P) \
  P (float *, out)   \
  P (const float *, gradient) P (const float *, weight) P (long, from) P (long, to) P (long, side)
DECLARE (conv_back, CONV_BACK) {
  long x = i % p->side, y = i / p->side % p->side, f = i / p->side / p->side % p->from;
  long image = i / p->side / p->side / p->from;
  float sum = 0;
  for (long c = 0; c < p->to; c++)
    for (long k = 0; k < 9; k++) {
      long u = x - k % 3 + 1, v = y - k / 3 + 1;
      u = u < 0 ? 0 : u >= p->side ? p->side - 1 : u;
      v = v < 0 ? 0 : v >= p->side ? p->side - 1 : v;
      sum += p->gradient[((image * p->to + c) * p->side + v) * p->side + u] *
             p->weight[(c * p->from + f) * 9 + k];
    }
  p->out[i] = sum;
}

#define CONV_WEIGHT(P)        \
  P (float *, out)            \
  P (const float *, gradient) \
  P (const float *, in) P (long, images) P (long, from) P (long, to) P (long, side)
DECLARE (conv_weight, CONV_WEIGHT) {
  long k = i % 9, f = i / 9 % p->from, c = i / 9 / p->from;
  float sum = 0;
  for (long image = 0; image < p->images; image++)
    for (long at = 0; at < p->side * p->side; at++) {
      long u = at % p->side + k % 3 - 1, v = at / p->side + k / 3 - 1;
      u = u < 0 ? 0 : u >= p->side ? p->side - 1 : u;
      v = v < 0 ? 0 : v >= p->side ? p->side - 1 : v;
      sum += p->in[((image * p->from + f) * p->side + v) * p->side + u] *
             p->gradient[(image * p->to + c) * p->side * p->side + at];
    }
  p->out[i] = sum;
}

/* Remembers an address in memory of its own and uses it later: nothing in the second launch names
   the tensor. */
#define REMEMBER(P) P (float **, where) P (float *, what)
DECLARE (remember, REMEMBER) {
  if (i == 0)
    p->where[0] = p->what;
}
#define USE_REMEMBERED(P) P (float *, out) P (float *const *, where)
DECLARE (use_remembered, USE_REMEMBERED) {
  p->out[i] = p->where[0][i];
}

/* Adds what it reads, and halves that too where it is told to write. */
#define TURN(P) P (float *, sum) P (float *, in) P (long, writes)
DECLARE (turn, TURN) {
  p->sum[i] += p->in[i];
  if (p->writes)
    p->in[i] *= 0.5f;
}

#define KERNELS(K)             \
  K (fill, FILL)               \
  K (matmul, MATMUL)           \
  K (relu, RELU)               \
  K (relu_back, RELU_BACK)     \
  K (distance, DISTANCE)       \
  K (sum_squares, SUM_SQUARES) \
  K (update, UPDATE)           \
  K (add, ADD)                 \
  K (add_all, ADD_ALL)         \
  K (cell, CELL)               \
  K (cell_back, CELL_BACK)     \
  K (conv, CONV)               \
  K (conv_back, CONV_BACK)     \
  K (conv_weight, CONV_WEIGHT) \
  K (remember, REMEMBER)       \
  K (use_remembered, USE_REMEMBERED) \
  K (turn, TURN)
