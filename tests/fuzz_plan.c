/* Bytes as a plan file: refused with one line, or read and written again, plain and packed, as the
   same text. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fuzz.h"
#include "trace/plan.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) {
  bytes text = { 0 }, plain = { 0 }, packed = { 0 }, again = { 0 };
  error err = { 0 };
  arena *a = arena_new (FUZZ_MEMORY);
  plan *p = file_decode (data, (int64_t)size, FUZZ_TEXT, &text, &err)
                ? plan_parse (text.data, text.size, NULL, a, &err)
                : NULL;
  fuzz_claim ((p != NULL) == (err.code == ERR_none));
  if (p) {
    fuzz_claim (plan_text (p, false, &plain, &err) && plan_text (p, true, &packed, &err));
    plan *back = plan_parse (packed.data, packed.size, NULL, a, &err);
    fuzz_claim (back && plan_text (back, false, &again, &err));
    fuzz_claim (again.size == plain.size && memcmp (again.data, plain.data, plain.size) == 0);
  }
  bytes_free (&text);
  bytes_free (&plain);
  bytes_free (&packed);
  bytes_free (&again);
  arena_free (a);
  return 0;
}
