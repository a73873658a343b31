/* Local search with the simulator as its judge.  A stall names its suspects: the copies that the op
   waits for, and those that were on the link while it waited.  One of them is made to move less,
   what is then over the budget is given by other gaps, and what is not needed any more comes back.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/units.h"
#include "solver/peaks.h"
#include "solver/search.h"
#include "trace/simulate.h"

typedef struct suspect {
  int32_t gap;
  int64_t weight;
} suspect;

typedef struct improving {
  search *s;
  arena *arena; /* of the picture of the best plan */
  suspect *suspects;
  int32_t n_suspects;
  int64_t total;     /* of their weights */
  int64_t *start_ns; /* of each op without stalls, and the end */
  int64_t *level;    /* per op, in bytes, of the trial */
  peaks peaks;
  arena *scratch; /* of one trial */
} improving;

/* ---- who is to blame ---- */

static int64_t overlap (span a, int64_t from_ns, int64_t to_ns, int64_t period_ns) {
  int64_t sum = 0;
  for (int turn = -1; turn <= 1; turn++) {
    int64_t low = a.start_ns + turn * period_ns, high = a.end_ns + turn * period_ns;
    low = low > from_ns ? low : from_ns;
    high = high < to_ns ? high : to_ns;
    sum += high > low ? high - low : 0;
  }
  return sum;
}

static int32_t gap_of_move (const gaps *g, const move *m) {
  for (int32_t i = g->of_unit[m->unit]; i < g->of_unit[m->unit + 1]; i++)
    if (g->at[i].after == m->out_after && g->at[i].before == m->in_before)
      return i;
  return NO_GAP;
}

/* Every move's weight: how long it was on the link while an op waited for the link. */
static bool accuse (improving *im, const plan *p, const timeline *t, error *err) {
  const gaps *g = &im->s->best.layout->gaps;
  const op *ops = im->s->rewritten->trace->ops;
  int64_t *weight = NEW (im->arena, g->count, int64_t, err);
  im->suspects = NEW (im->arena, g->count, suspect, err);
  if (!weight || !im->suspects)
    return false;
  /* Stalls as intervals, in order; copies are in order too, but a step's copies may lie in the
   * next. */
  span *stalls = NEW (im->arena, g->n_ops, span, err);
  int32_t n = 0;
  if (!stalls)
    return false;
  for (int32_t k = 0; k < g->n_ops; k++) {
    int64_t ready_ns = k ? t->ops[k - 1].end_ns + ops[k].gap_ns
                         : t->ops[g->n_ops - 1].end_ns - t->period_ns + ops[0].gap_ns;
    if (t->ops[k].start_ns > ready_ns)
      stalls[n++] = (span){ ready_ns, t->ops[k].start_ns };
  }
  for (int32_t i = 0; i < p->n_moves; i++) {
    int32_t gap = gap_of_move (g, &p->moves[i]);
    if (gap == NO_GAP)
      continue;
    for (int32_t j = 0; j < n; j++) {
      weight[gap] += overlap (t->ins[i], stalls[j].start_ns, stalls[j].end_ns, t->period_ns);
      if (!p->moves[i].clean)
        weight[gap] += overlap (t->outs[i], stalls[j].start_ns, stalls[j].end_ns, t->period_ns);
    }
  }
  im->n_suspects = 0;
  im->total = 0;
  for (int32_t i = 0; i < g->count; i++)
    if (weight[i] > 0) {
      im->suspects[im->n_suspects++] = (suspect){ i, weight[i] };
      im->total += weight[i];
    }
  return true;
}

static bool look (improving *im, error *err) {
  search *s = im->s;
  plan *p;
  timeline t;
  predicted cost;
  arena_free (im->arena);
  im->arena = arena_new (0);
  if (!im->arena)
    return error_set (err, ERR_memory, "out of memory");
  arena *kept = s->arena;
  candidate best = s->best;
  s->arena = im->arena;
  bool ok = search_cost (s, &best, &p, err);
  s->arena = kept;
  if (!ok)
    return false;
  assert (p);
  sim_job job = { s->trace, s->rewritten, p };
  sim_options o = { .timeline_arena = im->arena, .events = &s->ticks };
  return simulate (&job, 1, &o, s->scratch, &cost, &t, err) && accuse (im, p, &t, err);
}

