/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/starts.h"

#include "cli/inputs/inputs.h"
#include "cli/inputs/policies.h"
#include "solver/starts.h"
#include "trace/check/check.h"

/* A plan says which trace it is of, and not how much of that its executor can follow. */
static bool name_trace (call *c, const trace *given, const trace *planned, plan *p) {
  char digest[TRACE_DIGEST];
  error ignored = { 0 };
  if (given == planned || !check_trace (given, p, &ignored))
    return true;
  return trace_digest (planned, digest, &c->err) &&
         (p->trace_digest = arena_string (c->arena, digest, &c->err));
}

/* True if it is a plan of this question; else a note says why not. */
static bool tell (call *c, const trace *t, const ask *q, const char *path, const plan *p) {
  plan *here;
  error why = { 0 }, ignored = { 0 };
  solve_options o = q->options;
  o.device = &q->device;
  if (starts_fit (t, &o, p, c->arena, &here, &why))
    return true;
  if (why.code != ERR_infeasible)
    return error_set (&c->err, why.code, "%s", why.text);
  bool is_hint = starts_suits (t, &o, p, c->arena, &ignored);
  call_note (c, "--from %s: no plan here, %s: %s", path,
             is_hint ? "so only its order, cuts and drops are tried" : "and of no use", why.text);
  return true;
}

bool starts_read (call *c, const trace *given, const trace *planned, ask *q) {
  enum { MOST = 16 };
  const char *rest = call_text (c, "from"), *path;
  const plan **all = NEW (c->arena, MOST, const plan *, &c->err);
  int32_t n = 0;
  while (all && (path = next_part (c, &rest))) {
    plan *p = n < MOST ? call_plan (c, path) : NULL;
    if (!p)
      return n < MOST ? false : call_usage (c, "--from: at most %d plans", MOST);
    if (!name_trace (c, given, planned, p) || !tell (c, planned, q, path, p))
      return false;
    all[n++] = p;
  }
  q->options.starts = all;
  q->options.n_starts = n;
  return all && !c->err.code;
}
