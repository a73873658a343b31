/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/whatif/stages.h"

#include "base/order.h"
#include "base/units.h"
#include "cli/figures/columns.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/rank_rows.h"

enum { MOST_POINTS = 512, POINTS = 12, ALL_PPM = 1000000, FINE_PPM = 10000 };

typedef struct stages {
  rank_rows of[HOST_MOST_CARDS]; /* by trace; rank r has trace r % n_traces */
  gpu_host host;
  device card;
  int32_t n_traces, ranks;
  int64_t baseline_ns; /* of the slowest */
  int64_t floor_ppm;   /* of its needs, the largest share that a trace cannot do without */
} stages;

/* One budget a trace; why: there is no plan. */
typedef struct stage_row {
  int64_t budget_bytes[HOST_MOST_CARDS];
  ranks_answer *found;
  error why;
} stage_row;

/* ---- the question ---- */

static bool refuse_others (call *c) {
  static const char *const others[] = { "tsv", "html", "svg", "output", "fine" };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (call_has_option (c, others[i]) && call_given (c, others[i]))
      return call_usage (c,
                         "--%s is for one trace: leave it out; `ferry solve --host NAME` makes "
                         "plans for several",
                         others[i]);
  return host_asked (c) || call_usage (c, "several traces are ranks of one job: give --host NAME; "
                                          "`ferry hosts` lists the names");
}

static bool read_trace (call *c, stages *q, int32_t i) {
  rank_rows *x = &q->of[i];
  int32_t same = call_same_operand (c, i);
  if (same < i) {
    *x = q->of[same];
    return true;
  }
  x->host = q->host;
  x->card = q->card;
  x->trace = offline_trace (c, c->operands[i], NULL);
  if (!x->trace || !rank_rows_range (c, x)) {
    error_in_file (&c->err, c->operands[i]);
    return false;
  }
  q->baseline_ns = max_of (q->baseline_ns, trace_total_ns (x->trace));
  if (x->needs_bytes)
    q->floor_ppm = max_of (q->floor_ppm, units_scale (x->floor_bytes, ALL_PPM, x->needs_bytes) + 1);
  return device_tell_times (c, x->trace, &x->card);
}

static bool read_question (call *c, stages *q) {
  q->n_traces = c->n_operands;
  if (!refuse_others (c) || !host_ranks_of (c, q->n_traces, &q->host, &q->card, &q->ranks))
    return false;
  for (int32_t i = 0; i < q->n_traces; i++)
    if (!read_trace (c, q, i))
      return false;
  q->floor_ppm = min_of (q->floor_ppm, ALL_PPM);
  return true;
}

/* ---- rows ---- */

/* The same share for each, in whole granules, as far as the card has it. */
static void set_share (const stages *q, int64_t ppm, stage_row *row) {
  for (int32_t i = 0; i < q->n_traces; i++) {
    const device *d = &q->of[i].card;
    int64_t granules =
        units_div_up (units_scale (q->of[i].needs_bytes, ppm, ALL_PPM), d->granule_bytes);
    row->budget_bytes[i] =
        min_of (granules * d->granule_bytes, d->memory_bytes - d->reserved_bytes);
  }
}

static bool solve_row (call *c, const stages *q, int64_t most_ns, stage_row *row) {
  ask *asks = NEW (c->arena, q->n_traces, ask, &c->err);
  ranks_answer *found = NEW (c->arena, 1, ranks_answer, &c->err);
  ranks_job jobs[HOST_MOST_CARDS];
  ranks_question r = {
    .host = &q->host, .ranks = q->ranks, .most_ns = most_ns, .known = row->found
  };
  if (!asks || !found)
    return false;
  for (int32_t i = 0; i < q->n_traces; i++) {
    asks[i] = rank_rows_ask (&q->of[i]);
    if (!ask_budget (&asks[i], row->budget_bytes[i], &c->err))
      return false;
  }
  for (int32_t i = 0; i < q->ranks; i++) {
    int32_t at = call_same_operand (c, i % q->n_traces);
    jobs[i] = (ranks_job){ q->of[at].trace, &asks[at] };
  }
  row->why = (error){ 0 };
  if (ranks_solve (jobs, &r, c->arena, found, &row->why)) {
    row->found = found;
    return true;
  }
  if (row->why.code == ERR_infeasible || row->why.code == ERR_limit)
    return true;
  c->err = row->why;
  return false;
}

