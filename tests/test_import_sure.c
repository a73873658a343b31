/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imports that once misled, each by the smallest file that has the same structure: what was called
   exact and was not, what a plan would have moved away while it was read. */
#include <stdio.h>
#include <string.h>

#include "tests/import_case.h"
#include "trace/import/import.h"
#include "tests/import_texts.h"

static bool uses_at (const trace *t, int op, int64_t tensor) {
  return list_holds (&t->ops[op].reads, tensor) || list_holds (&t->ops[op].writes, tensor);
}

static trace *import_with (const char *text, const import_options *o, import_report *r,
                           error *err) {
  import_source source = { "x", text, (int64_t)strlen (text) };
  trace *t = NULL;
  memset (err, 0, sizeof *err);
  bool ok = import_memory (&source, 1, o, import_arena (), &t, r, err);
  ck_assert_int_eq (ok, t != NULL);
  return t;
}

static const import_check *self (const import_report *r, const char *name) {
  for (int i = 0; i < IMPORT_SELF_CHECKS; i++)
    if (strcmp (import_check_name ((import_check_id)i), name) == 0)
      return &r->self[i];
  ck_abort_msg ("no check %s", name);
  return NULL;
}

/* ---- one call that launches many kernels ---- */

#define SEQ(n) "\"Sequence number\":" n
#define DIMS(n) "\"Input Dims\":[[" n "]],\"Input type\":[\"float\"]"

/* A call saves 1024 bytes; two ops with inputs of other sizes follow; then the backward call, which
   launches kernels between which ops of its own stand. */
#define REGION(forward, backward)                                            \
  STEP ("5", "1000", "1000")                                                 \
  OP (forward, "1", "1010", "20", SEQ ("7"))                                 \
  LAUNCH ("1", "1", "1020")                                                  \
  KERNEL ("1", "0", "7", "1100", "10")                                       \
  OP ("aten::mul", "1", "1040", "6", SEQ ("8") "," DIMS ("64"))              \
  LAUNCH ("2", "1", "1044")                                                  \
  KERNEL ("2", "0", "7", "1110", "10")                                       \
  OP ("aten::exp", "1", "1050", "6", SEQ ("9") "," DIMS ("64"))              \
  LAUNCH ("3", "1", "1054")                                                  \
  KERNEL ("3", "0", "7", "1120", "10")                                       \
  OP ("aten::sum", "1", "1058", "6", SEQ ("10") "," DIMS ("64"))             \
  LAUNCH ("31", "1", "1062")                                                 \
  KERNEL ("31", "0", "7", "1130", "10")                                      \
  OP ("ExpBackward0", "2", "1070", "6", SEQ ("9") ",\"Fwd thread id\":1")    \
  LAUNCH ("32", "2", "1072")                                                 \
  KERNEL ("32", "0", "7", "1140", "10")                                      \
  OP (backward, "2", "1100", "100", SEQ ("7") ",\"Fwd thread id\":1")        \
  LAUNCH ("4", "2", "1105")                                                  \
  KERNEL ("4", "0", "7", "1150", "10")                                       \
  OP ("aten::mm", "2", "1110", "10", DIMS ("64"))                            \
  LAUNCH ("5", "2", "1115")                                                  \
  KERNEL ("5", "0", "7", "1160", "10")                                       \
  LAUNCH ("6", "2", "1130")                                                  \
  KERNEL ("6", "0", "7", "1170", "10")                                       \
  OP ("aten::add", "2", "1140", "10", DIMS ("64")) LAUNCH ("7", "2", "1145") \
      KERNEL ("7", "0", "7", "1180", "10") LAUNCH ("8", "2", "1155")         \
          KERNEL ("8", "0", "7", "1190", "10")
#define REGION_MEMORY                          \
  MEMORY ("1", "1015", "4096", "1024", "6024") \
  MEMORY ("2", "1180", "4096", "-1024", "5000")

