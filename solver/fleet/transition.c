/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/fleet/transition.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"
#include "trace/rewrite/rewrite.h"
#include "trace/unit.h"

/* Granules of a job on the card between two steps: a flag for each of its persistent units. */
typedef struct resident {
  units units;
  int64_t *offset; /* per unit, and the end */
  bool *here;
} resident;

static bool resident_of (const trace *t, const plan *p, arena *a, resident *out, error *err) {
  rewritten rw;
  if (!plan_rewrite (t, p, a, &rw, err) ||
      !units_of (rw.trace, p->groups, p->n_groups, p->placement.granule_bytes,
                 p->placement.pool_below_bytes, a, &out->units, err))
    return false;
  int32_t n = out->units.count;
  if (!ALLOC (a, out->offset, (int64_t)n + 1, err))
    return false;
  for (int32_t i = 0; i < n; i++)
    out->offset[i + 1] =
        out->offset[i] + (out->units.at[i].persistent ? out->units.at[i].granules : 0);
  if (!ALLOC (a, out->here, out->offset[n] + 1, err))
    return false;
  memset (out->here, true, (size_t)out->offset[n]);
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    const unit_info *u = &out->units.at[m->unit];
    if (m->in_before > m->out_after || !u->persistent)
      continue;
    int64_t first = unit_part_first (u, m->part, m->of);
    memset (out->here + out->offset[m->unit] + first, false,
            (size_t)(unit_part_first (u, m->part + 1, m->of) - first));
  }
  return true;
}

static bool same_units (const resident *x, const resident *y) {
  if (x->units.count != y->units.count)
    return false;
  for (int32_t i = 0; i < x->units.count; i++)
    if (x->units.at[i].bytes != y->units.at[i].bytes || x->offset[i] != y->offset[i])
      return false;
  return true;
}

typedef struct copies {
  int64_t bytes, count;
} copies;

/* Granules that are in x and not in y (NULL: in none); neighbours go in one copy. */
static copies only_in (const resident *x, const resident *y, int64_t granule_bytes) {
  copies c = { 0 };
  for (int32_t i = 0; i < x->units.count; i++) {
    bool running = false;
    for (int64_t k = x->offset[i]; k < x->offset[i + 1]; k++) {
      bool moves = x->here[k] && !(y && y->here[k]);
      int64_t before = (k - x->offset[i]) * granule_bytes;
      int64_t left = x->units.at[i].bytes - before;
      c.bytes += !moves ? 0 : left < granule_bytes ? left : granule_bytes;
      c.count += moves && !running;
      running = moves;
    }
  }
  return c;
}

/* Bytes of the pool that are there between two steps. */
static int64_t pool_kept (const units *u) {
  int64_t bytes = 0;
  for (int32_t x = 0; x < u->trace->n_tensors; x++)
    if (u->trace->tensors[x].persistent && u->group_of[x] < 0 && u->at[x].bytes == 0)
      bytes += unit_member_bytes (u->trace->tensors[x].bytes);
  return bytes;
}

bool transition_between (const trace *t, const plan *from, const plan *to, arena *scratch,
                         transition *out, error *err) {
  assert (t && out && (from || to));
  resident before = { 0 }, after = { 0 };
  arena_mark mark = arena_here (scratch);
  *out = (transition){ 0 };
  if (!to)
    return true;
  bool ok = (!from || resident_of (t, from, scratch, &before, err)) &&
            resident_of (t, to, scratch, &after, err);
  if (ok) {
    const device *d = &to->device;
    int64_t granule = to->placement.granule_bytes;
    /* If tensors are grouped in another way, all of it moves. */
    bool same = from && from->placement.granule_bytes == granule && same_units (&before, &after);
    copies outs = { 0 }, ins = only_in (&after, same ? &before : NULL, granule);
    if (from)
      outs = only_in (&before, same ? &after : NULL, from->placement.granule_bytes);
    if (!from || !same) { /* the pool, with its small tensors */
      int64_t pool = pool_kept (&after.units);
      ins.bytes += pool;
      ins.count += pool > 0;
      outs.bytes += from ? pool_kept (&before.units) : 0;
    }
    *out = (transition){
      outs.bytes, ins.bytes,
      units_scale (outs.bytes, 1000000000, d->link.d2h_bytes_per_s) + outs.count * d->link.copy_ns,
      units_scale (ins.bytes, 1000000000, d->link.h2d_bytes_per_s) + ins.count * d->link.copy_ns
    };
  }
  arena_back (scratch, mark);
  return ok;
}
