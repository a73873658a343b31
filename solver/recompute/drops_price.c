/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/recompute/drops_price.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "solver/place/schedule.h"

/* One tensor, or what stands for it since it was made again. */
typedef struct holder {
  int64_t bytes;
  int32_t first, last; /* places in the new order; -1: not used yet */
  bool always, pinned, pooled;
} holder;

typedef struct idle {
  int64_t bytes, ns;
  int32_t from, count; /* places between two uses; may run over the end */
} idle;

typedef struct pricing {
  const drops_pricing *p;
  int32_t n, most, n_idle, n_holders;
  holder *holders;
  int32_t *holds;           /* per tensor: its holder now, or -1 */
  int32_t *fresh, *made_by; /* per tensor: the holder that entry made_by - 1 made */
  idle *idles;
  int64_t *ns, *level; /* per place */
  int64_t *pool;       /* per place: what lives in the pool, which is as large as its peak */
  int64_t *work;       /* per place: workspace */
} pricing;

bool drops_pricing_of (const trace *t, const uses *u, const device *d, bool swaps, arena *a,
                       drops_pricing *out, error *err) {
  assert (t && u && d->granule_bytes > 0);
  link_rates r = device_rates (&d->link, d->share_ppm);
  *out = (drops_pricing){ .trace = t,
                          .out_ns = 1e9 / (double)r.out_alone,
                          .in_ns = 1e9 / (double)r.in_alone,
                          .copy_ns = (double)d->link.copy_ns,
                          .least_bytes = d->granule_bytes,
                          .granule_bytes = d->granule_bytes,
                          .swaps = swaps };
  if (!schedule_pool (t, NULL, 0, d->granule_bytes, a, &out->pool_below_bytes, NULL, err))
    return false;
  out->touched_of = NEW (a, (int64_t)t->n_ops + 1, int32_t, err);
  out->touched = NEW (a, u->offset[t->n_tensors], int32_t, err);
  out->room = NEW (a, t->n_tensors, int64_t, err);
  if (!out->touched_of || !out->touched || !out->room)
    return false;
  for (int32_t i = 0; i < u->offset[t->n_tensors]; i++)
    out->touched_of[u->at[i].op + 1]++;
  for (int32_t k = 0; k < t->n_ops; k++)
    out->touched_of[k + 1] += out->touched_of[k];
  for (int32_t x = 0; x < t->n_tensors; x++) {
    int64_t granules = units_div_up (t->tensors[x].bytes, d->granule_bytes);
    out->room[x] = t->tensors[x].bytes >= out->pool_below_bytes ? granules * d->granule_bytes
                                                                : t->tensors[x].bytes;
    for (int32_t i = u->offset[x]; i < u->offset[x + 1]; i++)
      out->touched[out->touched_of[u->at[i].op]++] = x;
  }
  for (int32_t k = t->n_ops; k > 0; k--)
    out->touched_of[k] = out->touched_of[k - 1];
  out->touched_of[0] = 0;
  return true;
}

/* ---- life of every tensor ---- */

static int32_t new_holder (pricing *w, int32_t tensor, bool copy) {
  const struct tensor *x = &w->p->trace->tensors[tensor];
  bool pooled = x->bytes < w->p->pool_below_bytes;
  w->holders[w->n_holders] =
      (holder){ w->p->room[tensor], -1, -1, x->persistent && !copy, x->pinned && !copy, pooled };
  return w->n_holders++;
}

static void touch (pricing *w, int32_t which, int32_t place) {
  holder *h = &w->holders[which];
  if (h->last >= 0 && place > h->last + 1 && !h->pinned && !h->pooled)
    w->idles[w->n_idle++] = (idle){ h->bytes, 0, h->last + 1, place - h->last - 1 };
  if (h->last < 0)
    h->first = place;
  h->last = place;
}

static int32_t holder_of (pricing *w, int32_t tensor) {
  if (w->holds[tensor] < 0)
    w->holds[tensor] = new_holder (w, tensor, false);
  return w->holds[tensor];
}

