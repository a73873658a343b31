/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The notes of ferry_torch in a trace, without torch: what may leave, what is held, what may be
   made again. */
#include <string.h>

#include "solver/solve.h"
#include "tests/suite.h"
#include "trace/check/check.h"
#include "trace/rewrite/rewrite.h"
#include "trace/torch.h"

enum { WEIGHT, BATCH, SAVED, PASSING, DICE, GRADIENT, MOMENTUM, BESIDE };

#define TENSORS                                                               \
  "{\"format\":\"ferry-trace/1\",\"name\":\"noted\",\"tensors\":["            \
  "{\"name\":\"weight\",\"bytes\":4096,\"kind\":\"parameter\"},"              \
  "{\"name\":\"batch\",\"bytes\":4096,\"kind\":\"input\",\"born_before\":0}," \
  "{\"name\":\"saved\",\"bytes\":65536,\"kind\":\"activation\"},"             \
  "{\"name\":\"passing\",\"bytes\":4096,\"kind\":\"activation\"},"            \
  "{\"name\":\"dice\",\"bytes\":65536,\"kind\":\"activation\"},"              \
  "{\"name\":\"gradient\",\"bytes\":4096,\"kind\":\"gradient\"},"             \
  "{\"name\":\"momentum\",\"bytes\":4096,\"kind\":\"optimizer\"},"            \
  "{\"name\":\"beside\",\"bytes\":8192,\"kind\":\"activation\"}],\"ops\":["
#define OP(name, phase, reads, writes, note)                                     \
  "{\"name\":\"" name "\",\"ns\":1000,\"phase\":\"" phase "\",\"reads\":[" reads \
  "],\"writes\":[" writes "],\"compute\":{\"kind\":\"torch\"" note "}}"

#define FIRST OP ("conv", "forward", "0,1", "2,7", ",\"in\":[1,0],\"out\":[2,7],\"leave\":[6]") ","
#define SECOND \
  OP ("scale", "forward", "2", "3", ",\"pack\":[2],\"in\":[2],\"out\":[3],\"free\":[2]") ","
#define REST                                                                                    \
  OP ("dropout", "forward", "3", "4", ",\"free\":[3,7]")                                        \
  "," OP ("loss", "forward", "4", "4", "") "," OP (                                             \
      "loss.back", "backward", "2", "5",                                                        \
      ",\"unpack\":[2]") "," OP ("conv.back", "backward", "0,1,2,5,7", "5",                     \
                                 ",\"unpack\":[7]") "," OP ("update", "update", "0,5,6", "0,6", \
                                                            "") "]}"

static arena *a;
static error err;

static void begin (void) {
  a = arena_new (0);
  err = (error){ 0 };
}

static void end (void) {
  arena_free (a);
}

