/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imports of small texts made by hand: plain text, intervals, kernels of simulators; and of texts
   that are cut, packed or nothing. */
#include <string.h>
#include <zlib.h>

#include "tests/import_case.h"
#include "trace/import/import.h"
#include "tests/import_texts.h"

/* ---- plain text ---- */

START_TEST (plain_text_says_all_that_a_trace_can) {
  import_report r;
  trace *t = import_good (PLAIN, &r);
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

/* ---- hostile ---- */

/* ---- logs of operator calls ---- */

#define MADE(name, bytes, alias)                                                  \
  "{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"" name "\",\"MEMORY\":\"" bytes "\"}\n" \
  "{\"ALIAS\":\"" alias "\",\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"" name "\"}\n"
#define CALL(name, args, results, ns)                                                        \
  "{\"ARGS\":[" args "],\"INSTRUCTION\":\"CALL\",\"NAME\":\"" name "\",\"RESULT\":[" results \
  "],\"TIME\":\"" ns "\"}\n"
#define CONSTANT(name, bytes)                              \
  "{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"" name "\"}\n" \
  "{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"" name "\",\"MEMORY\":\"" bytes "\"}\n"
#define RELEASE(name) "{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"" name "\"}\n"
#define LOG                                                                                      \
  CONSTANT ("old", "7")                                                                          \
  "{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}\n" CONSTANT ("w", "400")              \
      CONSTANT ("x", "800") CALL ("mm", "\"x\",\"w\"", "\"y\"", "1200") MADE ("y", "1600", "-1") \
          CALL ("view", "\"y\"", "\"v\"", "5") MADE ("v", "1600", "0") RELEASE ("y")             \
              CALL ("relu", "\"v\"", "\"r\"", "300") MADE ("r", "1600", "-1")                    \
                  CALL ("relu_backward", "\"v\"", "\"g\"", "300") MADE ("g", "1600", "-1")       \
                      RELEASE ("v")                                                              \
                          RELEASE ("r") "{\"ARGS\":[\"w\",\"g\"],\"INSTRUCTION\":\"MUTATE\","    \
                                        "\"MUTATE\":[0],\"NAME\":\"add_\",\"TIME\":"             \
                                        "\"100\"}\n"

START_TEST (a_log_of_calls_follows_names_to_storages) {
  import_report r;
  trace *t = import_good (LOG, &r);
  ck_assert_str_eq (r.read[0].format, "log of operator calls");
  ck_assert_int_eq (t->n_ops, 5);
  ck_assert_int_eq (t->n_tensors, 5); /* v is y; what was there before START is not */
  int64_t w = tensor_named (t, "w"), y = tensor_named (t, "y"), g = tensor_named (t, "g");
  int64_t relu = tensor_named (t, "r");
  ck_assert (t->tensors[w].persistent && list_holds (&t->ops[4].writes, w));
  ck_assert (list_holds (&t->ops[1].reads, y) && list_holds (&t->ops[3].reads, y));
  ck_assert (!list_holds (&t->ops[1].writes, y));
  ck_assert_int_eq (t->tensors[y].kind, TENSOR_ACTIVATION);
  ck_assert_int_eq (t->tensors[g].kind, TENSOR_GRADIENT);
  ck_assert_int_eq (t->tensors[relu].dies_after, 3); /* read by nobody, but held */
  ck_assert_int_eq (t->ops[3].phase, OP_BACKWARD);
  ck_assert_int_eq (r.busy_ns, 1905);
  ck_assert_int_eq (r.peak_bytes, 400 + 800 + 3 * 1600);
}
END_TEST

START_TEST (a_log_of_calls_names_the_line_of_a_mistake) {
  static const struct {
    const char *text, *says;
    int line;
  } rows[] = {
    { CONSTANT ("w", "4") CALL ("f", "\"q\"", "", "1"), "argument 0 has no definition", 3 },
    { CALL ("f", "", "\"y\"", "1"), "without a MEMORY line", 1 },
    { CALL ("f", "", "\"y\"", "1") MADE ("z", "1", "-1"), "no result of the call before", 2 },
    { CALL ("f", "", "\"y\"", "1") MADE ("y", "1", "3"), "an alias of argument 3", 1 },
    { CALL ("f", "", "", "x"), "without a sound TIME", 1 },
    { "{\"INSTRUCTION\":\"DANCE\"}\n", "INSTRUCTION `DANCE` is not known", 1 },
    { CONSTANT ("w", "4"), "a log without calls", 0 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    error err;
    import_bad (rows[i].text, &err);
    ck_assert_msg (strstr (err.text, rows[i].says) != NULL, "%s", err.text);
    ck_assert_int_eq (err.line, rows[i].line);
  }
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

START_TEST (a_text_cut_anywhere_is_refused_or_read_but_never_crashes) {
  static const char *const texts[] = { EVENTS (TINY TINY_MEMORY LAST), ET (TINY_ET), PLAIN };
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
  bytes whole = zip (PLAIN, (int64_t)strlen (PLAIN));
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
  static const char *const lines[] = {
    "\niteration   ProfilerStep#5 of 1 step, 0.100 ms\n",
    "\nops         4  forward 2  backward 1  update 1\n",
    "\nconfidence  approximate: reads are those of all ops that may read", "\ndropped     none\n",
    "\nwarnings    none\n"
  };
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
  const suite_row rows[] = {
    { plain_text_says_all_that_a_trace_can, 0, 0 },
    { plain_text_names_line_and_column_of_a_mistake, 0, 0 },
    { intervals_are_half_open_and_columns_come_in_any_order, 0, 0 },
    { intervals_name_line_and_column_of_a_mistake, 0, 0 },
    { kernels_read_before_they_are_written_are_inputs, 0, 0 },
    { kernels_without_a_clock_or_with_strange_ids_are_refused, 0, 0 },
    { a_log_of_calls_follows_names_to_storages, 0, 0 },
    { a_log_of_calls_names_the_line_of_a_mistake, 0, 0 },
    { what_cannot_be_imported_says_what_to_record, 0, 0 },
    { a_text_cut_anywhere_is_refused_or_read_but_never_crashes, 0, 3 },
    { compressed_files_are_undone_bounded_and_told_when_cut, 0, 0 },
    { the_report_reads_as_text_and_as_json, 0, 0 },
    { NULL, 0, 0 },
  };
  return suite_run_rows ("import", rows, NULL, NULL, 20);
}
