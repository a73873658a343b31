/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/solve_fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/policy/policy.h"
#include "solver/solve.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"
#include "trace/simulate/simulate.h"

enum { TICKS = 3000, LIMIT_BYTES = 512 << 20, MOST_GRANULES = 1 << 20 };

typedef struct source {
  const uint8_t *data;
  size_t size, at;
} source;

static void must (bool so, const char *what, const error *err) {
  if (so)
    return;
  fprintf (stderr, "%s: %s %s\n", what, err->where, err->text);
  abort ();
}

static int64_t next (source *s) {
  return s->at < s->size ? s->data[s->at++] : 0;
}

/* From `low` to `high`. */
static int64_t pick (source *s, int64_t low, int64_t high) {
  return low + next (s) % (high - low + 1);
}

/* Mostly small, sometimes as large as a file may say. */
static int64_t amount (source *s, int shift) {
  int64_t x = next (s);
  return x < 240 ? (x + 1) << shift : (pick (s, 1, 255) << pick (s, 0, 38)) + next (s);
}

/* Of an op, seldom none. */
static int64_t duration (source *s) {
  int64_t ns = amount (s, 4);
  return ns == 16 ? 0 : ns;
}

static trace *read_trace (source *s, arena *a) {
  error err = { 0 };
  int32_t n_ops = (int32_t)pick (s, 1, 12), n_tensors = (int32_t)pick (s, 0, 10);
  trace_builder *b = build_new (a, "fuzz", pick (s, 1, 8), &err);
  must (b != NULL, "builder", &err);
  for (int32_t x = 0; x < n_tensors; x++) {
    int64_t flags = next (s);
    build_tensor (b, "", amount (s, 7), (tensor_kind)pick (s, 0, TENSOR_KINDS - 1));
    tensor *t = build_tensor_at (b, x);
    t->persistent = flags & 1;
    t->pinned = (flags & 6) == 6;
    t->split = flags & 8;
    if (flags & 16)
      t->born_before = (int32_t)pick (s, 0, n_ops - 1);
    if (flags & 32)
      t->dies_after = (int32_t)pick (s, 0, n_ops - 1);
  }
  for (int32_t k = 0; k < n_ops; k++) {
    int64_t flags = next (s), uses = n_tensors ? flags & 7 : 0;
    build_op (b, "", (op_phase)pick (s, 0, OP_PHASES - 1), duration (s));
    op *o = build_op_at (b, k);
    o->gap_ns = flags & 8 ? amount (s, 3) : 0;
    o->workspace_bytes = flags & 16 ? amount (s, 7) : 0;
    o->parts = flags & 32 ? pick (s, 1, 8) : 1;
    for (int64_t i = 0; i < uses; i++) {
      int64_t what = next (s);
      int32_t x = (int32_t)(what % n_tensors);
      if (what & 128)
        build_read (b, x);
      if (!(what & 128) || what & 64)
        build_write (b, x);
    }
  }
  trace *t = build_finish (b, &err); /* lives that do not fit are refused */
  must (t || err.text[0], "a refusal without words", &err);
  return t;
}

static device read_device (source *s) {
  device d = { .name = "fuzz",
               .memory_bytes = MOST_BYTES,
               .host_bytes = MOST_BYTES,
               .granule_bytes = 512 << pick (s, 0, 12),
               .section_ns = pick (s, 0, 255),
               .share_ppm = 1000000 };
  device_link *l = &d.link;
  l->d2h_bytes_per_s = (next (s) + 1) * 1000000 << pick (s, 0, 14);
  l->h2d_bytes_per_s =
      next (s) & 1 ? l->d2h_bytes_per_s : (next (s) + 1) * 1000000 << pick (s, 0, 14);
  int64_t both = l->d2h_bytes_per_s + l->h2d_bytes_per_s, part = next (s);
  l->both_bytes_per_s = part < 64 ? both / 256 * (part * 2 + 129) : both;
  l->copy_ns = next (s) & 1 ? next (s) << pick (s, 0, 8) : 0;
  if (next (s) > 224)
    d.share_ppm = pick (s, 1, 255) * 3000;
  return d;
}

/* The same text twice, from a plan and from what was read of it. */
static void read_again (const plan *p, arena *a) {
  error err = { 0 };
  bytes first = { 0 }, second = { 0 };
  must (plan_text (p, true, &first, &err), "plan_text", &err);
  plan *again = plan_parse (first.data, first.size, NULL, a, &err);
  must (again != NULL, "plan_parse", &err);
  must (plan_text (again, true, &second, &err), "plan_text again", &err);
  must (first.size == second.size && memcmp (first.data, second.data, (size_t)first.size) == 0,
        "another text", &err);
  bytes_free (&first);
  bytes_free (&second);
}

