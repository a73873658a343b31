/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/floor.h"

#include <assert.h>
#include <stdio.h>

#include "base/units.h"
#include "solver/attempt/layout.h"
#include "trace/summary.h"

enum { PARTS_TEXT = 80 };

static bool uses_op (const units *u, int32_t unit, int32_t op) {
  for (int32_t i = u->use_offset[unit]; i < u->use_offset[unit + 1]; i++)
    if (u->uses[i].op == op)
      return true;
  return false;
}

static void parts_of (const layout *l, memory_floor *out) {
  const units *u = &l->step.units;
  *out = (memory_floor){ .op = l->step.gaps.floor_op,
                         .bytes = l->step.gaps.floor_bytes,
                         .pool_bytes = u->pool_bytes,
                         .workspace_bytes = u->trace->ops[l->step.gaps.floor_op].workspace_bytes };
  for (int32_t i = 0; i < u->count; i++) {
    const unit_info *at = &u->at[i];
    bool lives = at->bytes && (at->persistent || (at->first <= out->op && out->op <= at->last));
    if (lives && uses_op (u, i, out->op))
      out->touched_bytes += at->bytes;
    else if (lives && at->pinned)
      out->pinned_bytes += at->bytes;
  }
  out->granule_bytes =
      out->bytes - out->pool_bytes - out->workspace_bytes - out->touched_bytes - out->pinned_bytes;
}

/* Small groups first: how large the others may be depends on the budget. */
bool floor_of (const trace *t, const device *d, arena *scratch, memory_floor *out, error *err) {
  assert (t && d && out);
  *out = (memory_floor){ .bytes = INT64_MAX };
  for (int kind = LAYOUTS - 1; kind >= 0; kind--) {
    arena_mark here = arena_here (scratch);
    layout l;
    layout_request q = { .trace = t,
                         .kind = (layout_kind)kind,
                         .device = d,
                         .budget_bytes = kind == LAYOUT_SMALL ? 0 : out->bytes };
    if (!layout_make (&q, scratch, &l, err))
      return false;
    if (l.step.gaps.floor_bytes < out->bytes)
      parts_of (&l, out);
    arena_back (scratch, here);
  }
  return true;
}

device floor_device (const device *d) {
  device fine = *d;
  fine.granule_bytes = PLACEMENT_STEP;
  return fine;
}

bool floor_least (const trace *t, const device *d, arena *scratch, memory_floor *out, error *err) {
  device fine = floor_device (d);
  if (!floor_of (t, &fine, scratch, out, err))
    return false;
  int64_t whole = units_div_up (out->bytes, d->granule_bytes) * d->granule_bytes;
  out->granule_bytes += whole - out->bytes;
  out->bytes = whole;
  return true;
}

static const char *name_of (const op *o) {
  return o->name && *o->name ? o->name : "no name";
}

static int64_t living_on (const trace *t) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].persistent && __builtin_add_overflow (bytes, t->tensors[i].bytes, &bytes))
      return INT64_MAX;
  return bytes;
}

bool floor_outlives (const trace *t, int64_t budget_bytes, int64_t host_bytes) {
  return living_on (t) > budget_bytes + host_bytes;
}

/* Empty where no op has parts. */
static bool in_parts_text (const trace *t, arena *scratch, char text[PARTS_TEXT], error *err) {
  summary s;
  char bytes[UNITS_TEXT];
  text[0] = 0;
  if (!summary_of (t, scratch, &s, err))
    return false;
  if (s.floor_sections_bytes < s.floor_bytes)
    snprintf (text, PARTS_TEXT, "; in the most parts at least %s (op %d)",
              units_bytes (bytes, s.floor_sections_bytes), s.floor_sections_op);
  return true;
}

/* "the smallest budget is" only what was tried. */
static void least_text (const memory_floor *f, const floor_request *r, char *text, int size) {
  char least[UNITS_TEXT], found[UNITS_TEXT];
  int64_t bytes = r->least_bytes ? r->least_bytes : f->bytes;
  units_bytes (least, bytes);
  if (r->found_bytes == bytes)
    snprintf (text, (size_t)size, "the smallest budget is %s (%lldB)", least, (long long)bytes);
  else if (r->found_bytes)
    snprintf (text, (size_t)size, "below %s (%lldB) nothing fits, in %s (%lldB) a plan was found",
              least, (long long)bytes, units_bytes (found, r->found_bytes),
              (long long)r->found_bytes);
  else
    snprintf (text, (size_t)size, "below %s (%lldB) nothing fits", least, (long long)bytes);
}

