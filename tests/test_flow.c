/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The flow program is a relaxation of the machine model: with its gaps fixed to what a plan does,
   it says no more than the simulator.  Each of its rows is made wrong once, to see that this test
   would notice. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixed.h"
#include "tests/flow_case.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "tests/synthetic.h"

typedef struct trial {
  planned_case p;
  gaps g;
  slots s;
  flow f;
  double real_ns;
} trial;

/* False: this seed makes no trial. */
static bool trial_make (uint64_t seed, arena *a, trial *t) {
  error err = { 0 };
  random_state r = random_seed (seed * 77 + 1);
  if (!planned_make (seed, CASE_EVERYTHING, a, &t->p, &err)) {
    ck_assert_msg (err.code == ERR_none, "seed %llu: %s", (unsigned long long)seed, err.text);
    return false;
  }
  const plan *p = t->p.c.plan;
  flow_options o = { .dev = &p->device,
                     .host_bytes = seed % 3 ? p->host_bytes : t->p.seen.host_peak_bytes,
                     .classes = (int)random_between (&r, 1, 3),
                     .latency = true };
  ck_assert_msg (planned_gaps (&t->p, a, &t->g, &err) &&
                     flow_case_slots (&t->g, &r, a, &t->s, &err) &&
                     flow_build (&t->g, &t->s, &o, a, &t->f, &err),
                 "seed %llu: %s", (unsigned long long)seed, err.text);
  t->real_ns = (double)(t->p.seen.step_ns - t->p.seen.compute_ns);
  return true;
}

/* Whether the program says more than the simulator, or that the plan is impossible. */
static bool contradicts (trial *t, arena *a, double *stall_ns) {
  error err = { 0 };
  ck_assert_msg (fixed_solve (&t->f, t->p.c.plan, a, stall_ns, &err), "%s", err.text);
  return *stall_ns < 0 || *stall_ns > t->real_ns + 1e-6 * (double)(1 + t->p.seen.step_ns);
}

CLAIM (fixed_to_a_plan_the_program_never_says_more_than_the_simulator) {
  int tried = 0, binding = 0, equal = 0, clean = 0, wraps = 0, shared = 0, runs = 0, host = 0;
  int differ = 0, idle = 0, classes = 0;
  for (int seed = 0; seed < suite_cases (1000); seed++) {
    arena *a = arena_new (0);
    trial t;
    double stall_ns;
    if (trial_make ((uint64_t)seed, a, &t)) {
      ck_assert_msg (!contradicts (&t, a, &stall_ns), "seed %d: program %.3f ns, simulated %.0f",
                     seed, stall_ns, t.real_ns);
      tried++;
      for (int32_t i = 0; i < t.f.n_gaps; i++)
        wraps += t.f.gaps[i].wraps;
      for (int32_t i = 0; i < t.p.c.plan->n_moves; i++)
        clean += t.p.c.plan->moves[i].clean;
      shared += t.f.link.shared;
      runs += t.s.count < t.g.n_ops;
      host += t.f.host_limited;
      differ += t.f.link.rates.out_alone != t.f.link.rates.in_alone;
      classes += t.f.n_classes > 1;
      for (int32_t j = 0; j < t.s.count; j++)
        idle += t.f.idle_out[j] > 0;
      /* one move that does not dawdle, and no rounding of sizes or latency in between */
      if (seed % 4 == 3 && stall_ns > 0.5 && !t.f.link.shared) {
        binding++;
        equal += stall_ns >= t.real_ns - 2 - 1e-3 * t.real_ns;
      }
    }
    arena_free (a);
  }
  ck_assert_msg (tried * 20 >= suite_cases (1000) * 19, "only %d cases", tried);
  ck_assert (clean && wraps && shared && runs && host && differ && idle && classes);
  /* teeth: a program that says little is a relaxation too */
  ck_assert_msg (equal * 25 >= binding && equal > 0, "%d of %d reach the simulator", equal,
                 binding);
}

/* ---- rows made wrong ---- */

static void limit (flow *f, int row, int num, int den) {
  for (int32_t r = 0; r < f->n_rows; r++)
    if (flow_row_is (f, r, row))
      f->row_limit[r] = f->row_limit[r] * num / den;
}

