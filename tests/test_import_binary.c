/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chakra .et and pickle files, written here byte by byte. */
#include <stdio.h>
#include <string.h>

#include "tests/import_case.h"
#include "trace/import/import.h"

/* ---- a writer of protobuf ---- */

typedef struct out {
  unsigned char at[8192];
  int64_t n;
} out;

static void put (out *o, const void *data, int64_t size) {
  ck_assert_int_le (o->n + size, (int64_t)sizeof o->at);
  memcpy (o->at + o->n, data, (size_t)size);
  o->n += size;
}

static void put_byte (out *o, int byte) {
  unsigned char c = (unsigned char)byte;
  put (o, &c, 1);
}

static void put_varint (out *o, uint64_t v) {
  for (; v >= 128; v >>= 7)
    put_byte (o, (int)(v & 127) | 128);
  put_byte (o, (int)v);
}

static void put_number (out *o, int field, uint64_t v) {
  put_varint (o, (uint64_t)field << 3);
  put_varint (o, v);
}

static void put_part (out *o, int field, const void *data, int64_t size) {
  put_varint (o, (uint64_t)field << 3 | 2);
  put_varint (o, (uint64_t)size);
  put (o, data, size);
}

static void put_text (out *o, int field, const char *text) {
  put_part (o, field, text, (int64_t)strlen (text));
}

static void put_side (out *o, int field, const char *values) {
  out side = { .n = 0 };
  put_text (&side, 1, values);
  put_part (o, field, side.at, side.n);
}

static void put_attribute (out *o, const char *name, uint64_t number, const char *text) {
  out a = { .n = 0 };
  put_text (&a, 1, name);
  if (text)
    put_text (&a, 29, text);
  else
    put_number (&a, 9, number);
  put_part (o, 10, a.at, a.n);
}

static void put_message (out *o, const out *message) {
  put_varint (o, (uint64_t)message->n);
  put (o, message->at, message->n);
}

/* us 0 is left out, as writers do. */
static void put_node (out *o, int id, const char *name, int owner, int us, const char *in,
                      const char *outs, int record, int stream, const char *schema) {
  out n = { .n = 0 };
  bool cpu = record >= 0;
  put_number (&n, 1, (uint64_t)id);
  put_text (&n, 2, name);
  put_number (&n, 3, 4);
  put_number (&n, 4, 12345); /* a control dependency on nothing */
  if (owner >= 0)
    put_number (&n, 5, (uint64_t)owner);
  if (us)
    put_number (&n, 7, (uint64_t)us);
  put_side (&n, 8, in);
  put_side (&n, 9, outs);
  if (cpu) {
    put_attribute (&n, "is_cpu_op", 1, NULL);
    put_attribute (&n, "rf_id", (uint64_t)record, NULL);
    put_attribute (&n, "op_schema", 0, schema);
  }
  put_attribute (&n, "tid", (uint64_t)stream, NULL);
  put_message (o, &n);
}

/* A GPU node of a linker that writes the thread as `tid`, and the stream, if any, beside it. */
static void put_gpu (out *o, int id, const char *name, int owner, int us, int type, int thread,
                     const char *stream) {
  out n = { .n = 0 };
  put_number (&n, 1, (uint64_t)id);
  put_text (&n, 2, name);
  put_number (&n, 3, (uint64_t)type);
  put_number (&n, 5, (uint64_t)owner);
  put_number (&n, 7, (uint64_t)us);
  put_attribute (&n, "tid", (uint64_t)thread, NULL);
  if (stream)
    put_attribute (&n, "stream", 0, stream);
  put_message (o, &n);
}

#define A "[1, 10, 0, 64, 4, 'cuda:0']"
#define B "[2, 50, 0, 256, 4, 'cuda:0']"
#define EMPTY "[3, 99, 0, 0, 4, 'cuda:0']"

static void put_file (out *o) {
  out head = { .n = 0 };
  *o = (out){ .n = 0 };
  put_text (&head, 2, "1.0");
  put_message (o, &head);
  put_node (o, 2, "aten::mm(0)", -1, 0, "[" A ", [1, 2, 3, 4, 5, 6], '<Object>', True, None, 1.5]",
            "[" B ", " EMPTY "]", 5, 1, "aten::mm(Tensor a) -> Tensor");
  put_node (o, 3, "gemm", 2, 12, "[" A "]", "[]", -1, 7, NULL);
  put_node (o, 4, "memset", 2, 0, "[]", "[]", -1, 7, NULL);
  put_node (o, 5, "aten::t", -1, 0, "[(" B ",)]", "[]", 6, 1, "");
  put_node (o, 6, "aten::relu_(0)", -1, 0, "[" B "]", "[" B "]", 7, 1,
            "aten::relu_(Tensor(a!) self) -> Tensor(a!)");
  put_node (o, 7, "k", 6, 3, "[]", "[]", -1, 7, NULL);
  put_node (o, 8, "nccl", 6, 500, "[" B "]", "[]", -1, 14, NULL);
}

