/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "trace/import/common/accelerator.h"
#include "trace/import/common/calls.h"
#include "trace/import/et/et.h"

/* A tensor as it stands in a node, before the schema of its argument is known. */
typedef struct raw_mention {
  int64_t storage, bytes, own_bytes;
  int32_t device;
  int argument;
} raw_mention;

typedef struct raw_list {
  raw_mention *at;
  int64_t count, room;
} raw_list;

typedef struct reader {
  import_job *job;
  et *out;
  stream s;
  raw_list inputs, outputs;
  int64_t node_room, mention_room;
} reader;

/* ---- tensors in lists ---- */

enum { TENSOR_FIELDS = 6 };

static bool add_raw (reader *r, raw_list *list, const slice f[TENSOR_FIELDS], int argument,
                     int64_t at) {
  int64_t v[5];
  for (int i = 0; i < 5; i++)
    if (!slice_decimal (f[i], 0, &v[i]))
      return stream_fail_at (&r->s, at,
                             "a tensor has six fields: ids, offset, elements, item "
                             "size, device");
  int64_t elements, bytes, device;
  bool known = accelerator_is (f[5], &device);
  if (!known && !slice_starts (f[5], "cpu") && !slice_starts (f[5], "meta"))
    r->out->stranger = f[5];
  if (!known || v[1] == 0)
    return true;
  if (device > INT32_MAX)
    return stream_fail_at (&r->s, at, "device %lld of a tensor", (long long)device);
  if (v[2] < 0 || v[3] < 0 || v[4] < 0)
    return stream_fail_at (&r->s, at, "a tensor whose offset, elements or item size is below 0");
  if (__builtin_add_overflow (v[2], v[3], &elements) ||
      __builtin_mul_overflow (elements, v[4], &bytes) || bytes > MOST_TENSOR_BYTES)
    return stream_fail_at (&r->s, at, "a tensor larger than 2^48 bytes");
  if (!GROW (r->job->scratch, list->at, &list->room, list->count + 1, r->job->err))
    return false;
  if (device >= 0 && device < 64)
    r->out->devices |= (uint64_t)1 << device;
  list->at[list->count++] =
      (raw_mention){ v[1], v[3] ? bytes : 0, v[3] * v[4], (int32_t)device, argument };
  return true;
}

/* A list is a tensor if it has six scalars of which the sixth is a text: a list of six integers,
   such as a padding, has none.  Anything else may hold tensors further down. */
static bool read_list (reader *r, raw_list *list, int argument) {
  stream *s = &r->s;
  slice fields[TENSOR_FIELDS];
  int64_t at = s->at;
  int n = 0;
  bool texts[TENSOR_FIELDS] = { false }, scalars = true;
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    stream_kind kind = stream_peek (s);
    if (kind == STREAM_ARRAY) {
      scalars = false;
      if (!read_list (r, list, argument))
        return false;
    } else if (kind == STREAM_OBJECT) {
      scalars = false;
      if (!stream_skip (s))
        return false;
    } else {
      slice text;
      if (!stream_scalar (s, &text))
        return false;
      if (n < TENSOR_FIELDS) {
        fields[n] = text;
        texts[n] = kind == STREAM_TEXT;
      }
    }
    n++;
  }
  if (s->failed)
    return false;
  if (scalars && n == TENSOR_FIELDS && texts[5] && !texts[0])
    return add_raw (r, list, fields, argument, at);
  return true;
}

static bool read_values (reader *r, raw_list *list) {
  stream *s = &r->s;
  if (stream_peek (s) != STREAM_ARRAY)
    return stream_skip (s);
  if (!stream_array (s))
    return false;
  for (int argument = 0; stream_element (s); argument++) {
    bool ok = stream_peek (s) == STREAM_ARRAY ? read_list (r, list, argument) : stream_skip (s);
    if (!ok)
      return false;
    if (argument == 1 << 20)
      argument--; /* far beyond any schema */
  }
  return !s->failed;
}

/* 1.0.1: a list; from 1.0.3 on: an object with `values`. */
static bool read_side (reader *r, raw_list *list) {
  stream *s = &r->s;
  list->count = 0;
  if (stream_peek (s) != STREAM_OBJECT)
    return read_values (r, list);
  slice key;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key))
    if (!(slice_is (key, "values") ? read_values (r, list) : stream_skip (s)))
      return false;
  return !s->failed;
}

/* ---- schemas: "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)" ---- */

/* The end of the piece that begins at `at`: the next comma outside brackets, or where they close.
 */