static const ranks_way *way_of (const stage_row *row) {
  return &row->found->ways[row->found->best];
}

static void put_budgets (json_writer *w, const stages *q, const stage_row *row) {
  json_add_array (w, "budget_bytes");
  for (int32_t i = 0; i < q->n_traces; i++)
    json_put_int (w, row->budget_bytes[i]);
  json_close_array (w);
}

static void put_row (json_writer *w, const stages *q, const stage_row *row) {
  const ranks_answer *x = row->found;
  json_open_object (w);
  put_budgets (w, q, row);
  json_add_int (w, "lower_bound_ns", x ? x->lower_bound_ns : -1);
  json_add_int (w, "pinned_bytes", x ? x->pinned_bytes : -1);
  json_add_int (w, "step_ns", x ? way_of (row)->step_ns : -1);
  json_add_text (w, "way", x ? ranks_kinds[way_of (row)->kind] : NULL);
  json_add_text (w, "why", x ? NULL : row->why.text);
  json_close_object (w);
}

static void put_question (json_writer *w, const stages *q) {
  allowed_write (w, &q->of->options.allowed);
  json_add_int (w, "baseline_ns", q->baseline_ns);
  json_add_text (w, "host", q->host.name);
  json_add_array (w, "needs_bytes");
  for (int32_t i = 0; i < q->n_traces; i++)
    json_put_int (w, q->of[i].needs_bytes);
  json_close_array (w);
  json_add_int (w, "pinnable_bytes", q->host.pinned_bytes);
}

/* ---- curve ---- */

/* The k-th budgets of all traces are one row. */
static bool asked_rows (call *c, const stages *q, stage_row **rows, int32_t *n) {
  int64_t *budgets = NEW (c->arena, MOST_POINTS, int64_t, &c->err);
  *rows = NEW (c->arena, MOST_POINTS, stage_row, &c->err);
  for (int32_t i = 0; i < q->n_traces; i++) {
    int32_t count;
    if (!budgets || !*rows ||
        !policy_asked_budgets (c, &q->of[i].card, q->of[i].needs_bytes, MOST_POINTS, budgets,
                               &count))
      return false;
    if (i && count != *n)
      return call_usage (c, "--budget: one of them is more than a card has, of what %s needs",
                         c->operands[i]);
    for (int32_t k = 0; k < count; k++)
      (*rows)[k].budget_bytes[i] = budgets[k];
    *n = count;
  }
  return true;
}

static bool read_rows (call *c, const stages *q, stage_row **rows, int32_t *n) {
  int64_t points = POINTS;
  if (call_text (c, "budget"))
    return asked_rows (c, q, rows, n);
  if (!call_quantity (c, "points", &points) ||
      !(*rows = NEW (c->arena, points, stage_row, &c->err)))
    return false;
  *n = (int32_t)points;
  for (int32_t k = 0; k < *n; k++)
    set_share (q, q->floor_ppm + (ALL_PPM - q->floor_ppm) * k / (*n - 1), &(*rows)[k]);
  return true;
}

static bool has_less (const stages *q, const stage_row *row, const stage_row *than) {
  for (int32_t i = 0; i < q->n_traces; i++)
    if (row->budget_bytes[i] > than->budget_bytes[i])
      return false;
  return row->found;
}

