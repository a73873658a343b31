/* Each rule of check: one good plan, and for every rule a change that breaks just that one. */
#include <string.h>

#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"

enum { OPS = 6, TENSORS = 9, MOVES = 6, STAYS = 14, UNUSED = 5, GROUP = TENSORS, LATE_WORK = 13 };

typedef struct fixture {
  trace trace;
  tensor tensors[TENSORS];
  op ops[OPS];
  int32_t touched[OPS][12];
  plan plan;
  char digest[TRACE_DIGEST];
  index_list groups[2];
  int32_t members[4];
  move moves[MOVES];
  int32_t out_order[MOVES], in_order[MOVES + 1];
  op_wait op_waits[3];
  stay stays[STAYS + 1];
  granule_run runs[STAYS + 1];
  section sections[1];
  op_run order[4];
} fixture;

static void add_use (fixture *f, int32_t k, int32_t x, bool writes) {
  op *o = &f->ops[k];
  index_list *list = writes ? &o->writes : &o->reads;
  list->at = f->touched[k] + (writes ? 6 : 0);
  list->at[list->count++] = x;
}

/* What each tensor is for stands in the table; its uses are "op, whether it writes". */
static void make_trace (fixture *f) {
  static const struct {
    int64_t bytes;
    bool persistent, pinned;
    int32_t uses[3][2], n_uses;
  } rows[TENSORS] = {
    { 2048, true, false, { { 1, 0 } }, 1 }, /* a weight: clean from the start */
    { 1536, false, false, { { 0, 1 }, { 2, 0 }, { 5, 0 } }, 3 }, /* three parts */
    { 1000, true, false, { { 1, 1 }, { 4, 1 } }, 2 },            /* wraps */
    { 100, false, false, { { 0, 1 }, { 1, 0 } }, 2 },            /* in the pool */
    { 600, false, true, { { 0, 1 }, { 5, 0 } }, 2 },             /* pinned */
    { 700, false, false, { { 0 } }, 0 },                         /* nothing */
    { 500, false, false, { { 1, 1 }, { 4, 0 } }, 2 },            /* in the group */
    { 600, false, false, { { 1, 1 }, { 4, 0 } }, 2 },            /* in the group */
    { 512, true, false, { { 0, 0 }, { 3, 1 } }, 2 },             /* never leaves */
  };
  f->trace = (trace){ .name = "fixture",
                      .source = { "test", "", "exact" },
                      .batch = 4,
                      .n_tensors = TENSORS,
                      .n_ops = OPS,
                      .tensors = f->tensors,
                      .ops = f->ops };
  for (int32_t k = 0; k < OPS; k++)
    f->ops[k] =
        (op){ .name = "", .ns = 100, .parts = 1, .workspace_bytes = k == 2 || k == 3 ? 700 : 0 };
  for (int32_t x = 0; x < TENSORS; x++) {
    f->tensors[x] = (tensor){ .name = "",
                              .bytes = rows[x].bytes,
                              .persistent = rows[x].persistent,
                              .pinned = rows[x].pinned,
                              .born_before = NO_OP,
                              .dies_after = NO_OP };
    for (int32_t i = 0; i < rows[x].n_uses; i++)
      add_use (f, rows[x].uses[i][0], x, rows[x].uses[i][1]);
  }
}

static void make_moves (fixture *f) {
  static const move moves[MOVES] = {
    { 1, 0, 3, 0, 2, NO_WAIT, NO_WAIT, false, 0 },
    { 1, 0, 3, 2, 5, NO_WAIT, NO_WAIT, true, 0 },
    { 1, 1, 3, 0, 2, NO_WAIT, NO_WAIT, false, 512 },
    { 2, 0, 1, 4, 1, NO_WAIT, NO_WAIT, false, 3072 },
    { 0, 0, 1, 1, 1, NO_WAIT, NO_WAIT, true, 1024 },
    { GROUP, 0, 1, 1, 4, NO_WAIT, NO_WAIT, false, 3072 },
  };
  static const int32_t outs[] = { 0, 2, 5, 3 }, ins[] = { 4, 3, 0, 2, 5, 1 };
  memcpy (f->moves, moves, sizeof moves);
  memcpy (f->out_order, outs, sizeof outs);
  memcpy (f->in_order, ins, sizeof ins);
  f->op_waits[0] = (op_wait){ 3, 3 };
}

