/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/gpu/kernel_work.h"

#include <assert.h>

static const bool whole_batch[COMPUTE_KINDS] = {
#define ITEMS false
#define BATCH true
#define ONCE false
#define COMPUTE(kind, shape, how, ...) how,
#include "trace/compute.def"
#undef ITEMS
#undef BATCH
#undef ONCE
};

static int64_t items_of (const ops_operand *p) {
  int64_t n = 0;
  for (int32_t j = 0; j < p->count; j++)
    n += p->pieces[j].items;
  return n;
}

/* An item's address, and how many lie from it on in the same piece. */
static void *item_at (const ops_operand *p, int64_t item, int64_t item_bytes, int64_t *left) {
  for (int32_t j = 0; j < p->count; item -= p->pieces[j++].items)
    if (item < p->pieces[j].items) {
      *left = p->pieces[j].items - item;
      return (char *)p->pieces[j].data + item * item_bytes;
    }
  *left = 0;
  return NULL;
}

int64_t kernel_work_table_bytes (const ops_call *call) {
  operand o[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (call->c, o);
  int64_t items = 0;
  for (int i = 0; i < n && whole_batch[call->c->kind]; i++)
    items += o[i].item ? items_of (&call->operands[i]) : 0;
  return items * (int64_t)sizeof (void *);
}

int64_t kernel_work_fill (const ops_call *call, int64_t from, void **table, kernel_work *out) {
  assert (from >= 0 && call->first_item + from < call->end_item);
  operand o[COMPUTE_MOST_OPERANDS];
  int n = compute_operands (call->c, o);
  bool all = whole_batch[call->c->kind];
  *out = (kernel_work){ .c = *call->c,
                        .first_item = call->first_item + from,
                        .items = call->end_item - call->first_item - from };
  for (int i = 0; i < n; i++) {
    const ops_operand *p = &call->operands[i];
    int64_t left, bytes = o[i].item ? o[i].bytes / compute_batch (call->c) : o[i].bytes;
    if (p->count == 0)
      continue;
    out->at[i] = item_at (p, o[i].item ? from : 0, bytes, &left);
    if (o[i].item && !all && left < out->items)
      out->items = left;
    if (!o[i].item || !all)
      continue;
    out->at[i] = table;
    for (int64_t k = 0; table != NULL && k < items_of (p); k++)
      *table++ = item_at (p, k, bytes, &left);
  }
  return out->items;
}

bool kernel_work_zeroes (const ops_call *call, int index, const operand *o) {
  return !o->item && o->use == WRITE && call->first_item == 0 && call->operands[index].count > 0;
}

int32_t kernel_work_phases (const kernel_work *k) {
  switch (k->c.kind) {
  case COMPUTE_batchnorm_fwd:
    return 3;
  case COMPUTE_batchnorm_bwd:
  case COMPUTE_entropy_fwd:
    return 2;
  case COMPUTE_conv_bwd_weights:
  case COMPUTE_deconv_bwd_weights:
    return k->workspace_bytes > 0 ? 2 : 1;
  default:
    return 1;
  }
}

int64_t kernel_work_partials (const kernel_work *k) {
  switch (k->c.kind) {
  case COMPUTE_batchnorm_fwd:
  case COMPUTE_batchnorm_bwd:
    return 2 * k->c.batchnorm.channels * kernel_work_chunks (k);
  case COMPUTE_entropy_fwd:
    return k->items * kernel_work_chunks (k);
  default:
    return 0;
  }
}
