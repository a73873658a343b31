/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pooling and cropping.  Backward asks for each element of the input which windows it lies in, and
   goes through them in their order. */
#include "executor/gpu/device.h"

typedef struct window {
  int64_t from[3], to[3];
  float whole; /* the divisor of an average */
} window;

typedef enum window_kind { WINDOW_POOL, WINDOW_ADAPTIVE, WINDOW_CROP } window_kind;

typedef struct pooling {
  const compute_pool *s;
  window_kind kind;
  int64_t in, out; /* elements of a channel */
} pooling;

FN pooling pooling_of (const compute_pool *s, window_kind kind) {
  pooling p = { s, kind, s->in_d * s->in_h * s->in_w, s->out_d * s->out_h * s->out_w };
  return p;
}

FN window window_of (const pooling *p, int64_t at) {
  const compute_pool *s = p->s;
  const int64_t in[3] = { s->in_d, s->in_h, s->in_w }, out[3] = { s->out_d, s->out_h, s->out_w };
  const int64_t kernel[3] = { s->kernel_d, s->kernel_h, s->kernel_w };
  const int64_t stride[3] = { s->stride_d, s->stride_h, s->stride_w };
  const int64_t pad[3] = { s->pad_d, s->pad_h, s->pad_w };
  const int64_t o[3] = { at / (out[1] * out[2]), at / out[2] % out[1], at % out[2] };
  window w;
  w.whole = 1;
  for (int i = 0; i < 3; i++) {
    if (p->kind == WINDOW_ADAPTIVE) {
      w.from[i] = o[i] * in[i] / out[i];
      w.to[i] = ((o[i] + 1) * in[i] + out[i] - 1) / out[i];
      w.whole *= (float)(w.to[i] - w.from[i]);
    } else if (p->kind == WINDOW_CROP) {
      w.from[i] = o[i] + (in[i] - out[i]) / 2;
      w.to[i] = w.from[i] + 1;
    } else {
      w.from[i] = o[i] * stride[i] - pad[i];
      w.to[i] = w.from[i] + kernel[i] < in[i] ? w.from[i] + kernel[i] : in[i];
      w.from[i] = w.from[i] > 0 ? w.from[i] : 0;
      w.whole *= (float)kernel[i];
    }
  }
  return w;
}

/* The places of the output whose windows hold this place of the input; to = from: none. */
FN window windows_over (const pooling *p, int64_t at) {
  const compute_pool *s = p->s;
  const int64_t in[3] = { s->in_d, s->in_h, s->in_w }, out[3] = { s->out_d, s->out_h, s->out_w };
  const int64_t kernel[3] = { s->kernel_d, s->kernel_h, s->kernel_w };
  const int64_t stride[3] = { s->stride_d, s->stride_h, s->stride_w };
  const int64_t pad[3] = { s->pad_d, s->pad_h, s->pad_w };
  const int64_t x[3] = { at / (in[1] * in[2]), at / in[2] % in[1], at % in[2] };
  window w;
  w.whole = 1;
  for (int i = 0; i < 3; i++) {
    if (p->kind == WINDOW_ADAPTIVE) { /* floor (o in / out) <= x < ceil ((o + 1) in / out) */
      w.from[i] = x[i] * out[i] / in[i];
      w.to[i] = ((x[i] + 1) * out[i] + in[i] - 1) / in[i];
    } else if (p->kind == WINDOW_CROP) {
      w.from[i] = x[i] - (in[i] - out[i]) / 2;
      w.to[i] = w.from[i] + 1;
    } else { /* o stride - pad <= x < o stride - pad + kernel */
      int64_t low = x[i] + pad[i] - kernel[i] + 1;
      w.from[i] = low > 0 ? (low + stride[i] - 1) / stride[i] : 0;
      w.to[i] = (x[i] + pad[i]) / stride[i] + 1;
    }
    w.from[i] = w.from[i] > 0 ? w.from[i] : 0;
    w.to[i] = w.to[i] < out[i] ? w.to[i] : out[i];
  }
  return w;
}

/* The places within a window over something of this height and width. */
#define IN_WINDOW(w, height, width, at)                                                      \
  for (int64_t at##_d = (w).from[0]; at##_d < (w).to[0]; at##_d++) \
    for (int64_t at##_h = (w).from[1]; at##_h < (w).to[1]; at##_h++) \
      for (int64_t at = (at##_d * (height) + at##_h) * (width) + (w).from[2],                          \
                   at##_end = at + (w).to[2] - (w).from[2];                                  \
           at < at##_end; at++)

FN void mean_of_windows (const kernel_work *k, window_kind kind) {
  pooling p = pooling_of (&k->c.pool, kind);
  const element *x = (const element *)k->at[0];
  EACH (i, k->items * p.s->channels * p.out) {
    window w = window_of (&p, i % p.out);
    double sum = 0;
    IN_WINDOW (w, p.s->in_h, p.s->in_w, at) sum += get (x, i / p.out * p.in + at);
    put ((element *)k->at[1], i, (float)(sum / w.whole));
  }
}

FN void mean_back (const kernel_work *k, window_kind kind) {
  pooling p = pooling_of (&k->c.pool, kind);
  EACH (i, k->items * p.s->channels * p.in) {
    const element *dy = (const element *)k->at[0] + i / p.in * p.out;
    window over = windows_over (&p, i % p.in);
    float sum = 0;
    IN_WINDOW (over, p.s->out_h, p.s->out_w, o) {
      window w = window_of (&p, o);
      sum += get (dy, o) / w.whole;
    }
    put ((element *)k->at[1], i, sum);
  }
}

KERNEL (maxpool_fwd) {
  pooling p = pooling_of (&k.c.pool, WINDOW_POOL);
  EACH (i, k.items * p.s->channels * p.out) {
    window w = window_of (&p, i % p.out);
    const element *x = E (0) + i / p.out * p.in;
    float most = -INFINITY;
    bool any = false;
    IN_WINDOW (w, p.s->in_h, p.s->in_w, at) {
      most = !any || get (x, at) > most ? get (x, at) : most;
      any = true;
    }
    put (E (1), i, any ? most : 0);
  }
}

/* The gradient of a window goes to the first element that is its largest. */
KERNEL (maxpool_bwd) {
  pooling p = pooling_of (&k.c.pool, WINDOW_POOL);
  EACH (i, k.items * p.s->channels * p.in) {
    int64_t place = i % p.in, channel = i / p.in;
    const element *x = E (0) + channel * p.in, *y = E (1) + channel * p.out;
    window over = windows_over (&p, place);
    float sum = 0, mine = get (x, place);
    IN_WINDOW (over, p.s->out_h, p.s->out_w, o) {
      float most = get (y, o);
      if (mine != most)
        continue;
      window w = window_of (&p, o);
      int64_t first = -1;
      IN_WINDOW (w, p.s->in_h, p.s->in_w, at) if (first < 0 && get (x, at) == most) first = at;
      if (first == place)
        sum += get (E (2), channel * p.out + o);
    }
    put (E (3), i, sum);
  }
}

KERNEL (avgpool_fwd) {
  mean_of_windows (&k, WINDOW_POOL);
}

KERNEL (avgpool_bwd) {
  mean_back (&k, WINDOW_POOL);
}

KERNEL (adaptive_fwd) {
  mean_of_windows (&k, WINDOW_ADAPTIVE);
}

KERNEL (adaptive_bwd) {
  mean_back (&k, WINDOW_ADAPTIVE);
}

KERNEL (crop_fwd) {
  mean_of_windows (&k, WINDOW_CROP);
}

KERNEL (crop_bwd) {
  mean_back (&k, WINDOW_CROP);
}
