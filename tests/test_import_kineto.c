/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imports of small Kineto files made by hand, one for each trap. */
#include <string.h>

#include "tests/import_case.h"
#include "trace/import/import.h"
#include "tests/import_texts.h"

static int32_t op_named (const trace *t, const char *name) {
  for (int32_t i = 0; i < t->n_ops; i++)
    if (strcmp (t->ops[i].name, name) == 0)
      return i;
  ck_abort_msg ("no op %s", name);
  return -1;
}

START_TEST (kineto_ops_are_owners_by_containment_not_by_external_id) {
  import_report r;
  trace *t = import_good (EVENTS (TINY LAST), &r);
  ck_assert_int_eq (t->n_ops, 4);
  static const char *const names[] = { "aten::linear", "aten::relu", "LinearBackward0",
                                       "aten::add_" };
  static const int64_t ns[] = { 10000, 5000, 20000, 8000 }, gaps[] = { 0, 2000, 13000, 70000 };
  static const op_phase phases[] = { OP_FORWARD, OP_FORWARD, OP_BACKWARD, OP_UPDATE };
  for (int i = 0; i < 4; i++) {
    ck_assert_str_eq (t->ops[i].name, names[i]);
    ck_assert_int_eq (t->ops[i].ns, ns[i]);
    ck_assert_int_eq (t->ops[i].gap_ns, gaps[i]);
    ck_assert_int_eq (t->ops[i].phase, phases[i]);
  }
  ck_assert_int_eq (r.iteration_ns, 100000);
  ck_assert_int_eq (trace_total_ns (t), 128000);
  ck_assert (!trace_is_plannable (t));
  ck_assert_str_eq (r.advice, "no [memory] events: sizes are unknown. Profile again with "
                              "profile_memory=True, or add the execution trace of the same run as "
                              "second file");
}
END_TEST

START_TEST (a_block_dies_behind_the_last_op_launched_not_the_last_one_run) {
  import_report r;
  trace *t = import_good (EVENTS (TINY TINY_MEMORY LAST), &r);
  int64_t saved = tensor_named (t, "aten::linear/0");
  ck_assert_int_ge (saved, 0);
  const tensor *x = &t->tensors[saved];
  ck_assert_int_eq (x->bytes, 1024);
  ck_assert_int_eq (x->kind, TENSOR_ACTIVATION);
  ck_assert (list_holds (&t->ops[0].writes, saved));
  ck_assert (list_holds (&t->ops[op_named (t, "LinearBackward0")].reads, saved));
  ck_assert (!list_holds (&t->ops[3].reads, saved));
  ck_assert_int_eq (t->ops[0].workspace_bytes, 512); /* born and freed inside */
  int64_t kept = tensor_named (t, "LinearBackward0/1");
  ck_assert_int_eq (t->tensors[kept].kind, TENSOR_GRADIENT);
  ck_assert_int_eq (t->tensors[kept].dies_after, 3);
  int64_t resident = tensor_named (t, "resident");
  ck_assert_int_eq (t->tensors[resident].bytes, 5000);
  ck_assert (t->tensors[resident].pinned && t->tensors[resident].persistent);
  ck_assert_int_eq (r.peak_bytes, 5000 + 1024 + 2048);
  ck_assert_int_eq (r.reference_peak_bytes, 8072);
  ck_assert_int_eq (r.reads_inferred, r.reads);
  ck_assert_str_eq (t->source.confidence,
                    "approximate: reads are those of all ops that may read, and there are no "
                    "shapes, kinds inferred");
}
END_TEST

