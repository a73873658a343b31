/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/prove/drops.h"

#include <assert.h>

#define ONE ((int64_t)1 << PROOF_COEF_BITS)
#define DEAREST (256 * ONE) /* grains of work a grain of memory: trace/prove/evaluation.md */
enum { MOST_CHARGED = 4 };  /* ops that one drop is charged with */

bool again_begin (again *g, link_rates rates, arena *a, error *err) {
  const trace *t = g->t;
  const proof *p = g->p;
  if (!ALLOC (a, g->ops, 2 * (int64_t)t->n_ops, err) || !ALLOC (a, g->free_bytes, p->slots, err) ||
      !ALLOC (a, g->open, p->slots, err) || !ALLOC (a, g->released, p->slots, err) ||
      !ALLOC (a, g->due, p->slots, err) ||
      !ALLOC (a, g->list, (int64_t)t->n_ops + MOST_CHARGED, err))
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    /* a part that runs again, if it is not the first, has no idle time before it */
    int64_t gap_ns = g->loose && g->loose[k] ? 0 : t->ops[k].gap_ns;
    __int128 x = ((__int128)t->ops[k].ns + gap_ns) * rates.out_alone;
    __int128 unit = 1000000000;
    if (p->shift < 0)
      unit <<= -p->shift;
    else
      x <<= p->shift;
    x /= unit;
    /* runs that take less time than they do prove less */
    g->ops[2 * k].grains = x > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)x;
    g->ops[2 * k + 1].grains = g->ops[2 * k].grains;
  }
  return true;
}

/* The use before `at` (at itself included) whose op writes x; -1: none. */
static int32_t write_at (const again *g, int32_t x, int32_t at) {
  const use *uses = g->u->uses + g->u->use_offset[x];
  while (at >= 0 && !list_has (&g->t->ops[uses[at].op].writes, x))
    at--;
  return at;
}

/* Walks down from the last write to one that does not update in place. */
bool again_can (const again *g, int32_t x, int32_t at) {
  assert (x >= 0 && at >= 0);
  const use *uses = g->u->uses + g->u->use_offset[x];
  const tensor *y = x < g->t->n_tensors ? &g->t->tensors[x] : NULL;
  if (!y || y->persistent || y->pinned)
    return false;
  int32_t w = write_at (g, x, at);
  if (w >= 0 && g->p->again && !g->p->again[uses[w].op])
    return false;
  for (; w >= 0; w = write_at (g, x, w - 1)) {
    const op *o = &g->t->ops[uses[w].op];
    if (list_has (&o->side, x))
      return false;
    if (!list_has (&o->reads, x))
      return true;
  }
  return false;
}

static bool is_listed (const again *g, int32_t op) {
  for (int32_t i = 0; i < g->listed; i++)
    if (g->list[i] == op)
      return true;
  return false;
}

/* The last use of y before op k that writes it and stands at or before `at`; -1: none. */
static int32_t write_before (const again *g, int32_t y, int32_t k, int32_t at) {
  const use *uses = g->u->uses + g->u->use_offset[y];
  do
    at = write_at (g, y, at);
  while (at >= 0 && uses[at].op >= k && at-- > 0);
  return at;
}

/* y, which op k reads, is of no use behind op `after`: a copy of k there needs it recomputed. */
static void list_dead (again *g, int32_t y, int32_t k, int32_t after) {
  const tensor *t = &g->t->tensors[y];
  const use *uses = g->u->uses + g->u->use_offset[y];
  int32_t last = g->u->use_offset[y + 1] - g->u->use_offset[y] - 1, w, from;
  if (t->persistent || t->pinned || uses[last].op > after)
    return;
  from = w = write_before (g, y, k, last);
  while (w >= 0 && !list_has (&g->t->ops[uses[w].op].side, y) &&
         list_has (&g->t->ops[uses[w].op].reads, y))
    w = write_at (g, y, w - 1);
  if (w < 0 || list_has (&g->t->ops[uses[w].op].side, y))
    return;
  for (int32_t i = from; i >= w; i = i > w ? write_at (g, y, i - 1) : -1)
    if (!is_listed (g, uses[i].op) && g->listed < MOST_CHARGED)
      g->list[g->listed++] = uses[i].op;
}

/* Every op that a drop of x behind its use `at` is charged with; what is not over the peak and made
   behind it is charged with no dead inputs. */
static void list_ops (again *g, int32_t x, int32_t at, int32_t release, int32_t from) {
  bool dead = g->p->fresh && (g->peak < 0 || from <= g->peak || from > release);
  const use *uses = g->u->uses + g->u->use_offset[x];
  int32_t after = uses[at].op;
  g->listed = 0;
  for (int32_t w = write_at (g, x, at); w >= 0; w = write_at (g, x, w - 1)) {
    g->list[g->listed++] = uses[w].op;
    if (!list_has (&g->t->ops[uses[w].op].reads, x))
      break;
  }
  for (int32_t i = 0; dead && i < g->listed && g->listed < MOST_CHARGED; i++) {
    const op *o = &g->t->ops[g->list[i]];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t y = o->reads.at[j];
      if (y != x && !list_has (&o->side, y) && !list_has (&o->writes, y))
        list_dead (g, y, g->list[i], after);
    }
  }
}