/* Each stay on granules of its own, but the workspace of op 3 on those of the group, which has left
   by then. */
static void make_places (fixture *f) {
  static const struct {
    stay_kind kind;
    int32_t index, part, granules;
  } rows[STAYS] = {
    { STAY_TENSOR, 1, 0, 1 },    { STAY_TENSOR, 1, 1, 1 },    { STAY_TENSOR, 1, 2, 1 },
    { STAY_TENSOR, 4, 0, 2 },    { STAY_TENSOR, 8, 0, 1 },    { STAY_GROUP, 0, 0, 3 },
    { STAY_MOVE, 0, 0, 1 },      { STAY_MOVE, 1, 0, 1 },      { STAY_MOVE, 2, 0, 1 },
    { STAY_MOVE, 3, 0, 2 },      { STAY_MOVE, 4, 0, 4 },      { STAY_MOVE, 5, 0, 3 },
    { STAY_WORKSPACE, 2, 0, 2 }, { STAY_WORKSPACE, 3, 0, 2 },
  };
  int32_t next = 0;
  for (int32_t i = 0; i < STAYS; i++) {
    f->stays[i] = (stay){ rows[i].kind, rows[i].index, rows[i].part, i, 1 };
    f->runs[i] = (granule_run){ next, rows[i].granules };
    next += i == LATE_WORK ? 0 : rows[i].granules;
  }
  f->runs[LATE_WORK].first = f->runs[5].first;
  f->plan.placement = (placement){ .granule_bytes = 512,
                                   .pool_below_bytes = 200,
                                   .pool_bytes = 512,
                                   .granules = next,
                                   .stays = f->stays,
                                   .n_stays = STAYS,
                                   .runs = f->runs,
                                   .n_runs = STAYS };
}

static void make_fixture (fixture *f) {
  static const device card = { .name = "",
                               .reserved_bytes = 512,
                               .granule_bytes = 512,
                               .link = { 1000000000, 1000000000, 2000000000, 10 },
                               .host_bytes = 8192,
                               .share_ppm = 1000000 };
  error err = { 0 };
  memset (f, 0, sizeof *f);
  make_trace (f);
  ck_assert (trace_validate (&f->trace, &err));
  ck_assert (trace_digest (&f->trace, f->digest, &err));
  make_moves (f);
  make_places (f);
  f->members[0] = 6;
  f->members[1] = 7;
  f->groups[0] = (index_list){ f->members, 2 };
  plan *p = &f->plan;
  p->trace_digest = f->digest;
  p->device = card;
  p->budget_bytes = (p->placement.granules + 1) * (int64_t)512;
  p->device.memory_bytes = p->budget_bytes + 512;
  p->host_bytes = 3072 + 1536;
  p->sections = f->sections;
  p->groups = f->groups;
  p->moves = f->moves;
  p->out_order = f->out_order;
  p->in_order = f->in_order;
  p->op_waits = f->op_waits;
  p->n_groups = 1;
  p->n_moves = MOVES;
  p->n_outs = 4;
  p->n_ins = MOVES;
  p->n_op_waits = 1;
}

