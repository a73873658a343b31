/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An interrupt, or a request to end, lets a long command finish with what it knows; a second one
   ends the program at once. */
#pragma once

#include <signal.h>

#include "cli/call/call.h"

/* From here on interrupts are kept for stopping_asked. A second call changes nothing. */
void stopping_begin (call *c);
/* After these seconds stopping_due says so, though nobody has asked. */
void stopping_after (call *c, int64_t seconds);
bool stopping_asked (const call *c);
/* Either. */
bool stopping_due (const call *c);

/* Around a fork: interrupts wait until `was` is the mask again. */
void stopping_hold (sigset_t *was);
/* In the child, which gets interrupts from its parent alone: none that waits is its own, and where
   there was one already, another does not end it. `was` is its mask again. */
void stopping_in_child (const call *c, const sigset_t *was);
/* Asks such a child to stop, by a signal that it heeds. */
void stopping_tell (pid_t child);