static void slow_out (trial *t) {
  flow_scale (&t->f, ROW_stall_out, COLUMN_stall_out, 3, 2);
}
static void slow_in (trial *t) {
  flow_scale (&t->f, ROW_stall_in, COLUMN_stall_in, 3, 2);
}
static void no_idle (trial *t) {
  limit (&t->f, ROW_stall_out, 0, 1);
  limit (&t->f, ROW_stall_in, 0, 1);
}
static void no_work (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++)
    if (t->f.column_kind[c] == COLUMN_work_out || t->f.column_kind[c] == COLUMN_work_in)
      t->f.high[c] = 0;
}
static void no_wrap (trial *t) {
  flow_scale (&t->f, ROW_cycle, COLUMN_gap_out, 0, 1);
  flow_scale (&t->f, ROW_cycle, COLUMN_gap_clean, 0, 1);
}
static void more_need (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++)
    if (t->f.column_kind[c] == COLUMN_host && t->f.low[c] > 0)
      t->f.low[c] = t->f.high[c] < t->f.low[c] * 2 ? t->f.high[c] : t->f.low[c] * 2;
}
static void less_host (trial *t) {
  limit (&t->f, ROW_host_limit, 1, 2);
}
/* What leaves clean is said to cross the link. */
static void clean_costs (trial *t) {
  for (int32_t i = 0; i < t->f.n_chains; i++)
    for (int32_t k = 0; k < t->f.chains[i].count; k++) {
      const flow_chain *c = &t->f.chains[i];
      int32_t slot = t->f.gaps[c->first + k].release;
      int32_t from = flow_row (&t->f, ROW_host_first, slot, c->class);
      int32_t to = flow_row (&t->f, ROW_pending, slot, c->class);
      for (int32_t col = c->column; col < t->f.n_columns; col++)
        for (int64_t e = t->f.column_start[col]; e < t->f.column_start[col + 1]; e++)
          if (t->f.column_kind[col] == COLUMN_gap_clean && t->f.column_at[col] == c->link + k &&
              t->f.entry_row[e] == from && to >= 0)
            t->f.entry_row[e] = to;
    }
}
/* A copy holds for no later gap. */
static void clean_is_lost (trial *t) {
  flow_scale (&t->f, ROW_clean, COLUMN_gap_out, 0, 1);
  flow_scale (&t->f, ROW_clean, COLUMN_gap_valid, 0, 1);
}
static void both_at_half (trial *t) {
  if (t->f.link.shared) {
    flow_scale (&t->f, ROW_stall_out, COLUMN_stall_in, 3, 1);
    flow_scale (&t->f, ROW_stall_in, COLUMN_stall_out, 3, 1);
  }
}
static void due_a_slot_early (trial *t) {
  for (int32_t r = 0; r < t->f.n_rows; r++)
    if (flow_row_is (&t->f, r, ROW_early_first) || flow_row_is (&t->f, r, ROW_early)) {
      /* nothing may be early: it is on time to the slot, which plans are not bound to */
      for (int32_t c = 0; c < t->f.n_columns; c++)
        if (t->f.column_kind[c] == COLUMN_early)
          t->f.high[c] = 0;
      return;
    }
}
static void latency_twice (trial *t) {
  if (t->f.n_classes > 1 || !t->p.c.plan->device.link.copy_ns)
    return;
  flow_scale (&t->f, ROW_stall_out, COLUMN_stall_out, (int)(t->f.class[0].out >> 12) * 2 - 4096,
              (int)(t->f.class[0].out >> 12) > 0 ? (int)(t->f.class[0].out >> 12) : 1);
}
/* A run with the need of its worst op. */
static void need_in_runs (trial *t) {
  for (int32_t c = 0; c < t->f.n_columns; c++) {
    if (t->f.column_kind[c] != COLUMN_host)
      continue;
    int32_t j = t->f.column_at[c] / t->f.n_classes;
    if (!slots_is_run (&t->s, j))
      continue;
    for (int32_t k = t->s.first[j]; k < t->s.first[j + 1]; k++) {
      int64_t need = t->g.base_bytes[k] - t->g.unused_bytes - t->g.room_bytes;
      int64_t grains = need > 0 ? flow_grains_down (&t->f.link, need) : 0;
      if (grains > t->f.low[c])
        t->f.low[c] = grains < t->f.high[c] ? grains : t->f.high[c];
    }
  }
}

typedef struct fault {
  const char *name;
  void (*make) (trial *t);
  int seen;
} fault;

CLAIM (a_row_made_wrong_is_noticed) {
  fault faults[] = { { "out engine slower", slow_out, 0 },
                     { "in engine slower", slow_in, 0 },
                     { "idle time forgotten", no_idle, 0 },
                     { "no copies while compute works", no_work, 0 },
                     { "nothing wraps", no_wrap, 0 },
                     { "twice the need", more_need, 0 },
                     { "half the host", less_host, 0 },
                     { "clean moves cross the link", clean_costs, 0 },
                     { "copies are lost", clean_is_lost, 0 },
                     { "engines that share get less", both_at_half, 0 },
                     { "nothing is early", due_a_slot_early, 0 },
                     { "latency counted twice", latency_twice, 0 },
                     { "memory rows in runs", need_in_runs, 0 } };
  int n = sizeof faults / sizeof *faults;
  for (int seed = 0; seed < suite_cases (1000); seed++)
    for (int i = 0; i < n; i++) {
      if (faults[i].seen >= 2)
        continue;
      arena *a = arena_new (0);
      trial t;
      double stall_ns;
      if (trial_make ((uint64_t)seed, a, &t)) {
        faults[i].make (&t);
        faults[i].seen += contradicts (&t, a, &stall_ns);
      }
      arena_free (a);
    }
  for (int i = 0; i < n; i++)
    ck_assert_msg (faults[i].seen > 0, "%s: not noticed", faults[i].name);
}

