/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granules for every stay and host bytes for every copy, and the limits that they need. */
#include "tests/random_maker.h"

typedef struct interval {
  int64_t begin, end; /* begin == end: all the time */
} interval;

typedef struct shelf { /* who holds which places of a line, and when */
  int64_t *first, *count;
  interval *when;
  int32_t n;
  int64_t length;
} shelf;

/* Touching is meeting, but for copies on the host, which are told apart by their ops. */
static bool meet (interval x, interval y, int64_t period, bool touching) {
  if (x.begin == x.end || y.begin == y.end)
    return true;
  for (int64_t shift = -3 * period; shift <= 3 * period; shift += period) {
    int64_t begin = y.begin + shift, end = y.end + shift;
    if (touching ? x.begin <= end && begin <= x.end : x.begin < end && begin < x.end)
      return true;
  }
  return false;
}

static bool shelf_new (maker *m, shelf *s, int64_t most, error *err) {
  *s = (shelf){ .first = NEW (m->a, most, int64_t, err),
                .count = NEW (m->a, most, int64_t, err),
                .when = NEW (m->a, most, interval, err) };
  return s->first && s->count && s->when;
}

static bool shelf_free (const shelf *s, int64_t first, int64_t count, interval when, int64_t period,
                        bool touching) {
  for (int32_t i = 0; i < s->n; i++)
    if (first < s->first[i] + s->count[i] && s->first[i] < first + count &&
        meet (s->when[i], when, period, touching))
      return false;
  return true;
}

static void shelf_put (shelf *s, int64_t first, int64_t count, interval when) {
  s->first[s->n] = first;
  s->count[s->n] = count;
  s->when[s->n++] = when;
  if (first + count > s->length)
    s->length = first + count;
}

static bool reckless (maker *m) {
  return m->o->places == CASE_RECKLESS && random_chance (&m->r, 60000);
}

/* Granules one by one: free ones that are there already, most of the time, else new ones. */
static void place_stay (maker *m, shelf *s, stay *x, int64_t count, interval when) {
  placement *p = &m->plan->placement;
  bool blind = reckless (m);
  int32_t mine = s->n;
  x->first_run = p->n_runs;
  int64_t g = m->o->places == CASE_APART ? s->length : random_between (&m->r, 0, s->length);
  for (int64_t placed = 0; placed < count; g++) {
    bool taken = !shelf_free (s, g, 1, when, m->period, true);
    if (blind && taken) { /* another's, but never twice its own */
      taken = false;
      for (int32_t i = mine; i < s->n; i++)
        taken = taken || s->first[i] == g;
    }
    if (taken || (g < s->length && random_chance (&m->r, 200000)))
      continue;
    shelf_put (s, g, 1, when);
    placed++;
    granule_run *last = x->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    if (last && last->first + last->count == g)
      last->count++;
    else {
      p->runs[p->n_runs++] = (granule_run){ (int32_t)g, 1 };
      x->n_runs++;
    }
  }
  if (x->n_runs > 1 && random_chance (&m->r, 500000)) {
    granule_run *a = &p->runs[x->first_run], *b = &p->runs[p->n_runs - 1], kept = *a;
    *a = *b;
    *b = kept;
  }
}

/* When the part's next way out begins after `from`: its next move, cyclically; -1: none. */
static int32_t next_move (const maker *m, int32_t u, int32_t part, int64_t from, bool cyclic) {
  int32_t best = -1, n = m->t->n_ops;
  int64_t best_out = 0;
  for (int32_t i = 0; i < m->plan->n_moves; i++) {
    const move *x = &m->plan->moves[i];
    int64_t out = x->out_after + (x->out_after < from && cyclic ? n : 0);
    if (x->unit != u || x->part != part || out < from || (best >= 0 && out >= best_out))
      continue;
    best = i;
    best_out = out;
  }
  return best;
}

static int64_t stay_end (const maker *m, int32_t u, int32_t part, int64_t from) {
  const maker_unit *x = &m->units[u];
  int32_t next = next_move (m, u, part, from, x->persistent);
  if (next < 0)
    return ((int64_t)x->last + 1) * SLOT;
  return m->moves[next].out_at + (m->plan->moves[next].out_after < from ? m->period : 0);
}

static int64_t part_granules (const maker *m, int32_t u, int32_t part) {
  const maker_unit *x = &m->units[u];
  return (part + 1) * x->granules / x->of - part * x->granules / x->of;
}

static bool part_moves (const maker *m, int32_t u, int32_t part) {
  return next_move (m, u, part, 0, false) >= 0;
}

static void place_births (maker *m, shelf *s, int32_t u) {
  const maker_unit *x = &m->units[u];
  placement *p = &m->plan->placement;
  for (int32_t part = 0; x->bytes && part < x->of; part++) {
    interval when = { 0, 0 };
    if (x->persistent && part_moves (m, u, part))
      continue;
    if (!x->persistent)
      when = (interval){ (int64_t)x->first * SLOT + SLOT - 1, stay_end (m, u, part, x->first) };
    bool group = u >= m->t->n_tensors;
    stay *y = &p->stays[p->n_stays++];
    *y = (stay){ group ? STAY_GROUP : STAY_TENSOR, group ? u - m->t->n_tensors : u, part, 0, 0 };
    place_stay (m, s, y, part_granules (m, u, part), when);
  }
}

static void place_move (maker *m, shelf *s, int32_t i) {
  const move *x = &m->plan->moves[i];
  placement *p = &m->plan->placement;
  interval when = { m->moves[i].in_at, stay_end (m, x->unit, x->part, x->in_before) };
  stay *y = &p->stays[p->n_stays++];
  *y = (stay){ STAY_MOVE, i, 0, 0, 0 };
  place_stay (m, s, y, part_granules (m, x->unit, x->part), when);
}