static void judge (const trace *t, const plan *p, const solve_options *o, arena *a) {
  error err = { 0 };
  predicted cost = { 0 };
  must (check_plan (t, p, a, NULL, &err), "check", &err);
  must (simulate_plan (t, p, a, &cost, &err), "simulate", &err);
  const predicted *said = &p->predicted;
  must (cost.step_ns == said->step_ns && cost.compute_ns == said->compute_ns &&
            cost.baseline_ns == said->baseline_ns && cost.stall_ns == said->stall_ns &&
            cost.peak_bytes == said->peak_bytes && cost.host_peak_bytes == said->host_peak_bytes &&
            cost.d2h_bytes == said->d2h_bytes && cost.h2d_bytes == said->h2d_bytes &&
            cost.settled == said->settled,
        "another prediction", &err);
  must (cost.peak_bytes <= o->budget_bytes && cost.host_peak_bytes <= o->host_bytes, "too much",
        &err);
  read_again (p, a);
}

static void by_solve (const trace *t, solve_options *o) {
  error err = { 0 };
  solution s;
  proved proof;
  arena *a = arena_new (LIMIT_BYTES);
  if (!a)
    return;
  if (solve (t, o, a, &s, &err)) {
    judge (t, s.plan, o, a);
    must (s.bound.lower_bound_ns <= s.plan->predicted.step_ns, "below the bound", &err);
    if (s.plan->certificate.proof)
      must (prove_plan (t, s.plan, s.plan->predicted.step_ns, a, &proof, &err), "prove", &err);
    else
      must (o->sections != SECTIONS_OFF || o->recompute != RECOMPUTE_OFF, "no proof", &err);
  } else
    must ((err.code == ERR_infeasible || err.code == ERR_limit || err.code == ERR_memory ||
           err.code == ERR_input) &&
              err.text[0],
          "solve", &err);
  arena_free (a);
}

static void by_policy (const trace *t, const solve_options *o, policy_id id) {
  error err = { 0 };
  policy_answer answer;
  arena *a = arena_new (LIMIT_BYTES);
  policy_request r = {
    .trace = t, .device = o->device, .budget_bytes = o->budget_bytes, .host_bytes = o->host_bytes
  };
  if (!a)
    return;
  if (!policy_run (id, &r, a, &answer, &err))
    must ((err.code == ERR_infeasible || err.code == ERR_memory || err.code == ERR_input) &&
              err.text[0],
          "policy", &err);
  else if (answer.fits)
    must (check_plan (t, answer.plan, a, NULL, &err), "check of a policy", &err);
  arena_free (a);
}

void solve_fuzz (const uint8_t *data, size_t size) {
  source s = { .data = data, .size = size };
  arena *a = arena_new (0);
  error err = { 0 };
  units u;
  gaps g;
  if (!a)
    return;
  device d = read_device (&s);
  int64_t flags = next (&s), budget_part = next (&s), host_part = next (&s);
  policy_id id = (policy_id)pick (&s, 0, POLICIES - 1);
  trace *t = read_trace (&s, a);
  if (t && units_of (t, NULL, 0, d.granule_bytes, 0, a, &u, &err) &&
      gaps_of (&u, d.granule_bytes, MOST_BYTES, a, &g, &err)) {
    int64_t over = g.peak_bytes > g.floor_bytes ? g.peak_bytes - g.floor_bytes : 0;
    int64_t granules = g.peak_bytes / d.granule_bytes;
    if (granules > MOST_GRANULES && granules <= INT32_MAX) { /* places are given one by one */
      arena_free (a);
      return;
    }
    solve_options o = { .device = &d,
                        .budget_bytes = g.floor_bytes + over / 128 * (budget_part % 160),
                        .host_bytes = host_part < 128 ? over / 64 * host_part : MOST_BYTES,
                        .gap_ppm = flags & 1 ? 1 : 0,
                        .limit_ticks = TICKS,
                        .seed = 1,
                        .keep_proof = true,
                        .sections =
                            flags & 2 ? (flags & 4 ? SECTIONS_FIXED : SECTIONS_AUTO) : SECTIONS_OFF,
                        .section_parts = 2 + (flags >> 6),
                        .same_places = (next (&s) & 3) == 3,
                        .recompute =
                            flags & 8 ? (recompute_mode)(1 + (flags >> 4) % 3) : RECOMPUTE_OFF };
    if (o.budget_bytes > MOST_BYTES)
      o.budget_bytes = MOST_BYTES;
    by_solve (t, &o);
    by_policy (t, &o, id);
  }
  arena_free (a);
}
