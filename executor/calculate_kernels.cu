/* A kernel for every kind of op.  This is CUDA, and it is C as well: compiled for the host, a kernel
   is a function that does alone what all threads do, and so the emulated device can run it.  Every
   sum has a fixed order: that of its loop, or the tree of a block's 256 threads. */
#include "executor/kernel_work.h"

#ifdef __CUDACC__

enum { TEAM = 256 };
#define FN static __device__ __forceinline__
#define KERNEL(name) extern "C" __global__ void ferry_op_##name (const __grid_constant__ kernel_work k)
#define SHARED __shared__
/* The threads of all blocks share n pieces of work. */
#define EACH(i, n)                                                               \
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (int64_t)(n); \
       i += (int64_t)gridDim.x * blockDim.x)
/* The blocks share n, and the threads of a block what belongs to one. */
#define TEAMS(t, n) for (int64_t t = blockIdx.x; t < (int64_t)(n); t += gridDim.x)
#define LANES(i, n) for (int64_t i = threadIdx.x; i < (int64_t)(n); i += blockDim.x)
#define TEAM_SYNC __syncthreads ()

FN double team_sum (double x) {
  __shared__ double all[TEAM];
  __syncthreads ();
  all[threadIdx.x] = x;
  for (int half = TEAM / 2; half > 0; half /= 2) {
    __syncthreads ();
    if (threadIdx.x < half)
      all[threadIdx.x] += all[threadIdx.x + half];
  }
  __syncthreads ();
  return all[0];
}

FN float team_most (float x) {
  __shared__ float all[TEAM];
  __syncthreads ();
  all[threadIdx.x] = x;
  for (int half = TEAM / 2; half > 0; half /= 2) {
    __syncthreads ();
    if (threadIdx.x < half && all[threadIdx.x + half] > all[threadIdx.x])
      all[threadIdx.x] = all[threadIdx.x + half];
  }
  __syncthreads ();
  return all[0];
}

#else

#include <math.h>
#include <stdbool.h>

#define FN static inline
#define KERNEL(name)                      \
  void ferry_op_##name (const kernel_work k); \
  void ferry_op_##name (const kernel_work k)
#define SHARED
#define EACH(i, n) for (int64_t i = 0; i < (int64_t)(n); i++)
#define TEAMS(t, n) for (int64_t t = 0; t < (int64_t)(n); t++)
#define LANES(i, n) for (int64_t i = 0; i < (int64_t)(n); i++)
#define TEAM_SYNC (void)0

FN double team_sum (double x) {
  return x;
}

FN float team_most (float x) {
  return x;
}

#endif

#define F(operand) ((float *)k.at[operand])
/* The last operand of an op in place is absent: the result stands where `other` was. */
#define OUT(operand, other) ((float *)(k.at[operand] != 0 ? k.at[operand] : k.at[other]))
/* Of kinds that need the whole batch. */
#define ITEM_OF(operand, item) (((float *const *)k.at[operand])[item])

FN float sigmoid_of (float x) {
  return 1 / (1 + expf (-x));
}

