/* Bytes as a trace file: refused with one line, or read, validated, summed and written again with
   the same digest in every form. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fuzz.h"
#include "trace/summary.h"
#include "trace/trace.h"

static void same_in (const trace *t, trace_layout layout, const char *digest, arena *a) {
  bytes text = { 0 };
  error err = { 0 };
  char again[TRACE_DIGEST];
  fuzz_claim (trace_text (t, layout, &text, &err));
  trace *back = trace_parse (text.data, text.size, NULL, a, &err);
  fuzz_claim (back && trace_digest (back, again, &err) && strcmp (again, digest) == 0);
  bytes_free (&text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) {
  bytes text = { 0 };
  error err = { 0 };
  char digest[TRACE_DIGEST];
  summary about;
  arena *a = arena_new (FUZZ_MEMORY);
  trace *t = file_decode (data, (int64_t)size, FUZZ_TEXT, &text, &err)
                 ? trace_parse (text.data, text.size, NULL, a, &err)
                 : NULL;
  fuzz_claim ((t != NULL) == (err.code == ERR_none));
  if (t && t->n_ops < 1000 && t->n_tensors < 1000) {
    fuzz_claim (trace_validate (t, &err) && trace_digest (t, digest, &err));
    same_in (t, TRACE_PLAIN, digest, a);
    same_in (t, TRACE_PACKED, digest, a);
    if (summary_of (t, a, &about, &err))
      fuzz_claim (about.floor_sections_bytes <= about.floor_bytes &&
                  about.floor_bytes <= about.peak_bytes);
  }
  bytes_free (&text);
  arena_free (a);
  return 0;
}
