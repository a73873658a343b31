/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rest of a card's link while others of its host copy: the links that ranks are planned
   for. */
#pragma once

#include "solver/ask/ranks.h"

/* The ranks that share links: those that copy, a bit a rank. */
typedef struct sharing {
  const ranks_question *r;
  uint64_t copying;
} sharing;

sharing sharing_all (const ranks_question *r);
/* A way that no group slows down keeps the rate of the card alone. */
device_link sharing_both (const sharing *s, int32_t rank);
/* The fastest link that a rank can have while all ranks like it follow one plan: the bound of plans
   for this link holds for every plan that they share. */
device_link sharing_one_way (const sharing *s, int32_t rank);
/* The kind is one before RANKS_turns. */
device_link sharing_link (const sharing *s, ranks_kind kind, int32_t rank);
bool sharing_same (const device_link *a, const device_link *b);
