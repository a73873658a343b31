/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/ranks.h"

#include "base/units.h"
#include "cli/figures/columns.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/rank_rows.h"

typedef struct grid {
  rank_rows all;
  int32_t ranks[RANK_ROWS_MOST], n_ranks, n_budgets;
  int64_t budgets[RANK_ROWS_MOST];
  rank_row *rows;
} grid;

/* ---- the question ---- */

static bool read_numbers (call *c, grid *q) {
  const char *rest = call_text (c, "ranks"), *part;
  int64_t one = q->all.host.n_cards;
  if (!rest)
    q->ranks[q->n_ranks++] = q->all.host.n_cards;
  while ((part = next_part (c, &rest))) {
    if (q->n_ranks == RANK_ROWS_MOST)
      return call_usage (c, "--ranks: more than %d", RANK_ROWS_MOST);
    if (!call_part (c, "ranks", part, 0, &one) || !host_has (c, &q->all.host, one))
      return false;
    q->ranks[q->n_ranks++] = (int32_t)one;
  }
  return !c->err.code;
}

static bool refuse_others (call *c) {
  static const char *const others[] = { "link",   "batch", "array", "merge",
                                        "output", "tsv",   "html",  "svg" };
  const char *found = call_first (c, others, sizeof others / sizeof *others);
  if (found)
    return call_usage (c, "--%s is not for ranks: leave it out, or --host NAME", found);
  return c->n_operands == 1 || call_usage (c, "whatif needs a TRACE");
}

static bool read_question (call *c, grid *q) {
  if (!refuse_others (c) || !rank_rows_read (c, &q->all) || !read_numbers (c, q) ||
      !policy_asked_budgets (c, &q->all.card, q->all.needs_bytes, RANK_ROWS_MOST, q->budgets,
                             &q->n_budgets))
    return false;
  return ALLOC (c->arena, q->rows, q->n_ranks * q->n_budgets, &c->err);
}

static bool solve_rows (call *c, grid *q) {
  int32_t n = q->n_ranks * q->n_budgets;
  for (int32_t i = 0; i < n; i++) {
    q->rows[i].ranks = q->ranks[i / q->n_budgets];
    q->rows[i].budget_bytes = q->budgets[i % q->n_budgets];
    if (!rank_rows_solve (c, &q->all, 0, &q->rows[i]))
      return false;
    offline_progress (c, i + 1, n, -1);
  }
  return true;
}

/* ---- the answer ---- */

static void put_row (json_writer *w, const rank_row *r) {
  const ranks_answer *x = r->found;
  json_open_object (w);
  json_add_int (w, "alone_step_ns", x ? x->ways[0].step_ns : -1);
  json_add_int (w, "budget_bytes", r->budget_bytes);
  json_add_int (w, "lower_bound_ns", x ? x->lower_bound_ns : -1);
  json_add_int (w, "pinned_bytes", x ? x->pinned_bytes : -1);
  json_add_int (w, "ranks", r->ranks);
  json_add_int (w, "step_ns", x ? x->ways[x->best].step_ns : -1);
  json_add_text (w, "way", x ? ranks_kinds[x->ways[x->best].kind] : NULL);
  json_add_text (w, "why", x ? NULL : r->why.text);
  json_close_object (w);
}

static bool print_json (call *c, const grid *q) {
  json_writer w;
  node_facts facts = rank_rows_facts (&q->all);
  json_begin_object (&w, 2);
  allowed_write (&w, &q->all.options.allowed);
  json_add_text (&w, "assumed", q->all.assumed);
  json_add_int (&w, "baseline_ns", facts.baseline_ns);
  json_add_int (&w, "card_bytes", facts.card_bytes);
  json_add_int (&w, "cards", facts.cards);
  json_add_text (&w, "device", facts.device);
  json_add_text (&w, "host", facts.host);
  json_add_int (&w, "host_bytes", facts.host_bytes);
  json_add_int (&w, "needs_bytes", facts.needs_bytes);
  json_add_int (&w, "pinnable_bytes", facts.pinnable_bytes);
  json_add_int (&w, "reserved_bytes", facts.reserved_bytes);
  json_add_array (&w, "rows");
  for (int32_t i = 0; i < q->n_ranks * q->n_budgets; i++)
    put_row (&w, &q->rows[i]);
  json_close_array (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static const column heads[] = {
  { "ranks", 0, false }, { "budget", 0, false }, { "for one card", 0, false },
  { "step", 0, false },  { "slower", 1, false }, { "way", 3, true },
  { "bound", 2, false }, { "gap", 0, false },    { "pinned", 4, false },
};

static bool add_row (columns *table, const grid *q, const rank_row *r) {
  const ranks_answer *x = r->found;
  columns_put (table, "%d", r->ranks);
  columns_bytes (table, r->budget_bytes);
  if (!x)
    return columns_end_with (table, "%s", r->why.text);
  int64_t step_ns = x->ways[x->best].step_ns;
  columns_time (table, x->ways[0].step_ns);
  columns_time (table, step_ns);
  columns_put (table, "%+.1f %%", offline_slower (step_ns, trace_total_ns (q->all.trace)));
  columns_put (table, "%s", ranks_kinds[x->ways[x->best].kind]);
  columns_time (table, x->lower_bound_ns);
  columns_put (table, "%.1f %%", offline_slower (step_ns, x->lower_bound_ns));
  columns_bytes (table, x->pinned_bytes);
  return columns_end (table);
}

static bool print_table (call *c, const grid *q) {
  if (!rewriting_print (stdout, c, &q->all.options.allowed))
    return false;
  columns *table = COLUMNS (c, heads);
  for (int32_t i = 0; table && i < q->n_ranks * q->n_budgets; i++)
    if (!add_row (table, q, &q->rows[i]))
      return false;
  return columns_print (table);
}

int whatif_ranks (call *c) {
  grid *q = NEW (c->arena, 1, grid, &c->err);
  bool found = false;
  if (!q || !read_question (c, q) || !solve_rows (c, q) ||
      !(c->json ? print_json (c, q) : print_table (c, q)))
    return call_failed (c);
  for (int32_t i = 0; i < q->n_ranks * q->n_budgets; i++)
    found |= q->rows[i].found != NULL;
  return found || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}
