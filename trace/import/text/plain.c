/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ferry's own text form, the door for every framework: a line a tensor, an op, a free.  The grammar
   is in docs/import.md.  Complaints name line and column and show the line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "trace/import/common/intern.h"
#include "trace/import/common/job.h"

#define PLAIN_FIRST_LINE "ferry-text/1"

typedef struct plain {
  import_job *job;
  const char *text;
  int64_t size, at;
  int64_t line_at, line_end;
  int line;
  slice word; /* the one that was read last */
  int64_t batch;
  trace_builder *b;
  intern names;
  bool *written, *used; /* per tensor */
  int64_t written_room, used_room;
} plain;

bool plain_sniff (const char *text, int64_t size) {
  return slice_begins ((slice){ text, size, false }, PLAIN_FIRST_LINE);
}

static bool bad (plain *p, const char *format, ...) PRINTF_LIKE (2, 3);
static bool bad (plain *p, const char *format, ...) {
  char what[200];
  va_list args;
  va_start (args, format);
  vsnprintf (what, sizeof what, format, args);
  va_end (args);
  int64_t from = p->word.at ? p->word.at - p->text : p->line_at;
  int64_t shown = p->line_end - p->line_at < 120 ? p->line_end - p->line_at : 120;
  if (p->job->err->code == ERR_none) {
    error_set (p->job->err, ERR_input, "column %lld: %s: %.*s", (long long)(from - p->line_at) + 1,
               what, (int)shown, p->text + p->line_at);
    p->job->err->line = p->line;
  }
  return false;
}

