/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry curve`: what memory is worth to a job. */
#include "base/units.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/devices.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/stages.h"
#include "cli/whatif/offline_figures.h"
#include "cli/figures/columns.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/policies.h"
#include "cli/inputs/stopping.h"
#include "plot/term.h"
#include "solver/fleet/floor.h"
#include "solver/fleet/needs.h"

enum { MOST_POINTS = 512, POINTS = 12 };

static bool read_budgets (call *c, const curve *range, const device *d, int64_t **budgets,
                          int32_t *n) {
  int64_t points = POINTS;
  if (!call_quantity (c, "points", &points))
    return false;
  if (!call_text (c, "budget"))
    return curve_even (range->floor_bytes, range->peak_bytes, d->granule_bytes, (int32_t)points,
                       c->arena, budgets, n, &c->err);
  *budgets = NEW (c->arena, MOST_POINTS, int64_t, &c->err);
  return *budgets && policy_asked_budgets (c, d, range->peak_bytes, MOST_POINTS, *budgets, n);
}

/* From where budgets are taken: small groups reach further down, at a price. */
static bool range_of (call *c, const trace *t, const device *d, const curve_options *o, curve *v) {
  int64_t least_bytes;
  if (!curve_range (t, d, c->arena, &v->floor_bytes, &v->peak_bytes, &c->err) ||
      !curve_floor (t, o, c->arena, &least_bytes, &c->err))
    return false;
  v->floor_bytes = curve_gross (o, v->floor_bytes);
  v->peak_bytes = curve_gross (o, v->peak_bytes);
  if (o->allowed.sections != SECTIONS_OFF && least_bytes < v->floor_bytes)
    v->floor_bytes = least_bytes;
  return true;
}

static bool print_json (call *c, const curve_options *o, const curve *v) {
  json_writer w;
  json_begin_object (&w, 2);
  allowed_write (&w, &o->allowed);
  json_add_int (&w, "baseline_ns", v->baseline_ns);
  json_add_int (&w, "floor_bytes", v->floor_bytes);
  json_add_int (&w, "knee", v->knee);
  json_add_int (&w, "needs_bytes", v->peak_bytes);
  json_add_array (&w, "points");
  for (int32_t i = 0; i < v->count; i++) {
    curve_point_write (&w, v, i);
  }
  json_close_array (&w);
  json_add_int (&w, "reserved_bytes", o->device->reserved_bytes);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void print_tsv (FILE *to, const curve *v) {
  fputs ("budget_bytes\tstep_ns\tlower_bound_ns\thost_peak_bytes\td2h_bytes\th2d_bytes\t"
         "price_ns_per_gib\tplan_of\tknee\twide\n",
         to);
  for (int32_t i = 0; i < v->count; i++) {
    const curve_point *p = &v->points[i];
    predicted none = { .step_ns = -1 }, *q = &none;
    if (p->plan)
      none = p->plan->predicted;
    fprintf (to, "%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%d\t%d\t%d\n",
             (long long)p->budget_bytes, (long long)q->step_ns, (long long)p->lower_bound_ns,
             (long long)q->host_peak_bytes, (long long)q->d2h_bytes, (long long)q->h2d_bytes,
             (long long)curve_price_ns (v, i), p->plan_of, i == v->knee, curve_is_wide (p));
  }
}

static bool print_picture (call *c, const curve *v) {
  enum { ROWS = 14 };
  bytes text = { 0 };
  term_style style = { .utf8 = c->utf8, .columns = c->columns };
  term_curve_point *at = NEW (c->arena, v->count, term_curve_point, &c->err);
  for (int32_t i = 0; at && i < v->count; i++) {
    const curve_point *p = &v->points[i];
    at[i] = (term_curve_point){ p->budget_bytes, p->plan ? p->plan->predicted.step_ns : -1,
                                p->lower_bound_ns };
  }
  bool ok = at && term_curve (at, v->count, v->knee < 0 ? -1 : v->points[v->knee].budget_bytes,
                              ROWS, &style, &text, &c->err);
  if (ok && text.size)
    fwrite (text.data, 1, (size_t)text.size, stdout);
  bytes_free (&text);
  return ok;
}

/* The reason of the largest budget that has none: it sets the smallest one. */
static bool tell_refusal (call *c, const trace *t, const curve_options *o, const curve *v) {
  floor_request r = { .host_bytes = o->host_bytes,
                      .in_parts = o->allowed.sections != SECTIONS_OFF,
                      .drops = o->allowed.recompute != RECOMPUTE_OFF };
  device counted = floor_device (o->device);
  memory_floor f;
  error why = { 0 };
  for (int32_t i = 0; i < v->count; i++)
    if (!v->points[i].plan)
      r.asked_bytes = v->points[i].budget_bytes;
  if (!r.asked_bytes)
    return true;
  if (!floor_least (t, o->device, c->arena, &f, &c->err))
    return false;
  r.budget_bytes = curve_net (o, r.asked_bytes);
  r.least_bytes = curve_gross (o, f.bytes);
  r.reserve_bytes = r.least_bytes - f.bytes;
  floor_refuse (t, &counted, &r, &why);
  printf ("\n%s\n", why.text);
  return true;
}

static const column heads[] = { { "budget", 0, false },  { "step", 0, false },
                                { "slower", 1, false },  { "bound", 3, false },
                                { "gap", 0, false },     { "host", 5, false },
                                { "out", 4, false },     { "in", 4, false },
                                { "next GiB", 2, false } };

static bool add_row (columns *table, const curve *v, int32_t i) {
  const curve_point *p = &v->points[i];
  columns_bytes (table, p->budget_bytes);
  if (!p->plan)
    return columns_end_with (table, !p->asked               ? "not reached"
                                    : p->lower_bound_ns < 0 ? "no plan fits"
                                                            : "no plan found");
  const predicted *q = &p->plan->predicted;
  columns_time (table, q->step_ns);
  columns_put (table, "%+.1f %%", offline_slower (q->step_ns, v->baseline_ns));
  columns_time (table, p->lower_bound_ns);
  columns_put (table, "%.1f %%%s", offline_slower (q->step_ns, p->lower_bound_ns),
               curve_is_wide (p) ? "*" : " ");
  columns_bytes (table, q->host_peak_bytes);
  columns_bytes (table, q->d2h_bytes);
  columns_bytes (table, q->h2d_bytes);
  columns_time (table, curve_price_ns (v, i));
  if (p->asked && i != v->knee)
    return columns_end (table);
  return columns_end_with (table, p->asked ? "knee" : "not reached");
}

static bool rows_of (call *c, const curve *v) {
  columns *table = COLUMNS (c, heads);
  for (int32_t i = 0; table && i < v->count; i++)
    if (!add_row (table, v, i))
      return false;
  return columns_print (table);
}

static bool print_table (call *c, const trace *t, const curve *v, const device *d,
                         const curve_options *o) {
  char a[8][UNITS_TEXT];
  int wide = 0;
  for (int32_t i = 0; i < v->count; i++)
    wide += curve_is_wide (&v->points[i]);
  printf ("without swaps %s in %s; below %s no plan fits\n", units_time (a[0], v->baseline_ns),
          units_bytes (a[1], v->peak_bytes), units_bytes (a[2], v->floor_bytes));
  if (v->count)
    offline_tell_beyond (stdout, d, v->points[v->count - 1].budget_bytes);
  if (!rewriting_print (stdout, c, &o->allowed))
    return false;
  puts ("");
  if (!rows_of (c, v))
    return false;
  if (wide)
    printf ("* more than %d %% above the bound: a better plan may exist; --limit searches longer\n",
            CURVE_WIDE_PPM / 10000);
  return tell_refusal (c, t, o, v);
}

static int run (call *c) {
  if (c->n_operands > 1)
    return stages_curve (c);
  device d;
  curve v = { 0 };
  curve_options o;
  int64_t *budgets;
  int32_t n;
  figure_page page;
  const trace *t = offline_trace (c, c->operands[0], NULL);
  bool ok = t && device_needed (c, t, &d) && offline_options (c, t, &d, &o) &&
            range_of (c, t, &d, &o, &v) && read_budgets (c, &v, &d, &budgets, &n) &&
            curve_of (t, &o, budgets, n, c->arena, &v, &c->err);
  ok = ok && curve_figure (t, &d, &v, c->arena, &page, &c->err) && picture_drawings (c, &page);
  if (!ok || (c->json && !print_json (c, &o, &v)))
    return call_failed (c);
  tsv_text tsv;
  if (call_text (c, "tsv")) {
    if (!tsv_open (c, &tsv))
      return call_failed (c);
    print_tsv (tsv.to, &v);
    if (!tsv_close (c, &tsv))
      return call_failed (c);
  } else if (!c->json) {
    bool printed = print_table (c, t, &v, &d, &o);
    puts ("");
    if (!printed || !print_picture (c, &v))
      return call_failed (c);
  }
  bool found = false;
  for (int32_t i = 0; i < v.count; i++)
    found |= v.points[i].plan != NULL;
  return found || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  { 'n',
    "points",
    "N",
    "number of budgets from the floor to the peak; default: 12",
    { UNITS_COUNT, 2, MOST_POINTS } },
  { 'b', "budget", "SIZE|%,...", "these budgets instead; percentages are of what the step needs",
    RANGE_AMOUNT },
  OPTION_DEVICE,
  OPTION_HOST_OR_MEMORY,
  OPTION_RANKS,
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_FOR,
  OPTION_PLACEMENT,
  OPTION_THREADS,
  OPTION_TSV,
  OPTION_WIDE,
  OPTIONS_OF_DRAWINGS,
  OPTIONS_END,
};

const cli_command command_curve = {
  .name = "curve",
  .says = "step time against memory",
  .operands = "TRACE...",
  .least = 1,
  .most = HOST_MOST_CARDS,
  .about =
      "Plans the trace at several budgets and prints what each costs: the step, the bound that "
      "no plan without sections and recompute can beat, host memory, the bytes each way, and "
      "what the next GiB saves a step. Every point is searched as `solve` with the same options "
      "would, and takes the plan for less memory where that is better: more memory is never "
      "slower. "
      "A point more than 2 % above its bound is marked. In the picture the line is the step, and "
      "what is dotted the bound. Where no plan fits anywhere the exit status is 1.\n"
      "Several traces are stages of one job, a rank each on the cards of --host: all have one "
      "share "
      "of what each needs, or the same bytes, and the steps are of all together.\n",
  .options = options,
  .json = true,
  .run = run,
};
