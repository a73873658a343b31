/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of profilers that are no profile of a step: each named for what it is, with what to record
   instead. */
#include <string.h>
#include <strings.h>

#include "trace/import/common/calls.h"
#include "trace/import/common/job.h"

typedef enum artefact {
#define ARTEFACT(name, says, next) ARTEFACT_##name,
#include "trace/import/common/artefacts.def"
#undef ARTEFACT
  ARTEFACTS
} artefact;

static const struct {
  const char *says, *next;
} table[ARTEFACTS] = {
#define ARTEFACT(name, says, next) { says, next },
#include "trace/import/common/artefacts.def"
#undef ARTEFACT
};

/* [[time, action, bytes, category], ...] is raw; [[times...], [[sums...], ...]] is not. */
static artefact sniff_list (const char *text, int64_t size) {
  error ignored = { 0 };
  stream s = stream_open (text, size, &ignored);
  if (!stream_array (&s) || !stream_element (&s) || stream_peek (&s) != STREAM_ARRAY ||
      !stream_array (&s))
    return ARTEFACTS;
  int n = 0;
  bool numbers = true;
  while (n < 5 && stream_element (&s)) {
    stream_kind kind = stream_peek (&s);
    numbers &= kind == STREAM_NUMBER || (n == 1 && kind == STREAM_TEXT) || kind == STREAM_ARRAY;
    if (!stream_skip (&s))
      return ARTEFACTS;
    n++;
  }
  if (!numbers || n == 0)
    return ARTEFACTS;
  return n == 4 ? ARTEFACT_timeline_raw : ARTEFACT_timeline;
}

/* The first line: "frame;frame;frame 12". */
static bool is_stacks (const char *text, int64_t size) {
  const char *end = memchr (text, '\n', (size_t)size);
  int64_t length = end ? end - text : size;
  if (length < 4 || text[length - 1] < '0' || text[length - 1] > '9' || text[0] == '{' ||
      text[0] == '[' || memchr (text, ';', (size_t)length) == NULL)
    return false;
  int64_t at = length - 1;
  while (at > 0 && text[at] >= '0' && text[at] <= '9')
    at--;
  return text[at] == ' ' && memchr (text, 0, (size_t)length) == NULL;
}

static bool starts_any_case (const char *text, int64_t size, const char *with) {
  size_t length = strlen (with);
  return size >= (int64_t)length && strncasecmp (text, with, length) == 0;
}

/* Up to the end of the line; *rest goes on behind it. */
static slice line_of (slice *rest) {
  const char *end = memchr (rest->at, '\n', (size_t)rest->size);
  slice line = { rest->at, end ? end - rest->at : rest->size, false };
  int64_t taken = line.size + (end != NULL);
  *rest = (slice){ rest->at + taken, rest->size - taken, false };
  return line;
}

/* Separators of fields; -1 where the line is no text. */
static int separators (slice line) {
  int n = 0;
  for (int64_t i = 0; i < line.size; i++) {
    if ((unsigned char)line.at[i] < ' ' && line.at[i] != '\t' && line.at[i] != '\r')
      return -1;
    n += line.at[i] == ',' || line.at[i] == ';' || line.at[i] == '\t';
  }
  return n;
}

/* Lines that begin with as many fields each. */
static artefact sniff_table (slice all) {
  if (slice_starts (all, "==") && slice_holds (all, "NVPROF"))
    return ARTEFACT_kernel_list;
  slice first = line_of (&all), second = line_of (&all);
  int fields = separators (first);
  if (fields < 1 || *first.at == '{' || *first.at == '[' || separators (second) != fields)
    return ARTEFACTS;
  bool kernels = slice_holds (first, "Duration") || slice_holds (first, "Total Time (ns)");
  return kernels ? ARTEFACT_kernel_list : ARTEFACT_columns;
}

static bool starts_with_any (const char *text, int64_t size, const char *const *marks) {
  for (; *marks; marks++)
    if (size > (int64_t)strlen (*marks) && memcmp (text, *marks, strlen (*marks)) == 0)
      return true;
  return false;
}