START_TEST (what_a_call_may_read_counts_as_used_by_all_of_its_ops) {
  static const char *const texts[] = {
    EVENTS (REGION ("CompiledFunction", "CompiledFunctionBackward") REGION_MEMORY LAST),
    EVENTS (REGION ("MyAttention", "MyAttentionBackward") REGION_MEMORY LAST),
    EVENTS (REGION ("aten::convolution", "autograd::engine::evaluate_function: "
                                         "ConvolutionBackward0") REGION_MEMORY LAST),
  };
  import_report r;
  trace *t = import_good (texts[_i], &r);
  ck_assert_int_eq (t->n_ops, 10);
  int64_t x = -1;
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].bytes == 1024)
      x = i;
  ck_assert_int_ge (x, 0);
  for (int op = 5; op < 10; op++) /* the whole backward call, its inner ops too */
    ck_assert_msg (uses_at (t, op, x), "op %d of the call", op);
  ck_assert (uses_at (t, 0, x) && uses_at (t, 1, x));
  ck_assert (!t->tensors[x].pinned);
  ck_assert (!uses_at (t, 3, x) && !uses_at (t, 4, x)); /* here it may be away */
  ck_assert_int_eq (r.held_tensors, 0);
  ck_assert_int_eq (r.free_tensors, 1);
}
END_TEST

START_TEST (without_shapes_a_saved_tensor_stays_and_the_report_says_so) {
  import_report r;
  error err = { 0 };
  bytes text = { 0 };
  trace *t = import_good (EVENTS (TINY TINY_MEMORY LAST), &r);
  int64_t saved = tensor_named (t, "aten::linear/0");
  ck_assert (t->tensors[saved].pinned);
  ck_assert_int_eq (r.held_tensors, 2);
  ck_assert (import_report_text (&r, &text, &err));
  ck_assert_ptr_nonnull (strstr (text.data, "stay, since nothing says who reads them"));
  bytes_free (&text);
  /* as a guess, asked for by name, it may move */
  import_options o = IMPORT_DEFAULTS;
  o.likely = true;
  t = import_with (EVENTS (REGION ("aten::a", "ABackward0") REGION_MEMORY LAST), &o, &r, &err);
  ck_assert_ptr_nonnull (strstr (t->source.confidence, "reads guessed"));
}
END_TEST

START_TEST (a_later_op_with_an_input_of_that_size_or_without_a_list_may_read) {
  static const char *const names[] = { "aten::exp", "ns::fused", "Plain" };
  static const char *const args[] = { DIMS ("256"), "\"x\":1", DIMS ("64") };
  for (int i = 0; i < 3; i++) {
    char text[8000];
    import_report r;
    const char *whole = EVENTS (REGION ("aten::a", "ABackward0") REGION_MEMORY LAST);
    const char *at = strstr (whole, "aten::exp"), *dims = strstr (at, "\"Input Dims\"");
    size_t length = strlen (DIMS ("64"));
    snprintf (text, sizeof text, "%.*s%s%.*s%s%s", (int)(at - whole), whole, names[i],
              (int)(dims - at) - 9, at + 9, args[i], dims + length);
    trace *t = import_good (text, &r);
    int64_t x = 0;
    while (t->tensors[x].bytes != 1024)
      x++;
    ck_assert_msg (t->tensors[x].pinned || uses_at (t, 2, x), "%s", names[i]);
  }
}
END_TEST

/* ---- streams ---- */

START_TEST (gpu_time_that_is_left_out_is_counted_and_lowers_the_confidence) {
  import_report r;
  trace *t = import_good (EVENTS (TINY OP ("x", "2", "1061", "5", "") LAUNCH ("9", "2", "1062")
                                      KERNEL ("9", "0", "14", "1063", "5000") LAST),
                          &r);
  ck_assert_int_eq (self (&r, "gpu time")->verdict, VERDICT_FAILS);
  ck_assert_ptr_nonnull (strstr (self (&r, "gpu time")->says, "5.00 ms on other streams"));
  ck_assert_int_gt (t->source.n_checks, 0);
}
END_TEST

/* ---- steps, ranks, launches, phases ---- */

