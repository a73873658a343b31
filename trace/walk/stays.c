/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/walk/stays.h"

#include <assert.h>

static int32_t part_of (const stay_map *m, int32_t unit, int32_t part) {
  assert (unit >= 0 && part >= 0 && part < m->of[unit]);
  return m->first_part[unit] + part;
}

/* Few moves a part: insertion keeps them sorted by in_before. */
static void sort_moves (const plan *p, int32_t *moves, int32_t n) {
  for (int32_t i = 1; i < n; i++) {
    int32_t m = moves[i], k = i;
    for (; k > 0 && p->moves[moves[k - 1]].in_before > p->moves[m].in_before; k--)
      moves[k] = moves[k - 1];
    moves[k] = m;
  }
}

/* A plan that nobody has checked may speak of what is not there. */
static bool find_of (stay_map *m, const units *u, error *err) {
  for (int32_t i = 0; i < u->count; i++)
    m->of[i] = 1;
  for (int32_t i = 0; i < m->plan->n_moves; i++) {
    const move *x = &m->plan->moves[i];
    if (x->unit < 0 || x->unit >= u->count || x->part < 0 || x->part >= x->of ||
        x->of > u->at[x->unit].granules || (m->of[x->unit] > 1 && m->of[x->unit] != x->of))
      return error_set (err, ERR_input,
                        "move %d is of part %d of %d of unit %d, which is not there", i, x->part,
                        x->of, x->unit);
    m->of[x->unit] = x->of;
  }
  for (int32_t i = 0; i < m->plan->n_moves; i++)
    if (m->of[m->plan->moves[i].unit] != m->plan->moves[i].of)
      return error_set (err, ERR_input, "move %d is of one of %d parts, another of one of %d", i,
                        m->plan->moves[i].of, m->of[m->plan->moves[i].unit]);
  return true;
}

static bool sort_parts (stay_map *m, int32_t parts, arena *a, error *err) {
  const plan *p = m->plan;
  int32_t *fill = NEW (a, (int64_t)parts + 1, int32_t, err);
  if (fill == NULL || (m->move_offset = NEW (a, (int64_t)parts + 1, int32_t, err)) == NULL ||
      (m->part_moves = NEW (a, p->n_moves, int32_t, err)) == NULL)
    return false;
  for (int32_t i = 0; i < p->n_moves; i++)
    m->move_offset[part_of (m, p->moves[i].unit, p->moves[i].part) + 1]++;
  for (int32_t i = 0; i < parts; i++) {
    m->move_offset[i + 1] += m->move_offset[i];
    fill[i] = m->move_offset[i];
  }
  for (int32_t i = 0; i < p->n_moves; i++)
    m->part_moves[fill[part_of (m, p->moves[i].unit, p->moves[i].part)]++] = i;
  for (int32_t i = 0; i < parts; i++)
    sort_moves (p, m->part_moves + m->move_offset[i], m->move_offset[i + 1] - m->move_offset[i]);
  return true;
}

/* The entry that holds a stay's number; NULL: the stay is of what is not there. */
static int32_t *slot_of (const stay_map *m, const units *u, const stay *s) {
  int32_t n_tensors = u->trace->n_tensors;
  int32_t unit = s->kind == STAY_GROUP ? n_tensors + s->index : s->index;
  if (s->index < 0)
    return NULL;
  if (s->kind == STAY_MOVE)
    return s->index < m->plan->n_moves ? &m->move_stay[s->index] : NULL;
  if (s->kind == STAY_WORKSPACE)
    return s->index < u->trace->n_ops ? &m->work_stay[s->index] : NULL;
  return unit < (s->kind == STAY_GROUP ? u->count : n_tensors) && s->part >= 0 &&
                 s->part < m->of[unit]
             ? &m->birth_stay[part_of (m, unit, s->part)]
             : NULL;
}

static bool find_stays (stay_map *m, const units *u, int32_t parts, arena *a, error *err) {
  const placement *l = &m->plan->placement;
  int32_t **tables[] = { &m->birth_stay, &m->move_stay, &m->work_stay };
  int64_t sizes[] = { parts, m->plan->n_moves, u->trace->n_ops };
  for (int k = 0; k < 3; k++) {
    if ((*tables[k] = NEW (a, sizes[k], int32_t, err)) == NULL)
      return false;
    for (int64_t i = 0; i < sizes[k]; i++)
      (*tables[k])[i] = -1;
  }
  for (int32_t i = 0; i < l->n_stays; i++) {
    int32_t *slot = slot_of (m, u, &l->stays[i]);
    if (slot == NULL)
      return error_set (err, ERR_input, "stay %d is of what is not there", i);
    *slot = i;
  }
  return true;
}

bool stays_map (const units *u, const plan *p, arena *a, stay_map *out, error *err) {
  assert (u && u->trace && p);
  *out = (stay_map){ .plan = p };
  if ((out->of = NEW (a, u->count, int32_t, err)) == NULL ||
      (out->first_part = NEW (a, u->count, int32_t, err)) == NULL || !find_of (out, u, err))
    return false;
  int32_t parts = 0;
  for (int32_t i = 0; i < u->count; i++) {
    out->first_part[i] = parts;
    parts += out->of[i];
  }
  return sort_parts (out, parts, a, err) && find_stays (out, u, parts, a, err);
}

int32_t stays_at (const stay_map *m, int32_t unit, int32_t part, int32_t op) {
  int32_t i = part_of (m, unit, part), best = -1;
  for (int32_t k = m->move_offset[i]; k < m->move_offset[i + 1]; k++)
    if (m->plan->moves[m->part_moves[k]].in_before <= op)
      best = m->part_moves[k];
  if (best >= 0)
    return m->move_stay[best];
  /* A persistent part with moves has no birth: it came in during the step before. */
  if (m->birth_stay[i] < 0 && m->move_offset[i + 1] > m->move_offset[i])
    return m->move_stay[m->part_moves[m->move_offset[i + 1] - 1]];
  return m->birth_stay[i];
}

int32_t stays_between (const stay_map *m, int32_t unit, int32_t part, int32_t *away) {
  int32_t i = part_of (m, unit, part);
  *away = -1;
  for (int32_t k = m->move_offset[i]; k < m->move_offset[i + 1]; k++) {
    const move *x = &m->plan->moves[m->part_moves[k]];
    if (x->in_before <= x->out_after) {
      *away = m->part_moves[k];
      return -1;
    }
  }
  return stays_at (m, unit, part, INT32_MAX);
}