static trace *import_bytes (const void *data, int64_t size, import_report *r, error *err) {
  trace *t;
  import_source source = { "x", data, size };
  memset (err, 0, sizeof *err);
  bool ok = import_memory (&source, 1, NULL, import_arena (), &t, r, err);
  ck_assert (ok == (t != NULL));
  return t;
}

START_TEST (chakra_streams_are_told_by_their_attribute_or_not_at_all) {
  static const char *const streams[][3] = { { "7", "7", "20" }, { NULL, NULL, NULL } };
  for (int i = 0; i < 2; i++) {
    out o = { .n = 0 }, head = { .n = 0 };
    import_report r;
    error err;
    put_text (&head, 2, "1.0");
    put_message (&o, &head);
    put_node (&o, 2, "aten::mm", -1, 0, "[" A "]", "[" B "]", 5, 1, "aten::mm(Tensor a) -> Tensor");
    put_node (&o, 3, "MmBackward0", -1, 0, "[" B "]", "[]", 6, 2, "");
    put_node (&o, 4, "c10d::allreduce_", -1, 0, "[" A "]", "[]", 7, 2, "");
    put_gpu (&o, 5, "gemm", 2, 10, 4, 1, streams[i][0]);
    put_gpu (&o, 6, "gemm", 3, 20, 4, 2, streams[i][1]);
    put_gpu (&o, 7, "ncclKernel", 4, 1, 7, 2, streams[i][2]);
    trace *t = import_bytes (o.at, o.n, &r, &err);
    ck_assert_msg (t != NULL, "%s", err.text);
    ck_assert_int_eq (t->n_ops, 2); /* backward too; the collective is apart */
    ck_assert_int_eq (r.busy_ns, 30000);
    ck_assert_int_eq (r.ops_by_phase[OP_BACKWARD], 1);
    ck_assert_str_eq (r.streams, i ? "not told (compute), collectives" : "7 (compute), 20");
    ck_assert_str_eq (t->source.confidence, "exact: gaps are unknown");
  }
}
END_TEST

START_TEST (chakra_nodes_become_ops_by_their_owner) {
  out o;
  import_report r;
  error err;
  put_file (&o);
  trace *t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (t->n_ops, 2);
  ck_assert_str_eq (t->ops[0].name, "aten::mm"); /* op(0) is a piece of op */
  ck_assert_int_eq (t->ops[0].ns, 12000);        /* a time of 0 is not on the wire */
  ck_assert_int_eq (t->ops[1].ns, 3000);         /* the collective is on another stream */
  ck_assert_int_eq (t->n_tensors, 2);
  int64_t b = tensor_named (t, "s50.1");
  ck_assert (list_holds (&t->ops[0].writes, b));
  ck_assert (list_holds (&t->ops[1].reads, b) && list_holds (&t->ops[1].writes, b));
  ck_assert_str_eq (t->source.confidence,
                    "approximate: gaps are unknown; gpu time: 2.9 % of GPU time is in ops; 500 us "
                    "on other streams");
  ck_assert_str_eq (r.warnings[0].what, "control dependencies on nodes that are not in the file");
  ck_assert_int_eq (r.warnings[0].count, 7);
}
END_TEST

START_TEST (chakra_files_cut_anywhere_name_the_byte) {
  out o;
  import_report r;
  error err;
  put_file (&o);
  int refused = 0;
  for (int64_t n = 1; n < o.n; n++) {
    trace *t = import_bytes (o.at, n, &r, &err);
    if (t)
      continue; /* cut between two messages */
    refused++;
    ck_assert_msg (strstr (err.text, "byte ") || err.code == ERR_infeasible, "%s", err.text);
  }
  ck_assert_int_gt (refused, 300);
  o.n = 0;
  out head = { .n = 0 };
  put_text (&head, 2, "1.0");
  put_message (&o, &head);
  int64_t at = o.n;
  put_varint (&o, (uint64_t)1 << 40);
  ck_assert_ptr_null (import_bytes (o.at, o.n, &r, &err));
  char expected[200];
  snprintf (expected, sizeof expected,
            "byte %lld: a message of 1099511627776 bytes where 0 are left: the file is cut short",
            (long long)at);
  ck_assert_str_eq (err.text, expected);
}
END_TEST