/* Planes (field 1), of which the first begins with its name (field 2): "/host:CPU",
 * "/device:GPU:0". */
static bool is_xplane (const char *text, int64_t size) {
  slice head = { text, size < 64 ? size : 64, false };
  return size > 0 && *text == '\x0a' && slice_holds (head, "\x12") &&
         (slice_holds (head, "/host:") || slice_holds (head, "/device:"));
}

/* A snapshot that somebody wrote as JSON: one of its two lists comes first. */
/* By the first member of an object; a Chakra file as JSON is objects one after another, first the
   version of its format or a node at once. */
static artefact sniff_object (const char *text, int64_t size, slice head) {
  error ignored = { 0 };
  stream s = stream_open (text, size, &ignored);
  slice key;
  if (*text != '{' || !stream_object (&s) || !stream_member (&s, &key))
    return ARTEFACTS;
  if (slice_is (key, "segments") || slice_is (key, "device_traces"))
    return ARTEFACT_snapshot_json;
  if (slice_is (key, "rocprofiler-sdk-tool"))
    return ARTEFACT_rocprof;
  return slice_holds (head, "COMP_NODE\"") || slice_holds (head, "METADATA_NODE\"")
             ? ARTEFACT_chakra_json
             : ARTEFACTS;
}

static artefact sniff_artefact (const char *text, int64_t size) {
  static const char *const packed[] = { "\xfd"
                                        "7zXZ",
                                        "BZh", NULL };
  static const char *const wide[] = { "\xff\xfe", "\xfe\xff", NULL };
  if (starts_with_any (text, size, packed))
    return ARTEFACT_packed;
  if (starts_with_any (text, size, wide))
    return ARTEFACT_wide_text;
  if (is_xplane (text, size))
    return ARTEFACT_xplane;
  while (size > 0 && (*text == ' ' || *text == '\n' || *text == '\r' || *text == '\t')) {
    text++;
    size--;
  }
  slice all = { text, size < 4096 ? size : 4096, false };
  if (size == 0)
    return ARTEFACT_empty;
  if (starts_any_case (text, size, "<!doctype html") || starts_any_case (text, size, "<html"))
    return ARTEFACT_page;
  if (size > 4 && memcmp (text, "PK\3\4", 4) == 0)
    return ARTEFACT_archive;
  if (size > 265 && memcmp (text + 257, "ustar", 5) == 0)
    return ARTEFACT_tarball;
  if (size > 4 && memcmp (text, "NVR\0", 4) == 0)
    return ARTEFACT_ncu;
  if (size > 16 && text[0] != '{' &&
      slice_holds ((slice){ text, 64 < size ? 64 : size, false }, "NVIDIA Nsight Systems"))
    return ARTEFACT_nsys;
  if (slice_starts (all, "-----") && slice_holds (all, "Self CPU"))
    return ARTEFACT_table;
  artefact object = sniff_object (text, size, all);
  if (object != ARTEFACTS)
    return object;
  if (*text == '[')
    return sniff_list (text, size);
  if (slice_starts (all, "ferry-text/") && !slice_begins (all, "ferry-text/1"))
    return ARTEFACT_later_plain;
  return is_stacks (text, size) ? ARTEFACT_stacks : ARTEFACTS;
}

static bool refuse_kind (artefact a, error *err) {
  if (a == ARTEFACTS)
    return true;
  return error_set (err, a == ARTEFACT_empty ? ERR_input : ERR_infeasible, "this is %s. %s",
                    table[a].says, table[a].next);
}

bool artefact_refuse (const char *text, int64_t size, error *err) {
  return refuse_kind (sniff_artefact (text, size), err);
}

bool artefact_refuse_table (const char *text, int64_t size, error *err) {
  slice all = { text, size < 4096 ? size : 4096, false };
  return refuse_kind (size > 0 ? sniff_table (all) : ARTEFACTS, err);
}
