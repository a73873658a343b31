/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry whatif`: other cards, links, budgets and batches, as a table. */
#include "cli/whatif/whatif.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/order.h"
#include "base/units.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/jobs.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/offline_figures.h"
#include "cli/whatif/ranks.h"
#include "cli/figures/columns.h"
#include "cli/figures/picture_files.h"

typedef struct asking {
  call *c;
  const whatif_grid *grid;
  const whatif_case *cases;
  curve_options options;
  whatif_row *rows; /* of this slice's cells, in order */
  int32_t n_cells;
} asking;

/* ---- the grid ---- */

/* In a process of its own; the rows as they are in memory. */
static bool run_cell (void *context, int piece, error *err) {
  const asking *a = context;
  const whatif_grid *g = a->grid;
  whatif_row rows[WHATIF_MOST];
  if (!whatif_cell (g, a->cases, &a->options, g->slice - 1 + piece * g->slices, rows, err))
    return false;
  return fwrite (rows, sizeof *rows, (size_t)g->n_budgets, stdout) == (size_t)g->n_budgets ||
         error_set (err, ERR_file, "a job could not write what it found");
}

static bool take_cell (void *context, int piece, FILE *printed, error *err) {
  const asking *a = context;
  size_t n = (size_t)a->grid->n_budgets;
  if (fread (a->rows + (size_t)piece * n, sizeof *a->rows, n, printed) != n)
    return error_set (err, ERR_internal, "a job ended without an answer");
  offline_progress (a->c, piece + 1, a->n_cells, -1);
  return true;
}

/* More than there are cells for, each plans on as many threads. Unasked, one process has them all.
 */
static bool read_jobs (call *c, int32_t cells, int64_t *processes, int32_t *threads) {
  int64_t jobs;
  if (!call_jobs (c, &jobs))
    return false;
  *processes = !call_text (c, "jobs") || cells < 1 ? 1 : jobs < cells ? jobs : cells;
  *threads = (int32_t)(jobs / *processes);
  return true;
}

static bool ask (call *c, whatif_grid *g, const char ***assumed, whatif_row **rows,
                 int32_t *n_rows) {
  int64_t processes;
  whatif_case *cases;
  const trace *t = offline_trace (c, c->operands[0], NULL);
  asking a = { .c = c, .grid = g };
  if (!t || !whatif_read (c, t, g) || !offline_options (c, t, NULL, &a.options) ||
      !whatif_carry (c, t, g, &cases))
    return false;
  g->allowed = a.options.allowed;
  int32_t n_cases = g->n_devices * g->n_batches, cells = whatif_cells (g);
  *assumed = NEW (c->arena, n_cases, const char *, &c->err);
  for (int32_t i = 0; *assumed && i < n_cases; i++)
    (*assumed)[i] = cases[i].assumed;
  int32_t mine = cells < g->slice ? 0 : (cells - g->slice) / g->slices + 1;
  *n_rows = mine * g->n_budgets;
  *rows = NEW (c->arena, (int64_t)*n_rows + 1, whatif_row, &c->err);
  if (!read_jobs (c, mine, &processes, &a.options.threads))
    return false;
  a.cases = cases;
  a.rows = *rows;
  a.n_cells = mine;
  for (int32_t i = 0; *rows && i < *n_rows; i++) /* until a cell says more */
    if (!whatif_unreached (g, cases, g->slice - 1 + i / g->n_budgets * g->slices, i % g->n_budgets,
                           &(*rows)[i], &c->err))
      return false;
  return *assumed && *rows && jobs_run (c, mine, (int)processes, run_cell, take_cell, &a, &c->err);
}

/* ---- answers ---- */

static void print_tsv (FILE *to, const whatif_grid *g, const whatif_row *rows, int32_t n) {
  fputs ("device\tbatch\tlink_bytes_per_s\tbudget_bytes\tpeak_bytes\tbaseline_ns\tstep_ns\t"
         "lower_bound_ns\thost_bytes\td2h_bytes\th2d_bytes\n",
         to);
  for (int32_t i = 0; i < n; i++) {
    const whatif_row *r = &rows[i];
    fprintf (to, "%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n",
             g->devices[r->device].name, (long long)r->batch, (long long)r->link_bytes_per_s,
             (long long)r->budget_bytes, (long long)r->peak_bytes, (long long)r->baseline_ns,
             (long long)r->step_ns, (long long)r->lower_bound_ns, (long long)r->host_bytes,
             (long long)r->d2h_bytes, (long long)r->h2d_bytes);
  }
}

static const column heads[] = {
  { "device", 0, true }, { "batch", 2, false },  { "link", 1, false },  { "budget", 0, false },
  { "needs", 6, false }, { "host", 3, false },   { "out", 2, false },   { "in", 2, false },
  { "step", 0, false },  { "slower", 1, false }, { "bound", 5, false }, { "gap", 0, false },
};

static bool add_row (columns *table, const whatif_grid *g, const whatif_row *r) {
  char rate[UNITS_TEXT], floor[UNITS_TEXT];
  columns_put (table, "%s", g->devices[r->device].name);
  columns_put (table, "x%lld", (long long)r->batch);
  columns_put (table, "%s", units_rate (rate, r->link_bytes_per_s));
  columns_bytes (table, r->budget_bytes);
  columns_bytes (table, r->peak_bytes);
  if (r->answer == WHATIF_PLAN) {
    bool wide = offline_is_wide (r->step_ns, r->lower_bound_ns);
    columns_bytes (table, r->host_bytes);
    columns_bytes (table, r->d2h_bytes);
    columns_bytes (table, r->h2d_bytes);
    columns_time (table, r->step_ns);
    columns_put (table, "%+.1f %%", offline_slower (r->step_ns, r->baseline_ns));
    columns_time (table, r->lower_bound_ns);
    columns_put (table, "%.1f %%%s", offline_slower (r->step_ns, r->lower_bound_ns),
                 wide ? "*" : " ");
    return columns_end (table);
  }
  if (r->answer == WHATIF_NOT_REACHED)
    return columns_end_with (table, "not reached");
  bool host = r->answer == WHATIF_NONE_FITS && r->floor_bytes <= r->budget_bytes;
  return columns_end_with (table, "%s; whole ops need %s",
                           host                            ? "no plan fits with the host's memory"
                           : r->answer == WHATIF_NONE_FITS ? "no plan fits"
                                                           : "no plan found",
                           units_bytes (floor, r->floor_bytes));
}

/* A merged grid knows no more of its cards than names. */
static void tell_beyond (const whatif_grid *g, const whatif_row *rows, int32_t n) {
  for (int32_t d = 0; d < g->n_devices; d++) {
    int64_t most = 0;
    for (int32_t i = 0; i < n; i++)
      if (rows[i].device == d)
        most = max_of (most, rows[i].budget_bytes);
    offline_tell_beyond (stdout, &g->devices[d], most);
  }
}

static bool print_table (call *c, const whatif_grid *g, const whatif_row *rows, int32_t n) {
  bool wide = false;
  columns *table = COLUMNS (c, heads);
  for (int32_t i = 0; table && i < n; i++) {
    if (!add_row (table, g, &rows[i]))
      return false;
    wide |=
        rows[i].answer == WHATIF_PLAN && offline_is_wide (rows[i].step_ns, rows[i].lower_bound_ns);
  }
  if (!columns_print (table))
    return false;
  if (wide)
    printf ("* more than %d %% above the bound: a better plan may exist; --limit searches longer\n",
            CURVE_WIDE_PPM / 10000);
  tell_beyond (g, rows, n);
  return true;
}

/* A slice goes to a file of its own in a folder. */
static const char *slice_path (call *c, const whatif_grid *g) {
  const char *path = call_text (c, "output");
  struct stat what;
  if (!path || call_is_stdout (path) || !call_text (c, "array"))
    return path;
  if (mkdir (path, 0777) != 0 && errno != EEXIST) {
    error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
    return NULL;
  }
  if (stat (path, &what) == 0 && !S_ISDIR (what.st_mode))
    return path;
  return arena_format (c->arena, &c->err, "%s/slice-%04d-of-%04d.json", path, g->slice, g->slices);
}

static bool answer (call *c, const whatif_grid *g, const char *const *assumed,
                    const whatif_row *rows, int32_t n) {
  figure_page page;
  const char *path = slice_path (c, g);
  if (c->err.code || !whatif_figure (g, rows, n, c->arena, &page, &c->err) ||
      !picture_drawings (c, &page))
    return false;
  if ((path || c->json) && !whatif_json (c, path, g, assumed, rows, n))
    return false;
  tsv_text tsv;
  if (call_text (c, "tsv")) {
    if (!tsv_open (c, &tsv))
      return false;
    print_tsv (tsv.to, g, rows, n);
    return tsv_close (c, &tsv);
  }
  if (path || c->json)
    return true;
  for (int32_t i = 0; i < g->n_devices * g->n_batches; i++)
    call_note (c, "%s, batch x%lld: %s", g->devices[i / g->n_batches].name,
               (long long)g->batches[i % g->n_batches], assumed[i]);
  return rewriting_print (stdout, c, &g->allowed) && print_table (c, g, rows, n);
}

static int run (call *c) {
  whatif_grid g = { 0 };
  const char **assumed, *folder = call_text (c, "merge");
  whatif_row *rows;
  int32_t n = 0;
  if (host_is_asked (c))
    return whatif_ranks (c);
  if (!folder && c->n_operands == 0)
    call_usage (c, "whatif needs a TRACE, or --merge DIR");
  if (call_text (c, "output") && !call_text (c, "array") &&
      !file_creatable (call_text (c, "output"), &c->err))
    return call_failed (c); /* in a folder lie slices alone */
  if (folder && c->n_operands)
    call_usage (c, "--merge takes no TRACE: its slices name it");
  if (c->err.code ||
      !(folder ? whatif_merge (c, folder, &g, &assumed, &rows, &n)
               : ask (c, &g, &assumed, &rows, &n)) ||
      !answer (c, &g, assumed, rows, n))
    return call_failed (c);
  bool found = false;
  for (int32_t i = 0; i < n; i++)
    found |= rows[i].answer == WHATIF_PLAN;
  return found || n == 0 || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

/* clang-format off */
static const cli_option options[] = {
  { 'd', "device", "NAME,...", "other cards; default: the one that the trace was made for" },
  { 0, "from", "NAME|FILE", "the card that the trace was measured on, if it does not say" },
  { 0, "scale", "SHARE",
    "multiply all times, such as by 50% for a card twice as fast, instead of scaling by "
    "rooflines", RANGE_SCALE },
  { 0, "link", "RATE,...",
    "other links, such as 50GB/s, with the same rate in both directions",
    { UNITS_RATE, DEVICE_LEAST_RATE, MOST_BYTES } },
  { 'b', "budget", "SIZE|%,...",
    "budgets; default: all that each card has to give", RANGE_AMOUNT },
  { 0, "batch", "xN,...",
    "multiples of the batch; the trace must be one of `ferry zoo`", { UNITS_COUNT, 1, 1 << 16 } },
  { 'j', "jobs", "N", "N processes; fewer, with threads, where there are fewer cells; default: "
    "one process with a thread for each processor", { UNITS_COUNT, 1, 256 } },
  { 0, "array", "K/N", "compute only slice K of N, from 1 on, as JSON in the folder of --output" },
  { 0, "merge", "DIR", "join such slices; there is no TRACE then" },
  { 'o', "output", "FILE|FOLDER",
    "file for the answer as JSON; with --array, the folder for it" },
  OPTION_HOST_OR_MEMORY,
  { 0, "ranks", "N,...", "numbers of ranks on the cards of --host; default: one on each card",
    { UNITS_COUNT, 1, HOST_MOST_CARDS } },
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_FOR,
  OPTION_PLACEMENT,
  OPTION_TSV,
  OPTION_WIDE,
  OPTIONS_OF_DRAWINGS,
  OPTIONS_END,
};
/* clang-format on */

const cli_command command_whatif = {
  .name = "whatif",
  .says = "other cards, links, budgets and batches",
  .operands = "TRACE",
  .least = 0,
  .most = 1,
  .about =
      "Plans the trace for every combination of what is given. For another card, a trace of "
      "`ferry zoo` is built again; in other traces, ops that say what they calculate are scaled "
      "by the ratio of the two cards' rooflines, and the rest as memory or as arithmetic, "
      "whichever their bytes suggest. Assumptions are printed on standard error, and stand in the "
      "JSON.\n"
      "With --host NAME the rows are numbers of ranks, each planned as `ferry solve` does for a "
      "host.\n"
      "A big grid is split over machines by the same command with --array K/N, one K each, and "
      "joined by --merge; the answer is that of one run, to the byte.\n",
  .options = options,
  .json = true,
  .run = run,
};
