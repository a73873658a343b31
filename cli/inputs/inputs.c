/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/inputs.h"

#include <string.h>

#include "trace/import/import.h"

/* `ferry run --strict` has words, and means something else. */
static bool is_strict (const call *c) {
  return call_own_text (c, "strict") && !call_value (c, "strict");
}

read_options call_read_options (call *c) {
  return (read_options){ .log = &c->log, .strict = is_strict (c) };
}

/* The command that could import it stands behind the reason why this one did not. */
static void tell_import (call *c, const char *path, import_marks helps, const error *why) {
  static const char *const options[] = { "", " --marks repeat", " --marks whole" };
  c->err = *why;
  c->err.code = ERR_none;
  error_set (&c->err, why->code, "%s; then: `ferry import%s %s -o TRACE`", why->text,
             options[helps], path);
}

/* A profile that was not imported yet is read as `ferry import` would; *out stays NULL where it is
   none. */
static bool read_profile (call *c, const char *path, trace **out) {
  import_options how = IMPORT_DEFAULTS;
  import_report report;
  error why = { 0 };
  if (!import_files (&path, 1, &how, c->arena, out, &report, &why)) {
    *out = NULL;
    if (why.code != ERR_infeasible)
      return true;
    tell_import (c, path, report.helps, &why);
    return false;
  }
  call_note (c, "%s is a profile (%s): read as `ferry import %s -o TRACE` does", path,
             report.n_read ? report.read[0].format : "", path);
  if (report.advice)
    call_note (c, "%s: %s", path, report.advice);
  return true;
}

trace *call_trace (call *c, const char *path) {
  read_options o = call_read_options (c);
  trace *t = trace_load (path, &o, c->arena, &c->err);
  if (!t && c->err.code == ERR_input && strcmp (path, "-") != 0) {
    error first = c->err;
    trace *found = NULL;
    c->err = (error){ 0 };
    if (!read_profile (c, path, &found)) {
      if (c->err.code == ERR_infeasible) /* "no" is `import`'s answer alone */
        c->err.code = ERR_input;
      return NULL;
    }
    if (!(t = found))
      c->err = first;
  } else if (!t && c->err.code == ERR_input) {
    size_t said = strlen (c->err.text);
    snprintf (c->err.text + said, sizeof c->err.text - said,
              "; of a profile `ferry import - -o TRACE` makes a trace");
  }
  const char *doubt = t ? trace_doubt (t, c->arena, &c->err) : NULL;
  if (doubt && trace_is_plannable (t)) /* else planning refuses, in one line */
    call_note (c, "%s: %s", path, doubt);
  return t;
}

plan *call_plan (call *c, const char *path) {
  read_options o = call_read_options (c);
  return plan_load (path, &o, c->arena, &c->err);
}

char *call_stem (call *c, const char *path) {
  static const char *const ends[] = { ".gz", ".zst", ".json", ".trace" };
  const char *slash = strrchr (path, '/');
  char *stem = arena_string (c->arena, slash ? slash + 1 : path, &c->err);
  for (size_t i = 0; stem && i < sizeof ends / sizeof *ends; i++) {
    size_t length = strlen (stem), end = strlen (ends[i]);
    if (length > end && strcmp (stem + length - end, ends[i]) == 0)
      stem[length - end] = 0;
  }
  return stem;
}

void call_tell_doubt (FILE *to, call *c, const trace *t) {
  const char *doubt = trace_doubt (t, c->arena, &c->err);
  if (doubt)
    fprintf (to, "%s\n", doubt);
}
