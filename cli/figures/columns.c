/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/columns.h"

#include <string.h>

typedef struct row {
  const char *cells[COLUMNS_MOST];
  int count; /* of cells; the rest of the line is `rest` */
  const char *rest;
} row;

struct columns {
  call *call;
  column at[COLUMNS_MOST];
  int count;
  row *rows;
  int64_t n_rows, room;
};

columns *columns_new (call *c, const column *at, int count) {
  columns *t = NEW (c->arena, 1, columns, &c->err);
  if (t) {
    *t = (columns){ .call = c, .count = count };
    memcpy (t->at, at, (size_t)count * sizeof *at);
  }
  return t;
}

bool columns_row (columns *t, const char *const *cells, const char *rest) {
  call *c = t->call;
  t->rows = arena_grow (c->arena, t->rows, &t->room, t->n_rows + 1, sizeof *t->rows, &c->err);
  if (!t->rows)
    return false;
  row *r = &t->rows[t->n_rows++];
  *r = (row){ .rest = rest ? arena_string (c->arena, rest, &c->err) : NULL };
  for (; r->count < t->count && cells[r->count]; r->count++)
    r->cells[r->count] = arena_string (c->arena, cells[r->count], &c->err);
  return !c->err.code;
}

static int width_of (const columns *t, int i) {
  int most = (int)strlen (t->at[i].head);
  for (int64_t k = 0; k < t->n_rows; k++)
    if (i < t->rows[k].count && (int)strlen (t->rows[k].cells[i]) > most)
      most = (int)strlen (t->rows[k].cells[i]);
  return most;
}

/* Which columns stay; the figure is how wide they are together. */
static void choose (const columns *t, const int *width, bool *shown) {
  int sum = 0;
  for (int i = 0; i < t->count; i++) {
    shown[i] = true;
    sum += width[i] + (i > 0);
  }
  while (!call_flag (t->call, "wide") && sum > t->call->columns) {
    int worst = -1;
    for (int i = 0; i < t->count; i++)
      if (shown[i] && t->at[i].drop && (worst < 0 || t->at[i].drop >= t->at[worst].drop))
        worst = i;
    if (worst < 0)
      return;
    shown[worst] = false;
    sum -= width[worst] + 1;
  }
}

static void print_cell (const columns *t, int i, int width, const char *text, bool first) {
  printf (t->at[i].left ? "%s%-*s" : "%s%*s", first ? "" : " ", width, text);
}

void columns_print (const columns *t) {
  int width[COLUMNS_MOST], hidden = 0;
  bool shown[COLUMNS_MOST];
  for (int i = 0; i < t->count; i++)
    width[i] = width_of (t, i);
  choose (t, width, shown);
  for (int i = 0, first = 1; i < t->count; i++)
    if (shown[i]) {
      print_cell (t, i, width[i], t->at[i].head, first);
      first = 0;
    }
  putchar ('\n');
  for (int64_t k = 0; k < t->n_rows; k++) {
    const row *r = &t->rows[k];
    for (int i = 0, first = 1; i < r->count; i++)
      if (shown[i]) {
        print_cell (t, i, width[i], r->cells[i], first);
        first = 0;
      }
    printf ("%s%s\n", r->rest ? " " : "", r->rest ? r->rest : "");
  }
  for (int i = 0; i < t->count; i++)
    if (!shown[i])
      printf ("%s%s", hidden++ ? ", " : "left out, --wide shows: ", t->at[i].head);
  if (hidden)
    putchar ('\n');
}
