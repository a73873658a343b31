/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which granules each stay gets, and what the next owner of a granule has to wait for.

   The moments of one step lie on a circle.  It is cut where fewest granules are held; stays that
   cross the cut get their granules first and lend them, between their end and their next birth, to
   stays that fit in between. */
#pragma once

#include "solver/place/stays.h"

#define NOTHING_NEEDED INT64_MIN /* no wait */

typedef struct places {
  granule_run *runs;
  int64_t n_runs;
  int64_t *first_run; /* per stay, count + 1 */
  int64_t granules;   /* how many were used; more than `budget` where they do not suffice */
  /* counts, relative to its step, that an op or a copy in must wait for */
  int64_t *op_outs, *in_ops, *in_outs;
  /* if granules did not suffice: per move, the ops after which its copy in should start for them to
     suffice next time; NO_WAIT: as it was */
  int32_t *wait_ops;
  int32_t *in_order; /* of the copies in, where it is another one than that of the run; or NULL */
  int64_t ticks;     /* that offsets took: windows that were looked at */
  bool tangled;      /* an owner would have to wait for one behind it: another run is needed */
  bool waits;        /* wait_ops lets parts have the same granules in turn */
} places;

/* Like place, but every stay of a part has the same granules. */
bool place_same (const stays *l, moment period, moment start, int64_t budget, arena *a, places *out,
                 error *err) MUST_CHECK;

/* An arena's, in its steps. */
typedef struct arena_budget {
  int64_t granules, ticks; /* enough; what may be spent on finding offsets */
  int64_t late_ticks;      /* and on better ones of stays that are there for less; 0: none are */
} arena_budget;

/* Like place, but every stay has one stretch, and the parts of a unit that an op finds lie side by
   side. The granules are the height of the arena. */
bool place_arena (const stays *l, moment period, moment start, const arena_budget *most, arena *a,
                  places *out, error *err) MUST_CHECK;

bool place (const stays *l, moment period, moment start, int64_t budget, arena *a, places *out,
            error *err) MUST_CHECK;
