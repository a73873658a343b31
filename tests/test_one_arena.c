/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places in one arena: offsets for recorded and made allocations, plans of random traces whose
   places are looked at once more here, other offsets that check refuses, and bytes that are right
   after some steps on the emulator. */
#include <string.h>

#include "base/random.h"
#include "executor/replay/replay.h"
#include "solver/place/offsets.h"
#include "solver/solve.h"
#include "tests/emu_case.h"
#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"
#include "trace/zoo/zoo.h"

/* ---- offsets ---- */

enum { MOST = 2000, MIB = 1 << 20 };

typedef struct boxes {
  offset_window windows[MOST];
  offset_thing things[MOST];
  int32_t count;
} boxes;

static void add_box (boxes *b, int32_t from, int32_t end, int64_t bytes) {
  ck_assert_int_lt (b->count, MOST);
  b->windows[b->count] = (offset_window){ from, end, 0, bytes };
  b->things[b->count] = (offset_thing){ b->count, 1, bytes };
  b->count++;
}

/* No two share a byte at a moment, and all lie within: nothing of the packer is used. */
static void lie_apart (const boxes *b, const int64_t *offset, const char *name) {
  for (int32_t i = 0; i < b->count; i++) {
    const offset_window *x = &b->windows[i];
    ck_assert_msg (offset[i] >= 0 && offset[i] + x->high <= MIB, "%s: %d ends at %lld", name, i,
                   (long long)(offset[i] + x->high));
    for (int32_t j = 0; j < i; j++) {
      const offset_window *y = &b->windows[j];
      bool meet = x->from < y->end && y->from < x->end;
      ck_assert_msg (!meet || offset[i] + x->high <= offset[j] || offset[j] + y->high <= offset[i],
                     "%s: %d and %d share bytes", name, i, j);
    }
  }
}

static void fits (const boxes *b, const char *name) {
  arena *a = arena_new (0);
  error err = { 0 };
  offset_answer out;
  offset_problem p = { b->windows, b->things, b->count, b->count, MIB };
  ck_assert (offsets_find (&p, (int64_t)1 << 30, a, &out, &err));
  ck_assert_msg (out.height_bytes <= MIB, "%s: %lld bytes", name, (long long)out.height_bytes);
  lie_apart (b, out.offset, name);
  arena_free (a);
}

CLAIM (recorded_allocations_fit_in_their_capacity) {
  static const char *const names[] = { "A", "B", "C" };
  const char *folder = getenv ("FERRY_REAL_TRACES");
  for (int i = 0; folder && i < 3; i++) {
    static boxes b;
    char path[4096], line[200];
    b.count = 0;
    snprintf (path, sizeof path, "%s/minimalloc/%s.csv", folder, names[i]);
    FILE *f = fopen (path, "r");
    ck_assert_msg (f && fgets (line, sizeof line, f), "%s", path);
    while (fgets (line, sizeof line, f)) {
      char *at = strchr (line, ',');
      long from = strtol (at + 1, &at, 10), end = strtol (at + 1, &at, 10);
      add_box (&b, (int32_t)from, (int32_t)end, strtol (at + 1, NULL, 10));
    }
    fclose (f);
    ck_assert_int_gt (b.count, 100);
    fits (&b, path);
  }
}

/* A rectangle of time and bytes, cut into two again and again; each piece is then a little
   smaller. */
static void cut (boxes *b, random_state *r, const int64_t side[4], int depth) {
  int64_t from = side[0], end = side[1], low = side[2], high = side[3];
  bool may = end - from > 40 || high - low > MIB / 40;
  if (depth == 0 || !may) {
    int64_t bytes = (high - low) / 512 * 512;
    bytes -= bytes > 4096 ? random_between (r, 0, 2) * 512 : 0;
    if (bytes > 0)
      add_box (b, (int32_t)from, (int32_t)end, bytes);
    return;
  }
  bool in_time = (end - from) * (MIB / 1000) > high - low ? random_between (r, 0, 3) > 0
                                                          : random_between (r, 0, 3) == 0;
  int64_t part = 250 + random_between (r, 0, 500);
  int64_t at = in_time ? from + (end - from) * part / 1000 : low + (high - low) * part / 1000;
  if (in_time ? at == from || at == end : at == low || at == high)
    return cut (b, r, side, 0);
  cut (b, r, (int64_t[]){ from, in_time ? at : end, low, in_time ? high : at }, depth - 1);
  cut (b, r, (int64_t[]){ in_time ? at : from, end, in_time ? low : at, high }, depth - 1);
}

