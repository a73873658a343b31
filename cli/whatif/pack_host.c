/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that have a card of a host each: they share its links and what may be pinned of its
   memory, but no step. */
#include "base/order.h"
#include "base/units.h"
#include "cli/explain/closing.h"
#include "cli/figures/columns.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/pack.h"
#include "solver/ask/ranks.h"

typedef struct hosted {
  packing p; /* its jobs, and what their plans are called */
  ask asks[CARDS_MOST_JOBS];
  ranks_job jobs[CARDS_MOST_JOBS];
  gpu_host host;
  device card;
  ranks_question asked;
  ranks_answer answer;
  pack_objective objective;
} hosted;

/* ---- the question ---- */

static bool suits_host (call *c) {
  static const char *const others[] = {
    "compare", "arrive", "leave", "points", "svg", "html", "tsv"
  };
  const char *found = call_first (c, others, sizeof others / sizeof *others);
  return !found ||
         call_usage (c,
                     "--%s is for jobs that share cards: leave it out, or name cards by --device "
                     "instead of --host %s",
                     found, host_text (c));
}

static bool has_cards (call *c, const hosted *q) {
  return q->p.n_jobs <= q->host.n_cards ||
         call_usage (
             c,
             "%d jobs, but %s has %d card%s, for a job each: give fewer jobs, or cards that "
             "several share by --device NAME,... instead of --host",
             q->p.n_jobs, q->host.name, q->host.n_cards, q->host.n_cards > 1 ? "s" : "");
}

static int32_t different_jobs (const call *c) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n_operands; i++)
    n += call_same_operand (c, i) == i;
  return n;
}

/* The ticks are those of all jobs together. */
static bool read_search (call *c, solve_options *out) {
  curve_options threads = { 0 };
  int64_t ticks = 0;
  stopping_begin (c);
  if (!effort_read (c, LEVEL_QUICK, &ticks, &out->level) || !offline_threads (c, &threads))
    return false;
  if (call_text (c, "limit"))
    ticks = max_of (1, ticks / different_jobs (c));
  out->limit_ticks = ticks;
  out->threads = threads.threads;
  out->stop = offline_stop;
  out->stop_context = c;
  return true;
}

static bool read_job (call *c, hosted *q, int32_t i, int64_t budget_bytes) {
  int32_t first = call_same_operand (c, i);
  ask *a = &q->asks[i];
  if (first < i) {
    q->jobs[i] = q->jobs[first];
    return true;
  }
  const cards_job *j = &q->p.jobs[i];
  *a = ask_default (j->trace, &q->card);
  allowed_into (&j->allowed, &a->options);
  a->options.host_bytes = q->host.pinned_bytes;
  q->jobs[i] = (ranks_job){ j->trace, a };
  return read_search (c, &a->options) && ask_budget (a, budget_bytes, &c->err) &&
         device_tell_times (c, j->trace, &q->card);
}

static bool read_question (call *c, hosted *q) {
  int64_t budget_bytes = 0;
  int objective = PACK_WORST;
  if (!suits_host (c) || !pack_read_jobs (c, &q->p) ||
      !host_and_card (c, host_text (c), &q->host, &q->card) || !has_cards (c, q) ||
      !call_quantity (c, "budget", &budget_bytes) ||
      !call_word (c, "objective", pack_objective_names, &objective))
    return false;
  if (call_text (c, "budget") && budget_bytes == 0)
    return call_usage (c, "--budget: nothing is too little");
  if (!budget_bytes)
    budget_bytes = q->card.memory_bytes - q->card.reserved_bytes;
  q->objective = (pack_objective)objective;
  q->asked = (ranks_question){ .host = &q->host,
                               .ranks = q->p.n_jobs,
                               .goal = objective == PACK_WORST ? RANKS_worst : RANKS_total };
  for (int32_t i = 0; i < q->p.n_jobs; i++)
    if (!read_job (c, q, i, budget_bytes))
      return false;
  return true;
}

/* ---- the answer ---- */

static const ranks_way *taken (const hosted *q) {
  return &q->answer.ways[q->answer.best];
}

static const plan *plan_of (const hosted *q, const ranks_way *way, int32_t job) {
  return q->answer.plans[way->plan_of[job]].found.plan;
}

/* By the plan for a link of its own. */
static int64_t bound_ns (const hosted *q, int32_t job) {
  return plan_of (q, q->answer.ways, job)->certificate.lower_bound_ns;
}

static bool store (call *c, const hosted *q) {
  cards_place places[CARDS_MOST_JOBS] = { 0 };
  cards_answer v = { .places = places, .n_placed = q->p.n_jobs };
  for (int32_t i = 0; i < q->p.n_jobs; i++)
    places[i].plan = plan_of (q, taken (q), i);
  return pack_store (c, &q->p, &v);
}

static double times_of (int64_t ppm) {
  return (double)ppm / 1e6;
}

static double slowdown (int64_t step_ns, int64_t baseline_ns) {
  return baseline_ns > 0 ? (double)step_ns / (double)baseline_ns : 0;
}

static const column heads[] = {
  { "job", 0, true, 0 },     { "card", 0, false, 0 },         { "budget", 0, false, 0 },
  { "pins", 3, false, 0 },   { "for one card", 2, false, 0 }, { "step", 0, false, 0 },
  { "slower", 0, false, 0 }, { "bound", 1, false, 0 },        { "by itself", 4, false, 0 },
};