static bool is_space (char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; a # begins a comment. */
static bool next_word (plain *p) {
  while (p->at < p->line_end && is_space (p->text[p->at]))
    p->at++;
  int64_t from = p->at;
  while (p->at < p->line_end && !is_space (p->text[p->at]) && p->text[p->at] != '#')
    p->at++;
  p->word = (slice){ p->text + from, p->at - from, false };
  return p->at > from;
}

static bool next_line (plain *p) {
  p->at = p->line ? p->line_end + 1 : 0;
  if (p->at >= p->size || p->line == INT32_MAX)
    return false;
  const char *end = memchr (p->text + p->at, '\n', (size_t)(p->size - p->at));
  p->line_at = p->at;
  p->line_end = end ? end - p->text : p->size;
  p->line++;
  return true;
}

static bool need_word (plain *p, const char *what) {
  return next_word (p) || bad (p, "%s was expected", what);
}

/* The word as a text that ends in NUL, for the parsers of units. */
static bool word_text (plain *p, char text[64]) {
  if (p->word.size >= 64)
    return bad (p, "a quantity was expected");
  memcpy (text, p->word.at, (size_t)p->word.size);
  text[p->word.size] = 0;
  return true;
}

static bool need_quantity (plain *p, const char *what,
                           bool (*parse) (const char *, int64_t *, error *), units_kind kind,
                           int64_t *out) {
  char text[64];
  error ignored = { 0 };
  if (!need_word (p, what) || !word_text (p, text))
    return false;
  if (!parse (text, out, &ignored) || !units_need_unit (text, kind, &ignored))
    return bad (p, "%s was expected (%s)", what, ignored.text);
  if (kind == UNITS_TIME && *out > MOST_NS)
    return bad (p, "%s of at most 2^53 ns was expected", what);
  return kind != UNITS_BYTES || *out <= MOST_TENSOR_BYTES ||
         bad (p, "%s of at most 2^48 bytes was expected", what);
}

static bool parse_count (const char *text, int64_t *count, error *err) {
  return units_parse_count (text, 1, MOST_PARTS, count, err);
}

static const char *const keywords[] = {
  "reads", "writes", "side", "gap", "workspace", "parts", NULL
};

static int word_in (slice word, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (slice_is (word, words[i]))
      return i;
  return -1;
}

static bool read_tensor (plain *p) {
  int64_t bytes;
  if (!need_word (p, "a name"))
    return false;
  if (word_in (p->word, keywords) >= 0)
    return bad (p, "a keyword cannot be a name");
  if (intern_find (&p->names, p->word) >= 0)
    return bad (p, "this tensor is there already");
  int32_t index = intern_add (&p->names, p->word, false, p->job->err);
  const char *name = slice_name (p->word, p->job->scratch, p->job->err);
  p->written = arena_grow (p->job->scratch, p->written, &p->written_room, (int64_t)index + 1,
                           sizeof *p->written, p->job->err);
  p->used = arena_grow (p->job->scratch, p->used, &p->used_room, (int64_t)index + 1,
                        sizeof *p->used, p->job->err);
  if (index < 0 || !name || !p->written || !p->used ||
      !need_quantity (p, "a size", units_parse_bytes, UNITS_BYTES, &bytes))
    return false;
  if (bytes < 1)
    return bad (p, "a size of at least 1 byte was expected");
  build_tensor (p->b, name, bytes, TENSOR_TEMPORARY);
  while (next_word (p)) {
    tensor *t = build_tensor_at (p->b, index);
    int kind = word_in (p->word, tensor_kind_names);
    if (kind >= 0) {
      t->kind = (uint8_t)kind;
      t->persistent |= kind == TENSOR_PARAMETER || kind == TENSOR_OPTIMIZER;
    } else if (slice_is (p->word, "persistent"))
      t->persistent = true;
    else if (slice_is (p->word, "pinned"))
      t->pinned = true;
    else if (slice_is (p->word, "split"))
      t->split = true;
    else
      return bad (p, "a kind, persistent, pinned or split was expected");
    if (t->split && bytes < p->batch)
      return bad (p, "a tensor that is split has a byte an item at least, of %lld",
                  (long long)p->batch);
  }
  return true;
}

static bool find_tensor (plain *p, int32_t *index) {
  *index = intern_find (&p->names, p->word);
  return *index >= 0 || bad (p, "no tensor of this name was given before");
}

/* A tensor that is read before anything wrote it came from outside. */
static void read_before_write (plain *p, int32_t index) {
  tensor *t = build_tensor_at (p->b, index);
  if (p->written[index] || t->persistent || t->born_before == 0)
    return;
  t->born_before = 0;
  if (t->kind != TENSOR_INPUT)
    report_warn (p->job, "tensors read before any op writes them: taken as alive from the start", 1,
                 t->name);
}

static bool use_tensor (plain *p, int list) {
  int32_t index;
  if (!find_tensor (p, &index))
    return false;
  if (build_tensor_at (p->b, index)->dies_after != NO_OP)
    return bad (p, "this tensor was freed before");
  p->used[index] = true;
  if (list == 0) {
    read_before_write (p, index);
    build_read (p->b, index);
  } else {
    p->written[index] = true;
    if (list == 1)
      build_write (p->b, index);
    else
      build_side (p->b, index);
  }
  return true;
}

static bool read_op (plain *p) {
  if (!need_word (p, "a name"))
    return false;
  const char *name = slice_name (p->word, p->job->scratch, p->job->err);
  int64_t ns;
  if (!name || !need_word (p, "forward, backward, update or other"))
    return false;
  int phase = word_in (p->word, op_phase_names);
  if (phase < 0)
    return bad (p, "forward, backward, update or other was expected");
  if (!need_quantity (p, "a duration", units_parse_time, UNITS_TIME, &ns))
    return false;
  int32_t k = build_op (p->b, name, (op_phase)phase, ns);
  int list = -1;
  while (next_word (p)) {
    op *o = build_op_at (p->b, k);
    int keyword = word_in (p->word, keywords);
    if (keyword >= 0 && keyword <= 2) {
      list = keyword;
      continue;
    }
    bool ok = keyword == 3 ? need_quantity (p, "a time", units_parse_time, UNITS_TIME, &o->gap_ns)
              : keyword == 4
                  ? need_quantity (p, "a size", units_parse_bytes, UNITS_BYTES, &o->workspace_bytes)
              : keyword == 5 ? need_quantity (p, "a count", parse_count, UNITS_COUNT, &o->parts)
              : list >= 0    ? use_tensor (p, list)
                             : bad (p, "reads, writes, side, gap, workspace or parts was expected");
    if (!ok)
      return false;
    if (keyword >= 0)
      list = -1;
  }
  return true;
}

static bool read_free (plain *p) {
  if (build_ops (p->b) == 0)
    return bad (p, "no op stands before this");
  if (!need_word (p, "a name"))
    return false;
  do {
    int32_t index;
    if (!find_tensor (p, &index))
      return false;
    tensor *t = build_tensor_at (p->b, index);
    if (t->dies_after != NO_OP)
      return bad (p, "this tensor was freed before");
    if (t->persistent)
      return bad (p, "a persistent tensor is never freed");
    t->dies_after = build_ops (p->b) - 1;
  } while (next_word (p));
  return true;
}

static bool read_head (plain *p, const char **name) {
  if (slice_is (p->word, "batch"))
    return need_quantity (p, "a count", parse_count, UNITS_COUNT, &p->batch);
  return need_word (p, "a name") && (*name = slice_name (p->word, p->job->a, p->job->err));
}

/* Name and batch are needed to begin the trace, so they stand before the first tensor and op. */
static bool read_lines (plain *p, const char *name) {
  while (next_line (p)) {
    if (p->line == 1 || !next_word (p))
      continue;
    bool head = slice_is (p->word, "batch") || slice_is (p->word, "name");
    if (head && p->b)
      return bad (p, "name and batch stand before the first tensor and op");
    if (!head && !p->b) {
      p->b = build_new (p->job->a, name, p->batch, p->job->err);
      if (!p->b)
        return false;
    }
    bool ok = head                           ? read_head (p, &name)
              : slice_is (p->word, "tensor") ? read_tensor (p)
              : slice_is (p->word, "op")     ? read_op (p)
              : slice_is (p->word, "free")
                  ? read_free (p)
                  : bad (p, "name, batch, tensor, op or free was expected");
    if (!ok)
      return false;
    if (next_word (p))
      return bad (p, "nothing more was expected on this line");
  }
  return (p->b && build_ops (p->b)) ||
         error_set (p->job->err, ERR_infeasible,
                    "no ops: a line each was expected, such as `op f forward 2ms`");
}

/* They take no memory, so one may have been left out of the lists of an op. */
static bool warn_unused (plain *p) {
  for (int32_t i = 0; i < p->names.count; i++) {
    const char *name =
        p->used[i] ? "" : slice_name (p->names.texts[i], p->job->scratch, p->job->err);
    if (!name)
      return false;
    if (!p->used[i] && !build_tensor_at (p->b, i)->persistent)
      report_warn (p->job, "tensors that no op uses: they take no memory", 1, name);
  }
  return true;
}

bool plain_import (import_job *job, const import_text *file, trace **out) {
  plain p = { .job = job,
              .text = file->text,
              .size = file->size,
              .batch = 1,
              .names = intern_new (job->scratch) };
  const char *name = job_trace_name (job, file);
  if (!name || !read_lines (&p, name) || !warn_unused (&p))
    return false;
  build_source (p.b, "import", "plain text");
  report_version (job, file, PLAIN_FIRST_LINE);
  job->report->peak_by = "first and last use";
  *out = build_finish (p.b, job->err);
  return *out;
}
