/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/driver/symbols.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

const char *symbols_take (void *library, const symbol_row *rows, size_t count, void *into) {
  assert (library && rows && into);
  for (size_t i = 0; i < count; i++) {
    void *found = dlsym (library, rows[i].name);
    if (found == NULL && rows[i].must)
      return rows[i].name;
    memcpy ((char *)into + rows[i].offset, &found, sizeof found);
  }
  return NULL;
}
