/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Wishes to a plan: what lives in the pool, which moves are clean, and the steps in their order. */
#include "solver/place/schedule_inner.h"

#include <assert.h>
#include <stdlib.h>

#include "base/units.h"
#include "trace/simulate/simulate.h"

enum { POOL_CHOICES = 6 };

/* ---- tensors in the pool ---- */

static bool units_with (scheduling *s, int64_t pool_below_bytes, arena *a, units *out) {
  return units_of (s->trace, s->groups, s->n_groups, s->granule_bytes, pool_below_bytes, a, out,
                   s->err);
}

/* Without any move, the granules held at the fullest op, and the pool's. */
static int64_t peak_with (scheduling *s, int64_t pool_below_bytes, arena *scratch) {
  units u;
  int64_t n = s->trace->n_ops, held = 0, peak = 0;
  int64_t *change = NEW (scratch, n + 1, int64_t, s->err);
  if (!change || !units_with (s, pool_below_bytes, scratch, &u))
    return -1;
  for (int32_t i = 0; i < u.count; i++) {
    const unit_info *x = &u.at[i];
    if (x->bytes == 0)
      continue;
    change[x->persistent ? 0 : x->first] += x->granules;
    change[x->persistent ? n : (int64_t)x->last + 1] -= x->granules;
  }
  for (int64_t k = 0; k < n; k++) {
    held += change[k];
    int64_t now = held + units_div_up (s->trace->ops[k].workspace_bytes, s->granule_bytes);
    peak = now > peak ? now : peak;
  }
  return peak + units_div_up (u.pool_bytes, s->granule_bytes);
}

/* A tensor of its own costs at least a granule while it stays, one in the pool its bytes always. */
static bool choose_pool (scheduling *s, const wish *wishes, int32_t n_wishes, arena *scratch) {
  int64_t most = s->granule_bytes, best = -1;
  for (int32_t i = 0; i < n_wishes; i++)
    if (wishes[i].unit < s->trace->n_tensors && s->trace->tensors[wishes[i].unit].bytes < most)
      most = s->trace->tensors[wishes[i].unit].bytes;
  s->pool_below_bytes = 0;
  for (int i = 0; i < POOL_CHOICES; i++) {
    arena_mark mark = arena_here (scratch);
    int64_t below = i == 0 ? 0 : s->granule_bytes >> (POOL_CHOICES - 1 - i);
    int64_t peak = below > most ? INT64_MAX : peak_with (s, below, scratch);
    arena_back (scratch, mark);
    if (peak < 0)
      return false;
    if (best < 0 || peak < best) {
      best = peak;
      s->pool_below_bytes = below;
    }
  }
  return true;
}

/* ---- wishes to moves ---- */

static bool wish_is_sound (const scheduling *s, const wish *w, int32_t i) {
  const unit_info *u = w->unit >= 0 && w->unit < s->units.count ? &s->units.at[w->unit] : NULL;
  int32_t n = s->trace->n_ops;
  if (!u || u->bytes == 0 || u->pinned)
    return error_set (s->err, ERR_input, "wish %d: unit %d cannot move", i, w->unit);
  if (w->of < 1 || w->of > u->granules || w->part < 0 || w->part >= w->of)
    return error_set (s->err, ERR_input, "wish %d: part %d of %d of a unit of %lld granules", i,
                      w->part, w->of, (long long)u->granules);
  bool ordered =
      u->persistent
          ? w->out_after >= 0 && w->out_after < n && w->in_before >= 0 && w->in_before < n
          : w->out_after >= u->first && w->out_after < w->in_before && w->in_before <= u->last;
  if (!ordered)
    return error_set (s->err, ERR_input, "wish %d: out after op %d, in before op %d", i,
                      w->out_after, w->in_before);
  return w->in_not_before == NO_WAIT || w->in_not_before <= w->in_before ||
         error_set (s->err, ERR_input, "wish %d: in before op %d, not before op %d", i,
                    w->in_before, w->in_not_before);
}

/* No use in the cyclic range (a, b). */
static bool writes_between (const units *u, int32_t unit, int32_t a, int32_t b) {
  const use *first = u->uses + u->use_offset[unit], *end = u->uses + u->use_offset[unit + 1];
  for (const use *x = first; x < end; x++) {
    bool inside = a < b ? x->op > a && x->op <= b : x->op > a || x->op <= b;
    if (x->writes && inside)
      return true;
  }
  return false;
}

static int by_place (const void *a, const void *b, void *context) {
  const wish *w = context;
  return wish_compare (&w[*(const int32_t *)a], &w[*(const int32_t *)b]);
}

