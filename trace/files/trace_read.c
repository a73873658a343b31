/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace from JSON, plain or packed. */
#include "trace/trace.h"

#include <assert.h>
#include <string.h>

#include "base/table.h"

static const char *const top_keys[] = { "format",  "name", "batch",      "source",
                                        "tensors", "ops",  "ns_samples", NULL };
static const char *const source_keys[] = { "kind",       "detail", "device", "made_for", "zoo",
                                           "confidence", "doubt",  "checks", "inputs",   NULL };
static const char *const tensor_keys[] = { "name",   "bytes",  "kind",        "persistent",
                                           "pinned", "split",  "born_before", "dies_after",
                                           "again",  "placed", NULL };
static const char *const op_keys[] = { "name",       "ns",    "gap_ns",      "workspace_bytes",
                                       "phase",      "parts", "reads",       "writes",
                                       "side",       "after", "compute",     "digested",
                                       "unknown",    "group", "group_bytes", "stream",
                                       "collective", NULL };
static const char *const op_lists[] = { "reads",    "writes",  "side", "after",
                                        "digested", "unknown", NULL };
static const char *const split_words[] = { "batch", NULL };

typedef struct reading {
  const read_options *options;
  arena *arena;
  error *err;
  trace *trace;
} reading;

static bool read_text (reading *r, const json *j, const char **out) {
  const char *text = NULL;
  if (!json_get_text (j, &text, r->err))
    return false;
  if (text && *text)
    *out = arena_string (r->arena, text, r->err);
  return *out != NULL;
}

static bool read_again (reading *r, const table *from, size_t row, tensor *x) {
  table_place place;
  int word = AGAIN_FREELY;
  json cell = table_cell (from, "again", row, &place);
  if (!json_get_word (&cell, tensor_again_names, &word, r->err))
    return false;
  x->again = (uint8_t)word;
  cell = table_cell (from, "placed", row, &place);
  return json_get_bool (&cell, &x->placed, r->err);
}

static bool read_tensor (reading *r, const table *from, size_t row) {
  table_place place;
  tensor *x = &r->trace->tensors[row];
  *x = (tensor){ .name = "", .kind = TENSOR_TEMPORARY, .born_before = NO_OP, .dies_after = NO_OP };
  json cell = table_cell (from, "name", row, &place);
  if (!read_text (r, &cell, &x->name))
    return false;
  cell = table_cell (from, "bytes", row, &place);
  if (json_is_absent (&cell))
    return json_error (&cell, r->err, "`bytes` must be given");
  if (!json_get_int (&cell, 1, MOST_TENSOR_BYTES, &x->bytes, r->err))
    return false;
  int word = TENSOR_TEMPORARY;
  cell = table_cell (from, "kind", row, &place);
  if (!json_get_word (&cell, tensor_kind_names, &word, r->err))
    return false;
  x->kind = (uint8_t)word;
  x->persistent = word == TENSOR_PARAMETER || word == TENSOR_OPTIMIZER;
  cell = table_cell (from, "persistent", row, &place);
  if (!json_get_bool (&cell, &x->persistent, r->err))
    return false;
  cell = table_cell (from, "pinned", row, &place);
  if (!json_get_bool (&cell, &x->pinned, r->err))
    return false;
  word = -1;
  cell = table_cell (from, "split", row, &place);
  if (!json_get_word (&cell, split_words, &word, r->err))
    return false;
  x->split = word == 0;
  cell = table_cell (from, "born_before", row, &place);
  if (!json_get_int32 (&cell, 0, INT32_MAX - 1, &x->born_before, r->err))
    return false;
  cell = table_cell (from, "dies_after", row, &place);
  return json_get_int32 (&cell, 0, INT32_MAX - 1, &x->dies_after, r->err) &&
         read_again (r, from, row, x);
}

/* most: the last index that there is. */
static bool read_list (reading *r, const table *from, const char *key, size_t row, int32_t most,
                       index_list *out) {
  table_place place;
  table_slice slice;
  if (!table_list (from, key, row, &place, &slice, r->err))
    return false;
  *out = (index_list){ 0 };
  if (slice.count == 0)
    return true;
  if (!ALLOC (r->arena, out->at, (int64_t)slice.count, r->err))
    return false;
  out->count = (int32_t)slice.count;
  for (size_t i = 0; i < slice.count; i++) {
    json at = json_element (&slice.array, slice.first + i);
    if (!json_is_int (&at))
      return json_error (&at, r->err, "the index of %s is needed here",
                         out == &r->trace->ops[row].after ? "an op" : "a tensor");
    if (!json_get_int32 (&at, 0, most < 0 ? 0 : most, &out->at[i], r->err))
      return false;
  }
  return true;
}

static bool read_stream (reading *r, const table *from, size_t row, op *o) {
  table_place place;
  json cell = table_cell (from, "stream", row, &place);
  if (!json_get_int32 (&cell, 0, MOST_STREAMS - 1, &o->stream, r->err))
    return false;
  int word = COLLECTIVE_none;
  cell = table_cell (from, "collective", row, &place);
  if (!json_get_word (&cell, collective_names + 1, &word, r->err))
    return false;
  if (!json_is_absent (&cell))
    o->collective = (collective_kind)(word + 1);
  const char *group = NULL;
  cell = table_cell (from, "group", row, &place);
  if (!json_get_text (&cell, &group, r->err))
    return false;
  return !group || !*group || (o->group = arena_string (r->arena, group, r->err));
}

