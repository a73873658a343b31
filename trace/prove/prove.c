/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which trace a proof speaks of, and what it shows of it. */
#include "trace/prove/prove.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "trace/prove/membership.h"
#include "trace/prove/prover.h"
#include "trace/rewrite/chain.h"
#include "trace/rewrite/order.h"

#define GAP_ROUNDING 0.000001 /* files hold six digits of it */

static void set_link (prover *v) {
  link_rates r = v->rates = device_rates (&v->p->device.link, v->p->device.share_ppm);
  v->ratio = (((wide)r.in_alone << PROOF_COEF_BITS) + r.out_alone - 1) / r.out_alone;
  v->shared = r.out_both < r.out_alone || r.in_both < r.in_alone;
  if (!v->shared)
    return;
  wide corner = (wide)r.out_both * r.in_alone + (wide)r.in_both * r.out_alone;
  if (corner <= (wide)r.out_alone * r.in_alone) {
    v->in_in_out = prover_over (r.out_alone, r.in_alone);
    return;
  }
  v->in_in_out = prover_over (r.out_alone - r.out_both, r.in_both);
  v->out_in_in = prover_over (r.in_alone - r.in_both, r.out_both);
}

/* Bytes that must be away at one op come back in every step. */
static bool prove_crossing (prover *v, int64_t *ns, error *err) {
  wide slack = 0;
  int32_t k = v->proof.op, n = v->t->n_ops;
  pause *q = NEW (v->a, (int64_t)n + 1, pause, err);
  if (!q)
    return false;
  for (int32_t i = 0; i < v->u.count; i++) {
    bool circle;
    int32_t count = pauses_of (v, i, q, &circle);
    for (int32_t s = 0; s < count; s++)
      if (q[s].wraps ? k >= q[s].release || k < q[s].due : k >= q[s].release && k < q[s].due)
        slack += prover_room (v, i) - v->u.at[i].bytes;
  }
  wide bytes = v->excess[k] - slack; /* below 2^63, so the product is below 2^93 */
  wide x = bytes > 0 ? bytes * 1000000000 / v->rates.in_alone : 0;
  *ns = x > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)x;
  return true;
}

/* The proof is read by itself; in the file it stands in the certificate. */
static bool of_proof (error *err) {
  char inside[sizeof err->where];
  if (err->code == ERR_input || err->code == ERR_infeasible) {
    snprintf (inside, sizeof inside, "%s", err->where);
    snprintf (err->where, sizeof err->where, "/certificate/proof%.200s", inside);
  }
  return false;
}

/* Drops run again beside the path, and cuts may run side by side. */
static bool speaks_of_chain (const proof *p) {
  for (int32_t j = 0; p->kind == PROOF_flow && j < p->slots; j++)
    if (p->host_limit[j] != 0)
      return false;
  return !p->sections && (p->kind == PROOF_compute || (!p->drops && p->any_units));
}

/* Which trace the proof speaks of, and whether the plan is one of those that it covers. Without
   sections and drops it is about plans with this very cut and these very recompute entries. */
static bool choose_trace (prover *v, const trace *t, error *err) {
  const plan *p = v->p;
  rewritten r, cut;
  const trace *chain;
  loosened every[LOOSE_ORDERS];
  proof_ops n = { 0 };
  int32_t *order;
  if (!plan_rewrite (t, p, v->a, &r, err) || !plan_cut (t, p, v->a, &cut, err) ||
      !trace_chain (r.trace, v->a, &chain, err) ||
      !trace_reorder (t, p->order, p->n_order, v->a, &t, &order, err))
    return false;
  n.rewritten = chain->n_ops;
  n.cut = cut.trace->n_ops;
  for (int i = 0; i < LOOSE_ORDERS; i++) {
    if (!trace_loosen (t, (loose_orders)i, v->a, &every[i], err))
      return false;
    n.loosened[i] = every[i].trace->n_ops;
  }
  if (!proof_read (p->certificate.proof, &n, v->a, &v->proof, err))
    return of_proof (err);
  const loosened *l = v->proof.sections ? &every[v->proof.orders] : NULL;
  if (trace_has_streams (t) && !speaks_of_chain (&v->proof))
    return error_set (err, ERR_infeasible,
                      "of several streams a proof is of their longest path: any units, no drops, "
                      "sections or limit of the host");
  v->t = l                                ? l->trace
         : v->proof.drops                 ? cut.trace
         : v->proof.kind == PROOF_compute ? r.trace
                                          : chain;
  v->loose = l ? l->loose : NULL;
  membership_traces about = { &cut, l ? l->of : NULL, order, v->t->n_ops };
  return membership_holds (&v->proof, &about, p, v->a, err);
}

