/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The columns of the flow program: what flows, what lies where, what leaves. */
#include <assert.h>

#include "solver/flow/builder.h"

/* ---- entries ---- */

void flow_begin_column (flow_builder *b) {
  b->column_first = b->f->n_entries;
}

/* Entries of one column in one row add up (a program of one slot meets itself). */
void flow_put (flow_builder *b, int32_t row, int64_t coef) {
  flow *f = b->f;
  if (row < 0 || !coef)
    return;
  for (int64_t e = b->column_first; e < f->n_entries; e++)
    if (f->entry_row[e] == row) {
      f->entry_coef[e] += coef;
      if (!f->entry_coef[e]) {
        f->n_entries--;
        f->entry_row[e] = f->entry_row[f->n_entries];
        f->entry_coef[e] = f->entry_coef[f->n_entries];
      }
      return;
    }
  assert (f->n_entries < b->entry_room);
  f->entry_row[f->n_entries] = row;
  f->entry_coef[f->n_entries++] = coef;
}

int32_t flow_end_column (flow_builder *b, flow_column_kind kind, int32_t at, int64_t low,
                         int64_t high, int64_t cost) {
  flow *f = b->f;
  assert (f->n_columns < b->column_room && low <= high);
  int32_t c = f->n_columns++;
  f->column_kind[c] = (uint8_t)kind;
  f->column_at[c] = at;
  f->low[c] = low;
  f->high[c] = high;
  f->cost[c] = cost;
  f->column_start[f->n_columns] = f->n_entries;
  return c;
}

/* coefficient x weight, rounded down: both make a row's left side smaller at most. */
static int64_t times (int64_t x, int64_t y) {
  return flow_coef (((__int128)x * y) >> COEF_BITS);
}

/* ---- a slot's ---- */

static void levels (flow_builder *b, int32_t j, int c) {
  flow *f = b->f;
  int32_t at = j * f->n_classes + c, next = j + 1 == f->n_slots ? 0 : j + 1;
  bool last = j + 1 == f->n_slots, many = f->n_classes > 1;
  int32_t cycle = last ? f->row[ROW_cycle][c] : -1;
  int64_t open = f->open[at] + f->seams.before_due[j + 1],
          room = f->open[flow_slot_before (f, j) * f->n_classes + c] + f->released[at];
  int64_t need = many || flow_ends_at_seam (f, j) ? 0 : f->need[j];
  if (open > 0 && flow_swaps (f)) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
    flow_put (b, flow_row (f, ROW_pending, next, c), COEF_ONE);
    flow_put (b, cycle, COEF_ONE);
    flow_end_column (b, COLUMN_pending, at, 0, open, 0);
  }
  if (open > 0) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_host, j, c), -COEF_ONE);
    flow_put (b, flow_row (f, ROW_host_first, next, c), COEF_ONE);
    flow_put (b, cycle, COEF_ONE);
    flow_put (b, f->row[ROW_need][j], COEF_ONE);
    flow_put (b, f->row[ROW_host_limit][j], f->class[c].host);
    flow_end_column (b, COLUMN_host, at, need, open, 0);
  }
  if (open > 0 && flow_swaps (f)) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_early, j, c), -COEF_ONE);
    flow_put (b, flow_row (f, ROW_early_first, next, c), COEF_ONE);
    flow_put (b, cycle, COEF_ONE);
    flow_end_column (b, COLUMN_early, at, 0, open, 0);
  }
  if (open > 0 && f->row[ROW_host_first][at] >= 0) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_host_first, j, c), -COEF_ONE);
    flow_put (b, flow_row (f, ROW_host, j, c), COEF_ONE);
    flow_put (b, f->row[ROW_need_first][j], COEF_ONE);
    flow_end_column (b, COLUMN_host_first, at, need, open, 0);
  }
  if (flow_swaps (f) && room > f->due_first[at] && f->row[ROW_early_first][at] >= 0) {
    flow_begin_column (b);
    flow_put (b, flow_row (f, ROW_early_first, j, c), -COEF_ONE);
    flow_put (b, flow_row (f, ROW_early, j, c), COEF_ONE);
    flow_end_column (b, COLUMN_early_first, at, 0, room - f->due_first[at], 0);
  }
}

