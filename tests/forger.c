/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/forger.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/sections/bound.h"
#include "tests/every_way.h"
#include "tests/forger_proof.h"
#include "tests/ref_rewrite.h"
#include "trace/prove/prove.h"

enum { MOST_KINDS = 64, MOST_GENUINE = 24, RUNS = 20000, CLIMB = 250, CLIMBS = 8 };
/* Of large cases: bytes and times are so many powers of two of the small one's. */
enum { LARGE_BYTES = 31, LARGE_TIMES = 12, LARGE_RATES = LARGE_BYTES - LARGE_TIMES };

/* A class of plans, and the least that one of them takes as far as all of them were tried. */
typedef struct kind {
  int cuts; /* this one, level by level, any */
  bool these, fresh, still, has_list;
  unsigned listed;
  int64_t step_ns;
} kind;

typedef struct forging {
  tiny_case small, c; /* the same; c is the one that is proved about, and may be larger */
  int times;          /* its times are so many powers of two of the small one's */
  plan plan;          /* at hand: a cut, an entry, or neither */
  int64_t compute_ns, small_ns;
  int32_t n_ops[2 + LOOSE_ORDERS]; /* with the plan's cut and entry; with its cut; loosened */
  const loosened *loose;           /* one for each order */
  kind kinds[MOST_KINDS];
  int n_kinds;
  forged genuine[MOST_GENUINE];
  int n_genuine;
  arena *arena, *scratch;
  arena_mark empty;
  random_state random;
  forger_tally *n;
  error *err;
} forging;

/* ---- the best there is ---- */

static bool same_kind (const kind *a, const kind *b) {
  return a->cuts == b->cuts && a->these == b->these && a->fresh == b->fresh &&
         a->still == b->still && a->has_list == b->has_list && a->listed == b->listed;
}

/* With the plan's own cut, and with its entry where the class has that: what swaps can do. */
static bool best_as_it_is (forging *f, bool entry, arena *a, int64_t *step_ns) {
  rewritten made;
  best_plan best;
  const plan *p = &f->plan;
  tiny_case c = f->small;
  trace t;
  if (!ref_rewrite (f->small.trace, p->sections, p->n_sections, p->recomputes,
                    entry ? p->n_recomputes : 0, f->small.device.section_ns, a, &made, f->err))
    return false;
  t = *made.trace;
  c.trace = &t;
  if (t.n_ops > 12 || t.n_tensors > 12 ||
      !best_search (&c, 3 * f->small_ns, RUNS, a, &best, f->err))
    return f->err->code == ERR_none;
  *step_ns = best.plan ? best.step_ns : *step_ns;
  return true;
}

static bool find_best (forging *f, kind *k) {
  every_allowed allowed = { .parts = k->cuts > 0,
                            .level_only = k->cuts == 1,
                            .drops = !k->these,
                            .fresh = k->fresh,
                            .still = k->still,
                            .has_list = k->has_list,
                            .listed = k->listed,
                            .below_ns = 3 * f->small_ns,
                            .most_runs = RUNS };
  bool bare = !f->plan.n_sections && !f->plan.n_recomputes, ok = true;
  arena *a = arena_new (0);
  k->step_ns = INT64_MAX;
  f->n->classes++;
  if (!a)
    return error_set (f->err, ERR_memory, "out of memory");
  if (k->cuts > 0 || bare) {
    every_way all;
    ok = every_way_search (&f->small, &allowed, &all, f->err);
    k->step_ns = ok && all.step_ns < allowed.below_ns ? all.step_ns : INT64_MAX;
  } else if (!k->still)
    ok = best_as_it_is (f, k->these, a, &k->step_ns);
  arena_free (a);
  if (k->step_ns < INT64_MAX)
    k->step_ns <<= f->times;
  return ok;
}

static bool best_of (forging *f, kind *k) {
  for (int i = 0; i < f->n_kinds; i++)
    if (same_kind (k, &f->kinds[i])) {
      *k = f->kinds[i];
      return true;
    }
  if (!find_best (f, k))
    return false;
  if (f->n_kinds < MOST_KINDS)
    f->kinds[f->n_kinds++] = *k;
  return true;
}