/* More memory is never slower: plans for less are plans for more, under the bound for more. */
static bool take_less (call *c, const stages *q, const stage_row *rows, stage_row *row) {
  for (const stage_row *less = rows; less < row; less++) {
    if (!has_less (q, less, row) || (row->found && way_of (row)->step_ns <= way_of (less)->step_ns))
      continue;
    int64_t bound_ns = row->found ? row->found->lower_bound_ns : 0;
    if (!ALLOC (c->arena, row->found, 1, &c->err))
      return false;
    *row->found = *less->found;
    row->found->lower_bound_ns = bound_ns;
  }
  return true;
}

static bool solve_rows (call *c, const stages *q, stage_row *rows, int32_t n) {
  for (int32_t k = 0; k < n && !stopping_due (c); k++) {
    if (!solve_row (c, q, 0, &rows[k]) || !take_less (c, q, rows, &rows[k]))
      return false;
    offline_progress (c, k + 1, n, rows[k].found ? way_of (&rows[k])->step_ns : -1);
  }
  return true;
}

static const column heads[] = { { "budget", 0, false }, { "of needs", 2, false },
                                { "step", 0, false },   { "slower", 1, false },
                                { "way", 3, true },     { "bound", 2, false },
                                { "gap", 0, false },    { "pinned", 4, false } };

/* The largest budget is the row's name. */
static int32_t widest (const stages *q, const stage_row *row) {
  int32_t most = 0;
  for (int32_t i = 1; i < q->n_traces; i++)
    if (row->budget_bytes[i] > row->budget_bytes[most])
      most = i;
  return most;
}

static bool add_row (columns *table, const stages *q, const stage_row *row) {
  int32_t i = widest (q, row);
  double share = 100.0 * (double)row->budget_bytes[i] / (double)max_of (q->of[i].needs_bytes, 1);
  columns_bytes (table, row->budget_bytes[i]);
  columns_put (table, "%.1f %%", share);
  if (!row->found)
    return columns_end_with (table, "%s", row->why.code ? row->why.text : "not reached");
  int64_t step_ns = way_of (row)->step_ns, bound_ns = row->found->lower_bound_ns;
  columns_time (table, step_ns);
  columns_put (table, "%+.1f %%", offline_slower (step_ns, q->baseline_ns));
  columns_put (table, "%s", ranks_kinds[way_of (row)->kind]);
  columns_time (table, bound_ns);
  columns_put (table, "%.1f %%", offline_slower (step_ns, bound_ns));
  columns_bytes (table, row->found->pinned_bytes);
  return columns_end (table);
}

static bool print_curve (call *c, const stages *q, const stage_row *rows, int32_t n) {
  char ns[UNITS_TEXT];
  printf ("%d ranks on %s, %s a step without swaps; the budget is that of the largest\n", q->ranks,
          q->host.name, units_time (ns, q->baseline_ns));
  columns *table = COLUMNS (c, heads);
  if (!table || !rewriting_print (stdout, c, &q->of->options.allowed))
    return false;
  for (int32_t k = 0; k < n; k++)
    if (!add_row (table, q, &rows[k]))
      return false;
  return columns_print (table);
}

static bool curve_json (call *c, const stages *q, const stage_row *rows, int32_t n) {
  json_writer w;
  json_begin_object (&w, 2);
  put_question (&w, q);
  json_add_array (&w, "points");
  for (int32_t k = 0; k < n; k++)
    put_row (&w, q, &rows[k]);
  json_close_array (&w);
  json_add_int (&w, "ranks", q->ranks);
  json_close_object (&w);
  return call_print_json (c, &w);
}

