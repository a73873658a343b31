/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/share.h"

#include <assert.h>

#include "base/units.h"

#define ONE ((int64_t)1000000)

device share_link (const device *d, int64_t ppm) {
  assert (ppm > 0);
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
  assert (n_jobs > 0 && step_ns);
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