CLAIM (made_allocations_fit_in_their_capacity) {
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (12); seed++) {
    static boxes b;
    char name[40];
    random_state r = random_seed (seed);
    b.count = 0;
    cut (&b, &r, (int64_t[]){ 0, 1000, 0, MIB }, 6);
    snprintf (name, sizeof name, "made %d", (int)seed);
    ck_assert_int_gt (b.count, 30);
    fits (&b, name);
  }
}

enum { MOMENTS = 1000, LAYERS = 60, STEP = 512, MOST_STEPS = 9 * LAYERS };

/* Around a circle of moments, in layers: each is one thing of the whole time, or some that follow
   each other, one of them over the end. The layers' bytes together. */
static int64_t add_layers (boxes *b, random_state *r, int32_t *windows) {
  int64_t load = 0;
  for (int layer = 0; layer < LAYERS; layer++) {
    int64_t bytes = random_between (r, 1, 9) * STEP;
    int32_t pieces = (int32_t)random_between (r, 1, 4), from = 0;
    int32_t turn = (int32_t)random_between (r, 0, MOMENTS - 1);
    load += bytes;
    for (int32_t i = 0; i < pieces; i++) {
      int32_t end = i + 1 == pieces ? MOMENTS : from + (MOMENTS - from) / (pieces - i);
      int32_t x = (from + turn) % MOMENTS, y = (end + turn - 1) % MOMENTS + 1;
      b->things[b->count++] = (offset_thing){ *windows, x < y ? 1 : 2, bytes };
      b->windows[(*windows)++] = (offset_window){ x, x < y ? y : MOMENTS, 0, bytes };
      if (x >= y)
        b->windows[(*windows)++] = (offset_window){ 0, y, 0, bytes };
      from = end;
    }
  }
  return load;
}

/* No byte is taken twice at a moment; the height. The asking is done once: libcheck writes a word
   to a pipe for each question. */
static int64_t height_of (const boxes *b, const int64_t *offset) {
  static bool taken[2 * MOST_STEPS][MOMENTS];
  int64_t height = 0;
  bool twice = false;
  memset (taken, 0, sizeof taken);
  for (int32_t i = 0; i < b->count; i++) {
    const offset_thing *t = &b->things[i];
    int64_t top = offset[i] + t->bytes;
    height = top > height ? top : height;
    ck_assert_int_le (top, (int64_t)2 * MOST_STEPS * STEP);
    for (const offset_window *w = &b->windows[t->first]; w < &b->windows[t->first + t->count]; w++)
      for (int64_t at = offset[i] / STEP; at < top / STEP; at++)
        for (int32_t k = w->from; k < w->end; k++) {
          twice |= taken[at][k];
          taken[at][k] = true;
        }
  }
  ck_assert (!twice);
  return height;
}

