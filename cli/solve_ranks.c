/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/solve_ranks.h"

#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "cli/explain/closing.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "cli/inputs/planner.h"
#include "cli/inputs/rewriting.h"
#include "trace/check/check.h"

typedef struct rank_plans {
  trace *traces[HOST_MOST_CARDS]; /* rank r has trace r % n_traces; equal ones are one */
  planner planners[HOST_MOST_CARDS];
  int32_t n_traces;
  gpu_host host;
  ranks_question asked;
  allowed allowed;
  ranks_answer answer;
} rank_plans;

/* ---- the question ---- */

static bool suits_ranks (call *c) {
  static const char *const others[] = { "same-places", "server",     "html",
                                        "dump",        "policy-opt", "noise" };
  const char *found = call_first (c, others, sizeof others / sizeof *others);
  const char *executor = call_text (c, "for");
  if (!found && executor && strcmp (executor, "replay") != 0)
    found = "for";
  return !found || call_usage (c, "--%s is not for ranks: leave it out, or --host NAME", found);
}

/* A file that is named twice is read once: its ranks are equal. */
static bool read_trace (call *c, rank_plans *q, int32_t i, const device *card) {
  int32_t same = call_same_operand (c, i);
  if (same < i) {
    q->traces[i] = q->traces[same];
    q->planners[i] = q->planners[same];
    return true;
  }
  trace *t = q->traces[i] = call_trace (c, c->operands[i]);
  bool quiet = c->quiet;
  c->quiet = true; /* the answer says which rates are left for a rank */
  bool ok = t && planner_read (c, t, &q->planners[i]);
  c->quiet = quiet;
  if (!ok && t && q->n_traces > 1)
    error_in_file (&c->err, c->operands[i]);
  q->planners[i].ask.device.link = card->link;
  return ok && device_tell_times (c, t, card);
}

static bool read_question (call *c, rank_plans *q) {
  device card;
  q->asked.host = &q->host;
  q->n_traces = c->n_operands;
  if (!suits_ranks (c) || !host_ranks_of (c, q->n_traces, &q->host, &card, &q->asked.ranks))
    return false;
  for (int32_t i = 0; i < q->n_traces; i++)
    if (!read_trace (c, q, i, &card))
      return false;
  q->allowed = allowed_of (&q->planners->ask.options);
  return true;
}

/* ---- plans to files ---- */

/* The least number of ranks whose plans, dealt out in turn, are the best way's. */
static int32_t plans_in_turn (const rank_plans *q) {
  const int32_t *plan_of = q->answer.ways[q->answer.best].plan_of;
  for (int32_t n = q->n_traces;; n += q->n_traces) {
    int32_t r = n;
    while (r < q->asked.ranks && plan_of[r] == plan_of[r % n])
      r++;
    if (r >= q->asked.ranks)
      return min_of (n, q->asked.ranks);
  }
}

static const plan *plan_of_rank (const rank_plans *q, int32_t rank) {
  const ranks_answer *x = &q->answer;
  return x->plans[x->ways[x->best].plan_of[rank]].found.plan;
}

static bool store (call *c, const rank_plans *q) {
  const char *output = call_text (c, "output");
  int32_t n = output ? plans_in_turn (q) : 0;
  if (n > 1 && call_is_stdout (output))
    return call_usage (c, "these ranks have %d plans: give -o FILE instead of standard output", n);
  for (int32_t i = 0; i < n; i++) {
    const char *path = call_rank_path (c, output, i);
    if (!path || !plan_store (plan_of_rank (q, i), path, false, &c->err))
      return false;
  }
  return true;
}

/* ---- the answer ---- */

static void put_way (json_writer *w, const rank_plans *q, const ranks_way *way) {
  json_open_object (w);
  json_add_text (w, "name", ranks_kinds[way->kind]);
  json_add_indices (w, "plans", way->plan_of, q->asked.ranks);
  json_add_bool (w, "settled", way->settled);
  json_add_int (w, "step_ns", way->step_ns);
  json_close_object (w);
}

