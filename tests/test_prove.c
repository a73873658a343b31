/* The certificate read again: what the solver claims is proved to the unit, one unit more is
   refused, and duals that were changed prove no more than is true. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "solver/flow/bound.h"
#include "tests/planned_case.h"
#include "tests/suite.h"
#include "trace/prove/prove.h"

/* A case whose plan carries a proof; the budget is below what is resident where memory allows, so
   that the program has something to say. */
static bool certified (int seed, flow_drops drops, bool fresh, arena *a, planned_case *p,
                       bound *b) {
  error err = { 0 };
  bool made =
      planned_make ((uint64_t)seed, (CASE_EVERYTHING & ~CASE_ORDER) & ~CASE_ZERO_NS, a, p, &err);
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
  x->certificate = (certificate){ .lower_bound_ns = b->lower_bound_ns, .proof = b->proof };
  return true;
}

START_TEST (the_claim_is_proved_and_one_unit_more_is_refused) {
  int flows = 0, crossings = 0, peaks = 0;
  int counts[3] = { 0 };
  for (int i = 0; i < 3 * suite_cases (400); i++) {
    int seed = i / 3, drops = i % 3;
    arena *a = arena_new (0);
    planned_case p;
    bound b;
    if (certified (seed, (flow_drops)drops, drops && seed % 2, a, &p, &b)) {
      error err = { 0 };
      proved x;
      ck_assert_msg (prove_plan (p.c.trace, p.c.plan, a, &x, &err), "seed %d, by %s: %s", seed,
                     b.by, err.text);
      ck_assert_msg (x.lower_bound_ns == b.lower_bound_ns, "seed %d: %lld is proved, %lld claimed",
                     seed, (long long)x.lower_bound_ns, (long long)b.lower_bound_ns);
      p.c.plan->certificate.lower_bound_ns++;
      ck_assert_msg (!prove_plan (p.c.trace, p.c.plan, a, &x, &err), "seed %d: not refused", seed);
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
  (void)crossings;
}
END_TEST

/* Some figures of the text replaced. */
static void disturb (char *text, random_state *r) {
  for (char *at = text; *at; at++)
    if (*at >= '1' && *at <= '9' && random_chance (r, 30000))
      *at = (char)('1' + random_between (r, 0, 8));
}

/* Duals that were made for less memory, and then changed, say something about a plan that exists.
 */
START_TEST (changed_duals_prove_no_more_than_is_true) {
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
        if (!prove_plan (p.c.trace, p.c.plan, a, &x, &err))
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
END_TEST

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
  ck_assert (!prove_plan (p.c.trace, p.c.plan, a, &x, &err));
  char line[sizeof (error)];
  ck_assert_msg (strstr (error_line (&err, line, sizeof line), says), "%s", line);
  arena_free (a);
}

START_TEST (a_proof_that_is_none_gets_one_clear_line) {
  refused (NULL, "the plan carries no proof");
  refused ("[]", "object");
  refused ("{\"kind\":\"flow\"}", "format");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"hope\"}", "kind");
  refused ("{\"drops\":\"allowed\",\"format\":\"ferry-proof/1\",\"kind\":\"flow\"}", "any_units");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"crossing\"}", "a crossing names its op");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"compute\",\"peak\":1}", "has a peak");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[1]}", "slots");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[0],"
           "\"classes\":[],\"cycle\":[]}",
           "classes");
  refused ("{\"format\":\"ferry-proof/1\",\"kind\":\"flow\",\"shift\":0,\"slots\":[0],"
           "\"classes\":[0],\"cycle\":[0],\"pending\":[[0,0]]}",
           "figures");
}
END_TEST

int main (void) {
  const TTest *const tests[] = { the_claim_is_proved_and_one_unit_more_is_refused,
                                 changed_duals_prove_no_more_than_is_true,
                                 a_proof_that_is_none_gets_one_clear_line, NULL };
  return suite_run ("prove", tests, 60);
}
