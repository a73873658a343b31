/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry min-memory`: the smallest budget that keeps a slowdown. */
#include "base/units.h"
#include "cli/inputs/executors.h"
#include "cli/inputs/devices.h"
#include "cli/inputs/stopping.h"
#include "cli/whatif/offline.h"
#include "cli/whatif/stages.h"

static bool print_json (call *c, const curve_options *o, const min_memory *m) {
  json_writer w;
  json_begin_object (&w, 1);
  allowed_write (&w, &o->allowed);
  json_add_int (&w, "baseline_ns", m->baseline_ns);
  json_add_int (&w, "bounds", m->bounds);
  json_add_int (&w, "floor_bytes", m->floor_bytes);
  json_add_int (&w, "most_ns", m->most_ns);
  json_add_int (&w, "needs_bytes", m->peak_bytes);
  json_add_int (&w, "none_below_bytes", m->none_below_bytes);
  json_add_int (&w, "plan_bytes", m->plan ? m->plan_bytes : -1);
  predicted_write (&w, "predicted", m->plan ? &m->plan->predicted : NULL);
  json_add_int (&w, "solves", m->solves);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static bool print_text (FILE *to, call *c, const curve_options *o, const min_memory *m) {
  char a[3][UNITS_TEXT];
  fprintf (to, "without swaps %s in %s; asked for at most %s\n", units_time (a[0], m->baseline_ns),
           units_bytes (a[1], m->peak_bytes), units_time (a[2], m->most_ns));
  if (m->plan)
    fprintf (to, "with %s   a plan takes %s (%+.2f %%)\n", units_bytes (a[0], m->plan_bytes),
             units_time (a[1], m->plan->predicted.step_ns),
             offline_slower (m->plan->predicted.step_ns, m->baseline_ns));
  else
    fprintf (to, "no plan %s\n",
             stopping_asked (c) ? "that is so fast was found before the interrupt"
                                : "was found that is so fast");
  offline_tell_beyond (to, o->device, m->plan ? m->plan_bytes : 0);
  const char *with = allowed_text (&o->allowed, c->arena, &c->err);
  if (with)
    fprintf (to, "below %s   no plan is so fast (%s): proved\n",
             units_bytes (a[0], m->none_below_bytes), with);
  return with;
}

static bool store (call *c, const trace *given, const trace *t, const plan *found,
                   const char *path) {
  plan p = *found;
  return executor_plan (c, given, t, &p) && plan_store (&p, path, false, &c->err);
}

static int run (call *c) {
  if (c->n_operands > 1)
    return stages_min_memory (c);
  device d;
  curve_options o;
  min_memory m;
  int64_t slowdown_ppm = 50000, fine_bytes = 0;
  const char *output = call_text (c, "output");
  const trace *given, *t = offline_trace (c, c->operands[0], &given);
  bool ok = t && device_needed (c, t, &d) && offline_options (c, t, &d, &o) &&
            call_quantity (c, "slowdown", &slowdown_ppm) &&
            call_quantity (c, "fine", &fine_bytes) &&
            min_memory_of (t, &o, slowdown_ppm, fine_bytes, c->arena, &m, &c->err) &&
            (!output || !m.plan || store (c, given, t, m.plan, output));
  if (!ok || (c->json && !print_json (c, &o, &m)))
    return call_failed (c);
  if (!c->json && !print_text (call_is_stdout (output) ? stderr : stdout, c, &o, &m))
    return call_failed (c);
  return m.plan || stopping_asked (c) ? EXIT_YES : EXIT_NO;
}

static const cli_option options[] = {
  { 's', "slowdown", "SHARE", "how much longer a step may take, such as 5%; default: 5%",
    RANGE_SHARE },
  { 0, "fine", "SIZE", "stop when the answer is known to within SIZE; default: a 64th of the range",
    RANGE_SIZE },
  OPTION_DEVICE,
  OPTION_HOST_OR_MEMORY,
  OPTION_RANKS,
  OPTIONS_OF_EFFORT ("quick"),
  OPTIONS_OF_REWRITING,
  OPTION_FOR,
  OPTION_PLACEMENT,
  OPTION_THREADS,
  OPTION_OUTPUT ("where the plan goes; compressed if it ends in .gz or .zst"),
  OPTIONS_END,
};

const cli_command command_min_memory = {
  .name = "min-memory",
  .says = "find the smallest memory at a slowdown",
  .operands = "TRACE...",
  .least = 1,
  .most = HOST_MOST_CARDS,
  .about =
      "Bisects the budget, on the bound first and then on plans, and prints two budgets: "
      "for the larger there is a plan, and below the smaller it is proved that none is fast "
      "enough.\n"
      "Several traces are stages of one job, a rank each on the cards of --host: the answer is "
      "one share of what each needs.\n",
  .options = options,
  .json = true,
  .run = run,
};
