/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A trace to JSON: plain, packed, and the canonical form that the digest is taken of. */
#include "trace/files/trace_write_inner.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static void put_list (json_writer *w, const char *key, const index_list *list, bool empty_too) {
  if (list->count || empty_too)
    json_add_indices (w, key, list->at, list->count);
}

void trace_write_op_index (json_writer *w, int32_t op) {
  if (op == NO_OP)
    json_put_null (w);
  else
    json_put_int (w, op);
}

bool trace_write_persists (const tensor *x) {
  return x->kind == TENSOR_PARAMETER || x->kind == TENSOR_OPTIMIZER;
}

/* `all`: defaults are written out, but those of `again` and `placed`, so that traces without have
   the digest that they always had. Keys in sorted order. */
static void put_tensor (json_writer *w, const tensor *x, bool all) {
  json_open_object (w);
  if (x->again != AGAIN_FREELY)
    json_add_text (w, "again", tensor_again_names[x->again]);
  if (all || x->born_before != NO_OP) {
    json_put_key (w, "born_before");
    trace_write_op_index (w, x->born_before);
  }
  json_add_int (w, "bytes", x->bytes);
  if (all || x->dies_after != NO_OP) {
    json_put_key (w, "dies_after");
    trace_write_op_index (w, x->dies_after);
  }
  if (all || x->kind != TENSOR_TEMPORARY)
    json_add_text (w, "kind", tensor_kind_names[x->kind]);
  if (all || *x->name)
    json_add_text (w, "name", x->name);
  if (all || x->persistent != trace_write_persists (x))
    json_add_bool (w, "persistent", x->persistent);
  if (all || x->pinned)
    json_add_bool (w, "pinned", x->pinned);
  if (x->placed)
    json_add_bool (w, "placed", true);
  if (all || x->split)
    json_add_text (w, "split", x->split ? "batch" : NULL);
  json_close_object (w);
}

/* Also in the canonical form, there are none of these without several streams or ranks: so a trace
   of one has the digest that it always had. */
static void put_lists_of_streams (json_writer *w, const op *o) {
  put_list (w, "after", &o->after, false);
  if (o->collective)
    json_add_text (w, "collective", collective_names[o->collective]);
}

static void put_group (json_writer *w, const op *o) {
  if (o->group)
    json_add_text (w, "group", o->group);
  if (o->group_bytes)
    json_add_int (w, "group_bytes", o->group_bytes);
}

static void put_op (json_writer *w, const op *o, bool all) {
  json_open_object (w);
  put_lists_of_streams (w, o);
  if (all || o->compute)
    json_add_raw (w, "compute", o->compute ? o->compute : "null");
  if (!all) /* how it is known what an op writes is no part of what a plan is for */
    put_list (w, "digested", &o->digested, false);
  if (all || o->gap_ns)
    json_add_int (w, "gap_ns", o->gap_ns);
  put_group (w, o);
  if (all || *o->name)
    json_add_text (w, "name", o->name);
  if (all || o->ns)
    json_add_int (w, "ns", o->ns);
  if (all || o->parts != 1)
    json_add_int (w, "parts", o->parts);
  if (all || o->phase != OP_OTHER)
    json_add_text (w, "phase", op_phase_names[o->phase]);
  put_list (w, "reads", &o->reads, all);
  put_list (w, "side", &o->side, all);
  if (o->stream)
    json_add_int (w, "stream", o->stream);
  if (!all)
    put_list (w, "unknown", &o->unknown, false);
  if (all || o->workspace_bytes)
    json_add_int (w, "workspace_bytes", o->workspace_bytes);
  put_list (w, "writes", &o->writes, all);
  json_close_object (w);
}

/* A digest needs no more of the text than a piece at a time: the whole of a trace of 100,000 ops is
   as large as all that a plan takes. NULL: the text is wanted. */
