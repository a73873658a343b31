/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imports of small execution traces made by hand, alone and with the Kineto file of the same run.
 */
#include <stdio.h>
#include <string.h>

#include "tests/import_case.h"
#include "tests/import_texts.h"

START_TEST (an_execution_trace_splits_reused_ids_and_tells_kinds) {
  import_report r;
  trace *t = import_good (ET (TINY_ET), &r);
  ck_assert (!trace_is_plannable (t));
  ck_assert_str_eq (r.read[0].version, "schema 1.0.1");
  /* 50 lives twice; 99 is empty, and no tensor of no bytes is kept */
  ck_assert_int_eq (t->n_tensors, 6);
  ck_assert_int_eq (r.zero_tensors, 2);
  int64_t first = -1, second = -1;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    const tensor *x = &t->tensors[i];
    if (strncmp (x->name, "s50.", 4) == 0)
      *(x->bytes == 1024 ? &first : &second) = i;
    if (strncmp (x->name, "s10.", 4) == 0)
      ck_assert_int_eq (x->kind, TENSOR_INPUT);
    if (strncmp (x->name, "s20.", 4) == 0)
      ck_assert_int_eq (x->kind, TENSOR_PARAMETER);
    if (strncmp (x->name, "s70.", 4) == 0)
      ck_assert_int_eq (x->kind, TENSOR_GRADIENT);
  }
  ck_assert (first >= 0 && second >= 0);
  ck_assert_int_eq (t->tensors[first].kind, TENSOR_ACTIVATION);
  ck_assert_int_eq (t->tensors[second].bytes, 128);
}
END_TEST

#define ATTRS(rf, fw, schema)                                                                  \
  "\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":" rf "},{\"name\":\"fw_tid\"," \
  "\"type\":\"uint64\",\"value\":" fw "},{\"name\":\"tid\",\"type\":\"uint64\",\"value\":1},"  \
  "{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"" schema "\"}]"

START_TEST (schemas_flat_and_nested_read_alike) {
  import_report r, s;
  trace *t =
      import_good (ET (FLAT ("aten::relu", "5", "4", "2", "0", "aten::relu(Tensor self) -> Tensor",
                             "[" T ("50", "256") "]", T ("60", "128"))),
                   &r);
  trace *u = import_good (
      "{\"schema\":\"1.1.0-chakra.0.0.4\",\"nodes\":[{\"id\":5,\"name\":\"aten::relu\","
      "\"ctrl_deps\":2,\"inputs\":{\"values\":[[" T (
          "50", "256") "]],\"shapes\":[[256]],\"types\":"
                       "[\"GenericList[Tensor(float)]\"]},\"outputs\":{\"values\":[" T (
                           "60", "128") "]}," ATTRS ("4", "0",
                                                     "aten::relu(Tensor self) -> Tensor") "}]}",
      &s);
  char a[TRACE_DIGEST], b[TRACE_DIGEST];
  error err = { 0 };
  ck_assert (trace_digest (t, a, &err) && trace_digest (u, b, &err));
  ck_assert_str_eq (a, b);
  import_bad ("{\"schema\":\"9.9\",\"nodes\":[{\"name\":\"a\"}]}", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "a node without `id` and `rf_id`: schema 9.9"));
}
END_TEST

/* ---- an execution trace and Kineto of one run ---- */

#define ID(n) "\"External id\":" n
#define RUN                                                                        \
  STEP ("5", "1000", "200")                                                        \
  OP ("aten::linear", "1", "1010", "20", ID ("2") ",\"Sequence number\":7")        \
  OP ("aten::empty", "1", "1010", "2", ID ("3"))                                   \
  LAUNCH ("1", "1", "1020")                                                        \
  KERNEL ("1", "0", "7", "1030", "10")                                             \
  OP ("aten::relu", "1", "1032", "6", ID ("4"))                                    \
  LAUNCH ("2", "1", "1034")                                                        \
  KERNEL ("2", "0", "7", "1042", "5")                                              \
  OP ("LinearBackward0", "1", "1050", "10", ID ("6") ",\"Fwd thread id\":1")       \
  LAUNCH ("3", "1", "1055")                                                        \
  KERNEL ("3", "0", "7", "1060", "20")                                             \
  NOTE ("Optimizer.step#SGD.step", "1", "1070", "20", ID ("7"))                    \
  OP ("aten::add_", "1", "1075", "5", ID ("8"))                                    \
  LAUNCH ("4", "1", "1076")                                                        \
  KERNEL ("4", "0", "7", "1090", "8") OP ("aten::mul", "1", "1082", "5", ID ("9")) \
      LAUNCH ("5", "1", "1083") KERNEL ("5", "0", "7", "1100", "8")

static trace *join (const char *et, const char *kineto, import_report *r, error *err) {
  memset (err, 0, sizeof *err);
  return import_texts ((const char *[]){ et, kineto }, 2, r, err);
}

START_TEST (an_execution_trace_and_kineto_make_an_exact_trace) {
  import_report r;
  error err;
  trace *t = join (ET (TINY_ET), EVENTS (RUN LAST), &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_str_eq (r.joined, "7 of 7 calls on 1 thread by name sequence");
  ck_assert_str_eq (t->source.confidence, "exact");
  ck_assert_ptr_null (r.inferred);
  ck_assert_int_eq (t->n_ops, 5);
  /* the allocation inside linear is written by linear, whose own kernel fills it, and by none
   * before */
  for (int32_t i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].bytes == 1024) {
      ck_assert (list_holds (&t->ops[0].writes, i));
      ck_assert (list_holds (&t->ops[1].reads, i) && list_holds (&t->ops[2].reads, i));
      ck_assert (!list_holds (&t->ops[3].reads, i) && !list_holds (&t->ops[3].writes, i));
    } else if (t->tensors[i].kind == TENSOR_PARAMETER) {
      ck_assert (list_holds (&t->ops[0].reads, i));
      ck_assert (list_holds (&t->ops[3].writes, i) && list_holds (&t->ops[3].reads, i));
      ck_assert (!list_holds (&t->ops[4].writes, i));
    }
}
END_TEST

