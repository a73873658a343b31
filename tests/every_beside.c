/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/every_beside.h"

#include <string.h>

#include "tests/random_streams.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

enum { OPS = 6, MOST_GAPS = 4, MOST_STAYS = 20, MOST_GRANULES = 8, MOST_TRIED = 8000, ROOM = 400 };

/* ---- traces ---- */

/* Activations are written once and read once more; weights are read, or changed by one op. */
static void add_uses (trace_builder *b, random_state *r, int32_t x, int32_t n, int32_t *first,
                      int32_t *second) {
  bool weight = build_tensor_at (b, x)->persistent;
  *first = (int32_t)random_between (r, 0, n - 2);
  *second = (int32_t)random_between (r, *first + 1, n - 1);
  if (weight && random_chance (r, 500000))
    *second = -1;
}

bool beside_make (uint64_t seed, arena *a, tiny_case *out, error *err) {
  random_state r = random_seed (seed * 0x9e3779b97f4a7c15u + 23);
  int32_t n = (int32_t)random_between (&r, 4, OPS), n_tensors = (int32_t)random_between (&r, 2, 4);
  int32_t first[4], second[4];
  int64_t peak, floor;
  trace_builder *b = build_new (a, "tiny", 1, err);
  if (!b)
    return false;
  for (int32_t x = 0; x < n_tensors; x++) {
    build_tensor (b, "t", TINY_GRANULE,
                  random_chance (&r, 300000) ? TENSOR_PARAMETER : TENSOR_ACTIVATION);
    add_uses (b, &r, x, n, &first[x], &second[x]);
  }
  for (int32_t k = 0; k < n; k++) {
    build_op (b, "op", OP_FORWARD, random_between (&r, 1, 8) * 500);
    build_op_at (b, k)->workspace_bytes = random_chance (&r, 400000) ? TINY_GRANULE : 0;
    for (int32_t x = 0; x < n_tensors; x++) {
      bool weight = build_tensor_at (b, x)->persistent;
      if (first[x] == k && (!weight || second[x] < 0))
        build_write (b, x);
      else if (first[x] == k || second[x] == k)
        build_read (b, x);
    }
  }
  *out = (tiny_case){ .trace = build_finish (b, err) };
  if (!out->trace || !random_streams (&r, out->trace, true, a, err) || out->trace->n_streams != 2)
    return false;
  tiny_levels (out->trace, &peak, &floor);
  tiny_device (&r, &out->device);
  out->device.link.copy_ns = random_chance (&r, 500000) ? random_between (&r, 1, 10) * 100 : 0;
  if (peak <= floor || peak > MOST_GRANULES)
    return false;
  out->budget_bytes = random_between (&r, floor, peak - 1) * TINY_GRANULE;
  return true;
}

/* ---- one choice ---- */

typedef struct gap {
  int32_t tensor, after, before;
  bool clean;
} gap;

typedef struct held {
  stay row;
  int32_t from, to; /* ops of the list, to >= n_ops in the next step; it needs its granule there */
  int32_t out;      /* the move whose copy out it ends with; -1: it ends with op `to` */
  bool always;
  int32_t granule;
} held;

typedef struct choosing {
  const tiny_case *c;
  const trace *t;
  arena *a;
  error *err;
  every_beside *out;
  char *digest;
  int32_t n, budget;
  bool waits[OPS][OPS]; /* [i][k]: op i waits for op k, by stream and `after` alone */
  gap gaps[MOST_GAPS], moved[MOST_GAPS];
  int32_t n_gaps, n_moved, n_outs;
  int32_t outs[MOST_GAPS], ins[MOST_GAPS], place[MOST_GAPS];
  held stays[MOST_STAYS];
  int32_t n_stays;
} choosing;

static void read_waits (choosing *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = i - 1; k >= 0; k--) {
      bool direct = s->t->ops[k].stream == s->t->ops[i].stream || list_has (&s->t->ops[i].after, k);
      for (int32_t j = 0; direct && j < s->n; j++)
        s->waits[i][j] |= j == k || s->waits[k][j];
    }
}

/* The last op that may start before op k has ended. */
static int32_t last_beside (const choosing *s, int32_t k) {
  int32_t h = k;
  for (int32_t i = k + 1; i < s->n; i++)
    if (!s->waits[i][k])
      h = i;
  return h;
}

