/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From gaps to the columns of the flow program: pieces of units, their classes, and the chains
   along which a copy on the host stays valid. */
#include "solver/flow/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 192 };

typedef struct piece {
  int32_t unit;
  bool tail;
  int64_t room_bytes;
  flow_class weight;
  uint8_t class;
} piece;

/* ---- the link ---- */

static int bits_of (unsigned __int128 x) {
  int n = 0;
  for (; x; x >>= 1)
    n++;
  return n;
}

static int64_t share (__int128 part, int64_t whole) {
  return flow_coef ((part << COEF_BITS) / whole);
}

flow_link flow_link_of (const device *dev, int64_t largest_bytes, int64_t total_ns) {
  link_rates r = device_rates (&dev->link, dev->share_ppm);
  flow_link l = { .rates = r };
  unsigned __int128 time_bytes =
      (unsigned __int128)total_ns * (unsigned __int128)r.out_alone / 1000000000 + 1;
  unsigned __int128 most =
      (unsigned __int128)largest_bytes > time_bytes ? (unsigned __int128)largest_bytes : time_bytes;
  l.shift = GRAIN_BITS - bits_of (most);
  l.shift = l.shift > 20 ? 20 : l.shift < -20 ? -20 : l.shift;
  l.ratio = (((__int128)r.in_alone << COEF_BITS) + r.out_alone - 1) / r.out_alone;
  l.shared = r.out_both < r.out_alone || r.in_both < r.in_alone;
  if (!l.shared)
    return l;
  /* Is the corner at which both run inside the triangle of one engine alone or the other? */
  l.one_row = (__int128)r.out_both * r.in_alone + (__int128)r.in_both * r.out_alone <=
              (__int128)r.out_alone * r.in_alone;
  if (l.one_row) {
    l.in_in_out = share (r.out_alone, r.in_alone);
  } else {
    l.in_in_out = share (r.out_alone - r.out_both, r.in_both);
    l.out_in_in = share (r.in_alone - r.in_both, r.out_both);
  }
  return l;
}

static int64_t clip (__int128 x) {
  __int128 most = INT64_MAX / 4;
  return (int64_t)(x > most ? most : x < -most ? -most : x);
}

int64_t flow_grains_down (const flow_link *l, int64_t bytes) {
  return l->shift >= 0 ? clip ((__int128)bytes * ((__int128)1 << l->shift)) : bytes >> -l->shift;
}

int64_t flow_grains_up (const flow_link *l, int64_t bytes) {
  return -flow_grains_down (l, -bytes);
}

int64_t flow_time (const flow_link *l, int64_t ns, int64_t rate) {
  assert (rate >= 0);
  unsigned __int128 bytes_e9 = (unsigned __int128)ns * (unsigned __int128)rate;
  unsigned __int128 e9 = 1000000000;
  if (l->shift >= 0)
    return clip ((__int128)(((bytes_e9 << l->shift) + e9 - 1) / e9));
  e9 <<= -l->shift;
  return clip ((__int128)((bytes_e9 + e9 - 1) / e9));
}

/* ---- pieces and classes ---- */