FN uint64_t mixed (uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* As ops_random and ops_keeps. */
FN bool keeps (int64_t seed, int64_t step, int64_t n, int64_t rate_ppm) {
  const uint64_t golden = 0x9e3779b97f4a7c15u;
  uint64_t state = mixed ((uint64_t)seed + golden) ^ (uint64_t)step;
  uint64_t stream = mixed (state + golden) + (uint64_t)n * golden;
  uint64_t random = mixed (stream + golden);
  return (int64_t)((random >> 32) * 1000000 >> 32) >= rate_ppm;
}

/* False, and told, where it is not in [0, limit). */
FN bool in_range (int32_t index, int64_t limit, int32_t *failed) {
  if (index >= 0 && index < limit)
    return true;
  *failed = 1;
  return false;
}

/* ---- convolution: a is the side of its data, b that of its results ---- */

typedef struct geometry {
  int64_t a_channels, b_channels, groups;
  int64_t a[3], b[3], kernel[3], stride[3], pad[3];
} geometry;

FN geometry geometry_of (const compute_conv *s, bool transposed) {
  geometry g = { transposed ? s->out_channels : s->in_channels,
                 transposed ? s->in_channels : s->out_channels,
                 s->groups > 0 ? s->groups : 1,
                 { s->in_d, s->in_h, s->in_w },
                 { s->out_d, s->out_h, s->out_w },
                 { s->kernel_d, s->kernel_h, s->kernel_w },
                 { s->stride_d, s->stride_h, s->stride_w },
                 { s->pad_d, s->pad_h, s->pad_w } };
  for (int i = 0; i < 3; i++) {
    g.a[i] = g.a[i] > 0 ? g.a[i] : 1;
    g.b[i] = g.b[i] > 0 ? g.b[i] : 1;
    g.kernel[i] = g.kernel[i] > 0 ? g.kernel[i] : 1;
    g.stride[i] = g.stride[i] > 0 ? g.stride[i] : 1;
    if (transposed) {
      int64_t kept = g.a[i];
      g.a[i] = g.b[i];
      g.b[i] = kept;
    }
  }
  return g;
}

FN int64_t volume (const int64_t n[3]) {
  return n[0] * n[1] * n[2];
}

/* The place in a that (b's place, the kernel's place) meets; -1: outside. */
FN int64_t meets (const geometry *g, int64_t place, int64_t tap) {
  int64_t at = 0;
  int64_t b[3] = { place / (g->b[1] * g->b[2]), place / g->b[2] % g->b[1], place % g->b[2] };
  int64_t t[3] = { tap / (g->kernel[1] * g->kernel[2]), tap / g->kernel[2] % g->kernel[1],
                   tap % g->kernel[2] };
  for (int i = 0; i < 3; i++) {
    int64_t x = b[i] * g->stride[i] - g->pad[i] + t[i];
    if (x < 0 || x >= g->a[i])
      return -1;
    at = at * g->a[i] + x;
  }
  return at;
}

/* The place in b whose tap `tap` meets a's place; -1: there is none. */
FN int64_t met_by (const geometry *g, int64_t place, int64_t tap) {
  int64_t at = 0;
  int64_t a[3] = { place / (g->a[1] * g->a[2]), place / g->a[2] % g->a[1], place % g->a[2] };
  int64_t t[3] = { tap / (g->kernel[1] * g->kernel[2]), tap / g->kernel[2] % g->kernel[1],
                   tap % g->kernel[2] };
  for (int i = 0; i < 3; i++) {
    int64_t x = a[i] + g->pad[i] - t[i];
    if (x < 0 || x % g->stride[i] != 0 || x / g->stride[i] >= g->b[i])
      return -1;
    at = at * g->b[i] + x / g->stride[i];
  }
  return at;
}

/* w: b channels, a channels of the group, kernel */
FN void conv_to_b (const geometry *g, int64_t items, const float *a, const float *w,
                   const float *bias, float *b) {
  int64_t places = volume (g->b), a_places = volume (g->a), taps = volume (g->kernel);
  int64_t a_group = g->a_channels / g->groups, b_group = g->b_channels / g->groups;
  EACH (i, items * g->b_channels * places) {
    int64_t place = i % places, channel = i / places % g->b_channels;
    int64_t item = i / places / g->b_channels;
    const float *from =
        a + (item * g->a_channels + channel / b_group * a_group) * a_places;
    const float *weights = w + channel * a_group * taps;
    float sum = bias != 0 ? bias[channel] : 0;
    for (int64_t c = 0; c < a_group; c++)
      for (int64_t t = 0; t < taps; t++) {
        int64_t at = meets (g, place, t);
        if (at >= 0)
          sum += from[c * a_places + at] * weights[c * taps + t];
      }
    b[i] = sum;
  }
}

FN void conv_to_a (const geometry *g, int64_t items, const float *b, const float *w,
                   const float *bias, float *a) {
  int64_t places = volume (g->a), b_places = volume (g->b), taps = volume (g->kernel);
  int64_t a_group = g->a_channels / g->groups, b_group = g->b_channels / g->groups;
  EACH (i, items * g->a_channels * places) {
    int64_t place = i % places, channel = i / places % g->a_channels;
    int64_t item = i / places / g->a_channels, first = channel / a_group * b_group;
    const float *from = b + (item * g->b_channels + first) * b_places;
    const float *weights = w + (first * a_group + channel % a_group) * taps;
    float sum = bias != 0 ? bias[channel] : 0;
    for (int64_t t = 0; t < taps; t++) {
      int64_t at = met_by (g, place, t);
      for (int64_t c = 0; at >= 0 && c < b_group; c++)
        sum += from[c * b_places + at] * weights[c * a_group * taps + t];
    }
    a[i] = sum;
  }
}

FN void conv_weights_of (const geometry *g, int64_t items, const float *a, const float *b,
                         float *dw) {
  int64_t b_places = volume (g->b), a_places = volume (g->a), taps = volume (g->kernel);
  int64_t a_group = g->a_channels / g->groups, b_group = g->b_channels / g->groups;
  TEAMS (i, g->b_channels * a_group * taps) {
    int64_t tap = i % taps, channel = i / taps / a_group;
    int64_t a_channel = channel / b_group * a_group + i / taps % a_group;
    double sum = 0;
    LANES (e, items * b_places) {
      int64_t item = e / b_places, at = meets (g, e % b_places, tap);
      if (at >= 0)
        sum += a[(item * g->a_channels + a_channel) * a_places + at] *
               b[(item * g->b_channels + channel) * b_places + e % b_places];
    }
    sum = team_sum (sum);
    LANES (one, 1) dw[i] += (float)sum;
  }
}

KERNEL (conv_fwd) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_to_b (&g, k.items, F (0), F (1), F (2), F (3));
}

KERNEL (conv_bwd_data) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_to_a (&g, k.items, F (0), F (1), 0, F (2));
}

KERNEL (conv_bwd_weights) {
  geometry g = geometry_of (&k.c.conv, false);
  conv_weights_of (&g, k.items, F (0), F (1), F (2));
}

KERNEL (deconv_fwd) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_to_a (&g, k.items, F (0), F (1), F (2), F (3));
}

KERNEL (deconv_bwd_data) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_to_b (&g, k.items, F (0), F (1), 0, F (2));
}

KERNEL (deconv_bwd_weights) {
  geometry g = geometry_of (&k.c.conv, true);
  conv_weights_of (&g, k.items, F (1), F (0), F (2));
}

/* ---- products ---- */

KERNEL (linear_fwd) {
  const compute_linear *s = &k.c.linear;
  EACH (i, k.items * s->rows * s->out) {
    const float *x = F (0) + i / s->out * s->in, *w = F (1) + i % s->out * s->in;
    float sum = F (2) != 0 ? F (2)[i % s->out] : 0;
    for (int64_t j = 0; j < s->in; j++)
      sum += x[j] * w[j];
    F (3)[i] = sum;
  }
}

KERNEL (linear_bwd_data) {
  const compute_linear *s = &k.c.linear;
  EACH (i, k.items * s->rows * s->in) {
    const float *dy = F (0) + i / s->in * s->out, *w = F (1) + i % s->in;
    float sum = 0;
    for (int64_t j = 0; j < s->out; j++)
      sum += dy[j] * w[j * s->in];
    F (2)[i] = sum;
  }
}

KERNEL (linear_bwd_weights) {
  const compute_linear *s = &k.c.linear;
  EACH (i, s->out * s->in) {
    const float *x = F (0) + i % s->in, *dy = F (1) + i / s->in;
    float sum = 0;
    for (int64_t r = 0; r < k.items * s->rows; r++)
      sum += x[r * s->in] * dy[r * s->out];
    F (2)[i] += sum;
  }
}

KERNEL (bias_bwd) {
  const compute_bias *s = &k.c.bias;
  TEAMS (c, s->channels) {
    double sum = 0;
    LANES (e, k.items * s->outer * s->inner)
      sum += F (0)[(e / s->inner * s->channels + c) * s->inner + e % s->inner];
    sum = team_sum (sum);
    LANES (one, 1) F (1)[c] += (float)sum;
  }
}

