/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that is freed together.  The caller makes an arena with a limit; whatever a function puts
   into it lives as long as the arena.  A fuse makes the n-th allocation fail, for tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct arena arena;

/* A place in an arena, to which it can be cut back. */
typedef struct arena_mark {
  void *block;
  int64_t used_bytes;
} arena_mark;

/* NULL only when malloc fails.  limit_bytes <= 0: no limit. */
arena *arena_new (int64_t limit_bytes) MUST_CHECK;
/* Without a limit; where there is no memory err says so. */
arena *arena_made (error *err) MUST_CHECK;
void arena_free (arena *a); /* NULL is allowed */

/* The n-th allocation from now fails, and every one after it; 0: none does. */
void arena_fuse (arena *a, int64_t n);

/* Zeroed room for `count` things of `size` bytes each, aligned for anything. */
void *arena_alloc (arena *a, int64_t count, size_t size, error *err) MUST_CHECK;
char *arena_string (arena *a, const char *text, error *err) MUST_CHECK;
char *arena_string_n (arena *a, const char *text, size_t length, error *err) MUST_CHECK;
char *arena_format (arena *a, error *err, const char *format, ...) MUST_CHECK PRINTF_LIKE (3, 4);

/* Room of *capacity things grows to hold at least `need`; returns the (moved) things or NULL. */
void *arena_grow (arena *a, void *things, int64_t *capacity, int64_t need, size_t size,
                  error *err) MUST_CHECK;

/* Frees all that was allocated after the mark; for scratch of a function. */
arena_mark arena_here (const arena *a);
void arena_back (arena *a, arena_mark mark);

/* All of `from` lives as long as `to` then; `from` is no more. NULL is allowed. */
void arena_join (arena *to, arena *from);

int64_t arena_used_bytes (const arena *a);
int64_t arena_peak_bytes (const arena *a);

/* arena_alloc for `count` of a type. */
#define NEW(a, count, type, err) ((type *)arena_alloc ((a), (count), sizeof (type), (err)))

/* The pointer gets room for `count` of its things, or an array grows; false: there is no memory. */
#define ALLOC(a, pointer, count, err) \
  ((pointer) = arena_alloc ((a), (count), sizeof *(pointer), (err)))
#define GROW(a, array, room, need, err) \
  ((array) = arena_grow ((a), (array), (room), (need), sizeof *(array), (err)))
