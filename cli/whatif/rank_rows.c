/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/rank_rows.h"

#include "cli/inputs/hosts.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/whatif.h"

/* The trace with the times of the host's card. */
static bool read_trace (call *c, rank_rows *q) {
  whatif_case on;
  const trace *t = offline_trace (c, c->operands[0], NULL);
  if (!t || !whatif_carry_to (c, t, &q->card, &on))
    return false;
  if (on.trace != t)
    call_note (c, "%s: %s", q->card.name, on.assumed);
  q->trace = on.trace;
  q->assumed = on.assumed;
  return true;
}

bool rank_rows_range (call *c, rank_rows *q) {
  int64_t peak_bytes;
  if (!offline_options (c, q->trace, &q->card, &q->options) ||
      !curve_range (q->trace, &q->card, c->arena, &q->floor_bytes, &peak_bytes, &c->err))
    return false;
  q->floor_bytes = curve_gross (&q->options, q->floor_bytes);
  q->needs_bytes = curve_gross (&q->options, peak_bytes);
  return true;
}

bool rank_rows_read (call *c, rank_rows *q) {
  return host_open (c, &q->host, &q->card) && read_trace (c, q) && rank_rows_range (c, q);
}

ask rank_rows_ask (const rank_rows *q) {
  const curve_options *o = &q->options;
  ask out = ask_default (q->trace, &q->card);
  allowed_into (&o->allowed, &out.options);
  out.options.host_bytes = q->host.pinned_bytes;
  out.options.placement = o->placement;
  out.options.limit_ticks = o->limit_ticks;
  out.options.level = o->level;
  out.options.threads = o->threads;
  out.options.stop = o->stop;
  out.options.stop_context = o->stop_context;
  return out;
}

bool rank_rows_solve (call *c, const rank_rows *q, int64_t most_ns, rank_row *row) {
  ranks_question r = {
    .host = &q->host, .ranks = row->ranks, .most_ns = most_ns, .known = row->found
  };
  ask one = rank_rows_ask (q);
  ranks_answer *found = NEW (c->arena, 1, ranks_answer, &c->err);
  if (!found || !ask_budget (&one, row->budget_bytes, &c->err))
    return false;
  if (ranks_solve_equal (q->trace, &r, &one, c->arena, found, &row->why)) {
    row->found = found;
    return true;
  }
  if (row->why.code == ERR_infeasible || row->why.code == ERR_limit)
    return true;
  c->err = row->why;
  return false;
}

node_facts rank_rows_facts (const rank_rows *q) {
  return (node_facts){ .host = q->host.name,
                       .device = q->card.name,
                       .cards = q->host.n_cards,
                       .card_bytes = q->card.memory_bytes,
                       .reserved_bytes = q->card.reserved_bytes,
                       .host_bytes = q->host.host_bytes,
                       .pinnable_bytes = q->host.pinned_bytes,
                       .baseline_ns = trace_total_ns (q->trace),
                       .needs_bytes = q->needs_bytes };
}

node_row rank_rows_node (const rank_row *row) {
  const ranks_answer *x = row->found;
  return (node_row){ .ranks = row->ranks,
                     .budget_bytes = row->budget_bytes,
                     .step_ns = x ? x->ways[x->best].step_ns : -1,
                     .bound_ns = x ? x->lower_bound_ns : -1,
                     .pinned_bytes = x ? x->pinned_bytes : -1,
                     .why = x ? NULL : row->why.text };
}