/* The least price of a piece's memory per grain, in whatever parts it moves: docs/planning.md. */
static void add_unit (const gaps *g, const flow_options *o, const flow_link *l, int32_t unit,
                      piece *to, int32_t *n) {
  int64_t granule = g->granule_bytes, room = gaps_room (g, unit);
  int64_t slack = room - g->units->at[unit].bytes;
  int64_t copy_ns = o->latency && !l->shared ? o->dev->link.copy_ns : 0;
  __int128 lat_out = (__int128)copy_ns * l->rates.out_alone / 1000000000;
  __int128 lat_in = (__int128)copy_ns * l->rates.in_alone / 1000000000;
  if (room == granule || slack == 0) {
    to[(*n)++] =
        (piece){ .unit = unit,
                 .room_bytes = room,
                 .weight = { share (room - slack + lat_out, room),
                             share (room - slack + lat_in, room), share (room - slack, room) } };
    return;
  }
  if (slack <= lat_out && slack <= lat_in) {
    to[(*n)++] = (piece){ .unit = unit,
                          .room_bytes = room,
                          .weight = { share (room - slack + lat_out, room),
                                      share (room - slack + lat_in, room),
                                      share (granule - slack, granule) } };
    return;
  }
  int64_t full = room - granule;
  to[(*n)++] =
      (piece){ .unit = unit,
               .room_bytes = full,
               .weight = { share (full + lat_out, full), share (full + lat_in, full), COEF_ONE } };
  int64_t last = share (granule - slack, granule);
  to[(*n)++] =
      (piece){ .unit = unit, .tail = true, .room_bytes = granule, .weight = { last, last, last } };
}

static int by_weight (const void *x, const void *y) {
  const piece *a = x, *b = y;
  if (a->weight.out != b->weight.out)
    return a->weight.out < b->weight.out ? -1 : 1;
  if (a->unit != b->unit)
    return a->unit < b->unit ? -1 : 1;
  return (int)a->tail - (int)b->tail;
}

typedef struct bucket {
  int32_t end; /* pieces [former end, end) */
  double mass, moment, lowest;
} bucket;

/* Pieces of neighbouring weight share a bucket; equal weights always do. */
static int32_t fill_buckets (const gaps *g, const piece *p, int32_t n, bucket *b) {
  double total = 0;
  for (int32_t i = 0; i < n; i++)
    total += (double)p[i].room_bytes;
  int32_t used = 0;
  double seen = 0;
  for (int32_t i = 0; i < n; i++) {
    const int32_t *of = g->of_unit + p[i].unit;
    double mass = (double)p[i].room_bytes * (of[1] - of[0]);
    double w = (double)p[i].weight.out / (double)COEF_ONE;
    bool same = i > 0 && p[i].weight.out == p[i - 1].weight.out;
    if (!same && (used == 0 || (used < BUCKETS && seen >= total / BUCKETS * used)))
      b[used++] = (bucket){ .lowest = w };
    seen += (double)p[i].room_bytes;
    b[used - 1].end = i + 1;
    b[used - 1].mass += mass;
    b[used - 1].moment += mass * w;
  }
  return used;
}

/* Cuts the buckets into at most `classes` runs that lose the least weight: best[c][i] is the loss
   of the first i in c runs. */
static int choose_cuts (const bucket *b, int32_t n, int classes, int32_t *cut) {
  double best[FLOW_CLASSES + 1][BUCKETS + 1], mass[BUCKETS + 1], moment[BUCKETS + 1];
  int32_t from[FLOW_CLASSES + 1][BUCKETS + 1];
  mass[0] = moment[0] = 0;
  for (int32_t i = 0; i < n; i++) {
    mass[i + 1] = mass[i] + b[i].mass;
    moment[i + 1] = moment[i] + b[i].moment;
  }
  classes = classes < n ? classes : n;
  for (int c = 0; c <= classes; c++)
    for (int32_t i = 0; i <= n; i++) {
      best[c][i] = c == 0 && i == 0 ? 0 : 1e300;
      from[c][i] = 0;
      for (int32_t k = 0; c > 0 && k < i; k++) {
        double loss = best[c - 1][k] + moment[i] - moment[k] - b[k].lowest * (mass[i] - mass[k]);
        if (loss < best[c][i]) {
          best[c][i] = loss;
          from[c][i] = k;
        }
      }
    }
  int32_t end = n;
  for (int c = classes; c > 0; c--) {
    cut[c] = b[end - 1].end;
    end = from[c][end];
  }
  cut[0] = 0;
  return classes;
}

