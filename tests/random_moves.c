/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Units, and the moves of their parts: each into a gap between two uses. */
#include "tests/random_maker.h"

enum { MOST_OF = 3 };

static bool is_nothing (const maker *m, int32_t x) {
  if (m->t->tensors[x].persistent)
    return false;
  for (int32_t k = 0; k < m->t->n_ops; k++)
    if (m->uses[(int64_t)x * m->t->n_ops + k])
      return false;
  return true;
}

/* Uses by reads and writes only: these decide whether a tensor is nothing. */
static void mark_lists (maker *m) {
  for (int32_t k = 0; k < m->t->n_ops; k++) {
    const op *x = &m->t->ops[k];
    for (int32_t i = 0; i < x->reads.count; i++)
      m->uses[(int64_t)x->reads.at[i] * m->t->n_ops + k] |= USED;
    for (int32_t i = 0; i < x->writes.count; i++)
      m->uses[(int64_t)x->writes.at[i] * m->t->n_ops + k] |= USED | WRITTEN;
  }
}

static void mark_life (maker *m, int32_t x) {
  const tensor *y = &m->t->tensors[x];
  if (y->born_before != NO_OP)
    m->uses[(int64_t)x * m->t->n_ops + y->born_before] |= USED | WRITTEN;
  if (y->dies_after != NO_OP)
    m->uses[(int64_t)x * m->t->n_ops + y->dies_after] |= USED;
}

