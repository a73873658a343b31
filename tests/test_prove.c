/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The certificate read again: what the solver claims is proved to the unit, one unit more is
   refused, and duals that were changed prove no more than is true. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/flow/bound.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "trace/build.h"
#include "trace/check/check.h"
#include "trace/prove/prove.h"

/* A case whose plan carries a proof; the budget is below what is resident where memory allows, so
   that the program has something to say. */
static bool certified (int seed, flow_drops drops, bool fresh, arena *a, planned_case *p,
                       bound *b) {
  error err = { 0 };
  bool made = planned_make ((uint64_t)seed, CASE_EVERYTHING & ~CASE_ZERO_NS, a, p, &err);
  ck_assert_msg (err.code == ERR_none, "seed %d: %s", seed, err.text);
  if (!made)
    return false;
  plan *x = p->c.plan;
  bound_options o = { .dev = &x->device,
                      .host_bytes = seed % 3 ? x->host_bytes : p->seen.host_peak_bytes,
                      .any_units = drops || seed % 5 == 0,
                      .drops = drops,
                      .fresh = fresh,
                      .classes = 1 + seed % 3,
                      .whole_ops = seed % 2 ? 0 : 1,
                      .blocks = 3,
                      .keep_proof = true };
  units any, *u = &p->units;
  gaps g;
  int64_t granule = o.any_units ? 1 : x->placement.granule_bytes;
  if (drops) { /* about the trace with its sections only, and about any recompute entries */
    rewritten cut;
    ck_assert (trace_rewrite (p->c.trace,
                              &(rewriting){ .sections = x->sections,
                                            .n_sections = x->n_sections,
                                            .section_ns = x->device.section_ns },
                              a, &cut, &err) &&
               units_of (cut.trace, NULL, 0, 1, 0, a, &any, &err));
    u = &any;
    uint8_t *again = NEW (a, cut.trace->n_ops, uint8_t, &err);
    for (int32_t k = 0; k < cut.trace->n_ops; k++)
      again[k] = k % 3 > 0;
    o.again = seed % 4 == 0 ? again : NULL;
    x->n_moves = drops == DROPS_ONLY ? 0 : x->n_moves;
  } else if (o.any_units) {
    ck_assert (units_of (p->c.rewritten.trace, NULL, 0, 1, 0, a, &any, &err));
    u = &any;
  }
  ck_assert_msg (gaps_of (u, granule, 0, a, &g, &err), "%s", err.text);
  x->budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) * (seed % 7) / 8;
  x->host_bytes = o.host_bytes;
  ck_assert_msg (gaps_of (u, granule, x->budget_bytes, a, &g, &err), "%s", err.text);
  if (!bound_of (&g, &o, a, b, &err)) {
    ck_assert_msg (err.code == ERR_infeasible, "seed %d: %s", seed, err.text);
    return false;
  }
  x->has_certificate = true;
  x->certificate =
      (certificate){ .lower_bound_ns = b->lower_bound_ns, .gap = INFINITY, .proof = b->proof };
  return true;
}

CLAIM (the_claim_is_proved_and_one_unit_more_is_refused) {
  int flows = 0, crossings = 0, peaks = 0, strangers = 0;
  int counts[3] = { 0 };
  for (int i = 0; i < 3 * suite_cases (400); i++) {
    int seed = i / 3, drops = i % 3;
    arena *a = arena_new (0);
    planned_case p;
    bound b;
    if (certified (seed, (flow_drops)drops, drops && seed % 2, a, &p, &b)) {
      error err = { 0 };
      proved x;
      if (!prove_plan (p.c.trace, p.c.plan, INT64_MAX, a, &x, &err) &&
          strncmp (err.where, "/recompute/", 11) == 0) { /* a class that this plan is not in */
        ck_assert (drops && err.code == ERR_infeasible);
        p.c.plan->n_recomputes = 0;
        strangers++;
      }
      err = (error){ 0 };
      ck_assert_msg (prove_plan (p.c.trace, p.c.plan, INT64_MAX, a, &x, &err), "seed %d, by %s: %s",
                     seed, b.by, err.text);
      ck_assert_msg (x.lower_bound_ns == b.lower_bound_ns, "seed %d: %lld is proved, %lld claimed",
                     seed, (long long)x.lower_bound_ns, (long long)b.lower_bound_ns);
      p.c.plan->certificate.lower_bound_ns++;
      ck_assert_msg (!prove_plan (p.c.trace, p.c.plan, INT64_MAX, a, &x, &err),
                     "seed %d: not refused", seed);
      ck_assert_int_eq (err.code, ERR_infeasible);
      flows += strcmp (b.by, "flow-lp") == 0;
      counts[drops] += strcmp (b.by, "flow-lp") == 0;
      peaks += strstr (b.proof, "\"peak\"") != NULL;
      crossings += strcmp (b.by, "crossing") == 0;
    }
    arena_free (a);
  }
  for (int i = 0; i < 3; i++)
    ck_assert_msg (counts[i] > 20, "%d flows with drops %d", counts[i], i);
  ck_assert_int_gt (flows, 20);
  ck_assert_int_gt (peaks, 20);
  ck_assert_int_gt (strangers, 10);
  (void)crossings;
}

