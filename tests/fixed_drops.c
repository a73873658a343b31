/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fixed_drops.h"

#include <string.h>

#include "tests/fixed.h"
#include "trace/uses.h"

/* ---- which tensor stands for which ---- */

/* The tensor that entry e makes in x's place: the last of its copies that writes x writes it. */
static int32_t fresh_of (const fixed_drops *d, int32_t e, int32_t x) {
  const recompute *r = &d->plan->c.plan->recomputes[e];
  const trace *made = d->plan->c.rewritten.trace;
  for (int32_t i = r->ops.count - 1; i >= 0; i--) {
    const op *from = &d->cut.trace->ops[r->ops.at[i]];
    const op *copy = &made->ops[d->place[r->before] - r->ops.count + i];
    /* entries before the same op stand one behind the other: count back over the later ones */
    for (int32_t later = e + 1; later < d->plan->c.plan->n_recomputes; later++)
      if (d->plan->c.plan->recomputes[later].before == r->before)
        copy -= d->plan->c.plan->recomputes[later].ops.count;
    for (int32_t j = 0, at = 0; j < from->writes.count; j++) {
      int32_t y = from->writes.at[j];
      if (list_has (&from->side, y))
        continue;
      if (y == x)
        return copy->writes.at[at];
      at++;
    }
  }
  return -1;
}

static bool is_late (const fixed_drops *d, const gap *g) {
  const op *o = &d->cut.trace->ops[g->before];
  return !d->cut.trace->tensors[g->unit].persistent && !list_has (&o->reads, g->unit) &&
         !list_has (&o->writes, g->unit);
}

/* standing: per op of the cut trace and tensor, who stands for it when the op runs. */
static int32_t *find_standing (fixed_drops *d, arena *a, error *err) {
  const plan *p = d->plan->c.plan;
  const trace *t = d->cut.trace;
  int32_t n = t->n_tensors, entry = 0;
  int32_t *at = NEW (a, (int64_t)t->n_ops * n, int32_t, err);
  int32_t *now = NEW (a, n, int32_t, err);
  if (!at || !now)
    return NULL;
  for (int32_t x = 0; x < n; x++)
    now[x] = x;
  for (int32_t k = 0; k < t->n_ops; k++) {
    for (; entry < p->n_recomputes && p->recomputes[entry].before == k; entry++)
      for (int32_t i = 0; i < p->recomputes[entry].replaces.count; i++) {
        int32_t x = p->recomputes[entry].replaces.at[i];
        now[x] = fresh_of (d, entry, x);
      }
    for (int32_t x = 0; x < n; x++)
      at[(int64_t)k * n + x] = now[x];
  }
  return at;
}

/* The op before which it is made again, the last time; NO_OP: it is not dropped. */
static int32_t made_before (const fixed_drops *d, const gap *g) {
  const plan *p = d->plan->c.plan;
  int32_t end = is_late (d, g) ? d->cut.trace->n_ops - 1 : g->before, made = NO_OP;
  for (int32_t e = 0; e < p->n_recomputes; e++)
    if (p->recomputes[e].before > g->after && p->recomputes[e].before <= end &&
        list_has (&p->recomputes[e].replaces, g->unit))
      made = p->recomputes[e].before;
  return made;
}

/* ---- what is away ---- */

bool fixed_is_away (const move *m, const timeline *t, int32_t i, span op) {
  int64_t from = m->clean ? t->ops[m->out_after].end_ns : t->outs[i].end_ns;
  int64_t to = t->ins[i].start_ns, period = t->period_ns;
  while (to < from)
    to += period;
  while (to - from > period)
    to -= period;
  for (int turn = -3; turn <= 3; turn++)
    if (from + turn * period <= op.start_ns && op.end_ns <= to + turn * period)
      return true;
  return false;
}

static int64_t away_bytes (const fixed_drops *d, const timeline *t, int32_t tensor, span op) {
  const planned_case *p = d->plan;
  const unit_info *u = &p->units.at[tensor];
  int64_t sum = 0;
  for (int32_t i = 0; i < p->c.plan->n_moves; i++) {
    const move *m = &p->c.plan->moves[i];
    if (m->unit == tensor && fixed_is_away (m, t, i, op))
      sum += unit_part_bytes (u, p->c.plan->placement.granule_bytes, m->part, m->of);
  }
  return sum < u->bytes ? sum : u->bytes;
}