static void place_workspace (maker *m, shelf *s, int32_t k) {
  placement *p = &m->plan->placement;
  int64_t bytes = m->t->ops[k].workspace_bytes;
  if (bytes == 0)
    return;
  interval when = { (int64_t)k * SLOT + SLOT - 1, ((int64_t)k + 1) * SLOT };
  stay *y = &p->stays[p->n_stays++];
  *y = (stay){ STAY_WORKSPACE, k, 0, 0, 0 };
  place_stay (m, s, y, (bytes + p->granule_bytes - 1) / p->granule_bytes, when);
}

static bool place_all (maker *m, error *err) {
  placement *p = &m->plan->placement;
  int64_t births = 0, granules = 0;
  for (int32_t u = 0; u < m->n_units; u++) {
    births += m->units[u].of;
    granules += m->units[u].granules;
  }
  for (int32_t i = 0; i < m->plan->n_moves; i++)
    granules += m->units[m->plan->moves[i].unit].granules;
  for (int32_t k = 0; k < m->t->n_ops; k++)
    granules += m->t->ops[k].workspace_bytes / p->granule_bytes + 1;
  shelf s;
  p->stays = NEW (m->a, births + m->plan->n_moves + m->t->n_ops, stay, err);
  p->runs = NEW (m->a, granules, granule_run, err);
  if (!p->stays || !p->runs || !shelf_new (m, &s, granules, err))
    return false;
  /* Rows in an order of their own: it means nothing. */
  for (int32_t i = m->plan->n_moves - 1; i >= 0; i--)
    place_move (m, &s, i);
  for (int32_t u = 0; u < m->n_units; u++)
    place_births (m, &s, u);
  for (int32_t k = 0; k < m->t->n_ops; k++)
    place_workspace (m, &s, k);
  p->granules = (int32_t)s.length;
  return true;
}

static int64_t copy_bytes (const maker *m, const move *x) {
  const maker_unit *u = &m->units[x->unit];
  int64_t granule = m->plan->placement.granule_bytes;
  int64_t first = x->part * u->granules / x->of * granule;
  int64_t end = (x->part + 1) * u->granules / x->of * granule;
  return (end < u->bytes ? end : u->bytes) - first;
}

/* In ops: from the op behind which the copy is made to the one before which it is last read. */
static interval host_time (const maker *m, int32_t copy) {
  const move *x = &m->plan->moves[copy];
  int32_t n = m->t->n_ops;
  int64_t out = x->out_after, end = out;
  if (m->moves[copy].copy < 0)
    return (interval){ 0, 0 };
  for (int32_t i = 0; i < m->plan->n_moves; i++)
    if (m->moves[i].copy == copy) {
      const move *y = &m->plan->moves[i];
      int64_t away = y->in_before - y->out_after + (m->moves[i].wraps ? n : 0);
      int64_t in = y->out_after + (y->out_after < out ? n : 0) + away;
      end = in > end ? in : end;
    }
  return (interval){ out, end };
}

static int64_t place_copy (maker *m, shelf *s, int64_t bytes, interval when) {
  int64_t offset = (s->length + 511) / 512 * 512;
  if (m->o->places != CASE_APART)
    for (int64_t at = 0; at < offset; at += 512)
      if (random_chance (&m->r, 700000) &&
          (reckless (m) || shelf_free (s, at, bytes, when, m->t->n_ops, false))) {
        offset = at;
        break;
      }
  shelf_put (s, offset, bytes, when);
  return offset;
}

static bool place_host (maker *m, error *err) {
  plan *p = m->plan;
  shelf s;
  if (!shelf_new (m, &s, p->n_moves, err))
    return false;
  for (int32_t i = 0; i < p->n_moves; i++) {
    move *x = &p->moves[i];
    bool of_part = i > 0 && p->moves[i - 1].unit == x->unit && p->moves[i - 1].part == x->part;
    if (m->moves[i].copy == i || (m->moves[i].copy < 0 && !of_part))
      x->host_offset = place_copy (m, &s, copy_bytes (m, x), host_time (m, i));
  }
  for (int32_t i = 0; i < p->n_moves; i++) /* a part's moves stand together */
    if (m->moves[i].copy >= 0)
      p->moves[i].host_offset = p->moves[m->moves[i].copy].host_offset;
    else if (i > 0 && p->moves[i - 1].unit == p->moves[i].unit &&
             p->moves[i - 1].part == p->moves[i].part)
      p->moves[i].host_offset = p->moves[i - 1].host_offset;
  p->host_bytes = (s.length + 511) / 512 * 512;
  return true;
}

static void set_limits (maker *m) {
  plan *p = m->plan;
  placement *s = &p->placement;
  int64_t slack = random_chance (&m->r, 500000) ? 0 : random_between (&m->r, 0, 4000);
  int64_t pool = (s->pool_bytes + s->granule_bytes - 1) / s->granule_bytes;
  p->budget_bytes = (s->granules + pool) * s->granule_bytes + slack;
  if (p->budget_bytes == 0)
    p->budget_bytes = s->granule_bytes;
  p->device.memory_bytes = p->budget_bytes + p->device.reserved_bytes + slack;
  p->host_bytes += slack;
  p->device.host_bytes = p->host_bytes + slack;
}

bool maker_places (maker *m, error *err) {
  if (!place_all (m, err) || !place_host (m, err))
    return false;
  set_limits (m);
  return true;
}
