/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stays by the bytes that they lie in; nothing but the files of solver/place/late needs it. */
#pragma once

#include "solver/place/late.h"

typedef struct lying {
  int64_t at;
  int32_t stay;
} lying;

void late_sort (lying *at, int32_t count);

/* Calls it for each two that share a byte; they are sorted by their bottoms. */
void late_each_two (const stays *l, const lying *at,
                    void (*visit) (void *context, int32_t x, int32_t y), void *context,
                    int64_t *ticks);

/* From the birth of stay i, by a copy, to the start of its op; and what a copy takes by itself. */
int64_t late_way_ns (const late_stays *s, int32_t i);
int64_t late_copy_ns (const stays *l, int32_t move, bool out);