static void run_again (pricing *w, int32_t k, int32_t entry) {
  const op *o = &w->p->trace->ops[k];
  int32_t place = w->n++;
  w->ns[place] = o->ns + o->gap_ns;
  w->work[place] = o->workspace_bytes;
  for (int32_t j = 0; j < o->reads.count; j++) {
    int32_t x = o->reads.at[j];
    if (o->side.count && list_has (&o->side, x))
      continue;
    touch (w, w->made_by[x] == entry + 1 ? w->fresh[x] : holder_of (w, x), place);
  }
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    if (o->side.count && list_has (&o->side, x))
      continue;
    if (w->made_by[x] != entry + 1) {
      w->made_by[x] = entry + 1;
      w->fresh[x] = new_holder (w, x, true);
    }
    touch (w, w->fresh[x], place);
  }
}

static void run_step (pricing *w, const recompute *entries, int32_t n_entries) {
  const trace *t = w->p->trace;
  int32_t entry = 0;
  memset (w->holds, 0xff, (size_t)t->n_tensors * sizeof *w->holds);
  for (int32_t k = 0; k < t->n_ops; k++) {
    for (; entry < n_entries && entries[entry].before == k; entry++) {
      const recompute *r = &entries[entry];
      for (int32_t i = 0; i < r->ops.count; i++)
        run_again (w, r->ops.at[i], entry);
      for (int32_t i = 0; i < r->replaces.count; i++)
        w->holds[r->replaces.at[i]] = w->fresh[r->replaces.at[i]];
    }
    int32_t place = w->n++;
    w->ns[place] = t->ops[k].ns + t->ops[k].gap_ns;
    w->work[place] = t->ops[k].workspace_bytes;
    for (int32_t i = w->p->touched_of[k]; i < w->p->touched_of[k + 1]; i++)
      touch (w, holder_of (w, w->p->touched[i]), place);
  }
}

/* Persistent ones are there all the time, and idle from their last use to the first of the next
   step; those without any use are nowhere. */
static void levels (pricing *w) {
  int64_t sum = 0, pool = 0, most = 0;
  for (int32_t i = 0; i < w->n_holders; i++) {
    const holder *h = &w->holders[i];
    int64_t *level = h->pooled ? w->pool : w->level;
    if (h->always) {
      int32_t count = w->n - h->last - 1 + h->first;
      *(h->pooled ? &pool : &sum) += h->bytes;
      if (!h->pinned && !h->pooled && count > 0)
        w->idles[w->n_idle++] = (idle){ h->bytes, 0, (h->last + 1) % w->n, count };
      continue;
    }
    level[h->first] += h->bytes;
    level[h->last + 1] -= h->bytes;
  }
  for (int32_t k = 0; k < w->n; k++) {
    pool += w->pool[k];
    most = pool > most ? pool : most;
  }
  sum += units_div_up (most, w->p->granule_bytes) * w->p->granule_bytes;
  for (int32_t k = 0; k < w->n; k++) {
    sum += w->level[k];
    w->level[k] = sum + w->work[k];
  }
}

/* ---- bytes over the budget go over the link ---- */

/* The step in blocks of equal time, which is near enough. */
enum { BLOCKS = 160 };

typedef struct fluid {
  double need[BLOCKS];            /* bytes over the budget */
  double out[BLOCKS], in[BLOCKS]; /* free time of either engine */
  /* for two steps, the nearest block with time left; `before` is shifted by one */
  int32_t next[2 * BLOCKS + 2], before[2 * BLOCKS + 2];
  double sent[2 * BLOCKS], held[2 * BLOCKS];
  double out_ns, in_ns, copy_ns;
} fluid;