KERNEL (matmul) {
  const compute_matmul *s = &k.c.matmul;
  const float *all_a = F (0), *all_b = s->b_in_a ? F (0) : F (1);
  float alpha = s->root > 0 ? 1 / sqrtf ((float)s->root) : 1;
  EACH (i, k.items * s->heads * s->m * s->n) {
    int64_t column = i % s->n, row = i / s->n % s->m, h = i / s->n / s->m % s->heads;
    int64_t item = i / s->n / s->m / s->heads;
    const float *a = all_a + item * s->a_item + s->a_offset + h * s->a_head;
    const float *b = all_b + item * s->b_item + s->b_offset + h * s->b_head;
    float sum = 0;
    for (int64_t j = 0; j < s->k; j++)
      sum += (s->transpose_a ? a[j * s->a_row + row] : a[row * s->a_row + j]) *
             (s->transpose_b ? b[column * s->b_row + j] : b[j * s->b_row + column]);
    F (2)[item * s->c_item + s->c_offset + h * s->c_head + row * s->c_row + column] = alpha * sum;
  }
}

/* ---- attention: some keys, or queries, at a time ---- */

enum { TILE = 64 };

typedef struct heads {
  const compute_attention *s;
  int64_t q_row, k_row, y_row; /* from a row to the next */
  int64_t step, first_item;
} heads;

FN heads heads_of (const compute_attention *s, int64_t step, int64_t first_item) {
  int64_t q_heads = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
  heads h = { s, q_heads * s->width, 0, s->heads * s->width, step, first_item };
  h.k_row = s->packed ? h.q_row : s->kv_heads * s->width;
  return h;
}

FN int64_t q_at (const heads *h, int64_t item, int64_t head) {
  return item * h->s->queries * h->q_row + head * h->s->width;
}

FN int64_t k_at (const heads *h, int64_t item, int64_t kv, bool value) {
  const compute_attention *s = h->s;
  return s->packed ? item * s->queries * h->q_row +
                         (s->heads + kv + (value ? s->kv_heads : 0)) * s->width
                   : item * s->keys * h->k_row + kv * s->width;
}

FN int64_t seen_by (const compute_attention *s, int64_t query) {
  int64_t n = s->causal ? query + s->keys - s->queries + 1 : s->keys;
  return n < 0 ? 0 : n > s->keys ? s->keys : n;
}

