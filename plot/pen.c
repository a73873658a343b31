/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/pen.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void pen_raw (pen *p, const void *data, int64_t size) {
  if (!p->failed && !bytes_append (p->out, data, size, p->err))
    p->failed = true;
}

void pen_put (pen *p, const char *format, ...) {
  char text[512];
  va_list args;
  va_start (args, format);
  int length = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  assert (length >= 0 && length < (int)sizeof text); /* texts of others go through pen_text */
  pen_raw (p, text, length);
}

/* Bytes of the character at `text`, where XML may have it; else 0. */
static int xml_length (const char *text) {
  int length = utf8_length (text, 4);
  bool none = strncmp (text, "\xef\xbf\xbe", 3) == 0 || strncmp (text, "\xef\xbf\xbf", 3) == 0;
  return none || ((unsigned char)*text < 0x20 && *text != '\t' && *text != '\n') ? 0 : length;
}

void pen_text (pen *p, const char *text) {
  const char *at = text;
  while (*at) {
    int length = xml_length (at);
    if (length == 0)
      pen_put (p, "?");
    else if (*at == '&')
      pen_put (p, "&amp;");
    else if (*at == '<')
      pen_put (p, "&lt;");
    else if (*at == '>')
      pen_put (p, "&gt;");
    else if (*at == '"')
      pen_put (p, "&quot;");
    else if (*at == '\'')
      pen_put (p, "&#39;");
    else
      pen_raw (p, at, length);
    at += length ? length : 1;
  }
}

bool pen_done (const pen *p) {
  return !p->failed;
}

pen_tenths tenths (int32_t value) {
  pen_tenths t;
  int32_t size = value < 0 ? -value : value;
  const char *sign = value < 0 ? "-" : "";
  if (size % 10)
    snprintf (t.text, sizeof t.text, "%s%d.%d", sign, size / 10, size % 10);
  else
    snprintf (t.text, sizeof t.text, "%s%d", sign, size / 10);
  return t;
}