static void flows (flow_builder *b, int32_t j, int c) {
  flow *f = b->f;
  const flow_link *l = &f->link;
  int32_t at = j * f->n_classes + c;
  int64_t room = f->open[flow_slot_before (f, j) * f->n_classes + c] + f->released[at] +
                 f->seams.before_due[j];
  int64_t out = f->class[c].out, in = f->class[c].in;
  if (room <= 0 || !flow_swaps (f))
    return;
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
  flow_put (b, flow_row (f, ROW_host_first, j, c), COEF_ONE);
  flow_put (b, f->row[ROW_stall_out][j], out);
  flow_put (b, f->row[ROW_stall_in][j], times (l->out_in_in, out));
  flow_end_column (b, COLUMN_stall_out, at, 0, room, 0);
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_host_first, j, c), -COEF_ONE);
  flow_put (b, flow_row (f, ROW_early_first, j, c), COEF_ONE);
  flow_put (b, f->row[ROW_stall_out][j], times (l->in_in_out, in));
  flow_put (b, f->row[ROW_stall_in][j], in);
  flow_end_column (b, COLUMN_stall_in, at, 0, room, 0);
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
  flow_put (b, flow_row (f, ROW_host, j, c), COEF_ONE);
  flow_put (b, f->row[ROW_work_out][j], out);
  flow_put (b, f->row[ROW_work_in][j], times (l->out_in_in, out));
  flow_end_column (b, COLUMN_work_out, at, 0,
                   flow_most (f->work_out[j] + f->seams.before_out[j], out, room), 0);
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_host, j, c), -COEF_ONE);
  flow_put (b, flow_row (f, ROW_early, j, c), COEF_ONE);
  flow_put (b, f->row[ROW_work_out][j], times (l->in_in_out, in));
  flow_put (b, f->row[ROW_work_in][j], in);
  flow_end_column (b, COLUMN_work_in, at, 0,
                   flow_most (f->work_in[j] + f->seams.before_in[j], in, room), 0);
  if (!f->host_limited)
    return;
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_pending, j, c), COEF_ONE);
  flow_put (b, flow_row (f, ROW_early, j, c), -COEF_ONE);
  flow_end_column (b, COLUMN_again, at, 0, room, 0);
}

static void stall (flow_builder *b, int32_t j) {
  flow *f = b->f;
  int64_t room = flow_work_room (f, j);
  for (int c = 0; c < f->n_classes && flow_swaps (f); c++)
    room += f->open[flow_slot_before (f, j) * f->n_classes + c] + f->released[j * f->n_classes + c];
  int32_t cuts = flow_cuts_row (f, j);
  if (room <= 0 && cuts < 0)
    return;
  flow_begin_column (b);
  flow_put (b, cuts, COEF_ONE);
  flow_put (b, f->row[ROW_stall_out][j], -COEF_ONE);
  flow_put (b, f->row[ROW_stall_in][j], -flow_coef (f->link.ratio));
  flow_put (b, f->row[ROW_remake][j], -COEF_ONE);
  /* no stall of a best plan is longer; the proof does not lean on it */
  flow_end_column (b, COLUMN_stall, j, 0, (int64_t)1 << (GRAIN_BITS + 8), COEF_ONE);
}

/* Ops run again, anywhere between the drop and the next use. */
static void work (flow_builder *b, int32_t j) {
  flow *f = b->f;
  int64_t room = flow_work_room (f, j), open = f->work_open[j] + f->seams.before_work_due[j + 1];
  if (room <= 0)
    return;
  flow_begin_column (b);
  flow_put (b, f->row[ROW_ready][j], -COEF_ONE);
  flow_put (b, f->row[ROW_made][j], COEF_ONE);
  flow_put (b, f->row[ROW_remake][j], COEF_ONE);
  flow_put (b, flow_cuts_row (f, j), -COEF_ONE);
  flow_end_column (b, COLUMN_remake, j, 0, room, 0);
  if (open <= 0)
    return;
  flow_begin_column (b);
  flow_put (b, f->row[ROW_ready][j], -COEF_ONE);
  flow_put (b, f->row[ROW_ready][j + 1], COEF_ONE);
  flow_end_column (b, COLUMN_ready, j, 0, open, 0);
  flow_begin_column (b);
  flow_put (b, f->row[ROW_made][j], -COEF_ONE);
  flow_put (b, f->row[ROW_made][j + 1], COEF_ONE);
  flow_end_column (b, COLUMN_made, j, 0, open, 0);
}