FN float dot_of (const float *x, const float *y, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

/* What dropout multiplies a probability by. */
FN float kept_by (const heads *h, int64_t item, int64_t head, int64_t query, int64_t key) {
  const compute_attention *s = h->s;
  int64_t row = ((h->first_item + item) * s->heads + head) * s->queries + query;
  if (s->rate_ppm == 0)
    return 1;
  return keeps (s->seed, h->step, s->offset + row * s->keys + key, s->rate_ppm)
             ? 1 / (1 - (float)s->rate_ppm / 1e6f)
             : 0;
}

KERNEL (attention_fwd) {
  const compute_attention *s = &k.c.attention;
  heads h = heads_of (s, k.step, k.first_item);
  const float *keys = s->packed ? F (0) : F (1), *values = s->packed ? F (0) : F (2);
  float scale = 1 / sqrtf ((float)s->width);
  SHARED float p[TILE];
  TEAMS (row, k.items * s->heads * s->queries) {
    int64_t i = row % s->queries, head = row / s->queries % s->heads;
    int64_t item = row / s->queries / s->heads, n = seen_by (s, i);
    int64_t kv = head / (s->heads / s->kv_heads);
    const float *q = F (0) + q_at (&h, item, head) + i * h.q_row;
    const float *ks = keys + k_at (&h, item, kv, false), *vs = values + k_at (&h, item, kv, true);
    float *y = F (3) + item * s->queries * h.y_row + head * s->width + i * h.y_row;
    float most = -INFINITY;
    double sum = 0;
    LANES (j, n) most = fmaxf (most, scale * dot_of (q, ks + j * h.k_row, s->width));
    most = team_most (most);
    LANES (j, n) sum += expf (scale * dot_of (q, ks + j * h.k_row, s->width) - most);
    float lse = most + logf ((float)team_sum (sum));
    LANES (w, s->width) y[w] = 0;
    for (int64_t from = 0; from < n; from += TILE) {
      int64_t count = n - from < TILE ? n - from : TILE;
      TEAM_SYNC;
      LANES (j, count)
        p[j] = expf (scale * dot_of (q, ks + (from + j) * h.k_row, s->width) - lse) *
               kept_by (&h, item, head, i, from + j);
      TEAM_SYNC;
      LANES (w, s->width)
        for (int64_t j = 0; j < count; j++)
          y[w] += p[j] * vs[(from + j) * h.k_row + w];
    }
    LANES (one, 1) F (4)[row] = lse;
  }
}

/* Of query i and key j: what dropout left of the probability, and the gradient of the score. */
typedef struct pair {
  float left, slope;
} pair;

FN pair pair_of (const heads *h, int64_t item, int64_t head, int64_t i, int64_t j, const float *q,
                 const float *key, const float *value, const float *y, const float *dy, float lse) {
  int64_t width = h->s->width;
  float kept = kept_by (h, item, head, i, j);
  float p = expf (dot_of (q, key, width) / sqrtf ((float)width) - lse);
  pair r = { p * kept, p * (kept * dot_of (dy, value, width) - dot_of (y, dy, width)) };
  return r;
}

KERNEL (attention_bwd) {
  const compute_attention *s = &k.c.attention;
  heads h = heads_of (s, k.step, k.first_item);
  const float *keys = s->packed ? F (1) : F (2), *values = s->packed ? F (1) : F (3);
  float *dkeys = s->packed ? F (6) : F (7), *dvalues = s->packed ? F (6) : F (8);
  float scale = 1 / sqrtf ((float)s->width);
  SHARED pair p[TILE];
  TEAMS (row, k.items * s->heads * s->queries) {
    int64_t i = row % s->queries, head = row / s->queries % s->heads;
    int64_t item = row / s->queries / s->heads, n = seen_by (s, i);
    int64_t kv = head / (s->heads / s->kv_heads);
    int64_t at = q_at (&h, item, head) + i * h.q_row;
    int64_t y_at = item * s->queries * h.y_row + head * s->width + i * h.y_row;
    const float *ks = keys + k_at (&h, item, kv, false), *vs = values + k_at (&h, item, kv, true);
    LANES (w, s->width) F (6)[at + w] = 0;
    for (int64_t from = 0; from < n; from += TILE) {
      int64_t count = n - from < TILE ? n - from : TILE;
      TEAM_SYNC;
      LANES (j, count)
        p[j] = pair_of (&h, item, head, i, from + j, F (1) + at, ks + (from + j) * h.k_row,
                        vs + (from + j) * h.k_row, F (4) + y_at, F (0) + y_at, F (5)[row]);
      TEAM_SYNC;
      LANES (w, s->width)
        for (int64_t j = 0; j < count; j++)
          F (6)[at + w] += scale * p[j].slope * ks[(from + j) * h.k_row + w];
    }
  }
  int64_t sharing = s->heads / s->kv_heads;
  TEAMS (row, k.items * s->kv_heads * s->keys) {
    int64_t j = row % s->keys, kv = row / s->keys % s->kv_heads, item = row / s->keys / s->kv_heads;
    int64_t key_at = k_at (&h, item, kv, false) + j * h.k_row;
    int64_t value_at = k_at (&h, item, kv, true) + j * h.k_row;
    LANES (w, s->width) dkeys[key_at + w] = dvalues[value_at + w] = 0;
    for (int64_t head = kv * sharing; head < (kv + 1) * sharing; head++)
      for (int64_t from = 0; from < s->queries; from += TILE) {
        int64_t count = s->queries - from < TILE ? s->queries - from : TILE;
        int64_t at = q_at (&h, item, head), lse_at = (item * s->heads + head) * s->queries;
        int64_t y_at = item * s->queries * h.y_row + head * s->width;
        pair none = { 0, 0 };
        TEAM_SYNC;
        LANES (i, count)
          p[i] = j >= seen_by (s, from + i)
                     ? none
                     : pair_of (&h, item, head, from + i, j, F (1) + at + (from + i) * h.q_row,
                                keys + key_at, values + value_at,
                                F (4) + y_at + (from + i) * h.y_row,
                                F (0) + y_at + (from + i) * h.y_row, F (5)[lse_at + from + i]);
        TEAM_SYNC;
        LANES (w, s->width)
          for (int64_t i = 0; i < count; i++) {
            dkeys[key_at + w] += scale * p[i].slope * F (1)[at + (from + i) * h.q_row + w];
            dvalues[value_at + w] += p[i].left * F (0)[y_at + (from + i) * h.y_row + w];
          }
      }
  }
}

KERNEL (repeat_fwd) {
  const compute_repeat *s = &k.c.repeat;
  EACH (i, k.items * s->rows * s->kv_heads * s->copies * s->width)
    F (1)[i] = F (0)[i / s->width / s->copies * s->width + i % s->width];
}

KERNEL (repeat_bwd) {
  const compute_repeat *s = &k.c.repeat;
  EACH (i, k.items * s->rows * s->kv_heads * s->width) {
    float sum = 0;
    for (int64_t c = 0; c < s->copies; c++)
      sum += F (0)[(i / s->width * s->copies + c) * s->width + i % s->width];
    F (1)[i] = sum;
  }
}

FN void rotate (const compute_rotary *s, int64_t items, float sign, float *all) {
  int64_t half = s->width / 2;
  EACH (i, items * s->rows * s->heads * half) {
    int64_t at = i % half, row = i / half / s->heads % s->rows;
    float *x = all + i / half * s->width;
    double angle = (double)row * pow ((double)s->theta, -2.0 * (double)at / (double)s->width);
    float cosine = (float)cos (angle), sine = sign * (float)sin (angle), a = x[at], b = x[half + at];
    x[at] = a * cosine - b * sine;
    x[half + at] = b * cosine + a * sine;
  }
}

KERNEL (rotary_fwd) {
  rotate (&k.c.rotary, k.items, 1, F (0));
}

KERNEL (rotary_bwd) {
  rotate (&k.c.rotary, k.items, -1, F (0));
}

/* ---- pooling and cropping: a thread does all windows of a channel, in their order ---- */

typedef struct window {
  int64_t from[3], to[3];
  float whole; /* what an average divides by */
} window;

typedef enum window_kind { WINDOW_POOL, WINDOW_ADAPTIVE, WINDOW_CROP } window_kind;

FN window window_of (const compute_pool *s, window_kind kind, int64_t at) {
  const int64_t in[3] = { s->in_d, s->in_h, s->in_w }, out[3] = { s->out_d, s->out_h, s->out_w };
  const int64_t kernel[3] = { s->kernel_d, s->kernel_h, s->kernel_w };
  const int64_t stride[3] = { s->stride_d, s->stride_h, s->stride_w };
  const int64_t pad[3] = { s->pad_d, s->pad_h, s->pad_w };
  const int64_t o[3] = { at / (out[1] * out[2]), at / out[2] % out[1], at % out[2] };
  window w;
  w.whole = 1;
  for (int i = 0; i < 3; i++) {
    if (kind == WINDOW_ADAPTIVE) {
      w.from[i] = o[i] * in[i] / out[i];
      w.to[i] = ((o[i] + 1) * in[i] + out[i] - 1) / out[i];
      w.whole *= (float)(w.to[i] - w.from[i]);
    } else if (kind == WINDOW_CROP) {
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

#define IN_WINDOW(s, w, at)                           \
  for (int64_t d = (w).from[0]; d < (w).to[0]; d++)   \
    for (int64_t h = (w).from[1]; h < (w).to[1]; h++) \
      for (int64_t at = (d * (s)->in_h + h) * (s)->in_w + (w).from[2], \
                   end = at + (w).to[2] - (w).from[2];                 \
           at < end; at++)

FN void pool_mean (const kernel_work *k, window_kind kind) {
  const compute_pool *s = &k->c.pool;
  const float *x = (const float *)k->at[0];
  float *y = (float *)k->at[1];
  int64_t in = s->in_d * s->in_h * s->in_w, out = s->out_d * s->out_h * s->out_w;
  EACH (i, k->items * s->channels * out) {
    window w = window_of (s, kind, i % out);
    double sum = 0;
    IN_WINDOW (s, w, at) sum += x[i / out * in + at];
    y[i] = (float)(sum / w.whole);
  }
}

FN void pool_mean_back (const kernel_work *k, window_kind kind) {
  const compute_pool *s = &k->c.pool;
  int64_t in = s->in_d * s->in_h * s->in_w, out = s->out_d * s->out_h * s->out_w;
  EACH (c, k->items * s->channels) {
    const float *dy = (const float *)k->at[0] + c * out;
    float *dx = (float *)k->at[1] + c * in;
    for (int64_t i = 0; i < in; i++)
      dx[i] = 0;
    for (int64_t i = 0; i < out; i++) {
      window w = window_of (s, kind, i);
      float each = dy[i] / w.whole;
      IN_WINDOW (s, w, at) dx[at] += each;
    }
  }
}

KERNEL (maxpool_fwd) {
  const compute_pool *s = &k.c.pool;
  int64_t in = s->in_d * s->in_h * s->in_w, out = s->out_d * s->out_h * s->out_w;
  EACH (i, k.items * s->channels * out) {
    window w = window_of (s, WINDOW_POOL, i % out);
    const float *x = F (0) + i / out * in;
    float most = -INFINITY;
    bool any = false;
    IN_WINDOW (s, w, at) {
      most = !any || x[at] > most ? x[at] : most;
      any = true;
    }
    F (1)[i] = any ? most : 0;
  }
}

KERNEL (maxpool_bwd) {
  const compute_pool *s = &k.c.pool;
  int64_t in = s->in_d * s->in_h * s->in_w, out = s->out_d * s->out_h * s->out_w;
  EACH (c, k.items * s->channels) {
    const float *x = F (0) + c * in, *y = F (1) + c * out, *dy = F (2) + c * out;
    float *dx = F (3) + c * in;
    for (int64_t i = 0; i < in; i++)
      dx[i] = 0;
    for (int64_t i = 0; i < out; i++) {
      window w = window_of (s, WINDOW_POOL, i);
      bool found = false;
      IN_WINDOW (s, w, at) {
        if (!found && x[at] == y[i]) {
          dx[at] += dy[i];
          found = true;
        }
      }
    }
  }
}

KERNEL (avgpool_fwd) {
  pool_mean (&k, WINDOW_POOL);
}

KERNEL (avgpool_bwd) {
  pool_mean_back (&k, WINDOW_POOL);
}

KERNEL (adaptive_fwd) {
  pool_mean (&k, WINDOW_ADAPTIVE);
}

KERNEL (adaptive_bwd) {
  pool_mean_back (&k, WINDOW_ADAPTIVE);
}

KERNEL (crop_fwd) {
  pool_mean (&k, WINDOW_CROP);
}

KERNEL (crop_bwd) {
  pool_mean_back (&k, WINDOW_CROP);
}

/* ---- normalization ---- */

FN float eps_of (int64_t ppt) {
  return (float)((double)ppt * 1e-12);
}

KERNEL (batchnorm_fwd) {
  const compute_batchnorm *s = &k.c.batchnorm;
  int64_t count = k.items * s->inner;
  double n = (double)count, momentum = (double)s->momentum_ppm * 1e-6;
  TEAMS (c, s->channels) {
    double sum = 0, squares = 0;
    LANES (e, count) sum += ITEM_OF (0, e / s->inner)[c * s->inner + e % s->inner];
    double mean = team_sum (sum) / n;
    LANES (e, count) {
      double x = ITEM_OF (0, e / s->inner)[c * s->inner + e % s->inner] - mean;
      squares += x * x;
    }
    double variance = team_sum (squares) / n;
    float middle = (float)mean, rstd = (float)(1 / sqrt (variance + eps_of (s->eps_ppt)));
    LANES (one, 1) {
      F (6)[c] = middle;
      F (7)[c] = rstd;
      if (F (3) != 0) { /* absent in a recomputed copy */
        double unbiased = n > 1 ? variance * n / (n - 1) : variance;
        F (3)[c] += (float)(momentum * (mean - F (3)[c]));
        F (4)[c] += (float)(momentum * (unbiased - F (4)[c]));
      }
    }
    float scale = rstd * (F (1) != 0 ? F (1)[c] : 1), shift = F (2) != 0 ? F (2)[c] : 0;
    LANES (e, count) {
      int64_t at = c * s->inner + e % s->inner;
      ITEM_OF (5, e / s->inner)[at] = (ITEM_OF (0, e / s->inner)[at] - middle) * scale + shift;
    }
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db. */
KERNEL (batchnorm_bwd) {
  const compute_batchnorm *s = &k.c.batchnorm;
  int64_t count = k.items * s->inner;
  double n = (double)count;
  int out = k.at[5] != 0 ? 5 : 1;
  TEAMS (c, s->channels) {
    double sum = 0, dot = 0;
    float middle = F (3)[c], rstd = F (4)[c];
    LANES (e, count) {
      int64_t item = e / s->inner, at = c * s->inner + e % s->inner;
      sum += ITEM_OF (1, item)[at];
      dot += (double)ITEM_OF (1, item)[at] * (ITEM_OF (0, item)[at] - middle);
    }
    sum = team_sum (sum);
    dot = team_sum (dot) * rstd;
    LANES (one, 1) {
      if (F (6) != 0)
        F (6)[c] += (float)dot;
      if (F (7) != 0)
        F (7)[c] += (float)sum;
    }
    float scale = (F (2) != 0 ? F (2)[c] : 1) * rstd, slope = (float)(dot / n) * rstd;
    float shift = (float)(sum / n);
    LANES (e, count) {
      int64_t item = e / s->inner, at = c * s->inner + e % s->inner;
      ITEM_OF (out, item)[at] =
          scale * (ITEM_OF (1, item)[at] - shift - (ITEM_OF (0, item)[at] - middle) * slope);
    }
  }
}

KERNEL (layernorm_fwd) {
  const compute_rownorm *s = &k.c.rownorm;
  TEAMS (r, k.items * s->rows) {
    const float *x = F (0) + r * s->width;
    double sum = 0, squares = 0;
    LANES (i, s->width) sum += x[i];
    double mean = team_sum (sum) / (double)s->width;
    LANES (i, s->width) squares += (x[i] - mean) * (x[i] - mean);
    squares = team_sum (squares) / (double)s->width;
    float middle = (float)mean, rstd = (float)(1 / sqrt (squares + eps_of (s->eps_ppt)));
    LANES (one, 1) {
      F (4)[r] = middle;
      F (5)[r] = rstd;
    }
    LANES (i, s->width) F (3)[r * s->width + i] = (x[i] - middle) * rstd * F (1)[i] + F (2)[i];
  }
}

/* Operands: x, dy, w, mean, rstd, dx, dw, db. */
KERNEL (layernorm_bwd) {
  const compute_rownorm *s = &k.c.rownorm;
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    const float *x = F (0) + r * s->width, *dy = F (1) + r * s->width;
    float mean = F (3)[r], rstd = F (4)[r];
    double sum = 0, dot = 0;
    LANES (i, s->width) {
      float g = dy[i] * F (2)[i];
      sum += g;
      dot += (double)g * ((x[i] - mean) * rstd);
    }
    float shift = (float)(team_sum (sum) / (double)s->width);
    float slope = (float)(team_sum (dot) / (double)s->width);
    LANES (i, s->width)
      F (5)[r * s->width + i] = rstd * (dy[i] * F (2)[i] - shift - (x[i] - mean) * rstd * slope);
  }
  EACH (i, s->width) {
    float dw = F (6)[i], db = F (7)[i];
    for (int64_t r = 0; r < rows; r++) {
      float dy = F (1)[r * s->width + i];
      dw += dy * ((F (0)[r * s->width + i] - F (3)[r]) * F (4)[r]);
      db += dy;
    }
    F (6)[i] = dw;
    F (7)[i] = db;
  }
}

KERNEL (rmsnorm_fwd) {
  const compute_rownorm *s = &k.c.rownorm;
  TEAMS (r, k.items * s->rows) {
    const float *x = F (0) + r * s->width;
    double squares = 0;
    LANES (i, s->width) squares += (double)x[i] * x[i];
    squares = team_sum (squares) / (double)s->width;
    float rstd = (float)(1 / sqrt (squares + eps_of (s->eps_ppt)));
    LANES (one, 1) F (3)[r] = rstd;
    LANES (i, s->width) F (2)[r * s->width + i] = x[i] * rstd * F (1)[i];
  }
}

/* Operands: x, dy, w, rstd, dx, dw. */
KERNEL (rmsnorm_bwd) {
  const compute_rownorm *s = &k.c.rownorm;
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    const float *x = F (0) + r * s->width, *dy = F (1) + r * s->width;
    float rstd = F (3)[r];
    double dot = 0;
    LANES (i, s->width) dot += (double)(dy[i] * F (2)[i]) * x[i];
    float slope = (float)(team_sum (dot) / (double)s->width) * rstd * rstd;
    LANES (i, s->width) F (4)[r * s->width + i] = rstd * (dy[i] * F (2)[i] - x[i] * slope);
  }
  EACH (i, s->width) {
    float dw = F (5)[i];
    for (int64_t r = 0; r < rows; r++)
      dw += F (1)[r * s->width + i] * F (0)[r * s->width + i] * F (3)[r];
    F (5)[i] = dw;
  }
}

/* ---- element by element ---- */

KERNEL (relu_fwd) {
  float slope = (float)k.c.relu.slope_ppm * 1e-6f;
  EACH (i, k.items * k.c.relu.size) OUT (1, 0)[i] = F (0)[i] > 0 ? F (0)[i] : slope * F (0)[i];
}

KERNEL (relu_bwd) {
  float slope = (float)k.c.relu.slope_ppm * 1e-6f;
  EACH (i, k.items * k.c.relu.size) OUT (2, 1)[i] = F (0)[i] > 0 ? F (1)[i] : slope * F (1)[i];
}

KERNEL (tanh_fwd) {
  EACH (i, k.items * k.c.map.size) OUT (1, 0)[i] = tanhf (F (0)[i]);
}

KERNEL (tanh_bwd) {
  EACH (i, k.items * k.c.map.size) OUT (2, 1)[i] = F (1)[i] * (1 - F (0)[i] * F (0)[i]);
}

KERNEL (sigmoid_fwd) {
  EACH (i, k.items * k.c.map.size) OUT (1, 0)[i] = sigmoid_of (F (0)[i]);
}

KERNEL (sigmoid_bwd) {
  EACH (i, k.items * k.c.map.size) OUT (2, 1)[i] = F (1)[i] * F (0)[i] * (1 - F (0)[i]);
}

KERNEL (add) {
  EACH (i, k.items * k.c.map.size) OUT (2, 0)[i] = F (0)[i] + F (1)[i];
}

KERNEL (zero) {
  EACH (i, k.items * k.c.map.size) F (0)[i] = 0;
}

KERNEL (swiglu_fwd) {
  EACH (i, k.items * k.c.map.size) F (2)[i] = F (0)[i] * sigmoid_of (F (0)[i]) * F (1)[i];
}

KERNEL (swiglu_bwd) {
  EACH (i, k.items * k.c.map.size) {
    float gate = F (0)[i], up = F (1)[i], dy = F (2)[i], s = sigmoid_of (gate);
    F (4)[i] = dy * gate * s;
    F (3)[i] = dy * up * s * (1 + gate * (1 - s));
  }
}

FN float gelu_inner (float x) {
  return 0.79788456f * (x + 0.044715f * x * x * x);
}

KERNEL (gelu_fwd) {
  const compute_gelu *s = &k.c.gelu;
  EACH (i, k.items * s->size) {
    float x = F (0)[i];
    F (1)[i] = 0.5f * x * (1 + (s->tanh ? tanhf (gelu_inner (x)) : erff (x * 0.70710678f)));
  }
}

KERNEL (gelu_bwd) {
  const compute_gelu *s = &k.c.gelu;
  EACH (i, k.items * s->size) {
    float x = F (0)[i], slope;
    if (s->tanh) {
      float t = tanhf (gelu_inner (x));
      slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
    } else {
      slope = 0.5f * (1 + erff (x * 0.70710678f)) + x * 0.39894228f * expf (-0.5f * x * x);
    }
    OUT (2, 1)[i] = F (1)[i] * slope;
  }
}

KERNEL (dropout_fwd) {
  const compute_dropout *s = &k.c.dropout;
  float scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  int64_t first = s->offset + k.first_item * s->size;
  EACH (i, k.items * s->size) {
    bool kept = keeps (s->seed, k.step, first + i, s->rate_ppm);
    ((uint8_t *)k.at[2])[i] = kept;
    F (1)[i] = kept ? F (0)[i] * scale : 0;
  }
}

KERNEL (dropout_bwd) {
  const compute_dropout *s = &k.c.dropout;
  float scale = 1 / (1 - (float)s->rate_ppm / 1e6f);
  EACH (i, k.items * s->size) OUT (2, 1)[i] = ((uint8_t *)k.at[0])[i] ? F (1)[i] * scale : 0;
}

/* ---- softmax and losses ---- */

KERNEL (softmax_fwd) {
  const compute_softmax *s = &k.c.softmax;
  TEAMS (r, k.items * s->heads * s->queries) {
    const float *x = F (0) + r * s->columns;
    float *y = OUT (1, 0) + r * s->columns, most = -INFINITY;
    int64_t n = s->causal ? r % s->queries + s->columns - s->queries + 1 : s->columns;
    double sum = 0;
    n = n < 0 ? 0 : n;
    LANES (i, n) most = fmaxf (most, x[i]);
    most = team_most (most);
    LANES (i, n) sum += expf (x[i] - most);
    float scale = n > 0 ? (float)(1 / team_sum (sum)) : 0;
    LANES (i, s->columns) y[i] = i < n ? expf (x[i] - most) * scale : 0;
  }
}

KERNEL (softmax_bwd) {
  const compute_softmax *s = &k.c.softmax;
  TEAMS (r, k.items * s->heads * s->queries) {
    const float *y = F (0) + r * s->columns, *dy = F (1) + r * s->columns;
    double dot = 0;
    LANES (i, s->columns) dot += (double)y[i] * dy[i];
    float all = (float)team_sum (dot);
    LANES (i, s->columns) OUT (2, 1)[r * s->columns + i] = y[i] * (dy[i] - all);
  }
}

FN double share_of (const compute_entropy *s) {
  double weight = s->weight_ppm > 0 ? (double)s->weight_ppm * 1e-6 : 1;
  return weight / (double)(s->batch * s->rows * s->inner);
}

KERNEL (entropy_fwd) {
  const compute_entropy *s = &k.c.entropy;
  TEAMS (item, k.items) {
    double loss = 0;
    LANES (place, s->rows * s->inner) {
      int64_t at = item * s->rows * s->inner + place;
      int32_t target = ((const int32_t *)k.at[1])[at];
      if (!in_range (target, s->classes, k.failed))
        continue;
      int64_t first = at / s->inner * s->classes * s->inner + at % s->inner;
      const float *x = F (0) + first;
      float *p = F (2) + first, most = x[0];
      double sum = 0;
      for (int64_t c = 1; c < s->classes; c++)
        most = fmaxf (most, x[c * s->inner]);
      for (int64_t c = 0; c < s->classes; c++)
        sum += p[c * s->inner] = expf (x[c * s->inner] - most);
      float scale = (float)(1 / sum);
      for (int64_t c = 0; c < s->classes; c++)
        p[c * s->inner] *= scale;
      loss += log (sum) - (x[target * s->inner] - most);
    }
    loss = team_sum (loss);
    LANES (one, 1) F (3)[item] = (float)(loss * share_of (s));
  }
}

KERNEL (entropy_bwd) {
  const compute_entropy *s = &k.c.entropy;
  float scale = (float)share_of (s);
  EACH (i, k.items * s->rows * s->classes * s->inner) {
    int64_t class_ = i / s->inner % s->classes, row = i / s->inner / s->classes;
    int32_t target = ((const int32_t *)k.at[1])[row * s->inner + i % s->inner];
    if (in_range (target, s->classes, k.failed))
      F (0)[i] = (F (0)[i] - (target == class_)) * scale;
  }
}

/* A logarithm is at least -100, so that a certain mistake costs something finite. */
FN double log_of (double x) {
  double l = log (x);
  return l > -100 ? l : -100;
}

KERNEL (binary_fwd) {
  const compute_binary *s = &k.c.binary;
  TEAMS (item, k.items) {
    const float *x = F (0) + item * s->size;
    double sum = 0;
    LANES (i, s->size) sum -= log_of (s->label ? (double)x[i] : 1 - (double)x[i]);
    sum = team_sum (sum);
    LANES (one, 1) F (1)[item] = (float)(sum / (double)(s->batch * s->size));
  }
}

KERNEL (binary_bwd) {
  const compute_binary *s = &k.c.binary;
  double share = 1 / (double)(s->batch * s->size);
  EACH (i, k.items * s->size) {
    double x = F (0)[i], slope = x * (1 - x);
    F (1)[i] = (float)(share * (x - (s->label != 0)) / (slope > 1e-12 ? slope : 1e-12));
  }
}

/* ---- tables and rows ---- */

KERNEL (embedding_fwd) {
  const compute_embedding *s = &k.c.embedding;
  EACH (i, k.items * s->rows * s->width) {
    int32_t token = ((const int32_t *)k.at[0])[i / s->width];
    if (in_range (token, s->table_rows, k.failed))
      F (2)[i] = F (1)[token * s->width + i % s->width];
  }
}

/* The first row with a token adds up all rows that have it, in their order. */
KERNEL (embedding_bwd) {
  const compute_embedding *s = &k.c.embedding;
  const int32_t *token = (const int32_t *)k.at[0];
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    float before = 0;
    LANES (i, r) before = token[i] == token[r] ? 1 : before;
    if (team_most (before) > 0 || !in_range (token[r], s->table_rows, k.failed))
      continue;
    LANES (w, s->width) {
      float sum = F (2)[token[r] * s->width + w];
      for (int64_t i = r; i < rows; i++)
        if (token[i] == token[r])
          sum += F (1)[i * s->width + w];
      F (2)[token[r] * s->width + w] = sum;
    }
  }
}

KERNEL (position_fwd) {
  int64_t item = k.c.position.rows * k.c.position.width;
  EACH (i, k.items * item) F (0)[i] += F (1)[i % item];
}

KERNEL (position_bwd) {
  int64_t item = k.c.position.rows * k.c.position.width;
  EACH (i, item) {
    float sum = F (1)[i];
    for (int64_t n = 0; n < k.items; n++)
      sum += F (0)[n * item + i];
    F (1)[i] = sum;
  }
}

KERNEL (prepend_fwd) {
  const compute_rows *s = &k.c.rows;
  int64_t from = s->rows * s->width, to = from + s->width;
  EACH (i, k.items * to) {
    int64_t at = i % to;
    F (2)[i] = at < s->width ? F (1)[at] : F (0)[i / to * from + at - s->width];
  }
}

KERNEL (prepend_bwd) {
  const compute_rows *s = &k.c.rows;
  int64_t to = s->rows * s->width, from = to + s->width;
  EACH (i, k.items * to) F (1)[i] = F (0)[i / to * from + i % to + s->width];
  EACH (i, s->width) {
    float sum = F (2)[i];
    for (int64_t n = 0; n < k.items; n++)
      sum += F (0)[n * from + i];
    F (2)[i] = sum;
  }
}

KERNEL (select_fwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->width)
    F (1)[i] = F (0)[(i / s->width * s->rows + s->row) * s->width + i % s->width];
}

KERNEL (select_bwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->rows * s->width)
    F (1)[i] = i / s->width % s->rows == s->row
                   ? F (0)[i / s->width / s->rows * s->width + i % s->width]
                   : 0;
}

KERNEL (addrow_fwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->rows * s->width)
    F (2)[i] = F (0)[i] + F (1)[i / s->width / s->rows * s->width + i % s->width];
}