/* ---- one trial ---- */

static int64_t part_bytes (const search *s, int32_t gap, int32_t part) {
  int32_t unit = s->best.layout->gaps.at[gap].unit;
  const gaps *g = &s->best.layout->gaps;
  return round_away (g, s->best.layout->of, unit, part + 1) -
         round_away (g, s->best.layout->of, unit, part);
}

static void spread (peaks *p, const gap *at, int32_t n_ops, int64_t bytes) {
  if (at->before > at->after)
    peaks_add (p, at->after + 1, at->before, bytes);
  else {
    peaks_add (p, at->after + 1, n_ops, bytes);
    peaks_add (p, 0, at->before, bytes);
  }
}

static int64_t most_over (const peaks *p, const gap *at, int32_t n_ops) {
  if (at->before > at->after)
    return peaks_most (p, at->after + 1, at->before);
  int64_t x = peaks_most (p, at->after + 1, n_ops), y = peaks_most (p, 0, at->before);
  return x > y ? x : y;
}

static void take_part (improving *im, int32_t gap) {
  candidate *c = &im->s->trial;
  spread (&im->peaks, &im->s->best.layout->gaps.at[gap], im->s->best.layout->gaps.n_ops,
          -part_bytes (im->s, gap, c->parts[gap]++));
}

static void give_back (improving *im, int32_t gap) {
  candidate *c = &im->s->trial;
  spread (&im->peaks, &im->s->best.layout->gaps.at[gap], im->s->best.layout->gaps.n_ops,
          part_bytes (im->s, gap, --c->parts[gap]));
}

static bool levels (improving *im, error *err) {
  const search *s = im->s;
  const gaps *g = &s->best.layout->gaps;
  int64_t *level = NEW (im->scratch, (int64_t)g->n_ops + 1, int64_t, err);
  if (!level)
    return false;
  for (int32_t i = 0; i < g->count; i++) {
    int32_t n = s->trial.parts[i], unit = g->at[i].unit;
    if (!n)
      continue;
    int64_t bytes = round_away (g, s->best.layout->of, unit, n);
    level[g->at[i].after + 1] -= bytes;
    level[g->at[i].before] += bytes;
    if (g->at[i].before <= g->at[i].after)
      level[0] -= bytes;
  }
  for (int32_t k = 1; k < g->n_ops; k++)
    level[k] += level[k - 1];
  for (int32_t k = 0; k < g->n_ops; k++)
    level[k] += g->base_bytes[k];
  return peaks_build (&im->peaks, level, g->n_ops, im->scratch, err);
}

/* The op that is furthest over: found by halving. */
static int32_t worst_op (const peaks *p, int32_t n_ops) {
  int32_t low = 0, high = n_ops;
  int64_t most = peaks_most (p, 0, n_ops);
  while (high - low > 1) {
    int32_t middle = (low + high) / 2;
    if (peaks_most (p, low, middle) == most)
      high = middle;
    else
      low = middle;
  }
  return low;
}

static int64_t idle_ns (const improving *im, const gap *at) {
  int64_t from = im->start_ns[at->after + 1], to = im->start_ns[at->before];
  return to > from ? to - from : to - from + im->start_ns[im->s->best.layout->gaps.n_ops];
}

/* A gap over `op` that can still give a part: long idle times are likelier. */
static int32_t draw_giver (improving *im, int32_t op, int32_t but) {
  search *s = im->s;
  const gaps *g = &s->best.layout->gaps;
  double total = 0;
  int32_t drawn = NO_GAP;
  for (int32_t i = 0; i < g->count; i++) {
    const gap *at = &g->at[i];
    if (i == but || !gap_spans (at, op) || s->trial.parts[i] == s->best.layout->of[at->unit] ||
        g->units->at[at->unit].bytes == 0 || g->units->at[at->unit].pinned)
      continue;
    double idle = (double)idle_ns (im, at) + 1, weight = idle * idle;
    total += weight;
    if ((double)random_between (&s->random, 0, 1 << 30) * total < weight * (1 << 30))
      drawn = i;
  }
  return drawn;
}

