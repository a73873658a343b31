/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/embedded.h"

#include <string.h>

#include "server/api/embedded.inc" /* made by plot/embed.sh */

static const embedded_file files[] = {
  { "index.html", "text/html; charset=utf-8", index_html, sizeof index_html },
  { "openapi.json", "application/json", openapi_json, sizeof openapi_json },
  { "page.css", "text/css; charset=utf-8", page_css, sizeof page_css },
  { "page.js", "text/javascript; charset=utf-8", page_js, sizeof page_js },
  { "tables.js", "text/javascript; charset=utf-8", tables_js, sizeof tables_js },
};

const embedded_file *embedded_named (const char *name) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (strcmp (files[i].name, name) == 0)
      return &files[i];
  return NULL;
}