static bool read_op (reading *r, const table *from, size_t row) {
  static const struct {
    const char *key;
    size_t offset;
    int64_t low, high, absent;
  } numbers[] = {
    { "ns", offsetof (op, ns), 0, MOST_NS, 0 },
    { "gap_ns", offsetof (op, gap_ns), 0, MOST_NS, 0 },
    { "workspace_bytes", offsetof (op, workspace_bytes), 0, MOST_TENSOR_BYTES, 0 },
    { "parts", offsetof (op, parts), 1, MOST_PARTS, 1 },
    { "group_bytes", offsetof (op, group_bytes), 0, MOST_TENSOR_BYTES, 0 },
  };
  table_place place;
  int32_t last = r->trace->n_tensors - 1, ops = r->trace->n_ops - 1;
  op *o = &r->trace->ops[row];
  *o = (op){ .name = "", .phase = OP_OTHER };
  json cell = table_cell (from, "name", row, &place);
  if (!read_text (r, &cell, &o->name))
    return false;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int64_t *to = (int64_t *)((char *)o + numbers[i].offset);
    *to = numbers[i].absent;
    cell = table_cell (from, numbers[i].key, row, &place);
    if (!json_get_int (&cell, numbers[i].low, numbers[i].high, to, r->err))
      return false;
  }
  int phase = OP_OTHER;
  cell = table_cell (from, "phase", row, &place);
  if (!json_get_word (&cell, op_phase_names, &phase, r->err))
    return false;
  o->phase = (op_phase)phase;
  cell = table_cell (from, "compute", row, &place);
  if (!json_is_absent (&cell)) {
    if (!json_want_object (&cell, r->err))
      return false;
    o->compute = json_canonical (&cell, false, r->arena, r->err);
    if (!o->compute)
      return false;
  }
  return read_list (r, from, "reads", row, last, &o->reads) &&
         read_list (r, from, "writes", row, last, &o->writes) &&
         read_list (r, from, "side", row, last, &o->side) &&
         read_list (r, from, "digested", row, last, &o->digested) &&
         read_list (r, from, "unknown", row, last, &o->unknown) &&
         read_list (r, from, "after", row, ops, &o->after) && read_stream (r, from, row, o);
}

static bool open_table (reading *r, const json *at, const char *const *keys,
                        const char *const *lists, table *out) {
  if (!table_open (at, keys, lists, r->options->strict, r->options->log, out, r->err))
    return false;
  return out->rows < INT32_MAX / 4 || json_error (at, r->err, "too many rows: %zu", out->rows);
}

static bool read_tables (reading *r, const json *root) {
  json tensors, ops;
  table from;
  trace *t = r->trace;
  if (!json_need (root, "tensors", &tensors, r->err) ||
      !open_table (r, &tensors, tensor_keys, NULL, &from))
    return false;
  t->n_tensors = (int32_t)from.rows;
  if (!ALLOC (r->arena, t->tensors, t->n_tensors, r->err))
    return false;
  for (size_t row = 0; row < from.rows; row++)
    if (!read_tensor (r, &from, row))
      return false;
  if (!json_need (root, "ops", &ops, r->err) || !open_table (r, &ops, op_keys, op_lists, &from))
    return false;
  t->n_ops = (int32_t)from.rows;
  if (!ALLOC (r->arena, t->ops, t->n_ops, r->err))
    return false;
  for (size_t row = 0; row < from.rows; row++)
    if (!read_op (r, &from, row))
      return false;
  t->n_streams = trace_count_streams (t);
  return true;
}

enum { MOST_CHECKS = 256 };

static bool read_checks (reading *r, const json *source) {
  trace_source *s = &r->trace->source;
  json checks = json_member (source, "checks");
  if (json_is_absent (&checks))
    return true;
  if (!json_want_array (&checks, r->err))
    return false;
  size_t n = json_count (&checks);
  if (n > MOST_CHECKS)
    return json_error (&checks, r->err, "more than %d checks", MOST_CHECKS);
  if (!ALLOC (r->arena, s->checks, (int64_t)n, r->err))
    return false;
  for (size_t i = 0; i < n; i++) {
    json check = json_element (&checks, i);
    s->checks[i] = "";
    if (!read_text (r, &check, &s->checks[i]))
      return false;
    s->n_checks++;
  }
  return true;
}

/* A word. Older files have the doubt behind it, after a colon. */
static bool read_confidence (reading *r, const json *j, trace_source *s) {
  const char *text = NULL;
  if (!json_get_text (j, &text, r->err) || !text)
    return text == NULL && !r->err->code;
  for (int c = 0; confidence_words[c]; c++) {
    size_t length = strlen (confidence_words[c]);
    if (strncmp (text, confidence_words[c], length) != 0 || (text[length] && text[length] != ':'))
      continue;
    s->confidence = (confidence)c;
    const char *doubt = text[length] ? text + length + 1 : "";
    s->doubt = arena_string (r->arena, *doubt == ' ' ? doubt + 1 : doubt, r->err);
    return s->doubt;
  }
  return json_error (
      j, r->err, "`%.40s` is none of exact, approximate, learned, touched, not plannable", text);
}

