/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts to small numbers: names, thread ids, sources.  Everything lives in the arena. */
#pragma once

#include "trace/import/common/stream.h"

typedef struct intern {
  arena *arena;
  slice *texts;
  int32_t *slots; /* number + 1; 0: empty */
  int64_t room, n_slots;
  int32_t count;
} intern;

intern intern_new (arena *a);
/* The text's number, new or old; -1 when out of memory.  The text itself is not copied unless
   `copy`: a slice of a file outlives the table. */
int32_t intern_add (intern *n, slice text, bool copy, error *err) MUST_CHECK;
/* -1: not there. */
int32_t intern_find (const intern *n, slice text);

/* Numbers to small numbers likewise: ids, addresses, correlations. */
typedef struct id_map {
  arena *arena;
  int64_t *keys;
  int32_t *values; /* INT32_MIN: empty */
  int64_t n_slots, count;
} id_map;

id_map id_map_new (arena *a);
/* The value's place for reading and writing; a new key's value is -1.  NULL: out of memory. */
int32_t *id_map_at (id_map *m, int64_t key, error *err) MUST_CHECK;
/* -1: not there. */
int32_t id_map_find (const id_map *m, int64_t key);