/* clang-format off */
static void wrong_digest (fixture *f) { f->digest[10] ^= 1; }
static void slow_link (fixture *f) { f->plan.device.link.h2d_bytes_per_s = 999999; }
static void odd_device_granule (fixture *f) { f->plan.device.granule_bytes = 513; }
static void no_share (fixture *f) { f->plan.device.share_ppm = 0; }
static void small_card (fixture *f) { f->plan.device.memory_bytes--; }
static void small_host (fixture *f) { f->plan.device.host_bytes = f->plan.host_bytes - 1; }
static void uncut_op (fixture *f) {
  f->sections[0] = (section){ 0, 1, 2, SECTION_LEVEL };
  f->plan.n_sections = 1;
}
static void run_ops (fixture *f, op_run one, op_run two, op_run three) {
  f->order[0] = one;
  f->order[1] = two;
  f->order[2] = three;
  f->plan.order = f->order;
  f->plan.n_order = 3;
}
static void op_left_out (fixture *f) {
  run_ops (f, (op_run){ 1, 1 }, (op_run){ 0, 1 }, (op_run){ 2, 3 });
}
static void op_run_twice (fixture *f) {
  run_ops (f, (op_run){ 0, 1 }, (op_run){ 0, 2 }, (op_run){ 2, 4 });
}
static void op_of_no_trace (fixture *f) {
  run_ops (f, (op_run){ 0, 1 }, (op_run){ 1, 2 }, (op_run){ 3, 4 });
}
static void read_too_early (fixture *f) {
  run_ops (f, (op_run){ 2, 1 }, (op_run){ 0, 2 }, (op_run){ 3, 3 });
}
static void written_too_early (fixture *f) {
  run_ops (f, (op_run){ 3, 1 }, (op_run){ 0, 3 }, (op_run){ 4, 2 });
}
static void written_the_other_way (fixture *f) {
  error err = { 0 };
  f->ops[4].reads.count = 0;
  ck_assert (trace_digest (&f->trace, f->digest, &err));
  run_ops (f, (op_run){ 0, 1 }, (op_run){ 4, 1 }, (op_run){ 1, 3 });
  f->order[3] = (op_run){ 5, 1 };
  f->plan.n_order = 4;
}
static void empty_group (fixture *f) { f->plan.n_groups = 2; }
static void twice_in_group (fixture *f) { f->members[1] = 6; }
static void member_beyond (fixture *f) { f->members[1] = TENSORS; }
static void in_two_groups (fixture *f) {
  f->members[2] = 7;
  f->groups[1] = (index_list){ f->members + 2, 1 };
  f->plan.n_groups = 2;
}
static void group_of_nothing (fixture *f) { f->members[1] = UNUSED; }
static void group_mixed (fixture *f) { f->members[1] = 8; }
static void fine_granule (fixture *f) { f->plan.placement.granule_bytes = 768; }
static void no_granule (fixture *f) { f->plan.placement.granule_bytes = 0; }
static void wrong_pool (fixture *f) { f->plan.placement.pool_bytes += 512; }
static void over_budget (fixture *f) { f->plan.budget_bytes--; }
static void move_nothing (fixture *f) { f->moves[0].unit = UNUSED; }
static void move_pooled (fixture *f) { f->moves[0].unit = 3; }
static void move_member (fixture *f) { f->moves[5].unit = 6; }
static void move_beyond (fixture *f) { f->moves[5].unit = GROUP + 1; }
static void move_negative (fixture *f) { f->moves[5].unit = -1; }
static void move_pinned (fixture *f) { f->moves[0].unit = 4; }
static void pinned_group (fixture *f) {
  error err = { 0 };
  f->tensors[7].pinned = true;
  ck_assert (trace_digest (&f->trace, f->digest, &err));
}
static void of_differs (fixture *f) { f->moves[1].of = 2; }
static void of_too_many (fixture *f) { f->moves[0].of = 4; }
static void of_zero (fixture *f) { f->moves[0].of = 0; }
static void part_beyond (fixture *f) { f->moves[2].part = 3; }
static void part_negative (fixture *f) { f->moves[2].part = -1; }
static void op_beyond (fixture *f) { f->moves[1].in_before = OPS; }
static void op_negative (fixture *f) { f->moves[1].out_after = -1; }
static void wraps_wrongly (fixture *f) {
  f->moves[5].out_after = 4;
  f->moves[5].in_before = 1;
}
static void before_birth (fixture *f) { f->moves[5].out_after = 0; }
static void after_death (fixture *f) { f->moves[5].in_before = 5; }
static void used_between (fixture *f) { f->moves[0].in_before = 3; }
static void used_at_step_end (fixture *f) { f->moves[3].out_after = 3; }
static void used_at_step_begin (fixture *f) { f->moves[3].in_before = 2; }
static void overlaps_next (fixture *f) {
  f->moves[1].out_after = 1;
  f->moves[1].in_before = 2;
}
static void clean_at_first (fixture *f) {
  f->moves[5].clean = true;
  f->plan.n_outs = 3;
  f->out_order[2] = 3;
}
static void clean_though_written (fixture *f) {
  f->moves[3].clean = true;
  f->plan.n_outs = 3;
}
static void clean_before_out (fixture *f) {
  f->moves[0].clean = true;
  f->moves[1].clean = false;
  f->out_order[0] = 1;
}
/* The tensor is written between the out and the clean move. */
static void written_since (fixture *f) {
  error err = { 0 };
  add_use (f, 2, 1, true);
  ck_assert (trace_digest (&f->trace, f->digest, &err));
}
static void clean_elsewhere (fixture *f) { f->moves[1].host_offset = 512; }
static void out_twice (fixture *f) { f->out_order[1] = 0; }
static void out_lost (fixture *f) { f->plan.n_outs--; }
static void out_of_clean (fixture *f) { f->out_order[1] = 1; }
static void out_beyond (fixture *f) { f->out_order[1] = MOVES; }
static void in_twice (fixture *f) { f->in_order[0] = 3; }
static void in_lost (fixture *f) { f->plan.n_ins--; }
static void in_again (fixture *f) { f->in_order[f->plan.n_ins++] = 0; }
static void two_rows (fixture *f) { f->op_waits[f->plan.n_op_waits++] = (op_wait){ 3, 1 }; }
static void wait_of_no_op (fixture *f) { f->op_waits[0].op = OPS; }
static void too_many_outs (fixture *f) { f->op_waits[0].outs = 5; }
static void too_far_back (fixture *f) { f->op_waits[0].outs = -5; }
static void in_after_too_many (fixture *f) { f->moves[4].in_ops = OPS + 1; }
static void in_outs_too_far (fixture *f) { f->moves[4].in_outs = -5; }
static void stay_of_member (fixture *f) { f->stays[3].index = 6; }
static void stay_of_part (fixture *f) { f->stays[2].part = 3; }
static void stay_of_mover (fixture *f) { f->stays[4].index = 2; }
static void stay_of_no_move (fixture *f) { f->stays[7].index = MOVES; }
static void stay_of_idle_op (fixture *f) { f->stays[LATE_WORK].index = 4; }
static void stay_of_no_group (fixture *f) { f->stays[5].index = 1; }
static void stay_again (fixture *f) {
  f->stays[STAYS] = f->stays[LATE_WORK];
  f->plan.placement.n_stays++;
}
static void part_without_stay (fixture *f) {
  f->stays[3] = f->stays[LATE_WORK];
  f->plan.placement.n_stays--;
}
static void work_without_stay (fixture *f) { f->plan.placement.n_stays--; }
static void move_without_stay (fixture *f) {
  f->stays[6] = f->stays[LATE_WORK];
  f->plan.placement.n_stays--;
}
static void no_stays (fixture *f) { f->plan.placement.n_stays = 0; }
static void run_beyond (fixture *f) { f->runs[12].first = f->plan.placement.granules - 1; }
static void run_negative (fixture *f) { f->runs[12].first = -1; }
static void runs_beyond (fixture *f) { f->stays[LATE_WORK].n_runs = 2; }
static void run_twice (fixture *f) {
  f->runs[STAYS] = (granule_run){ f->runs[12].first, 1 };
  f->runs[LATE_WORK] = f->runs[STAYS];
  f->stays[LATE_WORK].n_runs = 2;
  f->plan.placement.n_runs++;
}
static void too_small (fixture *f) { f->runs[3].count = 1; }
static void too_large (fixture *f) { f->runs[9].count = 3; }
static void on_the_persistent (fixture *f) { f->runs[7].first = f->runs[4].first; }
static void two_births (fixture *f) { f->runs[1].first = f->runs[0].first; }
static void elsewhere_though_promised (fixture *f) { f->plan.placement.same_places = true; }
static void in_while_an_op_works (fixture *f) { f->runs[12].first = f->runs[11].first; }
static void in_and_work_of_one_op (fixture *f) { f->runs[8].first = f->runs[12].first; }
static void odd_offset (fixture *f) { f->moves[2].host_offset = 500; }
static void negative_offset (fixture *f) { f->moves[2].host_offset = -512; }
static void arena_too_small (fixture *f) { f->plan.host_bytes -= 512; }
static void on_the_weight (fixture *f) { f->moves[2].host_offset = 2560; }
static void in_behind_its_op (fixture *f) {
  static const int32_t ins[] = { 4, 3, 1, 0, 2, 5 };
  memcpy (f->in_order, ins, sizeof ins);
}
static void op_for_a_late_out (fixture *f) { f->op_waits[0].outs = 4; }
static void in_for_its_op (fixture *f) { f->moves[5].in_ops = 5; }
static void in_for_a_late_out (fixture *f) { f->moves[5].in_outs = 4; }
static void wait_lost (fixture *f) { f->plan.n_op_waits = 0; }
static void wait_too_short (fixture *f) { f->op_waits[0].outs = 2; }
static void wait_of_last_step (fixture *f) { f->op_waits[0].outs = 0; }
static void still_there (fixture *f) { f->runs[7].first = f->runs[8].first; }
static void host_still_read (fixture *f) { f->moves[3].host_offset = 0; }

