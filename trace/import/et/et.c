/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An execution trace alone: what is alive together, by calls that have no time.  The ops of the
   trace are the innermost calls that name a device tensor; what only an outer call names (the
   inputs of aten::convolution_backward, whose parts are allocations) goes to the next innermost
   one. */
#include <stdlib.h>

#include "trace/import/et/et.h"

#include "base/order.h"

typedef struct entered {
  int64_t axis;
  int32_t node;
} entered;

static int by_axis (const void *a, const void *b) {
  const entered *x = a, *y = b;
  return ORDER (x->axis, y->axis) ?: ORDER (x->node, y->node);
}

/* The place of the first at or behind; n where there is none. */
static int32_t first_at (const entered *rows, int32_t n, int64_t axis) {
  return FIRST_WHERE (i, 0, n, rows[i].axis >= axis);
}

static entered *find_leaves (import_job *job, const et *e, int32_t *n) {
  entered *rows = NEW (job->scratch, e->n_nodes, entered, job->err);
  *n = 0;
  for (int32_t i = 0; rows && i < e->n_nodes; i++)
    if (e->nodes[i].leaf && !e->nodes[i].structural && e->nodes[i].n_mentions)
      rows[(*n)++] = (entered){ e->nodes[i].record_id, i };
  if (rows && *n)
    qsort (rows, (size_t)*n, sizeof *rows, by_axis);
  return rows;
}

static op_phase phase_of (uint8_t phase) {
  return phase == PHASE_OPT ? OP_UPDATE : phase == PHASE_BWD ? OP_BACKWARD : OP_FORWARD;
}

static bool collect (import_job *job, const et *e, const entered *leaves, int32_t n, et_uses *uses,
                     int32_t *first_op, et_life *lives) {
  for (int32_t i = 0; i < e->generations.count; i++) {
    const generation *g = &e->generations.at[i];
    int32_t at = first_at (leaves, n, g->first_axis);
    first_op[i] = g->defined ? (at < n ? at : n - 1) : 0;
  }
  for (int64_t i = 0; i < e->n_mentions; i++) {
    const mention *m = &e->mentions[i];
    const generation *g = &e->generations.at[m->generation];
    /* An outer call hands up what one of its parts made. */
    if (m->output && !e->nodes[m->node].leaf && g->defined && g->first_node != m->node)
      continue;
    int32_t at = first_at (leaves, n, e->nodes[m->node].record_id);
    if (at == n)
      at = n - 1;
    bool makes = m->output && g->defined && g->first_node == m->node;
    lives[m->generation].used = true;
    if (!et_add_use (job, uses, at, m, makes, false))
      return false;
  }
  et_sort_uses (uses, first_op);
  return true;
}

bool et_import (import_job *job, const import_text *file, trace **out) {
  et e;
  int32_t n, device;
  if (!et_read (job, file, &e) || !et_choose_device (job, &e, &device) ||
      !et_settle (job, &e, device, true))
    return false;
  entered *leaves = find_leaves (job, &e, &n);
  if (!leaves)
    return false;
  if (n == 0)
    return error_set (job->err, ERR_infeasible,
                      "only calls around others name a tensor of the GPU: record the step again "
                      "(docs/record.md)");
  int32_t count = e.generations.count;
  int32_t *first_op = NEW (job->scratch, count, int32_t, job->err);
  int32_t *tensor_of = NEW (job->scratch, count, int32_t, job->err);
  et_life *lives = NEW (job->scratch, count, et_life, job->err);
  et_uses uses = { 0 };
  const char *name = job_trace_name (job, file);
  trace_builder *b = name ? build_new (job->a, name, 1, job->err) : NULL;
  if (!first_op || !tensor_of || !lives || !b ||
      !collect (job, &e, leaves, n, &uses, first_op, lives) ||
      !et_make_tensors (job, &e.generations, e.walk, lives, n, b, tensor_of))
    return false;
  int64_t at = 0;
  for (int32_t i = 0; i < n; i++) {
    const char *op =
        slice_name (e.names.texts[e.nodes[leaves[i].node].name], job->scratch, job->err);
    if (!op)
      return false;
    build_op (b, op, phase_of (e.walk[leaves[i].node].phase), 0);
    et_put_uses (&uses, &at, i, tensor_of, b);
  }
  build_source (b, "import", "execution trace");
  build_confidence (b, CONFIDENCE_NOT_PLANNABLE, "no durations");
  job->report->peak_by = "last use";
  job->report->advice = "no durations in an execution trace. Add the Kineto file of the same run";
  *out = build_finish (b, job->err);
  return *out;
}