#define TRAIN(step, rf, storage)                                                               \
  FLAT ("ProfilerStep#" step, rf "00", rf "00", "2", "0", "", "", "")                          \
  FLAT ("aten::mm", rf "01", rf "01", "2", "0", "", T ("20", "100"), T (storage, "256"))       \
  FLAT ("MmBackward0", rf "02", rf "02", "2", "1", "", T (storage, "256") "," T ("20", "100"), \
        T ("70", "100"))                                                                       \
  FLAT ("aten::add_", rf "04", rf "04", rf "03", "0", "aten::add_(Tensor(a!) self, Tensor b)", \
        T ("20", "100") "," T ("70", "100"), T ("20", "100"))                                  \
  FLAT ("Optimizer.step#SGD.step", rf "03", rf "03", "2", "0", "", "", "")

START_TEST (one_step_of_an_execution_trace_with_several_is_taken) {
  import_report r;
  error err;
  const char *text = ET (TRAIN ("4", "1", "50") TRAIN ("5", "2", "51"));
  trace *t = import_with (text, NULL, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_str_eq (r.iteration, "ProfilerStep#5 of 2 steps");
  ck_assert_int_eq (t->n_ops, 3);
  import_options o = IMPORT_DEFAULTS;
  o.step = 4;
  t = import_with (text, &o, &r, &err);
  ck_assert_str_eq (r.iteration, "ProfilerStep#4 of 2 steps");
  ck_assert_int_eq (t->n_ops, 3);
  bool found = false;
  for (int32_t i = 0; i < t->n_tensors; i++)
    found |= strncmp (t->tensors[i].name, "s50.", 4) == 0;
  ck_assert (found);
  o.step = 9;
  ck_assert_ptr_null (import_with (text, &o, &r, &err));
  ck_assert_str_eq (err.text, "no step 9: there are 2, ProfilerStep#4 to ProfilerStep#5");
}
END_TEST

static trace *join_as (const char *et_name, const char *et, const char *kineto_name,
                       const char *kineto, import_report *r, error *err) {
  import_source sources[] = { { et_name, et, (int64_t)strlen (et) },
                              { kineto_name, kineto, (int64_t)strlen (kineto) } };
  trace *t = NULL;
  memset (err, 0, sizeof *err);
  bool ok = import_memory (sources, 2, NULL, import_arena (), &t, r, err);
  ck_assert_int_eq (ok, t != NULL);
  return t;
}

#define PAIR_KINETO(head, device)                                                            \
  "{" head "\"traceEvents\":[" STEP ("1", "0", "100")                                        \
      OP ("a", "1", "10", "5", "\"External id\":1") LAUNCH ("1", "1", "11")                  \
          KERNEL ("1", device, "7", "20", "7") OP ("b", "1", "30", "5", "\"External id\":2") \
              LAUNCH ("2", "1", "31") KERNEL ("2", device, "7", "40", "7") LAST "]}"
#define PAIR_ET(head)                                                                        \
  "{" head                                                                                   \
  "\"schema\":\"1.0.1\",\"nodes\":[" FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "256")) \
      FLAT ("b", "4", "3", "2", "0", "", T ("50", "256"),                                    \
            "") "{\"name\":\"[pytorch|process]\",\"id\":1,\"rf_id\":0,\"parent\":1}]}"

