/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rewriter against tests/ref_rewrite: random traces, random lists, most of them refused. */
#include <stdio.h>

#include "base/random.h"
#include "tests/random_case.h"
#include "tests/ref_rewrite.h"
#include "tests/same_trace.h"
#include "tests/suite.h"

typedef struct lists {
  section sections[3];
  recompute recomputes[4];
  int32_t n_sections, n_recomputes;
} lists;

static int32_t pick (random_state *r, int64_t low, int64_t high) {
  return (int32_t)random_between (r, low, high > low ? high : low);
}

/* Parts mostly what the ops allow; ranges mostly sorted. */
static void random_sections (random_state *r, const trace *t, lists *out) {
  int32_t from = 0;
  out->n_sections = pick (r, 0, 2);
  for (int32_t i = 0; i < out->n_sections; i++) {
    section *s = &out->sections[i];
    s->first = random_chance (r, 30000) ? pick (r, 0, t->n_ops - 1) : pick (r, from, t->n_ops - 1);
    s->end = s->first + pick (r, random_chance (r, 20000) ? 0 : 1, 3);
    int64_t most = t->batch;
    for (int32_t k = s->first; k < s->end && k < t->n_ops; k++)
      most = t->ops[k].parts < most ? t->ops[k].parts : most;
    s->parts = random_chance (r, 50000) ? pick (r, 1, t->batch + 1) : pick (r, 2, most);
    s->order = random_chance (r, 500000) ? SECTION_DEPTH : SECTION_LEVEL;
    from = s->end;
  }
}

/* Of a trace that has been cut by the sections already. */
static bool random_recomputes (random_state *r, const trace *t, arena *a, lists *out, error *err) {
  int32_t before = 1;
  out->n_recomputes = pick (r, 0, 4);
  for (int32_t i = 0; i < out->n_recomputes; i++) {
    recompute *e = &out->recomputes[i];
    before = e->before =
        random_chance (r, 20000) ? pick (r, 0, t->n_ops) : pick (r, before, t->n_ops - 1);
    e->ops = (index_list){ NEW (a, 4, int32_t, err), pick (r, 1, 3) };
    e->replaces = (index_list){ NEW (a, 4, int32_t, err), 0 };
    if (!e->ops.at || !e->replaces.at)
      return false;
    for (int32_t j = 0; j < e->ops.count; j++) {
      int32_t k = e->ops.at[j] = pick (r, 0, e->before - (random_chance (r, 980000) ? 1 : 0));
      const index_list *w = &t->ops[k < t->n_ops ? k : 0].writes;
      int32_t x = w->count ? w->at[pick (r, 0, w->count - 1)] : pick (r, 0, t->n_tensors - 1);
      bool twice = false;
      for (int32_t n = 0; n < e->replaces.count; n++)
        twice |= e->replaces.at[n] == x;
      if (!twice && random_chance (r, 700000))
        e->replaces.at[e->replaces.count++] = x;
    }
  }
  return true;
}

static bool add_samples (random_state *r, trace *t, arena *a, error *err) {
  t->n_samples = pick (r, 0, 2);
  t->ns_samples = NEW (a, t->n_samples * t->n_ops + 1, int64_t, err);
  for (int32_t i = 0; t->ns_samples && i < t->n_samples * t->n_ops; i++)
    t->ns_samples[i] = random_between (r, 0, 1000);
  return t->ns_samples;
}

typedef struct tally {
  int same, refused, cut, copied;
} tally;

/* The lists of a maker that knows the rewriter, every other time lists that know nothing. */
static void compare (uint64_t seed, arena *a, tally *n) {
  error err = { 0 }, refused = { 0 }, ref_refused = { 0 };
  random_state r = random_seed (seed);
  random_case c;
  lists l = { 0 };
  case_options o = { .seed = seed, .features = CASE_EVERYTHING };
  ck_assert_msg (random_case_make (&o, a, &c, &err), "seed %llu: %s", (unsigned long long)seed,
                 err.text);
  ck_assert (add_samples (&r, c.trace, a, &err));
  const section *sections = c.plan->sections;
  const recompute *recomputes = c.plan->recomputes;
  l.n_sections = c.plan->n_sections;
  l.n_recomputes = c.plan->n_recomputes;
  rewritten x, y;
  if (seed % 2) {
    random_sections (&r, c.trace, &l);
    sections = l.sections;
    recomputes = l.recomputes;
    error ignored = { 0 };
    bool ok = ref_rewrite (c.trace, sections, l.n_sections, NULL, 0, 7, a, &x, &ignored);
    l.n_recomputes = 0;
    ck_assert (random_recomputes (&r, ok ? x.trace : c.trace, a, &l, &err));
  }
  bool ok = trace_rewrite (c.trace,
                           &(rewriting){ .sections = sections,
                                         .n_sections = l.n_sections,
                                         .recomputes = recomputes,
                                         .n_recomputes = l.n_recomputes,
                                         .section_ns = 7 },
                           a, &x, &refused);
  bool ref_ok = ref_rewrite (c.trace, sections, l.n_sections, recomputes, l.n_recomputes, 7, a, &y,
                             &ref_refused);
  ck_assert_msg (ok == ref_ok, "seed %llu: the rewriter says `%s: %s`, the reference `%s`",
                 (unsigned long long)seed, refused.where, ok ? "yes" : refused.text,
                 ref_ok ? "yes" : ref_refused.text);
  char difference[DIFFERENCE];
  if (ok)
    ck_assert_msg (same_rewritten (&x, &y, difference), "seed %llu: %s", (unsigned long long)seed,
                   difference);
  n->same += ok;
  n->refused += !ok;
  n->cut += ok && l.n_sections;
  n->copied += ok && l.n_recomputes;
}

CLAIM (two_rewriters_agree_on_random_lists) {
  int wanted = suite_cases (4000);
  tally n = { 0 };
  for (int i = 0; i < wanted; i++) {
    arena *a = arena_new (64 << 20);
    ck_assert_ptr_nonnull (a);
    compare (i, a, &n);
    arena_free (a);
  }
  printf ("%d rewritten alike (%d cut, %d with copies), %d refused by both\n", n.same, n.cut,
          n.copied, n.refused);
  ck_assert_int_gt (n.cut, wanted / 20);
  ck_assert_int_gt (n.copied, wanted / 20);
  ck_assert_int_gt (n.refused, wanted / 20);
}

int main (void) {
  return suite_run ("rewrite twice", 900);
}
