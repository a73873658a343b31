/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/same_trace.h"

#include <stdio.h>
#include <string.h>

static bool differs (char difference[DIFFERENCE], const char *what, int64_t index,
                     const char *field, int64_t x, int64_t y) {
  snprintf (difference, DIFFERENCE, "%s %lld: %s is %lld and %lld", what, (long long)index, field,
            (long long)x, (long long)y);
  return false;
}

static bool same_text (const char *x, const char *y) {
  return x && y ? strcmp (x, y) == 0 : x == y;
}

static bool same_list (index_list x, index_list y) {
  return x.count == y.count && (x.count == 0 || !memcmp (x.at, y.at, x.count * sizeof *x.at));
}

#define SAME(what, i, field) \
  if (x->field != y->field)  \
  return differs (difference, what, i, #field, (int64_t)x->field, (int64_t)y->field)
#define SAME_BY(what, i, same, field) \
  if (!same (x->field, y->field))     \
  return differs (difference, what, i, #field, 0, 1)

static bool same_origin (const origin *x, const origin *y, const char *what, int32_t i,
                         char difference[DIFFERENCE]) {
  SAME (what, i, index);
  SAME (what, i, first_item);
  SAME (what, i, end_item);
  SAME (what, i, copy);
  return true;
}

static bool same_tensor (const tensor *x, const tensor *y, int32_t i, char difference[DIFFERENCE]) {
  SAME_BY ("tensor", i, same_text, name);
  SAME ("tensor", i, bytes);
  SAME ("tensor", i, kind);
  SAME ("tensor", i, persistent);
  SAME ("tensor", i, pinned);
  SAME ("tensor", i, split);
  SAME ("tensor", i, again);
  SAME ("tensor", i, placed);
  SAME ("tensor", i, born_before);
  SAME ("tensor", i, dies_after);
  return true;
}

static bool same_op (const op *x, const op *y, int32_t i, char difference[DIFFERENCE]) {
  SAME_BY ("op", i, same_text, name);
  SAME ("op", i, ns);
  SAME ("op", i, gap_ns);
  SAME ("op", i, workspace_bytes);
  SAME ("op", i, parts);
  SAME ("op", i, phase);
  SAME_BY ("op", i, same_text, compute);
  SAME_BY ("op", i, same_list, reads);
  SAME_BY ("op", i, same_list, writes);
  SAME_BY ("op", i, same_list, side);
  return true;
}

static bool same_trace (const trace *x, const trace *y, char difference[DIFFERENCE]) {
  SAME ("trace", 0, batch);
  SAME ("trace", 0, n_tensors);
  SAME ("trace", 0, n_ops);
  SAME ("trace", 0, n_samples);
  for (int32_t i = 0; i < x->n_samples * x->n_ops; i++)
    SAME ("sample", i, ns_samples[i]);
  for (int32_t i = 0; i < x->n_tensors; i++)
    if (!same_tensor (&x->tensors[i], &y->tensors[i], i, difference))
      return false;
  for (int32_t i = 0; i < x->n_ops; i++)
    if (!same_op (&x->ops[i], &y->ops[i], i, difference))
      return false;
  return true;
}

bool same_rewritten (const rewritten *x, const rewritten *y, char difference[DIFFERENCE]) {
  if (!same_trace (x->trace, y->trace, difference))
    return false;
  for (int32_t i = 0; i < x->trace->n_ops; i++)
    if (!same_origin (&x->ops[i], &y->ops[i], "origin of op", i, difference))
      return false;
  for (int32_t i = 0; i < x->trace->n_tensors; i++)
    if (!same_origin (&x->tensors[i], &y->tensors[i], "origin of tensor", i, difference))
      return false;
  return true;
}
