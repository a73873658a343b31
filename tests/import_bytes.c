/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/import_bytes.h"

#include <string.h>

void put (written *o, const void *data, int64_t size) {
  ck_assert_int_le (o->n + size, (int64_t)sizeof o->at);
  memcpy (o->at + o->n, data, (size_t)size);
  o->n += size;
}

void put_byte (written *o, int byte) {
  unsigned char c = (unsigned char)byte;
  put (o, &c, 1);
}

trace *import_bytes (const void *data, int64_t size, import_report *r, error *err) {
  trace *t;
  import_source source = { "x", data, size };
  memset (err, 0, sizeof *err);
  bool ok = import_memory (&source, 1, NULL, import_arena (), &t, r, err);
  ck_assert (ok == (t != NULL));
  return t;
}
