/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of solver/place/schedule; nothing else needs it. */
#pragma once

#include "solver/place/host_pack.h"
#include "solver/place/stays.h"
#include "solver/place/place.h"

typedef struct scheduling {
  const schedule_request *request;
  const trace *trace;
  const device *device;
  const schedule_options *options;
  const index_list *groups;
  int32_t n_groups;
  arena *arena;
  error *err;
  schedule_shortage *shortage;
  int64_t granule_bytes, pool_below_bytes, budget_granules;
  units units;
  wish *moves;
  int32_t *wished; /* per move: the start that was asked for */
  int32_t n_moves;
  stays stays;
  int32_t *usual_order; /* of the copies in, while others pass; with same_places alone */
  bool usual_by_need, passed;
  places places;
  int64_t ticks;    /* that places took, over all tries */
  host_span *spans; /* one per copy that the host holds */
  int32_t n_spans;
  int32_t *span_of; /* per move */
  plan *plan;
} scheduling;

/* Calls `visit` with the moves of each part of each unit, in order of out_after. */
typedef bool part_visit (scheduling *s, const int32_t *moves, int32_t count, arena *scratch);
bool schedule_each_part (scheduling *s, arena *scratch, part_visit *visit) MUST_CHECK;

/* Orders, times and places: the stays, and what each of them waits for. */
bool schedule_place (scheduling *s) MUST_CHECK;
/* The step's length by bytes alone, as if there were a place for everything that memory holds. */
bool schedule_guess (scheduling *s, int64_t *step_ns) MUST_CHECK;

bool schedule_write_head (scheduling *s) MUST_CHECK;
/* All but the head, once everything has its place. */
bool schedule_write (scheduling *s, arena *scratch) MUST_CHECK;

static inline int64_t schedule_part_bytes (const scheduling *s, const wish *w) {
  return unit_part_bytes (&s->units.at[w->unit], s->granule_bytes, w->part, w->of);
}
