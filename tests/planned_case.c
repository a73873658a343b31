/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/planned_case.h"

#include "tests/random_wishes.h"

/* The scheduler's plan for random wishes, in as little memory as it manages out of three tries. */
static bool reschedule (planned_case *p, uint64_t seed, arena *a) {
  random_state r = random_seed (seed * 7919 + 5);
  random_case *c = &p->c;
  plan *old = c->plan, *best = NULL;
  error ignored = { 0 };
  wish *wishes;
  int32_t n;
  gaps g;
  if (!random_wishes (&p->units, &r, 700000, a, &wishes, &n, &ignored) ||
      !gaps_of (&p->units, old->placement.granule_bytes, 0, a, &g, &ignored))
    return false;
  if (seed % 4 == 3 && n > 0) { /* one move that does not dawdle: what a good program equals */
    int32_t pick = (int32_t)random_between (&r, 0, n - 1);
    for (int32_t i = 0; i < n && wishes[pick].in_before == wishes[pick].out_after + 1; i++)
      pick = (pick + 1) % n;
    wishes[0] = wishes[pick];
    wishes[0].in_not_before = NO_WAIT;
    wishes[0].wait_out = false;
    n = 1;
  }
  old->device.memory_bytes = MOST_BYTES;
  old->device.reserved_bytes = 0;
  old->device.host_bytes = MOST_BYTES;
  for (int i = 0; i < 4; i++) {
    schedule_shortage shortage;
    error err = { 0 };
    int64_t budget = g.floor_bytes + (g.peak_bytes - g.floor_bytes) * (i + 1) / 4 +
                     4 * old->placement.granule_bytes * (i > 2);
    schedule_options o = { .budget_bytes = budget,
                           .host_bytes = MOST_BYTES,
                           .granule_bytes = old->placement.granule_bytes,
                           .pool_below_bytes = old->placement.pool_below_bytes,
                           .auto_clean = seed % 4 > 1 };
    best = schedule (&(schedule_request){ .original = c->trace,
                                          .rewritten = &c->rewritten,
                                          .sections = old->sections,
                                          .n_sections = old->n_sections,
                                          .recomputes = old->recomputes,
                                          .n_recomputes = old->n_recomputes,
                                          .groups = old->groups,
                                          .n_groups = old->n_groups,
                                          .device = &old->device,
                                          .wishes = wishes,
                                          .n_wishes = n,
                                          .options = &o },
                     a, &shortage, &err);
    if (best)
      break;
  }
  if (!best)
    return false;
  c->plan = best;
  return true;
}

/* Whether the steps of its cycle are one step. */
static bool watch (planned_case *p, arena *a, error *err) {
  sim_job job = { p->c.trace, &p->c.rewritten, p->c.plan };
  sim_options o = { .timeline_arena = a };
  timeline t;
  int32_t n = p->c.rewritten.trace->n_ops;
  if (!simulate (&job, 1, &o, a, &p->seen, &t, err))
    return false;
  if (!p->seen.settled || t.period_ns != p->seen.step_ns)
    return false;
  p->resident_bytes = NEW (a, n, int64_t, err);
  if (!p->resident_bytes)
    return false;
  for (int32_t k = 0; k < n; k++) {
    p->resident_bytes[k] = -1;
    for (int32_t i = 0; t.ops[k].end_ns > t.ops[k].start_ns && i < t.n_memory; i++) {
      int64_t from = t.memory[i].at_ns;
      int64_t to = i + 1 < t.n_memory ? t.memory[i + 1].at_ns : t.period_ns;
      bool meets = t.ops[k].start_ns < to && from < t.ops[k].end_ns;
      if (meets && t.memory[i].bytes > p->resident_bytes[k])
        p->resident_bytes[k] = t.memory[i].bytes;
    }
    if (p->resident_bytes[k] > p->most_bytes)
      p->most_bytes = p->resident_bytes[k];
  }
  return true;
}

bool planned_make (uint64_t seed, unsigned features, arena *a, planned_case *out, error *err) {
  case_options o = { .seed = seed,
                     .features = features,
                     .places = seed % 3 ? CASE_SHARED : CASE_APART };
  *out = (planned_case){ .most_bytes = 0 };
  if (!random_case_make (&o, a, &out->c, err) ||
      !units_of (out->c.rewritten.trace, out->c.plan->groups, out->c.plan->n_groups,
                 out->c.plan->placement.granule_bytes, out->c.plan->placement.pool_below_bytes, a,
                 &out->units, err))
    return false;
  if (seed % 2 && !reschedule (out, seed, a))
    return false;
  return watch (out, a, err);
}

bool planned_gaps (const planned_case *p, arena *a, gaps *out, error *err) {
  if (!gaps_of (&p->units, p->c.plan->placement.granule_bytes, 0, a, out, err))
    return false;
  for (int32_t k = 0; k < out->n_ops; k++)
    out->base_bytes[k] = p->resident_bytes[k] < 0 ? out->room_bytes
                                                  : out->base_bytes[k] + out->pool_bytes -
                                                        p->resident_bytes[k] + out->room_bytes;
  return true;
}
