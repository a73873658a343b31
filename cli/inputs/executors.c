/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/executors.h"

#include <string.h>

#include "trace/check/check.h"
#include "trace/torch.h"

typedef enum executor {
  EXECUTOR_REPLAY,
  EXECUTOR_RUN,
  EXECUTOR_TORCH,  /* eager PyTorch, at hooks */
  EXECUTOR_COMPILE /* the graph of torch.compile: it recomputes at no more than the ops' own cost */
} executor;

/* In the order of executor. */
static const char *const executor_words[] = { "replay", "run", "torch", "compile", NULL };

static bool is_torch (executor which) {
  return which == EXECUTOR_TORCH || which == EXECUTOR_COMPILE;
}

/* ferry_torch writes these kinds. */
static executor recorder_of (const trace *t) {
  const char *kind = t->source.kind ? t->source.kind : "";
  return strcmp (kind, "ferry_torch") == 0           ? EXECUTOR_TORCH
         : strcmp (kind, "ferry_torch.backend") == 0 ? EXECUTOR_COMPILE
                                                     : EXECUTOR_REPLAY;
}

static bool asked (call *c, const trace *t, executor *which) {
  bool has = call_has_option (c, "for");
  int word = (int)(has ? recorder_of (t) : EXECUTOR_REPLAY);
  bool ok = !has || call_word (c, "for", executor_words, &word);
  *which = (executor)word;
  return ok;
}

/* The trace of a program says which of its kernels `ferry run` can launch again. */
static bool says_again (const trace *t) {
  for (int32_t x = 0; x < t->n_tensors; x++)
    if (t->tensors[x].placed)
      return true;
  return false;
}

static bool may_recompute (executor which, const trace *t) {
  return which == EXECUTOR_RUN ? says_again (t) : true;
}

/* Options by which a step is rewritten: eager programs run the ops that they run, though some can
   be run once more. */
static bool refuse_rewriting (call *c, executor which, const trace *t) {
  static const char *const rewriting[] = { "sections", "order", "recompute" };
  size_t count = sizeof rewriting / sizeof *rewriting - may_recompute (which, t);
  for (size_t i = 0; i < count; i++) {
    const char *said = call_own_text (c, rewriting[i]);
    if (said && strcmp (said, "off") != 0 && strcmp (said, "as-is") != 0)
      return call_text (c, "for")
                 ? call_usage (c, "--for %s: --%s %s cannot be followed there",
                               executor_words[which], rewriting[i], said)
                 : call_usage (c,
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
  if (call_text (c, "recompute") || which == EXECUTOR_COMPILE ||
      (which == EXECUTOR_RUN && says_again (t)))
    less.recompute = x->recompute;
  *x = less;
  return true;
}

const trace *executor_trace (call *c, const trace *t) {
  executor which;
  if (!asked (c, t, &which))
    return NULL;
  if (which == EXECUTOR_REPLAY)
    return t;
  if (!refuse_rewriting (c, which, t))
    return NULL;
  if (which == EXECUTOR_RUN)
    return t;
  if (call_own_text (c, "proof")) {
    call_usage (c,
                "--proof would be of all plans of the trace, and the bound of plans for "
                "ferry_torch (--for %s) is of fewer; --for replay has proofs",
                executor_words[which]);
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
  if (may_recompute (which, t))
    most.recompute = all.recompute;
  return most;
}

bool executor_places (call *c, const trace *t, bool *same_places, places_mode *mode) {
  executor which;
  if (!asked (c, t, &which))
    return false;
  *same_places |= which == EXECUTOR_RUN;
  if (!*same_places && !is_torch (which))
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

int64_t executor_granule (call *c, const trace *t, int64_t otherwise) {
  enum { OF_TORCH = 512 }; /* bytes, to which its allocator rounds */
  executor which;
  return asked (c, t, &which) && is_torch (which) ? OF_TORCH : otherwise;
}
