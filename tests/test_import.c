/* Imports of small texts made by hand, one per dialect and per trap. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tests/import_case.h"

/* ---- plain text ---- */

static const char plain[] = "ferry-text/1\n"
                            "name tiny\n"
                            "batch 32\n"
                            "# two layers\n"
                            "tensor w1 4MiB parameter\n"
                            "tensor x 12MB input split\n"
                            "tensor a1 64MiB activation split\n"
                            "tensor stat 1KiB parameter\n"
                            "tensor g1 4MiB gradient\n"
                            "op fc1.fwd forward 1250us reads x w1 writes a1 side stat "
                            "workspace 8MiB parts 32\n"
                            "op loss forward 10us reads a1 gap 3us # the end of it\n"
                            "op fc1.bwd backward 2ms reads a1 x writes g1\n"
                            "free a1 x\n"
                            "op sgd update 20us reads g1 w1 writes w1\n";

START_TEST (plain_text_says_all_that_a_trace_can) {
  import_report r;
  trace *t = import_good (plain, &r);
  ck_assert_str_eq (t->name, "tiny");
  ck_assert_str_eq (t->source.confidence, "exact");
  ck_assert_int_eq (t->batch, 32);
  ck_assert_int_eq (t->n_tensors, 5);
  ck_assert_int_eq (t->n_ops, 4);
  const op *o = &t->ops[0];
  ck_assert_int_eq (o->ns, 1250000);
  ck_assert_int_eq (o->workspace_bytes, 8 << 20);
  ck_assert_int_eq (o->parts, 32);
  ck_assert (list_holds (&o->side, 3) && list_holds (&o->writes, 3));
  ck_assert (list_holds (&o->reads, 0) && list_holds (&o->reads, 1));
  ck_assert_int_eq (t->ops[1].gap_ns, 3000);
  ck_assert_int_eq (t->ops[3].phase, OP_UPDATE);
  ck_assert_int_eq (t->tensors[1].bytes, 12000000);
  ck_assert_int_eq (t->tensors[1].born_before, 0);
  ck_assert_int_eq (t->tensors[2].dies_after, 2);
  ck_assert (t->tensors[0].persistent && t->tensors[2].split && !t->tensors[2].persistent);
  ck_assert_int_eq (r.peak_bytes, (4 << 20) + 12000000 + (64 << 20) + 1024 + (8 << 20));
  ck_assert_str_eq (r.peak_at, "op 0 fc1.fwd");
}
END_TEST

START_TEST (plain_text_names_line_and_column_of_a_mistake) {
  static const struct {
    const char *text, *message;
    int line;
  } rows[] = {
    { "ferry-text/1\ntensor a 4MiB\nop f forward 1us reads b\n",
      "column 24: no tensor of this name was given before: op f forward 1us reads b", 3 },
    { "ferry-text/1\ntensor a lots\n", "column 10: a size was expected", 2 },
    { "ferry-text/1\ntensor a 1KiB\ntensor a 1KiB\n", "column 8: this tensor is there already", 3 },
    { "ferry-text/1\ntensor reads 1KiB\n", "column 8: a keyword cannot be a name", 2 },
    { "ferry-text/1\nop f sideways 1us\n", "column 6: forward, backward, update or other", 2 },
    { "ferry-text/1\nop f forward\n", "a duration was expected", 2 },
    { "ferry-text/1\nfree a\n", "no op stands before this", 2 },
    { "ferry-text/1\nop f forward 1us\nname late\n", "name and batch stand before", 3 },
    { "ferry-text/1\nnonsense\n", "name, batch, tensor, op or free was expected: nonsense", 2 },
    { "ferry-text/1\nbatch 4 5\n", "nothing more was expected", 2 },
    { "ferry-text/1\ntensor a 1KiB\nop f forward 1us writes a\nfree a\nop g forward 1us reads a\n",
      "this tensor was freed before", 5 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    error err;
    import_bad (rows[i].text, &err);
    ck_assert_msg (strstr (err.text, rows[i].message) != NULL, "%s: %s", rows[i].text, err.text);
    ck_assert_int_eq (err.line, rows[i].line);
    ck_assert_str_eq (err.path, "a.json");
    ck_assert_int_eq (error_exit_status (err.code), 3);
  }
}
END_TEST

/* ---- interval CSV ---- */

START_TEST (intervals_are_half_open_and_columns_come_in_any_order) {
  import_report r;
  /* b begins where a ends: never together */
  trace *t = import_good ("size,id,begin,end\r\n100,a,0,5\r\n200,b,5,9\r\n\r\n50,c,2,6", &r);
  ck_assert_int_eq (t->n_tensors, 3);
  ck_assert_int_eq (r.peak_bytes, 250);
  ck_assert (!trace_is_plannable (t));
  ck_assert_ptr_nonnull (r.advice);
}
END_TEST

START_TEST (intervals_name_line_and_column_of_a_mistake) {
  error err;
  import_bad ("id,lower,upper,size\na,0,5,100\nb,6,six,1\n", &err);
  ck_assert_int_eq (err.line, 3);
  ck_assert_str_eq (err.text, "column 5: a whole number was expected: b,6,six,1");
  import_bad ("id,lower,upper,size\na,5,5,100\n", &err);
  ck_assert_str_eq (err.text, "column 1: lower must be less than upper: a,5,5,100");
  import_bad ("id,lower,upper,size\na,5\n", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "a field is missing"));
  import_bad ("id,lower,upper,size\n", &err);
  ck_assert_int_eq (err.code, ERR_infeasible);
}
END_TEST