bool schedule_each_part (scheduling *s, arena *scratch, part_visit *visit) {
  assert (s->moves || s->n_moves == 0);
  int32_t *sorted = NEW (scratch, s->n_moves, int32_t, s->err);
  if (!sorted)
    return false;
  for (int32_t i = 0; i < s->n_moves; i++)
    sorted[i] = i;
  qsort_r (sorted, (size_t)s->n_moves, sizeof *sorted, by_place, s->moves);
  for (int32_t first = 0, end; first < s->n_moves; first = end) {
    const wish *w = &s->moves[sorted[first]];
    for (end = first + 1; end < s->n_moves && s->moves[sorted[end]].unit == w->unit &&
                          s->moves[sorted[end]].part == w->part;
         end++)
      ;
    if (!visit (s, sorted + first, end - first, scratch))
      return false;
  }
  return true;
}

/* The host keeps what a copy out has brought: as long as nobody writes the unit, later moves need
   no copy out.  A persistent part that nobody ever writes needs none at all. */
static bool mark_clean (scheduling *s, const int32_t *moves, int32_t count, arena *scratch) {
  (void)scratch;
  int32_t unit = s->moves[moves[0]].unit;
  const unit_info *u = &s->units.at[unit];
  bool written = false;
  for (int32_t i = s->units.use_offset[unit]; i < s->units.use_offset[unit + 1]; i++)
    written |= s->units.uses[i].writes;
  for (int32_t i = 0; i < count; i++) {
    wish *w = &s->moves[moves[i]];
    if (u->persistent && !written)
      w->clean = true;
    else if (i > 0)
      w->clean = !writes_between (&s->units, unit, s->moves[moves[i - 1]].out_after, w->out_after);
    else
      w->clean =
          u->persistent && count > 1 &&
          !writes_between (&s->units, unit, s->moves[moves[count - 1]].out_after, w->out_after);
  }
  return true;
}

static bool take_wishes (scheduling *s, arena *scratch) {
  const wish *wishes = s->request->wishes;
  int32_t n_wishes = s->request->n_wishes;
  if (!ALLOC (s->arena, s->moves, n_wishes, s->err))
    return false;
  s->n_moves = n_wishes;
  if (!ALLOC (s->arena, s->wished, n_wishes, s->err))
    return false;
  for (int32_t i = 0; i < n_wishes; i++) {
    s->moves[i] = wishes[i];
    s->wished[i] = wishes[i].in_not_before;
    if (!wish_is_sound (s, &wishes[i], i))
      return false;
  }
  return !s->options->auto_clean || schedule_each_part (s, scratch, mark_clean);
}

bool schedule_pool (const trace *t, const index_list *groups, int32_t n_groups,
                    int64_t granule_bytes, arena *scratch, int64_t *pool_below_bytes,
                    int64_t *peak_bytes, error *err) {
  assert (granule_bytes > 0 && pool_below_bytes);
  scheduling s = {
    .trace = t, .groups = groups, .n_groups = n_groups, .granule_bytes = granule_bytes, .err = err
  };
  arena_mark mark = arena_here (scratch);
  bool ok = choose_pool (&s, NULL, 0, scratch);
  int64_t peak = ok && peak_bytes ? peak_with (&s, s.pool_below_bytes, scratch) : 0;
  arena_back (scratch, mark);
  *pool_below_bytes = s.pool_below_bytes;
  if (peak_bytes)
    *peak_bytes = peak * granule_bytes;
  return ok && peak >= 0;
}

bool schedule_count (const trace *t, const count_rule *how, arena *a, counted_step *out,
                     error *err) {
  assert (how->granule_bytes > 0);
  count_rule with = *how;
  return schedule_pool (t, how->groups, how->n_groups, how->granule_bytes, a,
                        &with.pool_below_bytes, NULL, err) &&
         step_count (t, &with, a, out, err);
}

/* Stays count their granules in 32 bits, as plans do. */
static bool is_countable (const scheduling *s) {
  int64_t most = 0;
  char bytes[UNITS_TEXT], granule[UNITS_TEXT];
  for (int32_t i = 0; i < s->units.count; i++)
    most = s->units.at[i].granules > most ? s->units.at[i].granules : most;
  for (int32_t k = 0; k < s->trace->n_ops; k++) {
    int64_t granules = units_div_up (s->trace->ops[k].workspace_bytes, s->granule_bytes);
    most = granules > most ? granules : most;
  }
  return most <= INT32_MAX / 2 ||
         error_set (s->err, ERR_input, "%s in one piece are too many granules of %s to count",
                    units_bytes (bytes, most * s->granule_bytes),
                    units_bytes (granule, s->granule_bytes));
}

