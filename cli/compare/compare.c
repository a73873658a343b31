/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry compare`: our planner and the published policies side by side, each judged by the same
   simulator, and by the bound. */
#include <stdlib.h>
#include <sys/mman.h>

#include "cli/compare/comparison.h"
#include "cli/figures/picture_files.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/effort.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/jobs.h"

typedef struct run_context {
  call *call;
  const comparison *table;
  json_writer *json;
  compared *kept; /* or NULL: then a process of its own runs each budget */
  FILE *tsv;      /* or NULL */
} run_context;

/* All planners at one budget; with --json each row is a line, where nothing is kept. */
static bool run_budget (void *context, int b, error *err) {
  run_context *x = context;
  call *c = x->call;
  comparison t = *x->table;
  t.keeps = arena_made (&c->err);
  bool tsv = call_text (c, "tsv"), ok = t.keeps && comparison_bound (c, &t, t.budgets[b]);
  columns *to = ok && !c->json && !tsv ? comparison_head (c, &t, t.budgets[b]) : NULL;
  for (int i = 0; ok && i < t.n_policies && !stopping_asked (c); i++) {
    row r = { .budget_bytes = t.budgets[b], .policy = t.policies[i] };
    arena *scratch = arena_new (0);
    ok = scratch ? comparison_answer (c, &t, &r, scratch) : error_memory (&c->err);
    *t.any |= ok && r.answer.fits;
    if (ok && c->json)
      ok = comparison_json (c, &r, x->kept ? x->json : NULL);
    else if (ok && tsv)
      comparison_tsv (x->kept ? x->tsv : stdout, &r);
    else if (ok)
      ok = to && comparison_row (to, &r);
    if (ok && x->kept)
      ok = comparison_keep (c, &r, &x->kept[b * t.n_policies + i]);
    arena_free (scratch);
  }
  columns_print (to);
  arena_free (t.keeps);
  if (!ok)
    *err = c->err;
  return ok;
}

/* Lines of JSON become elements. */
static bool take_rows (void *context, int b, FILE *printed, error *err) {
  run_context *x = context;
  char *line = NULL;
  size_t room = 0;
  (void)b, (void)err;
  for (ssize_t n; (n = getline (&line, &room, printed)) > 0;) {
    line[n - (line[n - 1] == '\n')] = 0;
    json_put_raw (x->json, line);
  }
  free (line);
  return true;
}

static bool take_tsv (void *context, int b, FILE *printed, error *err) {
  run_context *x = context;
  (void)b, (void)err;
  for (int ch; (ch = getc (printed)) != EOF;)
    putc (ch, x->tsv);
  return true;
}

static bool run_all (call *c, comparison *t, json_writer *w, compared *kept) {
  int64_t all, jobs;
  tsv_text tsv = { 0 };
  run_context x = { c, t, w, kept, NULL };
  if (!call_jobs (c, &all))
    return false;
  jobs = kept ? 1 : all < t->n_budgets ? all : t->n_budgets;
  t->threads = (int32_t)(all / jobs);
  if (call_text (c, "tsv")) {
    if (!tsv_open (c, &tsv))
      return false;
    fputs (comparison_tsv_head, x.tsv = tsv.to);
  }
  bool ok = c->json || x.tsv || rewriting_print (stdout, c, &t->allowed);
  jobs_take *take = c->json ? take_rows : x.tsv ? take_tsv : jobs_print;
  if (kept) /* a picture wants them all in one process */
    for (int b = 0; ok && b < t->n_budgets && !stopping_asked (c); b++)
      ok = run_budget (&x, b, &c->err);
  else if (ok)
    ok = jobs_run (c, t->n_budgets, (int)jobs, run_budget, take, &x, &c->err);
  return tsv.to ? tsv_close (c, &tsv) && ok : ok;
}

/* An interrupt leaves the last ones without a row. */
static int32_t count_kept (const compared *kept, int32_t n) {
  while (n > 0 && !kept[n - 1].name)
    n--;
  return n;
}

static bool *shared_flag (error *err) {
  void *at = mmap (NULL, sizeof (bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED)
    return at;
  (void)error_memory (err);
  return NULL;
}

static int run (call *c) {
  comparison t = { 0 };
  json_writer w;
  if (!comparison_read (c, &t) || !(t.any = shared_flag (&c->err)))
    return call_failed (c);
  stopping_begin (c);
  json_begin_object (&w, 2);
  allowed_write (&w, &t.allowed);
  json_add_int (&w, "needs_bytes", t.peak_bytes);
  json_add_array (&w, "rows");
  figure_page page;
  int32_t n = t.n_budgets * t.n_policies;
  bool draws = call_text (c, "svg") || call_text (c, "html");
  compared *kept = draws ? NEW (c->arena, n, compared, &c->err) : NULL;
  bool ok = (kept || !draws) && run_all (c, &t, &w, kept) &&
            (!draws || (compare_figure (t.trace, &t.device, kept, count_kept (kept, n), c->arena,
                                        &page, &c->err) &&
                        picture_drawings (c, &page)));
  json_close_array (&w);
  json_add_text (&w, "trace", t.trace->name);
  json_close_object (&w);
  if (ok && c->json)
    ok = call_print_json (c, &w);
  else
    bytes_free (&w.out);
  bool any = *t.any;
  munmap (t.any, sizeof *t.any);
  return !ok ? call_failed (c) : any || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  OPTION_DEVICE,
  { 'b', "budget", "SIZE|%,...",
    "device memory that may be used, or a percentage of what the step needs with everything on the "
    "device; default: all that the device has to give",
    RANGE_AMOUNT },
  { 0, "policies", "NAME,...",
    "policies to compare; ours are `ferry`, `ferry-recompute`, `ferry-sections` and "
    "`ferry-all`; default: all" },
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_FOR,
  OPTION_PLACEMENT,
  { 'j',
    "jobs",
    "N",
    "budgets to plan in parallel, or threads where they are fewer; default: as many as there "
    "are processors",
    { UNITS_COUNT, 1, MOST_BUDGETS } },
  OPTION_HOST_OR_MEMORY,
  OPTION_RANKS,
  OPTION_TSV,
  OPTION_WIDE,
  OPTIONS_OF_DRAWINGS,
  OPTIONS_END,
};

const cli_command command_compare = {
  .name = "compare",
  .says = "run our planner and the published policies side by side",
  .operands = "TRACE",
  .least = 1,
  .most = 1,
  .about =
      "Runs our planner and the policies of `ferry solve --policy list`, at each budget, and "
      "prints what their plans cost on one machine model: the time of a step and its stalls, the "
      "memory on both sides, the bytes each way, the gap to the bound, and the time that planning "
      "took. For a policy that cannot keep a budget, the row says what it reaches; if none keeps "
      "any, the exit status is 1.\n"
      "Ours comes four times: `ferry` only swaps, `ferry-recompute` may drop tensors and compute "
      "them again, `ferry-sections` may run ops in parts, `ferry-all` may do both in any order of "
      "the ops; each row is as fast as `solve` with these options, and as the rows above it. "
      "Options that allow less leave rows out. The gap of each plan is to the bound of plans that "
      "do no more than it does. An interrupt ends with what is known: the row that was being "
      "planned is marked, and the exit status is 130.\n",
  .options = options,
  .json = true,
  .run = run,
};
