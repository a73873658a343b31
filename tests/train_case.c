/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/train_case.h"

#include <check.h>
#include <stdlib.h>

#include "solver/place/schedule.h"
#include "tests/emu_case.h"
#include "tests/random_wishes.h"

enum { GRANULE = 4096 };

const char *const train_mode_names[TRAIN_MODES] = { "swapped", "cut", "made again", "mixed" };
const char *const train_room_names[TRAIN_ROOMS] = { "ample", "half", "floor" };

/* Copies and ops take about as long as each other. */
static const device card = { .name = "card",
                             .memory_bytes = (int64_t)1 << 40,
                             .granule_bytes = GRANULE,
                             .link = { 12000000000, 12000000000, 22000000000, 1000 },
                             .host_bytes = (int64_t)1 << 40,
                             .section_ns = 1000,
                             .share_ppm = 1000000,
                             .has_roofline = true,
                             .roofline = { .fp32_flops = 1000000000000,
                                           .memory_bytes_per_s = 100000000000 } };

static void rewrite (train_case *c, const small_net *s, train_mode mode) {
  error err = { 0 };
  if (mode == CUT || mode == MIXED) {
    c->sections = NEW (c->a, c->trace->n_ops, section, &err);
    bool level = mode == CUT;
    c->n_sections = small_cut (c->trace, level ? 2 : 3, level ? SECTION_LEVEL : SECTION_DEPTH,
                               level ? INT32_MAX : 7, c->sections, c->a);
    ck_assert_msg (c->n_sections > 0, "%s: nothing was cut", s->name);
  }
  if (mode == MADE_AGAIN || mode == MIXED) {
    rewritten cut = small_rewrite (c->trace, c->sections, c->n_sections, NULL, 0, c->a);
    c->recomputes = NEW (c->a, cut.trace->n_ops, recompute, &err);
    c->n_recomputes =
        small_copies (c->trace, c->sections, c->n_sections, cut.trace, c->recomputes, c->a);
    ck_assert_msg (c->n_recomputes > 0, "%s: nothing is made again", s->name);
  }
  ck_assert_msg (trace_rewrite (c->trace,
                                &(rewriting){ .sections = c->sections,
                                              .n_sections = c->n_sections,
                                              .recomputes = c->recomputes,
                                              .n_recomputes = c->n_recomputes,
                                              .section_ns = c->device.section_ns },
                                c->a, &c->rewritten, &err),
                 "%s: %s", s->name, err.text);
}

/* The same seed asks for the same moves whatever the budget. */
static plan *plan_in (train_case *c, int64_t budget, error *err) {
  random_state r = random_seed (5);
  wish *wishes;
  int32_t count;
  schedule_shortage shortage;
  schedule_options o = { .budget_bytes = budget, .host_bytes = c->device.host_bytes };
  return random_wishes (&c->units, &r, 1000000, c->a, &wishes, &count, err)
             ? schedule (&(schedule_request){ .original = c->trace,
                                              .rewritten = &c->rewritten,
                                              .sections = c->sections,
                                              .n_sections = c->n_sections,
                                              .recomputes = c->recomputes,
                                              .n_recomputes = c->n_recomputes,
                                              .device = &c->device,
                                              .wishes = wishes,
                                              .n_wishes = count,
                                              .options = &o },
                         c->a, &shortage, err)
             : NULL;
}

static void find_least (train_case *c) {
  int64_t low = 0, high = c->most_bytes / GRANULE;
  for (int i = 0; i < 12 && high - low > 1; i++) {
    error err = { 0 };
    arena_mark mark = arena_here (c->a);
    int64_t middle = (low + high) / 2;
    if (plan_in (c, middle * GRANULE, &err) != NULL)
      high = middle;
    else
      low = middle;
    arena_back (c->a, mark);
  }
  c->least_bytes = high * GRANULE;
}

void train_case_open (train_case *c, const small_net *s, train_mode mode) {
  error err = { 0 };
  *c = (train_case){ .a = arena_new (0), .device = card };
  c->trace = small_trace (s, c->a);
  rewrite (c, s, mode);
  ck_assert_msg (units_of (c->rewritten.trace, NULL, 0, GRANULE, 0, c->a, &c->units, &err), "%s",
                 err.text);
  c->most_bytes = GRANULE;
  for (int32_t u = 0; u < c->units.count; u++)
    c->most_bytes += c->units.at[u].granules * GRANULE;
  find_least (c);
}

void train_case_close (train_case *c) {
  arena_free (c->a);
}

plan *train_case_plan (train_case *c, train_room room) {
  error err = { 0 };
  int64_t half = (c->most_bytes + c->least_bytes) / 2 / GRANULE * GRANULE;
  plan *p = plan_in (c, room == AMPLE ? c->most_bytes : room == HALF ? half : c->least_bytes, &err);
  ck_assert_msg (p != NULL, "%s", err.text);
  return p;
}

train_options train_case_options (int32_t steps) {
  return (train_options){ .replay = { .library = emu_case_path (),
                                      .emulated = true,
                                      .clock = EMU_VIRTUAL,
                                      .bytes = EMU_ALL,
                                      .iterations = steps },
                          .compare = true };
}
