/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the planner and the policies: tests/corpus/solve. */
#include "tests/solve_fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) {
  solve_fuzz (data, size);
  return 0;
}