static void pass_on (json_writer *w, sha256 *digest) {
  enum { PIECE = 1 << 16 };
  if (!digest || w->out.size < PIECE)
    return;
  sha256_add (digest, w->out.data, (size_t)w->out.size);
  w->out.size = 0;
}

static void put_rows (json_writer *w, const trace *t, bool all, sha256 *digest) {
  json_add_array (w, "ops");
  for (int32_t i = 0; i < t->n_ops; i++) {
    put_op (w, &t->ops[i], all);
    pass_on (w, digest);
  }
  json_close_array (w);
}

static void put_tensor_rows (json_writer *w, const trace *t, bool all, sha256 *digest) {
  json_add_array (w, "tensors");
  for (int32_t i = 0; i < t->n_tensors; i++) {
    put_tensor (w, &t->tensors[i], all);
    pass_on (w, digest);
  }
  json_close_array (w);
}

static void put_samples (json_writer *w, const trace *t) {
  json_add_array (w, "ns_samples");
  for (int32_t i = 0; i < t->n_samples; i++) {
    json_open_array (w);
    for (int32_t j = 0; j < t->n_ops; j++)
      json_put_int (w, t->ns_samples[(int64_t)i * t->n_ops + j]);
    json_close_array (w);
  }
  json_close_array (w);
}

static void put_source (json_writer *w, const trace_source *s) {
  json_add_object (w, "source");
  if (s->n_checks) {
    json_add_array (w, "checks");
    for (int32_t i = 0; i < s->n_checks; i++)
      json_put_text (w, s->checks[i]);
    json_close_array (w);
  }
  json_add_text (w, "confidence", confidence_words[s->confidence]);
  json_add_text (w, "detail", s->detail);
  if (s->device && *s->device)
    json_add_text (w, "device", s->device);
  if (s->doubt && *s->doubt)
    json_add_text (w, "doubt", s->doubt);
  if (s->inputs)
    json_add_raw (w, "inputs", s->inputs);
  json_add_text (w, "kind", s->kind);
  if (s->made_for && *s->made_for)
    json_add_text (w, "made_for", s->made_for);
  if (s->zoo)
    json_add_raw (w, "zoo", s->zoo);
  json_close_object (w);
}

bool trace_text (const trace *t, trace_layout layout, bytes *out, error *err) {
  assert (t && out);
  json_writer w;
  json_begin_object (&w, 2);
  json_add_int (&w, "batch", t->batch);
  json_add_text (&w, "format", TRACE_FORMAT);
  json_add_text (&w, "name", t->name);
  if (t->n_samples)
    put_samples (&w, t);
  if (layout == TRACE_PACKED)
    trace_write_ops (&w, t);
  else
    put_rows (&w, t, false, NULL);
  put_source (&w, &t->source);
  if (layout == TRACE_PACKED)
    trace_write_tensors (&w, t);
  else
    put_tensor_rows (&w, t, false, NULL);
  json_close_object (&w);
  return json_finish (&w, out, err);
}

bool trace_store (const trace *t, const char *path, trace_layout layout, error *err) {
  assert (t && path);
  bytes text;
  return trace_text (t, layout, &text, err) && file_store (path, &text, err);
}

static bool canonical (const trace *t, sha256 *digest, bytes *out, error *err) {
  json_writer w;
  json_begin_object (&w, 0);
  json_add_int (&w, "batch", t->batch);
  json_add_text (&w, "format", TRACE_FORMAT);
  put_rows (&w, t, true, digest);
  put_tensor_rows (&w, t, true, digest);
  json_close_object (&w);
  return json_finish (&w, out, err);
}

bool trace_digest (const trace *t, char digest[TRACE_DIGEST], error *err) {
  assert (t && digest);
  bytes last;
  sha256 s;
  sha256_start (&s);
  if (!canonical (t, &s, &last, err))
    return false;
  sha256_add (&s, last.data, (size_t)last.size);
  bytes_free (&last);
  memcpy (digest, "sha256:", 7);
  sha256_text (&s, digest + 7);
  return true;
}