START_TEST (files_of_two_ranks_do_not_join_as_exact) {
  import_report r;
  error err;
  const char *et = PAIR_ET (""), *kineto = PAIR_KINETO ("", "0");
  ck_assert_ptr_null (join_as ("rank1.json", et, "rank_2.json", kineto, &r, &err));
  ck_assert_str_eq (err.text, "the two files are not of one run: they are of rank 1 and rank 2");
  ck_assert_ptr_null (join_as ("et_rank1.json", et, "k.json",
                               PAIR_KINETO ("\"distributedInfo\":{\"rank\":2,\"x\":[1]},", "0"), &r,
                               &err));
  ck_assert_ptr_nonnull (strstr (err.text, "rank 1 and rank 2"));
  ck_assert_ptr_null (join_as ("a.json", et, "b.json", PAIR_KINETO ("", "3"), &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "names no tensor of device 3"));
  trace *t = join_as ("a.json", PAIR_ET ("\"pid\":77,"), "b.json", kineto, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (self (&r, "one run")->verdict, VERDICT_FAILS);
  ck_assert_int_eq (strncmp (t->source.confidence, "approximate: one run: ", 22), 0);
  t = join_as ("a_rank2.json", PAIR_ET ("\"pid\":1,"), "b_rank2.json", kineto, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_str_eq (t->source.confidence, "exact");
}
END_TEST

START_TEST (kernels_of_the_step_before_become_no_ops) {
  import_report r;
  trace *t = import_good (EVENTS (TINY KERNEL ("777", "0", "7", "1001", "9")
                                      KERNEL ("778", "0", "7", "1012", "9") LAST),
                          &r);
  ck_assert_int_eq (t->n_ops, 4);
  ck_assert_str_eq (r.warnings[0].what, "GPU events of the step before left out: launched before "
                                        "the profile began");
  ck_assert_int_eq (r.warnings[0].count, 2);
  ck_assert_int_eq (self (&r, "launches")->verdict, VERDICT_HOLDS);
  t = import_good (EVENTS (TINY KERNEL ("777", "0", "7", "1050", "9") LAST), &r);
  ck_assert_int_eq (t->n_ops, 5);
  ck_assert_int_eq (self (&r, "launches")->verdict, VERDICT_FAILS);
}
END_TEST

START_TEST (all_that_a_thread_of_autograd_does_is_backward) {
  import_report r;
  trace *t = import_good (EVENTS (TINY OP ("aten::add_", "2", "1061", "5", "") LAUNCH (
                              "9", "2", "1062") KERNEL ("9", "0", "7", "1084", "3") LAST),
                          &r);
  ck_assert_int_eq (t->n_ops, 5);
  ck_assert_int_eq (r.ops_by_phase[OP_BACKWARD], 2);
  /* names tell where profiles have no thread of the forward call */
  t = import_good (EVENTS (STEP ("1", "0", "100") OP ("aten::mm", "1", "10", "5", "")
                               LAUNCH ("1", "1", "11") KERNEL ("1", "0", "7", "20", "5")
                                   OP ("torch::autograd::AccumulateGrad", "1", "20", "5",
                                       "") LAUNCH ("2", "1", "21") KERNEL ("2", "0", "7", "30", "5")
                                       OP ("MmBackward", "1", "30", "5", "") LAUNCH ("3", "1", "31")
                                           KERNEL ("3", "0", "7", "40", "5") LAST),
                   &r);
  ck_assert_int_eq (r.ops_by_phase[OP_BACKWARD], 2);
}
END_TEST

/* ---- state ---- */

/* Adam's first step: moments are filled, then updated in place; the root of one is an intermediate
   that is written in place as well.  All of them are as large as the parameter. */
#define ADAM                                                                            \
  FLAT ("aten::mm", "5", "4", "2", "0", "", T ("20", "100"), T ("50", "256"))           \
  FLAT ("MmBackward0", "6", "5", "2", "1", "", T ("50", "256") "," T ("20", "100"),     \
        T ("70", "100"))                                                                \
  FLAT ("aten::empty_like", "10", "9", "9", "0", "", "", T ("80", "100"))               \
  FLAT ("aten::zeros_like", "9", "8", "8", "0", "", T ("20", "100"), T ("80", "100"))   \
  FLAT ("aten::zeros_like", "11", "10", "8", "0", "", T ("20", "100"), T ("81", "100")) \
  FLAT ("aten::_foreach_lerp_", "12", "11", "8", "0",                                   \
        "aten::_foreach_lerp_(Tensor(a!)[] self, Tensor[] b)",                          \
        "[" T ("80", "100") "],[" T ("70", "100") "]", "")                              \
  FLAT ("aten::_foreach_addcmul_", "13", "12", "8", "0",                                \
        "aten::_foreach_addcmul_(Tensor(a!)[] self, Tensor[] b)",                       \
        "[" T ("81", "100") "],[" T ("70", "100") "]", "")                              \
  FLAT ("aten::_foreach_sqrt", "14", "13", "8", "0",                                    \
        "aten::_foreach_sqrt(Tensor[] a) -> Tensor[]", "[" T ("81", "100") "]",         \
        "[" T ("82", "100") "]")                                                        \
  FLAT ("aten::_foreach_add_", "15", "14", "8", "0",                                    \
        "aten::_foreach_add_(Tensor(a!)[] self, float b)", "[" T ("82", "100") "]", "") \
  FLAT ("aten::_foreach_addcdiv_", "16", "15", "8", "0",                                \
        "aten::_foreach_addcdiv_(Tensor(a!)[] self, Tensor[] b, Tensor[] c)",           \
        "[" T ("20", "100") "],[" T ("80", "100") "],[" T ("82", "100") "]", "")        \
  FLAT ("Optimizer.step#Adam.step", "8", "7", "2", "0", "", "", "")

START_TEST (what_the_optimizer_makes_to_keep_is_state_and_its_intermediates_are_not) {
  import_report r;
  trace *t = import_good (ET (ADAM), &r);
  int state = 0, temporary = 0;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const char *name = t->tensors[i].name;
    if (strncmp (name, "s80.", 4) == 0 || strncmp (name, "s81.", 4) == 0)
      state += t->tensors[i].kind == TENSOR_OPTIMIZER && t->tensors[i].persistent;
    if (strncmp (name, "s82.", 4) == 0)
      temporary += t->tensors[i].kind == TENSOR_TEMPORARY && !t->tensors[i].persistent;
  }
  ck_assert_int_eq (state, 2);
  ck_assert_int_eq (temporary, 1);
  /* at the end all but the activation lives, in both; forward, the state is there but in the first
     step */
  ck_assert_int_eq (r.bytes_by_kind[TENSOR_OPTIMIZER], 800);
  ck_assert_int_eq (r.peak_bytes, 400 + 1024 + 400 + 800);
  ck_assert_int_eq (r.first_peak_bytes, 400 + 1024 + 400);
}
END_TEST

/* ---- steps without work, artefacts, paths, sizes ---- */

START_TEST (the_last_step_in_which_the_gpu_works_is_taken) {
  import_report r;
  import_good (EVENTS (STEP ("1", "0", "100") OP ("a", "1", "10", "5", "") LAUNCH ("1", "1", "11")
                           KERNEL ("1", "0", "7", "20", "7") STEP ("2", "100", "100")
                               OP ("b", "1", "110", "5", "") LAST),
               &r);
  ck_assert_str_eq (r.iteration, "ProfilerStep#1 of 2 steps");
  ck_assert_str_eq (r.warnings[0].what, "steps behind the chosen one have no GPU work");
  ck_assert_str_eq (r.warnings[0].example, "ProfilerStep#2");
}
END_TEST

START_TEST (artefacts_of_the_profiler_are_named_for_what_they_are) {
  static const struct {
    const char *text, *says;
  } rows[] = {
    { "[[1719, 0, 512, 3], [1720, 1, 512, 3]]", "a raw memory timeline" },
    { "[[1719, 1720], [[0, 1], [0, 2]]]", "a memory timeline" },
    { "<!DOCTYPE html><html></html>", "a web page" },
    { "main;forward;conv 12\nmain 3\n", "call stacks for a flame graph" },
    { "-------  ------\n Name  Self CPU %\n", "a printed table of a profiler" },
    { "PK\3\4aaaaaaaaaaaaaaaaaaaaaaaaa", "a zip archive" },
  };
  error err;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    import_bad (rows[i].text, &err);
    ck_assert_msg (strstr (err.text, rows[i].says) != NULL, "%s", err.text);
    ck_assert_msg (strstr (err.text, "docs/record.md") != NULL, "%s", err.text);
  }
}
END_TEST