static const trace *parsed (const char *text) {
  trace *t = trace_parse (text, (int64_t)strlen (text), NULL, a, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  return t;
}

static trace restricted (const trace *t) {
  trace out;
  ck_assert_msg (trace_for_torch (t, a, &out, &err), "%s", err.text);
  return out;
}

CLAIM (only_what_autograd_or_the_optimizer_holds_may_leave) {
  trace t = restricted (parsed (TENSORS FIRST SECOND REST));
  static const bool leaves[] = {
    [SAVED] = true, [PASSING] = true, [MOMENTUM] = true, [BESIDE] = true
  };
  for (int32_t x = 0; x < t.n_tensors; x++) {
    ck_assert_msg (t.tensors[x].pinned == !leaves[x], "%s", t.tensors[x].name);
    ck_assert (t.tensors[x].whole);
  }
}

CLAIM (a_tensor_is_there_until_the_program_lets_go_and_from_its_first_unpack_on) {
  trace t = restricted (parsed (TENSORS FIRST SECOND REST));
  static const bool saved[] = { true, true, false, false, true, true, false };
  static const bool beside[] = { true, true, true, false, false, true, false };
  for (int32_t k = 0; k < t.n_ops; k++) {
    ck_assert_msg (op_touches (&t.ops[k], SAVED) == saved[k], "%s", t.ops[k].name);
    ck_assert_msg (op_touches (&t.ops[k], BESIDE) == beside[k], "%s", t.ops[k].name);
  }
  ck_assert (list_has (&t.ops[1].side, BESIDE) && list_has (&t.ops[4].side, BESIDE) == false);
  ck_assert (!list_has (&t.ops[1].side, SAVED));
}

CLAIM (only_what_is_marked_may_be_made_again) {
  trace t = restricted (parsed (TENSORS FIRST SECOND REST));
  static const uint8_t again[] = { AGAIN_NEVER, AGAIN_NEVER, AGAIN_STAYS, AGAIN_PASSES,
                                   AGAIN_NEVER, AGAIN_NEVER, AGAIN_NEVER, AGAIN_STAYS };
  for (int32_t x = 0; x < t.n_tensors; x++)
    ck_assert_msg (t.tensors[x].again == again[x], "%s", t.tensors[x].name);
}

CLAIM (without_a_mark_nothing_is_made_again) {
  trace t = restricted (parsed (TENSORS OP ("conv", "forward", "0,1", "2,7", "") "," SECOND REST));
  ck_assert_int_eq (t.tensors[SAVED].again, AGAIN_NEVER);
  ck_assert (!t.tensors[SAVED].pinned);
  t = restricted (parsed (
      TENSORS FIRST OP ("scale", "forward", "2", "3", ",\"pack\":[2],\"free\":[2]") "," REST));
  ck_assert_int_eq (t.tensors[PASSING].again, AGAIN_NEVER);
  ck_assert (t.tensors[PASSING].pinned);
}

CLAIM (a_copy_asks_for_what_its_op_reads_and_what_it_makes_stays) {
  trace t = restricted (parsed (TENSORS FIRST SECOND REST));
  int32_t ops[] = { 0, 1 }, replaces[] = { SAVED };
  recompute r = { .before = 4, .ops = { ops, 2 }, .replaces = { replaces, 1 } };
  rewritten rw;
  ck_assert_msg (
      trace_rewrite (&t, &(rewriting){ .recomputes = &r, .n_recomputes = 1 }, a, &rw, &err), "%s",
      err.text);
  ck_assert_int_eq (rw.trace->n_ops, t.n_ops + 2);
  ck_assert_int_eq (rw.trace->ops[5].reads.count,
                    1); /* the scale's own, and nothing that is held */
  for (int32_t x = t.n_tensors; x < rw.trace->n_tensors; x++)
    ck_assert (rw.trace->tensors[x].pinned);
}

static plan solved (const trace *given, const trace *t, recompute_mode mode) {
  device d = { .name = "slow",
               .memory_bytes = 1 << 20,
               .granule_bytes = 512,
               .host_bytes = 1 << 20,
               .link = { 1 << 20, 1 << 20, 2 << 20, 0 },
               .share_ppm = 1000000 };
  solve_options o = {
    .device = &d, .budget_bytes = 110 << 10, .host_bytes = d.host_bytes, .recompute = mode
  };
  solution s;
  char digest[TRACE_DIGEST];
  ck_assert_msg (solve (t, &o, a, &s, &err), "%s", err.text);
  ck_assert (trace_digest (given, digest, &err));
  s.plan->trace_digest = digest;
  ck_assert_msg (check_plan (given, s.plan, a, NULL, &err), "%s", err.text);
  return *s.plan;
}

CLAIM (a_plan_for_torch_is_one_of_the_trace_and_drops_what_it_may) {
  const trace *given = parsed (TENSORS FIRST SECOND REST);
  trace t = restricted (given);
  plan p = solved (given, &t, RECOMPUTE_AUTO);
  ck_assert_int_gt (p.n_recomputes, 0);
  for (int32_t i = 0; i < p.n_recomputes; i++)
    for (int32_t j = 0; j < p.recomputes[i].ops.count; j++)
      ck_assert_int_lt (p.recomputes[i].ops.at[j], 2);
  given = parsed (TENSORS OP ("conv", "forward", "0,1", "2,7", "") "," SECOND REST);
  t = restricted (given);
  p = solved (given, &t, RECOMPUTE_AUTO);
  ck_assert_int_eq (p.n_recomputes, 0);
}

static void refused (const char *text, const char *words) {
  trace out;
  const trace *t = parsed (text);
  ck_assert (!trace_for_torch (t, a, &out, &err));
  ck_assert_msg (strstr (err.text, words), "%s", err.text);
}

CLAIM (notes_that_are_missing_or_wrong_are_said) {
  static const char bare[] =
      TENSORS "{\"name\":\"conv\",\"ns\":1,\"reads\":[0,1],\"writes\":[2,7]}," SECOND REST;
  refused (bare, "record the step with it");
}

CLAIM (a_note_of_a_tensor_that_is_not_there_is_said) {
  refused (TENSORS OP ("conv", "forward", "0,1", "2,7", ",\"leave\":[8]") "," SECOND REST, "8");
}

int main (void) {
  return suite_run_with ("torch_notes", begin, end, 60);
}