/* ---- a gap's ---- */

/* The time of an op that several tensors may need. */
static void run_column (flow_builder *b, int32_t i) {
  flow *f = b->f;
  const flow_run *r = &f->runs[i];
  if (r->tensors < 2)
    return;
  flow_begin_column (b);
  flow_put (b, f->row[ROW_ready][r->release], COEF_ONE);
  flow_put (b, f->row[ROW_made][r->due], -COEF_ONE);
  for (int32_t k = 0; k < r->tensors; k++)
    flow_put (b, f->row[ROW_share][r->share + k], COEF_ONE);
  flow_end_column (b, COLUMN_run, i, 0, r->time * r->most, 0);
}

/* Entries of a gap that leaves, behind its own entry at the release. */
static void put_return (flow_builder *b, const flow_gap *g, int c) {
  flow *f = b->f;
  flow_put (b, flow_row (f, g->first ? ROW_early_first : ROW_early, g->due, c), -COEF_ONE);
  if (g->wraps)
    flow_put (b, f->row[ROW_cycle][c], -COEF_ONE);
}

/* The price of a grain that leaves in this gap: eps, and the shorter the rest the more, up to a
   quarter.  Of many answers that cost the same, that one is taken in which whole tensors leave for
   long: few copies, and what stays can be packed. */
static int64_t price (const flow_builder *b, const flow_gap *g) {
  int64_t eps = COEF_ONE * b->o->eps_ppm / 1000000, all = b->passed[b->f->n_slots];
  int64_t rest = b->passed[g->due] - b->passed[g->release] + (g->wraps ? all : 0);
  return all > 0 ? eps + (int64_t)((__int128)eps * (all - rest) / all / 4) : eps;
}

static void gap_out_column (flow_builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_pending, g->release, c->class), COEF_ONE);
  put_return (b, g, c->class);
  flow_put (b, f->row[ROW_whole][link], COEF_ONE);
  flow_put (b, f->row[ROW_valid][link], -COEF_ONE);
  if (i == 0 && c->count > 1 &&
      !c->circle) { /* bytes that went out lie on the host: no column for that */
    flow_put (b, f->row[ROW_clean][link + 1], -COEF_ONE);
    flow_put (b, f->row[ROW_valid][link + 1], -COEF_ONE);
  }
  flow_end_column (b, COLUMN_gap_out, link, 0, c->room, price (b, g));
}

static void gap_clean_column (flow_builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_host_first, g->release, c->class), COEF_ONE);
  put_return (b, g, c->class);
  flow_put (b, f->row[ROW_whole][link], COEF_ONE);
  flow_put (b, f->row[ROW_clean][link], COEF_ONE);
  if (g->begins)
    flow_put (b, f->row[ROW_host_limit][flow_slot_before (f, g->release)], f->class[c->class].host);
  flow_end_column (b, COLUMN_gap_clean, link, 0, c->room, price (b, g));
}

/* Given up: as if on the host, but there is nothing to carry. A tensor made again may go out in the
   same gap: a later one may be served by that copy, so there it may be both given up and carried.
 */
static void gap_drop_column (flow_builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  flow_begin_column (b);
  flow_put (b, flow_row (f, ROW_host_first, g->release, c->class), COEF_ONE);
  flow_put (b, flow_row (f, g->first ? ROW_host_first : ROW_host, g->due, c->class), -COEF_ONE);
  if (!flow_serves (c, i))
    flow_put (b, f->row[ROW_whole][link], COEF_ONE);
  flow_put (b, f->row[ROW_ready][g->ready], g->rate);
  flow_put (b, f->row[ROW_made][g->due], -g->rate);
  for (int32_t k = 0; k < g->n_runs; k++)
    flow_put (b, f->row[ROW_share][f->needs[g->runs + k].row], -f->needs[g->runs + k].rate);
  flow_end_column (b, COLUMN_gap_drop, link, 0, c->room, price (b, g));
}

