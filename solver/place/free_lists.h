/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Free granules in lists, oldest first.  A list belongs to one stay that crosses the cut of the
   circle and comes back to it; list 0 is common. */
#pragma once

#include "base/arena.h"

/* Free granules in a row, and the stay that held them last, or -1. */
typedef struct free_run {
  int32_t first, count, before;
} free_run;

typedef struct free_list {
  free_run *at; /* oldest first: at[head .. head + used) */
  int64_t head, used, room;
  int32_t granules; /* free here now */
  int64_t back;     /* rank at which its owner is born again; the common list: never */
  int32_t owner;
} free_list;

typedef struct free_lists {
  free_list *at;
  int32_t count;
  int64_t room;
  uint64_t *stocked; /* one bit a list: it has granules; most have none at any moment */
} free_lists;

/* `count` empty lists; the room of earlier ones in this arena is used again. */
bool free_lists_make (int32_t count, arena *a, free_lists *out, error *err) MUST_CHECK;
/* The first free_list from `h` on with granules, or count; the last one up to `h`, or -1. */
int32_t free_lists_from (const free_lists *x, int32_t h);
int32_t free_lists_until (const free_lists *x, int32_t h);
bool free_lists_give (free_lists *x, int32_t h, free_run run, arena *a, error *err) MUST_CHECK;
/* Takes a run of at most `most` off the oldest; there must be one. */
free_run free_lists_take (free_lists *x, int32_t h, int32_t most);
