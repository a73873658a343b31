/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the importers from inputs of one kind: tests/corpus/import_json. */
#include "tests/import_fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) {
  import_fuzz (data, size);
  return 0;
}
