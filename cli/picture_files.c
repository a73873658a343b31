#include "cli/picture_files.h"

#include "plot/html.h"
#include "plot/svg.h"
#include "plot/tsv.h"

/* The file that an option names, if it was given. */
static bool write_picture (call *c, const char *option, const figure_page *page,
                           bool (*make) (call *c, const figure_page *page, bytes *out)) {
  const char *path = call_text (c, option);
  bytes text = { 0 };
  bool ok = !path || (make (c, page, &text) && call_write (c, path, text.data, text.size));
  bytes_free (&text);
  return ok;
}

static bool make_svg (call *c, const figure_page *page, bytes *out) {
  int64_t width = 0;
  return call_count (c, "width", SVG_LEAST_WIDTH, SVG_MOST_WIDTH, &width) &&
         svg_page (page, (int)width, out, &c->err);
}

static bool make_html (call *c, const figure_page *page, bytes *out) {
  int64_t width = 0;
  return call_count (c, "width", SVG_LEAST_WIDTH, SVG_MOST_WIDTH, &width) &&
         html_page (page, (int)width, c->arena, out, &c->err);
}

static bool make_tsv (call *c, const figure_page *page, bytes *out) {
  return tsv_page (page, c->arena, out, &c->err);
}

bool picture_files (call *c, const figure_page *page, bool *any) {
  *any = call_text (c, "svg") || call_text (c, "html") || call_text (c, "tsv");
  return write_picture (c, "svg", page, make_svg) &&
         write_picture (c, "html", page, make_html) &&
         write_picture (c, "tsv", page, make_tsv);
}

