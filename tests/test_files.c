/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loaders of the three files: what they accept comes back the same, what they refuse is one
   line with its place, and nothing that a file or the memory does makes them crash or leak. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/random_case.h"
#include "tests/suite.h"
#include "trace/plan.h"

/* Behind base/json.h, some of whose functions have names that Jansson has macros for. */
#include <jansson.h>

#define HEAD "{\"format\":\"ferry-trace/1\","
#define TAIL "}"
#define TENSORS "\"tensors\":[{\"bytes\":8},{\"bytes\":9}],"
#define LINK "\"link\":{\"d2h_bytes_per_s\":1000000,\"h2d_bytes_per_s\":1000000}"
#define DEVICE                                                                   \
  "{\"format\":\"ferry-device/1\",\"memory_bytes\":99999,\"granule_bytes\":512," \
  "\"host_bytes\":9," LINK "}"

typedef struct refusal {
  const char *text, *says;
} refusal;

static const refusal trace_refusals[] = {
  { "", "empty, where JSON is expected" },
  { "{", "string or '}' expected" },
  { "[]", "an object is needed here, not an array" },
  { "{\"format\":\"ferry-trace/9\"}", "/format: `ferry-trace/9` is not a trace" },
  { "{\"tensors\":[]}", "`format` is missing: this is no trace, and no profile that" },
  { HEAD "\"ops\":[{}]" TAIL, "`tensors` is missing" },
  { HEAD TENSORS "\"ops\":[]" TAIL, "/ops: a trace needs at least one op" },
  { HEAD TENSORS "\"ops\":[{\"ns\":-1}]" TAIL, "/ops/0/ns: -1 is not between 0 and" },
  { HEAD TENSORS "\"ops\":[{\"ns\":1.5}]" TAIL, "/ops/0/ns: a whole number is needed here" },
  { HEAD TENSORS "\"ops\":[{\"ns\":9007199254740993}]" TAIL, "/ops/0/ns: 9007199254740993" },
  { HEAD TENSORS "\"ops\":[{\"ns\":99999999999999999999}]" TAIL, "too big integer" },
  { HEAD TENSORS "\"ops\":[{\"ns\":NaN}]" TAIL, "invalid token" },
  { HEAD TENSORS "\"ops\":[{\"ns\":1,\"ns\":2}]" TAIL, "duplicate object key" },
  { HEAD TENSORS "\"ops\":[{\"ns\":9007199254740992},{\"ns\":1}]" TAIL,
    "/ops: durations and gaps sum to more than 2^53 ns" },
  { HEAD TENSORS "\"ops\":[{\"reads\":[2]}]" TAIL, "/ops/0/reads/0: 2 is not between 0 and 1" },
  { HEAD TENSORS "\"ops\":[{\"reads\":[0,0]}]" TAIL, "/ops/0/reads/1: tensor 0 is named twice" },
  { HEAD TENSORS "\"ops\":[{\"reads\":[null]}]" TAIL,
    "/ops/0/reads/0: the index of a tensor is needed here" },
  { HEAD TENSORS "\"ops\":[{\"side\":[0]}]" TAIL,
    "/ops/0/side/0: tensor 0 is in `side` but not in `writes`" },
  { HEAD TENSORS "\"ops\":[{\"phase\":\"sideways\"}]" TAIL,
    "/ops/0/phase: `sideways` is not one of: forward, backward, update, other" },
  { HEAD TENSORS "\"ops\":[{\"parts\":0}]" TAIL, "/ops/0/parts: 0 is not between 1 and" },
  { HEAD TENSORS "\"ops\":[{\"compute\":7}]" TAIL, "/ops/0/compute: an object is needed here" },
  { HEAD TENSORS "\"ops\":[{\"compute\":{\"x\":1.5}}]" TAIL,
    "/ops/0/compute/x: numbers are whole here" },
  { HEAD TENSORS "\"ops\":[{\"name\":\"a\\u0007\"}]" TAIL,
    "/ops/0/name: the text holds a control character" },
  { HEAD "\"tensors\":[{}],\"ops\":[{}]" TAIL, "/tensors/0/bytes: `bytes` must be given" },
  { HEAD "\"tensors\":[{\"bytes\":0}],\"ops\":[{}]" TAIL, "/tensors/0/bytes: 0 is not between 1" },
  { HEAD "\"batch\":4,\"tensors\":[{\"bytes\":3,\"split\":\"batch\"}],\"ops\":[{}]" TAIL,
    "/tensors/0/bytes: 3 is not between 4" },
  { HEAD "\"tensors\":[{\"bytes\":3,\"kind\":\"soft\"}],\"ops\":[{}]" TAIL,
    "/tensors/0/kind: `soft` is not one of: parameter," },
  { HEAD "\"tensors\":[{\"bytes\":3,\"born_before\":1}],\"ops\":[{\"reads\":[0]},{}]" TAIL,
    "/tensors/0/born_before: op 0 uses the tensor before op 1" },
  { HEAD "\"tensors\":[{\"bytes\":3,\"dies_after\":0}],\"ops\":[{},{\"reads\":[0]}]" TAIL,
    "/tensors/0/dies_after: op 1 uses the tensor after op 0" },
  { HEAD "\"tensors\":[{\"bytes\":3,\"kind\":\"parameter\",\"dies_after\":0}],\"ops\":[{}]" TAIL,
    "/tensors/0/dies_after: a persistent tensor is neither born nor dies" },
  { HEAD TENSORS "\"source\":{\"confidence\":\"sure\"},\"ops\":[{}]" TAIL,
    "/source/confidence: `sure` is none of exact, approximate, learned, touched, not plannable" },
  { HEAD TENSORS "\"ops\":[{}],\"ns_samples\":[[1,2]]" TAIL,
    "/ns_samples/0: 2 durations for 1 ops" },
  { HEAD "\"tensors\":{\"bytes\":[1,2],\"name\":[\"x\"]},\"ops\":[{}]" TAIL,
    "/tensors/bytes: this column has 2 rows, `name` has 1" },
  { HEAD TENSORS "\"ops\":{\"ns\":[1],\"reads\":{\"index\":[0],\"offset\":[0,2]}}" TAIL,
    "/ops/reads/offset/1: 2 is not between 0 and 1" },
  { HEAD TENSORS "\"ops\":{\"ns\":[1],\"reads\":{\"index\":[0],\"offset\":[0,0]}}" TAIL,
    "/ops/reads/offset/1: offsets must rise from 0 to 1, the length of `index`" },
};

