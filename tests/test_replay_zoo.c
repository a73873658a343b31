/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real networks under plans that move everything that can be moved: predicted equals seen at their
   own size, and every byte is right in smaller relatives at three budgets down to the floor.
   FERRY_CASES=2: all networks, not one of a kind. */
#include <stdio.h>
#include <string.h>

#include "executor/replay/replay.h"
#include "solver/place/schedule.h"
#include "tests/emu_case.h"
#include "tests/random_wishes.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/zoo/zoo.h"

static const device card = { .name = "card",
                             .memory_bytes = (int64_t)1 << 42,
                             .granule_bytes = 2 << 20,
                             .link = { 12000000000, 12000000000, 22000000000, 10000 },
                             .host_bytes = (int64_t)1 << 42,
                             .section_ns = 10000,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 10970000000000,
                                           .memory_bytes_per_s = 480000000000,
                                           .efficiency_ppm = 700000,
                                           .op_ns = 5000 } };

typedef struct job {
  arena *a;
  device device;
  trace *trace;
  rewritten rw;
  units units;
} job;

static bool job_open (job *j, const zoo_request *r, const device *dev, error *err) {
  j->a = arena_new (0);
  j->device = *dev;
  j->trace = zoo_trace (r, j->a, err);
  return j->trace != NULL &&
         trace_rewrite (j->trace, &(rewriting){ .section_ns = dev->section_ns }, j->a, &j->rw,
                        err) &&
         units_of (j->rw.trace, NULL, 0, dev->granule_bytes, 0, j->a, &j->units, err);
}

static plan *plan_for (job *j, int64_t budget, int64_t move_ppm, uint64_t seed,
                       schedule_shortage *shortage, error *err) {
  random_state r = random_seed (seed);
  wish *wishes;
  int32_t count;
  schedule_options o = { .budget_bytes = budget, .host_bytes = j->device.host_bytes };
  return random_wishes (&j->units, &r, move_ppm, j->a, &wishes, &count, err)
             ? schedule (&(schedule_request){ .original = j->trace,
                                              .rewritten = &j->rw,
                                              .device = &j->device,
                                              .wishes = wishes,
                                              .n_wishes = count,
                                              .options = &o },
                         j->a, shortage, err)
             : NULL;
}

/* Whether one of the same kind ("resnet" of "resnet50") stands before it. */
static bool has_relative (const zoo_network *networks, int at) {
  size_t kind = strcspn (networks[at].name, "0123456789-");
  for (int i = 0; i < at; i++)
    if (strncmp (networks[i].name, networks[at].name, kind) == 0)
      return true;
  return false;
}

CLAIM (predicted_equals_seen_for_every_kind_of_network_of_the_zoo) {
  int n;
  const zoo_network *networks = zoo_list (&n);
  ck_assert_int_ge (n, 10);
  for (int i = 0; i < n; i++) {
    if (suite_cases (1) == 1 && has_relative (networks, i))
      continue;
    job j;
    error err = { 0 };
    replay_result r;
    schedule_shortage shortage;
    zoo_request q = { .name = networks[i].name, .batch = 64, .device = &card };
    if (!job_open (&j, &q, &card, &err))
      ck_abort_msg ("%s: %s", networks[i].name, err.text);
    plan *p = plan_for (&j, (int64_t)1 << 40, 600000, (uint64_t)i + 1, &shortage, &err);
    if (p == NULL)
      ck_abort_msg ("%s: %s", networks[i].name, err.text);
    replay_options o = {
      .library = emu_case_path (), .emulated = true, .clock = EMU_VIRTUAL, .bytes = EMU_NONE
    };
    if (!replay_run (j.trace, p, &o, j.a, &r, &err))
      ck_abort_msg ("%s: %s", networks[i].name, err.text);
    ck_assert_msg (
        r.predicted.step_ns == r.seen.step_ns && r.largest_ns == 0 && r.largest_copy_ns == 0 &&
            r.predicted.stall_ns == r.seen.stall_ns && r.predicted.settled == r.seen.settled,
        "%s: predicted %lld, seen %lld, starts differ by %lld", networks[i].name,
        (long long)r.predicted.step_ns, (long long)r.seen.step_ns, (long long)r.largest_ns);
    ck_assert_int_gt (p->n_moves, 0);
    arena_free (j.a);
  }
}