static bool set_needs (fixed_drops *d, const timeline *t, const int32_t *standing) {
  gaps *g = &d->gaps;
  int32_t n = d->cut.trace->n_tensors;
  for (int32_t k = 0; k < g->n_ops; k++) {
    span op = t->ops[d->place[k]];
    int64_t need = 0;
    for (int32_t i = 0; op.end_ns > op.start_ns && i < g->count; i++) {
      bool spans = gap_spans (&g->at[i], k) ||
                   (k == g->at[i].before && k + 1 < g->n_ops && is_late (d, &g->at[i]));
      if (g->at[i].unused || !spans)
        continue;
      int32_t x = g->at[i].unit, who = standing[(int64_t)k * n + x];
      if (who < 0)
        return false;
      const unit_info *u = &d->plan->units.at[who];
      bool alive = u->persistent || (u->first <= d->place[k] && d->place[k] <= u->last);
      if (!u->bytes) /* in the pool */
        continue;
      need += alive ? away_bytes (d, t, who, op) : d->units.at[x].bytes;
    }
    g->base_bytes[k] = g->unused_bytes + g->room_bytes + need;
  }
  return true;
}

bool fixed_drops_make (const planned_case *p, arena *a, fixed_drops *out, error *err) {
  const plan *plan = p->c.plan;
  const rewritten *r = &p->c.rewritten;
  *out = (fixed_drops){ .plan = p };
  if (!trace_rewrite (p->c.trace,
                      &(rewriting){ .sections = plan->sections,
                                    .n_sections = plan->n_sections,
                                    .section_ns = plan->device.section_ns },
                      a, &out->cut, err) ||
      !units_of (out->cut.trace, NULL, 0, 1, 0, a, &out->units, err) ||
      !gaps_of (&out->units, 1, 0, a, &out->gaps, err))
    return false;
  int32_t n = out->cut.trace->n_ops, next = 0;
  out->place = NEW (a, n, int32_t, err);
  out->instance = NEW (a, out->gaps.count, int32_t, err);
  out->dropped = NEW (a, out->gaps.count, uint8_t, err);
  out->made = NEW (a, out->gaps.count, int32_t, err);
  if (!out->place || !out->instance || !out->dropped || !out->made)
    return false;
  for (int32_t i = 0; i < r->trace->n_ops; i++)
    if (!r->ops[i].copy)
      out->place[next++] = i;
  if (next != n)
    return error_set (err, ERR_internal, "%d ops of %d are no copies", next, n);
  int32_t *standing = out->standing = find_standing (out, a, err);
  if (!standing)
    return false;
  for (int32_t i = 0; i < out->gaps.count; i++) {
    const gap *g = &out->gaps.at[i];
    out->instance[i] = standing[(int64_t)g->after * out->cut.trace->n_tensors + g->unit];
    out->made[i] = g->unused ? NO_OP : made_before (out, g);
    out->dropped[i] = out->made[i] != NO_OP;
    out->drops += out->dropped[i];
  }
  sim_job job = { p->c.trace, r, plan };
  sim_options o = { .timeline_arena = a };
  timeline t;
  predicted seen;
  return simulate (&job, 1, &o, a, &seen, &t, err) && set_needs (out, &t, standing);
}

/* ---- what is carried ---- */

typedef struct carried {
  int32_t gap, part, of, out; /* out: rewritten ops behind the gap's start */
  int64_t bytes;
  bool clean;
} carried;

static bool lies_in (const fixed_drops *d, const gap *g, const move *m, int32_t *out) {
  int32_t n = d->plan->c.rewritten.trace->n_ops, from = d->place[g->after];
  int32_t length = is_late (d, g) ? n - 1 - from : (d->place[g->before] - from + n - 1) % n + 1;
  int32_t in = (m->in_before - from + n - 1) % n + 1;
  *out = (m->out_after - from + n) % n;
  return *out < length && in <= length && *out < in;
}

/* What was dropped over the peak and made again before it: to the program it never was dropped. */
static bool is_early (const flow *f, const fixed_drops *d, int32_t gap) {
  const struct gap *g = &d->gaps.at[gap];
  if (f->peak_slot < 0 || !d->dropped[gap])
    return false;
  int32_t peak = f->slots->first[f->peak_slot];
  int32_t end = is_late (d, g) ? d->cut.trace->n_ops - 1 : g->before;
  return f->slots->of_op[g->release] <= f->peak_slot && peak < end && d->made[gap] <= peak;
}