START_TEST (unsorted_memory_events_and_equal_times_are_put_in_order) {
  import_report r, s;
  /* the same events, the thread of autograd written first */
  trace *t = import_good (EVENTS (TINY TINY_MEMORY LAST), &r);
  trace *u = import_good (EVENTS (TINY MEMORY ("2", "1052", "8192", "2048",
                                               "8072") MEMORY ("2", "1058", "4096", "-1024", "7048")
                                      MEMORY ("1", "1012", "4096", "1024", "6024")
                                          MEMORY ("1", "1015", "8192", "512", "6536")
                                              MEMORY ("1", "1025", "8192", "-512", "6024") LAST),
                          &s);
  char a[TRACE_DIGEST], b[TRACE_DIGEST];
  error err = { 0 };
  ck_assert (trace_digest (t, a, &err) && trace_digest (u, b, &err));
  ck_assert_str_eq (a, b);
  /* a free before its alloc at one time: the totals tell the order */
  t = import_good (EVENTS (TINY MEMORY ("1", "1011", "64", "512", "5512")
                               MEMORY ("1", "1012", "4096", "-1024", "5512")
                                   MEMORY ("1", "1012", "4096", "1024", "6536") LAST),
                   &r);
  ck_assert_int_eq (t->ops[0].workspace_bytes, 1024);
  ck_assert_int_eq (r.n_warnings, 0);
  /* and without totals, the pairs do */
  t = import_good (EVENTS (TINY MEMORY ("1", "1012", "4096", "-1024", "-1")
                               MEMORY ("1", "1012", "4096", "1024", "-1") LAST),
                   &r);
  ck_assert_int_eq (t->ops[0].workspace_bytes, 1024);
  ck_assert_int_eq (r.n_warnings, 0);
}
END_TEST

START_TEST (breaks_of_the_running_total_are_counted) {
  import_report r;
  import_good (EVENTS (TINY MEMORY ("1", "1012", "4096", "1024", "6024")
                           MEMORY ("2", "1058", "4096", "-1024", "4000") LAST),
               &r);
  ck_assert_int_eq (r.n_warnings, 1);
  ck_assert_str_eq (r.warnings[0].what, "steps of Total Allocated that differ from Bytes");
  ck_assert_int_eq (r.warnings[0].count, 1);
}
END_TEST

START_TEST (the_dialect_of_2021_has_text_and_numbers_as_thread_ids) {
  import_report r;
  trace *t = import_good (
      EVENTS (
          "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#6\",\"pid\":1,\"tid\":"
          "\"1\",\"ts\":0,\"dur\":100},"
          "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":\"1\","
          "\"ts\":10,\"dur\":10,\"args\":{\"External id\":3}},"
          "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mul\",\"pid\":1,\"tid\":\"1\","
          "\"ts\":30,\"dur\":10,\"args\":{\"External id\":4}},"
          "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"l\",\"pid\":1,\"tid\":\"1\",\"ts\":20,"
          "\"dur\":1,\"args\":{\"correlation\":5}},"
          "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"l\",\"pid\":1,\"tid\":\"1\",\"ts\":35,"
          "\"dur\":1,\"args\":{\"correlation\":6}},"
          "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":\"stream 7\","
          "\"ts\":25,\"dur\":5,\"args\":{\"correlation\":5}},"
          "{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"m\",\"pid\":0,\"tid\":\"stream 7\","
          "\"ts\":40,\"dur\":5,\"args\":{\"correlation\":6}},"
          "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":12,\"args\":{\"Device "
          "Type\":1,\"Device Id\":0,\"Bytes\":512}},"
          "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":38,\"args\":{\"Device "
          "Type\":1,\"Device Id\":0,\"Bytes\":-512}},"
          "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":39,\"args\":{\"Device "
          "Type\":0,\"Device Id\":-1,\"Bytes\":64}}"),
      &r);
  ck_assert_str_eq (r.read[0].version, "2021 dialect");
  ck_assert_int_eq (t->n_ops, 2);
  /* a launch at the last microsecond of its op belongs to it */
  ck_assert_str_eq (t->ops[0].name, "aten::mm");
  ck_assert_int_eq (t->n_tensors, 1);
  ck_assert_int_eq (t->tensors[0].kind, TENSOR_TEMPORARY);
  ck_assert (list_holds (&t->ops[1].reads, 0));
  ck_assert_ptr_nonnull (strstr (t->source.confidence, "identity guessed"));
}
END_TEST

