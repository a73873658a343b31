/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/every_way.h"

#include <string.h>

#include "tests/ref_rewrite.h"

enum { MOST_OPS = 12, MOST_UNITS = 12, MOST_IDLE = 20, MOST_SECTIONS = 8, MOST_ENTRIES = 4 };

typedef struct trying {
  const tiny_case *c;
  const every_allowed *allowed;
  arena *arena;
  every_way *out;
  error *err;
  section sections[MOST_SECTIONS];
  int32_t n_sections;
  const trace *cut;         /* by these */
  const recompute *entries; /* of the cut trace */
  int32_t n_entries;
  recompute chosen[MOST_ENTRIES];
  int32_t n_chosen;
} trying;

/* The rewritten trace without tensors that are nothing, as best_search wants it. False: too much
   for it. */
static bool compact (trying *w, const trace *t, tiny_case *to) {
  int32_t kept = 0;
  trace *made = NEW (w->arena, 1, trace, w->err);
  int32_t *at = NEW (w->arena, t->n_tensors, int32_t, w->err);
  tensor *tensors = NEW (w->arena, t->n_tensors, tensor, w->err);
  op *ops = NEW (w->arena, t->n_ops, op, w->err);
  if (!made || !at || !tensors || !ops)
    return false;
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int32_t uses = 0;
    for (int32_t k = 0; k < t->n_ops; k++)
      uses += op_touches (&t->ops[k], x);
    if (!uses)
      continue;
    at[x] = kept;
    tensors[kept++] = t->tensors[x];
  }
  for (int32_t k = 0; k < t->n_ops; k++) {
    ops[k] = t->ops[k];
    index_list *lists[] = { &ops[k].reads, &ops[k].writes };
    for (int which = 0; which < 2; which++) {
      int32_t *copy = NEW (w->arena, lists[which]->count, int32_t, w->err);
      if (!copy)
        return false;
      for (int32_t i = 0; i < lists[which]->count; i++)
        copy[i] = at[lists[which]->at[i]];
      lists[which]->at = copy;
    }
  }
  *made = *t;
  made->tensors = tensors;
  made->ops = ops;
  made->n_tensors = kept;
  *to = *w->c;
  to->trace = made;
  return t->n_ops <= MOST_OPS && kept <= MOST_UNITS && tiny_idle (made) <= MOST_IDLE;
}

static bool found (const trying *w) {
  return w->allowed->any && w->out->step_ns < w->allowed->below_ns;
}

/* The sections and entries that are chosen. */
static bool judge (trying *w) {
  rewritten made;
  tiny_case c;
  best_plan best;
  error refused = { 0 };
  if (!ref_rewrite (w->c->trace, w->sections, w->n_sections, w->chosen, w->n_chosen,
                    w->c->device.section_ns, w->arena, &made, &refused))
    return refused.code == ERR_infeasible || error_set (w->err, refused.code, "%s", refused.text);
  w->out->made++;
  if (trace_total_ns (made.trace) >= w->out->step_ns || found (w))
    return true;
  if (!compact (w, made.trace, &c)) {
    w->out->complete = false;
    return w->err->code == ERR_none;
  }
  if (w->allowed->still) {
    int64_t peak, floor;
    tiny_levels (c.trace, &peak, &floor);
    if (peak * TINY_GRANULE <= c.budget_bytes)
      w->out->step_ns = w->out->least_ns = trace_total_ns (c.trace);
    return true;
  }
  if (!best_search (&c, w->out->step_ns, w->allowed->most_runs - w->out->runs, w->arena, &best,
                    w->err))
    return false;
  w->out->runs += best.tried;
  w->out->complete &= best.complete;
  if (best.counted_ns < w->out->least_ns)
    w->out->least_ns = best.counted_ns;
  if (best.plan) {
    w->out->step_ns = best.step_ns;
    w->out->n_sections = w->n_sections;
    w->out->n_entries = w->n_chosen;
  }
  return true;
}

/* ---- entries ---- */