static int64_t piece_end (slice text, int64_t at) {
  for (int depth = 0; at < text.size; at++) {
    char c = text.at[at];
    if (c == '(' || c == '[')
      depth++;
    else if ((c == ')' || c == ']') && --depth < 0)
      break;
    else if (c == ',' && depth == 0)
      break;
  }
  return at;
}

static bool holds (slice text, int64_t from, int64_t to, char c) {
  return to > from && memchr (text.at + from, c, (size_t)(to - from)) != NULL;
}

static int64_t skip_any (slice text, int64_t at, const char *chars) {
  while (at < text.size && strchr (chars, text.at[at]) && text.at[at])
    at++;
  return at;
}

et_schema_masks et_read_schema (slice text) {
  et_schema_masks m = { 0 };
  const char *open = memchr (text.at, '(', (size_t)text.size);
  if (!open)
    return m;
  int64_t at = open - text.at + 1;
  for (int part = 0; at < text.size && part < 64;) {
    at = skip_any (text, at, " ");
    int64_t end = piece_end (text, at);
    bool star = end == at + 1 && text.at[at] == '*'; /* keyword arguments follow: no argument */
    if (!star && holds (text, at, end, '!'))
      m.written |= (uint64_t)1 << part;
    part += !star;
    at = end + 1;
    if (end < text.size && text.at[end] == ')')
      break;
  }
  at = skip_any (text, at, " ->");
  at += at < text.size && text.at[at] == '('; /* several results */
  for (int part = 0; at < text.size && part < 64; part++) {
    at = skip_any (text, at, " ");
    int64_t end = piece_end (text, at);
    if (holds (text, at, end, '(') && !holds (text, at, end, '!'))
      m.aliases |= (uint64_t)1 << part;
    at = end + 1;
  }
  return m;
}

/* ---- nodes ---- */

static bool add_mentions (reader *r, int32_t node, const raw_list *list, bool output,
                          et_schema_masks masks, bool has_schema) {
  et *out = r->out;
  for (int64_t i = 0; i < list->count; i++) {
    const raw_mention *raw = &list->at[i];
    if (!GROW (r->job->scratch, out->mentions, &r->mention_room, out->n_mentions + 1, r->job->err))
      return false;
    uint64_t bit = raw->argument < 64 ? (uint64_t)1 << raw->argument : 0;
    bool written = output ? !(has_schema && masks.aliases & bit) : (masks.written & bit) != 0;
    out->mentions[out->n_mentions++] = (mention){ .storage = raw->storage,
                                                  .bytes = raw->bytes,
                                                  .own_bytes = raw->own_bytes,
                                                  .node = node,
                                                  .device = raw->device,
                                                  .output = output,
                                                  .written = written };
  }
  return true;
}

#define USER_SCOPE "7" /* of PyTorch's RecordScope */

static bool read_attrs (reader *r, et_node *n, slice *schema) {
  stream *s = &r->s;
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    slice key, name = { "", 0, false }, value = { "", 0, false };
    if (!stream_object (s))
      return false;
    while (stream_member (s, &key)) {
      stream_kind kind = stream_peek (s);
      bool ok = slice_is (key, "name") ? stream_text (s, &name)
                : slice_is (key, "value") && kind != STREAM_OBJECT && kind != STREAM_ARRAY
                    ? stream_scalar (s, &value)
                    : stream_skip (s);
      if (!ok)
        return false;
    }
    if (s->failed)
      return false;
    int64_t *number = slice_is (name, "rf_id")    ? &n->record_id
                      : slice_is (name, "tid")    ? &n->thread
                      : slice_is (name, "fw_tid") ? &n->forward_thread
                                                  : NULL;
    if (slice_is (name, "op_schema"))
      *schema = value;
    else if (slice_is (name, "scope"))
      n->annotation = slice_is (value, USER_SCOPE);
    else if (number && !slice_decimal (value, 0, number))
      return stream_fail (s, "attribute %.*s is no number", (int)name.size, name.at);
  }
  return !s->failed;
}

static bool read_scope (stream *s, et_node *n) {
  stream_kind kind = stream_peek (s);
  slice text;
  if (kind == STREAM_OBJECT || kind == STREAM_ARRAY)
    return stream_skip (s);
  if (!stream_scalar (s, &text))
    return false;
  n->annotation = slice_is (text, USER_SCOPE);
  return true;
}