CLAIM (a_skyline_goes_around_the_circle_and_rounds_only_lower_it) {
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (20); seed++) {
    static boxes b;
    random_state r = random_seed (seed);
    arena *a = arena_new (0);
    error err = { 0 };
    int64_t ticks = 0, *offset;
    int32_t windows = 0;
    offset_answer out;
    b.count = 0;
    offset_problem p = { .windows = b.windows, .things = b.things };
    int64_t load = p.capacity_bytes = add_layers (&b, &r, &windows);
    p.n_windows = windows;
    p.n_things = b.count;
    ck_assert ((offset = NEW (a, b.count, int64_t, &err)) != NULL);
    for (int by_area = 0; by_area < 2; by_area++) {
      ck_assert (offsets_skyline (&p, by_area, a, offset, &ticks, &err));
      int64_t height = height_of (&b, offset);
      ck_assert (offsets_greedy (&p, 100000, a, &out, &err));
      ck_assert_int_eq (height_of (&b, out.offset), out.height_bytes);
      ck_assert_int_le (out.height_bytes, height);
      ck_assert_int_ge (out.height_bytes, load);
      ck_assert_int_le (4 * out.height_bytes, 5 * load);
    }
    ck_assert_int_gt (ticks, 0);
    arena_free (a);
  }
}

/* ---- plans of random traces ---- */

enum { CASES = 60, GRANULE = 2048 };

typedef struct problem {
  random_case c;
  device dev;
  int64_t budget_bytes;
} problem;

static problem problem_of (uint64_t seed, arena *a) {
  error err = { 0 };
  problem p;
  gaps g;
  units u;
  case_options o = { .seed = seed,
                     .features = CASE_WRAP | CASE_WORKSPACE | CASE_SHARED_RATE | CASE_COPY_NS |
                                 CASE_GAPS | CASE_LIVES };
  ck_assert_msg (random_case_make (&o, a, &p.c, &err), "%s", err.text);
  p.dev = p.c.plan->device;
  p.dev.memory_bytes = p.dev.host_bytes = (int64_t)1 << 40;
  p.dev.reserved_bytes = 0;
  p.dev.granule_bytes = GRANULE;
  ck_assert (units_of (p.c.trace, NULL, 0, PLACEMENT_STEP, 0, a, &u, &err));
  ck_assert (gaps_of (&u, PLACEMENT_STEP, (int64_t)1 << 40, a, &g, &err));
  int64_t at = g.floor_bytes + (g.peak_bytes - g.floor_bytes) * (int64_t)(seed % 4) / 4;
  p.budget_bytes = (at + GRANULE - 1) / GRANULE * GRANULE;
  return p;
}

static bool solved (const problem *p, places_mode how, arena *a, solution *s, error *err) {
  solve_options o = { .device = &p->dev,
                      .budget_bytes = p->budget_bytes,
                      .host_bytes = p->dev.host_bytes,
                      .limit_ticks = 20000,
                      .placement = how,
                      .seed = 5 };
  return solve (p->c.trace, &o, a, s, err);
}

/* When the stays are there, as the simulator draws them; -1 to -1 are those that never leave. */
static const span *spans_of (const problem *p, const plan *x, arena *a, int64_t *period_ns) {
  error err = { 0 };
  rewritten rw;
  predicted cost;
  timeline line;
  sim_options o = { .timeline_arena = a };
  ck_assert (plan_rewrite (p->c.trace, x, a, &rw, &err));
  ck_assert (simulate (&(sim_job){ p->c.trace, &rw, x }, 1, &o, a, &cost, &line, &err));
  *period_ns = line.period_ns;
  return line.stays;
}

static bool meet (const span *x, const span *y, int64_t period_ns) {
  bool x_always = x->start_ns == -1 && x->end_ns == -1,
       y_always = y->start_ns == -1 && y->end_ns == -1;
  if (x_always || y_always)
    return (x_always || x->start_ns < x->end_ns) && (y_always || y->start_ns < y->end_ns);
  for (int64_t turn = -3; turn <= 3; turn++)
    if (x->start_ns < y->end_ns + turn * period_ns && y->start_ns + turn * period_ns < x->end_ns)
      return true;
  return false;
}

static bool share (const granule_run *x, const granule_run *y) {
  return x->first < y->first + y->count && y->first < x->first + x->count;
}

