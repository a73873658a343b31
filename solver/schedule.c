/* Wishes to a plan.  The forward run may not repeat itself exactly from step to step, and granules
   on a circle may need a few more than their number at any moment: then it is run again with a
   little less memory, until what it decides has places. */
#include "solver/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/host_pack.h"
#include "solver/lives.h"
#include "solver/place.h"

enum { TRIES = 16, TIMINGS = 2, HOST_PLACE = 512, POOL_CHOICES = 6 };
/* Granules too many for which copies in may wait: each holds up all behind it. */
enum { FEW_OVER = 64, FEW_PART = 10000 };

typedef struct scheduling {
  const trace *trace;
  const device *device;
  const schedule_options *options;
  const index_list *groups;
  int32_t n_groups;
  arena *arena;
  error *err;
  schedule_shortage *shortage;
  int64_t granule_bytes, pool_below_bytes, budget_granules;
  units units;
  wish *moves;
  int32_t *wished; /* per move: the start that was asked for */
  int32_t n_moves;
  lives lives;
  places places;
  host_span *spans; /* one per copy that the host holds */
  int32_t n_spans;
  int32_t *span_of; /* per move */
  plan *plan;
} scheduling;

/* ---- what lives in the pool ---- */

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

/* A tensor of its own costs at least a granule while it lives, one in the pool its bytes always. */
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
  const wish *x = &w[*(const int32_t *)a], *y = &w[*(const int32_t *)b];
  if (x->unit != y->unit)
    return x->unit < y->unit ? -1 : 1;
  if (x->part != y->part)
    return x->part < y->part ? -1 : 1;
  return x->out_after < y->out_after ? -1 : x->out_after > y->out_after;
}

typedef bool part_visit (scheduling *s, const int32_t *moves, int32_t count, arena *scratch);

