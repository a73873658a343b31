/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which stay, a time on the device, holds a part of a unit when an op runs. */
#pragma once

#include "trace/unit.h"

typedef struct stay_map {
  const plan *plan;
  int32_t *of;                       /* per unit: in how many parts it moves */
  int32_t *first_part;               /* per unit: its parts' place in the two below */
  int32_t *birth_stay;               /* per part; -1: none */
  int32_t *move_offset, *part_moves; /* the moves of each part, in order of in_before */
  int32_t *move_stay, *work_stay;    /* per move; per op; -1: none */
} stay_map;

bool stays_map (const units *u, const plan *p, arena *a, stay_map *out, error *err) MUST_CHECK;

/* The stay in which op `op` finds a part; -1: the plan gives it none. */
int32_t stays_at (const stay_map *m, int32_t unit, int32_t part, int32_t op);
/* At the boundary of two steps: a stay, or -1 where the part is away. *away is then its move. */
int32_t stays_between (const stay_map *m, int32_t unit, int32_t part, int32_t *away);
