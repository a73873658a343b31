/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/html.h"

#include <assert.h>
#include <string.h>

#include "plot/assets.h"
#include "plot/pen.h"
#include "plot/scale.h"
#include "plot/svg.h"
#include "plot/table.h"

/* Only this page's own style and script may run, and nothing is fetched. */
static const char policy[] =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/* ---- the page of one plan, with its data inside ---- */

/* Up to `mark` of what is left of the page, which moves behind it. */
static void put_until (pen *p, const char **at, const char *mark) {
  const asset *page = &assets[ASSET_PAGE_HTML];
  const char *end = (const char *)page->data + page->size;
  const char *found = memmem (*at, (size_t)(end - *at), mark, strlen (mark));
  assert (found); /* it is in plot/assets/page.html */
  pen_raw (p, *at, found - *at);
  *at = found + strlen (mark);
}

/* In a script element only "</" and "<!--" would end or change it. */
static void put_data (pen *p, const char *json) {
  for (const char *at = json, *end; *at; at = end) {
    end = at + strcspn (at, "<");
    pen_raw (p, at, end - at);
    if (*end) {
      pen_put (p, "\\u003c");
      end++;
    }
  }
}

/* The service's page, but that its style, script and data are in it. */
static bool put_app (pen *p, const figure_page *page) {
  const char *at = assets[ASSET_PAGE_HTML].data;
  put_until (p, &at, "<title>ferry</title>\n");
  pen_put (p, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n<title>", policy);
  pen_text (p, page->title);
  pen_put (p, " - ferry</title>\n");
  put_until (p, &at, "<link rel=\"stylesheet\" href=\"/ui/page.css\">\n");
  pen_put (p, "<style>\n");
  pen_raw (p, assets[ASSET_PAGE_CSS].data, assets[ASSET_PAGE_CSS].size);
  pen_put (p, "</style>\n");
  put_until (p, &at, "<script src=\"/ui/page.js\" defer></script>\n");
  put_until (p, &at, "</body>\n");
  pen_put (p, "<script type=\"application/json\" id=\"data\">");
  put_data (p, page->data);
  pen_put (p, "</script>\n<script>\n");
  pen_raw (p, assets[ASSET_PAGE_JS].data, assets[ASSET_PAGE_JS].size);
  pen_put (p, "</script>\n</body>\n</html>\n");
  return pen_done (p);
}

/* ---- pages of figures ---- */

static void put_facts (pen *p, const figure_page *page) {
  pen_put (p, "<dl>\n");
  for (int32_t i = 0; i < page->n_facts; i++) {
    const figure_fact *f = &page->facts[i];
    pen_put (p, "<div><dt>");
    pen_text (p, f->key);
    pen_put (p, "</dt><dd><data data-key=\"");
    pen_text (p, f->key);
    pen_put (p, "\" value=\"%lld\">", (long long)f->exact);
    pen_text (p, f->text);
    pen_put (p, "</data></dd></div>\n");
  }
  pen_put (p, "</dl>\n");
}

static void put_cell (pen *p, const table_cell *cell, figure_unit unit) {
  char text[UNITS_TEXT];
  if (cell->text) {
    pen_put (p, cell->has ? "<td class=\"t\" data-v=\"%lld\">" : "<td class=\"t\">",
             (long long)cell->value);
    pen_text (p, cell->text);
  } else if (cell->has) {
    pen_put (p, "<td data-v=\"%lld\">%s", (long long)cell->value,
             scale_text (unit, cell->value, text));
  } else {
    pen_put (p, "<td>");
  }
  pen_put (p, "</td>");
}

static void put_table (pen *p, const figure_table *t) {
  pen_put (p,
           "<details><summary>The numbers (%d rows)</summary><div class=\"rows\" tabindex=\"0\">"
           "<table>\n<thead><tr>",
           t->n_rows);
  for (int32_t i = 0; i < t->n_columns; i++) {
    pen_put (p,
             t->units[i] == FIGURE_NAME ? "<th class=\"t\" scope=\"col\">" : "<th scope=\"col\">");
    pen_text (p, t->columns[i]);
    pen_put (p, "</th>");
  }
  pen_put (p, "</tr></thead>\n<tbody>\n");
  for (int32_t row = 0; row < t->n_rows; row++) {
    pen_put (p, "<tr>");
    for (int32_t i = 0; i < t->n_columns; i++)
      put_cell (p, &t->cells[(int64_t)row * t->n_columns + i], t->units[i]);
    pen_put (p, "</tr>\n");
  }
  pen_put (p, "</tbody></table></div></details>\n");
}

/* Does a value hold until the next one, rather than being a point of a curve? */
static bool has_steps (const figure *f) {
  for (int32_t i = 0; i < f->n_series; i++)
    if (f->series[i].kind == FIGURE_AREA || f->series[i].kind == FIGURE_STEP)
      return true;
  return false;
}

static bool put_figure (pen *p, const figure *f, arena *scratch) {
  figure_table table;
  arena_mark mark = arena_here (scratch);
  if (!table_of (f, scratch, &table, p->err))
    return false;
  pen_put (p, "<section id=\"");
  pen_text (p, f->id);
  pen_put (p, "\" data-steps=\"%d\">\n<h2>", has_steps (f));
  pen_text (p, f->title);
  pen_put (p, "</h2>\n<figure tabindex=\"0\" aria-label=\"");
  pen_text (p, f->title);
  pen_put (p, "; the arrow keys go through its numbers\">\n");
  if (!pen_done (p) || !svg_figure (f, p->out, p->err))
    return false;
  pen_put (p, "</figure>\n<output aria-live=\"polite\"></output>\n");
  put_table (p, &table);
  pen_put (p, "</section>\n");
  arena_back (scratch, mark);
  return pen_done (p);
}

bool html_page (const figure_page *page, arena *scratch, bytes *out, error *err) {
  pen p = { out, err, false };
  if (page->data)
    return put_app (&p, page);
  pen_put (&p,
           "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"
           "<link rel=\"icon\" href=\"data:,\">\n<title>",
           policy);
  pen_text (&p, page->title);
  pen_put (&p, "</title>\n<style>\n");
  pen_raw (&p, assets[ASSET_PAGE_CSS].data, assets[ASSET_PAGE_CSS].size);
  if (!pen_done (&p) || !svg_style (out, err))
    return false;
  pen_put (&p, "</style>\n</head>\n<body class=\"figures\">\n<h1>");
  pen_text (&p, page->title);
  pen_put (&p, "</h1>\n<p class=\"about\">");
  pen_text (&p, page->subtitle ? page->subtitle : "");
  pen_put (&p, "</p>\n");
  put_facts (&p, page);
  for (int32_t i = 0; i < page->n_figures; i++)
    if (!put_figure (&p, &page->figures[i], scratch))
      return false;
  pen_put (&p,
           "<footer>Point at a picture, or choose one with Tab and use the arrow keys.</footer>\n"
           "<script>\n");
  pen_raw (&p, assets[ASSET_FIGURES_JS].data, assets[ASSET_FIGURES_JS].size);
  pen_put (&p, "</script>\n</body>\n</html>\n");
  return pen_done (&p);
}
