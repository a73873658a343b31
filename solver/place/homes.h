/* Free granules by home, oldest first.  A home is what one stay that crosses the cut of the circle
   comes back to, or the common one, 0. */
#ifndef FERRY_SOLVER_PLACE_HOMES_H
#define FERRY_SOLVER_PLACE_HOMES_H

#include "base/arena.h"

/* Free granules in a row, and the stay that held them last, or -1. */
typedef struct free_run {
  int32_t first, count, before;
} free_run;

typedef struct home {
  free_run *at; /* oldest first: at[head .. head + used) */
  int64_t head, used, room;
  int32_t granules; /* free here now */
  int64_t back;     /* rank at which its owner is born again; the common home: never */
  int32_t owner;
} home;

typedef struct homes {
  home *at;
  int32_t count;
  uint64_t *stocked; /* one bit a home: it has granules; most have none at any moment */
} homes;

bool homes_make (int32_t count, arena *a, homes *out, error *err) MUST_CHECK;
/* The first home from `h` on with granules, or count; the last one up to `h`, or -1. */
int32_t homes_from (const homes *x, int32_t h);
int32_t homes_until (const homes *x, int32_t h);
bool homes_give (homes *x, int32_t h, free_run run, arena *a, error *err) MUST_CHECK;
/* Of the oldest run, at most so many; there must be one. */
free_run homes_take (homes *x, int32_t h, int32_t most);

#endif