static bool read_node (reader *r) {
  stream *s = &r->s;
  et *out = r->out;
  et_node n = { .id = -1, .parent_id = -1, .record_id = -1, .parent = -1 };
  slice key, name = { "", 0, false }, schema = { "", 0, false };
  int64_t at = s->at;
  r->inputs.count = r->outputs.count = 0;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    bool ok = slice_is (key, "name")        ? stream_text (s, &name)
              : slice_is (key, "id")        ? stream_int (s, &n.id)
              : slice_is (key, "rf_id")     ? stream_int (s, &n.record_id)
              : slice_is (key, "parent")    ? stream_int (s, &n.parent_id)
              : slice_is (key, "ctrl_deps") ? stream_int (s, &n.parent_id)
              : slice_is (key, "scope")     ? read_scope (s, &n)
              : slice_is (key, "tid")       ? stream_int (s, &n.thread)
              : slice_is (key, "fw_tid")    ? stream_int (s, &n.forward_thread)
              : slice_is (key, "op_schema") ? stream_text (s, &schema)
              : slice_is (key, "inputs")    ? read_side (r, &r->inputs)
              : slice_is (key, "outputs")   ? read_side (r, &r->outputs)
              : slice_is (key, "attrs")     ? read_attrs (r, &n, &schema)
                                            : stream_skip (s);
    if (!ok)
      return false;
  }
  if (s->failed)
    return false;
  if (n.id < 0 || n.record_id < 0)
    return stream_fail_at (s, at, "a node without `id` and `rf_id`%s%s",
                           out->schema ? ": schema " : "", out->schema ? out->schema : "");
  n.structural = slice_starts (name, "[pytorch|");
  n.has_schema = schema.size > 0;
  n.leaf = true;
  out->nodes = arena_grow (r->job->scratch, out->nodes, &r->node_room, (int64_t)out->n_nodes + 1,
                           sizeof *out->nodes, r->job->err);
  n.name = intern_add (&out->names, name, false, r->job->err);
  if (!out->nodes || n.name < 0)
    return false;
  n.first_mention = (int32_t)out->n_mentions;
  et_schema_masks masks = et_read_schema (schema);
  if (!n.structural && (!add_mentions (r, out->n_nodes, &r->inputs, false, masks, n.has_schema) ||
                        !add_mentions (r, out->n_nodes, &r->outputs, true, masks, n.has_schema)))
    return false;
  n.n_mentions = (int32_t)(out->n_mentions - n.first_mention);
  out->nodes[out->n_nodes++] = n;
  return (out->n_nodes < INT32_MAX - 1 && out->n_mentions < INT32_MAX - 1) ||
         stream_fail (s, "more than 2^31 nodes");
}

static bool read_document (reader *r) {
  stream *s = &r->s;
  slice key, text;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    bool ok = true;
    if (slice_is (key, "schema")) {
      ok = stream_text (s, &text);
      r->out->schema = ok ? slice_name (text, r->job->a, r->job->err) : NULL;
      ok = r->out->schema;
    } else if (slice_is (key, "pid") && stream_peek (s) == STREAM_NUMBER) {
      ok = stream_int (s, &r->out->pid);
    } else if (slice_is (key, "nodes")) {
      ok = stream_array (s);
      while (ok && stream_element (s))
        ok = read_node (r);
    } else
      ok = stream_skip (s);
    if (!ok || s->failed)
      return false;
  }
  return stream_end (s);
}

/* ---- parents and phases ---- */

static bool find_parents (import_job *job, et *e) {
  id_map ids = id_map_new (job->scratch);
  for (int32_t i = 0; i < e->n_nodes; i++) {
    int32_t *at = id_map_at (&ids, e->nodes[i].id, job->err);
    if (!at)
      return false;
    *at = i;
  }
  for (int32_t i = 0; i < e->n_nodes; i++) {
    int32_t parent = id_map_find (&ids, e->nodes[i].parent_id);
    if (parent < 0)
      continue;
    /* Nodes around it were entered before: this also leaves no circles. */
    if (e->nodes[parent].record_id >= e->nodes[i].record_id)
      continue;
    e->nodes[i].parent = parent;
    e->nodes[parent].leaf = false;
  }
  return true;
}

static uint8_t own_phase (const et *e, const et_node *n) {
  slice name = e->names.texts[n->name];
  if (slice_starts (name, "Optimizer.step"))
    return PHASE_OPT;
  if (n->forward_thread != 0 || (!n->annotation && call_is_backward (name)))
    return PHASE_BWD;
  return PHASE_FWD;
}

static bool allocates (slice name) {
  return slice_starts (name, "aten::empty") || slice_starts (name, "aten::new_empty");
}

