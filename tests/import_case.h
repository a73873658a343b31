/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An import job over one text, for tests that look at the tables behind an import. */
#pragma once

#include "tests/suite.h"
#include "trace/import/common/job.h"

typedef struct import_case {
  bytes text;
  import_text file;
  import_report report;
  import_job job;
  error err;
} import_case;

void import_case_open (import_case *c, const char *path);
/* The same from memory. */
void import_case_text (import_case *c, const char *name, const void *data, int64_t size);
void import_case_close (import_case *c);

/* A text that ends in NUL; the arena lives until the test ends. Fails the test where it is no
   profile. */
trace *import_good (const char *text, import_report *report);

int64_t tensor_named (const trace *t, const char *name); /* -1: none */
bool list_holds (const index_list *l, int64_t tensor);

/* An arena that ends with the process of the test. */
arena *import_arena (void);
