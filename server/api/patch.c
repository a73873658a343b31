/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/patch.h"

#include <string.h>

void patch_begin (patch *p, arena *a) {
  *p = (patch){ .arena = a };
  json_begin (&p->w, 0);
  json_open_array (&p->w);
}

static void begin_change (patch *p, const char *path) {
  json_open_object (&p->w);
  json_add_text (&p->w, "op", "add"); /* which takes another's place, too */
  json_add_text (&p->w, "path", path);
  p->n++;
}

void patch_add_text (patch *p, const char *path, const char *text) {
  begin_change (p, path);
  json_add_text (&p->w, "value", text);
  json_close_object (&p->w);
}

void patch_add_raw (patch *p, const char *path, const char *json_text) {
  begin_change (p, path);
  json_add_raw (&p->w, "value", json_text);
  json_close_object (&p->w);
}

/* A key as a part of a path: `~` and `/` have a meaning there. */
static const char *escaped (patch *p, const char *key) {
  error ignored = { 0 };
  char *out = NEW (p->arena, 2 * (int64_t)strlen (key) + 1, char, &ignored);
  size_t n = 0;
  for (; out && *key; key++)
    if (*key == '~' || *key == '/') {
      out[n++] = '~';
      out[n++] = *key == '~' ? '0' : '1';
    } else
      out[n++] = *key;
  return out ? out : "";
}

void patch_put (patch *p, const json *object, const char *path, const char *key, const char *text) {
  error ignored = { 0 };
  const char *full = arena_format (p->arena, &ignored, "%s/%s", path, escaped (p, key));
  if (full && json_is_object (object)) {
    patch_add_text (p, full, text);
    return;
  }
  begin_change (p, path);
  json_add_object (&p->w, "value");
  json_add_text (&p->w, key, text);
  json_close_object (&p->w);
  json_close_object (&p->w);
}

static const char *base64 (const bytes *in, arena *a, error *err) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *out = NEW (a, (in->size + 2) / 3 * 4 + 1, char, err);
  int64_t n = 0;
  for (int64_t i = 0; out && i < in->size; i += 3) {
    unsigned value = 0;
    for (int64_t k = i; k < i + 3; k++)
      value = value << 8 | (k < in->size ? (unsigned char)in->data[k] : 0);
    for (int k = 0; k < 4; k++)
      out[n++] = i + k > in->size ? '=' : letters[value >> (18 - 6 * k) & 63];
  }
  return out;
}

const char *patch_end (patch *p, error *err) {
  bytes text = { 0 };
  const char *out = NULL;
  json_close_array (&p->w);
  if (json_finish (&p->w, &text, err) && p->n)
    out = base64 (&text, p->arena, err);
  bytes_free (&text);
  return out;
}