static const refusal device_refusals[] = {
  { "{}", "`format` is missing" },
  { "{\"format\":\"ferry-device/1\"}", "`memory_bytes` is missing" },
  { "{\"format\":\"ferry-device/1\",\"memory_bytes\":9,\"granule_bytes\":513,\"host_bytes\":9," LINK
    "}",
    "/granule_bytes: 513 is not a multiple of 512" },
  { "{\"format\":\"ferry-device/1\",\"memory_bytes\":9,\"reserved_bytes\":10,\"granule_bytes\":512,"
    "\"host_bytes\":9," LINK "}",
    "/reserved_bytes: 10 is more than the device's memory, 9" },
  { "{\"format\":\"ferry-device/1\",\"memory_bytes\":9,\"granule_bytes\":512,\"host_bytes\":9,"
    "\"link\":{\"d2h_bytes_per_s\":5,\"h2d_bytes_per_s\":1000000}}",
    "/link/d2h_bytes_per_s: 5 is not between 1000000" },
};

#define PLAN(rest)                                                         \
  "{\"format\":\"ferry-plan/1\",\"trace\":\"sha256:0\",\"device\":" DEVICE \
  ",\"budget_bytes\":1,\"host_bytes\":1," rest "}"
#define PLACES(stays)                                                           \
  "\"placement\":{\"granule_bytes\":512,\"granules\":1,\"pool_below_bytes\":0," \
  "\"pool_bytes\":0,\"stays\":" stays "}"

