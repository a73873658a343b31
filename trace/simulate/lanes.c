/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/simulate/lanes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"
#include "trace/unit.h"

static bool bad (error *err, const char *list, int32_t row, const char *field, int64_t value) {
  char where[64];
  snprintf (where, sizeof where, "/%s/%d%s", list, row, field);
  return error_at (err, ERR_input, where, "%lld is out of range", (long long)value);
}

/* Only what moves is looked at: a table of all units would cost more than the simulation. */
static bool unit_moved (const trace *t, const plan *p, int32_t unit, unit_info *out) {
  *out = (unit_info){ 0 };
  if (unit < 0 || unit >= t->n_tensors + p->n_groups)
    return false;
  if (unit < t->n_tensors)
    out->bytes = t->tensors[unit].bytes;
  else {
    const index_list *group = &p->groups[unit - t->n_tensors];
    for (int32_t i = 0; i < group->count; i++) {
      if (group->at[i] < 0 || group->at[i] >= t->n_tensors)
        return false;
      out->bytes += unit_member_bytes (t->tensors[group->at[i]].bytes);
    }
  }
  out->granules = units_div_up (out->bytes, p->placement.granule_bytes);
  return out->bytes > 0;
}

/* Looks at every index that the lanes are built from; the rest is check's. bytes: of each copy. */
static bool plan_is_sound (const plan *p, const trace *t, int64_t *bytes, error *err) {
  for (int32_t i = 0; i < p->n_moves; i++) {
    const move *m = &p->moves[i];
    unit_info u;
    if (!unit_moved (t, p, m->unit, &u))
      return bad (err, "moves", i, "/unit", m->unit);
    if (m->of < 1 || m->of > u.granules)
      return bad (err, "moves", i, "/of", m->of);
    if (m->part < 0 || m->part >= m->of)
      return bad (err, "moves", i, "/part", m->part);
    if (m->out_after < 0 || m->out_after >= t->n_ops)
      return bad (err, "moves", i, "/out_after", m->out_after);
    if (m->in_before < 0 || m->in_before >= t->n_ops)
      return bad (err, "moves", i, "/in_before", m->in_before);
    if (m->host_offset < 0 || m->host_offset > MOST_BYTES)
      return bad (err, "moves", i, "/host_offset", m->host_offset);
    bytes[i] = unit_part_bytes (&u, p->placement.granule_bytes, m->part, m->of);
  }
  for (int32_t i = 0; i < p->n_op_waits; i++)
    if (p->op_waits[i].op < 0 || p->op_waits[i].op >= t->n_ops)
      return bad (err, "op_waits", i, "/op", p->op_waits[i].op);
  return true;
}

/* place[m]: where move m stands in an order; each move that must be there is there once. */
static bool read_order (const plan *p, const char *name, const int32_t *order, int32_t count,
                        bool outs, int32_t *place, error *err) {
  int32_t want = 0;
  for (int32_t m = 0; m < p->n_moves; m++) {
    want += !outs || !p->moves[m].clean;
    place[m] = -1;
  }
  for (int32_t i = 0; i < count; i++) {
    int32_t m = order[i];
    if (m < 0 || m >= p->n_moves || place[m] >= 0 || (outs && p->moves[m].clean))
      return bad (err, name, i, "", m);
    place[m] = i;
  }
  return count == want ||
         error_at (err, ERR_input, "", "%s names %d of %d moves", name, count, want);
}

static void fill_ops (sim_lane *lane, const trace *t, const plan *p) {
  for (int32_t i = 0; i < t->n_ops; i++)
    lane->ops[i] = (sim_op){ t->ops[i].ns, t->ops[i].gap_ns, INT32_MIN, INT32_MIN };
  for (int32_t i = 0; i < p->n_op_waits; i++)
    lane->ops[p->op_waits[i].op].outs = p->op_waits[i].outs;
  for (int32_t i = 0; i < p->n_ins; i++) {
    sim_op *o = &lane->ops[p->moves[p->in_order[i]].in_before];
    if (o->ins < i + 1) /* copies in end in order: the last of those due is enough */
      o->ins = i + 1;
  }
  for (int32_t k = 1; lane->beside && k < t->n_ops; k++) { /* copies see one list of ops */
    lane->ops[k].ins = max_of (lane->ops[k].ins, lane->ops[k - 1].ins);
    lane->ops[k].outs = max_of (lane->ops[k].outs, lane->ops[k - 1].outs);
  }
}

/* Counted first, then written. */
static void put_wait (sim_beside *b, int32_t before, int32_t k, bool write) {
  if (write)
    b->next[b->first[before + 1]++] = k;
  else
    b->first[before + 2]++;
}

/* An op waits for the one before it on its stream, and for those that it names. */
static void put_waits (sim_beside *b, const trace *t, bool write) {
  int32_t last[MOST_STREAMS];
  memset (last, 0xff, sizeof last);
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    int32_t before = last[o->stream];
    if (before != NO_OP)
      put_wait (b, before, k, write);
    for (int32_t j = 0; j < o->after.count; j++)
      put_wait (b, o->after.at[j], k, write);
    b->stream_of[k] = o->stream;
    b->waits_for[k] = o->after.count + (before != NO_OP);
    last[o->stream] = k;
  }
}