bool again_ends_life (const trace *t, const units *u, int32_t x, int32_t at) {
  const op *o = &t->ops[u->uses[u->use_offset[x] + at + 1].op];
  return x < t->n_tensors && !t->tensors[x].persistent && !list_has (&o->reads, x) &&
         !list_has (&o->writes, x);
}

static void visit (again_op *o, int32_t x) {
  if (!o->tensors || o->tensor != x) {
    o->tensors++;
    o->tensor = x;
    o->times = 0;
  }
  o->times++;
}

/* From which slot on it is made again: behind the peak, if it is dropped there. */
static int32_t made_from (const again *g, int32_t release, int32_t due) {
  return release <= g->peak && g->peak < due ? g->peak + 1 : release;
}

static again_op *side_of (again *g, int32_t op, int32_t from) {
  return &g->ops[2 * op + (from > g->peak)];
}

bool again_count (again *g, int32_t x, int32_t at, int32_t release, int32_t due, int32_t end) {
  int32_t from = made_from (g, release, due);
  if (!again_can (g, x, at))
    return false;
  for (int32_t j = release; from > release && j < g->peak && j < end; j++)
    g->overflow |=
        __builtin_add_overflow (g->free_bytes[j], g->t->tensors[x].bytes, &g->free_bytes[j]);
  list_ops (g, x, at, release, from);
  for (int32_t i = 0; i < g->listed; i++) {
    again_op *o = side_of (g, g->list[i], from);
    if (!o->tensors || from < o->first_slot)
      o->first_slot = from;
    if (!o->tensors || due > o->end_slot)
      o->end_slot = due;
    visit (o, x);
    o->most = o->times > o->most ? o->times : o->most;
  }
  return true;
}

static void open_work (again *g, int32_t from, int32_t end, __int128 grains) {
  g->overflow |= __builtin_add_overflow (g->released[from], grains, &g->released[from]) ||
                 __builtin_add_overflow (g->open[from], grains, &g->open[from]) ||
                 __builtin_sub_overflow (g->open[end], grains, &g->open[end]) ||
                 __builtin_add_overflow (g->due[end], grains, &g->due[end]);
}

bool again_number (again *g, error *err) {
  int32_t rows = 0;
  for (int32_t k = 0; k < 2 * g->t->n_ops; k++) {
    again_op *o = &g->ops[k];
    o->first_row = o->row = rows;
    if (o->tensors > 1) {
      rows += o->tensors;
      open_work (g, o->first_slot, o->end_slot, (__int128)o->grains * o->most);
    }
    o->times = 0;
    o->tensor = -1;
  }
  if (rows != g->p->n_shares)
    return error_set (err, ERR_input, "the proof has %d shares; %d are due", g->p->n_shares, rows);
  return true;
}

/* In parts, each may take 1 ns less than its share and make a byte more than its own; a part behind
   the first takes section_ns longer, which may be more than that. */
static void save (again *g, int32_t k, int64_t bytes) {
  __int128 each = 2 + g->t->ops[k].ns / bytes, most = INT64_MAX / 4; /* as much as any stall is */
  if (!g->loose || !g->loose[k])
    return;
  each = g->section_ns >= each ? each : each * loose_parts (g->t, k);
  g->saved_ns = (int64_t)(g->saved_ns + each < most ? g->saved_ns + each : most);
}

__int128 again_price (again *g, int32_t x, int32_t at, int32_t release, int32_t due,
                      __int128 room) {
  __int128 price = 0, alone = 0, part;
  int32_t from = made_from (g, release, due);
  list_ops (g, x, at, release, from);
  for (int32_t i = 0; i < g->listed; i++) {
    again_op *o = side_of (g, g->list[i], from);
    __int128 rate = ((__int128)o->grains << PROOF_COEF_BITS) / room;
    rate = rate > DEAREST ? DEAREST : rate;
    save (g, g->list[i], g->t->tensors[x].bytes);
    if (o->tensor >= 0 && o->tensor != x)
      o->row++; /* the next tensor of this op */
    o->tensor = x;
    part = rate * (o->tensors > 1 ? g->p->shares[o->row] : g->p->made[due] - g->p->ready[from]);
    g->overflow |= __builtin_add_overflow (price, part, &price);
    alone += o->tensors > 1 ? 0 : o->grains;
  }
  if (alone)
    open_work (g, from, due, alone);
  return price;
}
