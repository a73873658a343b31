/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pooling and cropping, channel by channel; averages and maxima go through a window in the order of
   memory. */
#include <string.h>

#include "executor/ops/inner.h"

/* The inputs that one output looks at; `whole` is what an average divides by. */
typedef struct window {
  int64_t d, d_end, h, h_end, w, w_end;
  float whole;
} window;

typedef window window_of (const compute_pool *s, int64_t d, int64_t h, int64_t w);

static void cut (int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t in,
                 int64_t *first, int64_t *end) {
  *first = out * stride - pad;
  *end = *first + kernel < in ? *first + kernel : in;
  *first = *first > 0 ? *first : 0;
}

static window pool_window (const compute_pool *s, int64_t d, int64_t h, int64_t w) {
  window r;
  cut (d, s->kernel_d, s->stride_d, s->pad_d, s->in_d, &r.d, &r.d_end);
  cut (h, s->kernel_h, s->stride_h, s->pad_h, s->in_h, &r.h, &r.h_end);
  cut (w, s->kernel_w, s->stride_w, s->pad_w, s->in_w, &r.w, &r.w_end);
  r.whole = (float)(s->kernel_d * s->kernel_h * s->kernel_w);
  return r;
}

static void share (int64_t i, int64_t in, int64_t out, int64_t *first, int64_t *end) {
  *first = i * in / out;
  *end = ((i + 1) * in + out - 1) / out;
}

static window adaptive_window (const compute_pool *s, int64_t d, int64_t h, int64_t w) {
  window r;
  share (d, s->in_d, s->out_d, &r.d, &r.d_end);
  share (h, s->in_h, s->out_h, &r.h, &r.h_end);
  share (w, s->in_w, s->out_w, &r.w, &r.w_end);
  r.whole = (float)((r.d_end - r.d) * (r.h_end - r.h) * (r.w_end - r.w));
  return r;
}

static window crop_window (const compute_pool *s, int64_t d, int64_t h, int64_t w) {
  d += (s->in_d - s->out_d) / 2;
  h += (s->in_h - s->out_h) / 2;
  w += (s->in_w - s->out_w) / 2;
  return (window){ d, d + 1, h, h + 1, w, w + 1, 1 };
}

/* ---- a window of one channel ---- */

typedef struct channel {
  const compute_pool *s;
  const float *x, *y, *dy;
  float *out, *dx;
} channel;

typedef void on_window (const channel *c, int64_t at, const window *w);

/* The place of row (d, h) of the input. */
static int64_t line (const compute_pool *s, int64_t d, int64_t h) {
  return (d * s->in_h + h) * s->in_w;
}

static void highest (const channel *c, int64_t at, const window *w) {
  bool any = false;
  float most = 0;
  for (int64_t d = w->d; d < w->d_end; d++)
    for (int64_t h = w->h; h < w->h_end; h++)
      for (int64_t i = w->w; i < w->w_end; i++) {
        float x = c->x[line (c->s, d, h) + i];
        most = !any || x > most ? x : most;
        any = true;
      }
  c->out[at] = most;
}

static void highest_back (const channel *c, int64_t at, const window *w) {
  for (int64_t d = w->d; d < w->d_end; d++)
    for (int64_t h = w->h; h < w->h_end; h++)
      for (int64_t i = w->w; i < w->w_end; i++)
        if (c->x[line (c->s, d, h) + i] == c->y[at]) {
          c->dx[line (c->s, d, h) + i] += c->dy[at];
          return;
        }
}

static void mean (const channel *c, int64_t at, const window *w) {
  double sum = 0;
  for (int64_t d = w->d; d < w->d_end; d++)
    for (int64_t h = w->h; h < w->h_end; h++)
      for (int64_t i = w->w; i < w->w_end; i++)
        sum += c->x[line (c->s, d, h) + i];
  c->out[at] = (float)(sum / w->whole);
}

static void mean_back (const channel *c, int64_t at, const window *w) {
  float each = c->dy[at] / w->whole;
  for (int64_t d = w->d; d < w->d_end; d++)
    for (int64_t h = w->h; h < w->h_end; h++)
      for (int64_t i = w->w; i < w->w_end; i++)
        c->dx[line (c->s, d, h) + i] += each;
}

/* ---- all windows ---- */

static void each_window (const work *k, channel c, window_of *place, on_window *act) {
  const compute_pool *s = c.s = &k->c->pool;
  int64_t in = s->in_d * s->in_h * s->in_w, out = s->out_d * s->out_h * s->out_w;
  int64_t channels = k->items * s->channels;
  if (c.dx != NULL)
    memset (c.dx, 0, (size_t)(channels * in) * sizeof *c.dx);
  for (int64_t i = 0; i < channels; i++) {
    channel one = c;
    one.x = c.x == NULL ? NULL : c.x + i * in;
    one.dx = c.dx == NULL ? NULL : c.dx + i * in;
    one.y = c.y == NULL ? NULL : c.y + i * out;
    one.dy = c.dy == NULL ? NULL : c.dy + i * out;
    one.out = c.out == NULL ? NULL : c.out + i * out;
    for (int64_t at = 0; at < out; at++) {
      int64_t h = at / s->out_w;
      window w = place (s, h / s->out_h, h % s->out_h, at % s->out_w);
      act (&one, at, &w);
    }
  }
}

static void forward (const work *k, window_of *place, on_window *act) {
  each_window (k, (channel){ .x = ops_float (k, 0), .out = ops_float (k, 1) }, place, act);
}

static void backward (const work *k, window_of *place) {
  each_window (k, (channel){ .dy = ops_float (k, 0), .dx = ops_float (k, 1) }, place, mean_back);
}

void op_maxpool_fwd (const work *k) {
  forward (k, pool_window, highest);
}

void op_maxpool_bwd (const work *k) {
  channel c = {
    .x = ops_float (k, 0), .y = ops_float (k, 1), .dy = ops_float (k, 2), .dx = ops_float (k, 3)
  };
  each_window (k, c, pool_window, highest_back);
}

void op_avgpool_fwd (const work *k) {
  forward (k, pool_window, mean);
}

void op_avgpool_bwd (const work *k) {
  backward (k, pool_window);
}

void op_adaptive_fwd (const work *k) {
  forward (k, adaptive_window, mean);
}

void op_adaptive_bwd (const work *k) {
  backward (k, adaptive_window);
}

/* A window of one element: its mean is itself. */
void op_crop_fwd (const work *k) {
  forward (k, crop_window, mean);
}

void op_crop_bwd (const work *k) {
  backward (k, crop_window);
}