static const refusal plan_refusals[] = {
  { "{\"format\":\"ferry-plan/1\"}", "`trace` is missing" },
  { PLAN ("\"moves\":[]"), "`placement` is missing" },
  { PLAN (PLACES ("[{\"tensor\":0,\"move\":1,\"runs\":[0,1]}]")),
    "/placement/stays/0/tensor: a stay is of one of: tensor, group, move, workspace" },
  { PLAN (PLACES ("[{\"runs\":[0,1]}]")), "a stay is of one of" },
  { PLAN (PLACES ("[{\"tensor\":0,\"runs\":[0]}]")), "runs are pairs" },
  { PLAN (PLACES ("[{\"tensor\":0,\"runs\":[0,0]}]")), "0 is not between 1" },
  { PLAN ("\"moves\":[{\"unit\":0,\"out_after\":0,\"in_before\":1}]," PLACES ("[]")),
    "/moves/0/host_offset: `host_offset` is missing" },
  { PLAN ("\"sections\":[{\"ops\":[1],\"parts\":2}]," PLACES ("[]")),
    "/sections/0/ops: two numbers are needed" },
  { PLAN ("\"op_waits\":[{\"op\":1}]," PLACES ("[]")), "/op_waits/0/outs: `outs` is missing" },
  { PLAN ("\"out_order\":[true]," PLACES ("[]")), "/out_order/0: an index is needed here" },
};

typedef enum file_kind { A_TRACE, A_DEVICE, A_PLAN } file_kind;

static bool parse (file_kind kind, const char *text, size_t size, arena *a, error *err) {
  device d;
  switch (kind) {
  case A_TRACE:
    return trace_parse (text, (int64_t)size, NULL, a, err);
  case A_DEVICE:
    return device_parse (text, (int64_t)size, NULL, a, &d, err);
  default:
    return plan_parse (text, (int64_t)size, NULL, a, err);
  }
}

static void refuses_all (file_kind kind, const refusal *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    arena *a = arena_new (0);
    error err = { 0 };
    char line[sizeof (error)];
    ck_assert_msg (!parse (kind, rows[i].text, strlen (rows[i].text), a, &err), "accepted: %s",
                   rows[i].text);
    error_line (&err, line, sizeof line);
    ck_assert_msg (strstr (line, rows[i].says), "%s\nsays: %s", rows[i].text, line);
    ck_assert_ptr_null (strchr (line, '\n'));
    ck_assert_int_eq (error_exit_status (err.code), 3);
    arena_free (a);
  }
}

CLAIM (what_is_wrong_is_said_with_its_place) {
  refuses_all (A_TRACE, trace_refusals, sizeof trace_refusals / sizeof *trace_refusals);
  refuses_all (A_DEVICE, device_refusals, sizeof device_refusals / sizeof *device_refusals);
  refuses_all (A_PLAN, plan_refusals, sizeof plan_refusals / sizeof *plan_refusals);
}

static void make_case (uint64_t seed, arena *a, random_case *c) {
  error err = { 0 };
  case_options o = { .seed = seed, .features = CASE_EVERYTHING | CASE_ORDER };
  ck_assert_msg (random_case_make (&o, a, c, &err), "%s", err.text);
}

/* text[0] trace plain, [1] trace packed, [2] device, [3] plan, [4] plan packed */
enum { TEXTS = 5 };
static const file_kind text_kind[TEXTS] = { A_TRACE, A_TRACE, A_DEVICE, A_PLAN, A_PLAN };

static void write_case (const random_case *c, bytes text[TEXTS]) {
  error err = { 0 };
  json_writer w;
  json_begin (&w, 2);
  device_write (&w, &c->plan->device);
  ck_assert (trace_text (c->trace, TRACE_PLAIN, &text[0], &err) &&
             trace_text (c->trace, TRACE_PACKED, &text[1], &err) &&
             json_finish (&w, &text[2], &err) && plan_text (c->plan, false, &text[3], &err) &&
             plan_text (c->plan, true, &text[4], &err));
}

static void free_texts (bytes text[TEXTS]) {
  for (int i = 0; i < TEXTS; i++)
    bytes_free (&text[i]);
}

CLAIM (every_form_of_a_trace_has_one_digest) {
  char path[64];
  snprintf (path, sizeof path, "test_files.%d.", (int)getpid ());
  static const char *const endings[] = { "json", "gz", "zst" };
  for (uint64_t seed = 1; seed <= 40; seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    char want[TRACE_DIGEST], got[TRACE_DIGEST];
    make_case (seed, a, &c);
    ck_assert (trace_digest (c.trace, want, &err));
    for (int form = 0; form < 6; form++) {
      char name[80];
      snprintf (name, sizeof name, "%s%s", path, form % 3 ? "." : "");
      snprintf (name + strlen (name), sizeof name - strlen (name), "%s", endings[form % 3]);
      ck_assert (trace_store (c.trace, name, form < 3 ? TRACE_PLAIN : TRACE_PACKED, &err));
      trace *back = trace_load (name, NULL, a, &err);
      ck_assert_msg (back && trace_digest (back, got, &err), "%s", err.text);
      ck_assert_str_eq (got, want);
      ck_assert_str_eq (back->name, c.trace->name);
      unlink (name);
    }
    arena_free (a);
  }
}

