/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables and rows: what only moves numbers, or adds up few. */
#include "executor/gpu/columns.h"

KERNEL (embedding_fwd) {
  const compute_embedding *s = &k.c.embedding;
  EACH (i, k.items * s->rows * s->width) {
    int32_t token = ((const int32_t *)k.at[0])[i / s->width];
    if (in_range (token, s->table_rows, k.failed))
      E (2)[i] = E (1)[token * s->width + i % s->width];
  }
}

/* The first row with a token adds up all rows that have it, in their order. */
KERNEL_OF_TWO (embedding_bwd) {
  const compute_embedding *s = &k.c.embedding;
  const int32_t *token = (const int32_t *)k.at[0];
  int64_t rows = k.items * s->rows;
  TEAMS (r, rows) {
    float before = 0;
    LANES (i, r) before = token[i] == token[r] ? 1 : before;
    if (team_most (before) > 0 || !in_range (token[r], s->table_rows, k.failed))
      continue;
    LANES (w, s->width) {
      float sum = get (E (2), token[r] * s->width + w);
      for (int64_t i = r; i < rows; i++)
        if (token[i] == token[r])
          sum += get (E (1), i * s->width + w);
      put (E (2), token[r] * s->width + w, sum);
    }
  }
}

KERNEL (position_fwd) {
  int64_t item = k.c.position.rows * k.c.position.width;
  EACH (i, k.items * item) put (E (0), i, get (E (0), i) + get (E (1), i % item));
}

/* to[i] += the sum over items of from[item x step + i] */
FN void add_items (const kernel_work *k, int64_t count, int64_t step, const element *from,
                   element *to) {
  EACH (i, count) {
    float sum = 0;
    for (int64_t n = 0; n < k->items; n++)
      sum += get (from, n * step + i);
    put (to, i, get (to, i) + sum);
  }
}

KERNEL (position_bwd) {
  int64_t item = k.c.position.rows * k.c.position.width;
  add_items (&k, item, item, E (0), E (1));
}

KERNEL (prepend_fwd) {
  const compute_rows *s = &k.c.rows;
  int64_t from = s->rows * s->width, to = from + s->width;
  EACH (i, k.items * to) {
    int64_t at = i % to;
    E (2)[i] = at < s->width ? E (1)[at] : E (0)[i / to * from + at - s->width];
  }
}

KERNEL (prepend_bwd) {
  const compute_rows *s = &k.c.rows;
  int64_t to = s->rows * s->width, from = to + s->width;
  EACH (i, k.items * to) E (1)[i] = E (0)[i / to * from + i % to + s->width];
  add_items (&k, s->width, from, E (0), E (2));
}

KERNEL (select_fwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->width)
    E (1)[i] = E (0)[(i / s->width * s->rows + s->row) * s->width + i % s->width];
}

KERNEL (select_bwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->rows * s->width) {
    if (i / s->width % s->rows == s->row)
      E (1)[i] = E (0)[i / s->width / s->rows * s->width + i % s->width];
    else
      put (E (1), i, 0);
  }
}

KERNEL (addrow_fwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->rows * s->width)
    put (E (2), i,
         get (E (0), i) + get (E (1), i / s->width / s->rows * s->width + i % s->width));
}

KERNEL (addrow_bwd) {
  const compute_rows *s = &k.c.rows;
  EACH (i, k.items * s->width) {
    float sum = 0;
    for (int64_t r = 0; r < s->rows; r++)
      sum += get (E (0), (i / s->width * s->rows + r) * s->width + i % s->width);
    put (E (1), i, sum);
  }
}

KERNEL (transpose) {
  const compute_rows *s = &k.c.rows;
  int64_t item = s->rows * s->width;
  EACH (i, k.items * item) {
    int64_t row = i % item / s->width, column = i % s->width;
    E (1)[i / item * item + column * s->rows + row] = E (0)[i];
  }
}

/* One of the parts that are joined after the other. */
FN void join (const kernel_work *k, int first, element *whole, bool back) {
  const compute_concat *s = &k->c.concat;
  int64_t row = 0, at = 0;
  for (int64_t p = 0; p < s->sizes_count; p++)
    row += s->sizes[p];
  for (int64_t p = 0; p < s->sizes_count; at += s->sizes[p++]) {
    element *part = (element *)k->at[first + p];
    EACH (i, k->items * s->outer * s->sizes[p]) {
      element *there = whole + i / s->sizes[p] * row + at + i % s->sizes[p];
      if (back)
        part[i] = *there;
      else
        *there = part[i];
    }
  }
}

KERNEL (concat_fwd) {
  join (&k, 0, E (k.c.concat.sizes_count), false);
}

KERNEL (concat_bwd) {
  join (&k, 1, E (0), true);
}