static void chain_columns (flow_builder *b, flow_chain *c) {
  flow *f = b->f;
  c->column = f->n_columns;
  for (int32_t i = 0; i < c->count; i++) {
    int32_t link = c->link + i;
    if (flow_swaps (f) &&
        (!c->circle || f->host_limited)) /* a copy that need not be kept between moves */
      gap_out_column (b, c, i);
    if (flow_swaps (f) && (i > 0 || c->circle))
      gap_clean_column (b, c, i);
    if (f->gaps[c->first + i].drops)
      gap_drop_column (b, c, i);
    if (f->row[ROW_valid][link] < 0)
      continue;
    flow_begin_column (b);
    flow_put (b, f->row[ROW_valid][link], COEF_ONE);
    flow_put (b, f->row[ROW_clean][link + 1], -COEF_ONE);
    flow_put (b, f->row[ROW_valid][link + 1], -COEF_ONE);
    flow_end_column (b, COLUMN_gap_valid, link, 0, c->room, 0);
  }
}

/* ---- the whole ---- */

static bool column_room (flow_builder *b, arena *a, error *err) {
  flow *f = b->f;
  int64_t cells = (int64_t)f->n_slots * f->n_classes, in_chains = f->n_links;
  int64_t in_slots = f->n_slots, in_seams = f->seams.n_half;
  b->column_room = cells * 10 + in_slots * 10 + f->n_runs + in_chains * 4 + in_seams;
  b->entry_room = cells * 40 + in_slots * 50 + in_chains * 20 + (int64_t)f->n_runs * 2 +
                  f->n_shares + in_seams * 6;
  for (int32_t i = 0; i < f->n_gaps; i++) /* chains of two pieces name a gap's needs twice */
    b->entry_room += 2 * f->gaps[i].n_runs;
  if (b->column_room > INT32_MAX / 4)
    return error_set (err, ERR_limit, "the flow program of %d slots is too large", f->n_slots);
  f->column_kind = NEW (a, b->column_room, uint8_t, err);
  f->column_at = NEW (a, b->column_room, int32_t, err);
  f->low = NEW (a, b->column_room, int64_t, err);
  f->high = NEW (a, b->column_room, int64_t, err);
  f->cost = NEW (a, b->column_room, int64_t, err);
  f->column_start = NEW (a, b->column_room + 1, int64_t, err);
  f->entry_row = NEW (a, b->entry_room, int32_t, err);
  f->entry_coef = NEW (a, b->entry_room, int64_t, err);
  return f->column_kind && f->column_at && f->low && f->high && f->cost && f->column_start &&
         f->entry_row && f->entry_coef;
}

static bool time_passed (flow_builder *b, arena *a, error *err) {
  const flow *f = b->f;
  b->passed = NEW (a, (int64_t)f->n_slots + 1, int64_t, err);
  for (int32_t j = 0; b->passed && j < f->n_slots; j++)
    b->passed[j + 1] = b->passed[j] + f->idle_out[j] + f->work_out[j];
  return b->passed;
}

bool flow_add_columns (flow_builder *b, arena *a, error *err) {
  assert (b && a);
  flow *f = b->f;
  if (!time_passed (b, a, err) || !column_room (b, a, err))
    return false;
  for (int32_t j = 0; j < f->n_slots; j++) {
    for (int c = 0; c < f->n_classes; c++) {
      levels (b, j, c);
      flows (b, j, c);
    }
    stall (b, j);
    work (b, j);
  }
  flow_add_seam_columns (b);
  for (int32_t i = 0; i < f->n_runs; i++)
    run_column (b, i);
  for (int32_t i = 0; i < f->n_chains; i++)
    chain_columns (b, &f->chains[i]);
  return true;
}
