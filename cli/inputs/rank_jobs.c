/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/rank_jobs.h"

#include <string.h>

#include "cli/inputs/hosts.h"
#include "cli/inputs/inputs.h"
#include "trace/check/check.h"

bool job_read (call *c, int i, sim_job *job, rewritten *rw) {
  return job_read_at (c, 2 * i, job, rw);
}

bool job_read_at (call *c, int operand, sim_job *job, rewritten *rw) {
  const char *path = c->operands[operand + 1];
  trace *t = call_trace (c, c->operands[operand]);
  plan *p = t ? call_plan (c, path) : NULL;
  if (!p)
    return false;
  /* An illegal plan has no cost: it may use memory twice or hang. */
  if (!check_plan (t, p, c->arena, NULL, &c->err) || !plan_rewrite (t, p, c->arena, rw, &c->err)) {
    error_in_file (&c->err, path);
    return false;
  }
  *job = (sim_job){ t, rw, p };
  return true;
}

bool rank_jobs_read (call *c, rank_jobs *q) {
  rewritten *rws = NEW (c->arena, HOST_MOST_CARDS, rewritten, &c->err);
  q->pairs = c->n_operands / 2;
  if (c->n_operands % 2)
    return call_usage (c, "each TRACE needs its PLAN");
  if (!rws || !host_ranks (c, &q->host, &q->card, &q->ranks))
    return false;
  if (!call_text (c, "ranks") && q->pairs > 1)
    q->ranks = q->pairs;
  if (q->pairs > q->ranks || q->ranks > q->host.n_cards)
    return call_usage (c, "%d plans for %d ranks on %d cards", q->pairs, q->ranks, q->host.n_cards);
  for (int32_t i = 0; i < q->ranks; i++)
    if (i >= q->pairs)
      q->jobs[i] = q->jobs[i % q->pairs];
    else if (!job_read (c, i, &q->jobs[i], &rws[i]))
      return false;
  if (strcmp (q->jobs[0].plan->device.name, q->card.name) != 0)
    call_note (c, "the plan is for a %s, and %s has cards of another kind, %s",
               q->jobs[0].plan->device.name, q->host.name, q->card.name);
  return true;
}
