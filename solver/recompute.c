#include "solver/recompute.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/units.h"
#include "solver/drops.h"

enum { FEWEST_TRIES = 60, MOST_TRIES = 1500, TRIED_OPS = 160000 };

typedef struct finding {
  const trace *t;
  const variant *cut;
  const solve_options *o;
  arena *arena, *scratch;
  rewritten rw; /* cut */
  uses uses;
  drop *drops;
  int32_t n_drops, tried, looked, limit;
  int32_t *order;
  uint8_t *chosen, *best;
  variant_value value; /* of best */
  const recompute_program *guide;
  double *dropped; /* per drop, by the guide */
} finding;

/* What marks the ops that are over the budget, and the cheap ones. */
static bool find_drops (finding *f, error *err) {
  const trace *t = f->rw.trace;
  units u;
  gaps g;
  policy_view view;
  uint8_t *over = NEW (f->arena, t->n_ops, uint8_t, err), *cheap = NULL;
  if (!over || !uses_of (t, f->arena, &f->uses, err) ||
      !units_of (t, NULL, 0, 1, 0, f->arena, &u, err) ||
      !gaps_of (&u, 1, f->o->budget_bytes, f->arena, &g, err))
    return false;
  /* Close to the budget counts: copies made again may push an op over it. */
  for (int32_t k = 0; k < t->n_ops; k++)
    over[k] = g.base_bytes[k] - g.unused_bytes > g.room_bytes - g.room_bytes / 16;
  if (f->o->recompute == RECOMPUTE_CHEAP) {
    cheap = NEW (f->arena, t->n_ops, uint8_t, err);
    if (!cheap || !policy_view_build (t, f->o->device, f->o->budget_bytes, f->o->host_bytes,
                                      f->arena, &view, err))
      return false;
    for (int32_t k = 0; k < t->n_ops; k++)
      cheap[k] = recompute_is_cheap (&view, k);
  }
  return drops_find (t, over, cheap, f->arena, &f->drops, &f->n_drops, err);
}

static bool make_variant (finding *f, const uint8_t *chosen, arena *a, variant *out, error *err) {
  *out = *f->cut;
  out->name = "recompute";
  return drops_entries (f->rw.trace, &f->uses, f->drops, f->n_drops, chosen, a, &out->recomputes,
                        &out->n_recomputes, err);
}

/* What does not fit yet is better the less it is over the budget. */
static bool is_better (const variant_value *a, const variant_value *b) {
  if (a->step_ns != b->step_ns)
    return a->step_ns < b->step_ns;
  return a->step_ns == INT64_MAX && a->over_bytes < b->over_bytes;
}

/* What the chosen are worth, as far as that may be below limit_ns; they become the best where they
   are better. */
static bool weigh (finding *f, int64_t limit_ns, variant_value *value, error *err) {
  arena_mark mark = arena_here (f->scratch);
  variant v;
  bool ok = make_variant (f, f->chosen, f->scratch, &v, err) &&
            variant_look (f->t, &v, f->o, f->scratch, value, err);
  f->looked++;
  if (ok && value->bound_ns < limit_ns) {
    f->tried++;
    ok = variant_try (f->t, &v, f->o, f->scratch, value, err);
  }
  if (ok && value->legal && is_better (value, &f->value)) {
    f->value = *value;
    memcpy (f->best, f->chosen, (size_t)f->n_drops);
  }
  arena_back (f->scratch, mark);
  return ok;
}

static bool consider (finding *f, bool *better, error *err) {
  variant_value before = f->value, value;
  bool ok = weigh (f, f->value.step_ns, &value, err);
  *better = is_better (&f->value, &before);
  return ok;
}

static bool is_over (const finding *f) {
  return f->tried >= f->limit || f->looked >= 4 * f->limit ||
         (f->o->stop && f->o->stop (f->o->stop_context));
}

/* So near to what no plan can beat that more is not worth the time. */
static bool is_near (const finding *f) {
  int64_t least_ns = f->guide ? f->guide->bound.lower_bound_ns : 0;
  return f->value.step_ns <= least_ns + least_ns / 1000;
}

typedef enum ranking { BY_OWN, BY_CHAIN, BY_SIZE, RANKINGS } ranking;

typedef struct rank_context {
  const drop *drops;
  ranking by;
} rank_context;