/* ---- kernels of simulators ---- */

START_TEST (kernels_read_before_they_are_written_are_inputs) {
  import_report r;
  trace *t = import_good (
      "{\"name\": \"two\", \"kernels\": ["
      "{\"id\": 0, \"name\": \"A_Forward\", \"out\": [2], \"in\": [0, 1], \"us\": 1.0005},"
      "{\"id\": 1, \"name\": \"A_Backward\", \"in\": [2], \"out\": [2, 0], \"us\": 2}],"
      "\"tensors\": [{\"id\": 0, \"global\": 1, \"bytes\": 8}, {\"id\": 1, \"global\": 0, "
      "\"bytes\": 16}, {\"id\": 2, \"global\": 0, \"bytes\": 32}]}",
      &r);
  ck_assert_int_eq (t->ops[0].ns, 1001);
  ck_assert_int_eq (t->tensors[1].kind, TENSOR_INPUT);
  ck_assert_int_eq (t->tensors[1].born_before, 0);
  ck_assert_int_eq (t->tensors[2].kind, TENSOR_ACTIVATION);
  ck_assert (t->tensors[0].persistent);
  ck_assert (list_holds (&t->ops[0].writes, 2) && list_holds (&t->ops[0].reads, 0));
  ck_assert (list_holds (&t->ops[1].writes, 2) && list_holds (&t->ops[1].reads, 2));
}
END_TEST

START_TEST (kernels_without_a_clock_or_with_strange_ids_are_refused) {
  error err;
  import_bad ("{\"kernels\": [{\"id\": 0, \"in\": [], \"out\": [], \"cycles\": 5}]}", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "has no time `us`; times in cycles must be converted"));
  import_bad ("{\"kernels\": [{\"id\": 0, \"in\": [7], \"out\": [], \"us\": 5}]}", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "uses tensor 7, which is not listed"));
  import_bad ("{\"kernels\": [], \"tensors\": []}", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "no kernels"));
  import_bad ("{\"kernels\": [{\"us\": 1}], \"tensors\": [{\"id\": 999999999, \"bytes\": 1}]}",
              &err);
  ck_assert_ptr_nonnull (strstr (err.text, "a tensor id from 0"));
}
END_TEST

/* ---- Kineto ---- */

#define EVENTS(...) "{\"schemaVersion\": 1, \"traceEvents\": [" __VA_ARGS__ "]}"
#define OP(name, tid, ts, dur, args)                                                            \
  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
  ",\"dur\":" dur ",\"args\":{" args "}},"
#define NOTE(name, tid, ts, dur, args)                                                     \
  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid \
  ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}},"
#define LAUNCH(corr, tid, ts)                                                                   \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":" tid \
  ",\"ts\":" ts ",\"dur\":1,\"args\":{\"correlation\":" corr ",\"External id\":999}},"
#define KERNEL(corr, device, stream, ts, dur)                                          \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":" device ",\"tid\":" stream \
  ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"External id\":999,\"device\":" device    \
  ",\"stream\":" stream ",\"correlation\":" corr "}},"
#define MEMORY(tid, ts, addr, bytes, total)                                                       \
  "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":" tid      \
  ",\"ts\":" ts ",\"args\":{\"Device Type\":1,\"Device Id\":0,\"Addr\":" addr ",\"Bytes\":" bytes \
  ",\"Total Allocated\":" total ",\"Total Reserved\":9999}},"
#define LAST "{\"ph\":\"M\",\"name\":\"process_name\"}"
#define STEP(k, ts, dur) NOTE ("ProfilerStep#" k, "1", ts, dur, "")

