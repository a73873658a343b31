/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/import_fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "trace/import/import.h"

static void must (bool so) {
  if (!so)
    abort ();
}

void import_fuzz (const uint8_t *data, size_t size) {
  static const char parting[] = "\n=====\n";
  const uint8_t *at = size ? memmem (data, size, parting, sizeof parting - 1) : NULL;
  size_t first = at ? (size_t)(at - data) : size;
  size_t second = at ? first + sizeof parting - 1 : size;
  import_source sources[2] = { { "a", data, (int64_t)first },
                               { "b", data + second, (int64_t)(size - second) } };
  import_options o = IMPORT_DEFAULTS;
  o.limit_bytes = 16 << 20;
  arena *a = arena_new (0);
  must (a != NULL);
  import_report report;
  error err = { 0 };
  trace *t;
  bytes text = { 0 };
  if (import_memory (sources, at ? 2 : 1, &o, a, &t, &report, &err)) {
    must (err.code == ERR_none && trace_validate (t, &err));
    must (report.doubt != NULL && report.n_ops == t->n_ops);
    must (trace_is_plannable (t) == (report.advice == NULL));
    must (import_report_text (&report, &text, &err) && text.size > 0);
    bytes_free (&text);
    must (trace_text (t, TRACE_PACKED, &text, &err));
    must (trace_parse (text.data, text.size, NULL, a, &err) != NULL);
  } else
    must (err.code != ERR_none && err.code != ERR_internal && err.text[0] && !t);
  bytes_free (&text);
  arena_free (a);
}
