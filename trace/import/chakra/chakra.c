/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chakra .et: an execution trace and a Kineto file that another tool has linked.  Nodes of the CPU
   name tensors, nodes of the GPU have durations; there are no times of start, so no gaps.

   One op per group of CPU nodes with the same record function id (its pieces are named "op(0)",
   "op(1)"), if the group owns GPU nodes; groups go in order of their id. */
#include <assert.h>
#include <string.h>

#include "trace/import/chakra/chakra.h"

typedef struct reader {
  import_job *job;
  chakra *out;
  wire w;
  int64_t node_room, tensor_room, dep_room;
  bool output; /* which side is being read */
} reader;

static bool keep_tensor (void *context, const python_tensor *t) {
  reader *r = context;
  chakra *c = r->out;
  if (t->bytes == 0) { /* without elements: they all share one id */
    c->empty_tensors++;
    return true;
  }
  if (c->device < 0)
    c->device = t->device;
  c->several_devices |= t->device >= 0 && t->device != c->device;
  if (!GROW (r->job->scratch, c->tensors, &r->tensor_room, c->n_tensors + 1, r->job->err))
    return false;
  c->tensors[c->n_tensors++] =
      (chakra_tensor){ t->storage, t->bytes, t->own_bytes, t->argument, r->output, false };
  return true;
}

/* One side of a node: {1 values, 2 shapes, 3 types}, all of them Python text. */
static bool read_side (reader *r, const wire *node, const wire_field *f, bool output) {
  wire side = wire_inside (node, f);
  wire_field value;
  r->output = output;
  while (wire_next (&side, &value))
    if (value.number == 1 && value.kind == 2 && !python_tensors (&side, &value, keep_tensor, r))
      return false;
  return r->job->err->code == ERR_none;
}

