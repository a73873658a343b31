/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layouts: every tensor stands for itself once, groups take the shares of their members, and the
   groups of large tensors waste less memory than the tensors alone. */
#include <math.h>

#include "solver/attempt/layout.h"
#include "solver/flow/bound.h"
#include "solver/attempt/parts.h"
#include "solver/attempt/round.h"
#include "tests/suite.h"
#include "trace/zoo/zoo.h"

typedef struct setting {
  device dev;
  trace *t;
  units u;
  gaps singles;
  double *share;
} setting;

static void set (setting *s, const char *network, int64_t batch, int percent, arena *a) {
  error err = { 0 };
  s->dev =
      (device){ .name = "test",
                .memory_bytes = (int64_t)1 << 46,
                .granule_bytes = 2 << 20,
                .host_bytes = (int64_t)1 << 46,
                .link = { 12000000000, 12000000000, 24000000000, 10000 },
                .share_ppm = 1000000,
                .has_roofline = true,
                .roofline = { .fp32_flops = 11000000000000, .memory_bytes_per_s = 500000000000 } };
  zoo_request r = { .name = network, .batch = batch, .device = &s->dev };
  s->t = zoo_trace (&r, a, &err);
  ck_assert_msg (
      s->t && units_of (s->t, NULL, 0, 1, 0, a, &s->u, &err) &&
          gaps_of (&s->u, 1, INT64_MAX / 8, a, &s->singles, &err) &&
          gaps_of (&s->u, 1, s->singles.peak_bytes / 100 * percent, a, &s->singles, &err),
      "%s", err.text);
  s->share = NEW (a, s->singles.count, double, &err);
  for (int32_t i = 0; i < s->singles.count; i++)
    s->share[i] = s->singles.at[i].tight;
}

static void make (const setting *s, layout_kind kind, bool shares, arena *a, layout *out) {
  error err = { 0 };
  layout_request q = { .trace = s->t,
                       .kind = kind,
                       .device = &s->dev,
                       .budget_bytes = s->singles.room_bytes,
                       .singles = shares ? &s->singles : NULL,
                       .share = shares ? s->share : NULL };
  ck_assert_msg (layout_make (&q, a, out, &err), "%s", err.text);
}

CLAIM (every_tensor_is_one_unit_or_in_one_group) {
  static const char *const names[] = { "resnet50", "densenet121", "charrnn" };
  for (int n = 0; n < 3; n++)
    for (layout_kind kind = 0; kind < LAYOUTS; kind++) {
      arena *a = arena_new (0);
      error err = { 0 };
      setting s;
      layout l;
      set (&s, names[n], 16, 60, a);
      make (&s, kind, true, a, &l);
      int32_t *seen = NEW (a, s.t->n_tensors, int32_t, &err);
      for (int32_t g = 0; g < l.n_groups; g++)
        for (int32_t j = 0; j < l.groups[g].count; j++)
          seen[l.groups[g].at[j]]++;
      for (int32_t i = 0; i < s.t->n_tensors; i++)
        ck_assert_int_le (seen[i], 1);
      for (int32_t u = 0; u < l.step.units.count; u++)
        if (l.step.units.at[u].bytes) {
          ck_assert_int_ge (l.of[u], 1);
          ck_assert_int_le (l.of[u], l.step.units.at[u].granules);
        }
      for (int32_t i = 0; i < l.step.gaps.count; i++)
        ck_assert (l.share[i] >= 0 && l.share[i] <= 1);
      arena_free (a);
    }
}

/* Where all members leave in a gap that is nearly theirs, so does the group; where none leaves,
   nothing of it does. */
CLAIM_IN_ARENA (a_group_takes_the_shares_of_its_members) {
  setting s;
  layout l;
  set (&s, "densenet121", 32, 60, a);
  int32_t whole = 0;
  for (int round = 0; round < 2; round++) {
    for (int32_t i = 0; i < s.singles.count; i++)
      s.share[i] = round;
    make (&s, LAYOUT_LARGE, true, a, &l);
    ck_assert_int_gt (l.n_groups, 0);
    for (int32_t i = 0; i < l.step.gaps.count; i++)
      if (round == 0)
        ck_assert (l.share[i] == 0);
      else if (l.step.gaps.at[i].unit >= s.t->n_tensors)
        whole += l.share[i] > 0.999;
  }
  ck_assert_int_ge (whole, l.n_groups / 2);
}

