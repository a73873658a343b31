#include "solver/floor.h"

#include "base/units.h"
#include "solver/gaps.h"
#include "solver/schedule.h"

static bool uses_op (const units *u, int32_t unit, int32_t op) {
  for (int32_t i = u->use_offset[unit]; i < u->use_offset[unit + 1]; i++)
    if (u->uses[i].op == op)
      return true;
  return false;
}

bool floor_of (const trace *t, const device *d, arena *scratch, memory_floor *out, error *err) {
  units u;
  gaps g;
  int64_t pool_below_bytes;
  *out = (memory_floor){ 0 };
  if (!schedule_pool (t, NULL, 0, d->granule_bytes, scratch, &pool_below_bytes, NULL, err) ||
      !units_of (t, NULL, 0, d->granule_bytes, pool_below_bytes, scratch, &u, err) ||
      !gaps_of (&u, d->granule_bytes, 0, scratch, &g, err))
    return false;
  out->op = g.floor_op;
  out->bytes = g.floor_bytes;
  out->pool_bytes = u.pool_bytes;
  out->workspace_bytes = t->ops[out->op].workspace_bytes;
  for (int32_t i = 0; i < u.count; i++) {
    const unit_info *at = &u.at[i];
    bool lives = at->bytes && (at->persistent || (at->first <= out->op && out->op <= at->last));
    if (lives && uses_op (&u, i, out->op))
      out->touched_bytes += at->bytes;
    else if (lives && at->pinned)
      out->pinned_bytes += at->bytes;
  }
  out->granule_bytes =
      out->bytes - out->pool_bytes - out->workspace_bytes - out->touched_bytes - out->pinned_bytes;
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
