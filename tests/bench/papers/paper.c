/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/papers/paper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS = 2000000 };

static void stop_at (const error *err) {
  char line[sizeof *err];
  if (err->code == ERR_none)
    return;
  fprintf (stderr, "%s\n", error_line (err, line, sizeof line));
  exit (1);
}

device paper_device (const char *name) {
  const char *folder = getenv ("FERRY_DATADIR");
  char path[1024];
  device d = { 0 };
  error err = { 0 };
  arena *a = arena_new (0); /* the name lives to the end of the program */
  snprintf (path, sizeof path, "%s/devices/%s.json", folder ? folder : "data", name);
  if (!device_load (path, NULL, a, &d, &err))
    stop_at (&err);
  return d;
}

void paper_end (paper *p) {
  arena_free (p->arena);
  p->arena = NULL;
}

void paper_workload (paper *p, const device *d, const zoo_request *request) {
  error err = { 0 };
  zoo_request r = *request;
  policy_view v;
  paper old = *p;
  paper_end (p);
  *p = (paper){
    .arena = arena_new (0), .device = *d, .reaches = old.reaches, .gap_ppm = old.gap_ppm
  };
  r.device = &p->device;
  p->trace = zoo_trace (&r, p->arena, &err);
  if (!p->trace || !policy_view_build (p->trace, d, 0, 0, p->arena, &v, &err))
    stop_at (&err);
  p->peak_bytes = v.res[view_peak (&v, v.res)];
}

paper_cost paper_policy (paper *p, const char *policy, const char *options, int64_t budget_bytes) {
  error err = { 0 };
  policy_answer a;
  policy_values values = policy_standard ();
  policy_id id = policy_named (policy);
  arena *scratch = arena_new (0);
  policy_request r = { .trace = p->trace,
                       .device = &p->device,
                       .budget_bytes = budget_bytes,
                       .host_bytes = p->device.host_bytes,
                       .values = &values,
                       .only_fits = !p->reaches };
  for (const char *option = options; option && *option;) {
    size_t length = strcspn (option, ",");
    const char *one = arena_string_n (scratch, option, length, &err);
    if (!one || !policy_set (id, one, &values, &err))
      stop_at (&err);
    option += length + (option[length] == ',');
  }
  if (!policy_run (id, &r, scratch, &a, &err))
    stop_at (&err);
  paper_cost c = { a.fits, a.reached_bytes, 0, a.drops, a.cost };
  arena_free (scratch);
  return c;
}

static paper_cost solve_ours (paper *p, int64_t budget_bytes, int64_t ticks, recompute_mode drops,
                              sections_mode cuts) {
  error err = { 0 };
  solution s;
  arena *scratch = arena_new (0);
  solve_options o = { .device = &p->device,
                      .budget_bytes = budget_bytes,
                      .host_bytes = p->device.host_bytes,
                      .limit_ticks = ticks ? ticks : TICKS,
                      .gap_ppm = p->gap_ppm,
                      .seed = 1,
                      .recompute = drops,
                      .sections = cuts };
  paper_cost c = { 0 };
  c.fits = solve (p->trace, &o, scratch, &s, &err);
  if (!c.fits && err.code != ERR_infeasible)
    stop_at (&err);
  if (c.fits) {
    c.cost = s.plan->predicted;
    c.bound_ns = s.bound.lower_bound_ns;
    c.reached_bytes = c.cost.peak_bytes;
    c.drops = s.plan->n_recomputes;
  }
  arena_free (scratch);
  return c;
}

paper_cost paper_ours (paper *p, int64_t budget_bytes, int64_t ticks) {
  return solve_ours (p, budget_bytes, ticks, RECOMPUTE_OFF, SECTIONS_OFF);
}

paper_cost paper_mixed (paper *p, int64_t budget_bytes, int64_t ticks) {
  return solve_ours (p, budget_bytes, ticks, RECOMPUTE_AUTO, SECTIONS_OFF);
}

paper_cost paper_cut (paper *p, int64_t budget_bytes, int64_t ticks) {
  return solve_ours (p, budget_bytes, ticks, RECOMPUTE_OFF, SECTIONS_AUTO);
}

double paper_loss (const paper_cost *c) {
  double base = (double)c->cost.baseline_ns;
  return base > 0 ? 100 * ((double)c->cost.step_ns - base) / base : 0;
}

void paper_row (const char *paper, const char *claim, const char *published, const char *measured,
                const char *verdict, const char *command) {
  json_writer w;
  bytes text = { 0 };
  error err = { 0 };
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_text (&w, "claim", claim);
  json_add_text (&w, "command", command);
  json_add_text (&w, "measured", measured);
  json_add_text (&w, "paper", paper);
  json_add_text (&w, "published", published);
  json_add_text (&w, "verdict", verdict);
  json_close_object (&w);
  if (!json_finish (&w, &text, &err))
    stop_at (&err);
  printf ("%s: %s\n  published: %s\n  measured:  %s\n  %s\n", paper, claim, published, measured,
          verdict);
  fwrite (text.data, 1, (size_t)text.size, stdout);
  if (text.size == 0 || text.data[text.size - 1] != '\n')
    putchar ('\n');
  fflush (stdout);
  bytes_free (&text);
}
