/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interval CSV: a header with the columns id, lower, upper and size (begin and end will do), then a
   buffer a line, alive over [lower, upper).  It says which bytes are alive together and nothing
   about time, so it feeds the assignment of addresses and its tests. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/text/intervals_trace.h"

typedef enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMNS } column;

typedef struct interval {
  slice id;
  int64_t lower, upper, bytes;
} interval;

/* The field up to the next comma or the end of the line, without white space around it; *at moves
   behind the comma, or stays at the end of the line (false: that was the last field). */
static bool next_field (const char *text, int64_t size, int64_t *at, slice *out) {
  int64_t from = *at;
  while (*at < size && text[*at] != ',' && text[*at] != '\n')
    ++*at;
  int64_t end = *at;
  bool more = *at < size && text[*at] == ',';
  *at += more;
  while (from < end && (text[from] == ' ' || text[from] == '\t'))
    from++;
  while (end > from && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\r'))
    end--;
  *out = (slice){ text + from, end - from, false };
  return more;
}

/* Which column each field of the header is; false where one of the four is not there. */
static bool read_header (const char *text, int64_t size, int64_t *at, int columns[16]) {
  static const char *const words[COLUMNS][2] = {
    { "id", "id" }, { "lower", "begin" }, { "upper", "end" }, { "size", "size" }
  };
  bool seen[COLUMNS] = { false };
  bool more = true;
  for (int i = 0; i < 16; i++)
    columns[i] = COLUMNS;
  for (int i = 0; more && i < 16; i++) {
    slice field;
    more = next_field (text, size, at, &field);
    for (int c = 0; c < COLUMNS; c++)
      if (slice_is (field, words[c][0]) || slice_is (field, words[c][1])) {
        columns[i] = c;
        seen[c] = true;
      }
  }
  return !more && seen[COLUMN_ID] && seen[COLUMN_LOWER] && seen[COLUMN_UPPER] && seen[COLUMN_SIZE];
}

bool intervals_sniff (const char *text, int64_t size) {
  int columns[16];
  int64_t at = 0;
  return read_header (text, size < 4096 ? size : 4096, &at, columns);
}

static bool bad_line (import_job *job, int line, int column, slice row, const char *what) {
  error_set (job->err, ERR_input, "column %d: %s: %.*s", column, what,
             (int)(row.size < 80 ? row.size : 80), row.at);
  job->err->line = line;
  return false;
}

static bool read_row (import_job *job, const import_text *file, int64_t *at, int line,
                      const int columns[16], interval *out) {
  int64_t start = *at, end = *at;
  while (end < file->size && file->text[end] != '\n')
    end++;
  slice row = { file->text + start, end - start, false };
  int64_t numbers[COLUMNS] = { 0 };
  bool seen[COLUMNS] = { false }, more = true;
  for (int i = 0; more; i++) {
    int64_t from = *at;
    slice field;
    more = next_field (file->text, file->size, at, &field);
    int c = i < 16 ? columns[i] : COLUMNS;
    if (c == COLUMNS)
      continue;
    seen[c] = true;
    if (c == COLUMN_ID)
      out->id = field;
    else if (memchr (field.at, '.', (size_t)field.size) || !slice_decimal (field, 0, &numbers[c]))
      return bad_line (job, line, (int)(from - start) + 1, row, "a whole number was expected");
  }
  for (int c = 0; c < COLUMNS; c++)
    if (!seen[c])
      return bad_line (job, line, (int)row.size + 1, row, "a field is missing");
  out->lower = numbers[COLUMN_LOWER];
  out->upper = numbers[COLUMN_UPPER];
  out->bytes = numbers[COLUMN_SIZE];
  if (out->lower >= out->upper)
    return bad_line (job, line, 1, row, "lower must be less than upper");
  if (out->bytes < 1 || out->bytes > MOST_TENSOR_BYTES)
    return bad_line (job, line, 1, row, "a size from 1 to 2^48 was expected");
  return true;
}

/* How many of the sorted times are less than `than`. */
static int32_t count_less (const int64_t *times, int32_t n, int64_t than) {
  return FIRST_WHERE (i, 0, n, times[i] >= than);
}

static bool make_trace (import_job *job, const import_text *file, const interval *rows, int32_t n,
                        trace **out) {
  int64_t *times = NEW (job->scratch, n, int64_t, job->err);
  lived *lives = NEW (job->scratch, n, lived, job->err);
  const char **names = NEW (job->scratch, n, const char *, job->err);
  const char *name = job_trace_name (job, file);
  trace_builder *b = name ? build_new (job->a, name, 1, job->err) : NULL;
  if (!times || !lives || !names || !b)
    return false;
  for (int32_t i = 0; i < n; i++)
    times[i] = rows[i].lower;
  qsort (times, (size_t)n, sizeof *times, order_int64);
  int32_t n_times = 0;
  for (int32_t i = 0; i < n; i++)
    if (i == 0 || times[i] != times[n_times - 1])
      times[n_times++] = times[i];
  for (int32_t i = 0; i < n_times; i++) {
    names[i] = arena_format (job->scratch, job->err, "t=%lld", (long long)times[i]);
    if (!names[i])
      return false;
  }
  for (int32_t i = 0; i < n; i++) {
    lives[i] = (lived){ .name = slice_name (rows[i].id, job->scratch, job->err),
                        .bytes = rows[i].bytes,
                        .kind = TENSOR_TEMPORARY,
                        .birth = count_less (times, n_times, rows[i].lower),
                        .death = count_less (times, n_times, rows[i].upper) - 1 };
    if (!lives[i].name)
      return false;
  }
  build_source (b, "import", "interval CSV");
  build_confidence (b, CONFIDENCE_NOT_PLANNABLE, "lifetimes only");
  if (!intervals_trace_build (job, b, names, n_times, lives, n))
    return false;
  *out = build_finish (b, job->err);
  return *out;
}

bool intervals_import (import_job *job, const import_text *file, trace **out) {
  int columns[16];
  int64_t at = 0, room = 0;
  int32_t n = 0;
  interval *rows = NULL;
  if (!read_header (file->text, file->size, &at, columns))
    return error_set (job->err, ERR_input, "the header id,lower,upper,size was expected");
  for (int line = 1; at < file->size;) {
    if (file->text[at] == '\n' || file->text[at] == '\r') {
      line += file->text[at++] == '\n';
      continue;
    }
    if (line == INT32_MAX || n == INT32_MAX)
      return error_set (job->err, ERR_input, "more lines than 2^31");
    if (!GROW (job->scratch, rows, &room, (int64_t)n + 1, job->err) ||
        !read_row (job, file, &at, line, columns, &rows[n]))
      return false;
    n++;
  }
  if (n == 0)
    return error_set (job->err, ERR_infeasible, "no buffers: the header stands alone");
  report_version (job, file, "half-open intervals");
  job->report->peak_by = "intervals";
  job->report->advice = "an interval file says what is alive together, not when: there is nothing "
                        "to swap against. Record durations and uses (docs/record.md)";
  return make_trace (job, file, rows, n, out);
}