START_TEST (nanoseconds_of_2024_are_kept) {
  import_report r;
  trace *t = import_good (
      EVENTS (NOTE ("ProfilerStep#1", "1", "1719746639123400.000", "500.000", "")
                  OP ("aten::mm", "1", "1719746639123410.001", "10.5", "")
                      LAUNCH ("1", "1", "1719746639123411.000")
                          KERNEL ("1", "0", "7", "1719746639123420.123", "3.001")
                              LAUNCH ("2", "1", "1719746639123412.000")
                                  KERNEL ("2", "0", "7", "1719746639123423.125", "0.999") LAST),
      &r);
  ck_assert_str_eq (r.read[0].version, "2024 dialect");
  ck_assert_int_eq (t->n_ops, 1);
  ck_assert_int_eq (t->ops[0].ns, 4000);
  ck_assert_int_eq (t->ops[0].gap_ns, 1); /* between its kernels */
}
END_TEST

START_TEST (owners_that_interleave_become_one_op_a_run) {
  import_report r;
  trace *t = import_good (
      EVENTS (STEP ("1", "0", "100") OP ("a", "1", "0", "50", "") OP ("b", "2", "0", "50", "")
                  LAUNCH ("1", "1", "1") LAUNCH ("2", "2", "2") LAUNCH ("3", "1", "3")
                      KERNEL ("1", "0", "7", "10", "5") KERNEL ("2", "0", "7", "20", "5")
                          KERNEL ("3", "0", "7", "30", "5") LAST),
      &r);
  ck_assert_int_eq (t->n_ops, 3);
  ck_assert_str_eq (t->ops[0].name, "a");
  ck_assert_str_eq (t->ops[1].name, "b");
  ck_assert_str_eq (t->ops[2].name, "a (2)");
}
END_TEST

START_TEST (kernels_that_overlap_on_a_stream_count_once) {
  import_report r;
  trace *t = import_good (
      EVENTS (STEP ("1", "0", "100") OP ("a", "1", "0", "50", "") LAUNCH ("1", "1", "1") LAUNCH (
          "2", "1", "2") KERNEL ("1", "0", "7", "10", "5") KERNEL ("2", "0", "7", "14", "5") LAST),
      &r);
  ck_assert_int_eq (trace_total_ns (t), 9000);
}
END_TEST

START_TEST (collectives_on_another_stream_add_no_time) {
  import_report r;
  trace *t = import_good (EVENTS (TINY OP ("nccl", "2", "1061", "5", "") LAUNCH ("9", "2", "1062")
                                      KERNEL ("9", "0", "14", "1063", "5000") LAST),
                          &r);
  ck_assert_int_eq (t->n_ops, 4);
  ck_assert_int_eq (trace_total_ns (t), 128000);
  ck_assert_str_eq (r.streams, "7 (compute), 14 of device 0");
}
END_TEST

START_TEST (one_device_is_planned_and_named) {
  import_report r;
  error err = { 0 };
  const char *text =
      EVENTS (TINY LAUNCH ("8", "1", "1011") KERNEL ("8", "1", "7", "1030", "1") LAST);
  import_good (text, &r);
  ck_assert_str_eq (r.warnings[0].what, "GPU events of other devices left out");
  ck_assert_str_eq (r.warnings[0].example, "device 1");
  import_source source = { "x", text, (int64_t)strlen (text) };
  trace *t;
  import_options o = IMPORT_DEFAULTS;
  o.device = 1;
  ck_assert (import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_assert_int_eq (t->n_ops, 1);
  o.device = 4;
  ck_assert (!import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "no GPU events of device 4"));
}
END_TEST

