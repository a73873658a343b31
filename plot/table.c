/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/table.h"

#include <stdlib.h>

#include "base/order.h"

const char *table_suffix (figure_unit unit) {
  switch (unit) {
  case FIGURE_BYTES:
    return "_bytes";
  case FIGURE_NS:
    return "_ns";
  case FIGURE_SHARE:
    return "_ppm";
  default:
    return "";
  }
}

static bool make_room (figure_table *t, int32_t columns, int64_t rows, arena *a, error *err) {
  if (rows > INT32_MAX / (columns > 0 ? columns : 1))
    return error_set (err, ERR_limit, "a table of %lld rows is too large", (long long)rows);
  *t = (figure_table){ .n_columns = columns, .n_rows = (int32_t)rows };
  return ALLOC (a, t->columns, columns, err) && ALLOC (a, t->units, columns, err) &&
         ALLOC (a, t->cells, columns * rows, err);
}

static table_cell number (int64_t value) {
  return (table_cell){ .value = value, .has = value != FIGURE_HOLE };
}

static bool lanes_table (const figure *f, arena *a, figure_table *t, error *err) {
  static const char *const names[] = { "lane", "kind", "name", "start", "end", "bytes" };
  static const char *const tones[] = {
#define TONE(name, light, dark) #name,
#include "plot/tones.def"
#undef TONE
  };
  int64_t rows = 0;
  for (int32_t i = 0; i < f->n_lanes; i++)
    rows += f->lanes[i].n_spans;
  if (!make_room (t, 6, rows, a, err))
    return false;
  for (int k = 0; k < 6; k++) {
    t->units[k] = k < 3 ? FIGURE_NAME : k < 5 ? f->x.unit : FIGURE_BYTES;
    t->columns[k] = k == 3 || k == 4
                        ? arena_format (a, err, "%s%s", names[k], table_suffix (f->x.unit))
                        : names[k];
    if (!t->columns[k])
      return false;
  }
  table_cell *at = t->cells;
  for (int32_t i = 0; i < f->n_lanes; i++)
    for (int32_t k = 0; k < f->lanes[i].n_spans; k++) {
      const figure_span *s = &f->lanes[i].spans[k];
      *at++ = (table_cell){ .text = f->lanes[i].name };
      *at++ = (table_cell){ .text = tones[s->tone] };
      *at++ = (table_cell){ .text = s->name ? s->name : "" };
      *at++ = number (s->start);
      *at++ = number (s->end);
      *at++ = number (s->bytes);
    }
  return true;
}

/* All x of all series, each once, in order. */
static int64_t *all_x (const figure *f, arena *a, int64_t *count, error *err) {
  int64_t room = 0, n = 0;
  for (int32_t i = 0; i < f->n_series; i++)
    room += f->series[i].n_points;
  int64_t *xs = NEW (a, room, int64_t, err);
  if (!xs)
    return NULL;
  for (int32_t i = 0; i < f->n_series; i++)
    for (int32_t k = 0; k < f->series[i].n_points; k++)
      xs[n++] = f->series[i].points[k].x;
  qsort (xs, (size_t)n, sizeof *xs, order_int64);
  *count = 0;
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || xs[i] != xs[i - 1])
      xs[(*count)++] = xs[i];
  return xs;
}

static int32_t row_of (const int64_t *xs, int64_t count, int64_t x) {
  const int64_t *at = bsearch (&x, xs, (size_t)count, sizeof *xs, order_int64);
  return (int32_t)(at - xs);
}

/* A layer of a stack is what it adds, not where its top is. */
static void fill_series (const figure_series *s, figure_table *t, int32_t column,
                         const int64_t *xs) {
  for (int32_t k = 0; k < s->n_points; k++) {
    const figure_point *p = &s->points[k];
    table_cell *cell = &t->cells[(int64_t)row_of (xs, t->n_rows, p->x) * t->n_columns + column];
    bool hole = p->y == FIGURE_HOLE;
    if (s->kind == FIGURE_BAND) {
      cell[0] = number (hole ? FIGURE_HOLE : p->low);
      cell[1] = number (p->y);
    } else {
      *cell = number (s->kind == FIGURE_AREA && !hole ? p->y - p->low : p->y);
    }
  }
}

static bool series_table (const figure *f, arena *a, figure_table *t, error *err) {
  int32_t columns = 1, column = 1;
  int64_t rows;
  for (int32_t i = 0; i < f->n_series; i++)
    columns += f->series[i].kind == FIGURE_BAND ? 2 : 1;
  int64_t *xs = all_x (f, a, &rows, err);
  if (!xs || !make_room (t, columns, rows, a, err))
    return false;
  t->columns[0] = arena_format (a, err, "%s%s", f->x.title && *f->x.title ? f->x.title : "x",
                                table_suffix (f->x.unit));
  t->units[0] = f->x.unit;
  for (int64_t i = 0; i < rows; i++) {
    t->cells[i * columns] = number (xs[i]);
    if (f->x.unit == FIGURE_NAME && xs[i] >= 0 && xs[i] < f->x.n_names)
      t->cells[i * columns].text = f->x.names[xs[i]];
  }
  const char *suffix = table_suffix (f->y.unit);
  bool ok = t->columns[0] != NULL;
  for (int32_t i = 0; i < f->n_series && ok; i++) {
    const figure_series *s = &f->series[i];
    bool band = s->kind == FIGURE_BAND;
    fill_series (s, t, column, xs);
    for (int k = 0; k < 1 + band; k++, column++) {
      const char *end = !band ? "" : k ? " to" : " from";
      t->columns[column] = arena_format (a, err, "%s%s%s", s->name, end, suffix);
      t->units[column] = f->y.unit;
      ok = ok && t->columns[column];
    }
  }
  return ok;
}

bool table_of (const figure *f, arena *a, figure_table *out, error *err) {
  return f->n_lanes ? lanes_table (f, a, out, err) : series_table (f, a, out, err);
}