static int64_t rounded (int64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

static void add_member (maker *m, int32_t group, int32_t x) {
  maker_unit *u = &m->units[m->t->n_tensors + group];
  const tensor *y = &m->t->tensors[x];
  index_list *g = &m->plan->groups[group];
  g->at[g->count++] = x;
  u->bytes += rounded (y->bytes);
  u->persistent = y->persistent;
  u->pinned = u->pinned || y->pinned;
  m->units[x].bytes = 0;
  for (int32_t k = 0; k < m->t->n_ops; k++)
    m->uses[(int64_t)(m->t->n_tensors + group) * m->t->n_ops + k] |=
        m->uses[(int64_t)x * m->t->n_ops + k];
}

/* Each group starts with one tensor and takes others of its sort as chance has it. */
static bool make_groups (maker *m, error *err) {
  plan *p = m->plan;
  for (int32_t x = 0; x < m->t->n_tensors; x++) {
    if (!m->units[x].bytes || !maker_may (m, CASE_GROUPS, 200000) ||
        p->n_groups + m->t->n_tensors == m->n_units)
      continue;
    int32_t g = p->n_groups++;
    bool persistent = m->units[x].persistent;
    if (!(p->groups[g].at = NEW (m->a, m->t->n_tensors, int32_t, err)))
      return false;
    add_member (m, g, x);
    for (int32_t y = x + 1; y < m->t->n_tensors; y++)
      if (m->units[y].bytes && m->units[y].persistent == persistent &&
          random_chance (&m->r, 400000))
        add_member (m, g, y);
  }
  m->n_units = m->t->n_tensors + p->n_groups;
  return true;
}

static void make_pool (maker *m) {
  placement *s = &m->plan->placement;
  s->pool_below_bytes = maker_may (m, CASE_POOL, 800000) ? random_between (&m->r, 1, 1500) : 0;
  s->pool_below_bytes *= maker_factor (m);
  for (int32_t x = 0; x < m->t->n_tensors; x++)
    if (m->units[x].bytes && m->units[x].bytes < s->pool_below_bytes) {
      s->pool_bytes += rounded (m->units[x].bytes);
      m->units[x].bytes = 0;
    }
}

static void finish_unit (maker *m, int32_t u) {
  maker_unit *x = &m->units[u];
  int64_t granule = m->plan->placement.granule_bytes;
  x->granules = (x->bytes + granule - 1) / granule;
  x->first = x->last = NO_OP;
  x->of = 1;
  for (int32_t k = 0; k < m->t->n_ops; k++) {
    unsigned char use = m->uses[(int64_t)u * m->t->n_ops + k];
    if (use) {
      x->first = x->first == NO_OP ? k : x->first;
      x->last = k;
    }
    x->written = x->written || (use & WRITTEN);
  }
}

bool maker_units (maker *m, error *err) {
  enum { MOST_GROUPS = 3 };
  int32_t n = m->t->n_tensors;
  m->n_units = n + MOST_GROUPS;
  m->plan->groups = NEW (m->a, MOST_GROUPS, index_list, err);
  m->units = NEW (m->a, m->n_units, maker_unit, err);
  m->uses = NEW (m->a, (int64_t)m->n_units * m->t->n_ops, unsigned char, err);
  if (!m->plan->groups || !m->units || !m->uses)
    return false;
  m->plan->placement.granule_bytes = maker_may (m, CASE_BIG_GRANULE, 700000) ? 1024 : 512;
  m->plan->placement.granule_bytes *= maker_factor (m);
  mark_lists (m);
  for (int32_t x = 0; x < n; x++) {
    const tensor *y = &m->t->tensors[x];
    if (is_nothing (m, x))
      continue;
    m->units[x].bytes = y->bytes;
    m->units[x].persistent = y->persistent;
    m->units[x].pinned = y->pinned;
    mark_life (m, x);
  }
  if (!make_groups (m, err))
    return false;
  make_pool (m);
  for (int32_t u = 0; u < m->n_units; u++)
    finish_unit (m, u);
  return true;
}

static bool used_at (const maker *m, int32_t u, int64_t op) {
  return m->uses[(int64_t)u * m->t->n_ops + op % m->t->n_ops];
}

static bool written_in (const maker *m, int32_t u, int64_t from, int64_t to) {
  for (int64_t k = from; k < to; k++)
    if (m->uses[(int64_t)u * m->t->n_ops + k % m->t->n_ops] & WRITTEN)
      return true;
  return false;
}

static void add_move (maker *m, int32_t u, int32_t part, int64_t out, int64_t in) {
  int32_t n = m->t->n_ops;
  move *x = &m->plan->moves[m->plan->n_moves];
  *x = (move){
    .unit = u, .part = part, .of = m->units[u].of, .in_ops = NO_WAIT, .in_outs = NO_WAIT
  };
  x->out_after = (int32_t)(out % n);
  x->in_before = (int32_t)(in % n);
  m->moves[m->plan->n_moves].wraps = x->in_before <= x->out_after;
  m->plan->n_moves++;
}

/* Somewhere in the gap between a use at `from` and one at `to`, counted on into the next step;
   seldom out and in twice. */
static void fill_gap (maker *m, int32_t u, int32_t part, int64_t from, int64_t to) {
  int64_t out = random_between (&m->r, from, random_chance (&m->r, 500000) ? from : to - 1);
  int64_t in = random_between (&m->r, random_chance (&m->r, 500000) ? to : out + 1, to);
  if (in - out > 1 && random_chance (&m->r, 200000)) {
    int64_t middle = random_between (&m->r, out + 1, in - 1);
    add_move (m, u, part, out, middle);
    out = middle;
  }
  add_move (m, u, part, out, in);
}

/* The moves of one part that may be clean become so, now and then. [first, n_moves) are its own, in
   order of time from the first on. */
static void make_clean (maker *m, int32_t u, int32_t first) {
  const maker_unit *x = &m->units[u];
  int32_t n = m->plan->n_moves - first, k = m->t->n_ops, source = first;
  if (n == 0 || !(m->features & CASE_CLEAN))
    return;
  if (x->persistent && !x->written && random_chance (&m->r, 400000)) {
    for (int32_t i = first; i < first + n; i++) {
      m->plan->moves[i].clean = true;
      m->moves[i].copy = -1;
    }
    return;
  }
  for (int32_t i = first + 1; i < first + n; i++) {
    move *y = &m->plan->moves[i];
    int64_t from = m->plan->moves[source].out_after, to = y->out_after;
    to += to < from ? k : 0;
    if (!written_in (m, u, from + 1, to + 1) && random_chance (&m->r, 700000)) {
      y->clean = true;
      m->moves[i].copy = source;
    } else
      source = i;
  }
}

static void move_part (maker *m, int32_t u, int32_t part) {
  const maker_unit *x = &m->units[u];
  int32_t n = m->t->n_ops, first_move = m->plan->n_moves;
  int64_t from = x->first, end = x->last;
  if (x->persistent) { /* once round, from any use; with no use at all, from anywhere */
    from = maker_pick (m, 0, n - 1);
    while (x->first != NO_OP && !used_at (m, u, from))
      from++;
    end = from + n;
  }
  for (int64_t to = from + 1; to <= end; to++)
    if (used_at (m, u, to) || to == end) {
      if (random_chance (&m->r, 450000))
        fill_gap (m, u, part, from, to);
      from = to;
    }
  for (int32_t i = first_move; i < m->plan->n_moves; i++)
    m->moves[i].copy = i;
  make_clean (m, u, first_move);
}

bool maker_moves (maker *m, error *err) {
  int64_t most = (int64_t)m->n_units * MOST_OF * (2 * (int64_t)m->t->n_ops + 2);
  m->plan->moves = NEW (m->a, most, move, err);
  m->moves = NEW (m->a, most, maker_move, err);
  if (!m->plan->moves || !m->moves)
    return false;
  for (int32_t u = 0; u < m->n_units; u++) {
    maker_unit *x = &m->units[u];
    bool lives = x->persistent || x->first < x->last;
    if (!x->bytes || x->pinned || !lives || !random_chance (&m->r, 700000))
      continue;
    int64_t most_of = x->granules < MOST_OF ? x->granules : MOST_OF;
    x->of = maker_may (m, CASE_PARTS, 600000) ? maker_pick (m, 1, most_of) : 1;
    int32_t before = m->plan->n_moves;
    for (int32_t part = 0; part < x->of; part++)
      if (random_chance (&m->r, 800000))
        move_part (m, u, part);
    if (m->plan->n_moves == before)
      x->of = 1;
  }
  return true;
}
