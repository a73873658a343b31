/* Many independent things on several cores: processes that take one after the other and put what
   they find into shared memory.  Which process does what is left to chance, what comes out is not.
 */
#ifndef FERRY_CLI_WORKERS_H
#define FERRY_CLI_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct workers_job {
  int32_t processes, n_items;
  size_t size; /* of a result */
  bool (*work) (void *context, int32_t item, void *result, error *err);
  void (*progress) (void *context, int32_t done, int32_t all); /* in this process; or NULL */
  void *context;
} workers_job;

/* results: n_items of them, by item. The first failure of any process is the answer's. */
bool workers_run (const workers_job *job, void *results, error *err) MUST_CHECK;

#endif
