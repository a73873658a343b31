/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "trace/import/text/intervals_trace.h"

#include <string.h>

/* Per op the tensors that are born or die there, as chains in order of index. */
static void chain (const lived *lives, int32_t n, int32_t *head, int32_t *link, bool deaths) {
  for (int32_t i = n - 1; i >= 0; i--) {
    int32_t op = deaths ? lives[i].death : lives[i].birth;
    link[i] = head[op];
    head[op] = i;
  }
}

bool intervals_trace_build (import_job *job, trace_builder *b, const char *const *op_names,
                            int32_t n_ops, const lived *lives, int32_t n_lives) {
  int32_t *heads = NEW (job->scratch, 2 * (int64_t)n_ops, int32_t, job->err);
  int32_t *links = NEW (job->scratch, 2 * (int64_t)n_lives, int32_t, job->err);
  if (!heads || !links)
    return false;
  memset (heads, 0xff, 2 * (size_t)n_ops * sizeof *heads);
  chain (lives, n_lives, heads, links, false);
  chain (lives, n_lives, heads + n_ops, links + n_lives, true);
  for (int32_t i = 0; i < n_lives; i++)
    build_tensor (b, lives[i].name, lives[i].bytes, lives[i].kind);
  for (int32_t k = 0; k < n_ops; k++) {
    build_op (b, op_names[k], OP_OTHER, 0);
    for (int32_t i = heads[n_ops + k]; i >= 0; i = links[n_lives + i])
      if (lives[i].birth < k)
        build_read (b, i);
    for (int32_t i = heads[k]; i >= 0; i = links[i])
      build_write (b, i);
  }
  return true;
}
