/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that share a card. They find each other by a name; a folder of theirs has the table of
   who has how much room (executor/shim/step/block.h). One of their launchers serves: it says who gets
   how much. Whoever it is has a unix socket of the group's name, which is free again when it ends
   or is killed; the next who tries then has it, and reads all there is to know in the table. */
#pragma once

#include "base/roster.h"
#include "cli/run/program.h"
#include "trace/device.h"

typedef struct share {
  roster group;
  char folder[SHIM_PATH - 64];
  int socket; /* -1: another serves */
  int64_t granule_bytes;
  const device *device; /* of the plans for all */
  pid_t packer;         /* -1: none */
  int64_t packing;      /* for which members */
  bool sat;             /* the program was on the card */
  bool said;            /* that it waits */
} share;

/* A row in the group's table; the program's configuration then names it. The device lives as long.
 */
bool share_join (call *c, const char *name, const device *d, shim_config *k, share *g) MUST_CHECK;
/* Room for the least that it needs is granted; false: not yet. */
bool share_may_start (call *c, share *g);
/* From time to time: serves the group if nobody else does. */
void share_serve (call *c, share *g, const shim_block *b);
/* The program's step is known. */
bool share_tell_step (call *c, const share *g, const trace *t) MUST_CHECK;
/* The program has ended; the last one tidies up. */
void share_leave (share *g);
/* The most that all had at once by the emulator's count; -1: not known. */
int64_t share_high_bytes (const share *g);
/* The group as the one who serves it tells, in JSON. */
bool share_ask (call *c, const char *name) MUST_CHECK;
