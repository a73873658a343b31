/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that can be given up and made again.  A gap's drop is charged with the op that wrote the
   tensor last, and, where that updates in place, with those before it down to one that does not:
   they all run again between the gap's two uses, in every plan that drops there.  Where plans read
   nothing beyond its last use but what the same entry made (`fresh`), inputs that died before the
   gap are made again with it: their ops are charged too, and so on, breadth first.  Inputs that are
   dropped themselves pay in their own columns. */
#include <assert.h>

#include "solver/flow/flow.h"

#include <string.h>

/* A byte that costs more than this many on the link is never worth it; a program scales better. */
#define MOST_RATE ((int64_t)256 << COEF_BITS)

int64_t flow_time_down (const flow_link *l, int64_t ns, int64_t rate) {
  __int128 x = (__int128)ns * rate, e9 = 1000000000;
  x = l->shift >= 0 ? (x << l->shift) / e9 : x / (e9 << -l->shift);
  return x > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)x;
}

bool flow_ends_life (const gaps *g, int32_t gap) {
  assert (gap >= 0 && gap < g->count);
  const struct gap *at = &g->at[gap];
  const trace *t = g->units->trace;
  const op *end = &t->ops[at->before];
  return at->unit < t->n_tensors && !t->tensors[at->unit].persistent &&
         !list_has (&end->reads, at->unit) && !list_has (&end->writes, at->unit);
}

/* The ops that a drop behind use `at` runs again, the last first. False: it cannot be dropped. */
static bool writers (const flow *f, const flow_options *o, int32_t x, int32_t at, int32_t *ops,
                     int32_t *count) {
  const units *u = f->source->units;
  const trace *t = u->trace;
  bool complete = false;
  *count = 0;
  for (int32_t i = at; i >= u->use_offset[x] && !complete; i--) {
    int32_t k = u->uses[i].op;
    const op *by = &t->ops[k];
    if (!list_has (&by->writes, x))
      continue;
    if (list_has (&by->side, x) || (*count == 0 && o->again && !o->again[k]))
      return false;
    ops[(*count)++] = k;
    complete = !list_has (&by->reads, x);
  }
  return complete;
}

typedef struct finder {
  flow *f;
  const flow_options *o;
  arena *arena;
  int64_t needs_room;
  /* per run to be, of which an op has two: up to the peak and behind it; the latter two of its last
     tensor */
  int32_t *run_of, *last_tensor, *gaps_of_last;
  int32_t *ops, *found;
} finder;

static bool contains (const int32_t *at, int32_t count, int32_t x) {
  for (int32_t i = 0; i < count; i++)
    if (at[i] == x)
      return true;
  return false;
}

/* The ops that wrote x as op k finds it, the last first. 0: not to be made, or not dead behind op
   `after`. */
static int32_t dead_writers (const finder *w, int32_t x, int32_t k, int32_t after, int32_t *ops) {
  const units *u = w->f->source->units;
  const tensor *y = &u->trace->tensors[x];
  int32_t first = u->use_offset[x], at = u->use_offset[x + 1] - 1, count = 0;
  if (y->persistent || y->pinned || y->again == AGAIN_NEVER || u->uses[at].op > after)
    return 0;
  for (; at >= first; at--) {
    const op *by = &u->trace->ops[u->uses[at].op];
    if (u->uses[at].op >= k || !list_has (&by->writes, x))
      continue;
    if (list_has (&by->side, x))
      return 0;
    ops[count++] = u->uses[at].op;
    if (!list_has (&by->reads, x))
      return count;
  }
  return 0;
}

/* The writers of x are listed already; no more than FLOW_CHAIN in all. */
static int32_t add_dead (const finder *w, int32_t x, int32_t after, int32_t count) {
  const trace *t = w->f->source->units->trace;
  for (int32_t i = 0; i < count; i++) {
    const op *o = &t->ops[w->ops[i]];
    for (int32_t j = 0; j < o->reads.count; j++) {
      int32_t y = o->reads.at[j];
      if (y == x || list_has (&o->side, y) || list_has (&o->writes, y))
        continue;
      int32_t n = dead_writers (w, y, w->ops[i], after, w->found);
      for (int32_t k = 0; k < n; k++) {
        if (contains (w->ops, count, w->found[k]))
          continue;
        if (count == FLOW_CHAIN)
          return count;
        w->ops[count++] = w->found[k];
      }
    }
  }
  return count;
}