static bool is_used (const choosing *s, int32_t x, int32_t k) {
  for (int32_t i = 0; i <= k; i++)
    if (op_touches (&s->t->ops[i], x) && (i == k || last_beside (s, i) == k))
      return true;
  return false;
}

/* Ops that use the tensor, and the last that may run beside one of them. */
static int32_t uses_of (const choosing *s, int32_t x, int32_t *use) {
  int32_t count = 0;
  for (int32_t k = 0; k < s->n; k++)
    if (is_used (s, x, k))
      use[count++] = k;
  return count;
}

static bool is_written (const choosing *s, int32_t x, int32_t from, int32_t to) {
  for (int32_t k = from; k < to; k++)
    if (list_has (&s->t->ops[k].writes, x))
      return true;
  return false;
}

/* False: too many. */
static bool find_gaps (choosing *s) {
  for (int32_t x = 0; x < s->t->n_tensors; x++) {
    int32_t use[OPS], count = uses_of (s, x, use);
    bool persistent = s->t->tensors[x].persistent;
    for (int32_t i = 0; i < count - !persistent; i++) {
      if (s->n_gaps == MOST_GAPS)
        return false;
      s->gaps[s->n_gaps++] = (gap){ x, use[i], use[(i + 1) % count], false };
    }
  }
  return true;
}

/* The host has the bytes since the move before it, or from the start. */
static void find_clean (choosing *s) {
  s->n_outs = 0;
  for (int32_t m = 0; m < s->n_moved; m++) {
    gap *g = &s->moved[m];
    int32_t before = -1, last = -1;
    for (int32_t i = 0; i < s->n_moved; i++) {
      before = s->moved[i].tensor == g->tensor && i < m ? i : before;
      last = s->moved[i].tensor == g->tensor ? i : last;
    }
    bool persistent = s->t->tensors[g->tensor].persistent;
    if (before >= 0)
      g->clean = !is_written (s, g->tensor, s->moved[before].after + 1, g->after + 1);
    else
      g->clean = persistent && !is_written (s, g->tensor, 0, g->after + 1) &&
                 (last != m || !is_written (s, g->tensor, 0, s->n)) &&
                 !is_written (s, g->tensor, s->moved[last].after + 1, s->n);
    s->n_outs += !g->clean;
  }
}

static void put_stay (choosing *s, stay_kind kind, int32_t index, int32_t from, int32_t to,
                      int32_t out) {
  if (out >= 0 && s->moved[out].clean)
    out = -1;
  s->stays[s->n_stays++] =
      (held){ .row = { .kind = kind, .index = index }, .from = from, .to = to, .out = out };
}

/* The next move of the tensor behind move m, or its first; -1: there is none. */
static int32_t next_move (const choosing *s, int32_t x, int32_t m) {
  for (int32_t i = m + 1; i < s->n_moved; i++)
    if (s->moved[i].tensor == x)
      return i;
  return -1;
}

/* From where a tensor is there to its next move, or to its end. */
static void tensor_stays (choosing *s, int32_t x) {
  int32_t use[OPS], count = uses_of (s, x, use), end = use[count - 1];
  bool persistent = s->t->tensors[x].persistent;
  int32_t first = next_move (s, x, -1);
  if (first < 0 || !persistent) {
    put_stay (s, STAY_TENSOR, x, use[0], first < 0 ? end : s->moved[first].after, first);
    s->stays[s->n_stays - 1].always = persistent;
  }
  for (int32_t m = first; m >= 0; m = next_move (s, x, m)) {
    int32_t from = s->moved[m].before, next = next_move (s, x, m);
    if (next < 0 && !persistent)
      put_stay (s, STAY_MOVE, m, from, end, -1);
    else {
      next = next < 0 ? first : next;
      int32_t to = s->moved[next].after;
      put_stay (s, STAY_MOVE, m, from, to < from ? to + s->n : to, next);
    }
  }
}

static void list_stays (choosing *s) {
  s->n_stays = 0;
  for (int32_t x = 0; x < s->t->n_tensors; x++)
    tensor_stays (s, x);
  for (int32_t k = 0; k < s->n; k++)
    if (s->t->ops[k].workspace_bytes)
      put_stay (s, STAY_WORKSPACE, k, k, last_beside (s, k), -1);
}