/* Linkers differ in how they call it; all of them write it as a number or its digits. */
static bool is_stream (slice name) {
  static const char *const names[] = { "stream", "stream_id", "Stream", "streamId", "cuda_stream" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (slice_is (name, names[i]))
      return true;
  return false;
}

/* {1 name, oneof value}: a number of some width, or a text. */
static bool read_attribute (reader *r, const wire *node, const wire_field *f, chakra_node *n,
                            slice *schema) {
  wire attribute = wire_inside (node, f);
  wire_field value;
  slice name = { "", 0, false }, text = { "", 0, false };
  int64_t number = 0;
  while (wire_next (&attribute, &value)) {
    if (value.number == 1 && value.kind == 2)
      name = wire_slice (&attribute, &value);
    else if (value.kind == 0)
      number = (int64_t)value.value;
    else if (value.kind == 2)
      text = wire_slice (&attribute, &value);
  }
  if (slice_is (name, "is_cpu_op"))
    n->is_cpu = number != 0;
  else if (slice_is (name, "rf_id"))
    n->record_id = number;
  else if (slice_is (name, "tid"))
    n->thread = number;
  else if (is_stream (name)) {
    if (text.size == 0 || slice_decimal (text, 0, &number))
      n->stream = number;
  } else if (slice_is (name, "fw_tid"))
    n->forward_thread = number;
  else if (slice_is (name, "op_schema"))
    *schema = text;
  return r->job->err->code == ERR_none;
}

static bool add_dep (reader *r, int64_t id, bool data, chakra_node *n) {
  chakra *c = r->out;
  if (data && n->first_data_dep < 0)
    n->first_data_dep = id;
  if (!GROW (r->job->scratch, c->deps, &r->dep_room, c->n_deps + 1, r->job->err))
    return false;
  c->deps[c->n_deps++] = (chakra_dep){ id, data };
  return true;
}

static bool read_deps (reader *r, const wire *node, const wire_field *f, bool data,
                       chakra_node *n) {
  if (f->kind == 0)
    return add_dep (r, (int64_t)f->value, data, n);
  wire packed = wire_inside (node, f);
  while (packed.at < packed.end) {
    uint64_t id;
    if (!wire_varint (&packed, &id) || !add_dep (r, (int64_t)id, data, n))
      return false;
  }
  return true;
}

static bool read_node (reader *r, wire node) {
  chakra *c = r->out;
  if (!GROW (r->job->scratch, c->nodes, &r->node_room, (int64_t)c->n_nodes + 1, r->job->err) ||
      c->n_nodes == INT32_MAX - 1)
    return false;
  chakra_node n = { .id = -1,
                    .stream = -1,
                    .first_data_dep = -1,
                    .record_id = -1,
                    .name = { "", 0, false },
                    .first_tensor = c->n_tensors };
  slice schema = { "", 0, false };
  int64_t start = node.at;
  wire_field f;
  while (wire_next (&node, &f)) {
    bool ok = true;
    if (f.number == 2 && f.kind == 2)
      n.name = wire_slice (&node, &f);
    else if (f.number == 1 && f.kind == 0)
      n.id = (int64_t)f.value;
    else if (f.number == 3 && f.kind == 0)
      n.type = (int64_t)f.value;
    else if (f.number == 6)
      n.has_start = true;
    else if (f.number == 7 && f.kind == 0) {
      n.has_duration = true;
      n.us = (int64_t)f.value;
    } else if ((f.number == 4 || f.number == 5) && (f.kind == 0 || f.kind == 2))
      ok = read_deps (r, &node, &f, f.number == 5, &n);
    else if ((f.number == 8 || f.number == 9) && f.kind == 2)
      ok = read_side (r, &node, &f, f.number == 9);
    else if (f.number == 10 && f.kind == 2)
      ok = read_attribute (r, &node, &f, &n, &schema);
    if (!ok)
      return false;
  }
  if (r->job->err->code != ERR_none)
    return false;
  if (n.id < 0 || n.us < 0 || n.us > MOST_NS / 1000)
    return error_set (r->job->err, ERR_input,
                      "byte %lld: a node without an id, or of absurd length", (long long)start);
  n.n_tensors = c->n_tensors - n.first_tensor;
  et_schema_masks masks = et_read_schema (schema);
  for (int64_t i = n.first_tensor; i < c->n_tensors; i++) {
    chakra_tensor *t = &c->tensors[i];
    uint64_t bit = t->argument < 64 ? (uint64_t)1 << t->argument : 0;
    t->written = t->output ? !(masks.aliases & bit) : (masks.written & bit) != 0;
  }
  c->nodes[c->n_nodes++] = n;
  return true;
}

bool chakra_sniff (const char *text, int64_t size) {
  assert (size >= 0 && (text || size == 0));
  error err = { 0 };
  wire w = { text, 0, size, &err };
  uint64_t length;
  if (!wire_varint (&w, &length) || length == 0 || length > (uint64_t)(size - w.at))
    return false;
  wire message = { text, w.at, w.at + (int64_t)length, &err };
  wire_field f;
  int fields = 0;
  while (wire_next (&message, &f)) {
    if (f.number > 64)
      return false;
    fields++;
  }
  return err.code == ERR_none && fields > 0;
}

/* [length][message] over and over: metadata first, then nodes. */
bool chakra_read (import_job *job, const import_text *file, chakra *out) {
  *out = (chakra){ .device = -1 };
  reader r = { .job = job, .out = out, .w = { file->text, 0, file->size, job->err } };
  bool first = true;
  while (r.w.at < r.w.end) {
    uint64_t length;
    int64_t start = r.w.at;
    if (!wire_varint (&r.w, &length))
      return false;
    if (length > (uint64_t)(r.w.end - r.w.at))
      return error_set (job->err, ERR_input,
                        "byte %lld: a message of %llu bytes where %lld are left: the file is cut "
                        "short",
                        (long long)start, (unsigned long long)length,
                        (long long)(r.w.end - r.w.at));
    wire message = { file->text, r.w.at, r.w.at + (int64_t)length, job->err };
    r.w.at = message.end;
    if (!first && !read_node (&r, message))
      return false;
    first = false;
  }
  report_version (job, file, "length-delimited");
  return true;
}