static const struct {
  check_rule rule;
  const char *where;
  void (*change) (fixture *f);
} breaks[] = {
  { RULE_digest, "/trace", wrong_digest },
  { RULE_device, "/device/link/h2d_bytes_per_s", slow_link },
  { RULE_device, "/device/granule_bytes", odd_device_granule },
  { RULE_device, "/device/share_ppm", no_share },
  { RULE_budget, "/budget_bytes", small_card },
  { RULE_host_budget, "/host_bytes", small_host },
  { RULE_order_each, "/order", op_left_out },
  { RULE_order_each, "/order/2", op_run_twice },
  { RULE_order_each, "/order/4", op_of_no_trace },
  { RULE_order_read, "/order", read_too_early },
  { RULE_order_overwrite, "/order", written_too_early },
  { RULE_order_write, "/order", written_the_other_way },
  { RULE_rewrite, "/sections/0", uncut_op },
  { RULE_group_member, "/groups/1", empty_group },
  { RULE_group_member, "/groups/0", twice_in_group },
  { RULE_group_member, "/groups/0", member_beyond },
  { RULE_group_member, "/groups/1", in_two_groups },
  { RULE_group_nothing, "/groups/0", group_of_nothing },
  { RULE_group_persistent, "/groups/0", group_mixed },
  { RULE_granule_size, "/placement/granule_bytes", fine_granule },
  { RULE_granule_size, "/placement/granule_bytes", no_granule },
  { RULE_pool, "/placement/pool_bytes", wrong_pool },
  { RULE_peak, "/placement/granules", over_budget },
  { RULE_move_unit, "/moves/0/unit", move_nothing },
  { RULE_move_unit, "/moves/0/unit", move_pooled },
  { RULE_move_unit, "/moves/5/unit", move_member },
  { RULE_move_unit, "/moves/5/unit", move_beyond },
  { RULE_move_unit, "/moves/5/unit", move_negative },
  { RULE_move_pinned, "/moves/0/unit", move_pinned },
  { RULE_move_pinned, "/moves/5/unit", pinned_group },
  { RULE_move_of, "/moves/1/of", of_differs },
  { RULE_move_of, "/moves/0/of", of_too_many },
  { RULE_move_of, "/moves/0/of", of_zero },
  { RULE_move_part, "/moves/2/part", part_beyond },
  { RULE_move_part, "/moves/2/part", part_negative },
  { RULE_move_range, "/moves/1/in_before", op_beyond },
  { RULE_move_range, "/moves/1/out_after", op_negative },
  { RULE_move_range, "/moves/5/in_before", wraps_wrongly },
  { RULE_move_range, "/moves/5/out_after", before_birth },
  { RULE_move_range, "/moves/5/in_before", after_death },
  { RULE_move_away, "/moves/0/out_after", used_between },
  { RULE_move_away, "/moves/3/in_before", used_at_step_end },
  { RULE_move_away, "/moves/3/in_before", used_at_step_begin },
  { RULE_move_overlap, "/moves/0/in_before", overlaps_next },
  { RULE_clean_source, "/moves/5/clean", clean_at_first },
  { RULE_clean_source, "/moves/3/clean", clean_though_written },
  { RULE_clean_source, "/moves/0/clean", clean_before_out },
  { RULE_clean_written, "/moves/1/clean", written_since },
  { RULE_clean_offset, "/moves/1/host_offset", clean_elsewhere },
  { RULE_out_order, "/out_order/1", out_twice },
  { RULE_out_order, "/out_order", out_lost },
  { RULE_out_order, "/out_order/1", out_of_clean },
  { RULE_out_order, "/out_order/1", out_beyond },
  { RULE_in_order, "/in_order/1", in_twice },
  { RULE_in_order, "/in_order", in_lost },
  { RULE_in_order, "/in_order/6", in_again },
  { RULE_op_wait, "/op_waits/1/op", two_rows },
  { RULE_op_wait, "/op_waits/0/op", wait_of_no_op },
  { RULE_op_wait, "/op_waits/0/outs", too_many_outs },
  { RULE_op_wait, "/op_waits/0/outs", too_far_back },
  { RULE_in_wait, "/moves/4/in_ops", in_after_too_many },
  { RULE_in_wait, "/moves/4/in_outs", in_outs_too_far },
  { RULE_stay_row, "/placement/stays/3/tensor", stay_of_member },
  { RULE_stay_row, "/placement/stays/2/part", stay_of_part },
  { RULE_stay_row, "/placement/stays/4/tensor", stay_of_mover },
  { RULE_stay_row, "/placement/stays/7/move", stay_of_no_move },
  { RULE_stay_row, "/placement/stays/13/workspace", stay_of_idle_op },
  { RULE_stay_row, "/placement/stays/5/group", stay_of_no_group },
  { RULE_stay_twice, "/placement/stays/14", stay_again },
  { RULE_stay_missing, "/placement/stays", part_without_stay },
  { RULE_stay_missing, "/placement/stays", work_without_stay },
  { RULE_stay_missing, "/placement/stays", move_without_stay },
  { RULE_stay_missing, "/placement/stays", no_stays },
  { RULE_stay_runs, "/placement/stays/12/runs", run_beyond },
  { RULE_stay_runs, "/placement/stays/12/runs", run_negative },
  { RULE_stay_runs, "/placement/stays/13/runs", runs_beyond },
  { RULE_stay_runs, "/placement/stays/13/runs", run_twice },
  { RULE_stay_size, "/placement/stays/3/runs", too_small },
  { RULE_stay_size, "/placement/stays/9/runs", too_large },
  { RULE_stay_same, "/placement/stays/6/runs", elsewhere_though_promised },
  { RULE_granule_always, "/placement/stays/7/runs", on_the_persistent },
  { RULE_granule_shared, "/placement/stays/1/runs", two_births },
  { RULE_granule_shared, "/placement/stays/12/runs", in_and_work_of_one_op },
  { RULE_host_offset, "/moves/2/host_offset", odd_offset },
  { RULE_host_offset, "/moves/2/host_offset", negative_offset },
  { RULE_host_arena, "/moves/5/host_offset", arena_too_small },
  { RULE_host_held, "/moves/2/host_offset", on_the_weight },
  { RULE_live, "/in_order/2", in_behind_its_op },
  { RULE_live, "/op_waits", op_for_a_late_out },
  { RULE_live, "/in_order/4", in_for_its_op },
  { RULE_live, "/in_order/4", in_for_a_late_out },
  { RULE_safe, "/placement/stays/13/runs", wait_lost },
  { RULE_safe, "/placement/stays/13/runs", wait_too_short },
  { RULE_safe, "/placement/stays/13/runs", wait_of_last_step },
  { RULE_safe, "/placement/stays/7/runs", still_there },
  { RULE_safe, "/placement/stays/11/runs", in_while_an_op_works },
  { RULE_host_safe, "/moves/0/host_offset", host_still_read },
};
/* clang-format on */
enum { BREAKS = sizeof breaks / sizeof *breaks };

