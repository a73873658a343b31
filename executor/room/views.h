/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A view is a tensor in one piece, as an op finds it.  The parts of what is moved in parts lie
   in stays of their own; each combination of stays that some op meets is mapped once more, side by
   side, before the first step.  The granules are the plan's own: a view takes addresses and no
   memory.  In an arena they lie side by side already, and there are no views. */
#pragma once

#include "executor/room/room.h"

typedef struct view {
  const int32_t *stays; /* one a part */
  int64_t offset;       /* from `base` */
} view;

typedef struct views {
  const room *room;
  CUdeviceptr base;
  int64_t space_bytes, mapped_bytes;
  view *at;
  int32_t *first; /* per unit, and one behind the last: its views' places in `at` */
} views;

/* The room is open. What was taken before an error goes with views_close, before the room's. */
bool views_open (const room *r, arena *a, views *out, error *err) MUST_CHECK;
void views_close (views *v);

/* The first byte of a tensor as op `op`, which uses it, finds it. */
CUdeviceptr views_at (const views *v, int32_t tensor, int32_t op);