/* The slowest rank's step if nothing moves. */
static int64_t baseline_ns (const rank_plans *q) {
  int64_t ns = 0;
  for (int32_t r = 0; r < q->asked.ranks; r++)
    ns = max_of (ns, plan_of_rank (q, r)->predicted.baseline_ns);
  return ns;
}

static int64_t most_budget_bytes (const rank_plans *q) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < q->n_traces; i++)
    bytes = max_of (bytes, q->planners[i].ask.asked_bytes);
  return bytes;
}

static void put_rank_plan (json_writer *w, const rank_plans *q, const ranks_plan *p) {
  int32_t trace = p->rank % q->n_traces;
  const plan *made = p->found.plan;
  json_open_object (w);
  json_add_int (w, "budget_bytes", q->planners[trace].ask.asked_bytes);
  certificate_write (w, &made->certificate, false);
  device_write_link (w, &p->link);
  json_add_int (w, "moves", made->n_moves);
  predicted_write (w, "predicted", &made->predicted);
  json_add_int (w, "trace", trace);
  json_close_object (w);
}

static bool print_json (call *c, const rank_plans *q) {
  const ranks_answer *x = &q->answer;
  json_writer w;
  json_begin_object (&w, 2);
  allowed_write (&w, &q->allowed);
  json_add_int (&w, "baseline_ns", baseline_ns (q));
  json_add_int (&w, "best", x->best);
  json_add_text (&w, "bound_by_group", x->by_group);
  json_add_int (&w, "budget_bytes", most_budget_bytes (q));
  json_add_bool (&w, "fits", true);
  json_add_text (&w, "host", q->host.name);
  json_add_int (&w, "lower_bound_ns", x->lower_bound_ns);
  json_add_int (&w, "pinnable_bytes", q->host.pinned_bytes);
  json_add_int (&w, "pinned_bytes", x->pinned_bytes);
  json_add_array (&w, "plans");
  for (int32_t i = 0; i < x->n_plans; i++)
    put_rank_plan (&w, q, &x->plans[i]);
  json_close_array (&w);
  json_add_int (&w, "ranks", q->asked.ranks);
  json_add_int (&w, "same_lower_bound_ns",
                x->same_bound_ns > x->lower_bound_ns ? x->same_bound_ns : x->lower_bound_ns);
  json_add_int (&w, "step_ns", x->ways[x->best].step_ns);
  json_add_array (&w, "ways");
  for (int32_t i = 0; i < x->n_ways; i++)
    put_way (&w, q, &x->ways[i]);
  json_close_array (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static const char *const kinds_say[RANKS_KINDS] = {
  [RANKS_alone] = "the plan for one card alone",
  [RANKS_both] = "for the rates that are left while all ranks copy both ways",
  [RANKS_one_way] = "for the rates that are left while all ranks copy one way",
  [RANKS_between] = "for rates between those of one card alone and of all both ways",
  [RANKS_turns] = "odd ranks have another plan than even ones",
  [RANKS_mixed] = "each trace has whichever of its plans is best beside the others",
};

static void tell_ways (FILE *to, const rank_plans *q) {
  const ranks_answer *x = &q->answer;
  char step[UNITS_TEXT], out[UNITS_TEXT], in[UNITS_TEXT];
  for (int32_t i = 0; i < x->n_ways; i++) {
    const ranks_way *way = &x->ways[i];
    const device_link *l = &x->plans[way->plan_of[0]].link;
    fprintf (to, "%-9s %10s  %s%s", ranks_kinds[way->kind], units_time (step, way->step_ns),
             kinds_say[way->kind], way->settled ? "" : "; an estimate");
    if (way->kind < RANKS_turns)
      fprintf (to, ": %s out, %s in", units_rate (out, l->d2h_bytes_per_s),
               units_rate (in, l->h2d_bytes_per_s));
    fputs (i == x->best ? "; taken\n" : "\n", to);
  }
}

static void tell_bounds (FILE *to, const ranks_answer *x) {
  char ns[UNITS_TEXT], covers[COVER_TEXT];
  if (x->by_group)
    fprintf (to,
             "%-9s %10s  what has to cross %s; it covers all plans that only "
             "swap, whatever their ranks do\n",
             "bound", units_time (ns, x->lower_bound_ns), x->by_group);
  else
    fprintf (to, "%-9s %10s  by %s, of a rank that has its link to itself; it covers %s\n", "bound",
             units_time (ns, x->lower_bound_ns), x->of->certificate.bound_by,
             closing_covers (x->of, covers));
  if (x->same_bound_ns > x->lower_bound_ns)
    fprintf (to, "%-9s %10s  if all ranks have the same plan\n", "",
             units_time (ns, x->same_bound_ns));
}

static void tell_device (FILE *to, const call *c, const rank_plans *q, int32_t rank) {
  char a[UNITS_TEXT], b[UNITS_TEXT], d[UNITS_TEXT];
  const predicted *p = &plan_of_rank (q, rank)->predicted;
  int32_t trace = rank % q->n_traces;
  fprintf (to, "%-9s %10s  of %s a rank, and %s of the host", "device",
           units_bytes (a, p->peak_bytes), units_bytes (b, q->planners[trace].ask.asked_bytes),
           units_bytes (d, p->host_peak_bytes));
  if (q->n_traces > 1)
    fprintf (to, "; rank %d, %s", rank, c->operands[trace]);
  fputc ('\n', to);
}

/* The last line is the answer. */
static bool tell (FILE *to, call *c, const rank_plans *q) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  const ranks_answer *x = &q->answer;
  const ranks_way *best = &x->ways[x->best];
  const char *with = allowed_text (&q->allowed, c->arena, &c->err);
  int32_t n = plans_in_turn (q);
  double slower = 100.0 * (double)best->step_ns / (double)baseline_ns (q) - 100;
  if (!with)
    return false;
  fprintf (to, "%-9s %10d  on %s, each on a card of its own, a %s\n", "ranks", q->asked.ranks,
           q->host.name, q->planners->ask.device.name);
  fprintf (to, "%-9s %10s  %s\n", "allowed", "", with);
  tell_ways (to, q);
  tell_bounds (to, x);
  for (int32_t r = 0; r < (q->n_traces > 1 ? n : 1); r++)
    tell_device (to, c, q, r);
  fprintf (to, "%-9s %10s  of %s that may be pinned, by all ranks\n", "pinned",
           units_bytes (a, x->pinned_bytes), units_bytes (b, q->host.pinned_bytes));
  fprintf (to, "\n%s a step on %d rank%s, %+.1f %% beside %s without a plan, ",
           units_time (a, best->step_ns), q->asked.ranks, q->asked.ranks > 1 ? "s" : "", slower,
           units_time (b, baseline_ns (q)));
  fprintf (to, "by %d plan%s; at most %.2f %% above the bound\n", n, n > 1 ? "s" : "",
           closing_gap (best->step_ns, x->lower_bound_ns));
  return true;
}

int solve_ranks (call *c) {
  rank_plans *q = NEW (c->arena, 1, rank_plans, &c->err);
  const char *output = call_text (c, "output");
  FILE *to = call_is_stdout (output) ? stderr : stdout;
  if (!q || !read_question (c, q) ||
      !planner_ranks (c, q->planners, q->traces, q->n_traces, &q->asked, c->arena, &q->answer) ||
      !store (c, q) || !(c->json ? print_json (c, q) : tell (to, c, q)))
    return call_failed (c);
  for (int32_t i = 0; i < q->n_traces && !c->json; i++)
    call_tell_doubt (to, c, q->traces[i]);
  return EXIT_YES;
}