START_TEST (the_plan_that_is_broken_below_is_good) {
  arena *a = arena_new (0);
  error err = { 0 };
  check_rule rule;
  fixture f;
  make_fixture (&f);
  ck_assert_msg (check_plan (&f.trace, &f.plan, a, &rule, &err), "%s: %s", err.where, err.text);
  ck_assert_int_eq (rule, CHECK_RULES);
  arena_free (a);
}
END_TEST

START_TEST (a_broken_rule_is_named_with_its_place) {
  for (int i = 0; i < BREAKS; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    check_rule rule;
    fixture f;
    make_fixture (&f);
    breaks[i].change (&f);
    bool good = check_plan (&f.trace, &f.plan, a, &rule, &err);
    const char *wanted = check_rule_name (breaks[i].rule);
    ck_assert_msg (!good, "row %d: %s is not noticed at %s", i, wanted, breaks[i].where);
    ck_assert_int_eq (err.code, ERR_infeasible);
    ck_assert_msg (rule == breaks[i].rule && strcmp (err.where, breaks[i].where) == 0 &&
                       strstr (err.text, wanted),
                   "row %d: %s at %s expected, not %s: %s", i, wanted, breaks[i].where, err.where,
                   err.text);
    arena_free (a);
  }
}
END_TEST

START_TEST (every_rule_has_a_plan_that_breaks_it_and_a_sentence) {
  for (int rule = 0; rule < CHECK_RULES; rule++) {
    int rows = 0;
    for (int i = 0; i < BREAKS; i++)
      rows += breaks[i].rule == (check_rule)rule;
    ck_assert_msg (rows > 0, "nothing breaks %s", check_rule_name ((check_rule)rule));
    ck_assert_int_gt (strlen (check_rule_says ((check_rule)rule)), 10);
  }
}
END_TEST

