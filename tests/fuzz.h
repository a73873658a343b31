/* What fuzz targets share.  With --enable-fuzzers each is a libFuzzer program (`make fuzz`);
   without, tests/replay.c gives it the files of the corpus, as a test. */
#ifndef FERRY_TESTS_FUZZ_H
#define FERRY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_MEMORY ((int64_t)256 << 20)
#define FUZZ_TEXT ((int64_t)16 << 20)

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

#define fuzz_claim(what)                                                         \
  do {                                                                           \
    if (!(what)) {                                                               \
      fprintf (stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
      abort ();                                                                  \
    }                                                                            \
  } while (0)

#endif