static bool meet (const choosing *s, const held *a, const held *b) {
  if (a->always || b->always)
    return true;
  for (int32_t turn = -2; turn <= 2; turn++)
    if (a->from + turn * s->n <= b->to && b->from <= a->to + turn * s->n)
      return true;
  return false;
}

/* ---- its plan ---- */

/* Who had the granule before; *steps: in which step, counted from the stay's own. */
static const held *had_before (const choosing *s, const held *x, int32_t *steps) {
  const held *best = NULL;
  int32_t latest = INT32_MIN;
  for (int32_t i = 0; i < s->n_stays; i++)
    for (int32_t turn = -2; turn <= 0; turn++) {
      int32_t to = s->stays[i].to + turn * s->n;
      if (s->stays[i].granule == x->granule && to < x->from && to > latest) {
        latest = to;
        best = &s->stays[i];
        *steps = turn;
      }
    }
  return best;
}

static int32_t outs_before (const choosing *s, const held *p, int32_t steps) {
  int32_t wraps = p->to >= s->n; /* its out belongs to the step of its op */
  return s->place[p->out] + 1 + (steps + wraps) * s->n_outs;
}

static void put_waits (const choosing *s, plan *p) {
  int32_t rows[OPS];
  for (int32_t k = 0; k < s->n; k++)
    rows[k] = NO_WAIT;
  for (int32_t i = 0; i < s->n_stays; i++) {
    const held *x = &s->stays[i];
    int32_t steps = 0;
    const held *was = x->always ? NULL : had_before (s, x, &steps);
    if (!was)
      continue;
    int32_t outs = was->out >= 0 ? outs_before (s, was, steps) : NO_WAIT;
    if (x->row.kind != STAY_MOVE)
      rows[x->from] = outs > rows[x->from] || rows[x->from] == NO_WAIT ? outs : rows[x->from];
    else if (was->out >= 0)
      p->moves[x->row.index].in_outs = outs;
    else
      p->moves[x->row.index].in_ops = was->to + steps * s->n + 1;
  }
  for (int32_t k = 0; k < s->n; k++)
    if (rows[k] != NO_WAIT)
      p->op_waits[p->n_op_waits++] = (op_wait){ k, rows[k] };
}

static plan *write_plan (const choosing *s) {
  plan *p = NEW (s->a, 1, plan, s->err);
  if (!p)
    return NULL;
  *p = (plan){ .trace_digest = s->digest,
               .device = s->c->device,
               .budget_bytes = s->c->budget_bytes,
               .host_bytes = s->c->device.host_bytes,
               .moves = NEW (s->a, MOST_GAPS, move, s->err),
               .out_order = NEW (s->a, MOST_GAPS, int32_t, s->err),
               .in_order = NEW (s->a, MOST_GAPS, int32_t, s->err),
               .op_waits = NEW (s->a, OPS, op_wait, s->err),
               .n_moves = s->n_moved,
               .n_ins = s->n_moved,
               .n_outs = s->n_outs };
  placement *pl = &p->placement;
  *pl = (placement){ .granule_bytes = TINY_GRANULE,
                     .granules = s->budget,
                     .n_stays = s->n_stays,
                     .n_runs = s->n_stays,
                     .stays = NEW (s->a, MOST_STAYS, stay, s->err),
                     .runs = NEW (s->a, MOST_STAYS, granule_run, s->err) };
  if (!p->moves || !p->out_order || !p->in_order || !p->op_waits || !pl->stays || !pl->runs)
    return NULL;
  for (int32_t m = 0; m < s->n_moved; m++) {
    const gap *g = &s->moved[m];
    p->moves[m] = (move){ g->tensor, 0, 1, g->after, g->before, NO_WAIT, NO_WAIT, g->clean, 0 };
    p->moves[m].host_offset = (int64_t)g->tensor * TINY_GRANULE;
    p->out_order[m] = m < s->n_outs ? s->outs[m] : 0;
    p->in_order[m] = s->ins[m];
  }
  for (int32_t i = 0; i < s->n_stays; i++) {
    pl->stays[i] = s->stays[i].row;
    pl->stays[i].first_run = i;
    pl->stays[i].n_runs = 1;
    pl->runs[i] = (granule_run){ s->stays[i].granule, 1 };
  }
  put_waits (s, p);
  return p;
}

