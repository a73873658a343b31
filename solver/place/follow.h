/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stays that take over places of others, and the waits that this asks for. */
#pragma once

#include "solver/place/circle.h"
#include "solver/place/place.h"

/* Nobody waits for anything yet. */
bool place_begin (const stays *l, arena *a, places *out, error *err) MUST_CHECK;
/* The same again, with the tables that are there. */
void place_again (const stays *l, places *out);

/* `next` is born on a place that `before` left: what it waits for goes into out. */
void place_follow (const stays *l, places *out, int32_t before, int32_t next);

/* Once all runs are known: each stay follows, round the step, the stay that had its places last. */
bool place_follow_all (const stays *l, const circle *c, arena *a, places *out,
                       error *err) MUST_CHECK;