/* A layer forward and backward, an optimizer; GPU work runs behind the CPU, the last kernel behind
   the end of the step.  The pid of the GPU row is the device. */
#define TINY                                                                             \
  STEP ("5", "1000", "100")                                                              \
  OP ("aten::linear", "1", "1010", "20", "\"Sequence number\":7")                        \
  LAUNCH ("1", "\"1\"", "1020")                                                          \
  KERNEL ("1", "0", "7", "1030", "10")                                                   \
  OP ("aten::relu", "1", "1032", "6", "")                                                \
  LAUNCH ("2", "1", "1034")                                                              \
  KERNEL ("2", "0", "7", "1042", "5")                                                    \
  OP ("LinearBackward0", "2", "1050", "10", "\"Sequence number\":7,\"Fwd thread id\":1") \
  LAUNCH ("3", "2", "1055")                                                              \
  KERNEL ("3", "0", "7", "1060", "20")                                                   \
  NOTE ("Optimizer.step#SGD.step", "1", "1070", "20", "")                                \
  OP ("aten::add_", "1", "1075", "10", "")                                               \
  LAUNCH ("4", "1", "1080")                                                              \
  KERNEL ("4", "0", "7", "1150", "8")

#define TINY_MEMORY                                                               \
  MEMORY ("1", "1012", "4096", "1024", "6024") /* of linear, freed in backward */ \
  MEMORY ("1", "1015", "8192", "512", "6536")  /* inside linear */                \
  MEMORY ("1", "1025", "8192", "-512", "6024")                                    \
  MEMORY ("2", "1052", "8192", "2048", "8072")  /* of backward, never freed */    \
  MEMORY ("2", "1058", "4096", "-1024", "7048") /* its reader has been launched, not yet run */

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
  ck_assert_str_eq (t->source.confidence, "approximate: reads and kinds inferred");
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
  LAUNCH ("1", "1", "11") KERNEL ("1", "0", "7", "20", "7") STEP ("2", "100", "100")            \
      OP ("a", "1", "110", "5", "") LAUNCH ("2", "1", "111") KERNEL ("2", "0", "7", "120", "9") \
          STEP ("3", "200", "100") OP ("b", "1", "210", "5", "") LAUNCH ("3", "1", "211")       \
              KERNEL ("3", "0", "7", "305", "3") OP ("a", "1", "220", "5", "")                  \
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

START_TEST (what_cannot_be_imported_says_what_to_record) {
  error err;
  import_bad (EVENTS (STEP ("1", "0", "9") OP ("a", "1", "0", "5", "") LAST), &err);
  ck_assert_ptr_nonnull (strstr (err.text, "no GPU events (CPU-only profile?)"));
  ck_assert_int_eq (error_exit_status (err.code), 1);
  import_bad (EVENTS (OP ("a", "1", "0", "5", "") LAUNCH ("1", "1", "1")
                          KERNEL ("1", "0", "7", "10", "5") LAST),
              &err);
  ck_assert_ptr_nonnull (strstr (err.text, "no complete iteration: call profiler.step()"));
  import_bad ("SQLite format 3", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "an nsys database has durations but no tensors"));
  import_bad ("{\"format\": \"ferry-trace/1\"}", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "nothing to import"));
  import_bad ("what is this", &err);
  ck_assert_ptr_nonnull (strstr (err.text, "none of the formats that can be imported"));
  import_bad ("", &err);
  ck_assert_int_eq (error_exit_status (err.code), 3);
}
END_TEST

/* ---- execution traces ---- */

#define T(storage, elements) "[1," storage ",0," elements ",4,\"cuda:0\"]"
#define FLAT(name, id, rf, parent, fw, schema, in, out)                                    \
  "{\"name\":\"" name "\",\"id\":" id ",\"rf_id\":" rf ",\"parent\":" parent ",\"tid\":1," \
  "\"fw_tid\":" fw ",\"op_schema\":\"" schema "\",\"inputs\":[" in "],\"outputs\":[" out "]},"
#define ET(...)                                                                      \
  "{\"schema\": \"1.0.1\", \"nodes\": [" __VA_ARGS__                                 \
  "{\"name\":\"[pytorch|process]\",\"id\":1,\"rf_id\":0,\"parent\":1,\"inputs\":[]," \
  "\"outputs\":[]}]}"

/* linear: an allocation inside a composite; the storage comes back after its life; a padding of six
   integers; an empty tensor that shares the null pointer's id with another. */
