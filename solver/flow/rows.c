/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of the flow program: which there are, and the limits of each. */
#include <assert.h>
#include <string.h>

#include "solver/flow/builder.h"

static const bool row_per_class[ROW_KINDS] = {
#define FLOW_ROW(name, letter, per_class) per_class,
#define FLOW_COLUMN(name, letter)
#include "solver/flow/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
};

static void add_row (flow_builder *b, flow_row_kind kind, int32_t at, int sense, int64_t limit) {
  flow *f = b->f;
  assert (f->n_rows < b->row_room);
  int32_t r = f->n_rows++;
  f->row[kind][at] = r;
  f->row_kind[r] = (uint8_t)kind;
  f->row_at[r] = at;
  f->row_sense[r] = (int8_t)sense;
  f->row_limit[r] = limit;
}

static bool is_exact (const flow *f, int32_t slot) {
  return f->need[slot] > 0 && !flow_ends_at_seam (f, slot);
}

/* A slot that meets another at a seam has more of them. */
static void seam_rows (flow_builder *b, int32_t j) {
  flow *f = b->f;
  const flow_seams *s = &f->seams;
  if (flow_ends_at_seam (f, j) && f->need[j] > 0)
    add_row (b, ROW_need, j, 1, f->need[j]);
  if (flow_ends_at_seam (f, j) && s->first[j] == j)
    add_row (b, ROW_cuts, j, 1, 0);
  if (flow_ends_at_seam (f, j) && s->at[j]) {
    add_row (b, ROW_inner_first, j, -1, 0);
    add_row (b, ROW_inner_end, j, -1, 0);
  }
  if (!s->at[j])
    return;
  if (flow_swaps (f)) {
    add_row (b, ROW_carry_out, j, -1, 0);
    add_row (b, ROW_owed, j, -1, 0);
    if (!f->link.one_row)
      add_row (b, ROW_carry_in, j, -1, 0);
  }
  if (f->drops)
    add_row (b, ROW_owed_work, j, -1, 0);
  for (int32_t i = s->first[j]; i + 1 < j && f->need[j - 1] > 0; i++) {
    int32_t reach = s->half_from[j] + j - 1 - i;
    add_row (b, ROW_reach_inner, reach, -1, 0);
    if (i + 2 < j)
      add_row (b, ROW_reach_next, reach, -1, 0);
  }
}

static void slot_rows (flow_builder *b, int32_t j) {
  flow *f = b->f;
  const flow_link *l = &f->link;
  bool many = f->n_classes > 1 || f->seams.at[j] || flow_ends_at_seam (f, j);
  for (int c = 0; c < f->n_classes; c++) {
    int32_t at = j * f->n_classes + c;
    if (flow_swaps (f))
      add_row (b, ROW_pending, at, 0, 0);
    if (is_exact (f, j))
      add_row (b, ROW_host_first, at, 0, 0);
    add_row (b, ROW_host, at, 0, 0);
    if (flow_swaps (f) && f->due_first[at] > 0)
      add_row (b, ROW_early_first, at, 0, 0);
    if (flow_swaps (f))
      add_row (b, ROW_early, at, 0, 0);
  }
  if (flow_swaps (f)) {
    add_row (b, ROW_stall_out, j, -1, f->idle_out[j]);
    if (!l->one_row)
      add_row (b, ROW_stall_in, j, -1, f->idle_in[j]);
    if (many || l->shared)
      add_row (b, ROW_work_out, j, -1, f->work_out[j]);
    if ((many || l->shared) && !l->one_row)
      add_row (b, ROW_work_in, j, -1, f->work_in[j]);
  }
  if (flow_work_room (f, j) > 0) {
    add_row (b, ROW_ready, j, 0, 0);
    add_row (b, ROW_made, j, 0, 0);
    add_row (b, ROW_remake, j, -1, 0);
  }
  seam_rows (b, j);
  if (f->n_classes > 1 && f->need[j] > 0) {
    add_row (b, ROW_need_first, j, 1, f->need[j]);
    add_row (b, ROW_need, j, 1, f->need[j]);
  }
  if (f->host_limited)
    add_row (b, ROW_host_limit, j, -1, f->host_grains);
}

