/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups of small tensors: what they may hold, and that plans of them are legal and need less. */
#include "solver/attempt/group.h"
#include "solver/place/schedule.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/summary.h"
#include "trace/unit.h"
#include "trace/zoo/zoo.h"

enum { GRANULE = 2 << 20 };

static const group_rule rule = { .most_bytes = GRANULE, .keep = 4 };

static trace *network (const char *name, int64_t batch, int64_t seq, arena *a) {
  device d = { .name = "test",
               .has_roofline = true,
               .roofline = { .fp32_flops = 10000000000000,
                             .memory_bytes_per_s = 500000000000,
                             .efficiency_ppm = 1000000 } };
  zoo_request r = { .name = name, .batch = batch, .seq = seq, .device = &d };
  error err = { 0 };
  trace *t = zoo_trace (&r, a, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

CLAIM (groups_hold_small_tensors_once_and_fit_a_granule) {
  static const char *const names[] = { "charrnn", "seq2seq", "resnet50" };
  for (int i = 0; i < 3; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    trace *t = network (names[i], 16, i == 2 ? 0 : 30, a);
    index_list *groups;
    int32_t count;
    bool *seen = NEW (a, t->n_tensors, bool, &err);
    ck_assert (seen && group_tensors (t, GRANULE, &rule, a, &groups, &count, &err));
    ck_assert_int_gt (count, 0);
    for (int32_t g = 0; g < count; g++) {
      int64_t bytes = 0;
      ck_assert_int_ge (groups[g].count, 2);
      for (int32_t j = 0; j < groups[g].count; j++) {
        int32_t x = groups[g].at[j];
        ck_assert (!seen[x] && !t->tensors[x].persistent && !t->tensors[x].pinned);
        seen[x] = true;
        bytes += unit_member_bytes (t->tensors[x].bytes);
      }
      ck_assert_int_le (bytes, GRANULE);
    }
    arena_free (a);
  }
}

/* An unrolled network of many small tensors: its peak in granules comes within twice the bytes that
   are alive, where the pool alone takes several times as much. */
CLAIM_IN_ARENA (an_unrolled_network_needs_much_less_in_groups) {
  trace *t = network ("charrnn", 64, 128, a);
  index_list *groups;
  int32_t count;
  int64_t pool, with_bytes, without_bytes;
  summary s;
  ck_assert (group_choose (t, GRANULE, NULL, a, &groups, &count, &pool, &err));
  ck_assert_int_gt (count, 0);
  ck_assert (schedule_pool (t, groups, count, GRANULE, a, &pool, &with_bytes, &err) &&
             schedule_pool (t, NULL, 0, GRANULE, a, &pool, &without_bytes, &err) &&
             summary_of (t, a, &s, &err));
  ck_assert_int_lt (with_bytes, without_bytes * 3 / 4);
  ck_assert_int_lt (with_bytes, 2 * s.peak_bytes);
}

/* Near the turn to the way back tensors live too shortly for large groups; alone, each of them
   would take a granule. */
CLAIM_IN_ARENA (what_large_groups_leave_finds_company) {
  trace *t = network ("charrnn", 64, 128, a);
  group_rule large = { .least_bytes = GRANULE / 32,
                       .most_bytes = 16 * GRANULE,
                       .keep = 16,
                       .fill_ppm = 750000,
                       .persistent = true };
  index_list *groups;
  int32_t count;
  int64_t pool, with_bytes;
  summary s;
  ck_assert (group_tensors (t, GRANULE, &large, a, &groups, &count, &err) && count > 0);
  ck_assert (schedule_pool (t, groups, count, GRANULE, a, &pool, &with_bytes, &err) &&
             summary_of (t, a, &s, &err));
  ck_assert_int_lt (with_bytes, s.peak_bytes * 8 / 5);
}

/* Every group's longest rest is spent on the host. */
CLAIM_IN_ARENA (a_plan_that_moves_groups_is_legal) {
  trace *t = network ("charrnn", 16, 20, a);
  device d = { .name = "test",
               .memory_bytes = (int64_t)1 << 40,
               .granule_bytes = GRANULE,
               .host_bytes = (int64_t)1 << 40,
               .share_ppm = 1000000,
               .link = { 10000000000, 10000000000, 20000000000, 10000 } };
  index_list *groups;
  int32_t count, n = 0;
  int64_t pool = 0;
  units u;
  rewritten rw;
  ck_assert (group_tensors (t, d.granule_bytes, &rule, a, &groups, &count, &err) && count > 0 &&
             units_of (t, groups, count, d.granule_bytes, pool, a, &u, &err) &&
             trace_rewrite (t, &(rewriting){ 0 }, a, &rw, &err));
  wish *wishes = NEW (a, count, wish, &err);
  for (int32_t g = 0; g < count; g++) {
    int32_t unit = t->n_tensors + g, best = -1;
    for (int32_t i = u.use_offset[unit]; i + 1 < u.use_offset[unit + 1]; i++)
      if (u.uses[i + 1].op - u.uses[i].op > 4 && best < 0)
        best = i;
    if (best >= 0)
      wishes[n++] = (wish){ .unit = unit,
                            .of = 1,
                            .out_after = u.uses[best].op,
                            .in_before = u.uses[best + 1].op,
                            .in_not_before = NO_WAIT };
  }
  ck_assert_int_gt (n, 0);
  schedule_options o = { .budget_bytes = (int64_t)1 << 36,
                         .host_bytes = d.host_bytes,
                         .pool_below_bytes = pool,
                         .early_ppm = -1 };
  plan *p = schedule (&(schedule_request){ .original = t,
                                           .rewritten = &rw,
                                           .groups = groups,
                                           .n_groups = count,
                                           .device = &d,
                                           .wishes = wishes,
                                           .n_wishes = n,
                                           .options = &o },
                      a, NULL, &err);
  ck_assert_msg (p && check_plan (t, p, a, NULL, &err), "%s %s", err.where, err.text);
}

int main (void) {
  return suite_run ("group", 60);
}