/* Which allocation fails decides nothing but that the answer is "out of memory". */
static void fail_each_allocation (const trace *t, const plan *p) {
  bool done = false;
  for (int64_t n = 1; !done; n++) {
    arena *a = arena_new (0);
    error err = { 0 };
    check_rule rule;
    arena_fuse (a, n);
    done = check_plan (t, p, a, &rule, &err);
    ck_assert_msg (done || err.code == ERR_memory, "allocation %lld: %s", (long long)n, err.text);
    ck_assert_int_eq (rule, CHECK_RULES);
    ck_assert_int_eq (arena_used_bytes (a), 0);
    ck_assert_int_lt (n, 100000);
    arena_free (a);
  }
}

START_TEST (any_allocation_that_fails_is_told_as_such_and_leaks_nothing) {
  fixture f;
  make_fixture (&f);
  fail_each_allocation (&f.trace, &f.plan);
  for (uint64_t seed = 0; seed < 20; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    random_case c;
    case_options o = { .seed = seed, .features = CASE_EVERYTHING, .places = CASE_SHARED };
    ck_assert (random_case_make (&o, a, &c, &err));
    fail_each_allocation (c.trace, c.plan);
    arena_free (a);
  }
}
END_TEST

int main (void) {
  const TTest *const tests[] = {
    the_plan_that_is_broken_below_is_good,
    a_broken_rule_is_named_with_its_place,
    every_rule_has_a_plan_that_breaks_it_and_a_sentence,
    any_allocation_that_fails_is_told_as_such_and_leaks_nothing,
    NULL,
  };
  return suite_run ("check", tests, 60);
}