static bool same_timing (const plan *a, const plan *b) {
  size_t n = (size_t)a->n_moves;
  return a->n_moves == b->n_moves && a->n_outs == b->n_outs && a->n_op_waits == b->n_op_waits &&
         memcmp (a->moves, b->moves, n * sizeof *a->moves) == 0 &&
         memcmp (a->out_order, b->out_order, (size_t)a->n_outs * sizeof *a->out_order) == 0 &&
         memcmp (a->in_order, b->in_order, n * sizeof *a->in_order) == 0 &&
         memcmp (a->op_waits, b->op_waits, (size_t)a->n_op_waits * sizeof *a->op_waits) == 0;
}

static bool judge (choosing *s) {
  every_beside *out = s->out;
  arena_mark mark = arena_here (s->a);
  plan *p = write_plan (s);
  predicted cost;
  error why = { 0 };
  if (!p)
    return false;
  if (out->tried++ == MOST_TRIED) {
    out->complete = false;
    return false;
  }
  for (int32_t i = 0; i < out->n_plans; i++)
    if (same_timing (p, out->plans[i])) {
      arena_back (s->a, mark);
      return true;
    }
  if (!check_plan (s->t, p, s->a, NULL, &why) || !simulate_plan (s->t, p, s->a, &cost, &why)) {
    arena_back (s->a, mark);
    return why.code == ERR_infeasible || error_set (s->err, why.code, "%s %s", why.where, why.text);
  }
  out->step_ns = cost.step_ns < out->step_ns ? cost.step_ns : out->step_ns;
  if (out->n_plans == ROOM) {
    out->complete = false;
    return false;
  }
  out->plans[out->n_plans++] = p;
  return true;
}

/* ---- all choices ---- */

/* Granules alike have numbers in the order in which they are first given. */
static bool give_granules (choosing *s, int32_t i, int32_t given) {
  if (i == s->n_stays)
    return judge (s);
  for (int32_t g = 0; g <= given && g < s->budget; g++) {
    bool free = true;
    s->stays[i].granule = g;
    for (int32_t j = 0; j < i; j++)
      free &= s->stays[j].granule != g || !meet (s, &s->stays[i], &s->stays[j]);
    if (free && !give_granules (s, i + 1, g == given ? given + 1 : given))
      return false;
  }
  return true;
}

static bool order_ins (choosing *s, unsigned taken, int32_t i) {
  if (i == s->n_moved)
    return give_granules (s, 0, 0);
  for (int32_t m = 0; m < s->n_moved; m++) {
    s->ins[i] = m;
    if (!(taken >> m & 1) && !order_ins (s, taken | 1u << m, i + 1))
      return false;
  }
  return true;
}

static bool order_outs (choosing *s, unsigned taken, int32_t i) {
  if (i == s->n_outs)
    return order_ins (s, 0, 0);
  for (int32_t m = 0; m < s->n_moved; m++) {
    if (s->moved[m].clean || taken >> m & 1)
      continue;
    s->outs[i] = m;
    s->place[m] = i;
    if (!order_outs (s, taken | 1u << m, i + 1))
      return false;
  }
  return true;
}

static bool choose_gaps (choosing *s) {
  for (unsigned chosen = 0; chosen < 1u << s->n_gaps; chosen++) {
    s->n_moved = 0;
    for (int32_t g = 0; g < s->n_gaps; g++)
      if (chosen >> g & 1)
        s->moved[s->n_moved++] = s->gaps[g];
    find_clean (s);
    list_stays (s);
    if (!order_outs (s, 0, 0))
      return false;
  }
  return true;
}

bool every_beside_search (const tiny_case *c, arena *a, every_beside *out, error *err) {
  choosing s = { .c = c, .t = c->trace, .a = a, .err = err, .out = out, .n = c->trace->n_ops };
  s.budget = (int32_t)(c->budget_bytes / TINY_GRANULE);
  *out = (every_beside){ .step_ns = INT64_MAX };
  out->plans = NEW (a, ROOM, plan *, err);
  s.digest = NEW (a, TRACE_DIGEST, char, err);
  if (!out->plans || !s.digest || !trace_digest (s.t, s.digest, err))
    return false;
  read_waits (&s);
  out->complete = find_gaps (&s);
  bool ok = !out->complete || choose_gaps (&s);
  return ok || !out->complete;
}
