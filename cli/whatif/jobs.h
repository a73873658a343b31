/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces of work in processes of their own, a few at a time.  What each prints is kept and comes
   out in the order of the pieces, so the answer does not depend on which was done first. */
#pragma once

#include <stdio.h>

#include "cli/call/call.h"

/* Prints with stdio; false and *err where it failed. */
typedef bool jobs_piece (void *context, int piece, error *err);
/* The text that piece `piece` printed, from its beginning on. */
typedef bool jobs_take (void *context, int piece, FILE *printed, error *err);

/* `take` is called for every piece in order, in this process, up to the first that failed. Where an
   interrupt was asked for (stopping_begin), those that run are told once, and none is begun any
   more: pieces that were not begun are not taken. */
bool jobs_run (call *c, int pieces, int jobs, jobs_piece *run, jobs_take *take, void *context,
               error *err) MUST_CHECK;

/* A jobs_take: prints it. */
bool jobs_print (void *context, int piece, FILE *printed, error *err);
