/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plot/pen.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Bytes of the UTF-8 character at `text`; 0: it is none. */
static int utf8_length (const unsigned char *text) {
  int length = text[0] < 0x80   ? 1
               : text[0] < 0xc2 ? 0
               : text[0] < 0xe0 ? 2
               : text[0] < 0xf0 ? 3
                                : 4;
  if (text[0] > 0xf4)
    return 0;
  for (int i = 1; i < length; i++)
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
      (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f) ||
      (text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe))
    return 0;
  return length;
}

void pen_text (pen *p, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at) {
    int length = utf8_length (at);
    if (length == 0 || (*at < 0x20 && *at != '\t' && *at != '\n'))
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
