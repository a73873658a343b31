/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory snapshots: pickle. */
#include <stdio.h>
#include <string.h>

#include "tests/import_bytes.h"

static void pickle_text (written *o, const char *text) {
  put_byte (o, 0x8c);
  put_byte (o, (int)strlen (text));
  put (o, text, (int64_t)strlen (text));
}

static void pickle_int (written *o, int64_t v) {
  put_byte (o, 0x8a);
  put_byte (o, 8);
  for (int i = 0; i < 8; i++)
    put_byte (o, (int)((uint64_t)v >> (8 * i)) & 255);
}

static void pickle_pair (written *o, const char *key, int64_t v) {
  pickle_text (o, key);
  pickle_int (o, v);
}

static void pickle_event (written *o, const char *action, int64_t address, int64_t size,
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
static void pickle_snapshot (written *o) {
  *o = (written){ .n = 0 };
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

CLAIM (a_snapshot_knows_what_was_there_before_and_who_asked) {
  written o;
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

/* Two cards: the first has more events, the second is fuller. */
static void pickle_cards (written *o) {
  *o = (written){ .n = 0 };
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

/* Python 3.13 has frames of no line, whose number is -1 read as unsigned: nine bytes of a LONG1. */
CLAIM (a_line_number_beyond_64_bits_is_one_that_is_not_known) {
  static const char huge[] = "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00";
  written o;
  import_report r;
  error err;
  pickle_snapshot (&o);
  unsigned char *line = memmem (o.at, (size_t)o.n, "\x8a\x08\x36\0\0\0\0\0\0\0", 10); /* 54 */
  ck_assert_ptr_nonnull (line);
  memmove (line + 11, line + 10, (size_t)(o.at + o.n - (line + 10)));
  memcpy (line, huge, 11);
  trace *t = import_bytes (o.at, o.n + 1, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_ge (tensor_named (t, "model.py"), 0);
  ck_assert_int_eq (r.peak_bytes, 2500);
}

CLAIM (the_fullest_card_of_a_snapshot_is_taken_and_all_are_named) {
  written o;
  import_report r;
  error err = { 0 };
  trace *t;
  pickle_cards (&o);
  t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (r.peak_bytes, 900000000);
  ck_assert_str_eq (r.warnings[0].what, "other GPUs left out; --gpu K takes one");
  ck_assert_str_eq (r.warnings[0].example, "GPU 0 (1.95 KiB), GPU 1 (858 MiB)");
  import_source source = { "x", o.at, o.n };
  import_options options = IMPORT_DEFAULTS;
  options.device = 0;
  ck_assert (import_memory (&source, 1, &options, import_arena (), &t, &r, &err));
  ck_assert_int_eq (r.peak_bytes, 2000);
  ck_assert_int_ge (tensor_named (t, "model.py:1"), 0);
  options.device = 5;
  ck_assert (!import_memory (&source, 1, &options, import_arena (), &t, &r, &err));
  ck_assert_str_eq (err.text, "the snapshot has no events of GPU 5; it has GPU 0 (1.95 KiB), GPU 1 "
                              "(858 MiB)");
}

/* Memory ran out for 5000 bytes; a block of 600 of 1024 bytes was there, of which an old file has
   the history. */
CLAIM (a_refused_request_is_in_the_peak_and_old_files_say_what_was_asked_for) {
  written o = { .n = 0 };
  import_report r;
  error err;
  put (&o, "\x80\x04}(", 4);
  pickle_text (&o, "segments");
  put (&o, "](}(", 4);
  pickle_pair (&o, "device", 0);
  pickle_text (&o, "blocks");
  put (&o, "](}(", 4);
  pickle_pair (&o, "size", 1024);
  pickle_text (&o, "state");
  pickle_text (&o, "active_allocated");
  pickle_text (&o, "history");
  put (&o, "](}(", 4);
  pickle_pair (&o, "real_size", 600);
  put (&o, "u}(", 3);
  pickle_pair (&o, "real_size", 1);
  put (&o, "ueueue", 6);
  pickle_text (&o, "device_traces");
  put (&o, "](](", 4);
  pickle_event (&o, "alloc", 4096, 1000, "m.py", 1);
  pickle_event (&o, "free_completed", 4096, 1000, "m.py", 1);
  pickle_event (&o, "alloc", 8192, 200, "m.py", 2);
  pickle_event (&o, "oom", 1, 5000, "m.py", 3);
  pickle_event (&o, "free_completed", 8192, 200, "m.py", 2);
  put (&o, "eeu.", 4);
  trace *t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (r.peak_bytes, 5800);
  ck_assert_int_eq (r.reference_peak_bytes, 5800);
  ck_assert_str_eq (r.peak_at, "op 3 m.py:3 (refused)");
  ck_assert_int_eq (t->tensors[tensor_named (t, "resident")].bytes, 600);
  ck_assert_int_eq (r.n_warnings, 1);
  ck_assert_str_eq (r.warnings[0].example, "4.88 KiB by m.py:3");
  ck_assert_ptr_nonnull (strstr (t->source.doubt, "up to where memory ran out"));
}

CLAIM (pickles_that_want_to_run_code_are_refused) {
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

CLAIM (pickles_that_lie_about_sizes_are_refused) {
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
               { "\x80\x04\x8a\x09xxxx.", 9, "the pickle ends in the middle" },
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

CLAIM (pickles_cut_anywhere_are_refused) {
  written o;
  import_report r;
  error err;
  pickle_snapshot (&o);
  for (int64_t n = 2; n < o.n; n++) {
    ck_assert_ptr_null (import_bytes (o.at, n, &r, &err));
    ck_assert_ptr_nonnull (strstr (err.text, "byte "));
  }
}

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

CLAIM (a_snapshot_gives_sizes_to_blocks_with_a_rest) {
  /* of the second alloc: asked for, the block, and if that may be */
  static const struct {
    int64_t bytes, block;
    bool fits;
  } rows[] = { { 40960000, 41943040, true },  { 40960000, 42008576, true },
               { 40960000, 42009088, false }, { 40960000, 40959488, false },
               { 1048576, 1572864, false },   { 1048577, 1572864, true },
               { 1000, 1536, false } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    written o = { .n = 0 };
    char text[4096];
    import_report r;
    error err = { 0 };
    trace *t;
    put (&o, "\x80\x04}(", 4);
    pickle_text (&o, "segments");
    put (&o, "]", 1);
    pickle_text (&o, "device_traces");
    put (&o, "](](", 4);
    pickle_event (&o, "alloc", 4096, 1000, "m.py", 1);
    pickle_event (&o, "alloc", 8192, rows[i].bytes, "m.py", 2);
    put (&o, "eeu.", 4);
    snprintf (text, sizeof text, kineto, (int)rows[i].block);
    import_source sources[] = { { "k", text, (int64_t)strlen (text) }, { "s", o.at, o.n } };
    ck_assert_msg (import_memory (sources, 2, NULL, import_arena (), &t, &r, &err), "%s", err.text);
    int64_t x = tensor_named (t, rows[i].fits ? "m.py:2/1" : "a/1");
    ck_assert_msg (x >= 0, "row %d", (int)i);
    ck_assert_int_eq (t->tensors[x].bytes, rows[i].fits ? rows[i].bytes : rows[i].block);
  }
}

CLAIM (a_snapshot_gives_lines_and_exact_sizes_to_kineto) {
  for (int right = 0; right < 2; right++) {
    written o;
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

int main (void) {
  return suite_run ("import_pickle", 20);
}
