/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text that grows: printf into bytes, escaped for XML where asked.  The first failure stays, and
   everything after it does nothing, so that drawing reads as drawing; pen_done says how it went. */
#pragma once

#include "base/file.h"

typedef struct pen {
  bytes *out;
  error *err;
  bool failed;
} pen;

void pen_put (pen *p, const char *format, ...) PRINTF_LIKE (2, 3);
void pen_raw (pen *p, const void *data, int64_t size);
/* & < > " ' as entities; control characters, which XML cannot hold, and broken UTF-8 as "?". */
void pen_text (pen *p, const char *text);
bool pen_done (const pen *p) MUST_CHECK;

/* A length in tenths as the shortest decimal text: "12", "12.5", "-0.1". */
typedef struct pen_tenths {
  char text[16];
} pen_tenths;
pen_tenths tenths (int32_t value);