int stages_curve (call *c) {
  stages *q = NEW (c->arena, 1, stages, &c->err);
  stage_row *rows;
  int32_t n = 0;
  bool found = false;
  if (!q || !read_question (c, q) || !read_rows (c, q, &rows, &n) || !solve_rows (c, q, rows, n) ||
      !(c->json ? curve_json (c, q, rows, n) : print_curve (c, q, rows, n)))
    return call_failed (c);
  for (int32_t k = 0; k < n; k++)
    found |= rows[k].found != NULL;
  return found || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

/* ---- min-memory ---- */

typedef struct least {
  int64_t most_ns, good_ppm, none_ppm; /* good_ppm: over ALL_PPM where there is none */
  bool proved;                         /* that there is none at none_ppm */
  stage_row row;                       /* of good_ppm */
} least;

static bool try_share (call *c, const stages *q, int64_t ppm, least *x) {
  stage_row row = { .found = NULL };
  set_share (q, ppm, &row);
  if (!solve_row (c, q, x->most_ns, &row))
    return false;
  if (row.found && way_of (&row)->step_ns <= x->most_ns) {
    x->good_ppm = ppm;
    x->row = row;
  } else {
    x->none_ppm = ppm;
    x->proved = row.found && row.found->lower_bound_ns > x->most_ns;
  }
  return true;
}

/* By halving, to within one of a hundred parts of the needs. */
static bool find_least (call *c, const stages *q, least *x) {
  x->good_ppm = ALL_PPM + 1;
  x->none_ppm = max_of (0, q->floor_ppm - FINE_PPM);
  if (!try_share (c, q, ALL_PPM, x))
    return false;
  while (x->good_ppm <= ALL_PPM && x->good_ppm - x->none_ppm > FINE_PPM && !stopping_due (c))
    if (!try_share (c, q, x->none_ppm + (x->good_ppm - x->none_ppm) / 2, x))
      return false;
  return x->good_ppm > ALL_PPM || stopping_due (c) || solve_row (c, q, x->most_ns, &x->row);
}

static bool least_json (call *c, const stages *q, const least *x) {
  json_writer w;
  json_begin_object (&w, 2);
  put_question (&w, q);
  json_put_key (&w, "plan");
  if (x->good_ppm <= ALL_PPM)
    put_row (&w, q, &x->row);
  else
    json_put_null (&w);
  json_add_bool (&w, "proved", x->proved);
  json_add_int (&w, "ranks", q->ranks);
  json_add_int (&w, "share_none_ppm", x->none_ppm);
  json_add_int (&w, "share_ppm", x->good_ppm <= ALL_PPM ? x->good_ppm : -1);
  json_add_int (&w, "step_most_ns", x->most_ns);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static bool print_least (call *c, const stages *q, const least *x) {
  char ns[UNITS_TEXT], most[UNITS_TEXT], bytes[UNITS_TEXT];
  const stage_row *row = &x->row;
  printf ("%d ranks on %s, %s a step without swaps; asked for at most %s\n", q->ranks, q->host.name,
          units_time (ns, q->baseline_ns), units_time (most, x->most_ns));
  if (!rewriting_print (stdout, c, &q->of->options.allowed))
    return false;
  if (x->good_ppm > ALL_PPM) {
    puts ("no plan was found that is so fast");
    return true;
  }
  printf ("with %.1f %% of what each needs, at most %s, a step takes %s (%+.2f %%)\n",
          (double)x->good_ppm / 10000, units_bytes (bytes, row->budget_bytes[widest (q, row)]),
          units_time (ns, way_of (row)->step_ns),
          offline_slower (way_of (row)->step_ns, q->baseline_ns));
  printf ("with %.1f %%, none %s\n", (double)x->none_ppm / 10000,
          x->proved ? "is so fast: proved" : "was found that is so fast");
  return true;
}

int stages_min_memory (call *c) {
  stages *q = NEW (c->arena, 1, stages, &c->err);
  least *x = NEW (c->arena, 1, least, &c->err);
  int64_t slowdown_ppm = 50000;
  if (!q || !x || !call_quantity (c, "slowdown", &slowdown_ppm) || !read_question (c, q))
    return call_failed (c);
  x->most_ns = q->baseline_ns + units_scale (q->baseline_ns, slowdown_ppm, ALL_PPM);
  if (!find_least (c, q, x) || !(c->json ? least_json (c, q, x) : print_least (c, q, x)))
    return call_failed (c);
  return x->good_ppm <= ALL_PPM || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}