CLAIM (a_plan_comes_back_as_it_was) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    arena *a = arena_new (0);
    random_case c;
    error err = { 0 };
    bytes text[TEXTS], again;
    make_case (seed, a, &c);
    write_case (&c, text);
    for (int i = 3; i <= 4; i++) {
      plan *back = plan_parse (text[i].data, text[i].size, NULL, a, &err);
      ck_assert_msg (back != NULL, "%s %s", err.where, err.text);
      ck_assert (plan_text (back, false, &again, &err));
      ck_assert_str_eq (again.data, text[3].data);
      bytes_free (&again);
    }
    free_texts (text);
    arena_free (a);
  }
}

CLAIM_IN_ARENA (a_truncated_file_is_refused_at_every_byte) {
  random_case c;
  bytes text[TEXTS];
  make_case (7, a, &c);
  write_case (&c, text);
  for (int i = 0; i < TEXTS; i++)
    for (int64_t size = 0; size < text[i].size - 2; size++) {
      arena_mark mark = arena_here (a);
      error err = { 0 };
      ck_assert (!parse (text_kind[i], text[i].data, (size_t)size, a, &err));
      ck_assert_int_eq (err.code, ERR_input);
      arena_back (a, mark);
    }
  free_texts (text);
}

CLAIM_IN_ARENA (a_deep_file_is_refused) {
  size_t depth = 100000;
  char *text = malloc (depth + 1);
  ck_assert_ptr_nonnull (text);
  memset (text, '[', depth);
  ck_assert (!parse (A_TRACE, text, depth, a, &err));
  ck_assert (strstr (err.text, "depth"));
  free (text);
}

static int64_t mallocs_left = -1;

static void *failing_malloc (size_t size) {
  if (mallocs_left == 0)
    return NULL;
  if (mallocs_left > 0)
    mallocs_left--;
  return malloc (size);
}

CLAIM (every_failed_allocation_is_told_and_leaks_nothing) {
  arena *made = arena_new (0);
  random_case c;
  bytes text[TEXTS];
  make_case (3, made, &c);
  write_case (&c, text);
  json_set_alloc_funcs (failing_malloc, free);
  for (int i = 0; i < TEXTS; i++)
    for (int which = 0; which < 2; which++) {
      bool parsed = false;
      for (int64_t n = 1; !parsed; n++) {
        ck_assert_int_lt (n, 100000);
        arena *a = arena_new (0);
        error err = { 0 };
        if (which == 0)
          arena_fuse (a, n);
        mallocs_left = which ? n : -1;
        parsed = parse (text_kind[i], text[i].data, (size_t)text[i].size, a, &err);
        mallocs_left = -1;
        /* where Jansson's own reader lacks memory it may call the text malformed instead */
        ck_assert (parsed || err.code == ERR_memory || (which == 1 && err.code == ERR_input));
        arena_free (a);
      }
    }
  free_texts (text);
  arena_free (made);
}

static void count_warning (void *context, log_level level, const char *text) {
  ck_assert_int_eq (level, LOG_WARNING);
  ck_assert_str_eq (text, "/ops/0/colour: unknown key, ignored");
  ++*(int *)context;
}

CLAIM_IN_ARENA (an_unknown_key_is_a_warning_or_an_error) {
  static const char text[] = HEAD TENSORS "\"ops\":[{\"colour\":3}]" TAIL;
  int warnings = 0;
  logger log = { count_warning, &warnings };
  read_options o = { .log = &log };
  ck_assert (trace_parse (text, (int64_t)strlen (text), &o, a, &err));
  ck_assert_int_eq (warnings, 1);
  o.strict = true;
  ck_assert (!trace_parse (text, (int64_t)strlen (text), &o, a, &err));
  ck_says (&err, "/ops/0/colour: unknown key");
}

int main (void) {
  return suite_run ("files", 60);
}
