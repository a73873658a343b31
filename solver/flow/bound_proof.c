/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A proof as text: what prove reads again (trace/prove/evaluation.md). */
#include <assert.h>

#include "solver/flow/bound.h"

static const char *const drop_names[] = { "none", "allowed", "only" };

static void put_series (json_writer *w, const char *key, const flow *f, const int64_t *duals,
                        flow_row_kind kind, bool per_class) {
  json_put_key (w, key);
  json_open_array (w);
  for (int c = 0; c < (per_class ? f->n_classes : 1); c++) {
    if (per_class)
      json_open_array (w);
    for (int32_t j = 0; j < f->n_slots; j++) {
      int32_t row = flow_row (f, kind, j, c);
      json_put_int (w, row < 0 ? 0 : duals[row]);
    }
    if (per_class)
      json_close_array (w);
  }
  json_close_array (w);
}

static void put_classes (json_writer *w, const flow *f) {
  json_put_key (w, "classes");
  json_open_array (w);
  for (int c = 0; c < f->n_classes; c++)
    json_put_int (w, f->class[c].out);
  json_close_array (w);
}

static void put_rows (json_writer *w, const char *key, const int32_t *rows, int32_t count,
                      const int64_t *duals) {
  json_put_key (w, key);
  json_open_array (w);
  for (int32_t i = 0; i < count; i++)
    json_put_int (w, rows[i] < 0 ? 0 : duals[rows[i]]);
  json_close_array (w);
}

static const char *finish (json_writer *w, arena *a, error *err) {
  bytes text = { 0 };
  const char *out = NULL;
  if (json_finish (w, &text, err))
    out = arena_string_n (a, text.data, (size_t)text.size, err);
  bytes_free (&text);
  return out;
}

/* The duals of chains over seams, each in its place in order of names. */
static void put_seams (json_writer *w, const flow *f, const int64_t *duals, flow_row_kind from,
                       const char *key) {
  if (f->seams.any)
    put_series (w, key, f, duals, from, false);
}

static void put_reach (json_writer *w, const flow *f, const int64_t *duals) {
  if (!f->seams.any)
    return;
  put_rows (w, "reach_inner", f->row[ROW_reach_inner], f->seams.n_half, duals);
  put_rows (w, "reach_next", f->row[ROW_reach_next], f->seams.n_half, duals);
}

/* Which ops' outputs may be dropped, where that is not all of them. */
static void put_again (json_writer *w, const flow *f, const uint8_t *again) {
  json_put_key (w, "again");
  json_open_array (w);
  for (int32_t k = 0; k < f->source->n_ops; k++)
    if (again[k])
      json_put_int (w, k);
  json_close_array (w);
}

const char *bound_proof (const flow *f, const int64_t *duals, bool any_units, const uint8_t *again,
                         arena *a, error *err) {
  assert (duals && f->source);
  json_writer w;
  json_begin (&w, 0);
  json_open_object (&w);
  if (f->drops && again)
    put_again (&w, f, again);
  json_add_bool (&w, "any_units", any_units);
  put_seams (&w, f, duals, ROW_carry_in, "carry_in");
  put_seams (&w, f, duals, ROW_carry_out, "carry_out");
  put_classes (&w, f);
  put_seams (&w, f, duals, ROW_cuts, "cuts");
  put_rows (&w, "cycle", f->row[ROW_cycle], f->n_classes, duals);
  if (f->drops)
    json_add_text (&w, "drops", drop_names[f->drops]);
  put_series (&w, "early", f, duals, ROW_early, true);
  put_series (&w, "early_first", f, duals, ROW_early_first, true);
  json_add_text (&w, "format", "ferry-proof/1");
  if (f->fresh)
    json_add_bool (&w, "fresh", true);
  put_series (&w, "host", f, duals, ROW_host, true);
  put_series (&w, "host_first", f, duals, ROW_host_first, true);
  put_series (&w, "host_limit", f, duals, ROW_host_limit, false);
  put_seams (&w, f, duals, ROW_inner_end, "inner_end");
  put_seams (&w, f, duals, ROW_inner_first, "inner_first");
  json_add_text (&w, "kind", "flow");
  if (f->drops)
    put_series (&w, "made", f, duals, ROW_made, false);
  put_series (&w, "need", f, duals, ROW_need, false);
  put_series (&w, "need_first", f, duals, ROW_need_first, false);
  put_seams (&w, f, duals, ROW_owed, "owed");
  put_seams (&w, f, duals, ROW_owed_work, "owed_work");
  if (f->peak_slot >= 0)
    json_add_int (&w, "peak", f->slots->first[f->peak_slot]);
  put_series (&w, "pending", f, duals, ROW_pending, true);
  put_reach (&w, f, duals);
  if (f->drops) {
    put_series (&w, "ready", f, duals, ROW_ready, false);
    put_series (&w, "remake", f, duals, ROW_remake, false);
  }
  if (f->source->loosened)
    json_add_text (&w, "sections", loose_order_names[f->source->loosened->orders]);
  if (f->drops)
    put_rows (&w, "shares", f->row[ROW_share], f->n_shares, duals);
  json_add_int (&w, "shift", f->link.shift);
  json_put_key (&w, "slots");
  json_open_array (&w);
  for (int32_t j = 0; j < f->n_slots; j++)
    json_put_int (&w, f->slots->first[j]);
  json_close_array (&w);
  put_series (&w, "stall_in", f, duals, ROW_stall_in, false);
  put_series (&w, "stall_out", f, duals, ROW_stall_out, false);
  put_series (&w, "work_in", f, duals, ROW_work_in, false);
  put_series (&w, "work_out", f, duals, ROW_work_out, false);
  json_close_object (&w);
  return finish (&w, a, err);
}

const char *bound_cheap_proof (const char *kind, int32_t op, bool any_units, flow_drops drops,
                               const loosened *l, arena *a, error *err) {
  assert (kind && op >= NO_OP);
  json_writer w;
  json_begin (&w, 0);
  json_open_object (&w);
  json_add_bool (&w, "any_units", any_units);
  if (drops)
    json_add_text (&w, "drops", drop_names[drops]);
  json_add_text (&w, "format", "ferry-proof/1");
  json_add_text (&w, "kind", kind);
  if (op != NO_OP)
    json_add_int (&w, "op", op);
  if (l)
    json_add_text (&w, "sections", loose_order_names[l->orders]);
  json_close_object (&w);
  return finish (&w, a, err);
}
