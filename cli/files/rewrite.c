/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry rewrite`: the trace that a plan's sections and recompute entries make. */
#include "cli/inputs/inputs.h"
#include "trace/check/check.h"
#include "trace/rewrite/rewrite.h"

static bool print_json (call *c, const rewritten *out, const char *digest, int64_t size) {
  json_writer w;
  json_begin_object (&w, 1);
  json_add_int (&w, "bytes", size);
  json_add_text (&w, "digest", digest);
  json_add_int (&w, "ops", out->trace->n_ops);
  json_add_text (&w, "output", call_text (c, "output"));
  json_add_int (&w, "tensors", out->trace->n_tensors);
  json_close_object (&w);
  return call_print_json (c, &w);
}

static int run (call *c) {
  rewritten out;
  bytes text = { 0 };
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  char digest[TRACE_DIGEST];
  if (!p || !call_json_beside (c, "output"))
    return call_failed (c);
  if (!check_trace (t, p, &c->err) || !plan_rewrite (t, p, c->arena, &out, &c->err)) {
    error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  bool ok = trace_text (out.trace, TRACE_PLAIN, &text, &c->err) &&
            call_write (c, call_text (c, "output"), text.data, text.size) &&
            (!c->json || (trace_digest (out.trace, digest, &c->err) &&
                          print_json (c, &out, digest, text.size)));
  bytes_free (&text);
  return ok ? EXIT_YES : call_failed (c);
}

static const cli_option options[] = {
  OPTION_OUTPUT ("where to; compressed if it ends in .gz or .zst; default: standard output"),
  OPTIONS_END,
};

const cli_command command_rewrite = {
  .name = "rewrite",
  .says = "write the trace as a plan's sections and recompute entries change it",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "All indices of a plan but those of its sections and recompute entries are indices of this "
      "trace: every part of an op is an op, every piece of a tensor a tensor.\n",
  .options = options,
  .json = true,
  .run = run,
};
