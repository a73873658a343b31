/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan to JSON; the long tables as rows or as columns. */
#include "trace/plan.h"

#include <assert.h>

#include "base/json.h"

static void put_wait (json_writer *w, int32_t wait) {
  if (wait == NO_WAIT)
    json_put_null (w);
  else
    json_put_int (w, wait);
}

static void put_move_row (json_writer *w, const move *m) {
  json_open_object (w);
  if (m->clean)
    json_add_bool (w, "clean", true);
  json_add_int (w, "host_offset", m->host_offset);
  json_add_int (w, "in_before", m->in_before);
  if (m->in_ops != NO_WAIT)
    json_add_int (w, "in_ops", m->in_ops);
  if (m->in_outs != NO_WAIT)
    json_add_int (w, "in_outs", m->in_outs);
  if (m->of != 1)
    json_add_int (w, "of", m->of);
  json_add_int (w, "out_after", m->out_after);
  if (m->part)
    json_add_int (w, "part", m->part);
  json_add_int (w, "unit", m->unit);
  json_close_object (w);
}

/* One column of int32 fields, `absent` shown as null. */
static void put_column (json_writer *w, const char *key, const void *rows, int32_t count,
                        size_t size, size_t offset) {
  json_add_array (w, key);
  for (int32_t i = 0; i < count; i++)
    put_wait (w, *(const int32_t *)((const char *)rows + (size_t)i * size + offset));
  json_close_array (w);
}

static void put_moves (json_writer *w, const plan *p, bool packed) {
  json_put_key (w, "moves");
  if (!packed) {
    json_open_array (w);
    for (int32_t i = 0; i < p->n_moves; i++)
      put_move_row (w, &p->moves[i]);
    json_close_array (w);
    return;
  }
  const move *m = p->moves;
  int32_t n = p->n_moves;
  json_open_object (w);
  json_add_array (w, "clean");
  for (int32_t i = 0; i < n; i++)
    json_put_bool (w, m[i].clean);
  json_close_array (w);
  json_add_array (w, "host_offset");
  for (int32_t i = 0; i < n; i++)
    json_put_int (w, m[i].host_offset);
  json_close_array (w);
  put_column (w, "in_before", m, n, sizeof *m, offsetof (move, in_before));
  put_column (w, "in_ops", m, n, sizeof *m, offsetof (move, in_ops));
  put_column (w, "in_outs", m, n, sizeof *m, offsetof (move, in_outs));
  put_column (w, "of", m, n, sizeof *m, offsetof (move, of));
  put_column (w, "out_after", m, n, sizeof *m, offsetof (move, out_after));
  put_column (w, "part", m, n, sizeof *m, offsetof (move, part));
  put_column (w, "unit", m, n, sizeof *m, offsetof (move, unit));
  json_close_object (w);
}

