/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Things sorted by their address, the first member of each row. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "executor/emu/core.h"

static uint64_t address_of (const table *t, int64_t i) {
  uint64_t at;
  memcpy (&at, t->rows + i * (int64_t)t->size, sizeof at);
  return at;
}

/* How many rows have an address not above. */
static int64_t rank (const table *t, uint64_t at) {
  return FIRST_WHERE (i, 0, t->count, address_of (t, i) > at);
}

bool table_insert (table *t, const void *row) {
  assert (row && t->size > 0 && t->count <= t->capacity);
  if (t->count == t->capacity) {
    int64_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
    char *moved = realloc (t->rows, (size_t)capacity * t->size);
    if (moved == NULL)
      return false;
    t->rows = moved;
    t->capacity = capacity;
  }
  uint64_t at;
  memcpy (&at, row, sizeof at);
  int64_t i = rank (t, at);
  char *place = t->rows + i * (int64_t)t->size;
  memmove (place + t->size, place, (size_t)(t->count - i) * t->size);
  memcpy (place, row, t->size);
  t->count++;
  return true;
}

void *table_find (const table *t, uint64_t at) {
  int64_t i = rank (t, at);
  return i == 0 ? NULL : t->rows + (i - 1) * (int64_t)t->size;
}

void table_remove (table *t, void *row, int64_t count) {
  char *next = (char *)row + (size_t)count * t->size;
  memmove (row, next, (size_t)(t->rows + t->count * (int64_t)t->size - next));
  t->count -= count;
}
