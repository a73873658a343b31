/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory enters the program by one figure a slot, what must be away there.  That falls with the
   budget, convex, and nothing else does: so optima are convex in the budget too, and a mix of two
   budgets' answers is an answer of the budget between. */
#include "solver/flow/flow.h"

#include <assert.h>

static bool is_level (const flow *f, int32_t column) {
  return f->column_kind[column] == COLUMN_host || f->column_kind[column] == COLUMN_host_first;
}

void flow_set_room (flow *f, int64_t room_bytes) {
  assert (f->slots && f->source);
  for (int32_t j = 0; j < f->n_slots; j++) {
    int64_t need = f->need[j] = flow_need_of (f, j, room_bytes);
    if (slots_is_run (f->slots, j))
      continue;
    if (f->row[ROW_need_first][j] >= 0)
      f->row_limit[f->row[ROW_need_first][j]] = need;
    if (f->row[ROW_need][j] >= 0)
      f->row_limit[f->row[ROW_need][j]] = need;
  }
  for (int32_t c = 0; f->n_classes == 1 && c < f->n_columns; c++)
    if (is_level (f, c)) { /* one class: the level itself has the limit */
      f->low[c] = f->need[f->column_at[c]];
      assert (f->low[c] <= f->high[c]);
    }
}
