/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A walk to JSON; trace/walk/format.md says what each key means. */
#include "trace/walk/walk.h"

#include <assert.h>

#include "base/json.h"

static void put_granules (json_writer *w, const placement *p, int32_t stay) {
  json_add_array (w, "granules");
  for (int32_t i = 0; stay >= 0 && i < p->stays[stay].n_runs; i++) {
    const granule_run *run = &p->runs[p->stays[stay].first_run + i];
    json_put_int (w, run->first);
    json_put_int (w, run->count);
  }
  json_close_array (w);
}

static void put_unit (json_writer *w, const walk *k, int32_t unit) {
  int32_t group = unit - k->rewritten->trace->n_tensors;
  if (group < 0)
    json_add_indices (w, "tensors", &unit, 1);
  else
    json_add_indices (w, "tensors", k->plan->groups[group].at, k->plan->groups[group].count);
}

static void put_births (json_writer *w, const walk *k) {
  const placement *p = &k->plan->placement;
  int32_t n_tensors = k->rewritten->trace->n_tensors;
  json_add_array (w, "births");
  for (int32_t i = 0; i < p->n_stays; i++) {
    const stay *s = &p->stays[i];
    int32_t unit = s->kind == STAY_GROUP ? n_tensors + s->index : s->index;
    if (s->kind == STAY_MOVE || s->kind == STAY_WORKSPACE)
      continue;
    json_open_object (w);
    put_granules (w, p, i);
    json_add_int (w, "of", k->stays.of[unit]);
    json_add_int (w, "part", s->part);
    put_unit (w, k, unit);
    json_close_object (w);
  }
  json_close_array (w);
}

/* ---- items ---- */

static void put_behind (json_writer *w, const walk *k, const walk_item *it) {
  bool before = it->behind <= 0;
  json_add_object (w, "behind");
  json_add_int (w, "op", it->behind - 1 + (before ? k->count[WALK_OPS] : 0));
  json_add_int (w, "steps_ago", before);
  json_close_object (w);
}

static void put_waits (json_writer *w, const walk *k, const walk_item *it) {
  json_add_array (w, "waits");
  for (int32_t i = it->first_demand; i < it->first_demand + it->n_demands; i++) {
    const walk_wait *x = &k->demands[i];
    json_open_object (w);
    if (x->implied)
      json_add_bool (w, "implied", true);
    json_add_int (w, "position", x->position);
    json_add_text (w, "queue", walk_queue_names[x->queue]);
    json_add_int (w, "steps_ago", x->lag);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_items (json_writer *w, const walk *k) {
  json_add_array (w, "items");
  for (int32_t i = 0; i < k->n_items; i++) {
    const walk_item *it = &k->items[i];
    json_open_object (w);
    if (it->queue != WALK_OPS)
      put_behind (w, k, it);
    put_granules (w, &k->plan->placement, it->stay);
    json_add_int (w, "index", it->index);
    json_add_int (w, "position", it->position);
    json_add_text (w, "queue", walk_queue_names[it->queue]);
    put_waits (w, k, it);
    json_close_object (w);
  }
  json_close_array (w);
}

/* ---- ops, moves and tensors ---- */

static void put_moves (json_writer *w, const walk *k) {
  int64_t granule = k->plan->placement.granule_bytes;
  json_add_array (w, "moves");
  for (int32_t i = 0; i < k->plan->n_moves; i++) {
    const move *m = &k->plan->moves[i];
    const unit_info *u = &k->units.at[m->unit];
    json_open_object (w);
    json_add_int (w, "bytes", unit_part_bytes (u, granule, m->part, m->of));
    json_add_bool (w, "clean", m->clean);
    json_add_int (w, "host_offset", m->host_offset);
    json_add_int (w, "in_before", m->in_before);
    json_add_int (w, "of", m->of);
    json_add_int (w, "out_after", m->out_after);
    json_add_int (w, "part", m->part);
    put_unit (w, k, m->unit);
    json_add_int (w, "unit_offset", unit_part_first (u, m->part, m->of) * granule);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_items_of_batch (json_writer *w, const origin *o, int64_t batch) {
  if (o->first_item == 0 && o->end_item == batch)
    return;
  json_add_array (w, "batch");
  json_put_int (w, o->first_item);
  json_put_int (w, o->end_item);
  json_close_array (w);
}

static void put_ops (json_writer *w, const walk *k, int64_t batch) {
  json_add_array (w, "ops");
  for (int32_t i = 0; i < k->count[WALK_OPS]; i++) {
    const op *o = &k->rewritten->trace->ops[i];
    int32_t remake = k->items[k->place[WALK_OPS][i]].remake;
    json_open_object (w);
    put_items_of_batch (w, &k->rewritten->ops[i], batch);
    json_add_int (w, "of", k->rewritten->ops[i].index);
    json_add_indices (w, "reads", o->reads.at, o->reads.count);
    if (remake >= 0)
      json_add_int (w, "remake", remake);
    json_add_indices (w, "writes", o->writes.at, o->writes.count);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_remakes (json_writer *w, const plan *p) {
  json_add_array (w, "remakes");
  for (int32_t i = 0; i < p->n_recomputes; i++) {
    const recompute *r = &p->recomputes[i];
    json_open_object (w);
    json_add_int (w, "before", r->before);
    json_add_indices (w, "ops", r->ops.at, r->ops.count);
    json_add_indices (w, "replaces", r->replaces.at, r->replaces.count);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_tensors (json_writer *w, const walk *k, int64_t batch) {
  json_add_array (w, "tensors");
  for (int32_t i = 0; i < k->rewritten->trace->n_tensors; i++) {
    const origin *o = &k->rewritten->tensors[i];
    json_open_object (w);
    put_items_of_batch (w, o, batch);
    json_add_int (w, "bytes", k->rewritten->trace->tensors[i].bytes);
    json_add_int (w, "of", o->index);
    if (k->rewritten->trace->tensors[i].persistent)
      json_add_bool (w, "persistent", true);
    if (o->copy)
      json_add_bool (w, "remade", true);
    json_close_object (w);
  }
  json_close_array (w);
}

static void put_memory (json_writer *w, const placement *p) {
  json_add_object (w, "memory");
  json_add_int (w, "granule_bytes", p->granule_bytes);
  json_add_int (w, "granules", p->granules);
  json_add_text (w, "kind", placement_names[p->kind]);
  json_add_int (w, "pool_bytes", p->pool_bytes);
  json_close_object (w);
}

bool walk_text (const walk *k, const trace *original, bytes *out, error *err) {
  assert (k && original && k->rewritten->ops && k->rewritten->tensors);
  const plan *p = k->plan;
  json_writer w;
  json_begin_object (&w, 2);
  put_births (&w, k);
  json_add_int (&w, "budget_bytes", p->budget_bytes);
  json_add_text (&w, "format", WALK_FORMAT);
  put_items (&w, k);
  put_memory (&w, &p->placement);
  put_moves (&w, k);
  put_ops (&w, k, original->batch);
  if (p->has_predicted)
    predicted_write (&w, "predicted", &p->predicted);
  put_remakes (&w, p);
  json_add_indices (&w, "resting", p->resting, p->n_resting);
  put_tensors (&w, k, original->batch);
  json_add_text (&w, "trace", p->trace_digest);
  json_close_object (&w);
  return json_finish (&w, out, err);
}