CLAIM (large_groups_waste_less_of_their_granules) {
  static const char *const names[] = { "resnet152", "densenet121", "inception3" };
  for (int n = 0; n < 3; n++) {
    arena *a = arena_new (0);
    setting s;
    layout large, small;
    set (&s, names[n], 64, 60, a);
    make (&s, LAYOUT_LARGE, false, a, &large);
    make (&s, LAYOUT_SMALL, false, a, &small);
    ck_assert_int_ge (large.step.gaps.peak_bytes, s.singles.peak_bytes);
    ck_assert_msg (2 * (large.step.gaps.peak_bytes - s.singles.peak_bytes) <=
                       small.step.gaps.peak_bytes - s.singles.peak_bytes,
                   "%s: %lld, %lld, %lld", names[n], (long long)large.step.gaps.peak_bytes,
                   (long long)small.step.gaps.peak_bytes, (long long)s.singles.peak_bytes);
    arena_free (a);
  }
}

CLAIM_IN_ARENA (only_so_many_units_are_cut_finely) {
  setting s;
  layout l;
  set (&s, "resnet50", 64, 60, a);
  for (int32_t i = 0; i < s.singles.count; i++)
    s.share[i] = s.singles.at[i].tight ? 0.5 : 0;
  make (&s, LAYOUT_MIDDLE, true, a, &l);
  parts_rule every = { .most = MOST_SECTIONS, .splits = INT32_MAX, .far_latencies = 1600 };
  int32_t *all = NEW (a, l.step.units.count, int32_t, &err), finer = 0;
  int32_t *none = NEW (a, l.step.units.count, int32_t, &err);
  ck_assert (all && none && parts_choose (&l.step.gaps, &s.dev, l.share, &every, a, all, &err) &&
             parts_choose (&l.step.gaps, &s.dev, NULL, &every, a, none, &err));
  for (int32_t u = 0; u < l.step.units.count; u++) {
    ck_assert_int_le (l.of[u], all[u]);
    ck_assert_int_ge (none[u], all[u]); /* without shares nothing is known of what leaves */
    finer += l.of[u] < all[u];
  }
  ck_assert_int_gt (finer, 0);
}

/* Of the three networks whose programs take long; `make bench` has all of them. */
static int programs (void) {
  return suite_cases (2);
}

/* The program's own answer. */
static void solve_shares (setting *s, arena *a) {
  error err = { 0 };
  bound b;
  bound_options o = { .dev = &s->dev, .host_bytes = s->dev.host_bytes, .any_units = true };
  ck_assert_msg (bound_of (&s->singles, &o, a, &b, &err), "%s", err.text);
  s->share = b.share;
}

static bool leaves (const setting *s, int32_t tensor) {
  for (int32_t i = s->singles.of_unit[tensor]; i < s->singles.of_unit[tensor + 1]; i++)
    if (s->share[i] > 0.02)
      return true;
  return false;
}

/* Very many answers of the program cost the same; the price prefers long rests. */
CLAIM (the_program_sends_few_tensors_in_part) {
  static const char *const names[] = { "resnet50", "densenet121", "inception3" };
  for (int n = 0; n < programs (); n++) {
    arena *a = arena_new (0);
    setting s;
    set (&s, names[n], 64, 60, a);
    solve_shares (&s, a);
    int32_t sent = 0, part = 0;
    for (int32_t i = 0; i < s.singles.count; i++) {
      sent += s.share[i] > 0.02;
      part += s.share[i] > 0.02 && s.share[i] < 0.98;
    }
    ck_assert_int_gt (sent, 20);
    ck_assert_msg (part <= sent / 2, "%s: %d of %d in part", names[n], part, sent);
    arena_free (a);
  }
}

CLAIM_IN_ARENA (what_leaves_and_what_stays_are_not_mixed) {
  setting s;
  set (&s, "densenet121", 32, 60, a);
  solve_shares (&s, a);
  for (layout_kind kind = 0; kind < LAYOUT_LARGE; kind++) {
    layout l;
    make (&s, kind, true, a, &l);
    int32_t stay = 0;
    for (int32_t g = 0; g < l.n_groups; g++) {
      const index_list *m = &l.groups[g];
      for (int32_t j = 1; j < m->count; j++)
        ck_assert_int_eq (leaves (&s, m->at[j]), leaves (&s, m->at[0]));
      stay += !leaves (&s, m->at[0]);
    }
    ck_assert (stay > 0 && stay < l.n_groups);
  }
}

