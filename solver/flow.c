#include "solver/flow.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"

static const bool row_per_class[ROW_KINDS] = {
#define FLOW_ROW(name, letter, per_class) per_class,
#define FLOW_COLUMN(name, letter)
#include "solver/flow.def"
#undef FLOW_ROW
#undef FLOW_COLUMN
};

typedef struct builder {
  flow *f;
  const flow_options *o;
  int64_t row_room, column_room, entry_room;
  int64_t column_first; /* entry where the open column began */
  int64_t *passed;      /* n_slots + 1: time in grains before each slot if nothing stalls */
} builder;

static int32_t before (const flow *f, int32_t slot) {
  return slot ? slot - 1 : f->n_slots - 1;
}

/* ---- sums per slot ---- */

/* twice: it may be away as given up and as carried. */
static void add_open (flow *f, const flow_gap *g, int class, int64_t room, bool twice) {
  int32_t C = f->n_classes, S = f->n_slots;
  f->released[g->release * C + class] += room;
  if (g->first)
    f->due_first[g->due * C + class] += room;
  /* differences; wraps: open from the release on and up to the return */
  f->open[g->release * C + class] += twice ? 2 * room : room;
  f->open[g->due * C + class] -= twice ? 2 * room : room;
  if (g->wraps)
    f->open[class] += room;
  assert (g->release < S && g->due < S);
}

static bool slot_sums (flow *f, arena *a, error *err) {
  int32_t C = f->n_classes, S = f->n_slots;
  int64_t cells = (int64_t)S * C;
  const gaps *g = f->source;
  const op *ops = g->units->trace->ops;
  f->open = NEW (a, cells, int64_t, err);
  f->released = NEW (a, cells, int64_t, err);
  f->due_first = NEW (a, cells, int64_t, err);
  f->need = NEW (a, S, int64_t, err);
  f->idle_out = NEW (a, S, int64_t, err);
  f->idle_in = NEW (a, S, int64_t, err);
  f->work_out = NEW (a, S, int64_t, err);
  f->work_in = NEW (a, S, int64_t, err);
  if (!f->open || !f->released || !f->due_first || !f->need || !f->idle_out || !f->idle_in ||
      !f->work_out || !f->work_in)
    return false;
  for (int32_t i = 0; i < f->n_chains; i++)
    for (int32_t k = 0; k < f->chains[i].count; k++) {
      const flow_gap *at = &f->gaps[f->chains[i].first + k];
      bool twice = f->drops == DROPS_ALLOWED && at->drops && flow_serves (&f->chains[i], k);
      if (f->drops != DROPS_ONLY || at->drops)
        add_open (f, at, f->chains[i].class, f->chains[i].room, twice);
    }
  for (int64_t i = C; i < cells; i++)
    f->open[i] += f->open[i - C];
  for (int32_t j = 0; j < S; j++) {
    int32_t first = f->slots->first[j];
    int64_t idle_ns = ops[first].gap_ns, work_ns = ops[first].ns;
    for (int32_t k = first + 1; k < f->slots->first[j + 1]; k++)
      work_ns += ops[k].ns + ops[k].gap_ns;
    f->idle_out[j] = flow_time (&f->link, idle_ns, f->link.rates.out_alone);
    f->idle_in[j] = flow_time (&f->link, idle_ns, f->link.rates.in_alone);
    f->work_out[j] = flow_time (&f->link, work_ns, f->link.rates.out_alone);
    f->work_in[j] = flow_time (&f->link, work_ns, f->link.rates.in_alone);
    f->need[j] = flow_need_of (f, j, g->room_bytes);
  }
  return true;
}

int64_t flow_need_of (const flow *f, int32_t slot, int64_t room_bytes) {
  const gaps *g = f->source;
  int64_t over = g->base_bytes[f->slots->first[slot]] - g->unused_bytes - room_bytes;
  int64_t need = over - (f->drops ? f->free_bytes[slot] : 0);
  return slots_is_run (f->slots, slot) || need <= 0 ? 0 : flow_grains_down (&f->link, need);
}

