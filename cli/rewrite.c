/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry rewrite`: the trace that a plan's sections and recompute entries make. */
#include "cli/inputs/inputs.h"
#include "trace/rewrite/rewrite.h"

static int run (call *c) {
  rewritten out;
  bytes text = { 0 };
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  if (!p)
    return call_failed (c);
  if (!plan_rewrite (t, p, c->arena, &out, &c->err)) {
    error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  bool packed = call_flag (c, "packed");
  bool ok = trace_text (out.trace, packed ? TRACE_PACKED : TRACE_PLAIN, &text, &c->err) &&
            call_write (c, call_text (c, "output"), text.data, text.size);
  bytes_free (&text);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  OPTION_OUTPUT ("where to; compressed if it ends in .gz or .zst; without it, standard output"),
  { 'p', "packed", NULL, "columns instead of one object a row" },
  OPTION_STRICT,
  OPTIONS_END,
};

const cli_command command_rewrite = {
  .name = "rewrite",
  .says = "write the trace as a plan's sections and recompute entries change it",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about = "All indices of a plan but those of its sections and recompute entries are indices of "
           "this trace: every part of an op is an op, every piece of a tensor a tensor.\n",
  .options = options,
  .run = run,
};