/* Some figures of the text replaced. */
static void disturb (char *text, random_state *r) {
  for (char *at = text; *at; at++)
    if (*at >= '1' && *at <= '9' && random_chance (r, 30000))
      *at = (char)('1' + random_between (r, 0, 8));
}

/* Duals that were made for less memory, and then changed, say something about a plan that exists.
 */
CLAIM (changed_duals_prove_no_more_than_is_true) {
  int proofs = 0, above_compute = 0, peaks = 0;
  for (int seed = 0; seed < suite_cases (400); seed++) {
    arena *a = arena_new (0);
    planned_case p;
    bound b;
    flow_drops drops = seed % 4 ? DROPS_ALLOWED : DROPS_NONE;
    if (certified (seed, drops, false, a, &p, &b) && strcmp (b.by, "flow-lp") == 0) {
      random_state r = random_seed ((uint64_t)seed);
      p.c.plan->budget_bytes = p.most_bytes;
      for (int i = 0; i < 10; i++) {
        error err = { 0 };
        proved x = { 0 };
        char *text = arena_string (a, b.proof, &err);
        ck_assert (text);
        if (i > 0)
          disturb (strstr (text, "\"early\""), &r);
        p.c.plan->certificate.proof = text;
        p.c.plan->certificate.lower_bound_ns = 0;
        if (!prove_plan (p.c.trace, p.c.plan, INT64_MAX, a, &x, &err))
          continue;
        proofs++;
        peaks += strstr (text, "\"peak\"") != NULL;
        above_compute += x.lower_bound_ns > b.compute_ns;
        ck_assert_msg (x.lower_bound_ns <= p.seen.step_ns, "seed %d: %lld is proved, %lld seen",
                       seed, (long long)x.lower_bound_ns, (long long)p.seen.step_ns);
      }
    }
    arena_free (a);
  }
  ck_assert_int_gt (proofs, 100);
  ck_assert_int_gt (above_compute, 10);
  ck_assert_int_gt (peaks, 50);
}

/* ---- forgeries ---- */

/* Two ops that need all memory, and x in between: without recomputing it crosses the link, which
   takes long; made again it costs next to nothing. */
static plan *cheap_again (arena *a, int64_t factor, trace **t) {
  static const char trace_text[] =
      "{\"format\":\"ferry-trace/1\",\"tensors\":[{\"bytes\":%lld},{\"bytes\":%lld}],\"ops\":["
      "{\"ns\":1000,\"writes\":[0]},{\"ns\":1000,\"writes\":[1],\"workspace_bytes\":%lld},"
      "{\"ns\":1000,\"reads\":[0,1]}]}";
  static const char plan_text[] =
      "{\"format\":\"ferry-plan/1\",\"trace\":\"%s\",\"device\":{\"name\":\"d\","
      "\"memory_bytes\":%lld,\"granule_bytes\":512,\"host_bytes\":%lld,\"link\":{"
      "\"d2h_bytes_per_s\":1000000,\"h2d_bytes_per_s\":1000000}},\"budget_bytes\":%lld,"
      "\"host_bytes\":%lld,\"recompute\":[{\"before\":2,\"ops\":[0],\"replaces\":[0]}],"
      "\"placement\":{\"granule_bytes\":512,\"granules\":%lld,\"pool_below_bytes\":0,"
      "\"pool_bytes\":0,\"stays\":[{\"tensor\":0,\"runs\":[0,%lld]},{\"workspace\":1,"
      "\"runs\":[0,%lld]},{\"tensor\":1,\"runs\":[%lld,%lld]},{\"tensor\":2,\"runs\":[0,%lld]}]}}";
  error err = { 0 };
  char text[2048], digest[TRACE_DIGEST];
  long long x = 512 * factor, n = factor;
  int size = snprintf (text, sizeof text, trace_text, x, x, x);
  *t = trace_parse (text, size, NULL, a, &err);
  ck_assert_msg (*t && trace_digest (*t, digest, &err), "%s", err.text);
  size = snprintf (text, sizeof text, plan_text, digest, 8 * x, 8 * x, 2 * x, 8 * x, 2 * n, n, n, n,
                   n, n);
  plan *p = plan_parse (text, size, NULL, a, &err);
  ck_assert_msg (p, "%s", err.text);
  p->has_certificate = true;
  p->certificate = (certificate){ .gap = INFINITY };
  predicted seen;
  ck_assert_msg (check_plan (*t, p, a, NULL, &err), "%s", err.text);
  ck_assert_msg (simulate_plan (*t, p, a, &seen, &err), "%s", err.text);
  ck_assert_int_eq (seen.step_ns, 4000);
  return p;
}