static int64_t entry_ns (const trying *w, const recompute *r) {
  int64_t ns = 0;
  for (int32_t i = 0; i < r->ops.count; i++)
    ns += w->cut->ops[r->ops.at[i]].ns + w->cut->ops[r->ops.at[i]].gap_ns;
  return ns;
}

/* Entries behind the last one chosen, as many as their ops have time. */
static bool choose_entries (trying *w, int64_t used_ns) {
  arena_mark here = arena_here (w->arena);
  if (w->n_chosen && !judge (w))
    return false;
  arena_back (w->arena, here);
  const recompute *last = w->n_chosen ? &w->chosen[w->n_chosen - 1] : NULL;
  for (int32_t i = 0; i < w->n_entries; i++) {
    const recompute *r = &w->entries[i];
    bool again = last && r->before < last->before;
    for (int32_t e = 0; e < w->n_chosen; e++) /* the same ops at the same place: for nothing */
      again |= w->chosen[e].before == r->before && w->chosen[e].ops.at == r->ops.at;
    if (again || found (w) || used_ns + entry_ns (w, r) >= w->out->step_ns)
      continue;
    if (w->n_chosen == MOST_ENTRIES || w->out->runs + w->out->made >= w->allowed->most_runs) {
      w->out->complete = false;
      return true;
    }
    w->chosen[w->n_chosen++] = *r;
    if (!choose_entries (w, used_ns + entry_ns (w, r)))
      return false;
    w->n_chosen--;
  }
  return true;
}

/* ---- cuts ---- */

static bool try_cut (trying *w) {
  rewritten cut;
  error refused = { 0 };
  recompute *entries;
  if (!ref_rewrite (w->c->trace, w->sections, w->n_sections, NULL, 0, w->c->device.section_ns,
                    w->arena, &cut, &refused))
    return refused.code == ERR_infeasible || error_set (w->err, refused.code, "%s", refused.text);
  w->out->cuts++;
  w->n_chosen = 0;
  if (!judge (w))
    return false;
  int64_t base_ns = trace_total_ns (cut.trace), left_ns = w->out->step_ns - base_ns - 1;
  if (!w->allowed->drops || left_ns < 0 || found (w))
    return true;
  w->cut = cut.trace;
  if (cut.trace->n_ops > MOST_OPS || cut.trace->n_tensors > 16) {
    w->out->complete = false;
    return true;
  }
  int32_t n = 0;
  if (!every_entry (cut.trace, left_ns, w->arena, &entries, &w->n_entries, w->err))
    return false;
  for (int32_t i = 0; i < w->n_entries; i++)
    if (every_allows (w->allowed, &cut, &entries[i]))
      entries[n++] = entries[i];
  w->n_entries = n;
  w->entries = entries;
  return choose_entries (w, base_ns);
}

static bool choose_cut (trying *w, int32_t k) {
  int32_t n = w->c->trace->n_ops;
  if (k == n) {
    arena_mark here = arena_here (w->arena);
    bool ok = try_cut (w);
    arena_back (w->arena, here);
    return ok;
  }
  if (!choose_cut (w, k + 1))
    return false;
  for (int32_t end = k + 1; w->allowed->parts && end <= n; end++)
    for (int64_t parts = 2; parts <= 3; parts++) {
      if (end > k + 1 && w->allowed->level_only)
        break;
      w->sections[w->n_sections++] =
          (section){ k, end, parts, end > k + 1 ? SECTION_DEPTH : SECTION_LEVEL };
      bool ok = choose_cut (w, end);
      w->n_sections--;
      if (!ok)
        return false;
    }
  return true;
}

bool every_way_search (const tiny_case *c, const every_allowed *allowed, every_way *out,
                       error *err) {
  trying w = { .c = c, .allowed = allowed, .out = out, .err = err };
  *out =
      (every_way){ .least_ns = allowed->below_ns, .step_ns = allowed->below_ns, .complete = true };
  if (c->trace->n_ops > MOST_SECTIONS)
    return error_set (err, ERR_internal, "the trace is not tiny");
  w.arena = arena_new (0);
  bool ok = w.arena ? choose_cut (&w, 0) : error_set (err, ERR_memory, "out of memory");
  arena_free (w.arena);
  return ok;
}