static void open_work (flow *f, int32_t release, int32_t due, int64_t work) {
  f->work_released[release] += work;
  f->work_open[release] += work;
  f->work_open[due] -= work;
  f->seams.work_due[due] += work;
}

/* A run serves what is made again on its side of the peak. */
static int32_t run_at (const flow *f, int32_t op, const flow_gap *g) {
  return 2 * op + (g->ready > f->peak_slot);
}

/* A run that several tensors share may be made whenever one of them wants it: what idles only
   behind the peak, gradients say, would let the runs of all others wait until it is due. */
static bool charges_dead (const flow *f, const flow_gap *g) {
  return f->peak_slot < 0 || g->ready <= f->peak_slot || g->ready > g->release;
}

/* Which runs each gap needs; needs give their places among all runs for now, and the number of the
   tensor among the run's. */
static bool find (finder *w, flow_gap *g, error *err) {
  flow *f = w->f;
  const gap *at = &f->source->at[g->gap];
  const units *u = f->source->units;
  const trace *t = u->trace;
  int32_t x = at->unit, count = 0;
  if (x >= t->n_tensors || t->tensors[x].persistent || t->tensors[x].pinned ||
      t->tensors[x].again >= AGAIN_PASSES)
    return true;
  int32_t use = u->use_offset[x] + g->gap - f->source->of_unit[x];
  if (!writers (f, w->o, x, use, w->ops, &count))
    return true;
  if (w->o->fresh && count <= FLOW_CHAIN && charges_dead (f, g))
    count = add_dead (w, x, at->after, count);
  flow_need *moved = arena_grow (w->arena, f->needs, &w->needs_room, (int64_t)f->n_needs + count,
                                 sizeof *f->needs, err);
  if (!moved)
    return false;
  f->needs = moved;
  g->drops = true;
  g->runs = f->n_needs;
  g->n_runs = count;
  for (int32_t i = 0; i < count; i++) {
    int32_t k = run_at (f, w->ops[i], g);
    flow_run *r = &f->runs[k];
    if (w->last_tensor[k] != x + 1) {
      r->tensors++;
      w->last_tensor[k] = x + 1;
      w->gaps_of_last[k] = 0;
    }
    r->release = r->release < g->ready ? r->release : g->ready;
    r->due = r->due > g->due ? r->due : g->due;
    w->gaps_of_last[k]++;
    r->most = r->most > w->gaps_of_last[k] ? r->most : w->gaps_of_last[k];
    f->needs[f->n_needs++] = (flow_need){ .run = k, .row = r->tensors - 1 };
  }
  return true;
}

/* Runs get their numbers, in order of ops, and their rows. */
static void number (finder *w) {
  flow *f = w->f;
  const trace *t = f->source->units->trace;
  for (int32_t i = 0; i < 2 * t->n_ops; i++) {
    int32_t k = i / 2;
    flow_run r = f->runs[i];
    if (!r.tensors)
      continue;
    r.op = k;
    int64_t gap_ns = gaps_is_loose (f->source, k) ? 0 : t->ops[k].gap_ns; /* the first part's */
    r.time = flow_time_down (&f->link, t->ops[k].ns + gap_ns, f->link.rates.out_alone);
    r.share = f->n_shares;
    f->n_shares += r.tensors > 1 ? r.tensors : 0;
    w->run_of[i] = f->n_runs;
    f->runs[f->n_runs++] = r;
    if (r.tensors > 1)
      open_work (f, r.release, r.due, r.time * r.most);
  }
}

/* A part that runs again takes its share of the op's time, or a nanosecond less, and makes its
   share of the bytes, or one more. Parts behind the first take section_ns on top. */
