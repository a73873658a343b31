/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/executors.h"

#include <string.h>

#include "trace/check/check.h"
#include "trace/torch.h"

typedef enum executor { EXECUTOR_REPLAY, EXECUTOR_RUN, EXECUTOR_TORCH } executor;

/* In the order of executor. */
static const char *const executor_words[] = { "replay", "run", "torch", NULL };

static bool asked (call *c, executor *which) {
  int word = EXECUTOR_REPLAY;
  bool ok = call_word (c, "for", executor_words, &word);
  *which = (executor)word;
  return ok;
}

/* Options by which a step is rewritten: eager programs run the ops that they run, though
   ferry_torch can run some of them once more. */
static bool refuse_rewriting (call *c, executor which) {
  static const char *const rewriting[] = { "sections", "order", "recompute" };
  size_t count = sizeof rewriting / sizeof *rewriting - (which == EXECUTOR_TORCH);
  for (size_t i = 0; i < count; i++) {
    const char *said = call_text (c, rewriting[i]);
    if (said && strcmp (said, "off") != 0 && strcmp (said, "as-is") != 0)
      return error_set (&c->err, ERR_usage, "--for %s: --%s %s cannot be followed there",
                        executor_words[which], rewriting[i], said);
  }
  return true;
}

bool executor_allows (call *c, solve_options *o) {
  allowed x = SWAPS_ALONE;
  executor which;
  if (!asked (c, &which))
    return false;
  if (which == EXECUTOR_REPLAY)
    return true;
  x.recompute = call_text (c, "recompute") ? o->recompute : RECOMPUTE_OFF;
  allowed_into (&x, o);
  return true;
}

const trace *executor_trace (call *c, const trace *t) {
  executor which;
  if (!asked (c, &which))
    return NULL;
  if (which == EXECUTOR_REPLAY)
    return t;
  if (!refuse_rewriting (c, which))
    return NULL;
  if (which == EXECUTOR_RUN)
    return t;
  if (call_flag (c, "proof")) {
    error_set (
        &c->err, ERR_usage,
        "--for torch: a proof would be of all plans of the trace, and the bound is of fewer");
    return NULL;
  }
  trace *restricted = NEW (c->arena, 1, trace, &c->err);
  return restricted && trace_for_torch (t, c->arena, restricted, &c->err) ? restricted : NULL;
}

allowed executor_most (call *c, const trace *t) {
  allowed all = allowed_by (t), most = SWAPS_ALONE;
  executor which;
  if (!asked (c, &which) || which == EXECUTOR_REPLAY)
    return all;
  if (which == EXECUTOR_TORCH)
    most.recompute = all.recompute;
  return most;
}

bool executor_keeps_places (call *c) {
  executor which;
  return asked (c, &which) && which == EXECUTOR_RUN;
}

bool executor_plan (call *c, const trace *t, const trace *planned, plan *p) {
  if (planned == t)
    return true;
  char digest[TRACE_DIGEST];
  if (!trace_digest (t, digest, &c->err) ||
      !(p->trace_digest = arena_string (c->arena, digest, &c->err)))
    return false;
  p->certificate.cover.executor = COVER_EXECUTOR_TORCH;
  return check_plan (t, p, c->arena, NULL, &c->err);
}
