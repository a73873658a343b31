/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/g10.h"

#include <stdio.h>
#include <stdlib.h>

#include "trace/import/import.h"

#define GIB ((int64_t)1 << 30)

/* example_results/overall_performance/all.base.txt and overall_batchsize/{bert,resnet}.txt */
const g10_published g10_instances[G10_INSTANCES] = {
  { "BERT-base, batch 256", "g10/bert_base_b256.json", 8742558777, 23580084389, 10992552904,
    12258600000, 8773229325 },
  { "ResNet-152, batch 256", "g10/resnet152_b256.json", 127328819564, 167654684435, 127328819564,
    127328400000, 127337222181 },
};

int64_t g10_cycles (int64_t ns) {
  return (ns * 6 + 2) / 5;
}

device g10_device (void) {
  int64_t rate = 15754 * GIB / 1000;
  return (device){ .name = "g10",
                   .memory_bytes = 40 * GIB,
                   .granule_bytes = 2 << 20,
                   .link = { rate, rate, 2 * rate, 5000 },
                   .host_bytes = 128 * GIB,
                   .share_ppm = 1000000 };
}

trace *g10_trace (const g10_published *g, int64_t faster, arena *a, error *err) {
  char path[600];
  const char *at = path, *root = getenv ("FERRY_REAL_TRACES");
  import_report report;
  trace *t = NULL;
  if (!root) {
    error_set (err, ERR_input, "FERRY_REAL_TRACES is not set");
    return NULL;
  }
  snprintf (path, sizeof path, "%s/%s", root, g->file);
  if (!import_files (&at, 1, NULL, a, &t, &report, err))
    return NULL;
  for (int32_t k = 0; k < t->n_ops && faster != 1; k++) {
    int64_t ns = (t->ops[k].ns + faster / 2) / faster;
    t->ops[k].ns = ns > 0 ? ns : 1;
  }
  return t;
}
