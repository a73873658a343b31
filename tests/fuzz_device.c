/* Bytes as a device file: refused with one line, or read, with rates that hold what they promise.
 */
#include <stdlib.h>

#include "tests/fuzz.h"
#include "trace/device.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size) {
  error err = { 0 };
  device d;
  arena *a = arena_new (FUZZ_MEMORY);
  bool ok = device_parse ((const char *)data, (int64_t)size, NULL, a, &d, &err);
  fuzz_claim (ok == (err.code == ERR_none));
  if (ok) {
    link_rates r = device_rates (&d.link, d.share_ppm);
    fuzz_claim (device_validate (&d, &err));
    fuzz_claim (r.out_both >= 1 && r.in_both >= 1 && r.out_both <= r.out_alone &&
                r.in_both <= r.in_alone);
  }
  arena_free (a);
  return 0;
}