CLAIM (stays_that_meet_share_no_byte_and_the_budget_is_kept) {
  int done = 0, moved = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s;
    problem p = problem_of (seed, a);
    if (solved (&p, PLACES_ARENA, a, &s, &err)) {
      const placement *pl = &s.plan->placement;
      int64_t period_ns;
      ck_assert_msg (check_plan (p.c.trace, s.plan, a, NULL, &err), "%s", err.text);
      ck_assert_int_eq (pl->kind, PLACEMENT_ARENA);
      ck_assert_int_eq (s.plan->device.granule_bytes, GRANULE);
      ck_assert_int_le (s.plan->predicted.peak_bytes, p.budget_bytes);
      ck_assert_int_eq (s.plan->predicted.peak_bytes % GRANULE, 0);
      ck_assert_int_le (s.plan->certificate.lower_bound_ns, s.plan->predicted.step_ns);
      const span *at = spans_of (&p, s.plan, a, &period_ns);
      for (int32_t i = 0; period_ns > 0 && i < pl->n_stays; i++) {
        ck_assert_int_eq (pl->stays[i].n_runs, 1);
        for (int32_t j = 0; j < i; j++)
          ck_assert_msg (
              !meet (&at[i], &at[j], period_ns) ||
                  !share (&pl->runs[pl->stays[i].first_run], &pl->runs[pl->stays[j].first_run]),
              "seed %d: stays %d and %d", (int)seed, i, j);
      }
      done++;
      moved += s.plan->n_moves > 0;
    } else
      ck_assert_msg (err.code == ERR_infeasible || err.code == ERR_limit, "%s", err.text);
    arena_free (a);
  }
  ck_assert_int_gt (done, suite_cases (CASES) / 3);
  ck_assert_int_gt (moved, suite_cases (CASES) / 8);
}

CLAIM (whichever_is_better_is_never_worse_than_granules) {
  int better = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)suite_cases (CASES); seed++) {
    arena *a = arena_new (0);
    error err = { 0 }, why = { 0 };
    solution one, either;
    problem p = problem_of (seed, a);
    bool granules = solved (&p, PLACES_GRANULES, a, &one, &err);
    bool any = solved (&p, PLACES_AUTO, a, &either, &why);
    ck_assert (any || !granules);
    if (any) {
      ck_assert_msg (check_plan (p.c.trace, either.plan, a, NULL, &err), "%s", err.text);
      ck_assert (!granules || either.plan->predicted.step_ns <= one.plan->predicted.step_ns);
      better += !granules || either.plan->predicted.step_ns < one.plan->predicted.step_ns;
    }
    arena_free (a);
  }
  ck_assert_int_gt (better, 0);
}

/* Any stay moved onto another that is there at the same time is refused. */
CLAIM (other_offsets_are_refused) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    arena *a = arena_new (0);
    error err = { 0 };
    solution s;
    problem p = problem_of (seed, a);
    if (solved (&p, PLACES_ARENA, a, &s, &err)) {
      placement *pl = &s.plan->placement;
      int64_t period_ns;
      const span *at = spans_of (&p, s.plan, a, &period_ns);
      for (int32_t i = 1; period_ns > 0 && i < pl->n_stays; i++) {
        granule_run *x = &pl->runs[pl->stays[i].first_run], kept = *x;
        const granule_run *y = &pl->runs[pl->stays[i - 1].first_run];
        if (!meet (&at[i], &at[i - 1], period_ns) || y->first + x->count > pl->granules)
          continue;
        x->first = y->first;
        error why = { 0 };
        ck_assert_msg (!check_plan (p.c.trace, s.plan, a, NULL, &why), "seed %d, stay %d",
                       (int)seed, i);
        ck_assert_int_eq (why.code, ERR_infeasible);
        *x = kept;
        tried++;
      }
      ck_assert (check_plan (p.c.trace, s.plan, a, NULL, &err));
    }
    arena_free (a);
  }
  ck_assert_int_gt (tried, 50);
}

/* ---- on the emulator ---- */

