/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/options/options.h"

#include <assert.h>

#include "base/units.h"

int64_t solve_enough_ns (int64_t gap_ppm, int64_t bound_ns) {
  assert (gap_ppm >= 0 && bound_ns >= 0);
  int64_t more_ns = units_scale (bound_ns, gap_ppm ? gap_ppm : SOLVE_GAP_PPM, 1000000);
  return more_ns < INT64_MAX - bound_ns ? bound_ns + more_ns : INT64_MAX;
}

int64_t solve_enough_of (const effort *e, int64_t bound_ns) {
  int64_t near_ns = solve_enough_ns (e->gap_ppm, bound_ns);
  return near_ns < e->enough_ns ? e->enough_ns : near_ns;
}

effort solve_effort (const solve_options *o, const effort *e) {
  effort full = e ? *e : (effort){ 0 };
  full.gap_ppm = full.gap_ppm ? full.gap_ppm : o->gap_ppm;
  full.limit_ticks = full.limit_ticks ? full.limit_ticks : o->limit_ticks;
  full.place_bytes = full.place_bytes ? full.place_bytes : o->budget_bytes;
  return full;
}

int64_t solve_level_ticks (const solve_options *o, int64_t ticks) {
  if (o->level == LEVEL_QUICK)
    return ticks / tuned (o->tuning, TUNE_search_quick_part) + 1;
  return o->level == LEVEL_THOROUGH ? ticks * tuned (o->tuning, TUNE_search_thorough_times) : ticks;
}

bool solve_stops (const solve_options *o) {
  return o->stop && o->stop (o->stop_context);
}

bound_options solve_bound_options (const solve_options *o) {
  return (bound_options){ .dev = o->device,
                          .host_bytes = o->host_bytes,
                          .any_units = true,
                          .keep_proof = o->keep_proof,
                          .log = o->log,
                          .stop = o->stop,
                          .stop_context = o->stop_context,
                          .solved = o->solved,
                          .tuning = o->tuning };
}

certified solve_by_compute (const trace *t, const plan *p) {
  return (certified){ .lower_bound_ns = trace_total_ns (t),
                      .bound_by = "compute",
                      .cover = cover_every,
                      .found_by = p->certificate.found_by };
}

certified solve_by_bound_of (const plan *other, const plan *p) {
  const certificate *c = &other->certificate;
  return (certified){ .lower_bound_ns = c->lower_bound_ns,
                      .bound_by = c->bound_by,
                      .cover = c->cover,
                      .found_by = p->certificate.found_by,
                      .proof = c->proof };
}

void solve_write_certificate (plan *p, const certified *c) {
  assert (p->has_predicted && c->bound_by && c->found_by);
  assert (c->lower_bound_ns >= 0 && p->predicted.step_ns >= 0);
  p->has_certificate = true;
  p->certificate = (certificate){
    .lower_bound_ns = c->lower_bound_ns,
    .gap = (double)p->predicted.step_ns / (double)c->lower_bound_ns - 1,
    .bound_by = c->bound_by,
    .has_cover = true,
    .cover = c->cover,
    .found_by = c->found_by,
    .limit_met = p->predicted.step_ns <= c->enough_ns ? NULL : c->limit_met,
    .proof = c->proof,
  };
}
