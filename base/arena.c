/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks in a list, each twice the last up to 16 MiB; a large request gets a block of its own.
   Blocks come from calloc, so that the pages of a large table that nobody touches cost nothing.
   Those given back are kept, up to a limit, as whoever goes back does it again and again. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

enum {
  ALIGN = 16,
  FIRST_BLOCK = 16 * 1024,
  LARGEST_BLOCK = 16 * 1024 * 1024,
  MOST_SPARE = 16 * 1024 * 1024
};

typedef struct block {
  struct block *older;
  int64_t size, used;
  int64_t dirty; /* bytes that were handed out once and so may not be zero */
} block;

struct arena {
  block *newest, *spare; /* spare: in no use, the last one given back first */
  int64_t spare_bytes;
  int64_t limit_bytes, used_bytes, peak_bytes, next_block;
  int64_t fuse;
  bool burnt;
};

arena *arena_new (int64_t limit_bytes) {
  arena *a = calloc (1, sizeof *a);
  if (!a)
    return NULL;
  a->limit_bytes = limit_bytes;
  a->next_block = FIRST_BLOCK;
  return a;
}

arena *arena_made (error *err) {
  arena *a = arena_new (0);
  if (!a)
    error_memory (err);
  return a;
}

static void free_all (block *b) {
  while (b) {
    block *older = b->older;
    free (b);
    b = older;
  }
}

void arena_free (arena *a) {
  if (!a)
    return;
  free_all (a->newest);
  free_all (a->spare);
  free (a);
}

void arena_fuse (arena *a, int64_t n) {
  a->fuse = n;
  a->burnt = false;
}

static bool fuse_blows (arena *a) {
  if (a->fuse > 0 && --a->fuse == 0)
    a->burnt = true;
  return a->burnt;
}

/* A spare block of at least `bytes`, or NULL. */
static block *block_spare (arena *a, int64_t bytes) {
  block **at = &a->spare;
  while (*at && (*at)->size < bytes)
    at = &(*at)->older;
  block *b = *at;
  if (b) {
    *at = b->older;
    a->spare_bytes -= b->size;
  }
  return b;
}

static block *block_made (arena *a, int64_t bytes) {
  int64_t size = bytes > a->next_block ? bytes : a->next_block;
  if (a->limit_bytes > 0 && size > a->limit_bytes - a->used_bytes)
    size = bytes;
  block *b = calloc (1, sizeof *b + (size_t)size);
  if (!b)
    return NULL;
  b->size = size;
  if (a->next_block < LARGEST_BLOCK)
    a->next_block *= 2;
  return b;
}

static block *block_new (arena *a, int64_t bytes) {
  block *b = block_spare (a, bytes);
  if (!b && !(b = block_made (a, bytes)))
    return NULL;
  b->older = a->newest;
  a->newest = b;
  return b;
}

void *arena_alloc (arena *a, int64_t count, size_t size, error *err) {
  int64_t bytes;
  assert (count >= 0);
  if (__builtin_mul_overflow (count, (int64_t)size, &bytes) || bytes > INT64_MAX / 4) {
    error_set (err, ERR_memory, "a table of %lld rows is too large", (long long)count);
    return NULL;
  }
  bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
  if (a->limit_bytes > 0 && bytes > a->limit_bytes - a->used_bytes) {
    char limit[UNITS_TEXT];
    error_set (err, ERR_memory, "this needs more than the memory limit of %s",
               units_bytes (limit, a->limit_bytes));
    return NULL;
  }
  block *b = a->newest;
  if (fuse_blows (a) || ((!b || bytes > b->size - b->used) && !(b = block_new (a, bytes)))) {
    error_memory (err);
    return NULL;
  }
  char *room = (char *)(b + 1) + b->used;
  if (b->used < b->dirty) /* given back by arena_back */
    memset (room, 0, (size_t)bytes);
  b->used += bytes;
  if (b->used > b->dirty)
    b->dirty = b->used;
  a->used_bytes += bytes;
  if (a->used_bytes > a->peak_bytes)
    a->peak_bytes = a->used_bytes;
  return room;
}

char *arena_string_n (arena *a, const char *text, size_t length, error *err) {
  char *copy = arena_alloc (a, (int64_t)length + 1, 1, err);
  if (copy)
    memcpy (copy, text, length);
  return copy;
}

char *arena_string (arena *a, const char *text, error *err) {
  return arena_string_n (a, text, strlen (text), err);
}

char *arena_format (arena *a, error *err, const char *format, ...) {
  va_list args;
  va_start (args, format);
  int length = vsnprintf (NULL, 0, format, args);
  va_end (args);
  if (length < 0) {
    error_set (err, ERR_internal, "a text cannot be formatted");
    return NULL;
  }
  char *text = arena_alloc (a, (int64_t)length + 1, 1, err);
  if (!text)
    return NULL;
  va_start (args, format);
  vsnprintf (text, (size_t)length + 1, format, args);
  va_end (args);
  return text;
}

void *arena_grow (arena *a, void *things, int64_t *capacity, int64_t need, size_t size,
                  error *err) {
  if (need <= *capacity)
    return things;
  int64_t larger = *capacity < 8 ? 8 : *capacity * 2;
  if (larger < need)
    larger = need;
  void *moved = arena_alloc (a, larger, size, err);
  if (!moved)
    return NULL;
  if (*capacity)
    memcpy (moved, things, (size_t)*capacity * size);
  *capacity = larger;
  return moved;
}

arena_mark arena_here (const arena *a) {
  return (arena_mark){ a->newest, a->newest ? a->newest->used : 0 };
}

static void block_back (arena *a, block *b) {
  if (b->size > MOST_SPARE - a->spare_bytes) {
    a->next_block = min_of (a->next_block, b->size); /* clearing large ones is dear */
    free (b);
    return;
  }
  b->used = 0;
  b->older = a->spare;
  a->spare = b;
  a->spare_bytes += b->size;
}

void arena_back (arena *a, arena_mark mark) {
  while (a->newest != mark.block) {
    block *older = a->newest->older;
    a->used_bytes -= a->newest->used;
    block_back (a, a->newest);
    a->newest = older;
  }
  if (a->newest) {
    a->used_bytes -= a->newest->used - mark.used_bytes;
    a->newest->used = mark.used_bytes;
  }
}

/* Behind the newest block, so that what is free in that one stays in use. */
void arena_join (arena *to, arena *from) {
  assert (to && to != from);
  if (!from)
    return;
  block *last = from->newest, **behind = to->newest ? &to->newest->older : &to->newest;
  while (last && last->older)
    last = last->older;
  if (last) {
    last->older = *behind;
    *behind = from->newest;
  }
  to->used_bytes += from->used_bytes;
  to->peak_bytes = to->used_bytes > to->peak_bytes ? to->used_bytes : to->peak_bytes;
  free_all (from->spare);
  free (from);
}

int64_t arena_used_bytes (const arena *a) {
  return a->used_bytes;
}

int64_t arena_peak_bytes (const arena *a) {
  return a->peak_bytes;
}