START_TEST (chakra_without_tensor_values_says_how_to_link_it) {
  out o = { .n = 0 }, head = { .n = 0 };
  import_report r;
  error err;
  put_text (&head, 2, "1.0");
  put_message (&o, &head);
  put_node (&o, 2, "a", -1, 0, "[]", "[]", 5, 1, "");
  put_node (&o, 3, "k", 2, 4, "[]", "[]", -1, 7, NULL);
  ck_assert_ptr_null (import_bytes (o.at, o.n, &r, &err));
  ck_assert_str_eq (err.text,
                    "this .et has no tensor values; link it again with tensor values kept");
  ck_assert_int_eq (error_exit_status (err.code), 1);
}
END_TEST

START_TEST (python_text_is_a_small_grammar_and_nothing_more) {
  static const char *const bad[] = { "[1, 2", "['open", "[)", "]", "[[1)]", "[a]", "5" };
  import_report r;
  error err;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    out o = { .n = 0 }, head = { .n = 0 };
    put_text (&head, 2, "1.0");
    put_message (&o, &head);
    put_node (&o, 2, "a", -1, 0, bad[i], "[]", 5, 1, "");
    ck_assert_msg (!import_bytes (o.at, o.n, &r, &err), "%s", bad[i]);
    ck_assert_msg (err.code == ERR_input && strstr (err.text, "byte "), "%s: %s", bad[i], err.text);
  }
}
END_TEST

/* ---- pickle ---- */

static void pickle_text (out *o, const char *text) {
  put_byte (o, 0x8c);
  put_byte (o, (int)strlen (text));
  put (o, text, (int64_t)strlen (text));
}

static void pickle_int (out *o, int64_t v) {
  put_byte (o, 0x8a);
  put_byte (o, 8);
  for (int i = 0; i < 8; i++)
    put_byte (o, (int)((uint64_t)v >> (8 * i)) & 255);
}

static void pickle_pair (out *o, const char *key, int64_t v) {
  pickle_text (o, key);
  pickle_int (o, v);
}

static void pickle_event (out *o, const char *action, int64_t address, int64_t size,
                          const char *file, int line) {
  put (o, "}(", 2);
  pickle_text (o, "action");
  pickle_text (o, action);
  pickle_pair (o, "addr", address);
  pickle_pair (o, "size", size);
  pickle_text (o, "frames");
  put (o, "](}(", 4);
  pickle_text (o, "filename");
  pickle_text (o, file);
  pickle_pair (o, "line", line);
  put (o, "ue", 2);
  put_byte (o, 'u');
}

/* One active block of 1000 bytes that the trace did not see allocated. */
static void pickle_snapshot (out *o) {
  *o = (out){ .n = 0 };
  put (o, "\x80\x04}(", 4);
  pickle_text (o, "segments");
  put (o, "](}(", 4);
  pickle_pair (o, "device", 0);
  pickle_pair (o, "total_size", 2097152);
  pickle_text (o, "blocks");
  put (o, "](}(", 4);
  pickle_pair (o, "size", 1024);
  pickle_pair (o, "requested_size", 1000);
  pickle_text (o, "state");
  pickle_text (o, "active_allocated");
  put (o, "ueue", 4);
  pickle_text (o, "device_traces");
  put (o, "](](", 4);
  pickle_event (o, "free_completed", 7, 200, "x.py", 1);
  pickle_event (o, "alloc", 4096, 1000, "/home/of/somebody/model.py", 54);
  pickle_event (o, "alloc", 8192, 500, "/y/site-packages/torch/nn/linear.py", 9);
  pickle_event (o, "free_requested", 4096, 1000, "x.py", 1);
  pickle_event (o, "free_completed", 4096, 1000, "x.py", 1);
  pickle_event (o, "alloc", 4096, 600, "/home/of/somebody/model.py", 60);
  pickle_event (o, "free_completed", 4096, 600, "x.py", 1);
  pickle_event (o, "free_completed", 8192, 500, "x.py", 1);
  put (o, "eeu.", 4);
}