/* Bytes of the largest group of persistent tensors that leave. */
static int64_t largest_state (const setting *s, const layout *l) {
  int64_t most = 0;
  for (int32_t g = 0; g < l->n_groups; g++) {
    const index_list *m = &l->groups[g];
    int64_t bytes = 0;
    for (int32_t j = 0; j < m->count; j++)
      bytes += unit_member_bytes (s->t->tensors[m->at[j]].bytes);
    if (s->t->tensors[m->at[0]].persistent && leaves (s, m->at[0]) && bytes > most)
      most = bytes;
  }
  return most;
}

static int64_t state_at (setting *s, int64_t copy_ns, layout_kind kind, arena *a) {
  layout l;
  s->dev.link.copy_ns = copy_ns;
  make (s, kind, true, a, &l);
  return largest_state (s, &l);
}

/* A latency as long as some tensors' copies asks for larger groups of what is updated, and a
   hundred times that for ten times as large ones, as far as the budget lets them. */
CLAIM_IN_ARENA (state_is_grouped_by_what_latency_costs) {
  setting s;
  set (&s, "resnet50", 2, 50, a);
  solve_shares (&s, a);
  double crosses = 0;
  for (int32_t i = 0; i < s.singles.count; i++)
    crosses += s.share[i] * (double)s.u.at[s.singles.at[i].unit].bytes;
  int64_t none = state_at (&s, 0, LAYOUT_STATE, a), some = state_at (&s, 10000, LAYOUT_STATE, a),
          much = state_at (&s, 1000000, LAYOUT_STATE, a),
          plain = state_at (&s, 10000, LAYOUT_MIDDLE, a);
  double best = 2 * sqrt (crosses * 120000 / 2); /* 120,000 bytes in 10 us */
  ck_assert (none > 0 && none <= s.dev.granule_bytes);
  ck_assert (plain > 0 && plain < some && some < much);
  ck_assert ((double)some <= best && (double)some > best / 2);
}

/* What stays over the peak, in granules, wastes less than a third of what it would tensor by
 * tensor.
 */
CLAIM (what_stays_is_packed_densely) {
  static const char *const names[] = { "resnet152", "densenet121", "inception3" };
  for (int n = 0; n < programs (); n++) {
    arena *a = arena_new (0);
    setting s;
    layout l;
    set (&s, names[n], 64, 60, a);
    solve_shares (&s, a);
    make (&s, LAYOUT_MIDDLE, true, a, &l);
    int32_t k = s.singles.peak_op;
    int64_t granule = s.dev.granule_bytes, packed = 0, alone = 0;
    for (int32_t i = 0; i < l.step.units.count; i++) {
      const unit_info *x = &l.step.units.at[i];
      bool group = i >= s.t->n_tensors;
      if (x->bytes && !leaves (&s, group ? l.groups[i - s.t->n_tensors].at[0] : i) &&
          (x->persistent || (x->first <= k && k <= x->last)))
        packed += x->granules * granule - x->bytes;
    }
    for (int32_t i = 0; i < s.t->n_tensors; i++) {
      const unit_info *x = &s.u.at[i];
      if (x->bytes >= granule / 32 && !leaves (&s, i) &&
          (x->persistent || (x->first <= k && k <= x->last)))
        alone += (granule - x->bytes % granule) % granule;
    }
    ck_assert_msg (3 * packed <= alone, "%s: %lld of %lld", names[n], (long long)packed,
                   (long long)alone);
    arena_free (a);
  }
}

/* Naively: what the link has carried since the fullest op p, or will have until then: for each
   moment j between them, no more than was free from j on and what it carries from j to k. */
static int64_t carried (const int64_t *alive, const int64_t *ends_ns, int32_t n, int32_t p,
                        int32_t k) {
  int32_t way = k > p ? 1 : -1;
  int64_t least = INT64_MAX, most = 0;
  for (int32_t i = k; i >= 0 && i < n; i += way)
    most = alive[i] > most ? alive[i] : most;
  for (int32_t j = k; j != p - way; j -= way) {
    most = alive[j] > most ? alive[j] : most; /* from j on */
    int64_t ns = way > 0 ? ends_ns[k] - ends_ns[j] : ends_ns[j] - ends_ns[k];
    int64_t bytes = alive[p] - most + ns * 12;
    least = bytes < least ? bytes : least;
  }
  return least;
}

/* Ops at which groups of what stays live longer than their members and would hold up what the link
   carries meanwhile. */