#define TINY_ET                                                                                 \
  FLAT ("aten::empty", "4", "3", "3", "0", "aten::empty(SymInt[] size) -> Tensor",              \
        "[1,2,3,4,5,6]", T ("50", "256"))                                                       \
  FLAT ("aten::linear", "3", "2", "2", "0", "aten::linear(Tensor x, Tensor w) -> Tensor",       \
        T ("10", "64") "," T ("20", "100"), T ("50", "256"))                                    \
  FLAT ("aten::relu", "5", "4", "2", "0", "aten::relu(Tensor self) -> Tensor", T ("50", "256"), \
        T ("60", "128") "," T ("99", "0"))                                                      \
  FLAT ("LinearBackward0", "7", "6", "2", "1", "", T ("50", "256") "," T ("60", "128"),         \
        T ("70", "100") "," T ("99", "0"))                                                      \
  FLAT ("aten::add_", "9", "8", "8", "0",                                                       \
        "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",                              \
        T ("20", "100") "," T ("70", "100"), T ("20", "100"))                                   \
  FLAT ("aten::mul", "10", "9", "8", "0", "aten::mul(Tensor a, Tensor b) -> Tensor",            \
        T ("20", "100"), T ("50", "32"))                                                        \
  FLAT ("Optimizer.step#SGD.step", "8", "7", "2", "0", "", "", "")

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
#define RUN                                                                                   \
  STEP ("5", "1000", "200")                                                                   \
  OP ("aten::linear", "1", "1010", "20", ID ("2") ",\"Sequence number\":7")                   \
  OP ("aten::empty", "1", "1010", "2", ID ("3"))                                              \
  LAUNCH ("1", "1", "1020")                                                                   \
  KERNEL ("1", "0", "7", "1030", "10")                                                        \
  OP ("aten::relu", "1", "1032", "6", ID ("4")) LAUNCH ("2", "1", "1034")                     \
      KERNEL ("2", "0", "7", "1042", "5")                                                     \
          OP ("LinearBackward0", "1", "1050", "10", ID ("6") ",\"Fwd thread id\":1")          \
              LAUNCH ("3", "1", "1055") KERNEL ("3", "0", "7", "1060", "20")                  \
                  NOTE ("Optimizer.step#SGD.step", "1", "1070", "20", ID ("7"))               \
                      OP ("aten::add_", "1", "1075", "5", ID ("8")) LAUNCH ("4", "1", "1076") \
                          KERNEL ("4", "0", "7", "1090", "8")                                 \
                              OP ("aten::mul", "1", "1082", "5", ID ("9"))                    \
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

/* ---- hostile ---- */

START_TEST (a_text_cut_anywhere_is_refused_or_read_but_never_crashes) {
  static const char *const texts[] = { EVENTS (TINY TINY_MEMORY LAST), ET (TINY_ET), plain };
  const char *text = texts[_i];
  size_t size = strlen (text);
  for (size_t n = 0; n < size; n += 1 + n / 200) {
    char *cut = malloc (n + 1);
    import_report r;
    error err = { 0 };
    trace *t;
    memcpy (cut, text, n);
    cut[n] = 0;
    arena *a = arena_new (0);
    import_source source = { "cut", cut, (int64_t)n };
    bool ok = import_memory (&source, 1, NULL, a, &t, &r, &err);
    ck_assert (ok || err.code != ERR_none);
    ck_assert (!ok || _i == 2); /* only a cut of lines may still be whole */
    if (!ok && _i < 2 && n > 60)
      ck_assert_ptr_nonnull (strstr (err.text, "byte "));
    arena_free (a);
    free (cut);
  }
}
END_TEST