/* What the figures of a proof say that it is about. */
static kind kind_of (const forging *f, const forged *p) {
  kind k = { .cuts = !p->sections               ? 0
                     : p->orders == LOOSE_LEVEL ? 1
                                                : 2,
             .these = !p->drops,
             .fresh = p->fresh,
             .still = p->drops == PROOF_DROPS_only,
             .has_list = p->drops && p->has_again };
  const int32_t *of = p->sections ? f->loose[p->orders].of : NULL;
  for (int32_t i = 0; k.has_list && i < FORGED_SLOTS; i++)
    if (p->again >> i & 1 && (!of || of[i] != NO_OP))
      k.listed |= 1u << (of ? of[i] : i);
  return k;
}

/* What a file may say, and the classes that it names so. */
static const struct {
  cover cover;
  kind kind;
} claims[] = {
#define SWAPS .swaps = true
#define ANY_DROP .drops = COVER_DROPS_ANY
#define KEPT ANY_DROP, .kept = true
  { { SWAPS, KEPT, .sections = COVER_SECTIONS_ANY, .order = COVER_ORDER_ANY }, { .cuts = 2 } },
  { { SWAPS }, { .these = true } },
  { { SWAPS, .drops = COVER_DROPS_GIVEN }, { .these = true } },
  { { SWAPS, .sections = COVER_SECTIONS_GIVEN }, { .these = true } },
  { { SWAPS, KEPT }, { .cuts = 0 } },
  { { SWAPS, ANY_DROP }, { .fresh = true } },
  { { KEPT }, { .still = true } },
  { { SWAPS, .sections = COVER_SECTIONS_ANY }, { .cuts = 2, .these = true } },
  { { SWAPS, .sections = COVER_SECTIONS_LEVEL }, { .cuts = 1, .these = true } },
  { { SWAPS, KEPT, .sections = COVER_SECTIONS_ANY }, { .cuts = 2 } },
};

/* ---- one try ---- */

static bool wrong (forging *f, const char *text, int64_t shown_ns, const kind *k, const char *why) {
  return error_set (f->err, ERR_internal, "%lld ns pass, a plan takes %lld: %s; %.300s",
                    (long long)shown_ns, (long long)k->step_ns, why, text);
}

/* The plan's step is not told, so that nothing but the duals stands against a forgery. */
static bool prove_it (forging *f, const char *text, int64_t claim_ns, const cover *said,
                      proved *got, error *why) {
  *why = (error){ 0 };
  f->plan.certificate = (certificate){ .lower_bound_ns = claim_ns,
                                       .has_cover = said,
                                       .cover = said ? *said : (cover){ 0 },
                                       .gap = INFINITY,
                                       .proof = text };
  return prove_plan (f->c.trace, &f->plan, INT64_MAX, f->scratch, got, why);
}

/* *shown: what the prover says it is worth; -1: it was refused. */
static bool try_proof (forging *f, forged *p, int64_t *shown) {
  proved got;
  error why;
  int has, due;
  arena_back (f->scratch, f->empty);
  const char *text = forged_text (p, f->scratch, f->err);
  bool ok = text && prove_it (f, text, 0, NULL, &got, &why);
  if (text && !ok && sscanf (why.text, "the proof has %d shares; %d are due", &has, &due) == 2 &&
      due <= FORGED_SHARES) { /* as many as there are rows for */
    for (int32_t i = p->n_shares; i < due; i++)
      p->shares[i] = random_between (&f->random, 0, (int64_t)1 << 31);
    p->n_shares = due;
    text = forged_text (p, f->scratch, f->err);
    ok = text && prove_it (f, text, 0, NULL, &got, &why);
  }
  if (!text)
    return false;
  f->n->tries++;
  *shown = ok ? got.lower_bound_ns : -1;
  f->n->read += ok;
  if (!ok || *shown <= f->compute_ns)
    return true;
  kind k = kind_of (f, p);
  if (!best_of (f, &k))
    return false;
  if (*shown > k.step_ns)
    return wrong (f, text, *shown, &k, "by its own class");
  f->n->above++;
  f->n->best += *shown == k.step_ns;
  size_t i = (size_t)random_between (&f->random, 0, sizeof claims / sizeof *claims - 1);
  if (!prove_it (f, text, *shown, &claims[i].cover, &got, &why))
    return true;
  char words[COVER_TEXT];
  k = claims[i].kind;
  return best_of (f, &k) &&
         (*shown <= k.step_ns || wrong (f, text, *shown, &k, cover_text (&claims[i].cover, words)));
}

/* ---- a trace, a plan, and genuine proofs to begin with ---- */

