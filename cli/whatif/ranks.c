/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/ranks.h"

#include "base/units.h"
#include "cli/figures/columns.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/whatif.h"
#include "solver/ask/ranks.h"

enum { MOST = 32 };

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
  int32_t ranks[MOST], n_ranks, n_budgets;
  int64_t budgets[MOST];
  rank_row *rows;
} rank_rows;

/* ---- the question ---- */

static bool read_numbers (call *c, rank_rows *q) {
  const char *rest = call_text (c, "ranks"), *part;
  int64_t one = q->host.n_cards;
  if (!rest)
    q->ranks[q->n_ranks++] = q->host.n_cards;
  while ((part = next_part (c, &rest))) {
    if (q->n_ranks == MOST)
      return error_set (&c->err, ERR_usage, "--ranks: more than %d", MOST);
    if (!call_part (c, "ranks", part, 0, &one) || !host_has (c, &q->host, one))
      return false;
    q->ranks[q->n_ranks++] = (int32_t)one;
  }
  return !c->err.code;
}

static bool refuse_others (call *c) {
  static const char *const others[] = { "link",   "batch", "array", "merge",
                                        "output", "tsv",   "html",  "svg" };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (call_has_option (c, others[i]) && call_text (c, others[i]))
      return error_set (&c->err, ERR_usage, "--%s is not for ranks: leave it out, or --host NAME",
                        others[i]);
  return c->n_operands == 1 || error_set (&c->err, ERR_usage, "whatif needs a TRACE");
}

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

static bool read_question (call *c, rank_rows *q) {
  int64_t floor_bytes, peak_bytes;
  if (!refuse_others (c) || !host_open (c, &q->host, &q->card) || !read_numbers (c, q) ||
      !read_trace (c, q) || !offline_options (c, q->trace, &q->card, &q->options) ||
      !curve_range (q->trace, &q->card, c->arena, &floor_bytes, &peak_bytes, &c->err) ||
      !policy_asked_budgets (c, &q->card, curve_gross (&q->options, peak_bytes), MOST, q->budgets,
                             &q->n_budgets))
    return false;
  q->rows = NEW (c->arena, q->n_ranks * q->n_budgets, rank_row, &c->err);
  return q->rows;
}

static ask ask_of (const rank_rows *q) {
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

static bool solve_row (call *c, const rank_rows *q, rank_row *row) {
  ranks_question r = { &q->host, row->ranks };
  ask one = ask_of (q);
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

static bool solve_rows (call *c, rank_rows *q) {
  int32_t n = q->n_ranks * q->n_budgets;
  for (int32_t i = 0; i < n; i++) {
    q->rows[i].ranks = q->ranks[i / q->n_budgets];
    q->rows[i].budget_bytes = q->budgets[i % q->n_budgets];
    if (!solve_row (c, q, &q->rows[i]))
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

static bool print_json (call *c, const rank_rows *q) {
  json_writer w;
  json_begin (&w, 2);
  json_open_object (&w);
  json_put_key (&w, "allowed");
  allowed_write (&w, &q->options.allowed);
  json_add_text (&w, "assumed", q->assumed);
  json_add_int (&w, "baseline_ns", trace_total_ns (q->trace));
  json_add_text (&w, "device", q->card.name);
  json_add_text (&w, "host", q->host.name);
  json_put_key (&w, "rows");
  json_open_array (&w);
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
enum { HEADS = sizeof heads / sizeof *heads };

static bool add_row (columns *table, const rank_rows *q, const rank_row *r) {
  char a[HEADS][UNITS_TEXT];
  const ranks_answer *x = r->found;
  snprintf (a[0], UNITS_TEXT, "%d", r->ranks);
  const char *cells[HEADS] = { a[0], units_bytes (a[1], r->budget_bytes) };
  if (!x)
    return columns_row (table, cells, r->why.text);
  int64_t step_ns = x->ways[x->best].step_ns;
  snprintf (a[4], UNITS_TEXT, "%+.1f %%", offline_slower (step_ns, trace_total_ns (q->trace)));
  snprintf (a[7], UNITS_TEXT, "%.1f %%", offline_slower (step_ns, x->lower_bound_ns));
  cells[2] = units_time (a[2], x->ways[0].step_ns);
  cells[3] = units_time (a[3], step_ns);
  cells[4] = a[4];
  cells[5] = ranks_kinds[x->ways[x->best].kind];
  cells[6] = units_time (a[6], x->lower_bound_ns);
  cells[7] = a[7];
  cells[8] = units_bytes (a[8], x->pinned_bytes);
  return columns_row (table, cells, NULL);
}

static bool print_table (call *c, const rank_rows *q) {
  if (!rewriting_print (stdout, c, &q->options.allowed))
    return false;
  columns *table = columns_new (c, heads, HEADS);
  for (int32_t i = 0; table && i < q->n_ranks * q->n_budgets; i++)
    if (!add_row (table, q, &q->rows[i]))
      return false;
  if (table)
    columns_print (table);
  return table;
}

int whatif_ranks (call *c) {
  rank_rows *q = NEW (c->arena, 1, rank_rows, &c->err);
  bool found = false;
  if (!q || !read_question (c, q) || !solve_rows (c, q) ||
      !(c->json ? print_json (c, q) : print_table (c, q)))
    return call_failed (c);
  for (int32_t i = 0; i < q->n_ranks * q->n_budgets; i++)
    found |= q->rows[i].found != NULL;
  return found || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}
