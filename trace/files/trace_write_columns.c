/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace to JSON, packed: a column for each field that is not the default throughout. */
#include "trace/files/trace_write_inner.h"

typedef enum op_column {
  OP_COLLECTIVE,
  OP_COMPUTE,
  OP_GAP,
  OP_GROUP,
  OP_GROUP_BYTES,
  OP_NAME,
  OP_NS,
  OP_PARTS,
  OP_PHASE,
  OP_STREAM,
  OP_WORKSPACE
} op_column;

static bool op_is_default (const op *o, op_column column) {
  switch (column) {
  case OP_COLLECTIVE:
    return !o->collective;
  case OP_COMPUTE:
    return !o->compute;
  case OP_GAP:
    return o->gap_ns == 0;
  case OP_GROUP:
    return !o->group;
  case OP_GROUP_BYTES:
    return o->group_bytes == 0;
  case OP_NAME:
    return !*o->name;
  case OP_NS:
    return false; /* tells the number of rows, whatever else is absent */
  case OP_PARTS:
    return o->parts == 1;
  case OP_PHASE:
    return o->phase == OP_OTHER;
  case OP_STREAM:
    return o->stream == 0;
  case OP_WORKSPACE:
    return o->workspace_bytes == 0;
  }
  return true;
}

static void put_op_cell (json_writer *w, const op *o, op_column column) {
  if (column != OP_NS && op_is_default (o, column)) {
    json_put_null (w);
    return;
  }
  switch (column) {
  case OP_COLLECTIVE:
    json_put_text (w, collective_names[o->collective]);
    break;
  case OP_COMPUTE:
    json_put_raw (w, o->compute);
    break;
  case OP_GAP:
    json_put_int (w, o->gap_ns);
    break;
  case OP_GROUP:
    json_put_text (w, o->group);
    break;
  case OP_GROUP_BYTES:
    json_put_int (w, o->group_bytes);
    break;
  case OP_NAME:
    json_put_text (w, o->name);
    break;
  case OP_NS:
    json_put_int (w, o->ns);
    break;
  case OP_PARTS:
    json_put_int (w, o->parts);
    break;
  case OP_PHASE:
    json_put_text (w, op_phase_names[o->phase]);
    break;
  case OP_STREAM:
    json_put_int (w, o->stream);
    break;
  case OP_WORKSPACE:
    json_put_int (w, o->workspace_bytes);
    break;
  }
}

static void put_op_column (json_writer *w, const trace *t, const char *key, op_column column) {
  bool any = false;
  for (int32_t i = 0; i < t->n_ops && !any; i++)
    any = !op_is_default (&t->ops[i], column);
  if (!any)
    return;
  json_add_array (w, key);
  for (int32_t i = 0; i < t->n_ops; i++)
    put_op_cell (w, &t->ops[i], column);
  json_close_array (w);
}

static void put_list_column (json_writer *w, const trace *t, const char *key, size_t field) {
  int64_t total = 0;
  for (int32_t i = 0; i < t->n_ops; i++)
    total += ((const index_list *)((const char *)&t->ops[i] + field))->count;
  if (total == 0)
    return;
  json_add_object (w, key);
  json_add_array (w, "index");
  for (int32_t i = 0; i < t->n_ops; i++) {
    const index_list *list = (const index_list *)((const char *)&t->ops[i] + field);
    for (int32_t j = 0; j < list->count; j++)
      json_put_int (w, list->at[j]);
  }
  json_close_array (w);
  json_add_array (w, "offset");
  int64_t offset = 0;
  json_put_int (w, 0);
  for (int32_t i = 0; i < t->n_ops; i++) {
    offset += ((const index_list *)((const char *)&t->ops[i] + field))->count;
    json_put_int (w, offset);
  }
  json_close_array (w);
  json_close_object (w);
}

