/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/figures/picture_files.h"

#include <stdlib.h>
#include <string.h>

#include "plot/html.h"
#include "plot/svg.h"
#include "plot/tsv.h"

/* The file that an option names, if the command has it and it was given. */
static const char *file_of (call *c, const char *option) {
  for (const cli_option *o = c->command->options; o && o->name; o++)
    if (strcmp (o->name, option) == 0)
      return o->value ? call_text (c, option) : NULL;
  return NULL;
}

static bool write_picture (call *c, const char *option, const figure_page *page,
                           bool (*make) (call *c, const figure_page *page, bytes *out)) {
  const char *path = file_of (c, option);
  bytes text = { 0 };
  bool ok = !path || (make (c, page, &text) && call_write (c, path, text.data, text.size));
  bytes_free (&text);
  return ok;
}

static bool make_svg (call *c, const figure_page *page, bytes *out) {
  int64_t width = 0;
  return call_quantity (c, "width", &width) && svg_page (page, (int)width, out, &c->err);
}

static bool make_html (call *c, const figure_page *page, bytes *out) {
  int64_t width = 0;
  return (!call_has_option (c, "width") || call_quantity (c, "width", &width)) &&
         html_page (page, (int)width, c->arena, out, &c->err);
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
  *any = file_of (c, "svg") || file_of (c, "html") || file_of (c, "tsv");
  return write_picture (c, "svg", page, make_svg) && write_picture (c, "html", page, make_html) &&
         write_picture (c, "tsv", page, make_tsv);
}