static int by_rank (const void *a, const void *b, void *context) {
  const rank_context *c = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  const drop *x = &c->drops[i], *y = &c->drops[j];
  __int128 p = x->bytes, q = y->bytes;
  if (c->by == BY_OWN || c->by == BY_CHAIN) {
    p = (__int128)x->bytes * ((c->by == BY_OWN ? y->own_ns : y->chain_ns) + 1);
    q = (__int128)y->bytes * ((c->by == BY_OWN ? x->own_ns : x->chain_ns) + 1);
  }
  if (p != q)
    return p > q ? -1 : 1;
  return i < j ? -1 : i > j;
}

static bool try_prefix (finding *f, int32_t n, bool *better, error *err) {
  memset (f->chosen, 0, (size_t)f->n_drops);
  for (int32_t i = 0; i < n; i++)
    f->chosen[f->order[i]] = 1;
  return consider (f, better, err);
}

/* Prefixes of one ranking: a dozen, then around the best of them, halving the distance. */
static bool prefixes (finding *f, ranking by, error *err) {
  enum { FIRST = 12 };
  rank_context c = { f->drops, by };
  int32_t best = 0, step = f->n_drops / FIRST + 1;
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
  for (int32_t n = step; n < f->n_drops + step; n += step) {
    bool better;
    if (is_over (f) || !try_prefix (f, n < f->n_drops ? n : f->n_drops, &better, err))
      return is_over (f);
    if (better)
      best = n;
  }
  for (step /= 2; best && step > 0; step /= 2)
    for (int side = -1; side <= 1; side += 2) {
      bool better;
      int32_t n = best + side * step;
      if (n < 1 || n > f->n_drops)
        continue;
      if (is_over (f) || !try_prefix (f, n, &better, err))
        return is_over (f);
      if (better)
        best = n;
    }
  return true;
}

/* How much of each drop the guide would drop: both are in order of tensors, then of ops. */
static bool take_guide (finding *f, error *err) {
  f->dropped = NEW (f->arena, f->n_drops, double, err);
  if (!f->dropped || !f->guide || !f->guide->bound.dropped)
    return f->dropped;
  const gaps *g = &f->guide->gaps;
  for (int32_t i = 0; i < f->n_drops; i++)
    for (int32_t k = g->of_unit[f->drops[i].tensor]; k < g->of_unit[f->drops[i].tensor + 1]; k++)
      if (g->at[k].after == f->drops[i].after && g->at[k].before == f->drops[i].before)
        f->dropped[i] = f->guide->bound.dropped[k];
  return true;
}

/* What the guide drops at least that much of. */
static bool thresholds (finding *f, error *err) {
  static const double least[] = { 0.97, 0.75, 0.5, 0.25, 0.05, 0.01 };
  int32_t before = -1;
  bool better;
  for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
    int32_t n = 0;
    for (int32_t k = 0; k < f->n_drops; k++)
      n += f->chosen[k] = f->dropped[k] >= least[i];
    if (n == 0 || n == before)
      continue;
    before = n;
    if (is_over (f) || !consider (f, &better, err))
      return is_over (f);
  }
  return true;
}

/* One drop more or less, those whose time a byte is nearest to the dearest chosen first. */
static bool flips (finding *f, error *err) {
  rank_context c = { f->drops, BY_OWN };
  int32_t edge = 0;
  for (int32_t i = 0; i < f->n_drops; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)f->n_drops, sizeof *f->order, by_rank, &c);
  for (int32_t i = 0; i < f->n_drops; i++)
    edge += f->best[i] != 0;
  for (bool any = true; any;) {
    any = false;
    for (int32_t i = 0; i < 2 * f->n_drops; i++) {
      int32_t at = edge + (i % 2 ? -(i + 1) / 2 : i / 2);
      bool better;
      if (at < 0 || at >= f->n_drops)
        continue;
      if (is_over (f))
        return true;
      memcpy (f->chosen, f->best, (size_t)f->n_drops);
      f->chosen[f->order[at]] ^= 1;
      if (!consider (f, &better, err))
        return false;
      any |= better;
    }
  }
  return true;
}

/* ---- a dive: what the program surely drops is dropped, and the program asked again ---- */

/* Where an op of the rewritten trace stands among those of the cut: for a copy, before which. */
static int32_t *places_of (const rewritten *rw, arena *a, error *err) {
  int32_t *at = NEW (a, rw->trace->n_ops, int32_t, err), next = 0;
  for (int32_t i = 0; at && i < rw->trace->n_ops; i++) {
    at[i] = next;
    next += !rw->ops[i].copy;
  }
  return at;
}

