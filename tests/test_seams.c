/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bound of every cut beside plans on made steps, forward and backward, in which chains pay: no
   plan beats it; and it would be noticed if a cut cost more than it does, or if less of what is cut
   were away. */
#include "solver/sections/bound.h"
#include "solver/solve.h"
#include "tests/suite.h"
#include "tests/tiny_case.h"
#include "trace/build.h"

enum { MOST_LAYERS = 5, TICKS = 20000 };

typedef struct made {
  trace *trace;
  device device;
  int64_t budget_bytes;
} made;

static int32_t add_tensor (trace_builder *b, int64_t bytes, tensor_kind kind) {
  int32_t x = build_tensor (b, "x", bytes, kind);
  build_tensor_at (b, x)->split = kind == TENSOR_ACTIVATION;
  return x;
}

static void read_some (trace_builder *b, int32_t x) {
  if (x >= 0)
    build_read (b, x);
}

/* Layer by layer and back: each writes what its backward op reads, some have weights and some
   gradients. */
static void add_layers (trace_builder *b, random_state *r, int64_t unit) {
  int32_t out[MOST_LAYERS], weight[MOST_LAYERS], grad[MOST_LAYERS + 1];
  int32_t n = (int32_t)random_between (r, 2, MOST_LAYERS);
  for (int32_t i = 0; i < n; i++) {
    out[i] = add_tensor (b, unit * random_between (r, 1, 4), TENSOR_ACTIVATION);
    weight[i] = random_chance (r, 400000)
                    ? add_tensor (b, unit * random_between (r, 1, 3), TENSOR_PARAMETER)
                    : -1;
    grad[i] = random_chance (r, 500000)
                  ? add_tensor (b, unit * random_between (r, 1, 2), TENSOR_ACTIVATION)
                  : -1;
  }
  grad[n] = -1;
  for (int32_t i = 0; i < n; i++) {
    build_op (b, "forward", OP_FORWARD, random_between (r, 1, 6) * 500);
    read_some (b, i ? out[i - 1] : -1);
    read_some (b, weight[i]);
    build_write (b, out[i]);
  }
  for (int32_t i = n - 1; i >= 0; i--) {
    build_op (b, "backward", OP_BACKWARD, random_between (r, 1, 6) * 500);
    build_read (b, out[i]);
    read_some (b, weight[i]);
    read_some (b, grad[i + 1]);
    if (grad[i] >= 0)
      build_write (b, grad[i]);
  }
}

static void make (uint64_t seed, arena *a, made *out) {
  error err = { 0 };
  random_state r = random_seed (seed * 77 + 5);
  int64_t batch = random_between (&r, 2, 6), parts = random_between (&r, 2, batch);
  trace_builder *b = build_new (a, "layers", batch, &err);
  ck_assert (b);
  add_layers (b, &r, TINY_GRANULE * batch);
  out->trace = build_finish (b, &err);
  ck_assert_msg (out->trace, "%s", err.text);
  for (int32_t k = 0; k < out->trace->n_ops; k++)
    out->trace->ops[k].parts = random_chance (&r, 50000) ? 1 : parts;
  device *d = &out->device;
  tiny_device (&r, d);
  d->section_ns = random_between (&r, 0, 400);
  d->link.copy_ns = random_between (&r, 0, 1) * 100;
  int64_t slower = random_between (&r, 1, 4);
  d->link.d2h_bytes_per_s /= slower;
  d->link.h2d_bytes_per_s /= slower;
  d->link.both_bytes_per_s = d->link.d2h_bytes_per_s + d->link.h2d_bytes_per_s;
  units u;
  gaps g;
  ck_assert (units_of (out->trace, NULL, 0, 1, 0, a, &u, &err) && gaps_of (&u, 1, 0, a, &g, &err));
  int64_t percent = random_between (&r, 50, 98);
  out->budget_bytes = g.peak_bytes * percent / 100 / TINY_GRANULE * TINY_GRANULE;
}

static int64_t bound_under (const trace *t, const device *d, solve_options o, arena *a) {
  bound b;
  error err = { 0 };
  o.device = d;
  ck_assert_msg (sections_bound (t, &o, a, &b, &err), "%s", err.text);
  return b.lower_bound_ns;
}

typedef struct tally {
  int plans, chains, above, dear, uncut;
} tally;

/* With cuts that cost twice as much, and with tensors that no cut divides, more is proved of some
   than is true. */
static void beside_a_plan (uint64_t seed, arena *a, tally *n) {
  made m;
  solution s;
  error why = { 0 };
  make (seed, a, &m);
  solve_options o = { .device = &m.device,
                      .budget_bytes = m.budget_bytes,
                      .host_bytes = m.device.host_bytes,
                      .gap_ppm = 1,
                      .limit_ticks = TICKS,
                      .sections = SECTIONS_AUTO,
                      .recompute = seed % 3 ? RECOMPUTE_OFF : RECOMPUTE_AUTO };
  if (!solve (m.trace, &o, a, &s, &why))
    return;
  int64_t ns = s.plan->predicted.step_ns, proved = bound_under (m.trace, &m.device, o, a);
  ck_assert_msg (proved <= ns, "seed %d: bound %lld, plan %lld", (int)seed, (long long)proved,
                 (long long)ns);
  n->plans++;
  n->above += proved > trace_total_ns (m.trace);
  for (int32_t i = 0; i < s.plan->n_sections; i++)
    n->chains += s.plan->sections[i].order == SECTION_DEPTH;
  device dear = m.device;
  dear.section_ns *= 3;
  n->dear += bound_under (m.trace, &dear, o, a) > ns;
  for (int32_t x = 0; x < m.trace->n_tensors; x++)
    m.trace->tensors[x].split = false;
  n->uncut += bound_under (m.trace, &m.device, o, a) > ns;
}

CLAIM (no_plan_with_chains_beats_the_bound_of_every_cut) {
  tally n = { 0 };
  int cases = suite_cases (200);
  for (int seed = 0; seed < cases; seed++) {
    arena *a = arena_new (0);
    beside_a_plan ((uint64_t)seed, a, &n);
    arena_free (a);
  }
  printf ("%d plans, %d chains, %d bounds above compute; too high %d times if cuts cost more, %d "
          "times if nothing could be cut\n",
          n.plans, n.chains, n.above, n.dear, n.uncut);
  ck_assert (n.plans > cases / 2 && n.chains > cases / 3 && n.above > cases / 4);
  ck_assert (n.dear > 0 && n.uncut > 0);
}

int main (void) {
  return suite_run ("seams", 300);
}
