/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Python's pickle, as far as it is data.  A pickle is a program for a small machine; this reader
   knows the instructions that build numbers, texts, lists and dicts, and refuses all that could
   call something.  The file is untrusted: lengths, stack and memo are bounded by its size. */
#pragma once

#include "trace/import/common/stream.h"

typedef enum pickle_kind {
  PICKLE_NONE,
  PICKLE_BOOL,
  PICKLE_INT,
  PICKLE_REAL, /* its value is not kept, nor that of an integer beyond 64 bits */
  PICKLE_TEXT, /* and bytes */
  PICKLE_LIST, /* and tuples */
  PICKLE_DICT  /* items: key, value, key, value, ... */
} pickle_kind;

typedef struct pickle_value {
  union {
    int64_t number;
    const char *text;
    int32_t *items; /* places in `values` */
  };
  int64_t room;
  int32_t count; /* of bytes, or of items */
  uint8_t kind;
} pickle_value;

typedef struct pickle {
  pickle_value *values;
  int32_t n_values;
  int32_t root;
} pickle;

bool pickle_read (const char *text, int64_t size, arena *a, pickle *out, error *err) MUST_CHECK;

/* NULL where the value is no dict or has no such key (only the first 64 are looked at). */
const pickle_value *pickle_get (const pickle *p, const pickle_value *dict, const char *key);
/* NULL where it is no list or too short. */
const pickle_value *pickle_item (const pickle *p, const pickle_value *list, int64_t index);
int64_t pickle_count (const pickle_value *list); /* 0: no list */
int64_t pickle_int (const pickle_value *v, int64_t otherwise);
slice pickle_text (const pickle_value *v); /* empty: no text */
