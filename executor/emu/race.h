/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The race checker: vector clocks over streams and host threads, and for each stretch of memory the
   last writer, the readers since, and whose the bytes are.  It looks at commands when they are
   issued, in the order of the calls: what orders two accesses is already decided then, so a missing
   wait is found whatever the timing, on the first run; and so is who uses bytes that have been
   given to somebody else since, though every access waits for the one before. */
#pragma once

#include "executor/emu/emu.h"

typedef struct race_state race_state;

/* How far each actor (a stream or a host thread) has come. */
typedef struct race_clock {
  int32_t count;
  int32_t *at;
} race_clock;

/* The accessor, for the message and the comparison: actor a's own step. */
typedef struct race_access {
  int32_t actor, step;
  const char *what; /* a name that lives as long as the machine */
} race_access;

typedef struct race_range {
  int64_t place, bytes;
  uint64_t owner; /* as whose they are used; 0: not known */
  bool writes;
  bool begins; /* the owner's from here on */
} race_range;

race_state *race_new (void);
void race_free (race_state *r);

race_clock *race_clock_new (void);
void race_clock_free (race_clock *c);
bool race_clock_join (race_clock *into, const race_clock *from); /* false: no memory */
bool race_clock_set (race_clock *c, int32_t actor, int32_t step);
bool race_clock_knows (const race_clock *c, const race_clock *earlier); /* all of it */

/* `seen` is what is ordered before this access. false: no memory. */
bool race_touch (race_state *r, const race_clock *seen, race_access by, const race_range *x);
int race_list (const race_state *r, emu_race *out, int capacity);
