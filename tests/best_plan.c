#include "tests/best_plan.h"

#include <string.h>

#include "base/random.h"
#include "trace/check.h"
#include "trace/simulate.h"

enum {
  OPS = 8,
  UNITS = 6,
  PARTS = 4,
  MOVES = 8,
  STEPS = 48,
  FIRST_STEPS = 10,
  STAYS = OPS + UNITS * PARTS + MOVES,
  GRANULES = 64,
  COLOURINGS = 60
};
static const int64_t MOST_TRIED = 3000000;

/* A part of a tensor. */
typedef struct piece {
  int32_t unit, part, of, granules;
  int64_t bytes;
  unsigned away; /* bit g: it moves in idle time g of its unit */
} piece;

typedef struct idle_time {
  int32_t after, before;
  bool wraps;
} idle_time;

typedef struct mover {
  int32_t piece, after, before, granules;
  int64_t out_ns, in_ns;
  bool wraps, clean;
  int32_t source; /* the mover whose copy it reads; itself; -1: the host's from the start */
} mover;

typedef struct times {
  int64_t op_start[STEPS][OPS], op_end[STEPS][OPS];
  int64_t out_end[STEPS][MOVES], in_start[STEPS][MOVES], in_end[STEPS][MOVES];
} times;

typedef struct release {
  int64_t at_ns;
  int32_t granules;
} release;

typedef struct searching {
  const tiny_case *c;
  const trace *t;
  arena *arena;
  error *err;
  best_plan *out;
  int32_t n_ops, n_units, budget;
  int64_t granule_bytes, compute_ns;
  bool used[UNITS][OPS], written[UNITS][OPS];
  int32_t first[UNITS], last[UNITS], granules[UNITS], of[UNITS];
  idle_time idle[UNITS][OPS];
  int32_t n_idle[UNITS];
  piece pieces[UNITS * PARTS];
  int32_t n_pieces;
  mover movers[MOVES];
  int32_t n_movers;
  int32_t out_order[MOVES], in_order[MOVES], n_outs;
  int32_t
      place[MOVES]; /* per place in in_order: ops of its step that have their memory before it */
  int32_t begins[OPS], ends[OPS]; /* granules */
  int32_t at_first;               /* held when step 0 begins */
  int64_t least_ns;               /* what this choice of movers needs at least */
  times *seen;
} searching;

/* ---- the trace ---- */

static void read_trace (searching *s) {
  const trace *t = s->t;
  for (int32_t k = 0; k < s->n_ops; k++) {
    s->compute_ns += t->ops[k].ns + t->ops[k].gap_ns;
    for (int32_t i = 0; i < t->ops[k].reads.count; i++)
      s->used[t->ops[k].reads.at[i]][k] = true;
    for (int32_t i = 0; i < t->ops[k].writes.count; i++)
      s->used[t->ops[k].writes.at[i]][k] = s->written[t->ops[k].writes.at[i]][k] = true;
  }
  for (int32_t x = 0; x < s->n_units; x++) {
    s->granules[x] = (int32_t)((t->tensors[x].bytes + s->granule_bytes - 1) / s->granule_bytes);
    s->first[x] = -1;
    for (int32_t k = 0; k < s->n_ops; k++) {
      if (!s->used[x][k])
        continue;
      if (s->first[x] < 0)
        s->first[x] = k;
      else
        s->idle[x][s->n_idle[x]++] = (idle_time){ s->last[x], k, false };
      s->last[x] = k;
    }
    if (t->tensors[x].persistent && s->first[x] >= 0)
      s->idle[x][s->n_idle[x]++] = (idle_time){ s->last[x], s->first[x], true };
  }
}

/* ---- one run, as early as may be ---- */

typedef struct runner {
  release waiting[STAYS * 2];
  int32_t n_waiting, held, out_step, out;
  int64_t now_ns, out_free_ns, in_free_ns;
} runner;

static void release_later (runner *r, int64_t at_ns, int32_t granules) {
  if (granules)
    r->waiting[r->n_waiting++] = (release){ at_ns, granules };
}

/* Not before `at_ns`, and when so many granules are free. False: never. */
static bool acquire (const searching *s, runner *r, int64_t at_ns, int32_t granules) {
  if (r->now_ns < at_ns)
    r->now_ns = at_ns;
  for (;;) {
    int32_t next = -1;
    for (int32_t i = 0; i < r->n_waiting; i++)
      if (next < 0 || r->waiting[i].at_ns < r->waiting[next].at_ns)
        next = i;
    bool fits = r->held + granules <= s->budget;
    if (fits && (next < 0 || r->waiting[next].at_ns > r->now_ns))
      break;
    if (next < 0)
      return false;
    if (!fits && r->waiting[next].at_ns > r->now_ns)
      r->now_ns = r->waiting[next].at_ns;
    r->held -= r->waiting[next].granules;
    r->waiting[next] = r->waiting[--r->n_waiting];
  }
  r->held += granules;
  return true;
}