static void put_op_waits (json_writer *w, const plan *p, bool packed) {
  json_put_key (w, "op_waits");
  if (packed) {
    json_open_object (w);
    put_column (w, "op", p->op_waits, p->n_op_waits, sizeof *p->op_waits, offsetof (op_wait, op));
    put_column (w, "outs", p->op_waits, p->n_op_waits, sizeof *p->op_waits,
                offsetof (op_wait, outs));
    json_close_object (w);
    return;
  }
  json_open_array (w);
  for (int32_t i = 0; i < p->n_op_waits; i++) {
    json_open_object (w);
    json_add_int (w, "op", p->op_waits[i].op);
    json_add_int (w, "outs", p->op_waits[i].outs);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_runs (json_writer *w, const placement *pl, const stay *s) {
  for (int32_t i = 0; i < s->n_runs; i++) {
    json_put_int (w, pl->runs[s->first_run + i].first);
    json_put_int (w, pl->runs[s->first_run + i].count);
  }
}

const char *const placement_names[PLACEMENT_KINDS + 1] = { "granules", "arena", NULL };

static const char *const stay_keys[] = { "tensor", "group", "move", "workspace" };

static bool has_part (const stay *s) {
  return s->kind == STAY_TENSOR || s->kind == STAY_GROUP;
}

static void put_stay_rows (json_writer *w, const placement *pl) {
  json_open_array (w);
  for (int32_t i = 0; i < pl->n_stays; i++) {
    const stay *s = &pl->stays[i];
    json_open_object (w);
    bool key_last = s->kind == STAY_TENSOR || s->kind == STAY_WORKSPACE; /* sorted keys */
    if (!key_last)
      json_add_int (w, stay_keys[s->kind], s->index);
    if (has_part (s) && s->part)
      json_add_int (w, "part", s->part);
    json_add_array (w, "runs");
    put_runs (w, pl, s);
    json_close_array (w);
    if (key_last)
      json_add_int (w, stay_keys[s->kind], s->index);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_stay_column (json_writer *w, const placement *pl, const char *key, stay_kind kind) {
  json_add_array (w, key);
  for (int32_t i = 0; i < pl->n_stays; i++)
    if (pl->stays[i].kind == kind)
      json_put_int (w, pl->stays[i].index);
    else
      json_put_null (w);
  json_close_array (w);
}

static void put_stay_columns (json_writer *w, const placement *pl) {
  json_open_object (w);
  put_stay_column (w, pl, "group", STAY_GROUP);
  put_stay_column (w, pl, "move", STAY_MOVE);
  json_add_array (w, "part");
  for (int32_t i = 0; i < pl->n_stays; i++)
    json_put_int (w, pl->stays[i].part);
  json_close_array (w);
  json_add_object (w, "runs");
  json_add_array (w, "index");
  for (int32_t i = 0; i < pl->n_stays; i++)
    put_runs (w, pl, &pl->stays[i]);
  json_close_array (w);
  json_add_array (w, "offset");
  int64_t offset = 0;
  json_put_int (w, 0);
  for (int32_t i = 0; i < pl->n_stays; i++)
    json_put_int (w, offset += 2 * (int64_t)pl->stays[i].n_runs);
  json_close_array (w);
  json_close_object (w);
  put_stay_column (w, pl, "tensor", STAY_TENSOR);
  put_stay_column (w, pl, "workspace", STAY_WORKSPACE);
  json_close_object (w);
}

static void put_placement (json_writer *w, const placement *pl, bool packed) {
  json_add_object (w, "placement");
  json_add_int (w, "granule_bytes", pl->granule_bytes);
  json_add_int (w, "granules", pl->granules);
  if (pl->kind != PLACEMENT_GRANULES)
    json_add_text (w, "kind", placement_names[pl->kind]);
  json_add_int (w, "pool_below_bytes", pl->pool_below_bytes);
  json_add_int (w, "pool_bytes", pl->pool_bytes);
  if (pl->same_places)
    json_add_bool (w, "same_places", true);
  json_put_key (w, "stays");
  if (packed)
    put_stay_columns (w, pl);
  else
    put_stay_rows (w, pl);
  json_close_object (w);
}

void predicted_write (json_writer *w, const char *key, const predicted *p) {
  if (key)
    json_put_key (w, key);
  if (!p) {
    json_put_null (w);
    return;
  }
  json_open_object (w);
  json_add_int (w, "baseline_ns", p->baseline_ns);
  json_add_int (w, "compute_ns", p->compute_ns);
  json_add_int (w, "d2h_bytes", p->d2h_bytes);
  json_add_int (w, "h2d_bytes", p->h2d_bytes);
  json_add_int (w, "host_peak_bytes", p->host_peak_bytes);
  json_add_int (w, "peak_bytes", p->peak_bytes);
  json_add_bool (w, "settled", p->settled);
  json_add_int (w, "stall_ns", p->stall_ns);
  json_add_int (w, "step_ns", p->step_ns);
  json_close_object (w);
}

void certificate_write (json_writer *w, const certificate *c, bool proof) {
  json_put_key (w, "certificate");
  if (!c) {
    json_put_null (w);
    return;
  }
  json_open_object (w);
  json_add_text (w, "bound_by", c->bound_by);
  if (c->has_cover) {
    json_put_key (w, "cover");
    cover_write (w, &c->cover);
  }
  json_add_text (w, "found_by", c->found_by);
  json_add_fixed (w, "gap", c->gap, 6);
  json_add_text (w, "limit_met", c->limit_met);
  json_add_int (w, "lower_bound_ns", c->lower_bound_ns);
  json_add_raw (w, "proof", proof && c->proof ? c->proof : "null");
  json_close_object (w);
}

static void put_recomputes (json_writer *w, const plan *p) {
  json_add_array (w, "recompute");
  for (int32_t i = 0; i < p->n_recomputes; i++) {
    const recompute *e = &p->recomputes[i];
    json_open_object (w);
    json_add_int (w, "before", e->before);
    json_add_indices (w, "ops", e->ops.at, e->ops.count);
    json_add_indices (w, "replaces", e->replaces.at, e->replaces.count);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_sections (json_writer *w, const plan *p) {
  json_add_array (w, "sections");
  for (int32_t i = 0; i < p->n_sections; i++) {
    const section *s = &p->sections[i];
    json_open_object (w);
    int32_t ends[2] = { s->first, s->end };
    json_add_indices (w, "ops", ends, 2);
    json_add_text (w, "order", s->order == SECTION_DEPTH ? "depth" : "level");
    json_add_int (w, "parts", s->parts);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_order (json_writer *w, const plan *p) {
  if (!p->n_order)
    return;
  json_add_array (w, "order");
  for (int32_t i = 0; i < p->n_order; i++) {
    json_put_int (w, p->order[i].first);
    json_put_int (w, p->order[i].count);
  }
  json_close_array (w);
}

bool plan_text (const plan *p, bool packed, bytes *out, error *err) {
  assert (p && out);
  json_writer w;
  json_begin_object (&w, packed ? 2 : 3);
  json_add_int (&w, "budget_bytes", p->budget_bytes);
  if (p->has_certificate)
    certificate_write (&w, &p->certificate, true);
  json_put_key (&w, "device");
  device_write (&w, &p->device);
  json_add_text (&w, "format", PLAN_FORMAT);
  json_add_array (&w, "groups");
  for (int32_t i = 0; i < p->n_groups; i++) {
    json_open_array (&w);
    for (int32_t j = 0; j < p->groups[i].count; j++)
      json_put_int (&w, p->groups[i].at[j]);
    json_close_array (&w);
  }
  json_close_array (&w);
  json_add_int (&w, "host_bytes", p->host_bytes);
  json_add_indices (&w, "in_order", p->in_order, p->n_ins);
  if (p->made_by)
    json_add_raw (&w, "made_by", p->made_by);
  put_moves (&w, p, packed);
  put_op_waits (&w, p, packed);
  put_order (&w, p);
  json_add_indices (&w, "out_order", p->out_order, p->n_outs);
  put_placement (&w, &p->placement, packed);
  if (p->has_predicted)
    predicted_write (&w, "predicted", &p->predicted);
  put_recomputes (&w, p);
  if (p->n_resting)
    json_add_indices (&w, "resting", p->resting, p->n_resting);
  put_sections (&w, p);
  json_add_text (&w, "trace", p->trace_digest);
  json_close_object (&w);
  return json_finish (&w, out, err);
}

bool plan_store (const plan *p, const char *path, bool packed, error *err) {
  assert (p && path);
  bytes text;
  return plan_text (p, packed, &text, err) && file_store (path, &text, err);
}
