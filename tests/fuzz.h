/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fuzzers of the three loaders, and their replay in `make check`: FUZZ_MAIN makes a program
   that runs over the files named on its command line. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "trace/plan.h"

enum { A_TRACE, A_DEVICE, A_PLAN, FUZZ_LIMIT = 64 << 20 };

static inline bool fuzz_text (int kind, const char *text, int64_t size, arena *a, bytes *out) {
  error err = { 0 };
  json_writer w;
  if (kind == A_TRACE) {
    trace *t = trace_parse (text, size, NULL, a, &err);
    return t && trace_text (t, TRACE_PACKED, out, &err);
  }
  if (kind == A_PLAN) {
    plan *p = plan_parse (text, size, NULL, a, &err);
    return p && plan_text (p, true, out, &err);
  }
  device d;
  json_begin (&w, 2);
  if (!device_parse (text, size, NULL, a, &d, &err))
    return false;
  device_write (&w, &d);
  return json_finish (&w, out, &err);
}

/* What was accepted once is accepted again, and is the same. */
static inline void fuzz_one (int kind, const uint8_t *data, size_t size) {
  bytes decoded, first, second;
  error err = { 0 };
  if (!file_decode (data, (int64_t)size, FUZZ_LIMIT, &decoded, &err))
    return;
  arena *a = arena_new (FUZZ_LIMIT);
  if (a && fuzz_text (kind, decoded.data, decoded.size, a, &first)) {
    if (!fuzz_text (kind, first.data, first.size, a, &second) ||
        strcmp (first.data, second.data) != 0)
      abort ();
    bytes_free (&first);
    bytes_free (&second);
  }
  arena_free (a);
  bytes_free (&decoded);
}

#define FUZZ(kind)                                                \
  int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);  \
  int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) { \
    fuzz_one ((kind), data, size);                                \
    return 0;                                                     \
  }