static bool run_in (searching *s, runner *r, int32_t step, int32_t m, int32_t steps) {
  const mover *x = &s->movers[m];
  int32_t own = step - x->wraps;
  int64_t at_ns = r->in_free_ns, ready_ns = 0;
  if (own >= 0)
    ready_ns = x->clean ? s->seen->op_end[own][x->after] : s->seen->out_end[own][m];
  if (ready_ns < 0 || own >= steps)
    return false;
  at_ns = ready_ns > at_ns ? ready_ns : at_ns;
  if (!acquire (s, r, at_ns, x->granules))
    return false;
  s->seen->in_start[step][m] = r->now_ns;
  s->seen->in_end[step][m] = r->in_free_ns = r->now_ns + x->in_ns;
  return true;
}

/* Copies out whose op has its time. */
static void run_outs (searching *s, runner *r, int32_t steps) {
  while (s->n_outs && r->out_step < steps) {
    int32_t m = s->out_order[r->out];
    int64_t ready_ns = s->seen->op_end[r->out_step][s->movers[m].after];
    if (ready_ns < 0)
      return;
    int64_t start_ns = ready_ns > r->out_free_ns ? ready_ns : r->out_free_ns;
    s->seen->out_end[r->out_step][m] = r->out_free_ns = start_ns + s->movers[m].out_ns;
    release_later (r, r->out_free_ns, s->movers[m].granules);
    if (++r->out == s->n_outs) {
      r->out = 0;
      r->out_step++;
    }
  }
}

static bool run_op (searching *s, runner *r, int32_t step, int32_t k, int32_t steps) {
  const op *o = &s->t->ops[k];
  times *seen = s->seen;
  int64_t at_ns = k ? seen->op_end[step][k - 1] : step ? seen->op_end[step - 1][s->n_ops - 1] : 0;
  at_ns += o->gap_ns;
  for (int32_t m = 0; m < s->n_movers; m++)
    if (s->movers[m].before == k && seen->in_end[step][m] > at_ns)
      at_ns = seen->in_end[step][m];
  if (!acquire (s, r, at_ns, s->begins[k]))
    return false;
  seen->op_start[step][k] = r->now_ns;
  seen->op_end[step][k] = r->now_ns + o->ns;
  release_later (r, r->now_ns + o->ns, s->ends[k]);
  run_outs (s, r, steps);
  return true;
}

/* The mean of the later steps; INT64_MAX: it hangs. */
static int64_t run (searching *s, int32_t steps) {
  runner r = { .held = s->at_first };
  int32_t n = s->n_ops, in_step = 0, in = 0;
  for (int32_t i = 0; i < steps; i++)
    for (int32_t k = 0; k < OPS; k++)
      s->seen->op_end[i][k] = s->seen->out_end[i][k] = -1;
  s->out->tried++;
  for (int32_t at = 0; at < steps * n; at++) {
    while (s->n_movers && in_step < steps && in_step * n + s->place[in] <= at) {
      if (!run_in (s, &r, in_step, s->in_order[in], steps))
        return INT64_MAX;
      if (++in == s->n_movers) {
        in = 0;
        in_step++;
      }
    }
    if (!run_op (s, &r, at / n, at % n, steps))
      return INT64_MAX;
  }
  int32_t half = steps / 2, last = steps - 1;
  int64_t ns = s->seen->op_start[last][0] - s->seen->op_start[half][0];
  ns = (ns + last - half - 1) / (last - half);
  return ns > s->least_ns ? ns : s->least_ns;
}

/* ---- a plan of it ---- */

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
  int32_t order[STAYS];
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
    int32_t from = x->source >= 0 ? x->source : MOVES + x->piece;
    p->moves[m].host_offset = from * PARTS * s->granule_bytes;
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
  pl->runs = NEW (s->arena, n * PARTS * 2, granule_run, s->err);
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