START_TEST (record_function_ids_join_where_they_are) {
  import_report r;
  error err;
  char text[8192] = "", *at = text;
  /* the same run, each call with its record function id */
  for (const char *from = EVENTS (RUN LAST); *from; from++) {
    if (strncmp (from, "\"External id\":", 14) == 0 && strncmp (from + 14, "999", 3) != 0) {
      int id = from[14] - '0';
      at += snprintf (at, 64, "\"Record function id\":%d,\"External id\":%d", id, 100 - id);
      from += 14;
      continue;
    }
    *at++ = *from;
    *at = 0;
  }
  trace *t = join (ET (TINY_ET), text, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_str_eq (r.joined, "7 of 7 calls by record function id");
  ck_assert_str_eq (t->source.confidence, "exact");
}
END_TEST

START_TEST (one_iteration_inside_the_other_file_is_found_and_the_last_is_taken) {
  import_report r;
  error err;
  /* two steps of two ops in the Kineto file, one in the execution trace */
  trace *t = join (
      ET (FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "256"))
              FLAT ("b", "4", "3", "2", "0", "", T ("50", "256"), "")),
      EVENTS (STEP ("1", "0", "100") OP ("a", "1", "10", "5", ID ("1")) LAUNCH ("1", "1", "11")
                  KERNEL ("1", "0", "7", "20", "7") OP ("b", "1", "30", "5", ID ("2")) LAUNCH (
                      "2", "1", "31") KERNEL ("2", "0", "7", "40", "7") STEP ("2", "100", "100")
                      OP ("a", "1", "110", "5", ID ("3")) LAUNCH ("3", "1", "111")
                          KERNEL ("3", "0", "7", "120", "9") OP ("b", "1", "130", "5", ID ("4"))
                              LAUNCH ("4", "1", "131") KERNEL ("4", "0", "7", "140", "9") LAST),
      &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (t->n_ops, 2);
  ck_assert_int_eq (t->ops[0].ns, 9000);
  ck_assert_int_eq (t->n_tensors, 1);
  ck_assert_int_eq (r.warnings[0].count, 2);
  ck_assert_int_eq (t->n_samples, 1);
}
END_TEST

START_TEST (tensors_of_another_stream_are_used_by_what_runs_beside) {
  import_report r;
  error err;
  trace *t = join (
      ET (FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "256"))
              FLAT ("nccl", "4", "3", "2", "0", "", T ("50", "256"), T ("50", "256"))
                  FLAT ("b", "5", "4", "2", "0", "", "", T ("60", "256"))
                      FLAT ("c", "6", "5", "2", "0", "", T ("60", "256"), "")
                          FLAT ("d", "7", "6", "2", "0", "", T ("60", "256"), "")),
      EVENTS (STEP ("1", "0", "100") OP ("a", "1", "10", "5", ID ("1")) LAUNCH ("1", "1", "11")
                  KERNEL ("1", "0", "7", "20", "7") OP ("nccl", "1", "16", "2", ID ("2"))
                      LAUNCH ("2", "1", "17") KERNEL ("2", "0", "14", "28", "20")
                          OP ("b", "1", "20", "5", ID ("3")) LAUNCH ("3", "1", "21")
                              KERNEL ("3", "0", "7", "30", "5") OP ("c", "1", "30", "5", ID ("4"))
                                  LAUNCH ("4", "1", "31") KERNEL ("4", "0", "7", "40", "5")
                                      OP ("d", "1", "40", "5", ID ("5")) LAUNCH ("5", "1", "41")
                                          KERNEL ("5", "0", "7", "60", "5") LAST),
      &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (t->n_ops, 4); /* a b c d: nccl is none */
  int64_t x = tensor_named (t, "s50.0");
  ck_assert (list_holds (&t->ops[0].writes, x));
  ck_assert (list_holds (&t->ops[1].writes, x) && list_holds (&t->ops[2].reads, x));
  ck_assert (!list_holds (&t->ops[3].reads, x));
}
END_TEST

START_TEST (files_of_two_runs_are_refused) {
  import_report r;
  error err;
  ck_assert_ptr_null (join (ET (FLAT ("a", "3", "2", "2", "0", "", "", T ("50", "256"))),
                            EVENTS (RUN LAST), &r, &err));
  ck_assert_str_eq (err.text,
                    "the two files are not of one run: thread 1 has 1 ops here and 7 there, first "
                    "difference at op 0 (`a` / `aten::linear`)");
  ck_assert_ptr_null (join (ET (TINY_ET), ET (TINY_ET), &r, &err));
  ck_assert_int_eq (err.code, ERR_usage);
}
END_TEST

int main (void) {
  const suite_row rows[] = {
    { an_execution_trace_splits_reused_ids_and_tells_kinds, 0, 0 },
    { schemas_flat_and_nested_read_alike, 0, 0 },
    { an_execution_trace_and_kineto_make_an_exact_trace, 0, 0 },
    { record_function_ids_join_where_they_are, 0, 0 },
    { one_iteration_inside_the_other_file_is_found_and_the_last_is_taken, 0, 0 },
    { tensors_of_another_stream_are_used_by_what_runs_beside, 0, 0 },
    { files_of_two_runs_are_refused, 0, 0 },
    { NULL, 0, 0 },
  };
  return suite_run_rows ("import et", rows, NULL, NULL, 20);
}