static int by_length (const void *a, const void *b) {
  const idle *x = a, *y = b;
  if (x->ns != y->ns)
    return x->ns > y->ns ? -1 : 1;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static double least (double a, double b) {
  return a < b ? a : b;
}

static double most (double a, double b) {
  return a > b ? a : b;
}

/* Nearest block from i on with time left; the way there is made shorter. */
static int32_t with_time (int32_t *link, int32_t i) {
  while (link[i] != i) {
    link[i] = link[link[i]];
    i = link[i];
  }
  return i;
}

/* Copies out run as soon, copies in as late as the link has time. */
static void send (fluid *f, double bytes, int32_t from, int32_t end) {
  int32_t first = with_time (f->next, from), last = with_time (f->before, end) - 1;
  double sent = 0, back = 0, take = 0;
  double out_ns = f->out_ns + f->copy_ns / bytes, in_ns = f->in_ns + f->copy_ns / bytes;
  if (last - first < 2)
    return;
  for (int32_t i = first; i <= last; i++) {
    f->sent[i - first] = sent;
    sent = least (bytes, sent + f->out[i % BLOCKS] / out_ns);
  }
  for (int32_t i = last; i > first; i--) {
    f->held[i - first] = back;
    take = most (take, least (f->need[i % BLOCKS], least (back, f->sent[i - first])));
    back = least (bytes, back + f->in[i % BLOCKS] / in_ns);
  }
  if (take < bytes / 64)
    return;
  for (int32_t i = first + 1; i < last; i++) {
    double there = least (take, f->sent[i - first]) - take + least (take, f->held[i - first]);
    f->need[i % BLOCKS] -= most (there, 0);
  }
  double left = take * out_ns;
  for (int32_t i = first; i <= last && left > 0; i++) {
    int32_t at = i % BLOCKS;
    double part = least (left, f->out[at]);
    left -= part;
    f->out[at] -= part;
    if (f->out[at] <= 0) {
      f->next[at] = at + 1;
      f->next[at + BLOCKS] = at + BLOCKS + 1;
    }
  }
  left = take * in_ns;
  for (int32_t i = last; i >= first && left > 0; i--) {
    int32_t at = i % BLOCKS;
    double part = least (left, f->in[at]);
    left -= part;
    f->in[at] -= part;
    if (f->in[at] <= 0) {
      f->before[at + 1] = at;
      f->before[at + BLOCKS + 1] = at + BLOCKS;
    }
  }
}

/* Bytes over the budget after that go once more out and in, while compute waits. Where it falls and
   rises again, some of it has to go twice. */
static double stall_of (const fluid *f) {
  double peak = 0, rises = 0, last = most (0, f->need[BLOCKS - 1]);
  for (int32_t k = 0; k < BLOCKS; k++) {
    double over = most (0, f->need[k]);
    peak = most (peak, over);
    rises += most (0, over - last);
    last = over;
  }
  return (peak + 0.25 * most (0, rises - peak)) * (f->out_ns + f->in_ns);
}

/* The idle times that span an op over the budget, the longest first; *lacking the most that is over
   even where all that idles has left. */
static bool choose_idle (pricing *w, int64_t budget_bytes, const int64_t *starts, int32_t *count,
                         int64_t *lacking, arena *a, error *err) {
  int32_t n = w->n, kept = 0;
  int32_t *over = NEW (a, 2 * (int64_t)n + 1, int32_t, err);
  int64_t *movable = NEW (a, 2 * (int64_t)n + 1, int64_t, err);
  if (!over || !movable)
    return false;
  for (int32_t i = 0; i < 2 * n; i++)
    over[i + 1] = over[i] + (w->level[i % n] > budget_bytes);
  for (int32_t i = 0; i < w->n_idle; i++) {
    idle *g = &w->idles[i];
    int32_t end = g->from + g->count;
    movable[g->from] += g->bytes;
    movable[end] -= g->bytes;
    g->ns = starts[end] - starts[g->from];
    if (over[end] > over[g->from] && g->bytes >= w->p->least_bytes)
      w->idles[kept++] = *g;
  }
  for (int32_t i = 1; i < 2 * n; i++)
    movable[i] += movable[i - 1];
  for (int32_t k = 0; k < n; k++) {
    int64_t lacks = w->level[k] - budget_bytes - movable[k] - movable[k + n];
    *lacking = lacks > *lacking ? lacks : *lacking;
  }
  qsort (w->idles, (size_t)kept, sizeof *w->idles, by_length);
  *count = kept;
  return true;
}

static bool flow (pricing *w, int64_t budget_bytes, arena *a, drops_price *out, error *err) {
  int32_t n = w->n, count;
  int64_t *starts = NEW (a, 2 * (int64_t)n + 1, int64_t, err);
  fluid *f = NEW (a, 1, fluid, err);
  if (!starts || !f)
    return false;
  for (int32_t i = 0; i < 2 * n; i++)
    starts[i + 1] = starts[i] + w->ns[i % n];
  if (!choose_idle (w, budget_bytes, starts, &count, &out->lacking_bytes, a, err))
    return false;
  f->out_ns = w->p->out_ns;
  f->in_ns = w->p->in_ns;
  f->copy_ns = w->p->copy_ns;
  double block_ns = most (1, (double)starts[n]) / BLOCKS;
  for (int32_t i = 0; i < BLOCKS; i++)
    f->out[i] = f->in[i] = block_ns;
  for (int32_t i = 0; i < 2 * BLOCKS + 2; i++)
    f->next[i] = f->before[i] = i;
  for (int32_t k = 0; k < n; k++) {
    double need = (double)(w->level[k] - budget_bytes);
    int32_t end = (int32_t)((double)starts[k + 1] / block_ns);
    for (int32_t i = (int32_t)((double)starts[k] / block_ns); i <= end && i < BLOCKS; i++)
      f->need[i] = most (f->need[i], need);
  }
  for (int32_t i = 0; i < count; i++) {
    const idle *g = &w->idles[i];
    int32_t from = (int32_t)((double)starts[g->from] / block_ns) + 1;
    int32_t end = (int32_t)((double)starts[g->from + g->count] / block_ns);
    if (end - from > 2)
      send (f, (double)g->bytes, from, end < from + BLOCKS ? end : from + BLOCKS);
  }
  out->stall_ns = (int64_t)stall_of (f);
  return true;
}

static bool make_room (pricing *w, const recompute *entries, int32_t n_entries, arena *a,
                       error *err) {
  const trace *t = w->p->trace;
  int64_t ops = t->n_ops, holders = t->n_tensors, touches = w->p->touched_of[t->n_ops] + holders;
  for (int32_t i = 0; i < n_entries; i++)
    for (int32_t j = 0; j < entries[i].ops.count; j++) {
      const op *o = &t->ops[entries[i].ops.at[j]];
      ops++;
      holders += o->writes.count;
      touches += o->reads.count + o->writes.count;
    }
  w->holders = NEW (a, holders, holder, err);
  w->holds = NEW (a, t->n_tensors, int32_t, err);
  w->fresh = NEW (a, t->n_tensors, int32_t, err);
  w->made_by = NEW (a, t->n_tensors, int32_t, err);
  w->idles = NEW (a, touches, idle, err);
  w->ns = NEW (a, ops, int64_t, err);
  w->work = NEW (a, ops, int64_t, err);
  w->level = NEW (a, ops + 1, int64_t, err);
  w->pool = NEW (a, ops + 1, int64_t, err);
  return w->holders && w->holds && w->fresh && w->made_by && w->idles && w->ns && w->work &&
         w->level && w->pool;
}

bool drops_price_of (const drops_pricing *p, const recompute *entries, int32_t n_entries,
                     int64_t budget_bytes, arena *scratch, drops_price *out, error *err) {
  assert (entries || n_entries == 0);
  arena_mark mark = arena_here (scratch);
  pricing w = { .p = p };
  *out = (drops_price){ 0 };
  bool ok = make_room (&w, entries, n_entries, scratch, err);
  if (!ok)
    goto out;
  run_step (&w, entries, n_entries);
  levels (&w);
  int64_t peak = 0;
  for (int32_t k = 0; k < w.n; k++) {
    peak = w.level[k] > peak ? w.level[k] : peak;
    out->compute_ns += w.ns[k];
  }
  out->n_ops = w.n;
  if (peak > budget_bytes && !p->swaps)
    out->lacking_bytes = peak - budget_bytes;
  else if (peak > budget_bytes)
    ok = flow (&w, budget_bytes, scratch, out, err);
out:
  arena_back (scratch, mark);
  return ok;
}
