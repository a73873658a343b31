/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products: linear layers, sums for their biases, products of two activations. */
#include "executor/gpu/columns.h"
#include "executor/gpu/tile.h"

/* x: rows x in, w: out x in, y: rows x out, each stored row after row. */
FN void all_tiles (const product *p, const result *r) {
  TEAMS (t, tiles_of (p)) make_tile (p, r, t, 0, 1);
}

KERNEL (linear_fwd) {
  const compute_linear *s = &k.c.linear;
  product p = { { E (0), FACTOR_ROWS, k.items * s->rows, s->in, 1, 0, 0 },
                { E (1), FACTOR_ROWS, s->out, s->in, 1, 0, 0 }, s->in, 1 };
  result r = { E (3), s->out, s->out, 0, 0, E (2), 1, false, 0 };
  all_tiles (&p, &r);
}

KERNEL (linear_bwd_data) {
  const compute_linear *s = &k.c.linear;
  product p = { { E (0), FACTOR_ROWS, k.items * s->rows, s->out, 1, 0, 0 },
                { E (1), FACTOR_ROWS, s->in, 1, s->in, 0, 0 }, s->out, 1 };
  result r = { E (2), s->in, s->in, 0, 0, 0, 1, false, 0 };
  all_tiles (&p, &r);
}

KERNEL (linear_bwd_weights) {
  const compute_linear *s = &k.c.linear;
  product p = { { E (1), FACTOR_ROWS, s->out, 1, s->out, 0, 0 },
                { E (0), FACTOR_ROWS, s->in, 1, s->in, 0, 0 }, k.items * s->rows, 1 };
  result r = { E (2), s->in, s->in, 0, 0, 0, 1, true, 0 };
  all_tiles (&p, &r);
}

FN float one_term (const void *context, int64_t row, int64_t column, int number) {
  const kernel_work *k = (const kernel_work *)context;
  (void)number;
  return get ((const element *)k->at[0], row * k->c.bias.channels + column);
}

KERNEL_OF_TWO (bias_bwd) {
  const compute_bias *s = &k.c.bias;
  if (s->inner == 1) {
    element *to[COLUMN_SUMS] = { E (1), 0 };
    column_sums (k.items * s->outer, s->channels, one_term, &k, to);
    return;
  }
  TEAMS (c, s->channels) {
    double sum = 0;
    int64_t count = k.items * s->outer * s->inner;
    LANES_AHEAD (first, count) {
      float x[AHEAD];
      UNROLL for (int j = 0; j < AHEAD; j++) {
        int64_t e = first + (int64_t)j * LANES_WIDE;
        x[j] = e < count ? get (E (0), (e / s->inner * s->channels + c) * s->inner + e % s->inner) : 0;
      }
      UNROLL for (int j = 0; j < AHEAD; j++) {
        sum += x[j];
      }
    }
    sum = team_sum (sum);
    LANES (one, 1) put (E (1), c, get (E (1), c) + (float)sum);
  }
}

/* The bias that a library left out: y[row][channel][place] += b[channel]. */
KERNEL (add_bias) {
  const compute_bias *s = &k.c.bias;
  EACH (i, k.items * s->outer * s->channels * s->inner)
    put (E (1), i, get (E (1), i) + get (E (0), i / s->inner % s->channels));
}

KERNEL (matmul) {
  const compute_matmul *s = &k.c.matmul;
  const element *all_a = E (0), *all_b = s->b_in_a ? E (0) : E (1);
  product p = { { all_a, FACTOR_ROWS, s->m, s->transpose_a ? 1 : s->a_row,
                  s->transpose_a ? s->a_row : 1, 0, 0 },
                { all_b, FACTOR_ROWS, s->n, s->transpose_b ? s->b_row : 1,
                  s->transpose_b ? 1 : s->b_row, 0, 0 }, s->k, 1 };
  result r = { E (2), s->c_row, s->n, 0, 0, 0, s->root > 0 ? 1 / sqrtf ((float)s->root) : 1, false,
               0 };
  int64_t tiles = tiles_of (&p);
  TEAMS (t, k.items * s->heads * tiles) {
    int64_t item = t / tiles / s->heads, h = t / tiles % s->heads;
    p.a.at = all_a + item * s->a_item + s->a_offset + h * s->a_head;
    p.b.at = all_b + item * s->b_item + s->b_offset + h * s->b_head;
    r.at = E (2) + item * s->c_item + s->c_offset + h * s->c_head;
    make_tile (&p, &r, t % tiles, 0, 1);
  }
}