/* The guide of the chosen, per drop: 0 where it is chosen already. */
static bool ask_again (finding *f, bool *fits, error *err) {
  variant v;
  rewritten rw;
  gaps g;
  const double *dropped;
  error why = { 0 };
  *fits = false;
  if (!make_variant (f, f->chosen, f->scratch, &v, err))
    return false;
  if (!recompute_guide (f->t, &v, f->o, f->scratch, &rw, &g, &dropped, &why))
    return !why.code || error_set (err, why.code, "%s", why.text);
  int32_t *place = places_of (&rw, f->scratch, err);
  if (!place)
    return false;
  *fits = true;
  for (int32_t i = 0; i < f->n_drops; i++) {
    const drop *d = &f->drops[i];
    f->dropped[i] = 0;
    for (int32_t k = g.of_unit[d->tensor]; dropped && !f->chosen[i] && k < g.of_unit[d->tensor + 1];
         k++) {
      int32_t from = place[g.at[k].after] - rw.ops[g.at[k].after].copy;
      if (from >= d->after && place[g.at[k].before] <= d->before && dropped[k] > f->dropped[i])
        f->dropped[i] = dropped[k];
    }
  }
  return true;
}

static int32_t last_writer (const finding *f, const drop *d) {
  for (int32_t i = f->uses.offset[d->tensor + 1] - 1; i >= f->uses.offset[d->tensor]; i--)
    if (f->uses.at[i].op <= d->after && f->uses.at[i].writes)
      return f->uses.at[i].op;
  return d->after;
}

/* Whether one of the two is made from the other. */
static bool feeds (const finding *f, const drop *x, const drop *y) {
  const index_list *from_y = &f->rw.trace->ops[last_writer (f, x)].reads;
  const index_list *from_x = &f->rw.trace->ops[last_writer (f, y)].reads;
  for (int32_t i = 0; i < from_y->count; i++)
    if (from_y->at[i] == y->tensor)
      return true;
  for (int32_t i = 0; i < from_x->count; i++)
    if (from_x->at[i] == x->tensor)
      return true;
  return false;
}

static int by_dropped (const void *a, const void *b, void *context) {
  const double *d = context;
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  return d[i] != d[j] ? (d[i] > d[j] ? -1 : 1) : i < j ? -1 : i > j;
}

/* The surest, at most a quarter of all that it would drop, and of what is less sure an eighth; no
   two of which feed each other. Returns how many. */
static int32_t fix_some (finding *f) {
  int32_t n = 0, fixed = 0;
  for (int32_t i = 0; i < f->n_drops; i++)
    if (f->dropped[i] > 0.02)
      f->order[n++] = i;
  qsort_r (f->order, (size_t)n, sizeof *f->order, by_dropped, f->dropped);
  for (int32_t i = 0; i < n && fixed < n / 4 + 1; i++) {
    int32_t k = f->order[i], j = 0;
    if (f->dropped[k] < (fixed > n / 8 ? 0.9 : 0.3))
      break;
    while (j < fixed && !feeds (f, &f->drops[k], &f->drops[f->order[j]]))
      j++;
    if (j < fixed)
      continue;
    f->order[i] = f->order[fixed];
    f->order[fixed++] = k;
    f->chosen[k] = 1;
  }
  return fixed;
}

static bool dive (finding *f, error *err) {
  enum { MOST_ROUNDS = 12, MOST_OPS = 6000 };
  variant_value value;
  memset (f->chosen, 0, (size_t)f->n_drops);
  if (f->t->n_ops > MOST_OPS || !f->guide)
    return true;
  for (int round = 0; round < MOST_ROUNDS && !is_over (f); round++) {
    arena_mark mark = arena_here (f->scratch);
    bool fits, ok = ask_again (f, &fits, err);
    arena_back (f->scratch, mark);
    if (!ok)
      return false;
    if (!fits || fix_some (f) == 0)
      break;
    if (!weigh (f, INT64_MAX, &value, err))
      return false;
    log_say (f->o->log, LOG_DETAIL, "dive: round %d, %.6g s, compute %.6g s", round,
             value.step_ns == INT64_MAX ? -1 : (double)value.step_ns / 1e9,
             (double)value.compute_ns / 1e9);
  }
  return true;
}

/* ---- by chance ---- */

/* One to three drops change: some of the chosen for some whose time a byte is not much dearer. */
static void change (finding *f, random_state *r) {
  int32_t n = f->n_drops, last = 0;
  for (int32_t i = 0; i < n; i++)
    last = f->chosen[f->order[i]] ? i : last;
  int32_t edge = last + last / 2 + 8 < n ? last + last / 2 + 8 : n;
  for (int32_t k = (int32_t)random_between (r, 1, 3); k > 0; k--) {
    int32_t from = (int32_t)random_between (r, 0, edge - 1), steps = 0;
    bool out = random_chance (r, 500000);
    while (steps < edge && (f->chosen[f->order[(from + steps) % edge]] != 0) != out)
      steps++;
    if (steps < edge)
      f->chosen[f->order[(from + steps) % edge]] ^= 1;
  }
}