static bool take_genuine (forging *f, const char *text) {
  proof p;
  proof_ops n = { f->n_ops[0], f->n_ops[1], { f->n_ops[2], f->n_ops[3] } };
  if (!text || f->n_genuine == MOST_GENUINE)
    return true;
  if (!proof_read (text, &n, f->arena, &p, f->err))
    return false;
  int32_t ops = p.sections ? n.loosened[p.orders] : p.drops ? n.cut : n.rewritten;
  f->n_genuine += forged_of (&p, ops, &f->genuine[f->n_genuine]);
  return true;
}

/* Of the plan's own trace; for less memory than there is they prove more than is true. */
static bool genuine_flows (forging *f, const trace *t, const trace *cut) {
  for (int i = 0; i < 15; i++) {
    bound b;
    units u;
    gaps g;
    error why = { 0 };
    bound_options o = { .dev = &f->plan.device,
                        .host_bytes = f->plan.host_bytes,
                        .any_units = i >= 3,
                        .classes = 1 + i % 3,
                        .drops = (flow_drops)(i >= 6 ? 1 + (i >= 12) : 0),
                        .fresh = i >= 9 && i < 12,
                        .keep_proof = true };
    int64_t granule = o.any_units ? 1 : f->plan.device.granule_bytes;
    int64_t less = f->plan.budget_bytes - i % 3 * f->plan.device.granule_bytes;
    if (less < 0)
      continue;
    if (!units_of (o.drops ? cut : t, NULL, 0, granule, 0, f->arena, &u, f->err) ||
        !gaps_of (&u, granule, less, f->arena, &g, f->err))
      return false;
    if (less >= g.floor_bytes && bound_of (&g, &o, f->arena, &b, &why) &&
        !take_genuine (f, b.proof))
      return false;
  }
  return true;
}

static bool genuine_cuts (forging *f) {
  for (int i = 0; i < 6; i++) {
    bound b;
    error why = { 0 };
    static const recompute_mode modes[] = { RECOMPUTE_OFF, RECOMPUTE_AUTO, RECOMPUTE_ONLY };
    solve_options o = { .device = &f->plan.device,
                        .budget_bytes = f->plan.budget_bytes,
                        .host_bytes = f->plan.host_bytes,
                        .keep_proof = true,
                        .sections = SECTIONS_AUTO,
                        .section_orders = i & 1 ? ORDERS_LEVEL : ORDERS_AUTO,
                        .recompute = modes[i / 2] };
    if (sections_bound (f->c.trace, &o, f->arena, &b, &why) && !take_genuine (f, b.proof))
      return false;
  }
  return true;
}

/* Bytes, rates and times far larger, in proportion: all plans take as much longer. */
static void enlarge (tiny_case *c) {
  for (int32_t x = 0; x < c->trace->n_tensors; x++)
    c->trace->tensors[x].bytes <<= LARGE_BYTES;
  for (int32_t k = 0; k < c->trace->n_ops; k++) {
    op *o = &c->trace->ops[k];
    o->workspace_bytes <<= LARGE_BYTES;
    o->ns <<= LARGE_TIMES;
    o->gap_ns <<= LARGE_TIMES;
  }
  device *d = &c->device;
  d->memory_bytes = d->host_bytes = MOST_BYTES;
  d->granule_bytes <<= LARGE_BYTES;
  d->section_ns <<= LARGE_TIMES;
  d->link.copy_ns <<= LARGE_TIMES;
  d->link.d2h_bytes_per_s <<= LARGE_RATES;
  d->link.h2d_bytes_per_s <<= LARGE_RATES;
  d->link.both_bytes_per_s <<= LARGE_RATES;
  c->budget_bytes <<= LARGE_BYTES;
}

static bool choose_plan (forging *f) {
  random_state *r = &f->random;
  plan *p = &f->plan;
  const trace *t = f->c.trace;
  *p = (plan){ .device = f->c.device,
               .budget_bytes = f->c.budget_bytes,
               .host_bytes = f->c.device.host_bytes,
               .n_moves = random_chance (r, 500000),
               .has_certificate = true,
               .placement.granule_bytes = f->c.device.granule_bytes };
  int64_t what = random_between (r, 0, 3);
  if (what == 0) {
    recompute *entries;
    int32_t count;
    if (!every_entry (t, f->compute_ns, f->arena, &entries, &count, f->err))
      return false;
    if (count > 0)
      p->recomputes = &entries[random_between (r, 0, count - 1)];
    p->n_recomputes = count > 0;
  } else if (what == 1) {
    section *s = NEW (f->arena, 1, section, f->err);
    rewritten made;
    error why = { 0 };
    int32_t k = (int32_t)random_between (r, 0, t->n_ops - 1);
    if (!s)
      return false;
    *s = (section){ k, k + 1, 2, SECTION_LEVEL };
    p->sections = s;
    rewriting one = { .sections = s, .n_sections = 1 };
    p->n_sections = trace_rewrite (t, &one, f->arena, &made, &why);
  }
  return true;
}

