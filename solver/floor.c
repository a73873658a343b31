#include "solver/floor.h"

#include "base/units.h"
#include "solver/layout.h"

static bool uses_op (const units *u, int32_t unit, int32_t op) {
  for (int32_t i = u->use_offset[unit]; i < u->use_offset[unit + 1]; i++)
    if (u->uses[i].op == op)
      return true;
  return false;
}

static void parts_of (const layout *l, memory_floor *out) {
  const units *u = &l->units;
  *out = (memory_floor){ .op = l->gaps.floor_op,
                         .bytes = l->gaps.floor_bytes,
                         .pool_bytes = u->pool_bytes,
                         .workspace_bytes = u->trace->ops[l->gaps.floor_op].workspace_bytes };
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
  *out = (memory_floor){ .bytes = INT64_MAX };
  for (int kind = LAYOUTS - 1; kind >= 0; kind--) {
    arena_mark here = arena_here (scratch);
    layout l;
    if (!layout_make (t, (layout_kind)kind, d, kind == LAYOUT_SMALL ? 0 : out->bytes, NULL, NULL,
                      scratch, &l, err))
      return false;
    if (l.gaps.floor_bytes < out->bytes)
      parts_of (&l, out);
    arena_back (scratch, here);
  }
  return true;
}

static bool below (const trace *t, const memory_floor *f, int64_t budget_bytes, error *err) {
  char budget[UNITS_TEXT], least[UNITS_TEXT], touched[UNITS_TEXT], workspace[UNITS_TEXT];
  char pinned[UNITS_TEXT], pool[UNITS_TEXT], rounding[UNITS_TEXT];
  return error_set (
      err, ERR_infeasible,
      "no plan fits in %s; the smallest budget is %s (%lld bytes), set by op %d "
      "(%.60s): %s that it uses, %s of workspace, %s pinned, %s too small to move, "
      "%s of rounding to granules",
      units_bytes (budget, budget_bytes), units_bytes (least, f->bytes), (long long)f->bytes, f->op,
      t->ops[f->op].name ? t->ops[f->op].name : "", units_bytes (touched, f->touched_bytes),
      units_bytes (workspace, f->workspace_bytes), units_bytes (pinned, f->pinned_bytes),
      units_bytes (pool, f->pool_bytes), units_bytes (rounding, f->granule_bytes));
}

bool floor_refuse (const trace *t, const device *d, int64_t budget_bytes, int64_t host_bytes,
                   error *err) {
  memory_floor f;
  error fresh = { 0 };
  arena *scratch = arena_new (0);
  if (!scratch)
    error_set (&fresh, ERR_memory, "out of memory");
  else if (floor_of (t, d, scratch, &f, &fresh)) {
    char budget[UNITS_TEXT], least[UNITS_TEXT], host[UNITS_TEXT];
    if (budget_bytes < f.bytes)
      below (t, &f, budget_bytes, &fresh);
    else
      error_set (&fresh, ERR_infeasible,
                 "no plan was found in %s with %s of the host's memory, though the largest op "
                 "needs only %s; give more of either",
                 units_bytes (budget, budget_bytes), units_bytes (host, host_bytes),
                 units_bytes (least, f.bytes));
  }
  arena_free (scratch);
  if (err)
    *err = fresh;
  return false;
}
