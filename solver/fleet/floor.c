/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/floor.h"

#include <assert.h>
#include <stdio.h>

#include "base/units.h"
#include "solver/attempt/layout.h"
#include "solver/refusal.h"
#include "trace/summary.h"

enum { PARTS_TEXT = 80, MADE_TEXT = 256 };

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
    if (!layout_suits ((layout_kind)kind, t, NULL))
      continue;
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

/* ---- the words ---- */

/* The one sentence of every refusal. Its first figure is the budget that was asked for, rounded
   down, its last the one to ask for, rounded up: pasted back, it works. */
static bool say (const floor_request *r, error_code code, const char *none, bool host,
                 const char *also, error *err) {
  enum { PART = 64 };
  char budget[UNITS_TEXT], bytes[UNITS_TEXT], with[PART] = "", next[PART];
  int64_t asked_bytes = r->asked_bytes ? r->asked_bytes : r->budget_bytes;
  if (host)
    snprintf (with, PART, " with %s of the host's memory", units_bytes_down (bytes, r->host_bytes));
  if (r->found_bytes)
    snprintf (next, PART, "ask for %s", units_bytes_up (bytes, r->found_bytes));
  else if (r->least_bytes > asked_bytes)
    snprintf (next, PART, "it takes at least %s", units_bytes_up (bytes, r->least_bytes));
  else
    snprintf (next, PART, "give more");
  return error_set (err, code, "%s in %s%s%s; %s%s%s", none, units_bytes_down (budget, asked_bytes),
                    with, code == ERR_limit ? ", and none is ruled out" : "", next,
                    !host            ? ""
                    : r->found_bytes ? ", or for more of the host's memory"
                                     : " of either",
                    also);
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

/* The parts of the least; those of no bytes are left out. */
static const char *least_text (const memory_floor *f, const floor_request *r, char *text,
                               int size) {
  int64_t above_bytes = r->least_bytes - r->reserve_bytes - f->bytes;
  const struct {
    int64_t bytes;
    const char *what;
  } parts[] = { { f->touched_bytes, "that it uses" },
                { f->workspace_bytes, "of workspace" },
                { f->pinned_bytes, "pinned" },
                { f->pool_bytes, "too small to move" },
                { f->granule_bytes + (above_bytes > 0 ? above_bytes : 0),
                  "of rounding to granules" },
                { r->reserve_bytes, "of reserve" } };
  int n = 0;
  text[0] = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char bytes[UNITS_TEXT];
    if (parts[i].bytes > 0 && n < size)
      n += snprintf (text + n, (size_t)(size - n), "%s%s %s", n ? ", " : "",
                     units_bytes (bytes, parts[i].bytes), parts[i].what);
  }
  return text;
}

static bool below (const trace *t, const memory_floor *f, const floor_request *r, arena *scratch,
                   error *err) {
  char parts[PARTS_TEXT], least[UNITS_TEXT], made[MADE_TEXT];
  const op *o = &t->ops[f->op];
  bool may_cut = o->parts > 1 && !r->in_parts;
  if (!in_parts_text (t, scratch, parts, err))
    return false;
  say (r, ERR_infeasible, may_cut ? "no plan of whole ops fits" : "no plan fits", false,
       may_cut ? ", or allow ops in parts with --sections auto" : "", err);
  return error_more (err, "below %s nothing fits%s, because of op %d (%.60s)%s: %s%s",
                     units_bytes (least, r->least_bytes ? r->least_bytes : f->bytes),
                     o->parts > 1 ? " in whole ops" : "", f->op, name_of (o),
                     o->parts > 1 ? "" : ", which has no parts", least_text (f, r, made, MADE_TEXT),
                     parts);
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
  char parts[PARTS_TEXT], least[UNITS_TEXT], need[UNITS_TEXT], made[MADE_TEXT];
  int32_t op;
  int64_t bytes;
  units_bytes (least, f->bytes);
  if (!in_parts_text (t, scratch, parts, err) ||
      !host_need (t, r->budget_bytes, scratch, &op, &bytes, err))
    return false;
  if (refusal_outlives (t, r->budget_bytes, r->host_bytes)) {
    say (r, ERR_infeasible, "no plan fits", true, "", err);
    return error_more (err, "%s live on from step to step",
                       units_bytes (need, refusal_living_bytes (t)));
  }
  if (r->stays)
    say (r, ERR_limit, "no plan that swaps nothing was found", false,
         ", or allow swapping with --recompute auto", err);
  else if (bytes > r->host_bytes && !r->drops && !r->in_parts)
    say (r, ERR_infeasible, "no plan fits", true, "", err);
  else
    say (r, ERR_limit, "no plan was found", bytes > r->host_bytes, "", err);
  if (bytes > r->host_bytes && !r->stays)
    return error_more (err, "at op %d (%.60s) %s have to be on the host; the largest op needs %s%s",
                       op, name_of (&t->ops[op]), units_bytes (need, bytes), least, parts);
  if (r->budget_bytes < f->bytes)
    return error_more (
        err, "in granules op %d (%.60s) needs %s in every layout that was tried: %s%s", f->op,
        name_of (&t->ops[f->op]), least, least_text (f, r, made, MADE_TEXT), parts);
  return error_more (err, "the largest op (%d, %.60s) needs only %s%s", f->op,
                     name_of (&t->ops[f->op]), least, parts);
}

bool floor_refuse (const trace *t, const device *d, const floor_request *r, error *err) {
  memory_floor f;
  error fresh = { 0 };
  arena *scratch = arena_made (&fresh);
  if (scratch && floor_of (t, d, scratch, &f, &fresh)) {
    if (!r->open &&
        (r->budget_bytes < f.bytes || r->budget_bytes < r->least_bytes - r->reserve_bytes))
      below (t, &f, r, scratch, &fresh);
    else
      above (t, &f, r, scratch, &fresh);
  }
  arena_free (scratch);
  if (err)
    *err = fresh;
  return false;
}
