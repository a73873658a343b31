/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Networks of the zoo for tests: a room and an error that last one claim, and a card with a
 * roofline. */
#pragma once

#include "tests/suite.h"
#include "trace/zoo/zoo.h"

extern const device card;

extern arena *room;
extern error err;

const char *told (void); /* what `err` says */
trace *made (const zoo_request *r);
compute read_compute (const trace *t, int32_t i);
/* Before and after each claim. */
void zoo_set_up (void);
void zoo_tear_down (void);