static bool print_jobs (call *c, const hosted *q) {
  columns *to = COLUMNS (c, heads);
  for (int32_t i = 0; to && i < q->p.n_jobs; i++) {
    const predicted *x = &plan_of (q, taken (q), i)->predicted;
    int64_t step_ns = taken (q)->steps_ns[i];
    columns_put (to, "%s", q->p.jobs[i].name);
    columns_put (to, "%d", i);
    columns_bytes (to, q->jobs[i].ask->asked_bytes);
    columns_bytes (to, x->host_peak_bytes);
    columns_time (to, q->answer.ways->steps_ns[i]);
    columns_time (to, step_ns);
    columns_put (to, "%.2fx", slowdown (step_ns, x->baseline_ns));
    columns_time (to, bound_ns (q, i));
    columns_time (to, x->baseline_ns);
    if (!columns_end (to))
      return false;
  }
  return columns_print (to);
}

static void print_ways (const hosted *q) {
  const ranks_answer *x = &q->answer;
  puts ("");
  for (int32_t i = 0; i < x->n_ways; i++)
    printf ("%-9s %.2fx the slowest, %.2fx in the mean%s\n", ranks_kinds[x->ways[i].kind],
            times_of (x->ways[i].worst_ppm), times_of (x->ways[i].total_ppm) / q->p.n_jobs,
            i == x->best ? "; taken" : "");
  printf ("%-9s %.2fx the slowest, %.2fx in the mean: no plans do better, however they share the "
          "links\n",
          "bound", times_of (x->worst_bound_ppm), times_of (x->total_bound_ppm) / q->p.n_jobs);
}

static bool print_text (call *c, const hosted *q) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  const ranks_answer *x = &q->answer;
  bool worst = q->objective == PACK_WORST;
  if (!print_jobs (c, q))
    return false;
  print_ways (q);
  printf ("\n%d job%s on %s pin %s of the %s that may be pinned; %s is at most %.2f %% above the "
          "bound\n",
          q->p.n_jobs, q->p.n_jobs > 1 ? "s" : "", q->host.name, units_bytes (a, x->pinned_bytes),
          units_bytes (b, q->host.pinned_bytes), worst ? "the slowest" : "the mean",
          worst ? closing_gap (taken (q)->worst_ppm, x->worst_bound_ppm)
                : closing_gap (taken (q)->total_ppm, x->total_bound_ppm));
  return pack_print_allowed (c, &q->p);
}

static void put_job (json_writer *w, const hosted *q, int32_t i) {
  const plan *made = plan_of (q, taken (q), i);
  json_open_object (w);
  allowed_write (w, &q->p.jobs[i].allowed);
  json_add_int (w, "alone_ns", q->answer.ways->steps_ns[i]);
  json_add_int (w, "baseline_ns", made->predicted.baseline_ns);
  json_add_int (w, "budget_bytes", q->jobs[i].ask->asked_bytes);
  json_add_int (w, "card_index", i);
  json_add_int (w, "lower_bound_ns", bound_ns (q, i));
  json_add_text (w, "name", q->p.jobs[i].name);
  json_add_int (w, "plan", taken (q)->plan_of[i]);
  predicted_write (w, "predicted", &made->predicted);
  json_add_int (w, "together_ns", taken (q)->steps_ns[i]);
  json_close_object (w);
}

static void put_way (json_writer *w, const hosted *q, const ranks_way *way) {
  json_open_object (w);
  json_add_text (w, "name", ranks_kinds[way->kind]);
  json_add_indices (w, "plans", way->plan_of, q->p.n_jobs);
  json_add_share (w, "total", way->total_ppm);
  json_add_share (w, "worst", way->worst_ppm);
  json_close_object (w);
}

static bool print_json (call *c, const hosted *q) {
  const ranks_answer *x = &q->answer;
  json_writer w;
  json_begin_object (&w, 2);
  json_add_int (&w, "best", x->best);
  json_add_text (&w, "device", q->card.name);
  json_add_text (&w, "host", q->host.name);
  json_add_array (&w, "jobs");
  for (int32_t i = 0; i < q->p.n_jobs; i++)
    put_job (&w, q, i);
  json_close_array (&w);
  json_add_text (&w, "objective", pack_objective_names[q->objective]);
  json_add_int (&w, "pinnable_bytes", q->host.pinned_bytes);
  json_add_int (&w, "pinned_bytes", x->pinned_bytes);
  json_add_share (&w, "total", taken (q)->total_ppm);
  json_add_share (&w, "total_bound", x->total_bound_ppm);
  json_add_array (&w, "ways");
  for (int32_t i = 0; i < x->n_ways; i++)
    put_way (&w, q, &x->ways[i]);
  json_close_array (&w);
  json_add_share (&w, "worst", taken (q)->worst_ppm);
  json_add_share (&w, "worst_bound", x->worst_bound_ppm);
  json_close_object (&w);
  return call_print_json (c, &w);
}

int pack_run_host (call *c) {
  hosted *q = NEW (c->arena, 1, hosted, &c->err);
  if (!q || !read_question (c, q) ||
      !ranks_solve (q->jobs, &q->asked, c->arena, &q->answer, &c->err) || !store (c, q) ||
      !(c->json ? print_json (c, q) : print_text (c, q)))
    return call_failed (c);
  return EXIT_YES;
}
