/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/random.h"
#include "tests/best_inner.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { COLOURINGS = 60 };

typedef struct spot {
  stay row;
  int32_t granules;
  int64_t from_ns, to_ns;
  bool always;
} spot;

/* The move that takes the piece away after op `from`, in order round the step, or -1. */
static int32_t next_mover (const searching *s, int32_t piece_at, int32_t from) {
  int32_t best = -1, best_far = 0;
  for (int32_t m = 0; m < s->n_movers; m++) {
    if (s->movers[m].piece != piece_at)
      continue;
    int32_t far = (s->movers[m].after - from + s->n_ops) % s->n_ops;
    if (best < 0 || far < best_far) {
      best = m;
      best_far = far;
    }
  }
  return best;
}

static int64_t leaves_ns (const searching *s, int32_t m, int32_t step, int32_t from) {
  const mover *x = &s->movers[m];
  step += x->after < from;
  return x->clean ? s->seen->op_end[step][x->after] : s->seen->out_end[step][m];
}

static bool unit_moves (const searching *s, int32_t unit) {
  for (int32_t m = 0; m < s->n_movers; m++)
    if (s->pieces[s->movers[m].piece].unit == unit)
      return true;
  return false;
}

static int32_t list_spots (const searching *s, int32_t step, spot *at) {
  const times *seen = s->seen;
  int32_t n = 0;
  for (int32_t i = 0; i < s->n_pieces; i++) {
    const piece *p = &s->pieces[i];
    bool persistent = s->t->tensors[p->unit].persistent;
    spot x = { .row = { .kind = STAY_TENSOR, .index = p->unit, .part = p->part },
               .granules = p->granules,
               .always = persistent };
    if (!persistent) {
      int32_t m = next_mover (s, i, s->first[p->unit]);
      x.from_ns = seen->op_start[step][s->first[p->unit]];
      x.to_ns =
          m < 0 ? seen->op_end[step][s->last[p->unit]] : leaves_ns (s, m, step, s->first[p->unit]);
    }
    if (!unit_moves (s, p->unit)) { /* then it is not cut */
      x.granules = s->granules[p->unit];
      if (p->part > 0)
        continue;
    }
    if (!persistent || !p->away)
      at[n++] = x;
  }
  for (int32_t m = 0; m < s->n_movers; m++) {
    const mover *x = &s->movers[m];
    int32_t unit = s->pieces[x->piece].unit, next = next_mover (s, x->piece, x->before);
    bool last = !s->t->tensors[unit].persistent && s->movers[next].after < x->before;
    at[n++] = (spot){ .row = { .kind = STAY_MOVE, .index = m },
                      .granules = x->granules,
                      .from_ns = seen->in_start[step][m],
                      .to_ns = last ? seen->op_end[step][s->last[unit]]
                                    : leaves_ns (s, next, step, x->before) };
  }
  for (int32_t k = 0; k < s->n_ops; k++)
    if (s->t->ops[k].workspace_bytes)
      at[n++] = (spot){ .row = { .kind = STAY_WORKSPACE, .index = k },
                        .granules = (int32_t)(s->t->ops[k].workspace_bytes / s->granule_bytes),
                        .from_ns = seen->op_start[step][k],
                        .to_ns = seen->op_end[step][k] };
  return n;
}

static bool meet (const spot *a, const spot *b, int64_t period_ns) {
  if (a->always || b->always)
    return true;
  for (int64_t turn = -3; turn <= 3; turn++)
    if (a->from_ns + turn * period_ns < b->to_ns && b->from_ns < a->to_ns + turn * period_ns)
      return true;
  return false;
}

/* Granules for all spots, in some order; false where they do not suffice. */
static bool give_granules (const searching *s, const spot *at, int32_t n, int64_t period_ns,
                           random_state *r, uint64_t *given) {
  int32_t order[BEST_STAYS];
  for (int32_t i = 0; i < n; i++)
    order[i] = i;
  for (int32_t i = n - 1; i > 0; i--) {
    int32_t j = (int32_t)random_between (r, 0, i), old = order[i];
    order[i] = order[j];
    order[j] = old;
  }
  for (int32_t i = 0; i < n; i++) {
    uint64_t taken = 0;
    const spot *x = &at[order[i]];
    for (int32_t j = 0; j < i; j++)
      if (meet (x, &at[order[j]], period_ns))
        taken |= given[order[j]];
    int32_t left = x->granules;
    given[order[i]] = 0;
    for (int32_t g = 0; g < s->budget && left > 0; g++)
      if (!(taken >> g & 1)) {
        given[order[i]] |= (uint64_t)1 << g;
        left--;
      }
    if (left > 0)
      return false;
  }
  return true;
}

static int32_t as_wait (int64_t count, int32_t most) {
  return count < -most ? NO_WAIT : count > most ? most : (int32_t)count;
}