static int32_t ops_in_the_way (const setting *s, const layout *l, arena *a, int32_t *longer) {
  error err = { 0 };
  int32_t n = s->t->n_ops, bad = 0, p = s->singles.peak_op;
  int64_t *alive = s->singles.base_bytes, *extra = NEW (a, n, int64_t, &err);
  int64_t *ends_ns = trace_ends (s->t, a, &err);
  ck_assert (extra && ends_ns);
  for (int32_t g = 0; g < l->n_groups; g++) {
    const unit_info *unit = &l->step.units.at[s->t->n_tensors + g];
    const index_list *m = &l->groups[g];
    for (int32_t j = 0; j < m->count && !unit->persistent && !leaves (s, m->at[0]); j++) {
      const unit_info *x = &s->u.at[m->at[j]];
      for (int32_t k = unit->first; k <= unit->last; k++)
        extra[k] += k < x->first || k > x->last ? x->bytes : 0;
    }
  }
  *longer = 0;
  for (int32_t k = 0; k < n; k++)
    if (extra[k] > 0) {
      ++*longer;
      bad += alive[k] + extra[k] + carried (alive, ends_ns, n, p, k) > alive[p] + 4096 * n;
    }
  return bad;
}

CLAIM_IN_ARENA (what_stays_longer_leaves_room_for_what_comes_back) {
  setting s;
  layout l;
  int32_t longer;
  set (&s, "inception3", 64, 60, a);
  solve_shares (&s, a);
  make (&s, LAYOUT_MIDDLE, true, a, &l);
  ck_assert_int_eq (ops_in_the_way (&s, &l, a, &longer), 0);
  ck_assert_int_gt (longer, s.t->n_ops / 20);
  s.dev.link.d2h_bytes_per_s = s.dev.link.h2d_bytes_per_s = 12000000; /* made for a slower link */
  make (&s, LAYOUT_MIDDLE, true, a, &l);
  ck_assert_int_gt (ops_in_the_way (&s, &l, a, &longer), 0);
}

/* The unit's one gap over the fullest op, if most of it leaves there. */
static const gap *gap_over (const layout *l, int32_t unit, int32_t op) {
  const gaps *g = &l->step.gaps;
  for (int32_t i = g->of_unit[unit]; i < g->of_unit[unit + 1]; i++)
    if (gap_spans (&g->at[i], op) && g->at[i].before > g->at[i].after && l->share[i] > 0.5)
      return &g->at[i];
  return NULL;
}

/* Of two units of which one leaves later and is back sooner, that one goes in smaller parts. */
CLAIM_IN_ARENA (parts_are_small_where_memory_is_scarce) {
  setting s;
  layout l;
  set (&s, "inception3", 128, 60, a);
  solve_shares (&s, a);
  make (&s, LAYOUT_MIDDLE, true, a, &l);
  parts_rule rule = { .most = INT32_MAX, .far_latencies = 1600 };
  ck_assert (parts_choose (&l.step.gaps, &s.dev, l.share, &rule, a, l.of, &err));
  int64_t least = INT64_MAX, most = 0;
  int32_t pairs = 0;
  for (int32_t u = 0; u < l.step.units.count; u++) {
    const gap *x = gap_over (&l, u, s.singles.peak_op);
    int64_t part = x ? l.step.units.at[u].bytes / l.of[u] : 0;
    if (!x || l.of[u] == 1)
      continue;
    least = part < least ? part : least;
    most = part > most ? part : most;
    for (int32_t v = 0; v < l.step.units.count; v++) {
      const gap *y = gap_over (&l, v, s.singles.peak_op);
      if (!y || x->after >= y->after || x->before <= y->before)
        continue;
      ck_assert_int_lt (l.step.units.at[v].bytes / l.of[v], 2 * part);
      pairs++;
    }
  }
  ck_assert_int_gt (pairs, 20);
  ck_assert_int_gt (most, 8 * least);
}

/* Each copy is simulated, so that a search sees fewer plans of more of them. */
CLAIM_IN_ARENA (a_card_without_latency_has_no_more_copies_to_search) {
  setting s;
  layout l;
  set (&s, "resnet50", 64, 60, a);
  s.dev.link.copy_ns = 0;
  s.dev.granule_bytes = 512;
  for (layout_kind kind = LAYOUT_MIDDLE; kind <= LAYOUT_MANY; kind++) {
    make (&s, kind, true, a, &l);
    double least =
        parts_crossing (&l.step.gaps, l.share) / (double)tuned (NULL, TUNE_parts_most_copies);
    ck_assert_double_gt (least, 1000.0 * (double)s.dev.granule_bytes);
    for (int32_t u = 0; u < l.step.units.count; u++)
      ck_assert (l.of[u] == 1 || (double)l.step.units.at[u].bytes / l.of[u] > least / 2);
  }
}

int main (void) {
  return suite_run ("layout", 60);
}
