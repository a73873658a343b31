/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's table: our own structures, and its errors. test_driver_abi.c holds it against
 * cuda.h. */
#include <stddef.h>
#include <string.h>

#include "executor/driver/driver.h"
#include "tests/suite.h"

CLAIM (our_structures_are_as_large_as_the_table_says) {
#define CONSTANT(name, value)
#define LAYOUT(type, bytes) ck_assert_int_eq (sizeof (type), bytes);
#include "executor/driver/consts.def"
#undef CONSTANT
#undef LAYOUT
}

int main (void) {
  return suite_run ("driver", 20);
}