void trace_write_ops (json_writer *w, const trace *t) {
  json_add_object (w, "ops");
  put_list_column (w, t, "after", offsetof (op, after));
  put_op_column (w, t, "collective", OP_COLLECTIVE);
  put_op_column (w, t, "compute", OP_COMPUTE);
  put_list_column (w, t, "digested", offsetof (op, digested));
  put_op_column (w, t, "gap_ns", OP_GAP);
  put_op_column (w, t, "group", OP_GROUP);
  put_op_column (w, t, "group_bytes", OP_GROUP_BYTES);
  put_op_column (w, t, "name", OP_NAME);
  put_op_column (w, t, "ns", OP_NS);
  put_op_column (w, t, "parts", OP_PARTS);
  put_op_column (w, t, "phase", OP_PHASE);
  put_list_column (w, t, "reads", offsetof (op, reads));
  put_list_column (w, t, "side", offsetof (op, side));
  put_op_column (w, t, "stream", OP_STREAM);
  put_list_column (w, t, "unknown", offsetof (op, unknown));
  put_op_column (w, t, "workspace_bytes", OP_WORKSPACE);
  put_list_column (w, t, "writes", offsetof (op, writes));
  json_close_object (w);
}

typedef enum tensor_column {
  TENSOR_AGAIN,
  TENSOR_BORN,
  TENSOR_BYTES,
  TENSOR_DIES,
  TENSOR_KIND,
  TENSOR_NAME,
  TENSOR_PERSISTENT,
  TENSOR_PINNED,
  TENSOR_PLACED,
  TENSOR_SPLIT
} tensor_column;

static bool tensor_is_default (const tensor *x, tensor_column column) {
  switch (column) {
  case TENSOR_AGAIN:
    return x->again == AGAIN_FREELY;
  case TENSOR_BORN:
    return x->born_before == NO_OP;
  case TENSOR_BYTES:
    return false;
  case TENSOR_DIES:
    return x->dies_after == NO_OP;
  case TENSOR_KIND:
    return x->kind == TENSOR_TEMPORARY;
  case TENSOR_NAME:
    return !*x->name;
  case TENSOR_PERSISTENT:
    return x->persistent == trace_write_persists (x);
  case TENSOR_PINNED:
    return !x->pinned;
  case TENSOR_PLACED:
    return !x->placed;
  case TENSOR_SPLIT:
    return !x->split;
  }
  return true;
}

static void put_tensor_cell (json_writer *w, const tensor *x, tensor_column column) {
  if (column != TENSOR_BYTES && tensor_is_default (x, column)) {
    json_put_null (w);
    return;
  }
  switch (column) {
  case TENSOR_AGAIN:
    json_put_text (w, tensor_again_names[x->again]);
    break;
  case TENSOR_BORN:
    json_put_int (w, x->born_before);
    break;
  case TENSOR_BYTES:
    json_put_int (w, x->bytes);
    break;
  case TENSOR_DIES:
    json_put_int (w, x->dies_after);
    break;
  case TENSOR_KIND:
    json_put_text (w, tensor_kind_names[x->kind]);
    break;
  case TENSOR_NAME:
    json_put_text (w, x->name);
    break;
  case TENSOR_PERSISTENT:
    json_put_bool (w, x->persistent);
    break;
  case TENSOR_PINNED:
    json_put_bool (w, x->pinned);
    break;
  case TENSOR_PLACED:
    json_put_bool (w, x->placed);
    break;
  case TENSOR_SPLIT:
    json_put_text (w, "batch");
    break;
  }
}

static void put_tensor_column (json_writer *w, const trace *t, const char *key,
                               tensor_column column) {
  bool any = column == TENSOR_BYTES;
  for (int32_t i = 0; i < t->n_tensors && !any; i++)
    any = !tensor_is_default (&t->tensors[i], column);
  if (!any)
    return;
  json_add_array (w, key);
  for (int32_t i = 0; i < t->n_tensors; i++)
    put_tensor_cell (w, &t->tensors[i], column);
  json_close_array (w);
}

void trace_write_tensors (json_writer *w, const trace *t) {
  static const char *const keys[] = { "again", "born_before", "bytes",  "dies_after", "kind",
                                      "name",  "persistent",  "pinned", "placed",     "split" };
  json_add_object (w, "tensors");
  for (int column = TENSOR_AGAIN; column <= TENSOR_SPLIT; column++)
    put_tensor_column (w, t, keys[column], (tensor_column)column);
  json_close_object (w);
}