static void classify (const gaps *g, flow *f, piece *p, int32_t n, int classes) {
  bucket b[BUCKETS];
  int32_t cut[FLOW_CLASSES + 1];
  qsort (p, (size_t)n, sizeof *p, by_weight);
  memset (b, 0, sizeof b);
  f->n_classes = n ? choose_cuts (b, fill_buckets (g, p, n, b), classes, cut) : 1;
  for (int c = 0; n && c < f->n_classes; c++) {
    f->class[c] = p[cut[c]].weight;
    for (int32_t i = cut[c]; i < cut[c + 1]; i++) {
      flow_class *w = &f->class[c];
      p[i].class = (uint8_t)c;
      w->in = p[i].weight.in < w->in ? p[i].weight.in : w->in;
      w->host = p[i].weight.host < w->host ? p[i].weight.host : w->host;
    }
  }
}

/* ---- chains ---- */

/* One that may be kept beyond its life has no gap that is surely useless. */
static bool is_kept (const gaps *g, const flow *f, int32_t unit) {
  int32_t end = g->of_unit[unit + 1];
  return f->drops && end > g->of_unit[unit] && flow_ends_life (g, end - 1);
}

static bool has_gaps (const gaps *g, const flow *f, int32_t unit) {
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++)
    if ((g->at[i].useful || is_kept (g, f, unit)) && !g->at[i].unused)
      return true;
  return false;
}

/* Released and due inside one slot, where no row sees it: what it could do for a later gap, that
   gap does as well by itself if it is released in the same slot. */
static bool is_idle (const gaps *g, const slots *s, int32_t i, int32_t next, bool kept) {
  const gap *at = &g->at[i];
  int32_t release = s->of_op[at->release];
  if (at->wraps || release != s->of_op[at->before])
    return false;
  const gap *after = &g->at[next];
  bool serves = after->clean == i && (after->useful || kept);
  return !serves || s->of_op[after->release] == release;
}

/* The chains of one unit, without room and class. Returns how many. */
static int32_t unit_chains (const gaps *g, const slots *s, int32_t unit, flow *f,
                            flow_chain *chains) {
  int32_t first = g->of_unit[unit], n = g->of_unit[unit + 1] - first, start = 0, count = 0;
  while (start < n && g->at[first + start].clean != NO_GAP)
    start++;
  bool circle = start == n, kept = is_kept (g, f, unit);
  start = circle ? 0 : start;
  flow_chain *now = NULL;
  for (int32_t k = 0; k < n; k++) {
    int32_t i = first + (start + k) % n, next = first + (start + k + 1) % n;
    const gap *at = &g->at[i];
    if (at->clean == NO_GAP || !now) {
      if (!now || now->count)
        now = &chains[count++];
      *now = (flow_chain){ .first = f->n_gaps, .circle = circle };
    }
    bool late = kept && k == n - 1;
    if ((!at->useful && !kept) || at->unused || (!late && is_idle (g, s, i, next, kept)))
      continue;
    int32_t before = late ? g->n_ops - 1 : at->before;
    f->gaps[f->n_gaps++] =
        (flow_gap){ .gap = i,
                    .release = s->of_op[at->release],
                    .due = s->of_op[before],
                    .first = s->first[s->of_op[before]] == before && !gaps_is_loose (g, before),
                    .late = late,
                    .wraps = at->wraps,
                    .begins = f->host_limited && !gaps_is_loose (g, at->after) &&
                              s->first[s->of_op[at->release]] == at->release };
    now->count++;
  }
  return count && !chains[count - 1].count ? count - 1 : count;
}