START_TEST (paths_of_windows_keep_their_last_name_only) {
  import_report r;
  error err = { 0 };
  trace *t;
  const char *text = EVENTS (TINY LAST);
  import_source source = { "C:\\Users\\someone\\runs\\step.json", text, (int64_t)strlen (text) };
  ck_assert (import_memory (&source, 1, NULL, import_arena (), &t, &r, &err));
  ck_assert_str_eq (r.read[0].name, "step.json");
  ck_assert_str_eq (t->name, "step");
}
END_TEST

START_TEST (sizes_are_rounded_not_cut) {
  import_report r;
  error err = { 0 };
  bytes text = { 0 };
  import_good ("ferry-text/1\ntensor a 1999999999B activation\nop x forward 1us writes a\n", &r);
  ck_assert (import_report_text (&r, &text, &err));
  ck_assert_ptr_nonnull (strstr (text.data, "activation 2.00 GB (1)"));
  bytes_free (&text);
}
END_TEST

START_TEST (a_use_that_no_card_could_move_is_a_sign) {
  import_report r;
  error err;
  char et[4000];
  snprintf (et, sizeof et, "%s", PAIR_ET (""));
  for (char *at = et; (at = strstr (at, "256,4")) != NULL; at += 5)
    memcpy (at, "256,4", 5);
  trace *t = join_as ("a.json",
                      ET (FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "1000000000"))
                              FLAT ("b", "4", "3", "2", "0", "", T ("50", "1000000000"), "")),
                      "b.json", PAIR_KINETO ("", "0"), &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (self (&r, "rate")->verdict, VERDICT_FAILS);
  ck_assert_ptr_nonnull (strstr (t->source.confidence, "rate: 2 ops use more than any card moves"));
}
END_TEST