static bool fill_beside (sim_lane *lane, const trace *t, arena *a, error *err) {
  int64_t waits = t->n_ops;
  for (int32_t k = 0; k < t->n_ops; k++)
    waits += t->ops[k].after.count;
  sim_beside *b = lane->beside = NEW (a, 1, sim_beside, err);
  if (!b)
    return false;
  if (!ALLOC (a, b->stream_of, t->n_ops, err) || !ALLOC (a, b->waits_for, t->n_ops, err) ||
      !ALLOC (a, b->left, t->n_ops, err) || !ALLOC (a, b->ended, t->n_ops, err) ||
      !ALLOC (a, b->first, (int64_t)t->n_ops + 2, err) || !ALLOC (a, b->next, waits, err))
    return false;
  put_waits (b, t, false);
  for (int32_t k = 2; k < t->n_ops + 2; k++)
    b->first[k] += b->first[k - 1];
  put_waits (b, t, true);
  return true;
}

static void fill_copies (sim_lane *lane, const plan *p, const int64_t *bytes,
                         const int32_t *out_place) {
  for (int32_t i = 0; i < p->n_outs; i++) {
    const move *m = &p->moves[p->out_order[i]];
    lane->outs[i] = (sim_copy){ .ops = (int64_t)m->out_after + 1,
                                .outs = SIM_NEVER,
                                .bytes = bytes[p->out_order[i]],
                                .move = p->out_order[i] };
  }
  for (int32_t i = 0; i < p->n_ins; i++) {
    const move *m = &p->moves[p->in_order[i]];
    bool wraps = m->in_before <= m->out_after;
    sim_copy *c = &lane->ins[i];
    *c = (sim_copy){ .ops = m->in_ops == NO_WAIT ? SIM_NEVER : m->in_ops,
                     .outs = m->in_outs == NO_WAIT ? SIM_NEVER : m->in_outs,
                     .bytes = bytes[p->in_order[i]],
                     .move = p->in_order[i] };
    if (m->clean)
      c->ops = max_of (c->ops, m->out_after + 1 - (wraps ? (int64_t)lane->n_ops : 0));
    else
      c->outs = max_of (c->outs, out_place[p->in_order[i]] + 1 - (wraps ? (int64_t)p->n_outs : 0));
  }
}

bool lane_of_job (const sim_job *job, arena *a, sim_lane *lane, error *err) {
  assert (job && job->plan && job->rewritten && lane);
  const plan *p = job->plan;
  const trace *t = job->rewritten->trace;
  int64_t *bytes = NEW (a, p->n_moves, int64_t, err);
  if (!bytes || !plan_is_sound (p, t, bytes, err))
    return false;
  *lane = (sim_lane){
    .n_ops = t->n_ops, .n_outs = p->n_outs, .n_ins = p->n_ins, .n_streams = max_of (t->n_streams, 1)
  };
  lane->streams = NEW (a, lane->n_streams, sim_stream, err);
  if (!lane->streams || (trace_has_streams (t) && !fill_beside (lane, t, a, err)))
    return false;
  lane->ops = NEW (a, t->n_ops, sim_op, err);
  lane->outs = NEW (a, p->n_outs, sim_copy, err);
  lane->ins = NEW (a, p->n_ins, sim_copy, err);
  int32_t *out_place = NEW (a, p->n_moves, int32_t, err);
  int32_t *in_place = NEW (a, p->n_moves, int32_t, err);
  if (!lane->ops || !lane->outs || !lane->ins || !out_place || !in_place ||
      !read_order (p, "out_order", p->out_order, p->n_outs, true, out_place, err) ||
      !read_order (p, "in_order", p->in_order, p->n_ins, false, in_place, err))
    return false;
  fill_ops (lane, t, p);
  fill_copies (lane, p, bytes, out_place);
  return true;
}

/* ---- collectives of ranks ---- */

static const char *group_of (const op *o) {
  return o->group ? o->group : "";
}

/* The groups of all ranks, by name: the number of this one. */
static int32_t number_of (const char **names, int32_t *count, const char *name) {
  int32_t i = 0;
  while (i < *count && strcmp (names[i], name) != 0)
    i++;
  if (i == *count)
    names[(*count)++] = name;
  return i;
}

/* Each rank of a group has as many collectives of it as the others. */
static bool groups_agree (const sim_run *r, const char **names, int32_t count, error *err) {
  for (int32_t g = 0; g < count; g++) {
    int32_t first = -1;
    for (int32_t i = 0; i < r->n_lanes; i++) {
      int32_t has = r->lanes[i].in_group[g];
      if (has && first < 0)
        first = i;
      if (has && has != r->lanes[first].in_group[g])
        return error_set (err, ERR_input,
                          "rank %d has %d collectives of group `%.60s` in a step, rank %d has %d",
                          first, r->lanes[first].in_group[g], names[g], i, has);
    }
  }
  return true;
}

bool lanes_meet (sim_run *r, const sim_job *jobs, arena *a, error *err) {
  assert (r && jobs);
  int32_t count = 0, most = 0;
  for (int32_t i = 0; i < r->n_lanes; i++)
    for (int32_t k = 0; k < r->lanes[i].n_ops; k++)
      most += jobs[i].rewritten->trace->ops[k].collective != COLLECTIVE_none;
  if (!most)
    return true;
  const char **names = NEW (a, most, const char *, err);
  if (!names)
    return false;
  for (int32_t i = 0; i < r->n_lanes; i++) {
    sim_lane *lane = &r->lanes[i];
    if (!ALLOC (a, lane->in_group, most, err) || !ALLOC (a, lane->meetings, lane->n_ops, err))
      return false;
    for (int32_t k = 0; k < lane->n_ops; k++) {
      const op *o = &jobs[i].rewritten->trace->ops[k];
      int32_t group = o->collective ? number_of (names, &count, group_of (o)) : -1;
      lane->meetings[k] = (sim_meeting){ group, group < 0 ? 0 : lane->in_group[group]++ };
    }
  }
  return groups_agree (r, names, count, err);
}
