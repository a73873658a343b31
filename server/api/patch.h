/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A JSON patch (RFC 6902) as it is made, and its text in base64, in which an admission review has
 * it. */
#pragma once

#include "base/json.h"

typedef struct patch {
  json_writer w;
  arena *arena;
  int n;
} patch;

void patch_begin (patch *p, arena *a);
void patch_add_text (patch *p, const char *path, const char *text);
void patch_add_raw (patch *p, const char *path, const char *json_text);
/* A member of an object that may be absent: then it is made, with that member alone. */
void patch_put (patch *p, const json *object, const char *path, const char *key, const char *text);
/* NULL: no change, or *err. */
const char *patch_end (patch *p, error *err);
