/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real profiles, recorded by other projects, which are too large to ship: FERRY_REAL_TRACES says
   where they are; and what is counted off them by other means than the importer's. */
#pragma once

#include "tests/import_case.h"
#include "trace/import/kineto/kineto.h"

void open_real (import_case *c, const char *name);
trace *import_real (const char *const *names, int n, import_report *report, error *err);
trace *import_one (const char *name, import_report *report);

typedef struct opened {
  import_case c;
  kineto k;
  kineto_iteration it;
} opened;

void open_kineto (opened *o, const char *name, bool steps);
void count_gpu (const kineto *k, int expected[3], int64_t sum_us);
int count_owners (const kineto *k);

/* GPU events, duration and idle time of one stream, in order of start, by obvious loops. */
typedef struct stream_sum {
  int64_t n, sum, gap, largest;
} stream_sum;

stream_sum sum_stream (const kineto *k, int64_t stream);