/* The swap-only program's proof: three slots, one class. `extra` goes in front. */
static const char *swap_proof (arena *a, const char *extra, int64_t need, int shift) {
  error err = { 0 };
  const char *z = "[0,0,0]";
  const char *text = arena_format (
      a, &err,
      "{%s\"any_units\":true,\"classes\":[0],\"cycle\":[0],\"early\":[%s],\"early_first\":[%s],"
      "\"format\":\"ferry-proof/1\",\"host\":[%s],\"host_first\":[%s],\"host_limit\":%s,"
      "\"kind\":\"flow\",\"need\":[0,%lld,0],\"need_first\":%s,\"pending\":[%s],\"shift\":%d,"
      "\"slots\":[0,1,2],\"stall_in\":%s,\"stall_out\":%s,\"work_in\":%s,\"work_out\":%s}",
      extra, z, z, z, z, z, (long long)need, z, z, shift, z, z, z, z);
  ck_assert_msg (text, "%s", err.text);
  return text;
}

static bool proves (const trace *t, plan *p, const char *proof, int64_t claim_ns, arena *a,
                    proved *x, error *err) {
  *err = (error){ 0 };
  p->certificate.proof = proof;
  p->certificate.lower_bound_ns = claim_ns;
  return prove_plan (t, p, 4000, a, x, err);
}

CLAIM (a_plan_outside_the_proofs_class_is_refused) {
  static const char again[] =
      "\"again\":[],\"drops\":\"allowed\",\"made\":[0,0,0],\"ready\":[0,0,0],\"remake\":[0,0,0],"
      "\"shares\":[],";
  static const char stale[] =
      "\"drops\":\"allowed\",\"made\":[0,0,0],\"ready\":[0,0,0],\"remake\":[0,0,0],\"shares\":[],";
  char words[COVER_TEXT];
  arena *a = arena_new (0);
  error err;
  proved x;
  trace *t;
  plan *p = cheap_again (a, 1, &t);
  ck_assert (!proves (t, p, swap_proof (a, again, 0, 0), 3000, a, &x, &err));
  ck_assert_int_eq (err.code, ERR_infeasible);
  ck_says (&err, "/recompute/0: tensor 0 is dropped, and the proof does not list op 0, which wrote "
                 "it");
  ck_assert (proves (t, p, swap_proof (a, stale, 0, 0), 3000, a, &x, &err));
  ck_assert_str_eq (cover_text (&x.cover, words),
                    "every plan, with whatever sections and recompute entries, in whatever order");
  ck_assert (proves (t, p, swap_proof (a, "", 0, 0), 3000, a, &x, &err));
  arena_free (a);
}

CLAIM (a_bound_above_the_plan_at_hand_is_refused) {
  arena *a = arena_new (0);
  error err;
  proved x;
  trace *t;
  plan *p = cheap_again (a, 1, &t);
  p->certificate.proof = "{\"any_units\":true,\"format\":\"ferry-proof/1\",\"kind\":\"compute\"}";
  p->certificate.lower_bound_ns = 3000;
  err = (error){ 0 };
  ck_assert (!prove_plan (t, p, 3999, a, &x, &err) && err.code == ERR_infeasible);
  ck_says (&err, "/certificate/proof: the bound claims that no plan takes less than 4000 ns, and "
                 "this one takes "
                 "3999 ns");
  arena_free (a);
}

