/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/build.h"

#include <assert.h>
#include <string.h>

enum { READS, WRITES, SIDE, DIGESTED, UNKNOWN, AFTER, LISTS };

/* The place of an op's indices in the one growing pool: it moves, so lists are set at the end. */
typedef struct op_rows {
  int64_t first[LISTS];
  int32_t count[LISTS];
} op_rows;

struct trace_builder {
  arena *arena;
  trace *trace;
  error err;
  int64_t tensor_room, op_room, rows_room, index_room[LISTS], index_used[LISTS], sample_room;
  op_rows *rows;
  int32_t *index[LISTS];
  int32_t *named_by[LISTS]; /* per tensor: the last op + 1 that names it in this list */
  int64_t named_room[LISTS];
  /* After a failure there may be no row to hand out: these, which nobody reads. */
  tensor spare_tensor;
  op spare_op;
};

trace_builder *build_new (arena *a, const char *name, int64_t batch, error *err) {
  trace_builder *b = NEW (a, 1, trace_builder, err);
  if (!b)
    return NULL;
  b->arena = a;
  if (!ALLOC (a, b->trace, 1, err))
    return NULL;
  b->trace->name = arena_string (a, name, err);
  b->trace->batch = batch;
  b->trace->source =
      (trace_source){ .kind = "", .detail = "", .device = "", .made_for = "", .doubt = "" };
  return b->trace->name ? b : NULL;
}

static const char *copy (trace_builder *b, const char *text) {
  const char *made = text && *text ? arena_string (b->arena, text, &b->err) : "";
  return made ? made : "";
}

void build_source (trace_builder *b, const char *kind, const char *detail) {
  b->trace->source = (trace_source){
    .kind = copy (b, kind), .detail = copy (b, detail), .device = "", .made_for = "", .doubt = ""
  };
}

void build_zoo (trace_builder *b, const char *made_for, const char *request) {
  b->trace->source.made_for = copy (b, made_for);
  b->trace->source.zoo = request;
}

void build_confidence (trace_builder *b, confidence c, const char *doubt) {
  b->trace->source.confidence = c;
  b->trace->source.doubt = copy (b, doubt);
}

static bool grow (trace_builder *b, void *things, int64_t *room, int64_t need, size_t size) {
  void **table = things;
  void *moved = b->err.code ? NULL : arena_grow (b->arena, *table, room, need, size, &b->err);
  if (moved)
    *table = moved;
  return moved;
}

int32_t build_tensor (trace_builder *b, const char *name, int64_t bytes, tensor_kind kind) {
  assert (name && bytes >= 0);
  trace *t = b->trace;
  if (!grow (b, &t->tensors, &b->tensor_room, (int64_t)t->n_tensors + 1, sizeof *t->tensors))
    return 0;
  t->tensors[t->n_tensors] =
      (tensor){ .name = copy (b, name),
                .bytes = bytes,
                .kind = (uint8_t)kind,
                .persistent = kind == TENSOR_PARAMETER || kind == TENSOR_OPTIMIZER,
                .born_before = NO_OP,
                .dies_after = NO_OP };
  return t->n_tensors++;
}

tensor *build_tensor_at (trace_builder *b, int32_t index) {
  return index < b->trace->n_tensors ? &b->trace->tensors[index] : &b->spare_tensor;
}

bool build_failed (const trace_builder *b) {
  return b->err.code != ERR_none;
}

int32_t build_tensors (const trace_builder *b) {
  return b->trace->n_tensors;
}

int32_t build_op (trace_builder *b, const char *name, op_phase phase, int64_t ns) {
  assert (name && ns >= 0);
  trace *t = b->trace;
  int64_t need = (int64_t)t->n_ops + 1;
  if (!grow (b, &t->ops, &b->op_room, need, sizeof *t->ops) ||
      !grow (b, &b->rows, &b->rows_room, need, sizeof *b->rows))
    return 0;
  t->ops[t->n_ops] = (op){ .name = copy (b, name), .phase = phase, .ns = ns, .parts = 1 };
  op_rows *rows = &b->rows[t->n_ops];
  for (int which = READS; which < LISTS; which++) {
    rows->first[which] = b->index_used[which];
    rows->count[which] = 0;
  }
  return t->n_ops++;
}

op *build_op_at (trace_builder *b, int32_t index) {
  return index < b->trace->n_ops ? &b->trace->ops[index] : &b->spare_op;
}

void build_compute (trace_builder *b, const char *canonical_json) {
  if (!b->err.code && b->trace->n_ops > 0)
    b->trace->ops[b->trace->n_ops - 1].compute = copy (b, canonical_json);
}

int32_t build_ops (const trace_builder *b) {
  return b->trace->n_ops;
}

static void add (trace_builder *b, int which, int32_t tensor) {
  if (b->err.code || b->trace->n_ops == 0)
    return;
  op_rows *rows = &b->rows[b->trace->n_ops - 1];
  if (tensor >= 0) { /* anything else is build_finish's to refuse */
    if (!grow (b, &b->named_by[which], &b->named_room[which], (int64_t)tensor + 1,
               sizeof *b->named_by[which]))
      return;
    if (b->named_by[which][tensor] == b->trace->n_ops)
      return;
    b->named_by[which][tensor] = b->trace->n_ops;
  }
  if (!grow (b, &b->index[which], &b->index_room[which], b->index_used[which] + 1,
             sizeof *b->index[which]))
    return;
  b->index[which][b->index_used[which]++] = tensor;
  rows->count[which]++;
}

void build_read (trace_builder *b, int32_t tensor) {
  add (b, READS, tensor);
}

void build_write (trace_builder *b, int32_t tensor) {
  add (b, WRITES, tensor);
}

void build_side (trace_builder *b, int32_t tensor) {
  add (b, WRITES, tensor);
  add (b, SIDE, tensor);
}

void build_after (trace_builder *b, int32_t before) {
  add (b, AFTER, before);
}

void build_origin (trace_builder *b, int32_t tensor, bool digested) {
  add (b, digested ? DIGESTED : UNKNOWN, tensor);
}

void build_samples (trace_builder *b, const int64_t *ns, int32_t count) {
  assert (count >= 0 && (ns || count == 0));
  trace *t = b->trace;
  if (b->err.code)
    return;
  if (count != t->n_ops) {
    error_set (&b->err, ERR_internal, "%d durations for %d ops", count, t->n_ops);
    return;
  }
  if (!grow (b, &t->ns_samples, &b->sample_room, (int64_t)(t->n_samples + 1) * count,
             sizeof *t->ns_samples))
    return;
  memcpy (t->ns_samples + (int64_t)t->n_samples * count, ns, (size_t)count * sizeof *ns);
  t->n_samples++;
}

trace *build_finish (trace_builder *b, error *err) {
  trace *t = b->trace;
  if (b->err.code) {
    if (err && !err->code)
      *err = b->err;
    return NULL;
  }
  for (int32_t i = 0; i < t->n_ops; i++) {
    index_list *lists[LISTS] = { &t->ops[i].reads,    &t->ops[i].writes,  &t->ops[i].side,
                                 &t->ops[i].digested, &t->ops[i].unknown, &t->ops[i].after };
    for (int which = READS; which < LISTS; which++)
      if (b->rows[i].count[which])
        *lists[which] =
            (index_list){ b->index[which] + b->rows[i].first[which], b->rows[i].count[which] };
  }
  t->n_streams = trace_count_streams (t);
  return trace_validate (t, err) ? t : NULL;
}
