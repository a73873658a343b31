/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/kineto/numbers.h"

#include <stdlib.h>

#include "base/order.h"
#include "trace/import/kineto/kineto.h"

bool kineto_numbers_add (import_job *job, kineto_numbers *to, kineto_number number) {
  if (!GROW (job->scratch, to->at, &to->room, (int64_t)to->n + 1, job->err))
    return false;
  to->at[to->n++] = number;
  return true;
}

static int by_number (const void *a, const void *b) {
  const kineto_number *x = a, *y = b;
  return ORDER (x->sequence, y->sequence) ?: ORDER (x->run, y->run) ?: ORDER (x->op, y->op);
}

void kineto_numbers_sort (kineto_numbers *n) {
  if (n->n)
    qsort (n->at, (size_t)n->n, sizeof *n->at, by_number);
}

int32_t kineto_numbers_behind (const kineto_numbers *n, int64_t sequence, int32_t run) {
  int32_t at = FIRST_WHERE (i, 0, n->n,
                            n->at[i].sequence > sequence ||
                                (n->at[i].sequence == sequence && n->at[i].run > run));
  return at < n->n && n->at[at].sequence == sequence ? at : NONE;
}

int32_t kineto_numbers_next (const kineto_numbers *n, int32_t at) {
  return at + 1 < n->n && n->at[at + 1].sequence == n->at[at].sequence ? at + 1 : NONE;
}