KERNEL (addrow_bwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->width) {
    float sum = 0;
    for (int64_t r = 0; r < s->rows; r++)
      sum += F (0)[(i / s->width * s->rows + r) * s->width + i % s->width];
    F (1)[i] = sum;
  }
}

KERNEL (transpose) {
  const compute_rows *s = &k.c.rows;
  int64_t item = s->rows * s->width;
  EACH (i, k.items * item) {
    int64_t row = i % item / s->width, column = i % s->width;
    F (1)[i / item * item + column * s->rows + row] = F (0)[i];
  }
}

/* One of the parts that are joined after the other. */
FN void join (const kernel_work *k, int first, float *whole, bool back) {
  const compute_concat *s = &k->c.concat;
  int64_t row = 0, at = 0;
  for (int64_t p = 0; p < s->sizes_count; p++)
    row += s->sizes[p];
  for (int64_t p = 0; p < s->sizes_count; at += s->sizes[p++]) {
    float *part = (float *)k->at[first + p];
    EACH (i, k->items * s->outer * s->sizes[p]) {
      float *there = whole + i / s->sizes[p] * row + at + i % s->sizes[p];
      if (back)
        part[i] = *there;
      else
        *there = part[i];
    }
  }
}

KERNEL (concat_fwd) {
  join (&k, 0, F (k.c.concat.sizes_count), false);
}