START_TEST (a_snapshot_knows_what_was_there_before_and_who_asked) {
  out o;
  import_report r;
  error err;
  pickle_snapshot (&o);
  trace *t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  /* net: -200; so 1200 were live at the start, 200 of them freed; most: 1000 + 1000 + 500 */
  ck_assert_int_eq (r.peak_bytes, 2500);
  ck_assert_int_eq (r.reference_peak_bytes, 2500);
  ck_assert_str_eq (r.peak_at, "op 2 linear.py:9");
  ck_assert_int_ge (tensor_named (t, "model.py:54"), 0);
  ck_assert_int_ge (tensor_named (t, "model.py:60"), 0);
  ck_assert_int_eq (t->tensors[tensor_named (t, "resident")].bytes, 1000);
  ck_assert_int_eq (t->tensors[tensor_named (t, "before the trace")].bytes, 200);
  ck_assert (!trace_is_plannable (t));
  ck_assert_ptr_nonnull (strstr (r.checks[0], "active 1000 bytes as requested, 1024 padded, "
                                              "2097152 reserved"));
}
END_TEST

/* Two cards: the first has more events, the second is fuller. */
static void pickle_cards (out *o) {
  *o = (out){ .n = 0 };
  put (o, "\x80\x04}(", 4);
  pickle_text (o, "segments");
  put (o, "]", 1);
  pickle_text (o, "device_traces");
  put (o, "](](", 4);
  pickle_event (o, "alloc", 4096, 1000, "C:\\Users\\someone\\model.py", 1);
  pickle_event (o, "alloc", 8192, 1000, "m.py", 1);
  pickle_event (o, "free_completed", 8192, 1000, "m.py", 1);
  put (o, "e](", 3);
  pickle_event (o, "alloc", 4096, 900000000, "m.py", 2);
  put (o, "eeu.", 4);
}

START_TEST (the_fullest_card_of_a_snapshot_is_taken_and_all_are_named) {
  out o;
  import_report r;
  error err = { 0 };
  trace *t;
  pickle_cards (&o);
  t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (r.peak_bytes, 900000000);
  ck_assert_str_eq (r.warnings[0].what, "other GPUs left out; --gpu K takes one");
  ck_assert_str_eq (r.warnings[0].example, "GPU 0 (0.00 GB), GPU 1 (0.90 GB)");
  import_source source = { "x", o.at, o.n };
  import_options options = IMPORT_DEFAULTS;
  options.device = 0;
  ck_assert (import_memory (&source, 1, &options, import_arena (), &t, &r, &err));
  ck_assert_int_eq (r.peak_bytes, 2000);
  ck_assert_int_ge (tensor_named (t, "model.py:1"), 0);
  options.device = 5;
  ck_assert (!import_memory (&source, 1, &options, import_arena (), &t, &r, &err));
  ck_assert_str_eq (err.text, "the snapshot has no events of GPU 5; it has GPU 0 (0.00 GB), GPU 1 "
                              "(0.90 GB)");
}
END_TEST

START_TEST (pickles_that_want_to_run_code_are_refused) {
  static const struct {
    const char *bytes;
    int size;
    const char *opcode;
  } rows[] = { { "\x80\x02"
                 "cos\nsystem\n.",
                 15, "GLOBAL at byte 2" },
               { "\x80\x04\x8c\x02os\x8c\x06system\x93.", 16, "STACK_GLOBAL at byte 14" },
               { "\x80\x04})R.", 6, "REDUCE at byte 4" },
               { "\x80\x04}}b.", 6, "BUILD at byte 4" },
               { "\x80\x04(ios\nsystem\n.", 14, "INST at byte 3" },
               { "\x80\x04(o.", 5, "OBJ at byte 3" },
               { "\x80\x04})\x81.", 6, "NEWOBJ at byte 4" },
               { "\x80\x04Pid\n.", 7, "PERSID at byte 2" },
               { "\x80\x04NQ.", 5, "BINPERSID at byte 3" },
               { "\x80\x04\x82\x01.", 5, "EXT1 at byte 2" } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    import_report r;
    error err;
    char expected[200];
    ck_assert_ptr_null (import_bytes (rows[i].bytes, rows[i].size, &r, &err));
    snprintf (expected, sizeof expected,
              "this pickle wants to run code (opcode %s); a memory snapshot never does",
              rows[i].opcode);
    ck_assert_str_eq (err.text, expected);
  }
}
END_TEST

