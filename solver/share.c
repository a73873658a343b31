#include "solver/share.h"

#include "base/units.h"

enum { ROUNDS = 16 };
#define ONE ((int64_t)1000000)

device share_link (const device *d, int64_t ppm) {
  device out = *d;
  int64_t *rates[] = { &out.link.d2h_bytes_per_s, &out.link.h2d_bytes_per_s,
                       &out.link.both_bytes_per_s };
  out.share_ppm = ONE;
  for (int i = 0; i < 3; i++) {
    *rates[i] = units_scale (*rates[i], ppm, ONE);
    if (*rates[i] < 1)
      *rates[i] = 1;
  }
  return out;
}

bool share_simulate (const share_job *jobs, int32_t n_jobs, bool plenty, arena *scratch,
                     int64_t *step_ns, error *err) {
  arena_mark mark = arena_here (scratch);
  sim_job *sims = NEW (scratch, n_jobs, sim_job, err);
  rewritten *rewrites = NEW (scratch, n_jobs, rewritten, err);
  plan *plans = NEW (scratch, n_jobs, plan, err);
  predicted *costs = NEW (scratch, n_jobs, predicted, err);
  bool ok = sims && rewrites && plans && costs;
  for (int32_t i = 0; ok && i < n_jobs; i++) {
    plans[i] = *jobs[i].plan;
    if (plenty)
      plans[i].device.memory_bytes = INT64_MAX / 2;
    ok = plan_rewrite (jobs[i].trace, &plans[i], scratch, &rewrites[i], err);
    sims[i] = (sim_job){ jobs[i].trace, &rewrites[i], &plans[i] };
  }
  ok = ok && simulate (sims, n_jobs, NULL, scratch, costs, NULL, err);
  for (int32_t i = 0; ok && i < n_jobs; i++)
    step_ns[i] = costs[i].step_ns;
  arena_back (scratch, mark);
  return ok;
}

/* ---- the estimate ---- */

typedef struct sharer {
  const share_job *job;
  int64_t compute_ns, step_ns; /* alone, with the link that it has */
  int64_t busy_ns;             /* of the link, at its full rate, the busier direction */
  int64_t together_ns;
  int64_t slower_ppm; /* of its ops */
} sharer;

/* How long a plan's step is with the card to itself and so much of its link. */
static bool alone (const sharer *s, int64_t link_ppm, arena *scratch, predicted *out, error *err) {
  plan p = *s->job->plan;
  p.device = share_link (&p.device, link_ppm);
  return simulate_plan (s->job->trace, &p, scratch, out, err);
}

static int64_t copy_ns (int64_t bytes, int64_t bytes_per_s) {
  return units_scale (bytes, 1000000000, bytes_per_s);
}

static bool meet (sharer *s, const share_job *job, int32_t n, arena *scratch, error *err) {
  predicted p;
  *s = (sharer){ .job = job };
  if (!alone (s, ONE, scratch, &p, err))
    return false;
  const device_link *l = &job->plan->device.link;
  int64_t out = copy_ns (p.d2h_bytes, l->d2h_bytes_per_s);
  int64_t in = copy_ns (p.h2d_bytes, l->h2d_bytes_per_s);
  int64_t both = copy_ns (p.d2h_bytes + p.h2d_bytes, l->both_bytes_per_s);
  s->compute_ns = p.compute_ns;
  s->step_ns = p.step_ns;
  s->busy_ns = out > in ? out : in;
  if (both > s->busy_ns)
    s->busy_ns = both;
  s->slower_ppm = n * ONE;
  s->together_ns = n * p.step_ns;
  return true;
}

/* One over the mean speed of ops beside n - 1 others, each of which computes for a part of the
   time: chances of 0, 1, ... of them, one job after the other. */
static int64_t slower (const sharer *all, int32_t n, int32_t i, int64_t *chance) {
  int32_t others = 0;
  chance[0] = ONE;
  for (int32_t j = 0; j < n; j++) {
    if (j == i)
      continue;
    int64_t part = units_scale (all[j].compute_ns, ONE, all[j].step_ns > 0 ? all[j].step_ns : 1);
    if (part > ONE)
      part = ONE;
    chance[++others] = 0;
    for (int32_t k = others; k > 0; k--)
      chance[k] = (chance[k] * (ONE - part) + chance[k - 1] * part) / ONE;
    chance[0] = chance[0] * (ONE - part) / ONE;
  }
  int64_t speed = 0;
  for (int32_t k = 0; k <= others; k++)
    speed += chance[k] / (k + 1);
  return speed > 0 ? ONE * ONE / speed : n * ONE;
}

static int64_t free_link (const sharer *all, int32_t n, int32_t i) {
  int64_t left = ONE;
  for (int32_t j = 0; j < n; j++)
    if (j != i && all[j].together_ns > 0)
      left -= units_scale (all[j].busy_ns, ONE, all[j].together_ns);
  return left > ONE / n ? left : ONE / n;
}

bool share_predict (const share_job *jobs, int32_t n_jobs, arena *scratch, int64_t *step_ns,
                    error *err) {
  arena_mark mark = arena_here (scratch);
  sharer *all = NEW (scratch, n_jobs, sharer, err);
  int64_t *chance = NEW (scratch, n_jobs, int64_t, err);
  bool ok = all && chance;
  for (int32_t i = 0; ok && i < n_jobs; i++)
    ok = meet (&all[i], &jobs[i], n_jobs, scratch, err);
  for (int round = 0; ok && round < ROUNDS && n_jobs > 1; round++)
    for (int32_t i = 0; ok && i < n_jobs; i++) {
      predicted p;
      sharer *s = &all[i];
      s->slower_ppm = slower (all, n_jobs, i, chance);
      /* slowed down as a whole, its link is as much faster beside its ops */
      int64_t link_ppm = units_scale (free_link (all, n_jobs, i), s->slower_ppm, ONE);
      ok = alone (s, link_ppm, scratch, &p, err);
      s->step_ns = p.step_ns;
      int64_t now_ns = units_scale (p.step_ns, s->slower_ppm, ONE);
      s->together_ns = s->together_ns / 2 + now_ns / 2;
    }
  for (int32_t i = 0; ok && i < n_jobs; i++)
    step_ns[i] = n_jobs > 1 ? all[i].together_ns : all[i].step_ns;
  arena_back (scratch, mark);
  return ok;
}
