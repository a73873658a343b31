/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/import.h"

#include <assert.h>
#include <string.h>

#include "base/coding.h"
#include "base/sha256.h"
#include "trace/import/common/job.h"

static const char *const format_names[IMPORT_FORMATS] = {
#define FORMAT(name, says) says,
#include "trace/import/common/import.def"
#undef FORMAT
};

const char *import_format_says (import_format f) {
  return format_names[f];
}

/* ---- the kind of a file ---- */

/* A text that ends before it has said what it is: err gets that. */
static import_format sniff_json (const char *text, int64_t size, error *err) {
  error mistake = { 0 };
  stream s = stream_open (text, size, &mistake);
  stream_kind kind = stream_peek (&s);
  if (kind == STREAM_ARRAY) /* the bare list of events that Chrome also reads */
    return IMPORT_kineto;
  if (kind != STREAM_OBJECT || !stream_object (&s))
    return IMPORT_FORMATS;
  slice key, value;
  while (stream_member (&s, &key)) {
    if (slice_is (key, "traceEvents"))
      return IMPORT_kineto;
    if (slice_is (key, "nodes"))
      return IMPORT_et;
    if (slice_is (key, "INSTRUCTION"))
      return IMPORT_dtr;
    if (slice_is (key, "kernels"))
      return IMPORT_kernels;
    bool named = slice_is (key, "format") && stream_peek (&s) == STREAM_TEXT;
    if (!(named ? stream_text (&s, &value) : stream_skip (&s)))
      break;
    if (slice_is (key, "format"))
      return named && slice_starts (value, "ferry-") ? IMPORT_trace : IMPORT_FORMATS;
  }
  if (s.cut)
    *err = mistake;
  return IMPORT_FORMATS;
}

static bool starts (const char *text, int64_t size, const char *with) {
  return slice_starts ((slice){ text, size, false }, with);
}

static import_format sniff (const char *text, int64_t size, error *err) {
  if (starts (text, size, "SQLite format 3"))
    return IMPORT_nsys;
  if (size >= 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5)
    return IMPORT_snapshot;
  if (plain_sniff (text, size))
    return IMPORT_plain;
  if (intervals_sniff (text, size))
    return IMPORT_intervals;
  int64_t at = 0;
  while (at < size && strchr (" \t\r\n\xef\xbb\xbf", text[at]) && text[at])
    at++;
  if (at < size && (text[at] == '{' || text[at] == '['))
    return sniff_json (text, size, err);
  return chakra_sniff (text, size) ? IMPORT_chakra : IMPORT_FORMATS;
}

/* JSON has a reader that passes over a mark of UTF-8, and counts bytes from here. */
static void skip_mark (import_text *text) {
  int64_t mark = file_mark (text->text, text->size);
  if (mark < text->size && text->text[mark] != '{' && text->text[mark] != '[') {
    text->text += mark;
    text->size -= mark;
  }
}

static bool refuse_format (import_format f, const import_text *text, error *err) {
  if (f == IMPORT_nsys)
    return error_set (err, ERR_infeasible,
                      "an nsys database has durations but no tensors. Record the execution trace "
                      "and the Kineto file of one run instead (docs/record.md)");
  if (f == IMPORT_trace)
    return error_set (err, ERR_input,
                      "this is one of ferry's own files: a trace needs no import, and a plan or a "
                      "card is no profile");
  return artefact_refuse_table (text->text, text->size, err) &&
         error_set (
             err, ERR_input,
             "byte 0: none of the formats that can be imported: Kineto or execution trace "
             "JSON, Chakra .et, memory snapshot, ferry-text/1, interval CSV, kernel JSON, logs of "
             "operator calls");
}

/* ---- which importer ---- */

static const import_text *file_of (const import_job *job, import_format f) {
  for (int i = 0; i < job->n_files; i++)
    if (job->files[i].format == f)
      return &job->files[i];
  return NULL;
}

static bool import_one (import_job *job, const import_text *file, trace **out) {
  switch (file->format) {
  case IMPORT_kineto:
    return kineto_import (job, file, NULL, out);
  case IMPORT_et:
    return et_import (job, file, out);
  case IMPORT_chakra:
    return chakra_import (job, file, out);
  case IMPORT_snapshot:
    return snapshot_import (job, file, out);
  case IMPORT_kernels:
    return kernels_import (job, file, out);
  case IMPORT_dtr:
    return dtr_import (job, file, out);
  case IMPORT_plain:
    return plain_import (job, file, out);
  case IMPORT_intervals:
    return intervals_import (job, file, out);
  default:
    return refuse_format (file->format, file, job->err);
  }
}

