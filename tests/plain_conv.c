/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/plain_conv.h"

#include <stdlib.h>

typedef struct place {
  int64_t x, w, y; /* where the three factors of one product lie */
} place;

typedef void on_product (void *context, place p);

/* Every product of a convolution once; of a transposed one if so, where x is the small side. */
static void each_product (const compute_conv *s, bool transposed, on_product *act, void *context) {
  int64_t small_d = transposed ? s->in_d : s->out_d, small_h = transposed ? s->in_h : s->out_h;
  int64_t small_w = transposed ? s->in_w : s->out_w, large_d = transposed ? s->out_d : s->in_d;
  int64_t large_h = transposed ? s->out_h : s->in_h, large_w = transposed ? s->out_w : s->in_w;
  int64_t outs = s->out_channels / s->groups, ins = s->in_channels / s->groups;
  for (int64_t n = 0; n < s->batch; n++)
    for (int64_t o = 0; o < s->out_channels; o++)
      for (int64_t j = 0; j < ins; j++)
        for (int64_t at = 0; at < small_d * small_h * small_w; at++)
          for (int64_t kernel = 0; kernel < s->kernel_d * s->kernel_h * s->kernel_w; kernel++) {
            int64_t kw = kernel % s->kernel_w, kh = kernel / s->kernel_w % s->kernel_h;
            int64_t kd = kernel / s->kernel_w / s->kernel_h, i = o / outs * ins + j;
            int64_t d = at / small_w / small_h * s->stride_d + kd - s->pad_d;
            int64_t h = at / small_w % small_h * s->stride_h + kh - s->pad_h;
            int64_t w = at % small_w * s->stride_w + kw - s->pad_w;
            if (d < 0 || d >= large_d || h < 0 || h >= large_h || w < 0 || w >= large_w)
              continue;
            int64_t far = (d * large_h + h) * large_w + w, volume = large_d * large_h * large_w;
            int64_t smalls = small_d * small_h * small_w;
            int64_t kernels = s->kernel_d * s->kernel_h * s->kernel_w;
            int64_t in_item = (n * s->in_channels + i), out_item = n * s->out_channels + o;
            place p = { transposed ? in_item * smalls + at : in_item * volume + far,
                        transposed ? (i * outs + o % outs) * kernels + kernel
                                   : (o * ins + j) * kernels + kernel,
                        transposed ? out_item * volume + far : out_item * smalls + at };
            act (context, p);
          }
}

typedef struct sums {
  const float *a, *b;
  double *out;
  int which; /* of x, w, y is summed */
} sums;

static void add_product (void *context, place p) {
  sums *s = context;
  int64_t at[] = { p.x, p.w, p.y };
  int first = s->which == 0 ? 1 : 0, second = s->which == 2 ? 1 : 2;
  s->out[at[s->which]] += (double)s->a[at[first]] * s->b[at[second]];
}

static void sum_up (const compute_conv *s, bool transposed, int which, const float *a,
                    const float *b, const float *start, int64_t channels, int64_t count,
                    float *out) {
  sums all = { a, b, calloc ((size_t)count, sizeof (double)), which };
  int64_t inner = count / s->batch / channels;
  for (int64_t i = 0; start != NULL && i < count; i++)
    all.out[i] = start[i / inner % channels];
  each_product (s, transposed, add_product, &all);
  for (int64_t i = 0; i < count; i++)
    out[i] = (float)all.out[i];
  free (all.out);
}

static int64_t in_count (const compute_conv *s) {
  return s->batch * s->in_channels * s->in_d * s->in_h * s->in_w;
}

static int64_t out_count (const compute_conv *s) {
  return s->batch * s->out_channels * s->out_d * s->out_h * s->out_w;
}

void plain_conv (const compute_conv *s, const float *x, const float *w, const float *b, float *y) {
  sum_up (s, false, 2, x, w, b, s->out_channels, out_count (s), y);
}

void plain_conv_data (const compute_conv *s, const float *dy, const float *w, float *dx) {
  sum_up (s, false, 0, w, dy, NULL, s->in_channels, in_count (s), dx);
}

void plain_conv_weights (const compute_conv *s, const float *x, const float *dy, float *dw) {
  int64_t count = s->in_channels * s->out_channels / s->groups * s->kernel_d * s->kernel_h;
  sum_up (s, false, 1, x, dy, NULL, 1, count * s->kernel_w, dw);
}

void plain_deconv (const compute_conv *s, const float *x, const float *w, const float *b,
                   float *y) {
  sum_up (s, true, 2, x, w, b, s->out_channels, out_count (s), y);
}
