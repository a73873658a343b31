/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/gpu/kernel_ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const kernel_names_fp32[KERNELS] = {
#define COMPUTE(kind, ...) "ferry_op_" #kind,
#include "trace/compute.def"
  "ferry_op_add_bias"
};
const char *const kernel_names_bf16[KERNELS] = {
#define COMPUTE(kind, ...) "ferry_bf16_" #kind,
#include "trace/compute.def"
  "ferry_bf16_add_bias"
};

/* Room for one stretch; grows. */
typedef struct rooms {
  void **table;
  double *partials;
  void *workspace;
} rooms;

static bool run_stretch (const ops_call *call, int64_t from, rooms *r, int64_t workspace_bytes,
                         int64_t *items, error *err) {
  kernel_on_host *const *kernels = call->c->dtype == DTYPE_BF16 ? kernel_ops_bf16 : kernel_ops_fp32;
  int32_t failed = 0;
  kernel_work w;
  *items = kernel_work_fill (call, from, r->table, &w);
  free (r->partials);
  r->partials = malloc ((size_t)kernel_work_partials (&w) * sizeof (double) + 1);
  if (r->partials == NULL)
    return error_set (err, ERR_memory, "no memory for partial sums");
  w.failed = &failed;
  w.partials = r->partials;
  w.workspace = r->workspace;
  w.workspace_bytes = workspace_bytes;
  w.step = call->step;
  for (w.phase = 0; w.phase < kernel_work_phases (&w); w.phase++)
    kernels[w.c.kind](w);
  return failed == 0 || error_set (err, ERR_input, "%s: a token or class is out of range",
                                   compute_kind_names[w.c.kind]);
}

bool kernel_ops_run (const ops_call *call, int64_t workspace_bytes, error *err) {
  assert (call && workspace_bytes >= 0);
  operand o[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (call->c, o);
  int64_t table_bytes = kernel_work_table_bytes (call), end = call->end_item - call->first_item;
  rooms r = { .workspace = malloc ((size_t)workspace_bytes + 1),
              .table = table_bytes > 0 ? malloc ((size_t)table_bytes) : NULL };
  bool good = r.workspace != NULL && (table_bytes == 0 || r.table != NULL);
  if (!good)
    error_set (err, ERR_memory, "no memory to calculate in");
  for (int i = 0; good && i < n; i++)
    if (kernel_work_zeroes (call, i, &o[i]))
      memset (call->operands[i].pieces[0].data, 0, (size_t)o[i].bytes);
  for (int64_t from = 0, items = 0; good && from < end; from += items)
    good = run_stretch (call, from, &r, workspace_bytes, &items, err);
  free (r.partials);
  free (r.table);
  free (r.workspace);
  return good;
}