static bool import_texts (import_job *job, trace **out) {
  if (job->n_files == 1) {
    bool ok = import_one (job, &job->files[0], out);
    if (!ok)
      error_in_file (job->err, job->files[0].name);
    return ok;
  }
  const import_text *kineto = file_of (job, IMPORT_kineto);
  const import_text *et = file_of (job, IMPORT_et);
  const import_text *snapshot = file_of (job, IMPORT_snapshot);
  if (kineto && et)
    return et_kineto_import (job, et, kineto, out);
  if (kineto && snapshot)
    return kineto_import (job, kineto, snapshot, out);
  return error_set (job->err, ERR_usage,
                    "two files go together as an execution trace or a memory snapshot with the "
                    "Kineto file of the same run, not as %s with %s",
                    import_format_says (job->files[0].format),
                    import_format_says (job->files[1].format));
}

/* Paths of Windows too: what stands before a name is nobody's business. */
static const char *base_name (const char *path) {
  const char *name = path;
  for (const char *at = path; *at; at++)
    if ((*at == '/' || *at == '\\') && at[1])
      name = at + 1;
  return name;
}

/* Decode, sniff, import.  What comes out of decompression is bounded; tables made from a text are
   bounded by a multiple of it, so that a hostile file cannot ask for more. */
static bool run (import_job *job, const import_source *sources, bytes *decoded, trace **out) {
  import_text texts[IMPORT_FILES];
  for (int i = 0; i < job->n_files; i++) {
    import_read *read = &job->report->read[i];
    read->name = slice_name ((slice){ base_name (sources[i].name),
                                      (int64_t)strlen (base_name (sources[i].name)), false },
                             job->a, job->err);
    if (!read->name)
      return false;
    sha256 sum;
    sha256_start (&sum);
    sha256_add (&sum, sources[i].data, (size_t)sources[i].size);
    sha256_text (&sum, read->sha256);
    texts[i] = (import_text){ read->name, sources[i].data, sources[i].size, IMPORT_FORMATS };
    if (coding_is_packed (sources[i].data, sources[i].size)) {
      if (!file_decode (sources[i].data, sources[i].size, job->options.limit_bytes, &decoded[i],
                        job->err)) {
        error_in_file (job->err, read->name);
        return false;
      }
      texts[i].text = decoded[i].data;
      texts[i].size = decoded[i].size;
    }
    skip_mark (&texts[i]);
    if (!artefact_refuse (texts[i].text, texts[i].size, job->err)) {
      error_in_file (job->err, read->name);
      return false;
    }
    texts[i].format = sniff (texts[i].text, texts[i].size, job->err);
    if (texts[i].format == IMPORT_FORMATS || texts[i].format == IMPORT_nsys ||
        texts[i].format == IMPORT_trace) {
      if (job->err->code == ERR_none)
        (void)refuse_format (texts[i].format, &texts[i], job->err);
      error_in_file (job->err, read->name);
      return false;
    }
    read->format = import_format_says (texts[i].format);
    job->report->n_read++;
  }
  job->files = texts;
  bool ok = import_texts (job, out) && checks_run (job, *out) && report_trace (job, *out);
  if (ok && job->report->card)
    (*out)->source.device = job->report->card;
  job->files = NULL;
  return ok;
}

bool import_memory (const import_source *sources, int n_sources, const import_options *o, arena *a,
                    trace **out, import_report *report, error *err) {
  assert (n_sources > 0 && sources);
  *report = (import_report){ 0 };
  *out = NULL;
  if (n_sources < 1 || n_sources > IMPORT_FILES)
    return error_set (err, ERR_usage, "one or two files can be imported together, not %d",
                      n_sources);
  bytes decoded[IMPORT_FILES] = { { 0 } };
  import_job job = { .n_files = n_sources,
                     .options = o ? *o : IMPORT_DEFAULTS,
                     .a = a,
                     .scratch = arena_new (0),
                     .report = report,
                     .err = err,
                     .facts = { .calls = -1, .unlaunched = -1, .seen_ns = -1 } };
  bool ok = job.scratch ? run (&job, sources, decoded, out) : error_memory (err);
  for (int i = 0; i < n_sources; i++)
    bytes_free (&decoded[i]);
  arena_free (job.scratch);
  if (!ok)
    *out = NULL;
  return ok;
}

bool import_files (const char *const *paths, int n_paths, const import_options *o, arena *a,
                   trace **out, import_report *report, error *err) {
  assert (n_paths > 0 && paths);
  *report = (import_report){ 0 };
  *out = NULL;
  if (n_paths < 1 || n_paths > IMPORT_FILES)
    return error_set (err, ERR_usage, "one or two files can be imported together, not %d", n_paths);
  bytes raw[IMPORT_FILES] = { { 0 } };
  import_source sources[IMPORT_FILES];
  bool ok = true;
  for (int i = 0; ok && i < n_paths; i++) {
    ok = file_read_raw (paths[i], o ? o->limit_bytes : 0, &raw[i], err);
    sources[i] = (import_source){ paths[i], raw[i].data, raw[i].size };
  }
  ok = ok && import_memory (sources, n_paths, o, a, out, report, err);
  for (int i = 0; i < n_paths; i++)
    bytes_free (&raw[i]);
  return ok;
}
