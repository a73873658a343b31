/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel and tensor JSON as simulators keep it: kernels in order of execution with their time and
   the ids of the tensors they take and make, tensors with their bytes and a "global" flag.

   It maps one to one.  Global tensors are persistent parameters; another tensor whose first use is
   a read came from outside, so it is an input, born before the first op.  Everything else is
   written before it is read; without a phase in the file an op's phase comes from its name. */
#include <stdio.h>
#include <string.h>

#include "trace/import/common/job.h"

typedef struct kernel_row {
  int64_t ns;
  const char *name;
  int64_t first, n_in, n_out; /* of `ids`: in, then out */
  int64_t at;                 /* in the text, for complaints */
} kernel_row;

typedef struct tensor_row {
  int64_t bytes;
  bool seen, global, written_first, used;
  op_phase first, last;
} tensor_row;

typedef struct kernel_file {
  kernel_row *kernels;
  int64_t n_kernels, kernel_room;
  tensor_row *tensors;
  int64_t n_tensors, tensor_room;
  int64_t *ids;
  int64_t n_ids, id_room;
  const char *name;
} kernel_file;

static bool read_ids (stream *s, import_job *job, kernel_file *f, int64_t *count) {
  if (!stream_array (s))
    return false;
  while (stream_element (s)) {
    if (!GROW (job->scratch, f->ids, &f->id_room, f->n_ids + 1, job->err))
      return false;
    int64_t at = s->at;
    if (!stream_int (s, &f->ids[f->n_ids]))
      return false;
    if (f->ids[f->n_ids] < 0 || f->ids[f->n_ids] >= INT32_MAX)
      return stream_fail_at (s, at, "tensor id %lld is out of range", (long long)f->ids[f->n_ids]);
    f->n_ids++;
    ++*count;
  }
  return !s->failed;
}

/* In and out may come in either order: out ids that were read first are moved behind the in ids. */
static void in_before_out (kernel_file *f, kernel_row *row, bool out_first, arena *scratch,
                           error *err) {
  if (!out_first || row->n_in == 0 || row->n_out == 0)
    return;
  arena_mark mark = arena_here (scratch);
  int64_t *copy = NEW (scratch, row->n_out, int64_t, err);
  if (copy) {
    int64_t *at = f->ids + row->first;
    memcpy (copy, at, (size_t)row->n_out * sizeof *at);
    memmove (at, at + row->n_out, (size_t)row->n_in * sizeof *at);
    memcpy (at + row->n_in, copy, (size_t)row->n_out * sizeof *at);
  }
  arena_back (scratch, mark);
}

static bool read_kernel (stream *s, import_job *job, kernel_file *f) {
  if (!GROW (job->scratch, f->kernels, &f->kernel_room, f->n_kernels + 1, job->err))
    return false;
  kernel_row row = { .ns = -1, .name = "", .first = f->n_ids, .at = s->at };
  int64_t id = f->n_kernels;
  bool out_first = false;
  slice key, text;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    bool ok = true;
    if (slice_is (key, "id"))
      ok = stream_int (s, &id);
    else if (slice_is (key, "name"))
      ok = stream_text (s, &text) && (row.name = slice_name (text, job->a, job->err));
    else if (slice_is (key, "in"))
      ok = row.n_in == 0 && read_ids (s, job, f, &row.n_in);
    else if (slice_is (key, "out")) {
      out_first = row.n_in == 0;
      ok = row.n_out == 0 && read_ids (s, job, f, &row.n_out);
    } else if (slice_is (key, "us"))
      ok = stream_us (s, &row.ns);
    else
      ok = stream_skip (s);
    if (!ok)
      return stream_fail (s, "one list `in` and one list `out` were expected");
  }
  if (s->failed)
    return false;
  if (row.ns < 0)
    return stream_fail_at (s, row.at,
                           "kernel %lld has no time `us`; times in cycles must be converted first",
                           (long long)f->n_kernels);
  if (id != f->n_kernels)
    return stream_fail_at (s, row.at, "kernel id %lld stands at place %lld; kernels are in order",
                           (long long)id, (long long)f->n_kernels);
  in_before_out (f, &row, out_first, job->scratch, job->err);
  f->kernels[f->n_kernels++] = row;
  return job->err->code == ERR_none;
}