/* False where nothing can give enough. */
static bool repair (improving *im, int64_t room_bytes, int32_t but) {
  const gaps *g = &im->s->best.layout->gaps;
  while (peaks_most (&im->peaks, 0, g->n_ops) > room_bytes) {
    int32_t op = worst_op (&im->peaks, g->n_ops), gap = draw_giver (im, op, but);
    if (gap == NO_GAP)
      return false;
    while (im->s->trial.parts[gap] < im->s->best.layout->of[g->at[gap].unit] &&
           most_over (&im->peaks, &g->at[gap], g->n_ops) > room_bytes)
      take_part (im, gap);
  }
  return true;
}

/* What no op needs away comes back, beginning anywhere. */
static void prune (improving *im, int64_t room_bytes) {
  search *s = im->s;
  const gaps *g = &s->best.layout->gaps;
  int32_t first = (int32_t)random_between (&s->random, 0, g->count - 1);
  for (int32_t j = 0; j < g->count; j++) {
    int32_t i = (first + j) % g->count;
    while (s->trial.parts[i] > 0 &&
           most_over (&im->peaks, &g->at[i], g->n_ops) + part_bytes (s, i, s->trial.parts[i] - 1) <=
               room_bytes)
      give_back (im, i);
  }
}

static int32_t draw_suspect (improving *im) {
  int64_t at = random_between (&im->s->random, 0, im->total - 1);
  for (int32_t i = 0; i < im->n_suspects; i++) {
    at -= im->suspects[i].weight;
    if (at < 0)
      return im->suspects[i].gap;
  }
  return im->suspects[0].gap;
}

/* False where the change leads to nothing. */
static bool change (improving *im, error *err) {
  search *s = im->s;
  static const int32_t airs_ppm[] = { 1000000, 1000000, 998000, 995000, 990000, 980000 };
  int64_t room = units_scale (s->best.layout->gaps.room_bytes,
                              airs_ppm[random_between (&s->random, 0, 5)], 1000000);
  search_copy (&s->trial, &s->best);
  if (!levels (im, err))
    return false;
  int32_t gap = draw_suspect (im);
  int32_t had = s->trial.parts[gap];
  if (had == 0)
    return false;
  int32_t less =
      random_chance (&s->random, 300000) ? had : (int32_t)random_between (&s->random, 1, had);
  for (int32_t i = 0; i < less; i++)
    give_back (im, gap);
  if (!repair (im, room, gap))
    return false;
  prune (im, room);
  return true;
}

static bool prepare (improving *im, error *err) {
  im->start_ns = trace_ends (im->s->rewritten->trace, im->s->arena, err);
  return im->start_ns != NULL;
}

bool search_improve (search *s, error *err) {
  improving im = { .s = s, .scratch = arena_new (0) };
  bool ok = (im.scratch || error_set (err, ERR_memory, "out of memory")) && prepare (&im, err);
  if (ok && s->best.step_ns < INT64_MAX && !search_is_over (s))
    ok = look (&im, err);
  int64_t idle = 0;
  while (ok && s->best.step_ns < INT64_MAX && !search_is_over (s) && im.total > 0 && idle < 2000) {
    arena_mark mark = arena_here (im.scratch);
    error why = { 0 };
    bool changed = change (&im, &why);
    arena_back (im.scratch, mark);
    s->ticks += s->best.layout->gaps.count / 4;
    idle++;
    if (why.code) {
      ok = error_set (err, why.code, "%s", why.text);
      break;
    }
    if (!changed)
      continue;
    s->trial.found_by = "search";
    ok = search_cost (s, &s->trial, NULL, err);
    if (ok && search_keep (s)) {
      idle = 0;
      ok = look (&im, err);
    }
  }
  arena_free (im.arena);
  arena_free (im.scratch);
  return ok;
}