#define STEPS                                                                                   \
  STEP ("1", "0", "100")                                                                        \
  OP ("a", "1", "10", "5", "")                                                                  \
  LAUNCH ("1", "1", "11")                                                                       \
  KERNEL ("1", "0", "7", "20", "7")                                                             \
  STEP ("2", "100", "100")                                                                      \
  OP ("a", "1", "110", "5", "")                                                                 \
  LAUNCH ("2", "1", "111")                                                                      \
  KERNEL ("2", "0", "7", "120", "9") STEP ("3", "200", "100") OP ("b", "1", "210", "5", "")     \
      LAUNCH ("3", "1", "211") KERNEL ("3", "0", "7", "305", "3") OP ("a", "1", "220", "5", "") \
          LAUNCH ("4", "1", "221") KERNEL ("4", "0", "7", "310", "8")

START_TEST (steps_are_chosen_by_launch_and_the_others_are_samples) {
  import_report r;
  error err = { 0 };
  const char *text = EVENTS (STEPS LAST);
  /* the last step by default; its kernels run behind its end */
  trace *t = import_good (text, &r);
  ck_assert_int_eq (t->n_ops, 2);
  ck_assert_str_eq (r.iteration, "ProfilerStep#3 of 3 steps");
  ck_assert_int_eq (t->n_samples, 0);
  ck_assert_str_eq (r.warnings[0].what, "steps whose ops are not those of the planned one");
  ck_assert_int_eq (r.warnings[0].count, 2);
  import_source source = { "x", text, (int64_t)strlen (text) };
  import_options o = IMPORT_DEFAULTS;
  o.step = 1;
  ck_assert (import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_assert_int_eq (t->ops[0].ns, 7000);
  ck_assert_int_eq (t->n_samples, 1);
  ck_assert_int_eq (t->ns_samples[0], 9000);
  o.step = 8;
  ck_assert (!import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_assert_str_eq (err.text, "no step 8: there are 3, ProfilerStep#1 to ProfilerStep#3");
  ck_assert_int_eq (error_exit_status (err.code), 1);
}
END_TEST

START_TEST (without_steps_the_optimizer_marks_them) {
  import_report r;
  trace *t = import_good (
      EVENTS (NOTE ("Optimizer.step#SGD", "1", "0", "10", "") OP ("a", "1", "20", "5", "")
                  LAUNCH ("1", "1", "21") KERNEL ("1", "0", "7", "30", "5")
                      NOTE ("Optimizer.step#SGD", "1", "40", "10", "") OP ("c", "1", "42", "5", "")
                          LAUNCH ("2", "1", "43") KERNEL ("2", "0", "7", "50", "5") LAST),
      &r);
  ck_assert_int_eq (t->n_ops, 2);
  ck_assert_int_eq (t->ops[1].phase, OP_UPDATE);
  ck_assert_int_eq (r.iteration_ns, 40000);
}
END_TEST

int main (void) {
  const suite_row rows[] = {
    { kineto_ops_are_owners_by_containment_not_by_external_id, 0, 0 },
    { a_block_dies_behind_the_last_op_launched_not_the_last_one_run, 0, 0 },
    { unsorted_memory_events_and_equal_times_are_put_in_order, 0, 0 },
    { breaks_of_the_running_total_are_counted, 0, 0 },
    { the_dialect_of_2021_has_text_and_numbers_as_thread_ids, 0, 0 },
    { nanoseconds_of_2024_are_kept, 0, 0 },
    { owners_that_interleave_become_one_op_a_run, 0, 0 },
    { kernels_that_overlap_on_a_stream_count_once, 0, 0 },
    { collectives_on_another_stream_add_no_time, 0, 0 },
    { one_device_is_planned_and_named, 0, 0 },
    { steps_are_chosen_by_launch_and_the_others_are_samples, 0, 0 },
    { without_steps_the_optimizer_marks_them, 0, 0 },
    { NULL, 0, 0 },
  };
  return suite_run_rows ("import kineto", rows, NULL, NULL, 20);
}