START_TEST (pickles_that_lie_about_sizes_are_refused) {
  static const struct {
    const char *bytes;
    int size;
    const char *message;
  } rows[] = { { "\x80\x04X\xff\xff\xff\x7f.", 8, "the pickle ends in the middle" },
               { "\x80\x04}r\xff\xff\xff\x7f.", 9, "a memo place beyond the size of the file" },
               { "\x80\x04h\x05.", 5, "a memo place that was never filled" },
               { "\x80\x04u.", 4, "no mark to go back to" },
               { "\x80\x04(u.", 5, "nothing to put the values into" },
               { "\x80\x04N(Ne.", 7, "put into something that does not take them" },
               { "\x80\x04}(Nu.", 7, "put into something that does not take them" },
               { "\x80\x04NN.", 5, "stops with other than one value" },
               { "\x80\x04\x86.", 4, "too few values for a tuple" },
               { "\x80\x04\x8a\x09xxxxxxxxx.", 14, "an integer of more than 64 bits" },
               { "\x80\x04\xff.", 4, "opcode 0xff is not one of a memory snapshot" },
               { "\x80\x04}.", 4, "a pickle, but no memory snapshot" } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    import_report r;
    error err;
    ck_assert_ptr_null (import_bytes (rows[i].bytes, rows[i].size, &r, &err));
    ck_assert_msg (strstr (err.text, rows[i].message) != NULL, "%d: %s", (int)i, err.text);
    ck_assert_int_eq (err.code, ERR_input);
  }
}
END_TEST

START_TEST (pickles_cut_anywhere_are_refused) {
  out o;
  import_report r;
  error err;
  pickle_snapshot (&o);
  for (int64_t n = 2; n < o.n; n++) {
    ck_assert_ptr_null (import_bytes (o.at, n, &r, &err));
    ck_assert_ptr_nonnull (strstr (err.text, "byte "));
  }
}
END_TEST

/* The allocs of the snapshot, padded, as the profiler saw them in one step. */
static const char kineto[] =
    "{\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,"
    "\"ts\":0,\"dur\":100},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":50},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":1,\"args\":{"
    "\"correlation\":1}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":30,\"dur\":5,"
    "\"args\":"
    "{\"correlation\":1}},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":60,\"dur\":10},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"pid\":1,\"tid\":1,\"ts\":65,\"dur\":1,\"args\":{"
    "\"correlation\":2}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":70,\"dur\":5,"
    "\"args\":"
    "{\"correlation\":2}},"
    "{\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":10,\"args\":{\"Device Type\":1,\"Device "
    "Id\":0,"
    "\"Addr\":4096,\"Bytes\":1024}},"
    "{\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":12,\"args\":{\"Device Type\":1,\"Device "
    "Id\":0,"
    "\"Addr\":8192,\"Bytes\":%d}},"
    "{\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":80,\"args\":{\"Device Type\":1,\"Device "
    "Id\":0,"
    "\"Addr\":4096,\"Bytes\":-1024}}]}";

START_TEST (a_snapshot_gives_lines_and_exact_sizes_to_kineto) {
  for (int right = 0; right < 2; right++) {
    out o;
    char text[4096];
    import_report r;
    error err = { 0 };
    trace *t;
    pickle_snapshot (&o);
    snprintf (text, sizeof text, kineto, right ? 512 : 1536);
    import_source sources[] = { { "k", text, (int64_t)strlen (text) }, { "s", o.at, o.n } };
    ck_assert_msg (import_memory (sources, 2, NULL, import_arena (), &t, &r, &err), "%s", err.text);
    int64_t x = tensor_named (t, right ? "model.py:54/0" : "a/0");
    ck_assert_int_ge (x, 0);
    ck_assert_int_eq (t->tensors[x].bytes, right ? 1000 : 1024);
    ck_assert_int_eq (r.n_warnings, !right);
    ck_assert (trace_is_plannable (t));
    if (right)
      ck_assert_str_eq (r.joined, "2 allocs with those of the snapshot by size");
  }
}
END_TEST

int main (void) {
  return suite_run ("import_binary",
                    (const TTest *const[]){
                        chakra_nodes_become_ops_by_their_owner,
                        chakra_streams_are_told_by_their_attribute_or_not_at_all,
                        the_fullest_card_of_a_snapshot_is_taken_and_all_are_named,
                        chakra_files_cut_anywhere_name_the_byte,
                        chakra_without_tensor_values_says_how_to_link_it,
                        python_text_is_a_small_grammar_and_nothing_more,
                        a_snapshot_knows_what_was_there_before_and_who_asked,
                        pickles_that_want_to_run_code_are_refused,
                        pickles_that_lie_about_sizes_are_refused, pickles_cut_anywhere_are_refused,
                        a_snapshot_gives_lines_and_exact_sizes_to_kineto, NULL },
                    20);
}