/* Three budgets: with room to spare, half way, and the least that schedule finds a plan for. */
static int verify_at (job *j, const char *name, int64_t budget, uint64_t seed) {
  error err = { 0 };
  replay_result r;
  schedule_shortage shortage;
  plan *p = plan_for (j, budget, 1000000, seed, &shortage, &err);
  if (p == NULL)
    ck_abort_msg ("%s: %s", name, err.text);
  replay_options o = { .library = emu_case_path (),
                       .emulated = true,
                       .clock = EMU_VIRTUAL,
                       .bytes = EMU_ALL,
                       .iterations = 3,
                       .verify = true };
  if (!replay_run (j->trace, p, &o, j->a, &r, &err))
    ck_abort_msg ("%s: %s", name, err.text);
  ck_assert_msg (r.found.count == 0, "%s in %lld bytes: %llu words differ", name, (long long)budget,
                 (unsigned long long)r.found.count);
  return p->n_moves;
}

static int64_t floor_of (job *j, int64_t most, uint64_t seed) {
  int64_t low = 0, high = most;
  for (int i = 0; i < 9; i++) {
    int64_t middle = (low + high) / 2 / 65536 * 65536;
    error err = { 0 };
    schedule_shortage shortage;
    if (plan_for (j, middle, 1000000, seed, &shortage, &err) != NULL)
      high = middle;
    else
      low = middle;
  }
  return high;
}

CLAIM (every_byte_of_small_relatives_is_right_down_to_the_floor) {
  static const zoo_request relatives[] = {
    { .name = "vgg16", .width_divisor = 16, .classes = 10 },
    { .name = "alexnet", .width_divisor = 16, .classes = 10 },
    { .name = "overfeat", .width_divisor = 32, .classes = 10 },
    { .name = "resnet50", .width_divisor = 16, .depth_divisor = 4, .classes = 10 },
    { .name = "googlenet", .width_divisor = 16, .depth_divisor = 4, .classes = 10 },
    { .name = "inception3", .width_divisor = 16, .depth_divisor = 4, .classes = 10 },
    { .name = "densenet121", .width_divisor = 16, .depth_divisor = 4, .classes = 10 },
    { .name = "unet3d", .width_divisor = 16, .depth_divisor = 4, .image = 32 },
    { .name = "dcgan", .width_divisor = 16 },
    { .name = "charrnn", .width_divisor = 16, .seq = 16, .classes = 50 },
    { .name = "seq2seq", .width_divisor = 16, .seq = 8, .classes = 50 },
    { .name = "bert-base", .width_divisor = 4, .depth_divisor = 4, .seq = 32, .classes = 50 },
    { .name = "gpt2", .width_divisor = 4, .depth_divisor = 4, .seq = 32, .classes = 50 },
    { .name = "llama-1b", .width_divisor = 16, .depth_divisor = 4, .seq = 32, .classes = 50 },
    { .name = "vit-b", .width_divisor = 4, .depth_divisor = 4, .classes = 10 },
  };
  device small = card;
  small.granule_bytes = 65536;
  for (size_t i = 0; i < sizeof relatives / sizeof *relatives; i++) {
    job j;
    error err = { 0 };
    zoo_request q = relatives[i];
    q.batch = 2;
    q.device = &small;
    if (!job_open (&j, &q, &small, &err))
      ck_abort_msg ("%s: %s", q.name, err.text);
    int64_t most = 0;
    for (int32_t u = 0; u < j.units.count; u++)
      most += j.units.at[u].granules * small.granule_bytes;
    for (int32_t k = 0; k < j.rw.trace->n_ops; k++)
      most += 65536 + j.rw.trace->ops[k].workspace_bytes / 65536 * 65536;
    int64_t least = floor_of (&j, most, i + 1);
    ck_assert_int_gt (verify_at (&j, q.name, most, i + 1), 0);
    verify_at (&j, q.name, (most + least) / 2 / 65536 * 65536, i + 1);
    verify_at (&j, q.name, least, i + 1);
    arena_free (j.a);
  }
}

int main (void) {
  return suite_run ("replay_zoo", 120);
}
