/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/columns.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/units.h"

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
  row next;     /* the next value goes there */
  bool started; /* the widths are chosen, and rows are not kept */
  int width[COLUMNS_MOST];
  bool shown[COLUMNS_MOST];
};

columns *columns_new (call *c, const column *at, int count) {
  columns *t = NEW (c->arena, 1, columns, &c->err);
  if (t) {
    *t = (columns){ .call = c, .count = count };
    memcpy (t->at, at, (size_t)count * sizeof *at);
  }
  return t;
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
  int sum = 0, behind = 0;
  for (int i = 0; i < t->count; i++) {
    shown[i] = true;
    sum += width[i] + (i > 0);
  }
  for (int64_t k = 0; k < t->n_rows; k++) { /* a word behind a full row */
    const row *r = &t->rows[k];
    int length = r->rest && r->count == t->count ? (int)strlen (r->rest) + 1 : 0;
    behind = length > behind ? length : behind;
  }
  sum += behind;
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

/* No spaces at the end of a line. */
static void print_cell (const columns *t, int i, int width, const char *text, bool first) {
  bool last = true;
  int length = (int)strlen (text), pad = width > length ? width - length : 0;
  for (int k = i + 1; k < t->count; k++)
    last &= !t->shown[k];
  while (last && length > 0 && text[length - 1] == ' ')
    length--;
  printf ("%s%*s%.*s%*s", first ? "" : " ", t->at[i].left ? 0 : pad, "", length, text,
          t->at[i].left && !last ? pad : 0, "");
}

static void print_heads (const columns *t) {
  for (int i = 0, first = 1; i < t->count; i++)
    if (t->shown[i]) {
      print_cell (t, i, t->width[i], t->at[i].head, first);
      first = 0;
    }
  putchar ('\n');
}

static void print_row (const columns *t, const row *r) {
  call_clear_line (t->call);
  for (int i = 0, first = 1; i < r->count; i++)
    if (t->shown[i]) {
      print_cell (t, i, t->width[i], r->cells[i], first);
      first = 0;
    }
  printf ("%s%s\n", r->rest ? " " : "", r->rest ? r->rest : "");
}

static void fix_widths (columns *t) {
  for (int i = 0; i < t->count; i++)
    t->width[i] = t->started ? t->at[i].width : width_of (t, i);
  choose (t, t->width, t->shown);
  print_heads (t);
}

void columns_start (columns *t) {
  t->started = true;
  fix_widths (t);
}

static const char *text_of (const columns *t, const char *format, va_list args) {
  char text[1024];
  vsnprintf (text, sizeof text, format, args);
  return arena_string (t->call->arena, text, &t->call->err);
}

void columns_put (columns *t, const char *format, ...) {
  va_list args;
  assert (t->next.count < t->count);
  va_start (args, format);
  t->next.cells[t->next.count++] = text_of (t, format, args);
  va_end (args);
}

void columns_bytes (columns *t, int64_t bytes) {
  char text[UNITS_TEXT];
  columns_put (t, "%s", units_bytes (text, bytes));
}

void columns_time (columns *t, int64_t ns) {
  char text[UNITS_TEXT];
  columns_put (t, "%s", units_time (text, ns));
}

bool columns_end (columns *t) {
  call *c = t->call;
  row now = t->next;
  t->next = (row){ 0 };
  if (!c->err.code && t->started)
    print_row (t, &now);
  if (c->err.code || t->started)
    return !c->err.code;
  t->rows = arena_grow (c->arena, t->rows, &t->room, t->n_rows + 1, sizeof *t->rows, &c->err);
  if (t->rows)
    t->rows[t->n_rows++] = now;
  return t->rows;
}

bool columns_end_with (columns *t, const char *format, ...) {
  va_list args;
  va_start (args, format);
  t->next.rest = text_of (t, format, args);
  va_end (args);
  return columns_end (t);
}

bool columns_print (columns *t) {
  int hidden = 0;
  if (!t)
    return false;
  if (!t->started)
    fix_widths (t);
  for (int64_t k = 0; k < t->n_rows; k++)
    print_row (t, &t->rows[k]);
  for (int i = 0; i < t->count; i++)
    if (!t->shown[i])
      printf ("%s%s", hidden++ ? ", " : "left out, --wide shows: ", t->at[i].head);
  if (hidden)
    putchar ('\n');
  return true;
}