static bool make_case (const forging *f, uint64_t seed, tiny_case *out) {
  bool parts = seed % 2;
  int32_t most_ops = parts ? 3 : 4 + (int32_t)(seed / 2 % 2);
  return seed % 5 == 4 ? tiny_make (seed, f->arena, out, f->err)
                       : tiny_make_cut (seed, parts, most_ops, f->arena, out, f->err);
}

static bool prepare (forging *f, uint64_t seed, bool *usable) {
  rewritten all, cut;
  loosened *l = NEW (f->arena, LOOSE_ORDERS, loosened, f->err);
  *usable = false;
  if (!l || !make_case (f, seed, &f->small) || !make_case (f, seed, &f->c))
    return f->err->code == ERR_none;
  if (seed % 6 == 0) { /* in which no op has parts: those of large ops are rounded otherwise */
    enlarge (&f->c);
    f->times = LARGE_TIMES;
  }
  f->small_ns = trace_total_ns (f->small.trace);
  f->compute_ns = trace_total_ns (f->c.trace);
  if (!choose_plan (f) || !plan_rewrite (f->c.trace, &f->plan, f->arena, &all, f->err) ||
      !plan_cut (f->c.trace, &f->plan, f->arena, &cut, f->err))
    return false;
  for (int i = 0; i < LOOSE_ORDERS; i++) {
    if (!trace_loosen (f->c.trace, (loose_orders)i, f->arena, &l[i], f->err))
      return false;
    f->n_ops[2 + i] = l[i].trace->n_ops;
  }
  f->n_ops[0] = all.trace->n_ops;
  f->n_ops[1] = cut.trace->n_ops;
  f->loose = l;
  if (!genuine_flows (f, all.trace, cut.trace) || !genuine_cuts (f))
    return false;
  *usable = f->n_genuine > 0;
  return true;
}

/* ---- many tries ---- */

/* Uphill: what seems to prove more is changed on. */
static bool climb (forging *f) {
  forged now = f->genuine[random_between (&f->random, 0, f->n_genuine - 1)];
  int64_t stands = -1;
  for (int i = 0; i < CLIMB; i++) {
    forged next = now;
    int64_t shown = -1;
    for (int64_t k = i ? random_between (&f->random, 1, 4) : 0; k > 0; k--) {
      int32_t ops = next.sections ? f->n_ops[2 + next.orders] : f->n_ops[next.drops ? 1 : 0];
      forged_change (&next, ops, &f->random);
    }
    if (!try_proof (f, &next, &shown))
      return false;
    if (shown >= stands || random_chance (&f->random, 20000)) {
      now = next;
      stands = shown;
    }
  }
  return true;
}

bool forger_run (uint64_t seed, int64_t tries, forger_tally *n, error *err) {
  int64_t until = n->tries + tries;
  bool ok = true;
  for (; ok && n->tries < until; seed++) {
    forging *f = NULL;
    bool usable;
    arena *a = arena_new (0);
    f = a ? NEW (a, 1, forging, err) : NULL;
    if (!f) {
      arena_free (a);
      return err->code ? false : error_set (err, ERR_memory, "out of memory");
    }
    *f = (forging){ .arena = a, .n = n, .err = err, .random = random_seed (seed) };
    f->scratch = arena_new (0);
    ok = (f->scratch || error_set (err, ERR_memory, "out of memory")) && prepare (f, seed, &usable);
    if (f->scratch)
      f->empty = arena_here (f->scratch);
    n->traces += ok && usable;
    for (int i = 0; ok && usable && i < CLIMBS && n->tries < until; i++)
      ok = climb (f);
    arena_free (f->scratch);
    arena_free (a);
  }
  if (!ok) {
    error why = *err;
    *err = (error){ 0 };
    error_set (err, why.code, "seed %llu: %s", (unsigned long long)seed - 1, why.text);
  }
  return ok;
}