/* Memory alone decides: whatever the link, no more can be away than is open. */
static bool needs_are_met (const flow *f, error *err) {
  const gaps *g = f->source;
  for (int32_t j = 0; j < f->n_slots; j++) {
    int64_t open = 0;
    for (int c = 0; c < f->n_classes; c++)
      open += f->open[(int64_t)j * f->n_classes + c];
    if (f->need[j] > open)
      return gaps_too_small (g, g->room_bytes + g->pool_bytes, err);
  }
  return true;
}

/* ---- rows ---- */

static void add_row (builder *b, flow_row_kind kind, int32_t at, int sense, int64_t limit) {
  flow *f = b->f;
  assert (f->n_rows < b->row_room);
  int32_t r = f->n_rows++;
  f->row[kind][at] = r;
  f->row_kind[r] = (uint8_t)kind;
  f->row_at[r] = at;
  f->row_sense[r] = (int8_t)sense;
  f->row_limit[r] = limit;
}

static bool swaps (const flow *f) {
  return f->drops != DROPS_ONLY;
}

/* What may be done again in slot j, for whatever was dropped. */
static int64_t work_room (const flow *f, int32_t j) {
  return f->work_released[j] + (j ? f->work_open[j - 1] : 0);
}

static bool is_exact (const flow *f, int32_t slot) {
  return f->need[slot] > 0;
}

static void slot_rows (builder *b, int32_t j) {
  flow *f = b->f;
  const flow_link *l = &f->link;
  bool many = f->n_classes > 1;
  for (int c = 0; c < f->n_classes; c++) {
    int32_t at = j * f->n_classes + c;
    if (swaps (f))
      add_row (b, ROW_pending, at, 0, 0);
    if (is_exact (f, j))
      add_row (b, ROW_host_first, at, 0, 0);
    add_row (b, ROW_host, at, 0, 0);
    if (swaps (f) && f->due_first[at] > 0)
      add_row (b, ROW_early_first, at, 0, 0);
    if (swaps (f))
      add_row (b, ROW_early, at, 0, 0);
  }
  if (swaps (f)) {
    add_row (b, ROW_stall_out, j, -1, f->idle_out[j]);
    if (!l->one_row)
      add_row (b, ROW_stall_in, j, -1, f->idle_in[j]);
    if (many || l->shared)
      add_row (b, ROW_work_out, j, -1, f->work_out[j]);
    if ((many || l->shared) && !l->one_row)
      add_row (b, ROW_work_in, j, -1, f->work_in[j]);
  }
  if (work_room (f, j) > 0) {
    add_row (b, ROW_ready, j, 0, 0);
    add_row (b, ROW_made, j, 0, 0);
    add_row (b, ROW_remake, j, -1, 0);
  }
  if (many && f->need[j] > 0) {
    add_row (b, ROW_need_first, j, 1, f->need[j]);
    add_row (b, ROW_need, j, 1, f->need[j]);
  }
  if (f->host_limited)
    add_row (b, ROW_host_limit, j, -1, f->host_grains);
}

static void chain_rows (builder *b, const flow_chain *c) {
  for (int32_t i = 0; c->circle && b->f->host_limited && i < c->count; i++)
    add_row (b, ROW_whole, c->link + i, -1, c->room);
  if (!swaps (b->f))
    return;
  if (!c->circle && b->f->gaps[c->first].drops && !flow_serves (c, 0))
    add_row (b, ROW_whole, c->link, -1, c->room);
  for (int32_t i = 1; !c->circle && i < c->count; i++) {
    add_row (b, ROW_clean, c->link + i, -1, 0);
    add_row (b, ROW_whole, c->link + i, -1, c->room);
    if (i + 1 < c->count)
      add_row (b, ROW_valid, c->link + i, -1, 0);
  }
}

int32_t flow_row (const flow *f, flow_row_kind kind, int32_t slot, int32_t class) {
  int32_t at = row_per_class[kind] ? slot * f->n_classes + class : slot;
  int32_t r = f->row[kind][at];
  if (r < 0 && kind == ROW_host_first)
    return f->row[ROW_host][at];
  if (r < 0 && kind == ROW_early_first)
    return f->row[ROW_early][at];
  return r;
}

/* ---- columns ---- */

