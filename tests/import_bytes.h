/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles in binary forms, written by tests byte by byte. */
#pragma once

#include "tests/import_case.h"
#include "trace/import/import.h"

typedef struct written {
  unsigned char at[8192];
  int64_t n;
} written;

void put (written *o, const void *data, int64_t size);
void put_byte (written *o, int byte);

/* NULL: refused, and err says why. */
trace *import_bytes (const void *data, int64_t size, import_report *r, error *err);