static int32_t ops_ended (const searching *s, int32_t step, int64_t at_ns) {
  int32_t count = -s->n_ops - 1;
  for (int32_t i = step - 1; i <= step; i++)
    for (int32_t k = 0; k < s->n_ops; k++)
      if (s->seen->op_end[i][k] <= at_ns)
        count = (i - step) * s->n_ops + k + 1;
  return count;
}

static int32_t outs_ended (const searching *s, int32_t step, int64_t at_ns) {
  int32_t count = -s->n_outs - 1;
  for (int32_t i = step - 1; i <= step; i++)
    for (int32_t k = 0; k < s->n_outs; k++)
      if (s->seen->out_end[i][s->out_order[k]] <= at_ns)
        count = (i - step) * s->n_outs + k + 1;
  return count;
}

static bool write_moves (const searching *s, int32_t step, plan *p) {
  p->moves = NEW (s->arena, s->n_movers, move, s->err);
  p->out_order = NEW (s->arena, s->n_movers, int32_t, s->err);
  p->in_order = NEW (s->arena, s->n_movers, int32_t, s->err);
  p->op_waits = NEW (s->arena, s->n_ops, op_wait, s->err);
  if (!p->moves || !p->out_order || !p->in_order || !p->op_waits)
    return false;
  p->n_moves = p->n_ins = s->n_movers;
  p->n_outs = s->n_outs;
  for (int32_t m = 0; m < s->n_movers; m++) {
    const mover *x = &s->movers[m];
    const piece *part = &s->pieces[x->piece];
    int64_t at_ns = s->seen->in_start[step][m];
    p->in_order[m] = s->in_order[m];
    p->out_order[m] = m < s->n_outs ? s->out_order[m] : 0;
    p->moves[m] = (move){ .unit = part->unit,
                          .part = part->part,
                          .of = part->of,
                          .out_after = x->after,
                          .in_before = x->before,
                          .in_ops = as_wait (ops_ended (s, step, at_ns), s->n_ops),
                          .in_outs = as_wait (outs_ended (s, step, at_ns), s->n_outs),
                          .clean = x->clean };
    int32_t from = x->source >= 0 ? x->source : BEST_MOVES + x->piece;
    p->moves[m].host_offset = from * BEST_PARTS * s->granule_bytes;
  }
  for (int32_t k = 0; s->n_outs && k < s->n_ops; k++) {
    int32_t outs = as_wait (outs_ended (s, step, s->seen->op_start[step][k]), s->n_outs);
    if (outs != NO_WAIT)
      p->op_waits[p->n_op_waits++] = (op_wait){ k, outs };
  }
  return true;
}

static bool write_places (const searching *s, const spot *at, int32_t n, const uint64_t *given,
                          plan *p) {
  placement *pl = &p->placement;
  *pl = (placement){ .granule_bytes = s->granule_bytes, .granules = s->budget, .n_stays = n };
  pl->stays = NEW (s->arena, n, stay, s->err);
  pl->runs = NEW (s->arena, n * BEST_PARTS * 2, granule_run, s->err);
  if (!pl->stays || !pl->runs)
    return false;
  for (int32_t i = 0; i < n; i++) {
    pl->stays[i] = at[i].row;
    pl->stays[i].first_run = pl->n_runs;
    for (int32_t g = 0; g < s->budget; g++)
      if (given[i] >> g & 1)
        pl->runs[pl->n_runs++] = (granule_run){ g, 1 };
    pl->stays[i].n_runs = pl->n_runs - pl->stays[i].first_run;
  }
  return true;
}

bool best_write (searching *s, int64_t ns) {
  enum { STEP = BEST_STEPS - 4 };
  spot at[BEST_STAYS];
  uint64_t given[BEST_STAYS];
  random_state r = random_seed ((uint64_t)ns);
  int64_t period_ns = s->seen->op_start[STEP + 1][0] - s->seen->op_start[STEP][0];
  int32_t n = list_spots (s, STEP, at), tries = 0;
  while (tries < COLOURINGS && !give_granules (s, at, n, period_ns, &r, given))
    tries++;
  if (tries == COLOURINGS)
    return true;
  char *digest = NEW (s->arena, TRACE_DIGEST, char, s->err);
  plan *p = NEW (s->arena, 1, plan, s->err);
  if (!digest || !p || !trace_digest (s->t, digest, s->err))
    return false;
  *p = (plan){ .trace_digest = digest,
               .device = s->c->device,
               .budget_bytes = s->c->budget_bytes,
               .host_bytes = s->c->device.host_bytes };
  predicted cost;
  error why = { 0 };
  if (!write_moves (s, STEP, p) || !write_places (s, at, n, given, p))
    return false;
  if (!check_plan (s->t, p, s->arena, NULL, &why) ||
      !simulate_plan (s->t, p, s->arena, &cost, &why))
    return why.code == ERR_infeasible || error_set (s->err, why.code, "%s", why.text);
  if (cost.step_ns < s->out->step_ns) {
    s->out->step_ns = cost.step_ns;
    s->out->plan = p;
  }
  return true;
}
