/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention without the score matrix: 32 queries meet 32 keys at a time.  Eight neighbouring threads
   share a row; scores are products of stretches of 32 numbers of both sides, and what is summed up
   (128 columns of it) is kept by the threads themselves. */
#include "executor/gpu/device.h"

enum { BLOCK = 32, CHUNK = 32, WIDE = 128, SHARING = TEAM / BLOCK, KEYS = BLOCK / SHARING };
enum { COLUMNS = WIDE / SHARING };

typedef float narrow_tile[CHUNK + 1];
typedef float wide_tile[WIDE + 1];

typedef struct heads {
  const compute_attention *s;
  int64_t q_row, k_row, y_row; /* from a row to the next */
  int64_t step, first_item;
  float scale;
} heads;

FN heads heads_of (const kernel_work *k) {
  const compute_attention *s = &k->c.attention;
  int64_t q_heads = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
  heads h = { s,       q_heads * s->width, 0, s->heads * s->width,
              k->step, k->first_item,      1 / sqrtf ((float)s->width) };
  h.k_row = s->packed ? h.q_row : s->kv_heads * s->width;
  return h;
}

FN int64_t q_at (const heads *h, int64_t item, int64_t head) {
  return item * h->s->queries * h->q_row + head * h->s->width;
}

FN int64_t y_at (const heads *h, int64_t item, int64_t head) {
  return item * h->s->queries * h->y_row + head * h->s->width;
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

FN int64_t blocks_of (int64_t count) {
  return (count + BLOCK - 1) / BLOCK;
}

/* The factor by which dropout multiplies a probability. */
FN float kept_by (const heads *h, int64_t item, int64_t head, int64_t query, int64_t key) {
  const compute_attention *s = h->s;
  int64_t row = ((h->first_item + item) * s->heads + head) * s->queries + query;
  if (s->rate_ppm == 0)
    return 1;
  return keeps (s->seed, h->step, s->offset + row * s->keys + key, s->rate_ppm)
             ? 1 / (1 - (float)s->rate_ppm / 1e6f)
             : 0;
}

/* Some rows as they are stored. */
typedef struct side {
  const element *at;
  int64_t step, rows, width;
} side;

FN side side_of (const element *at, int64_t step, int64_t rows, int64_t width) {
  side s = { at, step, rows < BLOCK ? rows : BLOCK, width };
  return s;
}

FN float number_of (const side *s, int64_t row, int64_t column) {
  return row < s->rows && column < s->width ? get (s->at, row * s->step + column) : 0;
}

FN void load_narrow (int lane, const side *s, int64_t from, narrow_tile *to) {
  UNROLL for (int i = lane; i < BLOCK * CHUNK; i += TEAM)
    to[i / CHUNK][i % CHUNK] = number_of (s, i / CHUNK, from + i % CHUNK);
}

FN void load_wide (int lane, const side *s, int64_t from, wide_tile *to) {
  UNROLL for (int i = lane; i < BLOCK * WIDE; i += TEAM)
    to[i / WIDE][i % WIDE] = number_of (s, i / WIDE, from + i % WIDE);
}

/* sum[j] += row `row` of x times row (lane's j-th key) of y */
FN void add_products (int lane, const narrow_tile *x, const narrow_tile *y, float *sum) {
  UNROLL for (int c = 0; c < CHUNK; c++)
    UNROLL for (int j = 0; j < KEYS; j++)
      sum[j] += x[lane / SHARING][c] * y[lane % SHARING + SHARING * j][c];
}

KERNEL (attention_fwd) {
  const compute_attention *s = &k.c.attention;
  heads h = heads_of (&k);
  const element *keys = s->packed ? E (0) : E (1), *values = s->packed ? E (0) : E (2);
  SHARED narrow_tile q[BLOCK], key[BLOCK], score[BLOCK], power[BLOCK], kept[BLOCK];
  SHARED wide_tile value[BLOCK];
  OWN (float, own, KEYS);
  OWN (float, state, 2); /* the largest score so far, and the sum of powers */
  OWN (float, out, COLUMNS);
  int64_t blocks = blocks_of (s->queries);
  TEAMS (t, k.items * s->heads * blocks) {
    int64_t from = t % blocks * BLOCK, head = t / blocks % s->heads, item = t / blocks / s->heads;
    int64_t kv = head / (s->heads / s->kv_heads), rows = s->queries - from;
    int64_t end = seen_by (s, from + (rows < BLOCK ? rows : BLOCK) - 1);
    const element *k_from = keys + k_at (&h, item, kv, false);
    const element *v_from = values + k_at (&h, item, kv, true);
    element *y = E (3) + y_at (&h, item, head) + from * h.y_row;
    side q_side = side_of (E (0) + q_at (&h, item, head) + from * h.q_row, h.q_row, rows, s->width);
    for (int64_t w0 = 0; w0 < s->width; w0 += WIDE) {
      EVERY_LANE (l) {
        state[MINE (l)][0] = -INFINITY;
        state[MINE (l)][1] = 0;
        UNROLL for (int j = 0; j < COLUMNS; j++) out[MINE (l)][j] = 0;
      }
      for (int64_t k0 = 0; k0 < end; k0 += BLOCK) {
        side k_side = side_of (k_from + k0 * h.k_row, h.k_row, s->keys - k0, s->width);
        side v_side = side_of (v_from + k0 * h.k_row, h.k_row, s->keys - k0, s->width);
        EVERY_LANE (l) UNROLL for (int j = 0; j < KEYS; j++) own[MINE (l)][j] = 0;
        for (int64_t c0 = 0; c0 < s->width; c0 += CHUNK) {
          TEAM_SYNC;
          EVERY_LANE (l) {
            load_narrow (l, &q_side, c0, q);
            load_narrow (l, &k_side, c0, key);
          }
          TEAM_SYNC;
          EVERY_LANE (l) add_products (l, q, key, own[MINE (l)]);
        }
        EVERY_LANE (l) {
          int64_t seen = seen_by (s, from + l / SHARING);
          UNROLL for (int j = 0; j < KEYS; j++) {
            int at = l % SHARING + SHARING * j;
            own[MINE (l)][j] = k0 + at < seen ? h.scale * own[MINE (l)][j] : -INFINITY;
            score[l / SHARING][at] = own[MINE (l)][j];
          }
        }
        TEAM_SYNC;
        EVERY_LANE (l) {
          int row = l / SHARING;
          float before = state[MINE (l)][0], most = before;
          for (int i = 0; i < BLOCK; i++)
            most = fmaxf (most, score[row][i]);
          float factor = most == before ? 1 : expf (before - most);
          state[MINE (l)][0] = most;
          state[MINE (l)][1] *= factor;
          UNROLL for (int j = 0; j < COLUMNS; j++) out[MINE (l)][j] *= factor;
          UNROLL for (int j = 0; j < KEYS; j++) {
            int at = l % SHARING + SHARING * j;
            float p = own[MINE (l)][j] > -INFINITY ? expf (own[MINE (l)][j] - most) : 0;
            power[row][at] = p;
            kept[row][at] = p > 0 ? p * kept_by (&h, item, head, from + row, k0 + at) : 0;
          }
          load_wide (l, &v_side, w0, value);
        }
        TEAM_SYNC;
        EVERY_LANE (l) {
          for (int i = 0; i < BLOCK; i++) {
            state[MINE (l)][1] += power[l / SHARING][i];
            UNROLL for (int j = 0; j < COLUMNS; j++)
              out[MINE (l)][j] += kept[l / SHARING][i] * value[i][l % SHARING + SHARING * j];
          }
        }
      }
      EVERY_LANE (l) {
        int64_t row = l / SHARING;
        float sum = state[MINE (l)][1];
        if (row >= rows)
          continue;
        UNROLL for (int j = 0; j < COLUMNS; j++) {
          int64_t column = w0 + l % SHARING + SHARING * j;
          if (column < s->width)
            put (y, row * h.y_row + column, sum > 0 ? out[MINE (l)][j] / sum : 0);
        }
        if (w0 == 0 && l % SHARING == 0)
          F (4)[(item * s->heads + head) * s->queries + from + row] =
              state[MINE (l)][0] + logf (sum);
      }
    }
  }
}

/* A block of queries against one of keys. */
typedef struct meeting {
  side q, key, value, y, dy;
  const float *lse; /* of the first query */
  int64_t item, head, from, k0;
} meeting;

typedef struct meeting_tiles {
  narrow_tile *q, *key, *value, *y, *dy, *left, *slope;
} meeting_tiles;

/* left: what dropout left of each probability; slope: the gradient of its score.  They are there
   after the caller's next TEAM_SYNC. */
FN void make_meeting (const heads *h, const meeting *m, const meeting_tiles *t) {
  OWN (float, score, KEYS);
  OWN (float, slope, KEYS);
  OWN (float, whole, 1);
  EVERY_LANE (l) {
    UNROLL for (int j = 0; j < KEYS; j++) score[MINE (l)][j] = slope[MINE (l)][j] = 0;
    whole[MINE (l)][0] = 0;
  }
  for (int64_t c0 = 0; c0 < h->s->width; c0 += CHUNK) {
    TEAM_SYNC;
    EVERY_LANE (l) {
      load_narrow (l, &m->q, c0, t->q);
      load_narrow (l, &m->key, c0, t->key);
      load_narrow (l, &m->value, c0, t->value);
      load_narrow (l, &m->y, c0, t->y);
      load_narrow (l, &m->dy, c0, t->dy);
    }
    TEAM_SYNC;
    EVERY_LANE (l) {
      add_products (l, t->q, t->key, score[MINE (l)]);
      add_products (l, t->dy, t->value, slope[MINE (l)]);
      UNROLL for (int c = 0; c < CHUNK; c++)
        whole[MINE (l)][0] += t->y[l / SHARING][c] * t->dy[l / SHARING][c];
    }
  }
  EVERY_LANE (l) {
    int row = l / SHARING;
    int64_t query = m->from + row, seen = row < m->q.rows ? seen_by (h->s, query) : 0;
    UNROLL for (int j = 0; j < KEYS; j++) {
      int at = l % SHARING + SHARING * j;
      bool sees = m->k0 + at < seen;
      float p = sees ? expf (h->scale * score[MINE (l)][j] - m->lse[row]) : 0;
      float kept = sees ? kept_by (h, m->item, m->head, query, m->k0 + at) : 0;
      t->left[row][at] = p * kept;
      t->slope[row][at] = p * (kept * slope[MINE (l)][j] - whole[MINE (l)][0]);
    }
  }
}

FN meeting meeting_of (const kernel_work *k, const heads *h, int64_t item, int64_t head,
                       int64_t from, int64_t k0) {
  const compute_attention *s = h->s;
  const element *q = (const element *)k->at[1];
  const element *keys = s->packed ? q : (const element *)k->at[2];
  const element *values = s->packed ? q : (const element *)k->at[3];
  int64_t kv = head / (s->heads / s->kv_heads), rows = s->queries - from, left = s->keys - k0;
  int64_t y = y_at (h, item, head) + from * h->y_row;
  meeting m;
  m.q = side_of (q + q_at (h, item, head) + from * h->q_row, h->q_row, rows, s->width);
  m.key = side_of (keys + k_at (h, item, kv, false) + k0 * h->k_row, h->k_row, left, s->width);
  m.value = side_of (values + k_at (h, item, kv, true) + k0 * h->k_row, h->k_row, left, s->width);
  m.y = side_of ((const element *)k->at[4] + y, h->y_row, rows, s->width);
  m.dy = side_of ((const element *)k->at[0] + y, h->y_row, rows, s->width);
  m.lse = (const float *)k->at[5] + (item * s->heads + head) * s->queries + from;
  m.item = item;
  m.head = head;
  m.from = from;
  m.k0 = k0;
  return m;
}

FN void put_rows (int lane, const side *like, int64_t w0, const float *out, float scale,
                  element *to) {
  UNROLL for (int j = 0; j < COLUMNS; j++) {
    int64_t row = lane / SHARING, column = w0 + lane % SHARING + SHARING * j;
    if (row < like->rows && column < like->width)
      put (to, row * like->step + column, scale * out[j]);
  }
}

KERNEL (attention_bwd) {
  const compute_attention *s = &k.c.attention;
  heads h = heads_of (&k);
  SHARED narrow_tile tiles[7][BLOCK];
  SHARED wide_tile wide[BLOCK];
  OWN (float, out, COLUMNS);
  OWN (float, other, COLUMNS);
  const meeting_tiles mt = { tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], tiles[5], tiles[6] };
  int64_t blocks = blocks_of (s->queries), k_blocks = blocks_of (s->keys);
  int64_t sharing = s->heads / s->kv_heads;
  TEAMS (t, k.items * s->heads * blocks) {
    int64_t from = t % blocks * BLOCK, head = t / blocks % s->heads, item = t / blocks / s->heads;
    int64_t rows = s->queries - from, end = seen_by (s, from + (rows < BLOCK ? rows : BLOCK) - 1);
    side like = side_of (0, h.q_row, rows, s->width);
    for (int64_t w0 = 0; w0 < s->width; w0 += WIDE) {
      EVERY_LANE (l) UNROLL for (int j = 0; j < COLUMNS; j++) out[MINE (l)][j] = 0;
      for (int64_t k0 = 0; k0 < end; k0 += BLOCK) {
        meeting m = meeting_of (&k, &h, item, head, from, k0);
        make_meeting (&h, &m, &mt);
        EVERY_LANE (l) load_wide (l, &m.key, w0, wide);
        TEAM_SYNC;
        EVERY_LANE (l)
          for (int i = 0; i < BLOCK; i++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
              out[MINE (l)][j] += mt.slope[l / SHARING][i] * wide[i][l % SHARING + SHARING * j];
        TEAM_SYNC;
      }
      EVERY_LANE (l)
        put_rows (l, &like, w0, out[MINE (l)], h.scale,
                  E (6) + q_at (&h, item, head) + from * h.q_row);
    }
  }
  element *dkeys = s->packed ? E (6) : E (7), *dvalues = s->packed ? E (6) : E (8);
  TEAMS (t, k.items * s->kv_heads * k_blocks) {
    int64_t k0 = t % k_blocks * BLOCK, kv = t / k_blocks % s->kv_heads;
    int64_t item = t / k_blocks / s->kv_heads;
    side like = side_of (0, h.k_row, s->keys - k0, s->width);
    for (int64_t w0 = 0; w0 < s->width; w0 += WIDE) {
      EVERY_LANE (l) UNROLL for (int j = 0; j < COLUMNS; j++)
        out[MINE (l)][j] = other[MINE (l)][j] = 0;
      for (int64_t b = 0; b < sharing * blocks; b++) {
        int64_t from = b % blocks * BLOCK, head = kv * sharing + b / blocks;
        if (seen_by (s, from + BLOCK - 1) <= k0)
          continue;
        meeting m = meeting_of (&k, &h, item, head, from, k0);
        make_meeting (&h, &m, &mt);
        EVERY_LANE (l) load_wide (l, &m.q, w0, wide);
        TEAM_SYNC;
        EVERY_LANE (l)
          for (int i = 0; i < BLOCK; i++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
              out[MINE (l)][j] += mt.slope[i][l / SHARING] * wide[i][l % SHARING + SHARING * j];
        TEAM_SYNC;
        EVERY_LANE (l) load_wide (l, &m.dy, w0, wide);
        TEAM_SYNC;
        EVERY_LANE (l)
          for (int i = 0; i < BLOCK; i++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
              other[MINE (l)][j] += mt.left[i][l / SHARING] * wide[i][l % SHARING + SHARING * j];
        TEAM_SYNC;
      }
      EVERY_LANE (l) {
        put_rows (l, &like, w0, out[MINE (l)], h.scale,
                  dkeys + k_at (&h, item, kv, false) + k0 * h.k_row);
        put_rows (l, &like, w0, other[MINE (l)], 1,
                  dvalues + k_at (&h, item, kv, true) + k0 * h.k_row);
      }
    }
  }
}