/* ---- LP text ---- */

/* What glpsol says about the file; NAN where there is no glpsol. */
static double glpsol (const char *lp, const char *out) {
  pid_t child = fork ();
  if (child == 0) {
    int quiet = open ("/dev/null", O_WRONLY);
    dup2 (quiet, 1);
    dup2 (quiet, 2);
    execlp ("glpsol", "glpsol", "--lp", lp, "-o", out, (char *)NULL);
    _exit (127);
  }
  int status;
  waitpid (child, &status, 0);
  if (!WIFEXITED (status) || WEXITSTATUS (status) == 127)
    return NAN;
  char line[256];
  double value = NAN;
  FILE *f = fopen (out, "r");
  ck_assert (f);
  while (fgets (line, sizeof line, f))
    if (strncmp (line, "Objective:", 10) == 0)
      value = strtod (strchr (line, '=') + 1, NULL);
  fclose (f);
  return value;
}

CLAIM (the_text_means_the_same_to_glpsol) {
  char lp[64], out[64];
  int compared = 0;
  snprintf (lp, sizeof lp, "flow-%d.lp", (int)getpid ());
  snprintf (out, sizeof out, "flow-%d.txt", (int)getpid ());
  for (int kind = SYNTHETIC_GPT; kind <= SYNTHETIC_RANDOM; kind++) {
    error err = { 0 };
    arena *a = arena_new (0);
    device dev = { .granule_bytes = 1 << 20,
                   .link = { 20000000000, 25000000000,
                             kind == SYNTHETIC_GPT ? 30000000000 : 45000000000, 10000 },
                   .host_bytes = (int64_t)1 << 31,
                   .share_ppm = 1000000 };
    trace *t = synthetic ((synthetic_kind)kind, 60, 3, a, &err);
    units u;
    gaps g;
    slots s;
    flow f;
    ilp_problem p;
    ilp_result r;
    bytes text = { 0 };
    flow_options o = { .dev = &dev, .host_bytes = dev.host_bytes, .classes = 2, .latency = true };
    ilp_options how = { .method = ILP_INTERIOR };
    ck_assert_msg (
        t && units_of (t, NULL, 0, dev.granule_bytes, 0, a, &u, &err) &&
            gaps_of (&u, dev.granule_bytes, INT64_MAX / 8, a, &g, &err) &&
            gaps_of (&u, dev.granule_bytes, (g.peak_bytes + g.floor_bytes) / 2, a, &g, &err) &&
            slots_each (&g, a, &s, &err) && flow_build (&g, &s, &o, a, &f, &err) &&
            flow_problem (&f, a, &p, &err) && ilp_solve (&p, &how, a, &r, &err) &&
            flow_write_lp (&f, &text, &err) &&
            file_write (lp, text.data, text.size, FILE_PLAIN, &err),
        "%s", err.text);
    ck_assert_int_eq (r.status, ILP_OPTIMAL);
    double value = glpsol (lp, out);
    if (!isnan (value)) {
      ck_assert_msg (fabs (value - r.value) <= 1e-5 * (1 + fabs (value)), "glpsol %.9g, here %.9g",
                     value, r.value);
      compared += value > 0;
    }
    bytes_free (&text);
    arena_free (a);
  }
  unlink (lp);
  unlink (out);
  if (access ("/usr/bin/glpsol", X_OK) == 0)
    ck_assert_int_gt (compared, 0);
}

CLAIM_IN_ARENA (a_need_that_nothing_meets_names_its_op) {
  trace_builder *b = build_new (a, "small", 1, &err);
  units u;
  gaps g;
  build_tensor (b, "x", 4096, TENSOR_ACTIVATION);
  build_op (b, "first", OP_FORWARD, 10);
  build_write (b, 0);
  build_op (b, "large", OP_FORWARD, 10);
  build_op_at (b, 1)->workspace_bytes = 8192;
  build_op (b, "last", OP_FORWARD, 10);
  build_read (b, 0);
  trace *t = build_finish (b, &err);
  ck_assert (t && units_of (t, NULL, 0, 512, 0, a, &u, &err) &&
             gaps_of (&u, 512, 8191, a, &g, &err));
  ck_assert_int_eq (g.floor_bytes, 8192);
  ck_assert_int_eq (g.peak_bytes, 12288);
  ck_assert_int_eq (g.floor_op, 1);
  device dev = { .link = { 1000000000, 1000000000, 2000000000, 0 }, .share_ppm = 1000000 };
  flow_options o = { .dev = &dev, .host_bytes = 1 << 20, .classes = 1 };
  slots s;
  flow f;
  ck_assert (slots_each (&g, a, &s, &err));
  ck_assert (!flow_build (&g, &s, &o, a, &f, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  ck_assert_ptr_nonnull (strstr (err.text, "op 1 (large) alone needs 8.00 KiB"));
}

int main (void) {
  return suite_run ("flow", 60);
}
