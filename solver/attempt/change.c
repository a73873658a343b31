/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/attempt/change.h"

#include <string.h>

#include "base/dear.h"
#include "base/units.h"
#include "solver/attempt/round.h"

static int64_t away (const change *c, int32_t gap, int32_t parts) {
  return round_away (&c->layout->step.gaps, c->of, c->layout->step.gaps.at[gap].unit, parts);
}

static int32_t parts_of (const change *c, int32_t gap) {
  return c->of[c->layout->step.gaps.at[gap].unit];
}

bool change_begin (const layout *l, const int32_t *of, const int32_t *parts, const int64_t *ends_ns,
                   arena *a, change *out, error *err) {
  assert (of && parts && ends_ns);
  const gaps *g = &l->step.gaps;
  *out = (change){ .layout = l, .ends_ns = ends_ns, .cut = -1 };
  out->of = NEW (a, l->step.units.count, int32_t, err);
  out->parts = NEW (a, g->count, int32_t, err);
  out->before = NEW (a, g->count, int32_t, err);
  out->is_touched = NEW (a, g->count, bool, err);
  out->touched = NEW (a, g->count, int32_t, err);
  if (!out->of || !out->parts || !out->before || !out->is_touched || !out->touched ||
      !peaks_build (&out->level, g->base_bytes, g->n_ops, a, err))
    return false;
  memcpy (out->of, of, (size_t)l->step.units.count * sizeof *of);
  for (int32_t i = 0; i < g->count; i++)
    change_set (out, i, parts[i]);
  change_settle (out);
  return true;
}

void change_set (change *c, int32_t gap, int32_t parts) {
  assert (gap >= 0 && gap < c->layout->step.gaps.count);
  assert (parts >= 0 && parts <= c->of[c->layout->step.gaps.at[gap].unit]);
  if (c->parts[gap] == parts)
    return;
  if (!c->is_touched[gap]) {
    c->is_touched[gap] = true;
    c->before[gap] = c->parts[gap];
    c->touched[c->n_touched++] = gap;
  }
  round_add (&c->level, &c->layout->step.gaps.at[gap],
             away (c, gap, c->parts[gap]) - away (c, gap, parts));
  c->parts[gap] = parts;
}

void change_cut (change *c, int32_t unit, int32_t of) {
  const gaps *g = &c->layout->step.gaps;
  int32_t had_of = c->of[unit];
  assert (c->cut < 0);
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++) {
    int32_t had = c->parts[i];
    c->of[unit] = had_of;
    change_set (c, i, 0);
    c->of[unit] = of;
    change_set (c, i, (int32_t)units_div_up ((int64_t)had * of, had_of));
  }
  c->of[unit] = of;
  c->cut = unit;
  c->cut_before = had_of;
}

/* The level at the fullest op, counted anew from all gaps. */
static bool is_level (const change *c) {
  const gaps *g = &c->layout->step.gaps;
  int32_t op = peaks_at (&c->level, 0, c->level.count);
  int64_t resident = g->base_bytes[op];
  for (int32_t i = 0; i < g->count; i++)
    if (c->parts[i] && gap_spans (&g->at[i], op))
      resident -= away (c, i, c->parts[i]);
  return resident == peaks_most (&c->level, op, op + 1);
}

void change_settle (change *c) {
  ASSERT_DEAR (is_level (c));
  c->cut = -1;
  for (int32_t i = 0; i < c->n_touched; i++)
    c->is_touched[c->touched[i]] = false;
  c->n_touched = 0;
}

void change_undo (change *c) {
  const gaps *g = &c->layout->step.gaps;
  if (c->cut >= 0) {
    for (int32_t i = g->of_unit[c->cut]; i < g->of_unit[c->cut + 1]; i++)
      change_set (c, i, 0);
    c->of[c->cut] = c->cut_before;
  }
  for (int32_t i = 0; i < c->n_touched; i++)
    change_set (c, c->touched[i], c->before[c->touched[i]]);
  change_settle (c);
}

int64_t change_left (const change *c, int32_t gap) {
  assert (gap >= 0 && gap < c->layout->step.gaps.count);
  const gaps *g = &c->layout->step.gaps;
  const unit_info *u = &g->units->at[g->at[gap].unit];
  if (u->bytes == 0 || u->pinned)
    return 0;
  return away (c, gap, parts_of (c, gap)) - away (c, gap, c->parts[gap]);
}

int32_t change_fullest (const change *c, int32_t gap) {
  return gap == NO_GAP ? peaks_at (&c->level, 0, c->level.count)
                       : round_fullest (&c->level, &c->layout->step.gaps.at[gap]);
}

/* A gap over `op` that can still give a part: long idle times are likelier. */
static int32_t draw_giver (const change *c, random_state *r, int32_t op, int32_t but) {
  const gaps *g = &c->layout->step.gaps;
  double total = 0;
  int32_t drawn = NO_GAP;
  for (int32_t i = 0; i < g->count; i++) {
    const gap *at = &g->at[i];
    if (i == but || !gap_spans (at, op) || change_left (c, i) == 0)
      continue;
    double idle = (double)trace_rest_ns (c->ends_ns, g->n_ops, at->after, at->before) + 1;
    double weight = idle * idle;
    total += weight;
    if ((double)random_between (r, 0, 1 << 30) * total < weight * (1 << 30))
      drawn = i;
  }
  return drawn;
}

bool change_repair (change *c, random_state *r, int64_t room_bytes, int32_t but) {
  assert (but >= NO_GAP);
  const gaps *g = &c->layout->step.gaps;
  while (peaks_most (&c->level, 0, g->n_ops) > room_bytes) {
    int32_t gap = draw_giver (c, r, change_fullest (c, NO_GAP), but);
    if (gap == NO_GAP)
      return false;
    int64_t over = round_most (&c->level, &g->at[gap]) - room_bytes;
    int32_t of = parts_of (c, gap), n = c->parts[gap];
    int64_t had = away (c, gap, n);
    while (n < of && away (c, gap, n) - had < over)
      n++;
    change_set (c, gap, n);
  }
  return true;
}

void change_prune (change *c, random_state *r, int64_t room_bytes) {
  assert (c->n_touched >= 0);
  const gaps *g = &c->layout->step.gaps;
  int32_t count = c->n_touched;
  int32_t first = count ? (int32_t)random_between (r, 0, count - 1) : 0;
  for (int32_t j = 0; j < count; j++) {
    int32_t i = c->touched[(first + j) % count], n = c->parts[i];
    int64_t air = room_bytes - round_most (&c->level, &g->at[i]), had = away (c, i, n);
    while (n > 0 && had - away (c, i, n - 1) <= air)
      n--;
    change_set (c, i, n);
  }
}
