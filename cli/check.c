/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry check`: whether a plan is legal for a trace. */
#include "trace/check/check.h"
#include "cli/inputs/inputs.h"

static bool print_json (call *c, const trace *t, bool legal, check_rule rule) {
  json_writer w;
  json_begin_object (&w, 1);
  confidence_write (&w, t->source.confidence, t->source.doubt);
  json_add_bool (&w, "legal", legal);
  if (!legal) {
    json_add_text (&w, "rule", check_rule_name (rule));
    json_add_text (&w, "says", check_rule_says (rule));
    json_add_text (&w, "text", c->err.text);
    json_add_text (&w, "where", c->err.where);
  }
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  check_rule rule = CHECK_RULES;
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  if (!p)
    return call_failed (c);
  bool legal = check_plan (t, p, c->arena, &rule, &c->err);
  if (!legal && c->err.code != ERR_infeasible)
    return call_failed (c);
  if (c->json && !print_json (c, t, legal, rule))
    return call_failed (c);
  if (!legal) {
    error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  if (!c->json) {
    printf ("legal: %d moves, %d of them clean\n", p->n_moves, p->n_moves - p->n_outs);
    call_tell_doubt (stdout, c, t);
  }
  return EXIT_YES;
}

static const cli_option options[] = { OPTION_STRICT, OPTIONS_END };

const cli_command command_check = {
  .name = "check",
  .says = "say whether a plan is legal for a trace",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "Checks every rule that a plan must keep, however long ops and copies take: nothing is used "
      "while it is away, no memory is used twice, no waits form a circle, the budgets hold. "
      "Prints which rule is broken, and where. The exit status is 0 or 1.\n",
  .options = options,
  .json = true,
  .run = run,
};
