/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/tsv.h"

#include "plot/pen.h"
#include "plot/table.h"

/* Tabs and line ends within a cell would make another cell of it. */
static void put_cell (pen *p, const char *text) {
  for (; *text; text++)
    pen_raw (p, *text == '\t' || *text == '\n' || *text == '\r' ? " " : text, 1);
}

static void put_table (pen *p, const figure *f, const figure_table *t) {
  pen_put (p, "# ");
  put_cell (p, f->id);
  pen_put (p, ": ");
  put_cell (p, f->title);
  for (int32_t i = 0; i < t->n_columns; i++) {
    pen_put (p, i ? "\t" : "\n");
    put_cell (p, t->columns[i]);
  }
  for (int64_t i = 0; i < (int64_t)t->n_rows * t->n_columns; i++) {
    const table_cell *cell = &t->cells[i];
    pen_put (p, i % t->n_columns ? "\t" : "\n");
    if (cell->text)
      put_cell (p, cell->text);
    else if (cell->has)
      pen_put (p, "%lld", (long long)cell->value);
  }
  pen_put (p, "\n");
}

bool tsv_page (const figure_page *page, arena *scratch, bytes *out, error *err) {
  pen p = { out, err, false };
  for (int32_t i = 0; i < page->n_figures; i++) {
    figure_table table;
    arena_mark mark = arena_here (scratch);
    if (!table_of (&page->figures[i], scratch, &table, err))
      return false;
    pen_put (&p, i ? "\n" : "");
    put_table (&p, &page->figures[i], &table);
    arena_back (scratch, mark);
  }
  return pen_done (&p);
}
