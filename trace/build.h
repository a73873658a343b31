/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace made in memory, by the zoo and the importers: tensors and ops are appended. build_finish
   validates, and reports the first failure of all calls. */
#pragma once

#include "trace/trace.h"

typedef struct trace_builder trace_builder;

trace_builder *build_new (arena *a, const char *name, int64_t batch, error *err) MUST_CHECK;
void build_source (trace_builder *b, const char *kind, const char *detail);
/* The device file that it was made for, and its request, which lives as long as the trace. */
void build_zoo (trace_builder *b, const char *made_for, const char *request);
/* How sure it is, and why not more; doubt may be NULL. */
void build_confidence (trace_builder *b, confidence c, const char *doubt);

/* The index of the new tensor. persistent is set from the kind; the name is copied. */
int32_t build_tensor (trace_builder *b, const char *name, int64_t bytes, tensor_kind kind);
/* The tensor, to set further fields; valid until the next build_tensor. */
tensor *build_tensor_at (trace_builder *b, int32_t index);
int32_t build_tensors (const trace_builder *b);

/* Starts an op; reads, writes and side that follow belong to it. Returns its index. */
int32_t build_op (trace_builder *b, const char *name, op_phase phase, int64_t ns);
op *build_op_at (trace_builder *b, int32_t index); /* its lists are not set before build_finish */
int32_t build_ops (const trace_builder *b);
/* A tensor named twice in one list of an op is kept once. */
void build_read (trace_builder *b, int32_t tensor);
void build_write (trace_builder *b, int32_t tensor);
void build_side (trace_builder *b, int32_t tensor); /* also a write */
/* The op waits for one before it. */
void build_after (trace_builder *b, int32_t before);
/* How it is known whether the op writes the tensor: by digests, or not at all. */
void build_origin (trace_builder *b, int32_t tensor, bool digested);
void build_compute (trace_builder *b, const char *canonical_json);

/* One more row of durations, n_ops long at the end; copied. */
void build_samples (trace_builder *b, const int64_t *ns, int32_t count);

/* Memory is out: later calls do nothing, and build_finish reports it. */
bool build_failed (const trace_builder *b);
trace *build_finish (trace_builder *b, error *err) MUST_CHECK;