/* The plan of a file is one of those that its bound covers. */
static bool is_of_cover (const plan *p, const cover *c) {
  bool drops = p->n_recomputes, cuts = p->n_sections, moved = p->n_order;
  return (!drops || c->drops != COVER_DROPS_NONE) &&
         (!cuts || c->sections != COVER_SECTIONS_NONE) &&
         (!moved || c->order != COVER_ORDER_TRACE) && (c->swaps || !p->n_moves);
}

/* The file's claim of the bound, against what is proved; and the plan at hand against both. */
static bool claims_hold (const trace *t, const prover *v, int64_t step_ns, proved *out,
                         error *err) {
  static const char place[] = "/certificate/lower_bound_ns";
  char claimed[COVER_TEXT], proved[COVER_TEXT];
  const certificate *c = &v->p->certificate;
  /* nothing that is made again or cut takes an op's time away */
  out->cover =
      out->claimed_ns <= trace_busiest_ns (t) ? cover_every : membership_cover (&v->proof, v->p);
  out->gap = out->claimed_ns ? (double)step_ns / (double)out->claimed_ns - 1 : INFINITY;
  if (out->lower_bound_ns > step_ns)
    return error_at (
        err, ERR_infeasible, "/certificate/proof",
        "the bound claims that no plan takes less than %lld ns, and this one takes %lld ns",
        (long long)out->lower_bound_ns, (long long)step_ns);
  if (out->claimed_ns > out->lower_bound_ns)
    return error_at (err, ERR_infeasible, place, "%lld ns is claimed, the proof shows %lld ns",
                     (long long)out->claimed_ns, (long long)out->lower_bound_ns);
  if (c->has_cover && (!is_of_cover (v->p, &c->cover) || !cover_includes (&out->cover, &c->cover)))
    return error_at (err, ERR_infeasible, "/certificate/cover",
                     "%.180s is claimed, the proof covers %.180s", cover_text (&c->cover, claimed),
                     cover_text (&out->cover, proved));
  if (c->gap + GAP_ROUNDING < out->gap)
    return error_at (err, ERR_infeasible, "/certificate/gap",
                     "%.6f is claimed, the plan is %.6f above the bound", c->gap, out->gap);
  return true;
}

bool prove_plan (const trace *t, const plan *p, int64_t step_ns, arena *scratch, proved *out,
                 error *err) {
  assert (t && p && scratch && out);
  static const char *const kinds[] = { "compute", "crossing", "flow" };
  prover v = { .p = p, .a = scratch };
  *out = (proved){ 0 };
  if (!p->has_certificate || !p->certificate.proof)
    return error_set (err, ERR_input, "the plan carries no proof; `ferry solve --proof` keeps one");
  if (!choose_trace (&v, t, err))
    return false;
  v.granule_bytes = v.proof.any_units ? 1 : p->placement.granule_bytes;
  if (!units_of (v.t, p->groups, v.proof.any_units ? 0 : p->n_groups, v.granule_bytes,
                 v.proof.any_units ? 0 : p->placement.pool_below_bytes, scratch, &v.u, err))
    return false;
  set_link (&v);
  int64_t compute_ns = trace_total_ns (v.t), ns = 0;
  if (!prover_resident (&v, err) || (v.proof.kind == PROOF_flow && !prove_flow (&v, &ns, err)) ||
      (v.proof.kind == PROOF_crossing && !prove_crossing (&v, &ns, err)))
    return of_proof (err);
  *out = (proved){ .lower_bound_ns = v.proof.kind == PROOF_crossing ? ns : compute_ns + ns,
                   .claimed_ns = p->certificate.lower_bound_ns,
                   .kind = kinds[v.proof.kind] };
  return claims_hold (t, &v, step_ns, out, err);
}