KERNEL (concat_bwd) {
  join (&k, 1, F (0), true);
}

/* ---- LSTM cell ---- */

KERNEL (lstm_fwd) {
  int64_t n = k.c.lstm.hidden;
  EACH (at, k.items * n) {
    int64_t gate = at / n * 4 * n + at % n;
    const float *x = F (0) + gate, *h = F (1) + gate;
    float *gates = F (5) + gate;
    gates[0] = sigmoid_of (x[0] + h[0]);
    gates[n] = sigmoid_of (x[n] + h[n]);
    gates[2 * n] = tanhf (x[2 * n] + h[2 * n]);
    gates[3 * n] = sigmoid_of (x[3 * n] + h[3 * n]);
    F (4)[at] = gates[n] * F (2)[at] + gates[0] * gates[2 * n];
    F (3)[at] = gates[3 * n] * tanhf (F (4)[at]);
  }
}

/* Operands: gates, c_before, c, dh, dc, dgate, dc_before. */
KERNEL (lstm_bwd) {
  int64_t n = k.c.lstm.hidden;
  EACH (at, k.items * n) {
    int64_t gate = at / n * 4 * n + at % n;
    const float *gates = F (0) + gate;
    float in = gates[0], forget = gates[n], cell = gates[2 * n], out = gates[3 * n];
    float dh = F (3) != 0 ? F (3)[at] : 0, squashed = tanhf (F (2)[at]);
    float dc = dh * out * (1 - squashed * squashed) + (F (4) != 0 ? F (4)[at] : 0);
    float *dgate = F (5) + gate;
    dgate[0] = dc * cell * in * (1 - in);
    dgate[n] = dc * F (1)[at] * forget * (1 - forget);
    dgate[2 * n] = dc * in * (1 - cell * cell);
    dgate[3 * n] = dh * squashed * out * (1 - out);
    F (6)[at] = dc * forget;
  }
}