static void begin (builder *b) {
  b->column_first = b->f->n_entries;
}

/* Entries of one column in one row add up (a program of one slot meets itself). */
static void put (builder *b, int32_t row, int64_t coef) {
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

static int32_t end (builder *b, flow_column_kind kind, int32_t at, int64_t low, int64_t high,
                    int64_t cost) {
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
  return (int64_t)(((__int128)x * y) >> COEF_BITS);
}

static void levels (builder *b, int32_t j, int c) {
  flow *f = b->f;
  int32_t at = j * f->n_classes + c, next = j + 1 == f->n_slots ? 0 : j + 1;
  bool last = j + 1 == f->n_slots, many = f->n_classes > 1;
  int32_t cycle = last ? f->row[ROW_cycle][c] : -1;
  int64_t open = f->open[at], room = f->open[before (f, j) * f->n_classes + c] + f->released[at];
  int64_t need = many ? 0 : f->need[j];
  if (open > 0 && swaps (f)) {
    begin (b);
    put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
    put (b, flow_row (f, ROW_pending, next, c), COEF_ONE);
    put (b, cycle, COEF_ONE);
    end (b, COLUMN_pending, at, 0, open, 0);
  }
  if (open > 0) {
    begin (b);
    put (b, flow_row (f, ROW_host, j, c), -COEF_ONE);
    put (b, flow_row (f, ROW_host_first, next, c), COEF_ONE);
    put (b, cycle, COEF_ONE);
    put (b, f->row[ROW_need][j], COEF_ONE);
    put (b, f->row[ROW_host_limit][j], f->class[c].host);
    end (b, COLUMN_host, at, need, open, 0);
  }
  if (open > 0 && swaps (f)) {
    begin (b);
    put (b, flow_row (f, ROW_early, j, c), -COEF_ONE);
    put (b, flow_row (f, ROW_early_first, next, c), COEF_ONE);
    put (b, cycle, COEF_ONE);
    end (b, COLUMN_early, at, 0, open, 0);
  }
  if (open > 0 && f->row[ROW_host_first][at] >= 0) {
    begin (b);
    put (b, flow_row (f, ROW_host_first, j, c), -COEF_ONE);
    put (b, flow_row (f, ROW_host, j, c), COEF_ONE);
    put (b, f->row[ROW_need_first][j], COEF_ONE);
    end (b, COLUMN_host_first, at, need, open, 0);
  }
  if (swaps (f) && room > f->due_first[at] && f->row[ROW_early_first][at] >= 0) {
    begin (b);
    put (b, flow_row (f, ROW_early_first, j, c), -COEF_ONE);
    put (b, flow_row (f, ROW_early, j, c), COEF_ONE);
    end (b, COLUMN_early_first, at, 0, room - f->due_first[at], 0);
  }
}

static void flows (builder *b, int32_t j, int c) {
  flow *f = b->f;
  const flow_link *l = &f->link;
  int32_t at = j * f->n_classes + c;
  int64_t room = f->open[before (f, j) * f->n_classes + c] + f->released[at];
  int64_t out = f->class[c].out, in = f->class[c].in;
  if (room <= 0 || !swaps (f))
    return;
  begin (b);
  put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
  put (b, flow_row (f, ROW_host_first, j, c), COEF_ONE);
  put (b, f->row[ROW_stall_out][j], out);
  put (b, f->row[ROW_stall_in][j], times (l->out_in_in, out));
  end (b, COLUMN_stall_out, at, 0, room, 0);
  begin (b);
  put (b, flow_row (f, ROW_host_first, j, c), -COEF_ONE);
  put (b, flow_row (f, ROW_early_first, j, c), COEF_ONE);
  put (b, f->row[ROW_stall_out][j], times (l->in_in_out, in));
  put (b, f->row[ROW_stall_in][j], in);
  end (b, COLUMN_stall_in, at, 0, room, 0);
  begin (b);
  put (b, flow_row (f, ROW_pending, j, c), -COEF_ONE);
  put (b, flow_row (f, ROW_host, j, c), COEF_ONE);
  put (b, f->row[ROW_work_out][j], out);
  put (b, f->row[ROW_work_in][j], times (l->out_in_in, out));
  end (b, COLUMN_work_out, at, 0, flow_most (f->work_out[j], out, room), 0);
  begin (b);
  put (b, flow_row (f, ROW_host, j, c), -COEF_ONE);
  put (b, flow_row (f, ROW_early, j, c), COEF_ONE);
  put (b, f->row[ROW_work_out][j], times (l->in_in_out, in));
  put (b, f->row[ROW_work_in][j], in);
  end (b, COLUMN_work_in, at, 0, flow_most (f->work_in[j], in, room), 0);
  if (!f->host_limited)
    return;
  begin (b);
  put (b, flow_row (f, ROW_pending, j, c), COEF_ONE);
  put (b, flow_row (f, ROW_early, j, c), -COEF_ONE);
  end (b, COLUMN_again, at, 0, room, 0);
}

static void stall (builder *b, int32_t j) {
  flow *f = b->f;
  int64_t room = work_room (f, j);
  for (int c = 0; c < f->n_classes && swaps (f); c++)
    room += f->open[before (f, j) * f->n_classes + c] + f->released[j * f->n_classes + c];
  if (room <= 0)
    return;
  begin (b);
  put (b, f->row[ROW_stall_out][j], -COEF_ONE);
  put (b, f->row[ROW_stall_in][j], -f->link.ratio);
  put (b, f->row[ROW_remake][j], -COEF_ONE);
  /* no stall of a best plan is longer; the proof does not lean on it */
  end (b, COLUMN_stall, j, 0, (int64_t)1 << (GRAIN_BITS + 8), COEF_ONE);
}

/* Ops run again, anywhere between the drop and the next use. */
static void work (builder *b, int32_t j) {
  flow *f = b->f;
  int64_t room = work_room (f, j), open = f->work_open[j];
  if (room <= 0)
    return;
  begin (b);
  put (b, f->row[ROW_ready][j], -COEF_ONE);
  put (b, f->row[ROW_made][j], COEF_ONE);
  put (b, f->row[ROW_remake][j], COEF_ONE);
  end (b, COLUMN_remake, j, 0, room, 0);
  if (open <= 0)
    return;
  begin (b);
  put (b, f->row[ROW_ready][j], -COEF_ONE);
  put (b, f->row[ROW_ready][j + 1], COEF_ONE);
  end (b, COLUMN_ready, j, 0, open, 0);
  begin (b);
  put (b, f->row[ROW_made][j], -COEF_ONE);
  put (b, f->row[ROW_made][j + 1], COEF_ONE);
  end (b, COLUMN_made, j, 0, open, 0);
}

/* The time of an op that several tensors may need. */
static void run_column (builder *b, int32_t i) {
  flow *f = b->f;
  const flow_run *r = &f->runs[i];
  if (r->tensors < 2)
    return;
  begin (b);
  put (b, f->row[ROW_ready][r->release], COEF_ONE);
  put (b, f->row[ROW_made][r->due], -COEF_ONE);
  for (int32_t k = 0; k < r->tensors; k++)
    put (b, f->row[ROW_share][r->share + k], COEF_ONE);
  end (b, COLUMN_run, i, 0, r->time * r->most, 0);
}

/* What a gap does when it leaves, behind its own entry at the release. */
static void put_return (builder *b, const flow_gap *g, int c) {
  flow *f = b->f;
  put (b, flow_row (f, g->first ? ROW_early_first : ROW_early, g->due, c), -COEF_ONE);
  if (g->wraps)
    put (b, f->row[ROW_cycle][c], -COEF_ONE);
}

/* Of a grain that leaves in this gap: eps, and the shorter the rest the more, up to a quarter.  Of
   many answers that cost the same, that one is taken in which whole tensors leave for long: few
   copies, and what stays can be packed. */
static int64_t price (const builder *b, const flow_gap *g) {
  int64_t eps = COEF_ONE * b->o->eps_ppm / 1000000, all = b->passed[b->f->n_slots];
  int64_t rest = b->passed[g->due] - b->passed[g->release] + (g->wraps ? all : 0);
  return all > 0 ? eps + (int64_t)((__int128)eps * (all - rest) / all / 4) : eps;
}

static void gap_out_column (builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  begin (b);
  put (b, flow_row (f, ROW_pending, g->release, c->class), COEF_ONE);
  put_return (b, g, c->class);
  put (b, f->row[ROW_whole][link], COEF_ONE);
  put (b, f->row[ROW_valid][link], -COEF_ONE);
  if (i == 0 && c->count > 1 &&
      !c->circle) { /* what went out is what the host holds: no column for that */
    put (b, f->row[ROW_clean][link + 1], -COEF_ONE);
    put (b, f->row[ROW_valid][link + 1], -COEF_ONE);
  }
  end (b, COLUMN_gap_out, link, 0, c->room, price (b, g));
}

static void gap_clean_column (builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  begin (b);
  put (b, flow_row (f, ROW_host_first, g->release, c->class), COEF_ONE);
  put_return (b, g, c->class);
  put (b, f->row[ROW_whole][link], COEF_ONE);
  put (b, f->row[ROW_clean][link], COEF_ONE);
  if (g->begins)
    put (b, f->row[ROW_host_limit][before (f, g->release)], f->class[c->class].host);
  end (b, COLUMN_gap_clean, link, 0, c->room, price (b, g));
}

/* Given up: as if on the host, but there is nothing to carry. A tensor made again may go out in the
   same gap: a later one may be served by that copy, so there it may be both given up and carried.
 */
static void gap_drop_column (builder *b, const flow_chain *c, int32_t i) {
  flow *f = b->f;
  int32_t link = c->link + i;
  const flow_gap *g = &f->gaps[c->first + i];
  begin (b);
  put (b, flow_row (f, ROW_host_first, g->release, c->class), COEF_ONE);
  put (b, flow_row (f, g->first ? ROW_host_first : ROW_host, g->due, c->class), -COEF_ONE);
  if (!flow_serves (c, i))
    put (b, f->row[ROW_whole][link], COEF_ONE);
  put (b, f->row[ROW_ready][g->ready], g->rate);
  put (b, f->row[ROW_made][g->due], -g->rate);
  for (int32_t k = 0; k < g->n_runs; k++)
    put (b, f->row[ROW_share][f->needs[g->runs + k].row], -f->needs[g->runs + k].rate);
  end (b, COLUMN_gap_drop, link, 0, c->room, price (b, g));
}

static void chain_columns (builder *b, flow_chain *c) {
  flow *f = b->f;
  c->column = f->n_columns;
  for (int32_t i = 0; i < c->count; i++) {
    int32_t link = c->link + i;
    if (swaps (f) &&
        (!c->circle || f->host_limited)) /* a copy that need not be kept between moves */
      gap_out_column (b, c, i);
    if (swaps (f) && (i > 0 || c->circle))
      gap_clean_column (b, c, i);
    if (f->gaps[c->first + i].drops)
      gap_drop_column (b, c, i);
    if (f->row[ROW_valid][link] < 0)
      continue;
    begin (b);
    put (b, f->row[ROW_valid][link], COEF_ONE);
    put (b, f->row[ROW_clean][link + 1], -COEF_ONE);
    put (b, f->row[ROW_valid][link + 1], -COEF_ONE);
    end (b, COLUMN_gap_valid, link, 0, c->room, 0);
  }
}

/* ---- the whole ---- */

int64_t flow_most (int64_t time, int64_t weight, int64_t room) {
  if (weight <= 0)
    return room;
  __int128 most = ((((__int128)time << COEF_BITS) + weight - 1) / weight);
  return most < room ? (int64_t)most : room;
}

static bool time_passed (builder *b, arena *a, error *err) {
  const flow *f = b->f;
  b->passed = NEW (a, (int64_t)f->n_slots + 1, int64_t, err);
  for (int32_t j = 0; b->passed && j < f->n_slots; j++)
    b->passed[j + 1] = b->passed[j] + f->idle_out[j] + f->work_out[j];
  return b->passed;
}

static bool make_room (builder *b, arena *a, error *err) {
  flow *f = b->f;
  int64_t cells = (int64_t)f->n_slots * f->n_classes;
  for (int32_t i = 0; i < f->n_chains; i++) {
    f->chains[i].link = f->n_links;
    f->n_links += f->chains[i].count;
  }
  int64_t in_chains = f->n_links;
  b->row_room = cells * 5 + (int64_t)f->n_slots * 10 + f->n_classes + in_chains * 3 + f->n_shares;
  b->column_room = cells * 10 + (int64_t)f->n_slots * 4 + f->n_runs + in_chains * 4;
  b->entry_room =
      cells * 40 + (int64_t)f->n_slots * 10 + in_chains * 20 + (int64_t)f->n_runs * 2 + f->n_shares;
  for (int32_t i = 0; i < f->n_gaps; i++) /* chains of two pieces name a gap's needs twice */
    b->entry_room += 2 * f->gaps[i].n_runs;
  if (b->row_room > INT32_MAX / 4 || b->column_room > INT32_MAX / 4)
    return error_set (err, ERR_limit, "the flow program of %d slots is too large", f->n_slots);
  for (int k = 0; k < ROW_KINDS; k++) {
    int64_t n = k == ROW_share     ? f->n_shares + 1
                : k >= ROW_clean   ? in_chains + 1
                : k == ROW_cycle   ? f->n_classes
                : row_per_class[k] ? cells
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
  f->column_kind = NEW (a, b->column_room, uint8_t, err);
  f->column_at = NEW (a, b->column_room, int32_t, err);
  f->low = NEW (a, b->column_room, int64_t, err);
  f->high = NEW (a, b->column_room, int64_t, err);
  f->cost = NEW (a, b->column_room, int64_t, err);
  f->column_start = NEW (a, b->column_room + 1, int64_t, err);
  f->entry_row = NEW (a, b->entry_room, int32_t, err);
  f->entry_coef = NEW (a, b->entry_room, int64_t, err);
  return f->row_kind && f->row_at && f->row_sense && f->row_limit && f->column_kind &&
         f->column_at && f->low && f->high && f->cost && f->column_start && f->entry_row &&
         f->entry_coef;
}

/* Rows that no column entered say 0 = 0 and would only trouble the solver. */
static bool drop_empty_rows (flow *f, arena *a, error *err) {
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

bool flow_build (const gaps *g, const slots *s, const flow_options *o, arena *a, flow *out,
                 error *err) {
  const trace *t = g->units->trace;
  int64_t largest = 0;
  *out = (flow){ .source = g, .slots = s, .n_slots = s->count };
  for (int32_t k = 0; k < g->n_ops; k++)
    if (g->movable_bytes[k] > largest)
      largest = g->movable_bytes[k];
  out->link = flow_link_of (o->dev, largest, trace_total_ns (t));
  out->drops = o->drops;
  out->peak_slot = o->peak ? s->of_op[o->peak] : -1;
  if (o->peak && slots_is_run (s, out->peak_slot))
    out->peak_slot = -1;
  out->host_limited = !o->drops && o->host_bytes < largest;
  out->host_grains = flow_grains_up (&out->link, o->host_bytes);
  if (!flow_chains (g, o, a, out, err) || !slot_sums (out, a, err) || !needs_are_met (out, err))
    return false;
  builder b = { .f = out, .o = o };
  if (!time_passed (&b, a, err) || !make_room (&b, a, err))
    return false;
  for (int32_t j = 0; j < s->count; j++)
    slot_rows (&b, j);
  for (int c = 0; c < out->n_classes; c++)
    add_row (&b, ROW_cycle, c, 0, 0);
  for (int32_t i = 0; i < out->n_chains; i++)
    chain_rows (&b, &out->chains[i]);
  for (int32_t i = 0; i < out->n_shares; i++)
    add_row (&b, ROW_share, i, 1, 0);
  for (int32_t j = 0; j < s->count; j++) {
    for (int c = 0; c < out->n_classes; c++) {
      levels (&b, j, c);
      flows (&b, j, c);
    }
    stall (&b, j);
    work (&b, j);
  }
  for (int32_t i = 0; i < out->n_runs; i++)
    run_column (&b, i);
  for (int32_t i = 0; i < out->n_chains; i++)
    chain_columns (&b, &out->chains[i]);
  return drop_empty_rows (out, a, err);
}
