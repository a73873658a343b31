/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry demo`: what ferry is for, on one network and one card, without a GPU. */
#include <string.h>

#include "base/units.h"
#include "cli/inputs/devices.h"
#include "cli/figures/pictures.h"
#include "cli/explain/closing.h"
#include "cli/inputs/planner.h"
#include "solver/place/schedule.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"
#include "trace/summary.h"
#include "trace/uses.h"
#include "trace/zoo/zoo.h"

enum { BATCH = 256, LIMIT_TICKS = 1000000 };
static const char network[] = "vgg16", card[] = "titanx-pascal";

typedef struct story {
  device device;
  trace *trace;
  summary needs;
  int64_t budget_bytes;
  rewritten rewritten;
  plan *plan;
  predicted costs;
  timeline timeline;
  solution best;
  predicted best_costs;
  timeline best_timeline;
} story;

static bool make_trace (call *c, story *s) {
  const char *name = call_text (c, "device");
  zoo_request r = { .name = network, .batch = BATCH, .optimizer = ZOO_SGD, .device = &s->device };
  if (!device_named (c, name ? name : card, &s->device))
    return false;
  s->budget_bytes = s->device.memory_bytes - s->device.reserved_bytes;
  s->trace = zoo_trace (&r, c->arena, &c->err);
  return s->trace && summary_of (s->trace, c->arena, &s->needs, &c->err) &&
         trace_rewrite (s->trace, &(rewriting){ .section_ns = s->device.section_ns }, c->arena,
                        &s->rewritten, &c->err);
}

static bool fits (const story *s) {
  return s->needs.peak_bytes <= s->budget_bytes;
}

/* ---- the naive plan ---- */

/* The latest start that still has the copy back in time, if nothing else crosses the link. */
static int32_t latest_start (const story *s, int64_t bytes, int32_t out_after, int32_t in_before) {
  int64_t needs_ns =
      units_scale (bytes, 1000000000, s->device.link.h2d_bytes_per_s) + s->device.link.copy_ns;
  int32_t start = in_before;
  while (start > out_after + 1 && needs_ns > 0) {
    start--;
    needs_ns -= s->trace->ops[start].ns + s->trace->ops[start].gap_ns;
  }
  return start;
}

/* The longest time between two uses of a tensor; false: it has one use only, or none. */
static bool longest_gap (const uses *u, int32_t x, int32_t *from, int32_t *to) {
  int32_t longest = 1;
  for (int32_t k = u->offset[x]; k + 1 < u->offset[x + 1]; k++)
    if (u->at[k + 1].op - u->at[k].op > longest) {
      longest = u->at[k + 1].op - u->at[k].op;
      *from = u->at[k].op;
      *to = u->at[k + 1].op;
    }
  return longest > 1;
}

/* Every activation of at least a granule goes out after its last use in the forward pass, and comes
   back as late as possible: what a programmer would try first. */
static wish *every_activation (call *c, const story *s, int32_t *count) {
  uses u;
  wish *wishes = NEW (c->arena, s->trace->n_tensors, wish, &c->err);
  *count = 0;
  if (!wishes || !uses_of (s->trace, c->arena, &u, &c->err))
    return NULL;
  for (int32_t x = 0; x < s->trace->n_tensors; x++) {
    const tensor *at = &s->trace->tensors[x];
    int32_t from, to;
    if (at->kind != TENSOR_ACTIVATION || at->persistent || at->pinned ||
        at->bytes < s->device.granule_bytes || !longest_gap (&u, x, &from, &to))
      continue;
    wishes[(*count)++] = (wish){ .unit = x,
                                 .of = 1,
                                 .out_after = from,
                                 .in_before = to,
                                 .in_not_before = latest_start (s, at->bytes, from, to) };
  }
  return wishes;
}

static bool make_plan (call *c, story *s) {
  int32_t count;
  sim_options o = { .timeline_arena = c->arena };
  schedule_options limits = { .budget_bytes = s->budget_bytes,
                              .host_bytes = s->device.host_bytes,
                              .pool_below_bytes = -1 };
  wish *wishes = every_activation (c, s, &count);
  s->plan = wishes ? schedule (&(schedule_request){ .original = s->trace,
                                                    .rewritten = &s->rewritten,
                                                    .device = &s->device,
                                                    .wishes = wishes,
                                                    .n_wishes = count,
                                                    .options = &limits },
                               c->arena, NULL, &c->err)
                   : NULL;
  if (!s->plan || !check_plan (s->trace, s->plan, c->arena, NULL, &c->err))
    return false;
  sim_job job = { s->trace, &s->rewritten, s->plan };
  return simulate (&job, 1, &o, c->arena, &s->costs, &s->timeline, &c->err);
}

/* ---- the solved plan ---- */

static bool solve_it (call *c, story *s) {
  planner p;
  sim_options o = { .timeline_arena = c->arena };
  if (!planner_plain (&p, c, s->trace, &s->device, s->budget_bytes, LIMIT_TICKS, &c->err) ||
      !planner_solve (c, &p, s->trace, c->arena, &s->best))
    return false;
  sim_job job = { s->trace, &s->rewritten, s->best.plan };
  return simulate (&job, 1, &o, c->arena, &s->best_costs, &s->best_timeline, &c->err);
}

/* ---- telling it ---- */

static bool tell_need (call *c, const story *s) {
  char needs[UNITS_TEXT], has[UNITS_TEXT], missing[UNITS_TEXT], floor[UNITS_TEXT];
  printf ("1. One training step of %s, batch %d: %d ops on %d tensors.\n"
          "   With everything on the device it needs %s. A %s has %s to give.\n\n",
          network, BATCH, s->trace->n_ops, s->trace->n_tensors,
          units_bytes (needs, s->needs.peak_bytes), s->device.name,
          units_bytes (has, s->budget_bytes));
  if (!picture_needs (c, s->trace, s->needs.bytes_at, s->budget_bytes))
    return false;
  if (fits (s))
    printf ("\n   It fits; nothing has to move.\n");
  else
    printf ("\n   %s are missing. But at no moment does an op touch more than %s:\n"
            "   the rest only waits for the backward pass.\n",
            units_bytes (missing, s->needs.peak_bytes - s->budget_bytes),
            units_bytes (floor, s->needs.floor_bytes));
  return true;
}

static bool tell_naive (call *c, const story *s) {
  char out[UNITS_TEXT], link[UNITS_TEXT], step[UNITS_TEXT], alone[UNITS_TEXT], stall[UNITS_TEXT];
  char peak[UNITS_TEXT], host[UNITS_TEXT];
  sim_job job = { s->trace, &s->rewritten, s->plan };
  printf ("\n2. The naive plan: every activation waits on the host, and comes back as late as\n"
          "   possible: %d moves, %s out and in again over a link of %s.\n",
          s->plan->n_moves, units_bytes (out, s->costs.d2h_bytes),
          units_rate (link, s->device.link.d2h_bytes_per_s));
  putchar ('\n');
  if (!picture_step (c, &job, &s->timeline))
    return false;
  double slower = 100.0 * (double)s->costs.step_ns / (double)s->costs.baseline_ns - 100;
  printf (
      "\n   It fits in %s, with %s of the host's memory. Every rule of `ferry check` holds.\n"
      "   A step takes %s instead of %s, %.0f %% more: for %s the GPU only waits for the link.\n",
      units_bytes (peak, s->costs.peak_bytes), units_bytes (host, s->costs.host_peak_bytes),
      units_time (step, s->costs.step_ns), units_time (alone, s->costs.baseline_ns), slower,
      units_time (stall, s->costs.stall_ns));
  return true;
}

static bool tell_best (call *c, const story *s) {
  char out[UNITS_TEXT], in[UNITS_TEXT], step[UNITS_TEXT], stall[UNITS_TEXT], least[UNITS_TEXT];
  char peak[UNITS_TEXT], host[UNITS_TEXT];
  const plan *p = s->best.plan;
  sim_job job = { s->trace, &s->rewritten, p };
  printf ("\n3. The solved plan: only what has to move, in pieces, when the link is free:\n"
          "   %d moves, %s out and %s in.\n\n",
          p->n_moves, units_bytes (out, s->best_costs.d2h_bytes),
          units_bytes (in, s->best_costs.h2d_bytes));
  if (!picture_step (c, &job, &s->best_timeline))
    return false;
  char text[COVER_TEXT];
  const char *whom = closing_whom (p, text);
  double slower = 100.0 * (double)s->best_costs.step_ns / (double)s->best_costs.baseline_ns - 100;
  printf ("\n   It fits in %s, with %s of the host's memory. Every rule of `ferry check` holds.\n"
          "   A step takes %s, %.2f %% more than without any limit; %s of stalls.\n",
          units_bytes (peak, s->best_costs.peak_bytes),
          units_bytes (host, s->best_costs.host_peak_bytes),
          units_time (step, s->best_costs.step_ns), slower,
          units_time (stall, s->best_costs.stall_ns));
  printf ("   No plan%s can take less than %s (certified, by %s).\n", whom,
          units_time (least, p->certificate.lower_bound_ns), p->certificate.bound_by);
  double gap = closing_gap (s->best_costs.step_ns, p->certificate.lower_bound_ns);
  printf ("\nThe naive plan takes %s, the solved one %s: ", units_time (out, s->costs.step_ns),
          units_time (step, s->best_costs.step_ns));
  if (gap > 0)
    printf ("at most %.2f %% above what any plan%s can reach.\n", gap, whom);
  else
    printf ("no plan%s is faster.\n", whom);
  return true;
}

static bool tell_plans (call *c, const story *s) {
  return tell_naive (c, s) && tell_best (c, s);
}

static bool print_json (call *c, const story *s) {
  json_writer w;
  json_begin_object (&w, 1);
  json_add_int (&w, "batch", BATCH);
  json_add_int (&w, "budget_bytes", s->budget_bytes);
  json_add_text (&w, "device", s->device.name);
  json_add_int (&w, "floor_bytes", s->needs.floor_bytes);
  json_add_int (&w, "moves", s->plan->n_moves);
  predicted_write (&w, "naive", &s->costs);
  json_add_text (&w, "network", network);
  json_add_int (&w, "peak_bytes", s->needs.peak_bytes);
  json_add_object (&w, "solved");
  certificate_write (&w, &s->best.plan->certificate, true);
  json_add_int (&w, "moves", s->best.plan->n_moves);
  predicted_write (&w, "predicted", &s->best_costs);
  json_close_object (&w);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  story s = { 0 };
  bool ok = make_trace (c, &s) && make_plan (c, &s) && solve_it (c, &s);
  if (ok && c->json)
    ok = print_json (c, &s);
  else
    ok = ok && tell_need (c, &s) && (fits (&s) || tell_plans (c, &s));
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = { OPTION_DEVICE, OPTIONS_END };

const cli_command command_demo = {
  .name = "demo",
  .says = "show in ten seconds what ferry is for",
  .operands = "",
  .about =
      "Takes one training step of VGG-16 at batch 256 and a card of 12 GiB, a TITAN X unless "
      "--device says otherwise: what it needs, what is missing, what a naive plan costs, and what "
      "the solved one costs beside what no plan can beat, with pictures of one step. It needs no "
      "GPU and no network.\n",
  .options = options,
  .json = true,
  .draws = true,
  .run = run,
};
