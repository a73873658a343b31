/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry prove`: a plan's certificate, computed once more from the files alone. */
#include "trace/prove/prove.h"
#include "base/units.h"
#include "cli/inputs/inputs.h"
#include "cli/explain/closing.h"
#include "trace/check/check.h"
#include "trace/simulate/simulate.h"

/* The plan's own figures are those of the machine model. */
static bool same_step (const plan *p, const predicted *seen, error *err) {
  if (!p->has_predicted || p->predicted.step_ns == seen->step_ns)
    return true;
  return error_at (err, ERR_infeasible, "/predicted/step_ns",
                   "the plan claims a step of %lld ns, simulated are %lld ns",
                   (long long)p->predicted.step_ns, (long long)seen->step_ns);
}

/* Figures are there if the certificate could be computed, and why it does not hold if it does not.
   */
static bool print_json (call *c, const proved *got, const predicted *seen, const error *why) {
  json_writer w;
  json_begin_object (&w, 1);
  if (got->kind) {
    json_add_int (&w, "claimed_ns", got->claimed_ns);
    json_put_key (&w, "cover");
    cover_write (&w, &got->cover);
    json_add_fixed (&w, "gap", got->gap, 6);
  }
  json_add_bool (&w, "holds", !why->code);
  if (got->kind) {
    json_add_text (&w, "kind", got->kind);
    json_add_int (&w, "lower_bound_ns", got->lower_bound_ns);
    json_add_int (&w, "step_ns", seen->step_ns);
  }
  if (why->code) {
    json_add_text (&w, "text", why->text);
    json_add_text (&w, "where", why->where);
  }
  json_close_object (&w);
  return call_print_json (c, &w);
}

static bool prove (call *c, const trace *t, const plan *p, predicted *seen, proved *got) {
  return check_plan (t, p, c->arena, NULL, &c->err) &&
         simulate_plan (t, p, c->arena, seen, &c->err) && same_step (p, seen, &c->err) &&
         prove_plan (t, p, seen->step_ns, c->arena, got, &c->err);
}

static int run (call *c) {
  proved got = { 0 };
  predicted seen = { 0 };
  trace *t = call_trace (c, c->operands[0]);
  plan *p = t ? call_plan (c, c->operands[1]) : NULL;
  if (!p)
    return call_failed (c);
  bool holds = prove (c, t, p, &seen, &got);
  error why = c->err;
  if (c->json && (holds || why.code == ERR_infeasible)) {
    c->err = (error){ 0 };
    if (!print_json (c, &got, &seen, &why))
      return call_failed (c);
    c->err = why;
  }
  if (!holds) {
    error_in_file (&c->err, c->operands[1]);
    return call_failed (c);
  }
  char step[UNITS_TEXT], least[UNITS_TEXT], covers[COVER_TEXT];
  if (!c->json)
    printf ("proved by %s: no plan takes less than %s (%lld ns, %lld ns are claimed);\n"
            "it covers %s;\n"
            "this one takes %s, at most %.2f %% more\n",
            got.kind, units_time (least, got.lower_bound_ns), (long long)got.lower_bound_ns,
            (long long)got.claimed_ns, cover_text (&got.cover, covers),
            units_time (step, seen.step_ns), closing_gap (seen.step_ns, got.claimed_ns));
  return EXIT_YES;
}

const cli_command command_prove = {
  .name = "prove",
  .says = "check a plan's certified bound",
  .operands = "TRACE PLAN",
  .least = 2,
  .most = 2,
  .about =
      "Checks and simulates the plan, and computes its lower bound again, in integers, from the "
      "trace and the duals that `ferry solve --proof` stored in the plan, without any code of the "
      "solver. Which plans the bound holds for is derived from the proof. The exit status is 0 if "
      "all claims hold, and 1 if the plan is not covered, beats the bound, or claims too much: a "
      "larger bound, more plans, a smaller gap, or another step than the machine model gives it.\n",
  .json = true,
  .run = run,
};
