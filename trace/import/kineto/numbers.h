/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Backward ops by the sequence number of the forward call that they are of.  Each thread counts for
   itself, and a backward pass that computes a forward pass again counts on its own thread: so one
   number may be that of several, of which any may be meant. */
#pragma once

#include "trace/import/common/job.h"

typedef struct kineto_number {
  int64_t sequence;
  int32_t run, op; /* run: the first that the op, or a call in it, owns */
} kineto_number;

typedef struct kineto_numbers {
  kineto_number *at;
  int32_t n;
  int64_t room;
} kineto_numbers;

bool kineto_numbers_add (import_job *job, kineto_numbers *to, kineto_number number) MUST_CHECK;
void kineto_numbers_sort (kineto_numbers *n);

/* The place of the first of that number behind a run, or NONE; others follow it, by run. */
int32_t kineto_numbers_behind (const kineto_numbers *n, int64_t sequence, int32_t run);
/* The next of the same number, or NONE. */
int32_t kineto_numbers_next (const kineto_numbers *n, int32_t at);
