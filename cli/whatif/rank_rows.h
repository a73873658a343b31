/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of ranks on the cards of one host, each in several budgets: the question that `whatif
   --host` and `advise --host` share. */
#pragma once

#include "cli/call/call.h"
#include "solver/ask/ranks.h"
#include "solver/fleet/curve.h"
#include "solver/fleet/node.h"

enum { RANK_ROWS_MOST = 32 };

/* One number of ranks in one budget; why: there is no plan. */
typedef struct rank_row {
  int32_t ranks;
  int64_t budget_bytes;
  ranks_answer *found; /* or NULL */
  error why;
} rank_row;

typedef struct rank_rows {
  const trace *trace;  /* with its times on the host's card */
  const char *assumed; /* for those times */
  gpu_host host;
  device card;
  curve_options options;
  int64_t floor_bytes, needs_bytes; /* no plan of whole ops takes less; all that it needs */
} rank_rows;

/* The host, its card, the trace as it is on that, the options of the search, and the range. */
bool rank_rows_read (call *c, rank_rows *q) MUST_CHECK;
/* The options and the range, of a trace and card that are there. */
bool rank_rows_range (call *c, rank_rows *q) MUST_CHECK;
/* One rank's question, but its budget. */
ask rank_rows_ask (const rank_rows *q);
/* most_ns: the search ends once it knows if a step is no longer, and a second call, of a row that
   has plans, goes on to the fastest; 0: the fastest at once. That no plan was found is no failure.
 */
bool rank_rows_solve (call *c, const rank_rows *q, int64_t most_ns, rank_row *row) MUST_CHECK;
node_facts rank_rows_facts (const rank_rows *q);
node_row rank_rows_node (const rank_row *row);
