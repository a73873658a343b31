/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/kineto/numbers.h"

#include <stdlib.h>

#include "trace/import/kineto/kineto.h"

bool kineto_numbers_add (import_job *job, kineto_numbers *to, kineto_number number) {
  to->at =
      arena_grow (job->scratch, to->at, &to->room, (int64_t)to->n + 1, sizeof *to->at, job->err);
  if (!to->at)
    return false;
  to->at[to->n++] = number;
  return true;
}

static int by_number (const void *a, const void *b) {
  const kineto_number *x = a, *y = b;
  if (x->sequence != y->sequence)
    return x->sequence < y->sequence ? -1 : 1;
  if (x->run != y->run)
    return x->run < y->run ? -1 : 1;
  return x->op < y->op ? -1 : x->op > y->op;
}

void kineto_numbers_sort (kineto_numbers *n) {
  if (n->n)
    qsort (n->at, (size_t)n->n, sizeof *n->at, by_number);
}

int32_t kineto_numbers_behind (const kineto_numbers *n, int64_t sequence, int32_t run) {
  int32_t low = 0, high = n->n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const kineto_number *at = &n->at[middle];
    if (at->sequence < sequence || (at->sequence == sequence && at->run <= run))
      low = middle + 1;
    else
      high = middle;
  }
  return low < n->n && n->at[low].sequence == sequence ? low : NONE;
}

int32_t kineto_numbers_next (const kineto_numbers *n, int32_t at) {
  return at + 1 < n->n && n->at[at + 1].sequence == n->at[at].sequence ? at + 1 : NONE;
}
