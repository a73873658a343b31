/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/picture_files.h"

#include <stdlib.h>

#include "plot/html.h"
#include "plot/svg.h"
#include "plot/tsv.h"

static bool write_picture (call *c, const char *option, const figure_page *page,
                           bool (*make) (call *c, const figure_page *page, bytes *out)) {
  const char *path = call_own_text (c, option);
  bytes text = { 0 };
  bool ok = !path || (make (c, page, &text) && call_write (c, path, text.data, text.size));
  bytes_free (&text);
  return ok;
}

static bool make_svg (call *c, const figure_page *page, bytes *out) {
  return svg_page (page, out, &c->err);
}

static bool make_html (call *c, const figure_page *page, bytes *out) {
  return html_page (page, c->arena, out, &c->err);
}

static bool make_tsv (call *c, const figure_page *page, bytes *out) {
  return tsv_page (page, c->arena, out, &c->err);
}

bool picture_drawings (call *c, const figure_page *page) {
  return write_picture (c, "svg", page, make_svg) && write_picture (c, "html", page, make_html);
}

bool tsv_open (call *c, tsv_text *t) {
  *t = (tsv_text){ 0 };
  t->to = open_memstream (&t->text, &t->size);
  return t->to || error_memory (&c->err);
}

bool tsv_close (call *c, tsv_text *t) {
  bool whole = !ferror (t->to);
  bool ok = (fclose (t->to) == 0 && whole) || error_memory (&c->err);
  ok = ok && call_write (c, call_text (c, "tsv"), t->text, (int64_t)t->size);
  free (t->text);
  return ok;
}

bool picture_files (call *c, const figure_page *page, bool *any) {
  *any = call_own_text (c, "svg") || call_own_text (c, "html") || call_own_text (c, "tsv");
  return write_picture (c, "svg", page, make_svg) && write_picture (c, "html", page, make_html) &&
         write_picture (c, "tsv", page, make_tsv);
}