static bool read_tensor (stream *s, import_job *job, kernel_file *f) {
  int64_t id = -1, bytes = -1, global = 0, at = s->at;
  slice key, text;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    bool ok = true;
    if (slice_is (key, "id"))
      ok = stream_int (s, &id);
    else if (slice_is (key, "bytes"))
      ok = stream_int (s, &bytes);
    else if (slice_is (key, "global")) {
      ok = stream_scalar (s, &text);
      global = ok && !slice_is (text, "0") && !slice_is (text, "false") && !slice_is (text, "null");
    } else
      ok = stream_skip (s);
    if (!ok)
      return false;
  }
  if (s->failed)
    return false;
  /* Ids are places in the table, so a huge one must not ask for a huge table. */
  if (id < 0 || id > s->size)
    return stream_fail_at (s, at, "a tensor id from 0 to the number of tensors was expected");
  if (bytes < 1 || bytes > MOST_TENSOR_BYTES)
    return stream_fail_at (s, at, "tensor %lld: `bytes` from 1 to 2^48 were expected",
                           (long long)id);
  if (!GROW (job->scratch, f->tensors, &f->tensor_room, id + 1, job->err))
    return false;
  if (id >= f->n_tensors)
    f->n_tensors = id + 1;
  if (f->tensors[id].seen)
    return stream_fail_at (s, at, "tensor %lld is there twice", (long long)id);
  f->tensors[id] = (tensor_row){ .bytes = bytes, .seen = true, .global = global };
  return true;
}

static bool read_file (stream *s, import_job *job, kernel_file *f) {
  slice key, text;
  if (!stream_object (s))
    return false;
  while (stream_member (s, &key)) {
    bool ok = true;
    if (slice_is (key, "kernels")) {
      ok = stream_array (s);
      while (ok && stream_element (s))
        ok = read_kernel (s, job, f);
    } else if (slice_is (key, "tensors")) {
      ok = stream_array (s);
      while (ok && stream_element (s))
        ok = read_tensor (s, job, f);
    } else if (slice_is (key, "name"))
      ok = stream_text (s, &text) && (f->name = slice_name (text, job->a, job->err));
    else
      ok = stream_skip (s);
    if (!ok || s->failed)
      return false;
  }
  if (!stream_end (s))
    return false;
  if (f->n_kernels == 0)
    return stream_fail_at (s, 0, "no kernels: a list `kernels` with at least one was expected");
  return true;
}

static op_phase phase_of_name (const char *name) {
  if (strstr (name, "Forward") || strstr (name, "forward"))
    return OP_FORWARD;
  if (strstr (name, "Backward") || strstr (name, "backward"))
    return OP_BACKWARD;
  if (strstr (name, "Optimizer") || strstr (name, "Apply") || strstr (name, "Update"))
    return OP_UPDATE;
  return OP_OTHER;
}

static bool see_uses (stream *s, kernel_file *f) {
  for (int64_t k = 0; k < f->n_kernels; k++) {
    const kernel_row *row = &f->kernels[k];
    op_phase phase = phase_of_name (row->name);
    for (int64_t i = 0; i < row->n_in + row->n_out; i++) {
      int64_t id = f->ids[row->first + i];
      if (id >= f->n_tensors || !f->tensors[id].seen)
        return stream_fail_at (s, row->at, "kernel %lld uses tensor %lld, which is not listed",
                               (long long)k, (long long)id);
      tensor_row *t = &f->tensors[id];
      if (!t->used) {
        t->written_first = i >= row->n_in;
        t->first = phase;
      }
      t->used = true;
      t->last = phase;
    }
  }
  return true;
}

static tensor_kind kind_of (const tensor_row *t) {
  if (t->global)
    return TENSOR_PARAMETER;
  if (t->used && !t->written_first)
    return TENSOR_INPUT;
  return t->first == OP_FORWARD && t->last == OP_BACKWARD ? TENSOR_ACTIVATION : TENSOR_TEMPORARY;
}

bool kernels_import (import_job *job, const import_text *file, trace **out) {
  stream s = stream_open (file->text, file->size, job->err);
  kernel_file f = { 0 };
  if (!read_file (&s, job, &f) || !see_uses (&s, &f))
    return false;
  const char *name = f.name ? f.name : job_trace_name (job, file);
  trace_builder *b = build_new (job->a, name ? name : "", 1, job->err);
  int32_t *index = NEW (job->scratch, f.n_tensors + 1, int32_t, job->err);
  if (!b || !index)
    return false;
  build_source (b, "import", "kernel and tensor JSON");
  for (int64_t i = 0; i < f.n_tensors; i++) {
    const tensor_row *t = &f.tensors[i];
    index[i] = -1;
    if (!t->seen)
      continue;
    char text[32];
    snprintf (text, sizeof text, "t%lld", (long long)i);
    index[i] = build_tensor (b, text, t->bytes, kind_of (t));
    if (kind_of (t) == TENSOR_INPUT)
      build_tensor_at (b, index[i])->born_before = 0;
    if (!t->used)
      report_warn (job, "tensors that no kernel uses", 1, text);
  }
  for (int64_t k = 0; k < f.n_kernels; k++) {
    const kernel_row *row = &f.kernels[k];
    build_op (b, row->name, phase_of_name (row->name), row->ns);
    for (int64_t i = 0; i < row->n_in; i++)
      build_read (b, index[f.ids[row->first + i]]);
    for (int64_t i = 0; i < row->n_out; i++)
      build_write (b, index[f.ids[row->first + row->n_in + i]]);
  }
  *out = build_finish (b, job->err);
  job->report->peak_by = "first and last use";
  report_version (job, file, "kernels and tensors");
  return *out != NULL;
}