/* 330 MB in 7 us is less than the fastest card moves, beside its caches, and more than this one. */
START_TEST (a_card_that_names_itself_is_asked_its_own_rate) {
  static const char *const kinetos[] = {
    PAIR_KINETO ("", "0"),
    PAIR_KINETO ("\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H100 80GB HBM3\","
                 "\"totalGlobalMem\":85520809984}],",
                 "0"),
  };
  for (int i = 0; i < 2; i++) {
    import_report r;
    error err;
    trace *t = join_as ("a.json",
                        ET (FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "82500000"))
                                FLAT ("b", "4", "3", "2", "0", "", T ("50", "82500000"), "")),
                        "b.json", kinetos[i], &r, &err);
    ck_assert_msg (t != NULL, "%s", err.text);
    const import_check *rate = self (&r, "rate");
    ck_assert_int_eq (rate->verdict, i ? VERDICT_FAILS : VERDICT_HOLDS);
    ck_assert_ptr_nonnull (strstr (rate->says, i ? "more than NVIDIA H100 80GB HBM3 moves"
                                                 : "more than any card moves"));
  }
}
END_TEST

int main (void) {
  const suite_row rows[] = {
    { what_a_call_may_read_counts_as_used_by_all_of_its_ops, 0, 3 },
    { without_shapes_a_saved_tensor_stays_and_the_report_says_so, 0, 0 },
    { a_later_op_with_an_input_of_that_size_or_without_a_list_may_read, 0, 0 },
    { gpu_time_that_is_left_out_is_counted_and_lowers_the_confidence, 0, 0 },
    { one_step_of_an_execution_trace_with_several_is_taken, 0, 0 },
    { files_of_two_ranks_do_not_join_as_exact, 0, 0 },
    { kernels_of_the_step_before_become_no_ops, 0, 0 },
    { all_that_a_thread_of_autograd_does_is_backward, 0, 0 },
    { what_the_optimizer_makes_to_keep_is_state_and_its_intermediates_are_not, 0, 0 },
    { the_last_step_in_which_the_gpu_works_is_taken, 0, 0 },
    { artefacts_of_the_profiler_are_named_for_what_they_are, 0, 0 },
    { paths_of_windows_keep_their_last_name_only, 0, 0 },
    { sizes_are_rounded_not_cut, 0, 0 },
    { a_use_that_no_card_could_move_is_a_sign, 0, 0 },
    { a_card_that_names_itself_is_asked_its_own_rate, 0, 0 },
    { NULL, 0, 0 },
  };
  return suite_run_rows ("import sure", rows, NULL, NULL, 20);
}
