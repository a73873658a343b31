/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry plot`: one step of a plan as a picture. */
#include "cli/figures/picture_files.h"
#include "cli/figures/pictures.h"
#include "cli/figures/plan_step.h"

static int run (call *c) {
  plan_step s;
  bool any;
  if (!plan_step_read (c, c->operands[0], c->operands[1], &s))
    return call_failed (c);
  if (c->json)
    return plan_step_json (c, &s) ? EXIT_YES : call_failed (c);
  if (!plan_step_draw (c, &s, &any))
    return call_failed (c);
  if (any)
    return EXIT_YES;
  return picture_step (c, &s.job, &s.line) ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  OPTIONS_OF_PICTURES,
  { 0, "timeline", "FILE", "what the page of --html draws, as JSON; docs/pictures.md" },
  OPTIONS_END,
};

const cli_command command_plot = {
  .name = "plot",
  .says = "draw one step of a plan",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "Draws one step in the steady state: the device's memory with the budget and who holds it, "
      "who is busy when (ops, copies out, copies in, and the stalls where an op waits), and what "
      "is away on the host. Without a file to write, the picture is drawn in the terminal.\n",
  .options = options,
  .json = true,
  .draws = true,
  .run = run,
};