static bool below (const trace *t, const memory_floor *f, const floor_request *r, arena *scratch,
                   error *err) {
  enum { LEAST_TEXT = 160 };
  char parts[PARTS_TEXT], named[LEAST_TEXT];
  char budget[UNITS_TEXT], touched[UNITS_TEXT], workspace[UNITS_TEXT], reserve[UNITS_TEXT];
  char pinned[UNITS_TEXT], pool[UNITS_TEXT], rounding[UNITS_TEXT];
  const op *o = &t->ops[f->op];
  int64_t kept = r->reserve_bytes, above_bytes = r->least_bytes - kept - f->bytes;
  if (!in_parts_text (t, scratch, parts, err))
    return false;
  least_text (f, r, named, sizeof named);
  return error_set (
      err, ERR_infeasible,
      "no plan fits in %s%s %s, set by op %d (%.60s)%s: %s that it uses, %s of workspace, %s "
      "pinned, %s too small to move, %s of rounding to granules%s%s%s",
      units_bytes (budget, r->asked_bytes ? r->asked_bytes : r->budget_bytes),
      r->in_parts    ? ", nor was one found with ops in parts; with whole ops"
      : o->parts > 1 ? " with whole ops (--sections auto may run them in parts);"
                     : ";",
      named, f->op, name_of (o), o->parts > 1 ? "" : ", which has no parts",
      units_bytes (touched, f->touched_bytes), units_bytes (workspace, f->workspace_bytes),
      units_bytes (pinned, f->pinned_bytes), units_bytes (pool, f->pool_bytes),
      units_bytes (rounding, f->granule_bytes + (above_bytes > 0 ? above_bytes : 0)),
      kept ? ", a reserve of " : "", kept ? units_bytes (reserve, kept) : "", parts);
}

/* The op at which most bytes have to be on the host, whatever is away. */
static bool host_need (const trace *t, int64_t budget_bytes, arena *scratch, int32_t *op,
                       int64_t *bytes, error *err) {
  counted_step *step = NEW (scratch, 1, counted_step, err);
  *op = NO_OP;
  *bytes = 0;
  if (!step || !step_count_bytes (t, budget_bytes, scratch, step, err))
    return false;
  const gaps *g = &step->gaps;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t over = g->base_bytes[k] - g->unused_bytes - g->room_bytes;
    if (over > *bytes) {
      *bytes = over;
      *op = k;
    }
  }
  return true;
}

static bool above (const trace *t, const memory_floor *f, const floor_request *r, arena *scratch,
                   error *err) {
  char parts[PARTS_TEXT], budget[UNITS_TEXT], least[UNITS_TEXT], host[UNITS_TEXT];
  char need[UNITS_TEXT];
  int32_t op;
  int64_t bytes;
  units_bytes (budget, r->budget_bytes);
  units_bytes (least, f->bytes);
  units_bytes (host, r->host_bytes);
  if (!in_parts_text (t, scratch, parts, err))
    return false;
  if (floor_outlives (t, r->budget_bytes, r->host_bytes))
    return error_set (err, ERR_infeasible,
                      "no plan fits in %s with %s of the host's memory: %s live on from step to "
                      "step; give more of either",
                      budget, host, units_bytes (need, living_on (t)));
  if (r->stays)
    return error_set (
        err, ERR_limit,
        "no plan that swaps nothing was found in %s, though the largest op needs only "
        "%s%s; allow swapping (--recompute auto), or give more",
        budget, least, parts);
  if (!host_need (t, r->budget_bytes, scratch, &op, &bytes, err))
    return false;
  if (bytes > r->host_bytes && !r->drops && !r->in_parts)
    return error_set (
        err, ERR_infeasible,
        "no plan fits in %s with %s of the host's memory: at op %d (%.60s) %s have to "
        "be there; the largest op needs %s%s; give more of either",
        budget, host, op, name_of (&t->ops[op]), units_bytes (need, bytes), least, parts);
  return error_set (err, ERR_limit,
                    "no plan was found in %s with %s of the host's memory, though the largest op "
                    "needs only %s%s; give more of either",
                    budget, host, least, parts);
}

bool floor_refuse (const trace *t, const device *d, const floor_request *r, error *err) {
  memory_floor f;
  error fresh = { 0 };
  arena *scratch = arena_made (&fresh);
  if (scratch && floor_of (t, d, scratch, &f, &fresh)) {
    if (r->budget_bytes < f.bytes || r->budget_bytes < r->least_bytes - r->reserve_bytes)
      below (t, &f, r, scratch, &fresh);
    else
      above (t, &f, r, scratch, &fresh);
  }
  arena_free (scratch);
  if (err)
    *err = fresh;
  return false;
}