static const device small = { .name = "card",
                              .memory_bytes = (int64_t)1 << 42,
                              .granule_bytes = 65536,
                              .link = { 12000000000, 12000000000, 22000000000, 10000 },
                              .host_bytes = (int64_t)1 << 42,
                              .section_ns = 10000,
                              .share_ppm = 1000000,
                              .has_roofline = true,
                              .roofline = { .fp32_flops = 10970000000000,
                                            .memory_bytes_per_s = 480000000000,
                                            .efficiency_ppm = 700000,
                                            .op_ns = 5000 } };

/* A network on that card, in so much of what lies between its floor and its peak. */
static problem network_of (zoo_request q, int64_t percent, arena *a) {
  error err = { 0 };
  problem p = { .dev = small };
  units u;
  gaps g;
  q.device = &small;
  ck_assert_msg ((p.c.trace = zoo_trace (&q, a, &err)), "%s", err.text);
  ck_assert (units_of (p.c.trace, NULL, 0, PLACEMENT_STEP, 0, a, &u, &err));
  ck_assert (gaps_of (&u, PLACEMENT_STEP, (int64_t)1 << 40, a, &g, &err));
  p.budget_bytes = (g.floor_bytes + (g.peak_bytes - g.floor_bytes) * percent / 100) / 65536 * 65536;
  return p;
}

static void replays (const char *name, const problem *p, arena *a) {
  error err = { 0 };
  solution s;
  replay_result r;
  ck_assert_msg (solved (p, PLACES_ARENA, a, &s, &err), "%s: %s", name, err.text);
  ck_assert_int_gt (s.plan->n_moves, 0);
  replay_options o = { .library = emu_case_path (),
                       .emulated = true,
                       .clock = EMU_VIRTUAL,
                       .bytes = EMU_ALL,
                       .verify = true,
                       .races = true };
  ck_assert_msg (replay_run (p->c.trace, s.plan, &o, a, &r, &err), "%s: %s", name, err.text);
  ck_assert_int_eq (r.found.count, 0);
  ck_assert_int_eq (r.n_races, 0);
  ck_assert_int_eq (r.device_bytes, s.plan->predicted.peak_bytes);
  ck_assert_int_eq (r.predicted.step_ns, r.seen.step_ns);
}

CLAIM (every_byte_is_right_in_an_arena) {
  static const zoo_request networks[] = {
    { .name = "vgg16", .batch = 2, .width_divisor = 16, .classes = 10 },
    { .name = "resnet50", .batch = 2, .width_divisor = 16, .depth_divisor = 4, .classes = 10 },
    { .name = "seq2seq", .batch = 2, .width_divisor = 16, .seq = 8, .classes = 50 },
    { .name = "gpt2",
      .batch = 2,
      .width_divisor = 4,
      .depth_divisor = 4,
      .seq = 32,
      .classes = 50 },
  };
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
    for (int64_t percent = 20; percent < 70; percent += 46) {
      arena *a = arena_new (0);
      problem p = network_of (networks[i], percent, a);
      replays (networks[i].name, &p, a);
      arena_free (a);
    }
}

static int64_t step_of (const problem *p, int64_t late_ticks, arena *a) {
  error err = { 0 };
  solution s;
  tuning by = tuning_shipped;
  by.at[TUNE_place_late_ticks] = late_ticks;
  solve_options o = { .device = &p->dev,
                      .budget_bytes = p->budget_bytes,
                      .host_bytes = p->dev.host_bytes,
                      .limit_ticks = 100000,
                      .tuning = &by,
                      .placement = PLACES_ARENA };
  ck_assert_msg (solve (p->c.trace, &o, a, &s, &err), "%s", err.text);
  return s.plan->predicted.step_ns;
}

/* Where all that a run holds has no places, a little of it comes later or leaves earlier: without
   that everything waits. */
CLAIM_IN_ARENA (what_has_no_places_is_there_for_less_of_the_step) {
  problem p = network_of ((zoo_request){ .name = "resnet18", .batch = 16 }, 10, a);
  ck_assert_int_lt (step_of (&p, 1600000, a) * 5, step_of (&p, 0, a) * 4);
}

int main (void) {
  return suite_run ("one_arena", 120);
}
