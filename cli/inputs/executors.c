/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/executors.h"

#include <string.h>

#include "trace/check/check.h"
#include "trace/torch.h"

typedef enum executor { EXECUTOR_REPLAY, EXECUTOR_RUN, EXECUTOR_TORCH } executor;

/* In the order of executor. */
static const char *const executor_words[] = { "replay", "run", "torch", NULL };

static bool recorded_by_torch (const trace *t) {
  return t->source.kind && strcmp (t->source.kind, "ferry_torch") == 0;
}

static bool asked (call *c, const trace *t, executor *which) {
  bool has = call_has_option (c, "for");
  int word = has && recorded_by_torch (t) ? EXECUTOR_TORCH : EXECUTOR_REPLAY;
  bool ok = !has || call_word (c, "for", executor_words, &word);
  *which = (executor)word;
  return ok;
}

/* Options by which a step is rewritten: eager programs run the ops that they run, though
   ferry_torch can run some of them once more. */
static bool refuse_rewriting (call *c, executor which) {
  static const char *const rewriting[] = { "sections", "order", "recompute" };
  size_t count = sizeof rewriting / sizeof *rewriting - (which == EXECUTOR_TORCH);
  for (size_t i = 0; i < count; i++) {
    const char *said = call_has_option (c, rewriting[i]) ? call_text (c, rewriting[i]) : NULL;
    if (said && strcmp (said, "off") != 0 && strcmp (said, "as-is") != 0)
      return call_text (c, "for")
                 ? error_set (&c->err, ERR_usage, "--for %s: --%s %s cannot be followed there",
                              executor_words[which], rewriting[i], said)
                 : error_set (&c->err, ERR_usage,
                              "--%s %s: ferry_torch, which recorded this step, cannot follow "
                              "that; --for replay asks for other executors",
                              rewriting[i], said);
  }
  return true;
}

bool executor_allows (call *c, const trace *t, allowed *x) {
  allowed less = SWAPS_ALONE;
  executor which;
  if (!asked (c, t, &which))
    return false;
  if (which == EXECUTOR_REPLAY)
    return true;
  less.recompute = call_text (c, "recompute") ? x->recompute : RECOMPUTE_OFF;
  *x = less;
  return true;
}

const trace *executor_trace (call *c, const trace *t) {
  executor which;
  if (!asked (c, t, &which))
    return NULL;
  if (which == EXECUTOR_REPLAY)
    return t;
  if (!refuse_rewriting (c, which))
    return NULL;
  if (which == EXECUTOR_RUN)
    return t;
  if (call_has_option (c, "proof") && call_flag (c, "proof")) {
    error_set (&c->err, ERR_usage,
               "--proof would be of all plans of the trace, and the bound of plans for "
               "ferry_torch (--for torch) is of fewer; --for replay has proofs");
    return NULL;
  }
  trace *restricted = NEW (c->arena, 1, trace, &c->err);
  if (!restricted || !trace_for_torch (t, c->arena, restricted, &c->err))
    return NULL;
  if (!call_text (c, "for"))
    call_note (c, "for ferry_torch, which recorded this step; --for replay asks for other "
                  "executors");
  return restricted;
}

allowed executor_most (call *c, const trace *t) {
  allowed all = allowed_by (t), most = SWAPS_ALONE;
  executor which;
  if (!asked (c, t, &which) || which == EXECUTOR_REPLAY)
    return all;
  if (which == EXECUTOR_TORCH)
    most.recompute = all.recompute;
  return most;
}

bool executor_places (call *c, const trace *t, bool *same_places, places_mode *mode) {
  executor which;
  if (!asked (c, t, &which))
    return false;
  *same_places |= which == EXECUTOR_RUN;
  if (!*same_places && which != EXECUTOR_TORCH)
    return true;
  if (*mode == PLACES_ARENA)
    return error_set (
        &c->err, ERR_usage,
        "--placement arena is for `ferry replay` and executors of your own: a program "
        "that keeps its addresses, and ferry_torch, need granules");
  *mode = PLACES_GRANULES;
  return true;
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
