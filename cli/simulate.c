/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry simulate`: what a plan costs; several traces and plans share the card. */
#include "base/order.h"
#include "base/units.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/rank_jobs.h"
#include "cli/figures/picture_files.h"
#include "cli/figures/pictures.h"
#include "cli/figures/ranks_figure.h"
#include "trace/simulate/noise.h"
#include "trace/simulate/simulate.h"

enum { MOST_JOBS = 32, NOISE_DAYS = 100 };

/* The question about ops that take a little more or less; percent 0: none. */
typedef struct noise_answer {
  noise_options asked;
  noise_spread spread;
} noise_answer;

static bool read_noise (call *c, int n_jobs, const sim_job *job, noise_answer *out) {
  int64_t percent = 0, seed = 1;
  *out = (noise_answer){ 0 };
  if (!call_percent (c, "noise", &percent) || !call_quantity (c, "seed", &seed))
    return false;
  if (!percent)
    return !call_text (c, "seed") || call_usage (c, "--seed needs --noise");
  if (n_jobs > 1)
    return call_usage (c, "--noise looks at one TRACE and its PLAN");
  out->asked = (noise_options){ (int32_t)percent, NOISE_DAYS, (uint64_t)seed };
  return noise_of_plan (job->original, job->plan, &out->asked, c->arena, &out->spread, &c->err);
}

static double percent_of (int64_t ppm) {
  return (double)ppm / 10000;
}

static void print_noise (const noise_answer *n) {
  printf ("noise   %8d %%  more or less an op: %+.2f %% over compute in the median of %d runs, "
          "%+.2f %% in 95 of 100, %+.2f %% at most\n",
          n->asked.percent, percent_of (n->spread.median_ppm), n->asked.days,
          percent_of (n->spread.p95_ppm), percent_of (n->spread.most_ppm));
}

static void print_costs (const predicted *p) {
  char step[UNITS_TEXT], compute[UNITS_TEXT], stall[UNITS_TEXT], baseline[UNITS_TEXT];
  char peak[UNITS_TEXT], host[UNITS_TEXT], out[UNITS_TEXT], in[UNITS_TEXT];
  double slower = p->baseline_ns ? 100.0 * (double)p->step_ns / (double)p->baseline_ns - 100 : 0;
  printf ("step    %10s  %+.1f %% beside %s without a plan%s\n", units_time (step, p->step_ns),
          slower, units_time (baseline, p->baseline_ns),
          p->settled ? "" : "; the steps do not settle: an estimate");
  printf ("compute %10s  and %s of stalls\n", units_time (compute, p->compute_ns),
          units_time (stall, p->stall_ns));
  printf ("device  %10s  host %s\n", units_bytes (peak, p->peak_bytes),
          units_bytes (host, p->host_peak_bytes));
  printf ("copies  %10s  out and %s in, a step\n", units_bytes (out, p->d2h_bytes),
          units_bytes (in, p->h2d_bytes));
}

static void put_noise (json_writer *w, const noise_answer *n) {
  json_add_object (w, "noise");
  json_add_int (w, "days", n->asked.days);
  json_add_share (w, "least", n->spread.least_ppm);
  json_add_share (w, "median", n->spread.median_ppm);
  json_add_share (w, "most", n->spread.most_ppm);
  json_add_share (w, "p95", n->spread.p95_ppm);
  json_add_int (w, "percent", n->asked.percent);
  json_add_int (w, "seed", (int64_t)n->asked.seed);
  json_close_object (w);
}

static bool print_json (call *c, const predicted *costs, int n, const noise_answer *noise) {
  json_writer w;
  json_begin (&w, 1 + (n > 1));
  if (noise->asked.percent) {
    json_open_object (&w);
    put_noise (&w, noise);
    predicted_write (&w, "predicted", costs);
    json_close_object (&w);
    return call_print_json (c, &w);
  }
  if (n > 1)
    json_open_array (&w);
  for (int i = 0; i < n; i++)
    predicted_write (&w, NULL, &costs[i]);
  if (n > 1)
    json_close_array (&w);
  return call_print_json (c, &w);
}

/* ---- ranks on one host ---- */

typedef struct rank_question {
  rank_jobs all;
  predicted costs[HOST_MOST_CARDS];
} rank_question;

static int64_t pinned_bytes (const rank_question *q) {
  int64_t sum = 0;
  for (int32_t i = 0; i < q->all.ranks; i++)
    sum += q->costs[i].host_peak_bytes;
  return sum;
}

static int64_t longest_ns (const rank_question *q) {
  int64_t ns = 0;
  for (int32_t i = 0; i < q->all.ranks; i++)
    ns = max_of (ns, q->costs[i].step_ns);
  return ns;
}

static bool print_ranks_json (call *c, const rank_question *q) {
  json_writer w;
  json_begin_object (&w, 2);
  json_add_text (&w, "host", q->all.host.name);
  json_add_int (&w, "pinnable_bytes", q->all.host.pinned_bytes);
  json_add_int (&w, "pinned_bytes", pinned_bytes (q));
  json_add_array (&w, "ranks");
  for (int32_t i = 0; i < q->all.ranks; i++)
    predicted_write (&w, NULL, &q->costs[i]);
  json_close_array (&w);
  json_add_int (&w, "step_ns", longest_ns (q));
  json_close_object (&w);
  return call_print_json (c, &w);
}

static void print_ranks (const call *c, const rank_question *q) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  for (int32_t i = 0; i < q->all.pairs; i++) {
    if (q->all.pairs > 1) {
      printf ("%s%s %s, on card", i ? "\n" : "", c->operands[2 * i], c->operands[2 * i + 1]);
      for (int32_t r = i; r < q->all.ranks; r += q->all.pairs)
        printf ("%s%d", r == i ? " " : ",", r);
      puts ("");
    }
    print_costs (&q->costs[i]);
  }
  printf ("%s%d rank%s on %s pin %s of the %s that may be pinned\n", q->all.pairs > 1 ? "\n" : "",
          q->all.ranks, q->all.ranks > 1 ? "s" : "", q->all.host.name,
          units_bytes (a, pinned_bytes (q)), units_bytes (b, q->all.host.pinned_bytes));
}

static bool is_drawn (const call *c) {
  return call_text (c, "svg") || call_text (c, "html") || call_text (c, "tsv");
}

static bool draw_ranks (call *c, const rank_question *q, const timeline *lines) {
  figure_page page;
  bool any;
  return ranks_figure (&q->all.host, q->all.jobs, q->all.ranks, q->costs, lines, c->arena, &page,
                       &c->err) &&
         picture_files (c, &page, &any);
}

static int run_ranks (call *c) {
  rank_question q = { 0 };
  timeline lines[HOST_MOST_CARDS];
  bool drawn = is_drawn (c);
  sim_options o = { .host = &q.all.host,
                    .apart = call_flag (c, "apart"),
                    .timeline_arena = c->json && !drawn ? NULL : c->arena };
  if (call_flag (c, "turns") || call_text (c, "noise")) {
    call_usage (c, "--turns and --noise are for one card: leave them out, or --host");
    return call_failed (c);
  }
  if (o.apart && drawn) {
    call_usage (c,
                "--svg, --html and --tsv draw one step of all ranks, and jobs have none in common: "
                "leave them out, or --apart");
    return call_failed (c);
  }
  if (!rank_jobs_read (c, &q.all) ||
      !simulate (q.all.jobs, q.all.ranks, &o, c->arena, q.costs, lines, &c->err) ||
      (drawn && !draw_ranks (c, &q, lines)) || (c->json && !print_ranks_json (c, &q)))
    return call_failed (c);
  if (c->json)
    return EXIT_YES;
  print_ranks (c, &q);
  if (o.apart)
    return EXIT_YES;
  for (int32_t i = 0; i < q.all.pairs; i++)
    if (putchar ('\n') < 0 || !picture_step (c, &q.all.jobs[i], &lines[i]))
      return call_failed (c);
  return EXIT_YES;
}

static int run (call *c) {
  sim_job jobs[MOST_JOBS];
  rewritten rws[MOST_JOBS];
  predicted costs[MOST_JOBS];
  timeline lines[MOST_JOBS];
  int n = c->n_operands / 2;
  if (c->n_operands % 2) {
    call_usage (c, "each TRACE needs its PLAN");
    return call_failed (c);
  }
  if (call_given (c, "host") || host_is_asked (c))
    return run_ranks (c);
  if (is_drawn (c)) {
    call_usage (c, "--svg, --html and --tsv draw ranks: give --host, or ask `ferry plot`");
    return call_failed (c);
  }
  if (call_flag (c, "apart")) {
    call_usage (c, "--apart is for jobs on cards of a host: give --host NAME");
    return call_failed (c);
  }
  for (int i = 0; i < n; i++)
    if (!job_read (c, i, &jobs[i], &rws[i]))
      return call_failed (c);
  noise_answer noise;
  if (!read_noise (c, n, jobs, &noise))
    return call_failed (c);
  sim_options o = { .turns = call_flag (c, "turns"),
                    .timeline_arena = c->json || n > 1 ? NULL : c->arena };
  if (!simulate (jobs, n, &o, c->arena, costs, lines, &c->err))
    return call_failed (c);
  if (c->json)
    return print_json (c, costs, n, &noise) ? EXIT_YES : call_failed (c);
  for (int i = 0; i < n; i++) {
    if (n > 1)
      printf ("%s%s\n", i ? "\n" : "", c->operands[2 * i]);
    print_costs (&costs[i]);
  }
  if (n > 1)
    return EXIT_YES;
  if (noise.asked.percent)
    print_noise (&noise);
  putchar ('\n');
  return picture_step (c, &jobs[0], &lines[0]) ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  { 0, "host", "NAME|FILE",
    "each plan is a rank's on a card of this host: a name of `ferry hosts` or "
    "a host file" },
  OPTION_RANKS,
  { 0, "apart", NULL, "with --host: jobs of their own, whose steps do not wait for each other" },
  { 't', "turns", NULL, "several jobs take turns, op by op, instead of sharing the speed" },
  { 0,
    "noise",
    "%",
    "how the step varies in a hundred runs in which each op takes up to this part more or less",
    { UNITS_SHARE, 10000, NOISE_MOST_PERCENT * 10000 } },
  { 0, "seed", "N", "seed of the noise; default: 1", RANGE_SEED },
  OPTIONS_OF_PICTURES,
  OPTIONS_END,
};

const cli_command command_simulate = {
  .name = "simulate",
  .says = "say what a plan costs",
  .operands = "TRACE PLAN [TRACE PLAN]...",
  .least = 2,
  .most = 2 * MOST_JOBS,
  .about =
      "Runs a plan on the machine model until its steps repeat, and prints the time of a step, "
      "its stalls, the memory on both sides and the bytes that cross the link, with a picture of "
      "one step. A plan that `ferry check` refuses is refused here too.\n"
      "Several traces with their plans share one card and its link. With --host they are ranks of "
      "one job: each has a card of its own, all share the host's links, and they begin each step "
      "together, except with --apart. With --ranks the plans are assigned in turn; --svg, --html "
      "and --tsv draw their lanes, and the load of the links that they share.\n"
      "With --noise the JSON has two members: `noise`, in millionths over compute, and "
      "`predicted`.\n",
  .options = options,
  .json = true,
  .draws = true,
  .run = run,
};