static bytes zip (const void *data, int64_t size) {
  z_stream z = { 0 };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert_int_eq (deflateInit2 (&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
  ck_assert (bytes_room (&out, size / 2 + 1000, &err));
  z.next_in = (unsigned char *)(uintptr_t)data;
  z.avail_in = (unsigned)size;
  z.next_out = (unsigned char *)out.data;
  z.avail_out = (unsigned)out.capacity;
  ck_assert_int_eq (deflate (&z, Z_FINISH), Z_STREAM_END);
  out.size = (int64_t)z.total_out;
  deflateEnd (&z);
  return out;
}

START_TEST (compressed_files_are_undone_bounded_and_told_when_cut) {
  import_report r;
  trace *t;
  error err = { 0 };
  bytes whole = zip (plain, (int64_t)strlen (plain));
  import_source source = { "dir/x.txt.gz", whole.data, whole.size };
  ck_assert (import_memory (&source, 1, NULL, import_arena (), &t, &r, &err));
  ck_assert_str_eq (r.read[0].name, "x.txt.gz");
  source.size -= 20;
  ck_assert (!import_memory (&source, 1, NULL, import_arena (), &t, &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "the gzip data ends early, after byte"));
  char *zeros = calloc (1, 8 << 20);
  bytes bomb = zip (zeros, 8 << 20);
  import_options o = IMPORT_DEFAULTS;
  o.limit_bytes = 1 << 20;
  source = (import_source){ "bomb.gz", bomb.data, bomb.size };
  err = (error){ 0 };
  ck_assert (!import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_says (&err, "bomb.gz: the file is larger than 1.00 MiB when decompressed");
  free (zeros);
  bytes_free (&bomb);
  bytes_free (&whole);
}
END_TEST

START_TEST (the_report_reads_as_text_and_as_json) {
  import_report r;
  error err = { 0 };
  bytes text = { 0 }, json = { 0 };
  json_writer w;
  import_good (EVENTS (TINY TINY_MEMORY LAST), &r);
  ck_assert (import_report_text (&r, &text, &err));
  static const char *const lines[] = { "\niteration   ProfilerStep#5 of 1 step, 0.100 ms\n",
                                       "\nops         4  forward 2  backward 1  update 1\n",
                                       "\nconfidence  approximate: reads and kinds inferred\n",
                                       "\ndropped     none\n", "\nwarnings    none\n" };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    ck_assert_msg (strstr (text.data, lines[i]) != NULL, "%s in\n%s", lines[i], text.data);
  json_begin (&w, 1);
  import_report_json (&r, &w);
  ck_assert (json_finish (&w, &json, &err));
  json_document *d = json_open (json.data, json.size, &err);
  ck_assert_ptr_nonnull (d);
  json_close (d);
  bytes_free (&text);
  bytes_free (&json);
}
END_TEST

int main (void) {
  Suite *suite = suite_create ("import");
  TCase *all = tcase_create ("import");
  tcase_set_timeout (all, 20);
  tcase_add_test (all, plain_text_says_all_that_a_trace_can);
  tcase_add_test (all, plain_text_names_line_and_column_of_a_mistake);
  tcase_add_test (all, intervals_are_half_open_and_columns_come_in_any_order);
  tcase_add_test (all, intervals_name_line_and_column_of_a_mistake);
  tcase_add_test (all, kernels_read_before_they_are_written_are_inputs);
  tcase_add_test (all, kernels_without_a_clock_or_with_strange_ids_are_refused);
  tcase_add_test (all, kineto_ops_are_owners_by_containment_not_by_external_id);
  tcase_add_test (all, a_block_dies_behind_the_last_op_launched_not_the_last_one_run);
  tcase_add_test (all, unsorted_memory_events_and_equal_times_are_put_in_order);
  tcase_add_test (all, breaks_of_the_running_total_are_counted);
  tcase_add_test (all, the_dialect_of_2021_has_text_and_numbers_as_thread_ids);
  tcase_add_test (all, nanoseconds_of_2024_are_kept);
  tcase_add_test (all, owners_that_interleave_become_one_op_a_run);
  tcase_add_test (all, kernels_that_overlap_on_a_stream_count_once);
  tcase_add_test (all, collectives_on_another_stream_add_no_time);
  tcase_add_test (all, one_device_is_planned_and_named);
  tcase_add_test (all, steps_are_chosen_by_launch_and_the_others_are_samples);
  tcase_add_test (all, without_steps_the_optimizer_marks_them);
  tcase_add_test (all, what_cannot_be_imported_says_what_to_record);
  tcase_add_test (all, an_execution_trace_splits_reused_ids_and_tells_kinds);
  tcase_add_test (all, schemas_flat_and_nested_read_alike);
  tcase_add_test (all, an_execution_trace_and_kineto_make_an_exact_trace);
  tcase_add_test (all, record_function_ids_join_where_they_are);
  tcase_add_test (all, one_iteration_inside_the_other_file_is_found_and_the_last_is_taken);
  tcase_add_test (all, tensors_of_another_stream_are_used_by_what_runs_beside);
  tcase_add_test (all, files_of_two_runs_are_refused);
  tcase_add_loop_test (all, a_text_cut_anywhere_is_refused_or_read_but_never_crashes, 0, 3);
  tcase_add_test (all, compressed_files_are_undone_bounded_and_told_when_cut);
  tcase_add_test (all, the_report_reads_as_text_and_as_json);
  suite_add_tcase (suite, all);
  SRunner *runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  int failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
