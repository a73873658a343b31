/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page and what our other pages share with it, built into the program from plot/assets.  The
   page is one set of files: the service shows it, and `ferry plot --html` writes it as one file. */
#pragma once

#include <stdint.h>

typedef enum asset_id {
  ASSET_PAGE_HTML,
  ASSET_PAGE_CSS,
  ASSET_PAGE_JS,
  ASSET_FIGURES_JS,
  ASSETS
} asset_id;

typedef struct asset {
  const char *name, *type; /* of a file, and its media type */
  const void *data;
  int64_t size;
} asset;

extern const asset assets[ASSETS];
