/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/pack.h"

#include <assert.h>

const char *const pack_objective_names[PACK_OBJECTIVES + 1] = { "worst", "total", NULL };

/* The least that the jobs from here on take, each for itself: what cannot fit even so is cut. */
typedef struct remainder {
  int64_t budget_bytes, host_bytes, share_ppm, worst_ppm, total_ppm;
} remainder;

typedef struct packing {
  const pack_job *jobs;
  int32_t n_jobs;
  const pack_limits *limits;
  int32_t *kept[PACK_MOST_JOBS]; /* choices that no other one beats in everything */
  int32_t n_kept[PACK_MOST_JOBS];
  remainder rest[PACK_MOST_JOBS + 1];
  int32_t chosen[PACK_MOST_JOBS];
  pack_answer *best;
} packing;

static bool beats (const pack_choice *a, const pack_choice *b, bool earlier) {
  if (a->budget_bytes > b->budget_bytes || a->host_bytes > b->host_bytes ||
      a->share_ppm > b->share_ppm || a->slowdown_ppm > b->slowdown_ppm)
    return false;
  return earlier || a->budget_bytes < b->budget_bytes || a->host_bytes < b->host_bytes ||
         a->share_ppm < b->share_ppm || a->slowdown_ppm < b->slowdown_ppm;
}

static bool keep_choices (packing *p, int32_t job, arena *a, error *err) {
  const pack_job *j = &p->jobs[job];
  p->kept[job] = NEW (a, j->count, int32_t, err);
  for (int32_t i = 0; p->kept[job] && i < j->count; i++) {
    bool beaten = false;
    for (int32_t k = 0; k < j->count && !beaten; k++)
      beaten = k != i && beats (&j->choices[k], &j->choices[i], k < i);
    if (!beaten)
      p->kept[job][p->n_kept[job]++] = i;
  }
  return p->kept[job];
}

static int64_t least (int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most (int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void find_rest (packing *p) {
  for (int32_t i = p->n_jobs - 1; i >= 0; i--) {
    remainder r = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0 };
    const remainder *next = &p->rest[i + 1];
    for (int32_t k = 0; k < p->n_kept[i]; k++) {
      const pack_choice *c = &p->jobs[i].choices[p->kept[i][k]];
      r.budget_bytes = least (r.budget_bytes, c->budget_bytes);
      r.host_bytes = least (r.host_bytes, c->host_bytes);
      r.share_ppm = least (r.share_ppm, c->share_ppm);
      r.worst_ppm = least (r.worst_ppm, c->slowdown_ppm);
    }
    p->rest[i] = (remainder){ r.budget_bytes + next->budget_bytes, r.host_bytes + next->host_bytes,
                              r.share_ppm + next->share_ppm, most (r.worst_ppm, next->worst_ppm),
                              r.worst_ppm + next->total_ppm };
  }
}

static bool is_better (const packing *p, int64_t worst, int64_t total) {
  const pack_answer *b = p->best;
  if (!b->fits)
    return true;
  if (p->limits->objective == PACK_WORST)
    return worst < b->worst_ppm || (worst == b->worst_ppm && total < b->total_ppm);
  return total < b->total_ppm || (total == b->total_ppm && worst < b->worst_ppm);
}

static void descend (packing *p, int32_t job, const remainder *taken) {
  const remainder *rest = &p->rest[job];
  p->best->visited++;
  int64_t worst = most (taken->worst_ppm, rest->worst_ppm);
  int64_t total = taken->total_ppm + rest->total_ppm;
  if (taken->budget_bytes + rest->budget_bytes > p->limits->memory_bytes ||
      taken->host_bytes + rest->host_bytes > p->limits->host_bytes ||
      taken->share_ppm + rest->share_ppm > p->limits->share_ppm || !is_better (p, worst, total))
    return;
  if (job == p->n_jobs) {
    p->best->fits = true;
    p->best->worst_ppm = worst;
    p->best->total_ppm = total;
    for (int32_t i = 0; i < job; i++)
      p->best->chosen[i] = p->chosen[i];
    return;
  }
  for (int32_t k = 0; k < p->n_kept[job]; k++) {
    const pack_choice *c = &p->jobs[job].choices[p->kept[job][k]];
    p->chosen[job] = p->kept[job][k];
    remainder next = { taken->budget_bytes + c->budget_bytes, taken->host_bytes + c->host_bytes,
                       taken->share_ppm + c->share_ppm, most (taken->worst_ppm, c->slowdown_ppm),
                       taken->total_ppm + c->slowdown_ppm };
    descend (p, job + 1, &next);
  }
}

bool pack_choose (const pack_job *jobs, int32_t n_jobs, const pack_limits *limits, arena *a,
                  pack_answer *out, error *err) {
  assert (n_jobs > 0 && n_jobs <= PACK_MOST_JOBS);
  *out = (pack_answer){ 0 };
  packing p = { .jobs = jobs, .n_jobs = n_jobs, .limits = limits, .best = out };
  if (n_jobs < 1 || n_jobs > PACK_MOST_JOBS)
    return error_set (err, ERR_usage, "%d jobs: 1 to %d share a card", n_jobs, PACK_MOST_JOBS);
  for (int32_t i = 0; i < n_jobs; i++) {
    if (jobs[i].count < 1) /* a job without any choice */
      return true;
    if (!keep_choices (&p, i, a, err))
      return false;
  }
  remainder nothing = { 0 };
  find_rest (&p);
  descend (&p, 0, &nothing);
  return true;
}