/* The optimizer anywhere above wins over backward anywhere above.  Climbs until a node is known,
   and marks the way, so each node is climbed over once. */
static bool tell_phases (import_job *job, et *e) {
  int32_t *way = NEW (job->scratch, e->n_nodes, int32_t, job->err);
  if (!ALLOC (job->scratch, e->walk, e->n_nodes, job->err) || !way)
    return false;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    int32_t n = 0, at = i;
    while (at >= 0 && e->walk[at].phase == 0) {
      way[n++] = at;
      at = e->nodes[at].parent;
    }
    uint8_t above = at >= 0 ? e->walk[at].phase : PHASE_FWD;
    while (n > 0) {
      int32_t node = way[--n];
      uint8_t own = own_phase (e, &e->nodes[node]);
      above = above == PHASE_OPT || own == PHASE_OPT   ? PHASE_OPT
              : above == PHASE_BWD || own == PHASE_BWD ? PHASE_BWD
                                                       : PHASE_FWD;
      e->walk[node] = (walk_node){ e->nodes[node].record_id, e->nodes[node].parent, above,
                                   allocates (e->names.texts[e->nodes[node].name]) };
    }
  }
  return true;
}

bool et_read (import_job *job, const import_text *file, et *out) {
  *out = (et){ .names = intern_new (job->scratch), .pid = -1, .stranger = { "", 0, false } };
  reader r = { .job = job, .out = out, .s = stream_open (file->text, file->size, job->err) };
  if (!read_document (&r))
    return false;
  if (out->n_nodes == 0)
    return error_set (job->err, ERR_infeasible,
                      "an execution trace without nodes: nothing ran while it was recorded "
                      "(docs/record.md)");
  const char *version =
      arena_format (job->a, job->err, "schema %s", out->schema ? out->schema : "not named");
  if (!version)
    return false;
  report_version (job, file, version);
  return find_parents (job, out);
}

/* ---- one device ---- */

enum { DEVICES = 64 };

bool et_choose_device (import_job *job, const et *e, int32_t *device) {
  int64_t n[DEVICES] = { 0 }, most = 0;
  int32_t asked = job->options.device;
  *device = asked >= 0 ? asked : -1;
  for (int64_t i = 0; i < e->n_mentions; i++)
    if (e->mentions[i].device >= 0 && e->mentions[i].device < DEVICES)
      n[e->mentions[i].device]++;
  if (asked >= 0 && e->devices && (asked >= DEVICES || n[asked] == 0))
    return error_set (job->err, ERR_infeasible, "no call names a tensor of device %d", asked);
  for (int32_t i = 0; asked < 0 && i < DEVICES; i++)
    if (n[i] > most) {
      most = n[i];
      *device = i;
    }
  return true;
}

/* A storage on another device takes nothing of this one's memory.  A device without a number may be
   any. */
static void keep_device (import_job *job, et *e, int32_t device) {
  int64_t kept = 0;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    et_node *n = &e->nodes[i];
    int64_t from = n->first_mention, to = from + n->n_mentions;
    n->first_mention = (int32_t)kept;
    for (int64_t m = from; m < to; m++)
      if (device < 0 || e->mentions[m].device < 0 || e->mentions[m].device == device)
        e->mentions[kept++] = e->mentions[m];
    n->n_mentions = (int32_t)(kept - n->first_mention);
  }
  if (kept < e->n_mentions)
    report_warn (job, "mentions of tensors of other devices left out", e->n_mentions - kept, NULL);
  e->n_mentions = kept;
}

static bool need_tensors (import_job *job, const et *e) {
  if (e->n_mentions)
    return true;
  slice name = e->stranger;
  if (name.size)
    return error_set (job->err, ERR_infeasible,
                      "no call names a tensor of a GPU that is known, but some are on %.*s: "
                      "docs/import.md has the devices that are",
                      (int)(name.size < 40 ? name.size : 40), name.at);
  return error_set (job->err, ERR_infeasible,
                    "no call names a tensor of a GPU (a run on the CPU?): record the step on one "
                    "(docs/record.md)");
}

bool et_settle (import_job *job, et *e, int32_t device, bool one_step) {
  keep_device (job, e, device);
  if (!need_tensors (job, e) || (one_step && !et_choose_step (job, e)) || !tell_phases (job, e) ||
      !generations_split (job, e->walk, e->mentions, e->n_mentions, &e->generations))
    return false;
  et_mark_kept (e);
  return true;
}