static bool read_source (reading *r, const json *root) {
  trace_source *s = &r->trace->source;
  *s = (trace_source){ .kind = "", .detail = "", .device = "", .made_for = "", .doubt = "" };
  json source = json_member (root, "source");
  if (json_is_absent (&source))
    return true;
  if (!json_want_object (&source, r->err) ||
      !json_known (&source, source_keys, r->options->strict, r->options->log, r->err))
    return false;
  json kind = json_member (&source, "kind"), detail = json_member (&source, "detail"),
       sure = json_member (&source, "confidence"), doubt = json_member (&source, "doubt"),
       made_for = json_member (&source, "made_for"), zoo = json_member (&source, "zoo"),
       device = json_member (&source, "device"), inputs = json_member (&source, "inputs");
  return read_text (r, &device, &s->device) && read_text (r, &kind, &s->kind) &&
         read_text (r, &detail, &s->detail) && read_text (r, &made_for, &s->made_for) &&
         (json_is_absent (&inputs) ||
          (json_want_array (&inputs, r->err) &&
           (s->inputs = json_canonical (&inputs, false, r->arena, r->err)))) &&
         (json_is_absent (&zoo) || (s->zoo = json_canonical (&zoo, false, r->arena, r->err))) &&
         read_confidence (r, &sure, s) && read_text (r, &doubt, &s->doubt) &&
         read_checks (r, &source);
}

static bool read_samples (reading *r, const json *root) {
  trace *t = r->trace;
  json samples = json_member (root, "ns_samples");
  if (json_is_absent (&samples))
    return true;
  if (!json_want_array (&samples, r->err))
    return false;
  size_t rows = json_count (&samples);
  if (rows > 1 << 20)
    return json_error (&samples, r->err, "too many recorded steps: %zu", rows);
  if (!ALLOC (r->arena, t->ns_samples, (int64_t)rows * t->n_ops, r->err))
    return false;
  t->n_samples = (int32_t)rows;
  for (size_t i = 0; i < rows; i++) {
    json row = json_element (&samples, i);
    if (!json_want_array (&row, r->err))
      return false;
    if (json_count (&row) != (size_t)t->n_ops)
      return json_error (&row, r->err, "%zu durations for %d ops", json_count (&row), t->n_ops);
    if (!json_get_ints (&row, 0, MOST_NS, 0, t->ns_samples + i * (size_t)t->n_ops, (size_t)t->n_ops,
                        r->err))
      return false;
  }
  return true;
}

static bool read_trace (reading *r, const json *root) {
  trace *t = r->trace;
  *t = (trace){ .name = "", .batch = 1 };
  json format = json_member (root, "format"), name = json_member (root, "name"),
       batch = json_member (root, "batch");
  const char *text = NULL;
  if (!json_want_object (root, r->err))
    return false;
  if (json_is_absent (&format))
    return json_error (root, r->err,
                       "`format` is missing: this is no trace, and no profile that `ferry import` "
                       "reads");
  if (!json_get_text (&format, &text, r->err))
    return false;
  if (strncmp (text, "ferry-plan/", strlen ("ferry-plan/")) == 0)
    return json_error (&format, r->err, "this is a plan, where a trace is expected");
  if (strcmp (text, TRACE_FORMAT) != 0)
    return json_error (&format, r->err, "`%.40s` is not a trace that this version reads (%s)", text,
                       TRACE_FORMAT);
  return json_known (root, top_keys, r->options->strict, r->options->log, r->err) &&
         read_text (r, &name, &t->name) &&
         json_get_int (&batch, 1, MOST_PARTS, &t->batch, r->err) && read_source (r, root) &&
         read_tables (r, root) && read_samples (r, root) && trace_validate (t, r->err);
}

trace *trace_parse (const char *text, int64_t size, const read_options *o, arena *a, error *err) {
  assert ((text || size == 0) && size >= 0 && a);
  static const read_options plain = { 0 };
  reading r = { .options = o ? o : &plain, .arena = a, .err = err };
  r.trace = NEW (a, 1, trace, err);
  json_document *d = r.trace ? json_open (text, size, err) : NULL;
  if (!d)
    return NULL;
  json root = json_root (d);
  bool ok = read_trace (&r, &root);
  json_close (d);
  return ok ? r.trace : NULL;
}

trace *trace_load (const char *path, const read_options *o, arena *a, error *err) {
  bytes text;
  log_file named;
  read_options of_file = reading_of_file (o, path, &named);
  if (!file_read (path, of_file.limit_bytes, &text, err))
    return NULL;
  trace *t = trace_parse (text.data, text.size, &of_file, a, err);
  bytes_free (&text);
  if (!t)
    error_in_file (err, path);
  return t;
}
