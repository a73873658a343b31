/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of a library that is loaded at run time, into a struct with a pointer for each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct symbol_row {
  size_t offset; /* of the pointer */
  const char *name;
  bool must; /* else the pointer may be NULL */
} symbol_row;

/* The first that must be there and is not; NULL: the struct is full. */
const char *symbols_take (void *library, const symbol_row *rows, size_t count, void *into);
