/* Memory enters the program by one figure a slot, what must be away there.  That falls with the
   budget, convex, and nothing else does: so optima are convex in the budget too, and a mix of two
   budgets' answers is an answer of the budget between. */
#include "solver/flow.h"

#include <assert.h>

static bool is_level (const flow *f, int32_t column) {
  return f->column_kind[column] == COLUMN_host || f->column_kind[column] == COLUMN_host_first;
}

void flow_set_room (flow *f, int64_t room_bytes) {
  const gaps *g = f->source;
  for (int32_t j = 0; j < f->n_slots; j++) {
    int64_t need = g->base_bytes[f->slots->first[j]] - g->unused_bytes - room_bytes;
    if (slots_is_run (f->slots, j))
      continue;
    need = need > 0 ? flow_grains_down (&f->link, need) : 0;
    f->need[j] = need;
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