/* The last run as a plan, if granules can be given out and it costs less than what there is. */
static bool write_plan (searching *s, int64_t ns) {
  enum { STEP = STEPS - 4 };
  spot at[STAYS];
  uint64_t given[STAYS];
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

/* ---- all choices ---- */

static bool judge (searching *s) {
  int64_t ns = run (s, FIRST_STEPS);
  if (ns >= s->out->step_ns || (ns = run (s, STEPS)) >= s->out->step_ns)
    return true;
  if (ns < s->out->counted_ns)
    s->out->counted_ns = ns;
  arena_mark mark = arena_here (s->arena);
  const plan *before = s->out->plan;
  if (!write_plan (s, ns))
    return false;
  if (s->out->plan == before)
    arena_back (s->arena, mark);
  return true;
}

static bool over (const searching *s) {
  return s->out->tried >= MOST_TRIED;
}

static bool choose_places (searching *s, int32_t i) {
  if (over (s))
    return true;
  if (i == s->n_movers) /* a queue is one queue from step to step */
    return (i > 0 && s->place[0] + s->n_ops < s->place[i - 1]) || judge (s);
  const mover *x = &s->movers[s->in_order[i]];
  int32_t from = x->after + 1 - (x->wraps ? s->n_ops : 0);
  if (i > 0 && s->place[i - 1] > from)
    from = s->place[i - 1];
  for (int32_t k = from; k <= x->before; k++) {
    s->place[i] = k;
    if (!choose_places (s, i + 1))
      return false;
  }
  return true;
}

/* Parts of one size that always move together are alike: the first goes first and comes first. */
static bool alike (const searching *s, int32_t m, int32_t other) {
  const piece *a = &s->pieces[s->movers[m].piece], *b = &s->pieces[s->movers[other].piece];
  return s->movers[m].after == s->movers[other].after && a->unit == b->unit && a->away == b->away &&
         a->bytes == b->bytes && a->granules == b->granules;
}

static bool in_turn (const searching *s, unsigned taken, int32_t m) {
  for (int32_t other = 0; other < m; other++)
    if (!(taken >> other & 1) && alike (s, m, other))
      return false;
  return true;
}

static bool choose_ins (searching *s, unsigned taken, int32_t i) {
  if (i == s->n_movers)
    return choose_places (s, 0);
  for (int32_t m = 0; m < s->n_movers; m++)
    if (!(taken >> m & 1) && in_turn (s, taken, m)) {
      s->in_order[i] = m;
      if (!choose_ins (s, taken | 1u << m, i + 1))
        return false;
    }
  return true;
}

static bool choose_outs (searching *s, unsigned taken, int32_t i) {
  if (i == s->n_outs)
    return choose_ins (s, 0, 0);
  for (int32_t m = 0; m < s->n_movers; m++)
    if (!s->movers[m].clean && !(taken >> m & 1) && in_turn (s, taken, m)) {
      s->out_order[i] = m;
      if (!choose_outs (s, taken | 1u << m, i + 1))
        return false;
    }
  return true;
}

/* No write between the copy out behind op a and op b's end. */
static bool holds (const searching *s, int32_t unit, int32_t a, int32_t b) {
  for (int32_t k = (a + 1) % s->n_ops; a != b; k = (k + 1) % s->n_ops) {
    if (s->written[unit][k])
      return false;
    if (k == b)
      return true;
  }
  return true;
}

static bool never_written (const searching *s, int32_t unit) {
  for (int32_t k = 0; k < s->n_ops; k++)
    if (s->written[unit][k])
      return false;
  return true;
}

/* Where the host still has the bytes no copy out is needed. */
static void find_clean (searching *s, int32_t first, int32_t end) {
  const piece *p = &s->pieces[s->movers[first].piece];
  bool persistent = s->t->tensors[p->unit].persistent;
  bool always = persistent && never_written (s, p->unit);
  for (int32_t m = first; m < end; m++) {
    int32_t before = m > first ? m - 1 : end - 1;
    s->movers[m].clean =
        always || ((m > first || (persistent && end - first > 1)) &&
                   holds (s, p->unit, s->movers[before].after, s->movers[m].after));
    s->movers[m].source = always ? -1 : m;
  }
  for (int32_t turn = 0; turn < 2 && !always; turn++)
    for (int32_t m = first; m < end; m++)
      if (s->movers[m].clean)
        s->movers[m].source = s->movers[m > first ? m - 1 : end - 1].source;
}

static int64_t copy_ns (const searching *s, int64_t bytes, int64_t rate) {
  return s->c->device.link.copy_ns + (bytes * 1000000000 + rate - 1) / rate;
}

static bool make_movers (searching *s) {
  const device_link *l = &s->c->device.link;
  s->n_movers = s->n_outs = 0;
  for (int32_t i = 0; i < s->n_pieces; i++) {
    const piece *p = &s->pieces[i];
    int32_t first = s->n_movers;
    for (int32_t g = 0; g < s->n_idle[p->unit]; g++) {
      const idle_time *x = &s->idle[p->unit][g];
      if (!(p->away >> g & 1))
        continue;
      if (s->n_movers == MOVES)
        return false;
      s->movers[s->n_movers++] = (mover){ .piece = i,
                                          .after = x->after,
                                          .before = x->before,
                                          .wraps = x->wraps,
                                          .granules = p->granules,
                                          .out_ns = copy_ns (s, p->bytes, l->d2h_bytes_per_s),
                                          .in_ns = copy_ns (s, p->bytes, l->h2d_bytes_per_s) };
    }
    if (s->n_movers > first)
      find_clean (s, first, s->n_movers);
  }
  for (int32_t m = 0; m < s->n_movers; m++)
    s->n_outs += !s->movers[m].clean;
  return true;
}

/* What begins and ends with ops, and what is there at first. */
static void count_granules (searching *s) {
  memset (s->begins, 0, sizeof s->begins);
  memset (s->ends, 0, sizeof s->ends);
  s->at_first = 0;
  for (int32_t k = 0; k < s->n_ops; k++)
    s->begins[k] = s->ends[k] = (int32_t)(s->t->ops[k].workspace_bytes / s->granule_bytes);
  for (int32_t i = 0; i < s->n_pieces; i++) {
    const piece *p = &s->pieces[i];
    if (!s->t->tensors[p->unit].persistent) {
      s->begins[s->first[p->unit]] += p->granules;
      s->ends[s->last[p->unit]] += p->granules;
    } else if (!(p->away >> (s->n_idle[p->unit] - 1) & 1)) /* the last one wraps */
      s->at_first += p->granules;
  }
  for (int32_t m = 0; m < s->n_movers; m++)
    if (s->movers[m].clean)
      s->ends[s->movers[m].after] += s->movers[m].granules;
}

static bool judge_movers (searching *s) {
  int64_t out_ns = 0, in_ns = 0;
  if (!make_movers (s)) {
    s->out->complete = false;
    return true;
  }
  for (int32_t m = 0; m < s->n_movers; m++) {
    out_ns += s->movers[m].clean ? 0 : s->movers[m].out_ns;
    in_ns += s->movers[m].in_ns;
  }
  s->least_ns = out_ns > in_ns ? out_ns : in_ns;
  s->least_ns = s->least_ns > s->compute_ns ? s->least_ns : s->compute_ns;
  if (s->least_ns >= s->out->step_ns)
    return true;
  count_granules (s);
  return choose_outs (s, 0, 0);
}

static bool choose_away (searching *s, int32_t i) {
  if (i == s->n_pieces)
    return judge_movers (s);
  piece *p = &s->pieces[i];
  for (p->away = 0; p->away < 1u << s->n_idle[p->unit]; p->away++) {
    bool twin =
        i > 0 && p[-1].unit == p->unit && p[-1].bytes == p->bytes && p[-1].granules == p->granules;
    if (twin && p->away > p[-1].away) /* the same with names exchanged */
      break;
    if (!choose_away (s, i + 1))
      return false;
  }
  return true;
}

static bool choose_sections (searching *s, int32_t unit) {
  if (unit < s->n_units) {
    /* without latency the finest cut can do what any other can */
    int32_t most = s->n_idle[unit] ? s->granules[unit] : 1;
    for (int32_t of = s->c->device.link.copy_ns ? 1 : most; of <= most; of++) {
      s->of[unit] = of;
      if (!choose_sections (s, unit + 1))
        return false;
    }
    return true;
  }
  s->n_pieces = 0;
  for (int32_t x = 0; x < s->n_units; x++)
    for (int32_t part = 0; s->first[x] >= 0 && part < s->of[x]; part++) {
      int32_t from = part * s->granules[x] / s->of[x];
      int32_t to = (part + 1) * s->granules[x] / s->of[x];
      int64_t end = to * s->granule_bytes, all = s->t->tensors[x].bytes;
      s->pieces[s->n_pieces++] =
          (piece){ .unit = x,
                   .part = part,
                   .of = s->of[x],
                   .granules = to - from,
                   .bytes = (end < all ? end : all) - from * s->granule_bytes };
    }
  return choose_away (s, 0);
}

bool best_search (const tiny_case *c, int64_t below_ns, arena *a, best_plan *out, error *err) {
  searching s = { .c = c,
                  .t = c->trace,
                  .arena = a,
                  .err = err,
                  .out = out,
                  .n_ops = c->trace->n_ops,
                  .n_units = c->trace->n_tensors,
                  .granule_bytes = c->device.granule_bytes };
  s.budget = (int32_t)(c->budget_bytes / s.granule_bytes);
  *out = (best_plan){ .counted_ns = below_ns, .step_ns = below_ns, .complete = true };
  if (s.n_ops > OPS || s.n_units > UNITS || s.budget > GRANULES)
    return error_set (err, ERR_internal, "the trace is not tiny");
  s.seen = NEW (a, 1, times, err);
  if (!s.seen)
    return false;
  read_trace (&s);
  bool ok = choose_sections (&s, 0);
  out->complete &= !over (&s);
  return ok;
}
