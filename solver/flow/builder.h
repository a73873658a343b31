/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A flow program while it is built: flow.c sums up the slots, flow_rows.c writes the rows and
   flow_columns.c what stands in them. */
#pragma once

#include "solver/flow/flow.h"

typedef struct flow_builder {
  flow *f;
  const flow_options *o;
  int64_t row_room, column_room, entry_room;
  int64_t column_first; /* entry where the open column began */
  int64_t *passed;      /* n_slots + 1: time in grains before each slot if nothing stalls */
} flow_builder;

static inline int32_t flow_slot_before (const flow *f, int32_t slot) {
  return slot ? slot - 1 : f->n_slots - 1;
}

static inline bool flow_swaps (const flow *f) {
  return f->drops != DROPS_ONLY;
}

/* Time for ops that may run again in slot j, for whatever was dropped. */
static inline int64_t flow_work_room (const flow *f, int32_t j) {
  return f->work_released[j] + (j ? f->work_open[j - 1] : 0) + f->seams.before_work_due[j];
}

/* The columns of seams, and of the chains that cross them. */
void flow_add_seam_columns (flow_builder *b);
/* One column: entries, then its end. */
void flow_begin_column (flow_builder *b);
void flow_put (flow_builder *b, int32_t row, int64_t coef);
int32_t flow_end_column (flow_builder *b, flow_column_kind kind, int32_t at, int64_t low,
                         int64_t high, int64_t cost);

/* All rows; the chains' links are numbered. */
bool flow_add_rows (flow_builder *b, arena *a, error *err) MUST_CHECK;
/* All columns; the slots' sums stand. */
bool flow_add_columns (flow_builder *b, arena *a, error *err) MUST_CHECK;
/* Rows that no column entered say 0 = 0 and would only trouble the solver. */
bool flow_drop_empty_rows (flow *f, arena *a, error *err) MUST_CHECK;
