/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What benches share: a clock of this process's own time, and rows that run in a process of their
   own, so that one row's memory and one row's end are not another's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

double bench_cpu_s (void); /* of all threads of this process; others' load leaves it alone */

typedef struct bench_end {
  bool ok;        /* the row filled its answer */
  bool timed_out; /* it used up its limit */
  double cpu_s;   /* of the whole child */
  int64_t peak_bytes;
} bench_end;

/* Calls row (context, answer, err) in a child and copies the answer of `size` bytes back. A failure
   is printed on stderr. limit_s of processor time, 0: none. */
bench_end bench_row (bool (*row) (const void *context, void *answer, error *err),
                     const void *context, void *answer, size_t size, int limit_s);

/* "-" or too few arguments: NULL. */
const char *bench_argument (int argc, char **argv, int i);