static int compare_chains (const void *x, const void *y, void *context) {
  const flow_chain *a = x, *b = y;
  const flow_gap *gaps = context;
  if (a->class != b->class)
    return a->class < b->class ? -1 : 1;
  if (a->circle != b->circle)
    return a->circle ? 1 : -1;
  if (a->count != b->count)
    return a->count < b->count ? -1 : 1;
  for (int32_t i = 0; i < a->count; i++) {
    const flow_gap *p = &gaps[a->first + i], *q = &gaps[b->first + i];
    if (p->release != q->release)
      return p->release < q->release ? -1 : 1;
    if (p->due != q->due)
      return p->due < q->due ? -1 : 1;
    int flags = p->wraps * 4 + p->first * 2 + p->begins - q->wraps * 4 - q->first * 2 - q->begins;
    if (flags)
      return flags;
    flags = p->drops * 2 + p->late - q->drops * 2 - q->late;
    if (flags)
      return flags;
    if (p->rate != q->rate)
      return p->rate < q->rate ? -1 : 1;
    if ((p->n_runs || q->n_runs) && p->runs != q->runs) /* never one column */
      return p->runs < q->runs ? -1 : 1;
  }
  return 0;
}

static int by_chain (const void *x, const void *y, void *context) {
  const flow_chain *a = x, *b = y;
  int order = compare_chains (x, y, context);
  if (order)
    return order;
  /* larger ones first: rounding fills them in this order; then by unit, whose gaps ascend */
  if (a->room != b->room)
    return a->room > b->room ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first ? 1 : a->column - b->column;
}

/* Equal chains become one; who they were goes to members. */
static void merge (flow *f) {
  int32_t kept = 0;
  qsort_r (f->chains, (size_t)f->n_chains, sizeof *f->chains, by_chain, f->gaps);
  for (int32_t i = 0; i < f->n_chains; i++) {
    flow_chain c = f->chains[i];
    f->members[i] = (flow_member){ .first_gap = c.first,
                                   .unit = f->source->at[f->gaps[c.first].gap].unit,
                                   .room = c.room,
                                   .tail = c.column };
    if (kept && compare_chains (&f->chains[kept - 1], &c, f->gaps) == 0) {
      f->chains[kept - 1].room += c.room;
      f->chains[kept - 1].n_members++;
      continue;
    }
    c.members = i;
    c.n_members = 1;
    c.column = -1;
    f->chains[kept++] = c;
  }
  f->n_members = f->n_chains;
  f->n_chains = kept;
}

bool flow_chains (const gaps *g, const flow_options *o, arena *a, flow *f, error *err) {
  assert (f->slots && g->units && o->dev);
  const units *u = g->units;
  assert (o->classes >= 1 && o->classes <= FLOW_CLASSES);
  piece *p = NEW (a, 2 * (int64_t)u->count, piece, err);
  f->gaps = NEW (a, g->count, flow_gap, err);
  f->chains = NEW (a, 2 * (int64_t)g->count, flow_chain, err);
  f->members = NEW (a, 2 * (int64_t)g->count, flow_member, err);
  flow_chain *scratch = NEW (a, g->count, flow_chain, err);
  int32_t *chain_of = NEW (a, 2 * (int64_t)u->count, int32_t, err);
  if (!p || !f->gaps || !f->chains || !f->members || !scratch || !chain_of)
    return false;
  int32_t n = 0, made = 0;
  for (int32_t i = 0; i < u->count; i++)
    if (has_gaps (g, f, i))
      add_unit (g, o, &f->link, i, p, &n);
  classify (g, f, p, n, o->classes);
  /* per unit: where its chains begin in scratch and how many they are */
  for (int32_t i = 0; i < u->count; i++)
    if (has_gaps (g, f, i)) {
      chain_of[2 * i] = made;
      made += chain_of[2 * i + 1] = unit_chains (g, f->slots, i, f, scratch + made);
    }
  if (!flow_find_drops (o, a, f, err))
    return false;
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < chain_of[2 * p[i].unit + 1]; k++) {
      flow_chain c = scratch[chain_of[2 * p[i].unit] + k];
      c.class = p[i].class;
      c.room = flow_grains_up (&f->link, p[i].room_bytes);
      c.column = p[i].tail;
      f->chains[f->n_chains++] = c;
    }
  merge (f);
  return true;
}