static void add_slack (finder *w, int32_t op, int64_t bytes) {
  flow *f = w->f;
  const trace *t = f->source->units->trace;
  int64_t part_ns = 2 + t->ops[op].ns / bytes, most = INT64_MAX / 4;
  if (!gaps_is_loose (f->source, op))
    return;
  int64_t parts = w->o->dev->section_ns >= part_ns ? 1 : loose_parts (t, op);
  __int128 sum = (__int128)parts * part_ns + f->slack_ns;
  f->slack_ns = sum < most ? (int64_t)sum : most;
}

static void price (finder *w, flow_gap *g) {
  flow *f = w->f;
  int64_t room = flow_grains_up (&f->link, gaps_room (f->source, f->source->at[g->gap].unit));
  int32_t kept = 0;
  for (int32_t i = 0; i < g->n_runs; i++) {
    flow_need n = f->needs[g->runs + i];
    const flow_run *r = &f->runs[w->run_of[n.run]];
    __int128 rate = ((__int128)r->time << COEF_BITS) / room;
    n.rate = rate > MOST_RATE ? MOST_RATE : (int64_t)rate;
    add_slack (w, r->op, gaps_room (f->source, f->source->at[g->gap].unit));
    n.run = w->run_of[n.run];
    if (r->tensors > 1) {
      n.row += r->share;
      f->needs[g->runs + kept++] = n;
    } else {
      g->rate += n.rate;
      g->work += r->time;
    }
  }
  g->n_runs = kept;
  if (g->work)
    open_work (f, g->ready, g->due, g->work);
}

/* A tensor that can be dropped over the peak may be away before it for nothing: it is made again in
   time. */
static void free_before_peak (flow *f) {
  for (int32_t i = 0; i < f->n_gaps; i++) {
    const flow_gap *g = &f->gaps[i];
    const gap *at = &f->source->at[g->gap];
    if (!g->drops || g->ready == g->release)
      continue;
    int32_t last = g->late ? f->slots->of_op[at->before] : f->peak_slot - 1;
    for (int32_t j = g->release; j <= last && j < f->peak_slot; j++)
      f->free_bytes[j] += gaps_room (f->source, at->unit);
  }
}

bool flow_find_drops (const flow_options *o, arena *a, flow *f, error *err) {
  assert (o->drops != DROPS_NONE || !f->drops);
  const units *u = f->source->units;
  int32_t n = u->trace->n_ops;
  finder w = { .f = f, .o = o, .arena = a };
  f->work_open = NEW (a, f->n_slots, int64_t, err);
  f->work_released = NEW (a, f->n_slots, int64_t, err);
  f->free_bytes = NEW (a, f->n_slots, int64_t, err);
  f->runs = NEW (a, 2 * (int64_t)n, flow_run, err);
  if (!f->work_open || !f->work_released || !f->free_bytes || !f->runs)
    return false;
  if (!f->drops)
    return true;
  w.run_of = NEW (a, 2 * (int64_t)n, int32_t, err);
  w.last_tensor = NEW (a, 2 * (int64_t)n, int32_t, err);
  w.gaps_of_last = NEW (a, 2 * (int64_t)n, int32_t, err);
  w.ops = NEW (a, (int64_t)n + FLOW_CHAIN, int32_t, err);
  w.found = NEW (a, n, int32_t, err);
  if (!w.run_of || !w.last_tensor || !w.gaps_of_last || !w.ops || !w.found)
    return false;
  f->fresh = o->fresh;
  for (int32_t k = 0; k < 2 * n; k++)
    f->runs[k].release = f->n_slots;
  for (int32_t i = 0; i < f->n_gaps; i++) {
    flow_gap *g = &f->gaps[i];
    bool over = !g->wraps && g->release <= f->peak_slot && f->peak_slot < g->due;
    g->ready = over ? f->peak_slot + 1 : g->release;
    if (!find (&w, g, err))
      return false;
  }
  free_before_peak (f);
  number (&w);
  for (int32_t i = 0; i < f->n_gaps; i++)
    if (f->gaps[i].drops)
      price (&w, &f->gaps[i]);
  for (int32_t j = 1; j < f->n_slots; j++)
    f->work_open[j] += f->work_open[j - 1];
  return true;
}