static bool choose_units (scheduling *s, arena *scratch) {
  const schedule_request *r = s->request;
  arena_mark mark = arena_here (scratch);
  s->pool_below_bytes = s->options->pool_below_bytes;
  if (r->units) {
    assert (r->units->trace == s->trace && s->pool_below_bytes >= 0);
    s->units = *r->units;
    return is_countable (s);
  }
  bool ok = s->pool_below_bytes >= 0 || choose_pool (s, r->wishes, r->n_wishes, scratch);
  arena_back (scratch, mark);
  return ok && units_with (s, s->pool_below_bytes, s->arena, &s->units) && is_countable (s);
}

/* True if the machine has the memory that is asked for. */
static bool is_there (const schedule_request *r, error *err) {
  const schedule_options *o = r->options;
  const device *dev = r->device;
  int64_t free_bytes = dev->memory_bytes - dev->reserved_bytes;
  char want[UNITS_TEXT], have[UNITS_TEXT];
  if (o->budget_bytes > free_bytes)
    return error_set (err, ERR_infeasible, "the budget is %s, but %s leaves %s free",
                      units_bytes (want, o->budget_bytes), dev->name,
                      units_bytes (have, free_bytes));
  if (o->host_bytes > dev->host_bytes)
    return error_set (err, ERR_infeasible, "%s on the host are asked for, %s has %s",
                      units_bytes (want, o->host_bytes), dev->name,
                      units_bytes (have, dev->host_bytes));
  return true;
}

/* Units and moves, counted. */
static bool start_schedule (const schedule_request *r, arena *a, arena *scratch, scheduling *s,
                            error *err) {
  assert (r->original && r->rewritten && r->device && r->options);
  assert (r->wishes || r->n_wishes == 0);
  assert (r->groups || r->n_groups == 0);
  const schedule_options *o = r->options;
  *s = (scheduling){ .request = r,
                     .trace = r->rewritten->trace,
                     .device = r->device,
                     .options = o,
                     .groups = r->groups,
                     .n_groups = r->n_groups,
                     .arena = a,
                     .err = err,
                     .granule_bytes =
                         o->granule_bytes ? o->granule_bytes : r->device->granule_bytes };
  assert (s->granule_bytes > 0 && s->granule_bytes % r->device->granule_bytes == 0);
  if (!is_there (r, err))
    return false;
  assert (!o->arena_granule_bytes || s->granule_bytes == PLACEMENT_STEP);
  int64_t whole = o->arena_granule_bytes ? o->arena_granule_bytes : s->granule_bytes;
  s->budget_granules = o->budget_bytes / whole * (whole / s->granule_bytes);
  return ALLOC (a, s->plan, 1, err) && schedule_write_head (s) && choose_units (s, scratch) &&
         take_wishes (s, scratch);
}

/* *ticks grows by what finding places took. `scratch` may be `a`. */
static plan *schedule_counted (const schedule_request *r, arena *a, arena *scratch,
                               schedule_shortage *shortage, int64_t *ticks, error *err) {
  scheduling s;
  if (!start_schedule (r, a, scratch, &s, err))
    return NULL;
  s.shortage = shortage;
  bool ok = schedule_place (&s) && schedule_write (&s, scratch);
  *ticks += s.ticks;
  return ok ? s.plan : NULL;
}

plan *schedule (const schedule_request *r, arena *a, schedule_shortage *shortage, error *err) {
  int64_t ticks = 0;
  arena *scratch = arena_made (err);
  plan *p = scratch ? schedule_counted (r, a, scratch, shortage, &ticks, err) : NULL;
  arena_free (scratch);
  return p;
}

plan *schedule_simulated (const schedule_request *r, arena *a, arena *scratch, int64_t *events,
                          error *err) {
  plan *p = schedule_counted (r, a, scratch, NULL, events, err);
  if (!p)
    return NULL;
  sim_job job = { r->original, r->rewritten, p };
  sim_options o = { .events = events };
  p->has_predicted = simulate (&job, 1, &o, scratch, &p->predicted, NULL, err);
  return p->has_predicted ? p : NULL;
}

bool schedule_guessed (const schedule_request *r, arena *scratch, int64_t *step_ns, error *err) {
  scheduling s;
  arena_mark mark = arena_here (scratch);
  bool ok = start_schedule (r, scratch, scratch, &s, err) && schedule_guess (&s, step_ns);
  arena_back (scratch, mark);
  return ok;
}