static void chain_rows (flow_builder *b, const flow_chain *c) {
  for (int32_t i = 0; c->circle && b->f->host_limited && i < c->count; i++)
    add_row (b, ROW_whole, c->link + i, -1, c->room);
  if (!flow_swaps (b->f))
    return;
  if (b->f->gaps[c->first].drops && !flow_serves (c, 0))
    add_row (b, ROW_whole, c->link, -1, c->room);
  for (int32_t i = 1; !c->circle && i < c->count; i++) {
    add_row (b, ROW_clean, c->link + i, -1, 0);
    add_row (b, ROW_whole, c->link + i, -1, c->room);
    if (i + 1 < c->count)
      add_row (b, ROW_valid, c->link + i, -1, 0);
  }
}

int32_t flow_row (const flow *f, flow_row_kind kind, int32_t slot, int32_t class) {
  assert (slot >= 0 && class >= 0);
  int32_t at = row_per_class[kind] ? slot * f->n_classes + class : slot;
  int32_t r = f->row[kind][at];
  if (r < 0 && kind == ROW_host_first)
    return f->row[ROW_host][at];
  if (r < 0 && kind == ROW_early_first)
    return f->row[ROW_early][at];
  return r;
}

static bool row_room (flow_builder *b, arena *a, error *err) {
  flow *f = b->f;
  int64_t cells = (int64_t)f->n_slots * f->n_classes;
  b->row_room =
      cells * 5 + (int64_t)f->n_slots * 18 + f->n_classes + (int64_t)f->n_links * 3 + f->n_shares;
  b->row_room += 2 * (int64_t)f->seams.n_half;
  if (b->row_room > INT32_MAX / 4)
    return error_set (err, ERR_limit, "the flow program of %d slots is too large", f->n_slots);
  for (int k = 0; k < ROW_KINDS; k++) {
    int64_t n = k == ROW_share                                ? f->n_shares + 1
                : k >= ROW_clean                              ? (int64_t)f->n_links + 1
                : k == ROW_reach_inner || k == ROW_reach_next ? (int64_t)f->seams.n_half + 1
                : k == ROW_cycle                              ? f->n_classes
                : row_per_class[k]                            ? cells
                                                              : f->n_slots;
    f->row[k] = NEW (a, n, int32_t, err);
    if (!f->row[k])
      return false;
    memset (f->row[k], 0xff, (size_t)n * sizeof (int32_t));
  }
  f->row_kind = NEW (a, b->row_room, uint8_t, err);
  f->row_at = NEW (a, b->row_room, int32_t, err);
  f->row_sense = NEW (a, b->row_room, int8_t, err);
  f->row_limit = NEW (a, b->row_room, int64_t, err);
  return f->row_kind && f->row_at && f->row_sense && f->row_limit;
}

bool flow_add_rows (flow_builder *b, arena *a, error *err) {
  assert (b && a);
  flow *f = b->f;
  if (!row_room (b, a, err))
    return false;
  for (int32_t j = 0; j < f->n_slots; j++)
    slot_rows (b, j);
  for (int c = 0; c < f->n_classes; c++)
    add_row (b, ROW_cycle, c, 0, 0);
  for (int32_t i = 0; i < f->n_chains; i++)
    chain_rows (b, &f->chains[i]);
  for (int32_t i = 0; i < f->n_shares; i++)
    add_row (b, ROW_share, i, 1, 0);
  return true;
}

bool flow_drop_empty_rows (flow *f, arena *a, error *err) {
  int32_t *to = NEW (a, f->n_rows, int32_t, err), kept = 0;
  if (!to)
    return false;
  for (int64_t e = 0; e < f->n_entries; e++)
    to[f->entry_row[e]] = 1;
  for (int32_t r = 0; r < f->n_rows; r++) {
    if (!to[r]) {
      f->row[f->row_kind[r]][f->row_at[r]] = -1;
      continue;
    }
    to[r] = kept;
    f->row[f->row_kind[r]][f->row_at[r]] = kept;
    f->row_kind[kept] = f->row_kind[r];
    f->row_at[kept] = f->row_at[r];
    f->row_sense[kept] = f->row_sense[r];
    f->row_limit[kept++] = f->row_limit[r];
  }
  for (int64_t e = 0; e < f->n_entries; e++)
    f->entry_row[e] = to[f->entry_row[e]];
  f->n_rows = kept;
  return true;
}