/* The first time of each part in each gap. */
static int32_t collect (const fixed_drops *d, carried *to) {
  const plan *p = d->plan->c.plan;
  int32_t n = 0;
  for (int32_t i = 0; i < d->gaps.count; i++) {
    const gap *g = &d->gaps.at[i];
    int32_t who = d->instance[i];
    if (d->dropped[i]) /* who stands there when the gap ends */
      who = d->standing[(int64_t)d->made[i] * d->cut.trace->n_tensors + g->unit];
    for (int32_t j = 0; j < p->n_moves && !g->unused; j++) {
      const move *m = &p->moves[j];
      int32_t out, k = 0;
      if (m->unit != who || !lies_in (d, g, m, &out))
        continue;
      while (k < n && (to[k].gap != i || to[k].part != m->part))
        k++;
      if (k < n && to[k].out < out)
        continue;
      to[k] = (carried){ i,
                         m->part,
                         m->of,
                         out,
                         unit_part_bytes (&d->plan->units.at[m->unit], p->placement.granule_bytes,
                                          m->part, m->of),
                         m->clean };
      n += k == n;
    }
  }
  return n;
}

static bool is_in (const flow *f, int32_t gap) {
  for (int32_t i = 0; i < f->n_gaps; i++)
    if (f->gaps[i].gap == gap)
      return true;
  return false;
}

/* A copy out in a gap that the program leaves out is one in the next, released in the same slot. */
static int32_t pass_on (const flow *f, carried *d, int32_t n) {
  const gaps *g = f->source;
  for (int32_t i = 0; i < n; i++) {
    if (d[i].clean || is_in (f, d[i].gap))
      continue;
    int32_t unit = g->at[d[i].gap].unit, next = d[i].gap + 1, k = 0;
    next = next == g->of_unit[unit + 1] ? g->of_unit[unit] : next;
    if (g->at[next].clean != d[i].gap || next == d[i].gap)
      continue;
    while (k < n && (d[k].gap != next || d[k].part != d[i].part))
      k++;
    if (k == n) {
      d[n] = d[i];
      d[n++].gap = next;
    } else if (d[k].clean) {
      d[k].clean = false;
      i = k < i ? k - 1 : i;
    }
  }
  return n;
}

bool fixed_drops_solve (flow *f, const fixed_drops *d, arena *a, double *stall_ns, error *err) {
  int64_t most = ((int64_t)d->plan->c.plan->n_moves + 1) * (d->gaps.count + 1);
  carried *list = NEW (a, most, carried, err);
  if (!list)
    return false;
  int32_t n = pass_on (f, list, collect (d, list));
  for (int32_t i = 0; i < f->n_chains; i++) {
    const flow_chain *c = &f->chains[i];
    for (int32_t col = c->column; col < f->n_columns && f->column_at[col] < c->link + c->count;
         col++) {
      int kind = f->column_kind[col];
      int64_t bytes = 0;
      if (kind == COLUMN_gap_valid)
        continue;
      for (int32_t k = 0; k < c->n_members; k++) {
        const flow_gap *at =
            &f->gaps[f->members[c->members + k].first_gap + f->column_at[col] - c->link];
        if (d->dropped[at->gap] && !is_early (f, d, at->gap)) {
          bytes += kind == COLUMN_gap_drop ? d->units.at[d->gaps.at[at->gap].unit].bytes : 0;
          if (!at->drops) {
            *stall_ns = -1;
            return true;
          }
          if (!flow_serves (c, f->column_at[col] - c->link))
            continue;
        }
        for (int32_t j = 0; j < n && kind != COLUMN_gap_drop; j++)
          if (list[j].gap == at->gap && (list[j].clean == (kind == COLUMN_gap_clean) || c->circle))
            bytes += list[j].bytes;
      }
      f->low[col] = f->high[col] = flow_grains_down (&f->link, bytes);
    }
  }
  return fixed_finish (f, a, stall_ns, err);
}

bool fixed_drops_keeps (const trace *cut, const recompute *entries, int32_t n_entries, arena *a,
                        bool *keeps, error *err) {
  uses u;
  uint8_t *made = NEW (a, cut->n_tensors, uint8_t, err);
  *keeps = false;
  if (!made || !uses_of (cut, a, &u, err))
    return false;
  for (int32_t e = 0; e < n_entries; e++) {
    memset (made, 0, (size_t)cut->n_tensors);
    for (int32_t i = 0; i < entries[e].ops.count; i++) {
      const op *o = &cut->ops[entries[e].ops.at[i]];
      for (int32_t j = 0; j < o->reads.count; j++) {
        int32_t x = o->reads.at[j];
        *keeps |= !made[x] && !list_has (&o->side, x) && !cut->tensors[x].persistent &&
                  uses_last (&u, x) < entries[e].before;
      }
      for (int32_t j = 0; j < o->writes.count; j++)
        made[o->writes.at[j]] = 1;
    }
  }
  return true;
}
