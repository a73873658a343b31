/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/service/ranks.h"

#include "base/order.h"
#include "cli/figures/ranks_figure.h"
#include "cli/inputs/hosts.h"
#include "cli/inputs/rank_jobs.h"
#include "plot/svg.h"

enum { FIRST_PAIR = 4, MOST_RESULT = 1 << 26 };

typedef struct claimed {
  int64_t step_ns;
  int32_t ranks;
} claimed;

static bool read_claim (call *c, const char *path, claimed *out) {
  bytes text = { 0 };
  json_document *d = file_read (path, MOST_RESULT, &text, &c->err)
                         ? json_open (text.data, text.size, &c->err)
                         : NULL;
  bytes_free (&text);
  if (!d)
    return false;
  json root = json_root (d), step, ranks;
  bool ok = json_need (&root, "step_ns", &step, &c->err) &&
            json_need (&root, "ranks", &ranks, &c->err) &&
            json_get_int (&step, 0, INT64_MAX, &out->step_ns, &c->err) &&
            json_get_int32 (&ranks, 1, HOST_MOST_CARDS, &out->ranks, &c->err);
  json_close (d);
  return ok;
}

/* Rank r has the pair r mod n of them. */
static bool read_jobs (call *c, int32_t ranks, rank_jobs *q) {
  rewritten *rws = NEW (c->arena, HOST_MOST_CARDS, rewritten, &c->err);
  q->pairs = (c->n_operands - FIRST_PAIR) / 2;
  q->ranks = ranks;
  if (!rws || !host_and_card (c, c->operands[FIRST_PAIR - 1], &q->host, &q->card))
    return false;
  if (q->pairs < 1 || q->pairs > ranks || ranks > q->host.n_cards)
    return error_set (&c->err, ERR_infeasible, "%d plans for %d ranks on %d cards", q->pairs, ranks,
                      q->host.n_cards);
  for (int32_t i = 0; i < ranks; i++)
    if (i >= q->pairs)
      q->jobs[i] = q->jobs[i % q->pairs];
    else if (!job_read_at (c, FIRST_PAIR + 2 * i, &q->jobs[i], &rws[i]))
      return false;
  return true;
}

static int64_t longest_ns (const rank_jobs *q, const predicted *costs) {
  int64_t ns = 0;
  for (int32_t i = 0; i < q->ranks; i++)
    ns = max_of (ns, costs[i].step_ns);
  return ns;
}

static bool print_verified (call *c, const rank_jobs *q, int64_t step_ns) {
  json_writer w;
  json_begin_object (&w, 0);
  json_add_text (&w, "by", "ferry worker ranks");
  json_add_int (&w, "plans", q->pairs);
  json_add_int (&w, "ranks", q->ranks);
  json_add_int (&w, "step_ns", step_ns);
  json_close_object (&w);
  return call_print_json (c, &w);
}

/* A plan can do without its picture. */
static void draw (call *c, const rank_jobs *q, const predicted *costs, const timeline *lines) {
  figure_page page;
  bytes text = { 0 };
  error wrong = { 0 };
  if (!ranks_figure (&q->host, q->jobs, q->ranks, costs, lines, c->arena, &page, &wrong) ||
      !svg_page (&page, &text, &wrong) ||
      !file_write (c->operands[2], text.data, text.size, FILE_PLAIN, &wrong))
    call_note (c, "no picture: %s", wrong.text);
  bytes_free (&text);
}

int ranks_verify (call *c) {
  rank_jobs *q = NEW (c->arena, 1, rank_jobs, &c->err);
  predicted costs[HOST_MOST_CARDS];
  timeline lines[HOST_MOST_CARDS];
  claimed said = { 0 };
  if (c->n_operands < FIRST_PAIR + 2 || c->n_operands % 2)
    call_usage (c, "worker ranks needs RESULT PICTURE HOST TRACE PLAN...");
  if (!q || c->err.code || !read_claim (c, c->operands[1], &said) || !read_jobs (c, said.ranks, q))
    return call_failed (c);
  sim_options o = { .host = &q->host, .timeline_arena = c->arena };
  if (!simulate (q->jobs, q->ranks, &o, c->arena, costs, lines, &c->err))
    return call_failed (c);
  int64_t step_ns = longest_ns (q, costs);
  if (step_ns != said.step_ns)
    error_set (&c->err, ERR_infeasible, "the answer says that a step takes %lld ns, it takes %lld",
               (long long)said.step_ns, (long long)step_ns);
  if (c->err.code || !print_verified (c, q, step_ns) || fflush (stdout) != 0)
    return call_failed (c);
  draw (c, q, costs, lines);
  return EXIT_YES;
}