/* Calls `visit` with the moves of each part of each unit, in order of out_after. */
static bool each_part (scheduling *s, arena *scratch, part_visit *visit) {
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

static bool take_wishes (scheduling *s, const wish *wishes, int32_t n_wishes, arena *scratch) {
  s->moves = NEW (s->arena, n_wishes, wish, s->err);
  if (!s->moves)
    return false;
  s->n_moves = n_wishes;
  s->wished = NEW (s->arena, n_wishes, int32_t, s->err);
  if (!s->wished)
    return false;
  for (int32_t i = 0; i < n_wishes; i++) {
    s->moves[i] = wishes[i];
    s->wished[i] = wishes[i].in_not_before;
    if (!wish_is_sound (s, &wishes[i], i))
      return false;
  }
  return !s->options->auto_clean || each_part (s, scratch, mark_clean);
}

/* ---- places on the device ---- */

static int64_t part_bytes (const scheduling *s, const wish *w) {
  return unit_part_bytes (&s->units.at[w->unit], s->granule_bytes, w->part, w->of);
}

static bool short_of (scheduling *s, int32_t op, int64_t granules) {
  int64_t bytes = granules * s->granule_bytes;
  char need[UNITS_TEXT], have[UNITS_TEXT];
  if (s->shortage)
    *s->shortage = (schedule_shortage){ op, bytes };
  if (op == NO_OP)
    return error_set (s->err, ERR_infeasible, "places for these moves need %s, the budget is %s",
                      units_bytes (need, bytes), units_bytes (have, s->options->budget_bytes));
  return error_set (s->err, ERR_infeasible, "op %d (%.80s) needs %s at once, the budget is %s", op,
                    s->trace->ops[op].name, units_bytes (need, bytes),
                    units_bytes (have, s->options->budget_bytes));
}

/* Copies in on demand and ops that wait for copies out: the last resort, which needs least. */
static void go_slow (scheduling *s) {
  for (int32_t i = 0; i < s->n_moves; i++) {
    s->moves[i].in_not_before = s->moves[i].in_before;
    s->moves[i].wait_out = true;
  }
}

/* Just in time: from the last copy in to the first, each ends where the next one starts or where
   its op is due, a little earlier; from the times of a run before. */
static bool hold_back (scheduling *s, int64_t period_ns) {
  const lives *l = &s->lives;
  const op *ops = s->trace->ops;
  int32_t n = s->trace->n_ops;
  arena_mark mark = arena_here (s->arena);
  int64_t *end_ns = NEW (s->arena, n, int64_t, s->err);
  if (!end_ns)
    return false;
  for (int32_t k = 0; k < n; k++)
    end_ns[k] = l->start_ns[k] + ops[k].ns;
  link_rates r = device_rates (&s->device->link, s->device->share_ppm);
  int64_t margin_ns = units_scale (period_ns, s->options->early_ppm, 1000000), next_ns = INT64_MAX;
  /* Twice round: the first copies in of a step may have to start in the step before. */
  for (int turn = 1; turn >= 0; turn--)
    for (int32_t i = s->n_moves - 1, k = n; i >= 0; i--) {
      wish *w = &s->moves[l->in_order[i]];
      int64_t due_ns = l->start_ns[w->in_before] + turn * period_ns;
      int64_t copy_ns =
          s->device->link.copy_ns + units_scale (part_bytes (s, w), 1000000000, r.in_both) + 1;
      next_ns = (due_ns < next_ns ? due_ns : next_ns) - copy_ns;
      int64_t start_ns = next_ns - margin_ns;
      if (turn)
        continue;
      while (k > 0 && end_ns[k - 1] > start_ns)
        k--;
      int32_t before = k; /* ops of this step that have ended by then */
      if (k == 0 && start_ns < 0) {
        before = n;
        while (before > 0 && end_ns[before - 1] > start_ns + period_ns)
          before--;
        before -= n;
      }
      if (s->wished[l->in_order[i]] == NO_WAIT)
        w->in_not_before = before < w->in_before ? before : w->in_before;
    }
  arena_back (s->arena, mark);
  return true;
}

/* The copies in that should start later for the granules to suffice; false where there is none. */
static bool wait_longer (scheduling *s) {
  bool any = false;
  for (int32_t i = 0; i < s->n_moves; i++)
    if (s->places.wait_ops[i] != NO_WAIT && s->places.wait_ops[i] > s->moves[i].in_not_before) {
      s->moves[i].in_not_before = s->places.wait_ops[i];
      any = true;
    }
  return any;
}

/* Runs with copies in as soon as possible, then just in time by the times that were seen. */
static bool find_times (scheduling *s, int64_t granules) {
  moment period, start;
  if (s->options->by_release && s->n_moves && !lives_order (&s->lives, granules, s->arena, s->err))
    return false;
  for (int i = 0; s->options->early_ppm >= 0 && s->n_moves && i < TIMINGS; i++)
    if (!lives_run (&s->lives, granules, s->arena, &period, &start, s->err) ||
        !hold_back (s, period.at_ns))
      return false;
  return true;
}

static bool give_places (scheduling *s, moment period, moment start, int64_t most) {
  return (s->options->same_places ? place_same : place) (&s->lives, period, start, most, s->arena,
                                                         &s->places, s->err);
}

static bool place_all (scheduling *s) {
  int64_t pool = units_div_up (s->units.pool_bytes, s->granule_bytes);
  int64_t most = s->budget_granules - pool, least = 0, granules = most;
  int32_t fullest = 0;
  if (!lives_build (s->trace, &s->units, s->moves, s->n_moves, s->device, s->granule_bytes,
                    s->arena, &s->lives, s->err))
    return false;
  for (int32_t k = 0; k < s->trace->n_ops; k++)
    if (s->lives.level[k] > least) {
      least = s->lives.level[k];
      fullest = k;
    }
  if (least > most)
    return short_of (s, fullest, least + pool);
  int64_t wanted = 0, over_before = INT64_MAX;
  if (!find_times (s, granules))
    return false;
  arena_mark mark = arena_here (s->arena);
  for (int i = 0; i < TRIES; i++, arena_back (s->arena, mark)) {
    moment period, start;
    if (!lives_run (&s->lives, granules, s->arena, &period, &start, s->err) ||
        !give_places (s, period, start, most))
      return false;
    int64_t over = s->places.granules - most;
    if (over <= 0 && !s->places.tangled)
      return true;
    wanted = s->places.granules;
    bool few = over <= FEW_OVER || over <= most / FEW_PART, helps = few && over < over_before;
    over_before = over;
    if (!s->places.tangled && helps && wait_longer (s))
      continue;
    over_before = INT64_MAX;
    if (granules == least)
      break;
    granules -= over <= 0 ? 1 + most / 64 : few ? over : 2 * over;
    granules = granules < least ? least : granules;
    if (i + 2 >= TRIES)
      go_slow (s);
  }
  go_slow (s);
  moment period, start;
  if (!lives_run (&s->lives, least, s->arena, &period, &start, s->err) ||
      !give_places (s, period, start, most))
    return false;
  wanted = s->places.granules < wanted || wanted <= most ? s->places.granules : wanted;
  if (s->places.granules <= most && !s->places.tangled)
    return true;
  return short_of (s, NO_OP, (wanted > most ? wanted : most + 1) + pool);
}

/* ---- the plan ---- */

static int32_t as_wait (int64_t count) {
  return count == NOTHING_NEEDED ? NO_WAIT : (int32_t)count;
}

/* The copies of one part that the host holds: each copy out makes one, which clean moves behind it
   share; where there is no copy out, the host has had it from the start. */
static bool host_copies (scheduling *s, const int32_t *moves, int32_t count, arena *scratch) {
  (void)scratch;
  int32_t source = -1;
  for (int32_t i = 0; i < count; i++)
    if (!s->moves[moves[i]].clean)
      source = i;
  int32_t start = source < 0 ? 0 : source;
  for (int32_t i = 0; i < count; i++) {
    int32_t m = moves[(start + i) % count];
    const wish *w = &s->moves[m];
    if (i == 0 || !w->clean)
      s->spans[s->n_spans++] =
          (host_span){ .bytes = part_bytes (s, w), .from = source < 0 ? -1 : w->out_after };
    s->spans[s->n_spans - 1].to = w->in_before;
    s->span_of[m] = s->n_spans - 1;
  }
  return true;
}

static bool pack_host (scheduling *s, arena *scratch) {
  plan *p = s->plan;
  s->spans = NEW (scratch, s->n_moves, host_span, s->err);
  s->span_of = NEW (scratch, s->n_moves, int32_t, s->err);
  if (!s->spans || !s->span_of || !each_part (s, scratch, host_copies))
    return false;
  int64_t bytes = host_pack (s->spans, s->n_spans, scratch, s->err);
  if (bytes < 0)
    return false;
  if (bytes > p->host_bytes) {
    char need[UNITS_TEXT], have[UNITS_TEXT];
    if (s->shortage)
      *s->shortage = (schedule_shortage){ NO_OP, bytes };
    return error_set (s->err, ERR_infeasible, "the moves need %s on the host, %s are allowed",
                      units_bytes (need, bytes), units_bytes (have, p->host_bytes));
  }
  for (int32_t i = 0; i < p->n_moves; i++)
    p->moves[i].host_offset = s->spans[s->span_of[i]].offset;
  return true;
}

static bool write_moves (scheduling *s) {
  plan *p = s->plan;
  const lives *l = &s->lives;
  p->n_moves = p->n_ins = s->n_moves;
  p->n_outs = l->n_outs;
  p->out_order = l->out_order;
  p->in_order = l->in_order;
  p->moves = NEW (s->arena, s->n_moves, move, s->err);
  if (!p->moves)
    return false;
  for (int32_t i = 0; i < s->n_moves; i++) {
    const wish *w = &s->moves[i];
    int64_t ops = s->places.in_ops[i];
    if (w->in_not_before != NO_WAIT && w->in_not_before > ops)
      ops = w->in_not_before;
    p->moves[i] = (move){ .unit = w->unit,
                          .part = w->part,
                          .of = w->of,
                          .out_after = w->out_after,
                          .in_before = w->in_before,
                          .in_ops = as_wait (ops),
                          .in_outs = as_wait (s->places.in_outs[i]),
                          .clean = w->clean };
  }
  return true;
}

/* Ops that wait for more copies out than every op before them: the others wait for nothing new. */
static bool write_op_waits (scheduling *s) {
  plan *p = s->plan;
  const lives *l = &s->lives;
  int64_t *outs = s->places.op_outs;
  int32_t n = s->trace->n_ops;
  for (int32_t i = 0; i < s->n_moves; i++) {
    const wish *w = &s->moves[i];
    bool last = w->out_after + 1 == n;
    int64_t count = l->out_place[i] + 1 - (last ? l->n_outs : 0);
    int64_t *at = &outs[last ? 0 : w->out_after + 1];
    if (w->wait_out && !w->clean && *at < count)
      *at = count;
  }
  p->op_waits = NEW (s->arena, n, op_wait, s->err);
  if (!p->op_waits)
    return false;
  int64_t known = NOTHING_NEEDED;
  for (int32_t k = 0; k < n; k++)
    if (outs[k] > known) {
      known = outs[k];
      p->op_waits[p->n_op_waits++] = (op_wait){ k, (int32_t)known };
    }
  return true;
}

static bool write_places (scheduling *s) {
  placement *pl = &s->plan->placement;
  const lives *l = &s->lives;
  *pl = (placement){ .granule_bytes = s->granule_bytes,
                     .pool_below_bytes = s->pool_below_bytes,
                     .pool_bytes = s->units.pool_bytes,
                     .granules = (int32_t)s->places.granules,
                     .same_places = s->options->same_places,
                     .runs = s->places.runs,
                     .n_runs = (int32_t)s->places.n_runs,
                     .n_stays = l->count };
  if (s->places.n_runs > INT32_MAX / 2)
    return error_set (s->err, ERR_internal, "the plan has too many runs of granules");
  pl->stays = NEW (s->arena, l->count, stay, s->err);
  if (!pl->stays)
    return false;
  for (int32_t i = 0; i < l->count; i++) {
    int64_t first = s->places.first_run[i];
    pl->stays[i] = (stay){ .kind = l->at[i].kind,
                           .index = l->at[i].index,
                           .part = l->at[i].part,
                           .first_run = (int32_t)first,
                           .n_runs = (int32_t)(s->places.first_run[i + 1] - first) };
  }
  return true;
}

static bool write_head (scheduling *s, const trace *original, const section *sections,
                        int32_t n_sections, const recompute *recomputes, int32_t n_recomputes) {
  char *digest = NEW (s->arena, TRACE_DIGEST, char, s->err);
  if (!digest)
    return false;
  if (s->options->trace_digest)
    memcpy (digest, s->options->trace_digest, strnlen (s->options->trace_digest, TRACE_DIGEST - 1));
  else if (!trace_digest (original, digest, s->err))
    return false;
  *s->plan = (plan){ .trace_digest = digest,
                     .device = *s->device,
                     .budget_bytes = s->options->budget_bytes,
                     .host_bytes = s->options->host_bytes,
                     .sections = (section *)(uintptr_t)sections,
                     .recomputes = (recompute *)(uintptr_t)recomputes,
                     .groups = (index_list *)(uintptr_t)s->groups,
                     .n_sections = n_sections,
                     .n_recomputes = n_recomputes,
                     .n_groups = s->n_groups };
  return true;
}

bool schedule_pool (const trace *t, const index_list *groups, int32_t n_groups,
                    int64_t granule_bytes, arena *scratch, int64_t *pool_below_bytes,
                    int64_t *peak_bytes, error *err) {
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

static bool choose_units (scheduling *s, const wish *wishes, int32_t n_wishes) {
  arena *scratch = arena_new (0);
  bool ok = scratch || error_set (s->err, ERR_memory, "out of memory");
  s->pool_below_bytes = s->options->pool_below_bytes;
  if (ok && s->pool_below_bytes < 0)
    ok = choose_pool (s, wishes, n_wishes, scratch);
  arena_free (scratch);
  return ok && units_with (s, s->pool_below_bytes, s->arena, &s->units) && is_countable (s);
}

plan *schedule (const trace *original, const rewritten *rw, const section *sections,
                int32_t n_sections, const recompute *recomputes, int32_t n_recomputes,
                const index_list *groups, int32_t n_groups, const device *dev, const wish *wishes,
                int32_t n_wishes, const schedule_options *o, arena *a, schedule_shortage *shortage,
                error *err) {
  scheduling s = { .trace = rw->trace,
                   .device = dev,
                   .options = o,
                   .groups = groups,
                   .n_groups = n_groups,
                   .arena = a,
                   .err = err,
                   .shortage = shortage,
                   .granule_bytes = o->granule_bytes ? o->granule_bytes : dev->granule_bytes };
  assert (s.granule_bytes % dev->granule_bytes == 0);
  int64_t free_bytes = dev->memory_bytes - dev->reserved_bytes;
  if (o->budget_bytes > free_bytes) {
    char want[UNITS_TEXT], have[UNITS_TEXT];
    error_set (err, ERR_infeasible, "the budget is %s, but %s leaves %s free",
               units_bytes (want, o->budget_bytes), dev->name, units_bytes (have, free_bytes));
    return NULL;
  }
  if (o->host_bytes > dev->host_bytes) {
    char want[UNITS_TEXT], have[UNITS_TEXT];
    error_set (err, ERR_infeasible, "%s on the host are asked for, %s has %s",
               units_bytes (want, o->host_bytes), dev->name, units_bytes (have, dev->host_bytes));
    return NULL;
  }
  s.budget_granules = o->budget_bytes / s.granule_bytes;
  s.plan = NEW (a, 1, plan, err);
  arena *scratch = s.plan ? arena_new (0) : NULL;
  if (!scratch) {
    error_set (err, ERR_memory, "out of memory");
    return NULL;
  }
  bool ok = write_head (&s, original, sections, n_sections, recomputes, n_recomputes) &&
            choose_units (&s, wishes, n_wishes) && take_wishes (&s, wishes, n_wishes, scratch) &&
            place_all (&s) && write_moves (&s) && write_op_waits (&s) && write_places (&s) &&
            pack_host (&s, scratch);
  arena_free (scratch);
  return ok ? s.plan : NULL;
}