/* With recomputing the step takes 4000 ns; a plan without needs compute of 3000 only. */
CLAIM (what_cover_and_gap_say_is_derived) {
  char words[COVER_TEXT];
  static const char compute[] =
      "{\"any_units\":true,\"format\":\"ferry-proof/1\",\"kind\":\"compute\"}";
  arena *a = arena_new (0);
  error err;
  proved x;
  trace *t;
  plan *p = cheap_again (a, 1, &t);
  ck_assert_msg (proves (t, p, compute, 4000, a, &x, &err), "%s", err.text);
  ck_assert_str_eq (cover_text (&x.cover, words),
                    "every plan with this cut and these recompute entries");
  p->certificate.has_cover = true;
  p->certificate.cover = x.cover;
  ck_assert (proves (t, p, compute, 4000, a, &x, &err));
  p->certificate.cover = cover_every;
  ck_assert (!proves (t, p, compute, 4000, a, &x, &err) && err.code == ERR_infeasible);
  ck_assert_str_eq (err.where, "/certificate/cover");
  ck_assert (proves (t, p, compute, 3000, a, &x, &err));
  p->certificate.cover = cover_swaps; /* which this one is not */
  ck_assert (!proves (t, p, compute, 4000, a, &x, &err));
  ck_assert (!proves (t, p, compute, 3000, a, &x, &err));
  p->certificate.has_cover = false;
  p->certificate.gap = 1.0 / 3;
  ck_assert (proves (t, p, compute, 3000, a, &x, &err));
  p->certificate.gap = 0.3333;
  ck_assert (!proves (t, p, compute, 3000, a, &x, &err) && err.code == ERR_infeasible);
  ck_assert_str_eq (err.where, "/certificate/gap");
  arena_free (a);
}

/* Six tensors of 4 TiB at 2^-20 of a byte: sums of grains pass 2^63 many times over. */
CLAIM_IN_ARENA (sums_beyond_64_bits_prove_nothing_false) {
  enum { TENSORS = 6 };
  const int64_t size = (int64_t)1 << 42;
  trace_builder *b = build_new (a, "large", 1, &err);
  ck_assert (b);
  for (int i = 0; i < TENSORS; i++)
    build_tensor (b, "", size, TENSOR_ACTIVATION);
  for (int k = 0; k < 3; k++) {
    build_op (b, "", OP_FORWARD, 1000);
    for (int i = 0; i < TENSORS && k != 1; i++)
      if (k)
        build_read (b, i);
      else
        build_write (b, i);
  }
  build_op_at (b, 1)->workspace_bytes = size;
  trace *t = build_finish (b, &err);
  ck_assert_msg (t, "%s", err.text);
  plan p = { .device = { .name = "d",
                         .memory_bytes = 8 * size,
                         .granule_bytes = (int64_t)1 << 40,
                         .host_bytes = 8 * size,
                         .share_ppm = 1000000,
                         .link = { 1000000, 1000000, 2000000, 0 } },
             .budget_bytes = 6 * size,
             .host_bytes = 8 * size,
             .placement.granule_bytes = (int64_t)1 << 40,
             .has_certificate = true,
             .certificate = { .gap = INFINITY } };
  for (int shift = -20; shift <= 20; shift++)
    for (int bits = 0; bits <= 40; bits++) {
      proved x = { 0 };
      err = (error){ 0 };
      p.certificate.proof = swap_proof (a, "", (int64_t)1 << bits, shift);
      /* one tensor leaves and comes back, one direction at a time: 2^42 bytes at 10^6 a second */
      bool ok = prove_plan (t, &p, INT64_MAX, a, &x, &err);
      ck_assert_msg (ok ? x.lower_bound_ns <= 3000 : err.code == ERR_input,
                     "shift %d, need %d: %lld ns, %s", shift, bits, (long long)x.lower_bound_ns,
                     err.text);
    }
}

static void refused (const char *proof, const char *says) {
  arena *a = arena_new (0);
  error err = { 0 };
  planned_case p;
  bound b;
  proved x;
  int seed = 1;
  while (!certified (seed, DROPS_NONE, false, a, &p, &b))
    seed++;
  p.c.plan->certificate.proof = proof;
  ck_assert (!prove_plan (p.c.trace, p.c.plan, INT64_MAX, a, &x, &err));
  char line[sizeof (error)];
  ck_assert_msg (strstr (error_line (&err, line, sizeof line), says), "%s", line);
  arena_free (a);
}

CLAIM (a_proof_that_is_none_gets_one_clear_line) {
  refused (NULL, "the plan carries no proof; `ferry solve --proof`");
  refused ("[]", "object");
  refused ("{\"kind\":\"flow\"}", "format");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"hope\"}", "kind");
  refused ("{\"drops\":\"allowed\",\"format\":\"ferry-proof/1\",\"kind\":\"flow\"}", "any_units");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"crossing\"}", "a crossing names its op");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"compute\",\"peak\":1}", "has a peak");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[1]}",
           "/certificate/proof/slots: slots do not begin at op 0");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[0],"
           "\"classes\":[],\"cycle\":[]}",
           "classes");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[0],"
           "\"classes\":[0],\"cycle\":[0],\"pending\":[[0,0]]}",
           "figures");
}

int main (void) {
  return suite_run ("prove", 60);
}