/* ---- updates ---- */

#define RATE(s) ((float)((double)(s)->rate_ppb * 1e-9))
#define DECAY(s) ((float)((double)(s)->decay_ppb * 1e-9))

KERNEL (sgd) {
  const compute_update *s = &k.c.update;
  float *w = F (0), *main = OUT (2, 0), rate = RATE (s), decay = DECAY (s);
  EACH (i, s->count) w[i] = main[i] -= rate * (F (1)[i] + decay * main[i]);
}

KERNEL (momentum) {
  const compute_update *s = &k.c.update;
  float *w = F (0), *main = OUT (2, 0), *v = F (3), rate = RATE (s), decay = DECAY (s);
  float kept = (float)((double)s->momentum_ppm * 1e-6);
  EACH (i, s->count) {
    v[i] = kept * v[i] + (F (1)[i] + decay * main[i]);
    w[i] = main[i] -= rate * v[i];
  }
}

KERNEL (adam) {
  const compute_update *s = &k.c.update;
  float *w = F (0), *main = OUT (2, 0), *m = F (3), *v = F (4);
  double beta1 = (double)s->beta1_ppm * 1e-6, beta2 = (double)s->beta2_ppm * 1e-6;
  float first = (float)beta1, second = (float)beta2, eps = (float)((double)s->eps_ppt * 1e-12);
  float rate = (float)(RATE (s) / (1 - pow (beta1, (double)k.step + 1)));
  float root = (float)(1 / sqrt (1 - pow (beta2, (double)k.step + 1)));
  EACH (i, s->count) {
    float g = F (1)[i];
    m[i] = first * m[i] + (1 - first) * g;
    v[i] = second * v[i] + (1 - second) * g * g;
    float weight = main[i] - RATE (s) * DECAY (s) * main[i];
    w[i] = main[i] = weight - rate * m[i] / (sqrtf (v[i]) * root + eps);
  }
}
