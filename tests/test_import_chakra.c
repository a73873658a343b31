/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chakra .et files: protobuf. */
#include <stdio.h>
#include <string.h>

#include "tests/import_bytes.h"

/* ---- a writer of protobuf ---- */

static void put_varint (written *o, uint64_t v) {
  for (; v >= 128; v >>= 7)
    put_byte (o, (int)(v & 127) | 128);
  put_byte (o, (int)v);
}

static void put_number (written *o, int field, uint64_t v) {
  put_varint (o, (uint64_t)field << 3);
  put_varint (o, v);
}

static void put_part (written *o, int field, const void *data, int64_t size) {
  put_varint (o, (uint64_t)field << 3 | 2);
  put_varint (o, (uint64_t)size);
  put (o, data, size);
}

static void put_text (written *o, int field, const char *text) {
  put_part (o, field, text, (int64_t)strlen (text));
}

static void put_side (written *o, int field, const char *values) {
  written side = { .n = 0 };
  put_text (&side, 1, values);
  put_part (o, field, side.at, side.n);
}

static void put_attribute (written *o, const char *name, uint64_t number, const char *text) {
  written a = { .n = 0 };
  put_text (&a, 1, name);
  if (text)
    put_text (&a, 29, text);
  else
    put_number (&a, 9, number);
  put_part (o, 10, a.at, a.n);
}

static void put_message (written *o, const written *message) {
  put_varint (o, (uint64_t)message->n);
  put (o, message->at, message->n);
}

/* us 0 is left out, as writers do. */
static void put_node (written *o, int id, const char *name, int owner, int us, const char *in,
                      const char *outs, int record, int stream, const char *schema) {
  written n = { .n = 0 };
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
static void put_gpu (written *o, int id, const char *name, int owner, int us, int type, int thread,
                     const char *stream) {
  written n = { .n = 0 };
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

/* The first message of a file. */
static void put_head (written *o) {
  written head = { .n = 0 };
  *o = (written){ .n = 0 };
  put_text (&head, 2, "1.0");
  put_message (o, &head);
}

static void put_file (written *o) {
  put_head (o);
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

/* ---- claims ---- */

CLAIM (chakra_streams_are_told_by_their_attribute_or_not_at_all) {
  static const char *const streams[][3] = { { "7", "7", "20" }, { NULL, NULL, NULL } };
  for (int i = 0; i < 2; i++) {
    written o;
    import_report r;
    error err;
    put_head (&o);
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
    ck_assert_int_eq (t->source.confidence, CONFIDENCE_EXACT);
    ck_assert_str_eq (t->source.doubt, "gaps are unknown");
  }
}

CLAIM (chakra_nodes_become_ops_by_their_owner) {
  written o;
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
  ck_assert_int_eq (t->source.confidence, CONFIDENCE_APPROXIMATE);
  ck_assert_str_eq (t->source.doubt,
                    "gaps are unknown; gpu time: 2.9 % of GPU time is in ops; 500 us "
                    "on other streams");
  ck_assert_str_eq (r.warnings[0].what, "control dependencies on nodes that are not in the file");
  ck_assert_int_eq (r.warnings[0].count, 7);
}

CLAIM (chakra_files_with_tensors_of_two_gpus_are_not_planned) {
  written o;
  import_report r;
  error err;
  put_head (&o);
  put_node (&o, 2, "aten::mm", -1, 0, "[" A "]", "[[2, 50, 0, 256, 4, 'cuda:1']]", 5, 1, "");
  put_node (&o, 3, "gemm", 2, 9, "[]", "[]", -1, 7, NULL);
  trace *t = import_bytes (o.at, o.n, &r, &err);
  ck_assert_msg (t != NULL, "%s", err.text);
  ck_assert_int_eq (t->source.confidence, CONFIDENCE_NOT_PLANNABLE);
  ck_assert_str_eq (t->source.doubt, "tensors of several GPUs, of which each "
                                     "has a memory of its own");
  ck_assert_ptr_nonnull (r.advice);
}

CLAIM (chakra_files_cut_anywhere_name_the_byte) {
  written o;
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
  put_head (&o);
  int64_t at = o.n;
  put_varint (&o, (uint64_t)1 << 40);
  ck_assert_ptr_null (import_bytes (o.at, o.n, &r, &err));
  char expected[200];
  snprintf (expected, sizeof expected,
            "byte %lld: a message of 1099511627776 bytes where 0 are left: the file is cut short",
            (long long)at);
  ck_assert_str_eq (err.text, expected);
}

CLAIM (chakra_files_with_a_node_twice_or_without_any_time_are_told) {
  for (int i = 0; i < 2; i++) {
    written o;
    import_report r;
    error err;
    put_head (&o);
    put_node (&o, 2, "aten::mm", -1, 0, "[" A "]", "[" B "]", 5, 1, "");
    put_node (&o, 3, "gemm", 2, i ? 9 : 0, "[]", "[]", -1, 7, NULL);
    if (i)
      put_node (&o, 3, "gemm", 2, 9, "[]", "[]", -1, 7, NULL);
    trace *t = import_bytes (o.at, o.n, &r, &err);
    if (i) {
      ck_assert_ptr_null (t);
      ck_assert_str_eq (err.text, "node 3 is there twice: are these two files in one?");
    } else {
      ck_assert_str_eq (t->source.doubt, "no durations");
      ck_assert_ptr_nonnull (r.advice);
    }
  }
}

CLAIM (chakra_without_tensor_values_says_how_to_link_it) {
  written o;
  import_report r;
  error err;
  put_head (&o);
  put_node (&o, 2, "a", -1, 0, "[]", "[]", 5, 1, "");
  put_node (&o, 3, "k", 2, 4, "[]", "[]", -1, 7, NULL);
  ck_assert_ptr_null (import_bytes (o.at, o.n, &r, &err));
  ck_assert_str_eq (err.text,
                    "this .et has no tensor values; link it again with tensor values kept");
  ck_assert_int_eq (error_exit_status (err.code), 1);
}

CLAIM (python_text_is_a_small_grammar_and_nothing_more) {
  static const char *const bad[] = { "[1, 2", "['open", "[)", "]", "[[1)]", "[a]", "5" };
  import_report r;
  error err;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    written o;
    put_head (&o);
    put_node (&o, 2, "a", -1, 0, bad[i], "[]", 5, 1, "");
    ck_assert_msg (!import_bytes (o.at, o.n, &r, &err), "%s", bad[i]);
    ck_assert_msg (err.code == ERR_input && strstr (err.text, "byte "), "%s: %s", bad[i], err.text);
  }
}

int main (void) {
  return suite_run ("import_chakra", 20);
}