/* From the best on, by chance, until nothing has helped for long. Where nothing is swapped a look
   costs little: there it goes on, and takes what is a little worse too, and ever less of it. */
static bool exchanges (finding *f, bool anneal, error *err) {
  enum { WORSE_PPM = 8000, PATIENCE = 150 };
  rank_context c = { f->drops, BY_OWN };
  random_state r = random_seed (f->o->seed);
  int32_t n = f->n_drops, begun = f->looked, most = 4 * f->limit - begun;
  uint8_t *now = NEW (f->arena, n, uint8_t, err);
  if (!now)
    return false;
  memcpy (now, f->best, (size_t)n);
  variant_value at = f->value;
  for (int32_t i = 0; i < n; i++)
    f->order[i] = i;
  qsort_r (f->order, (size_t)n, sizeof *f->order, by_rank, &c);
  for (int32_t idle = 0; n > 1 && !is_over (f) && (anneal || idle < PATIENCE); idle++) {
    variant_value value, before = f->value;
    int64_t left_ppm = (int64_t)(most - (f->looked - begun)) * 1000000 / most;
    int64_t by_tries_ppm = (int64_t)(f->limit - f->tried) * 1000000 / f->limit;
    left_ppm = left_ppm < by_tries_ppm ? left_ppm : by_tries_ppm;
    int64_t worse_ppm = anneal ? WORSE_PPM * left_ppm / 1000000 : 0;
    int64_t limit_ns = at.step_ns == INT64_MAX
                           ? INT64_MAX
                           : at.step_ns + units_scale (at.step_ns, worse_ppm, 1000000);
    memcpy (f->chosen, now, (size_t)n);
    change (f, &r);
    if (!weigh (f, limit_ns, &value, err))
      return false;
    if (value.legal && (is_better (&value, &at) || value.step_ns < limit_ns)) {
      at = value;
      memcpy (now, f->chosen, (size_t)n);
    }
    if (is_better (&f->value, &before))
      idle = 0;
    if (is_near (f))
      break;
  }
  return true;
}

bool recompute_search (const trace *t, const variant *cut, const solve_options *o,
                       const recompute_program *guide, int32_t limit_tries, arena *a,
                       recompute_result *out, error *err) {
  static const variant nothing = { .name = "swap" };
  finding f = { .t = t, .cut = cut ? cut : &nothing, .o = o, .arena = a, .guide = guide };
  f.limit = TRIED_OPS / (t->n_ops + 1);
  f.limit = f.limit < FEWEST_TRIES ? FEWEST_TRIES : f.limit > MOST_TRIES ? MOST_TRIES : f.limit;
  f.limit = limit_tries ? limit_tries : f.limit;
  *out = (recompute_result){ .best = *f.cut, .greedy = *f.cut };
  f.scratch = arena_new (0);
  bool ok = f.scratch || error_set (err, ERR_memory, "out of memory");
  ok = ok &&
       trace_rewrite (t, f.cut->sections, f.cut->n_sections, NULL, 0, o->device->section_ns, a,
                      &f.rw, err) &&
       find_drops (&f, err) && variant_try (t, f.cut, o, f.scratch, &f.value, err);
  if (ok) {
    f.chosen = NEW (a, f.n_drops, uint8_t, err);
    f.best = NEW (a, f.n_drops, uint8_t, err);
    f.order = NEW (a, f.n_drops, int32_t, err);
    ok = f.chosen && f.best && f.order && take_guide (&f, err);
  }
  for (int by = 0; ok && by < RANKINGS; by++)
    ok = prefixes (&f, (ranking)by, err);
  ok = ok && make_variant (&f, f.best, a, &out->greedy, err);
  out->greedy.name = "greedy recompute";
  out->greedy_value = f.value;
  ok = ok && thresholds (&f, err) && dive (&f, err) && flips (&f, err) &&
       exchanges (&f, false, err) &&
       (o->recompute != RECOMPUTE_ONLY || exchanges (&f, true, err)) &&
       make_variant (&f, f.best, a, &out->best, err);
  out->value = f.value;
  out->candidates = f.n_drops;
  out->tried = f.tried;
  arena_free (f.scratch);
  return ok;
}
