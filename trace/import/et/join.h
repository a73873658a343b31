/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls of an execution trace and of the Kineto file of the same run, matched. */
#pragma once

#include "trace/import/et/et.h"
#include "trace/import/kineto/kineto.h"

typedef struct joiner {
  import_job *job;
  const import_text *et_file, *kineto_file;
  et e;
  kineto k;
  kineto_iteration it;
  int32_t *op_of; /* per node: its Kineto op, or NONE */
  int64_t matched, threads;
  const char *how;
} joiner;

/* Fills op_of and what the report says about it; both files have been read. */
bool et_join (joiner *j) MUST_CHECK;
