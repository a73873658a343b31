/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/versions.h"

bool versions_of (const trace *t, arena *a, versions *out, error *err) {
  int64_t n = 0;
  *out = (versions){ .first = NEW (a, t->n_ops, int64_t, err) };
  if (!out->first)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    out->first[k] = n;
    n += t->ops[k].reads.count + t->ops[k].writes.count;
  }
  int32_t *at = out->at = NEW (a, n, int32_t, err);
  arena_mark mark = arena_here (a);
  int32_t *written = NEW (a, t->n_tensors, int32_t, err);
  if (!at || !written)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++) {
    const op *o = &t->ops[k];
    for (int32_t j = 0; j < o->reads.count; j++)
      *at++ = written[o->reads.at[j]];
    for (int32_t j = 0; j < o->writes.count; j++)
      *at++ = written[o->writes.at[j]]++;
  }
  arena_back (a, mark);
  return true;
}
