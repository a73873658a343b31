/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Uses of generations by ops, and the tensors that they become. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "trace/import/et/et.h"

/* Work on another stream uses its tensors during every op that runs beside it, so uses can be many
   more than mentions; no real step comes near this. */
#define MOST_USES ((int64_t)1 << 26)

bool et_add_use (import_job *job, et_uses *uses, int32_t op, const mention *m, bool makes,
                 bool works) {
  assert (op >= 0);
  if (uses->count == MOST_USES)
    return error_set (job->err, ERR_input, "more than 2^26 uses of tensors by ops");
  if (!GROW (job->scratch, uses->at, &uses->room, uses->count + 1, job->err))
    return false;
  bool write = m->written || makes;
  uses->at[uses->count++] =
      (et_use){ op, m->generation, works ? m->own_bytes : 0, !m->output || !write, write };
  return true;
}

static int by_op (const void *a, const void *b) {
  const et_use *x = a, *y = b;
  return ORDER (x->op, y->op) ?: ORDER (x->generation, y->generation);
}

void et_sort_uses (et_uses *uses, const int32_t *first_op) {
  for (int64_t i = 0; i < uses->count; i++) {
    et_use *u = &uses->at[i];
    if (first_op[u->generation] > u->op)
      u->op = first_op[u->generation];
  }
  if (uses->count == 0)
    return;
  qsort (uses->at, (size_t)uses->count, sizeof *uses->at, by_op);
  int64_t n = 0;
  for (int64_t i = 0; i < uses->count; i++) {
    et_use *last = n ? &uses->at[n - 1] : NULL;
    if (last && last->op == uses->at[i].op && last->generation == uses->at[i].generation) {
      last->read |= uses->at[i].read;
      last->write |= uses->at[i].write;
      if (uses->at[i].moved > last->moved)
        last->moved = uses->at[i].moved;
    } else
      uses->at[n++] = uses->at[i];
  }
  uses->count = n;
}

bool et_sum_moved (import_job *job, const et_uses *uses, const generations *g, int32_t n_ops) {
  assert (n_ops >= 0);
  int64_t *moved = NEW (job->scratch, n_ops, int64_t, job->err);
  if (!moved)
    return false;
  for (int64_t i = 0; i < uses->count; i++) {
    const et_use *u = &uses->at[i];
    int64_t whole = g->at[u->generation].bytes; /* an expanded tensor is not read more than once */
    int64_t bytes = u->moved < whole ? u->moved : whole;
    if (moved[u->op] < MOST_BYTES)
      moved[u->op] += bytes;
  }
  job->facts.moved_bytes = moved;
  return true;
}

static bool remember_created (import_job *job, int32_t tensor, int32_t most) {
  import_facts *f = &job->facts;
  if (!f->created)
    f->created = NEW (job->scratch, most, int32_t, job->err);
  if (!f->created)
    return false;
  f->created[f->n_created++] = tensor;
  return true;
}

bool et_make_tensors (import_job *job, const generations *g, const walk_node *nodes,
                      const et_life *lives, int32_t n_ops, trace_builder *b, int32_t *tensor_of) {
  bool optimizer_seen = generations_have_optimizer (g);
  for (int32_t i = 0; i < g->count; i++) {
    const generation *x = &g->at[i];
    tensor_of[i] = -1;
    if (x->bytes == 0) {
      job->report->zero_tensors++;
      continue;
    }
    if (!lives[i].used) {
      job->report->unused_tensors += !lives[i].before && !lives[i].after;
      continue;
    }
    char name[48];
    snprintf (name, sizeof name, "s%lld.%d", (long long)x->storage, i);
    tensor_kind kind = generation_kind (x, nodes, optimizer_seen);
    tensor_of[i] = build_tensor (b, name, x->bytes, kind);
    if (kind == TENSOR_OPTIMIZER && x->defined && !remember_created (job, tensor_of[i], g->count))
      return false;
    tensor *t = build_tensor_at (b, tensor_of[i]);
    /* A tensor that was there before was not made in the step, so nothing says that it ever goes:
       buckets that gradients are reduced in, tables that this step happens not to write, and the
       batch itself, whose place the next batch takes. */
    if (!x->defined)
      t->persistent = true;
    if (!t->persistent) {
      if (lives[i].before)
        t->born_before = 0;
      if (lives[i].after)
        t->dies_after = n_ops - 1;
    }
  }
  return job->err->code == ERR_none;
}

void et_put_uses (const et_uses *uses, int64_t *at, int32_t op, const int32_t *tensor_of,
                  trace_builder *b) {
  for (; *at < uses->count && uses->at[*at].op == op; ++*at) {
    const et_use *u = &uses->at[*at];
    if (tensor_of[u->generation] < 0)
      continue;
    if (u->read)
      build_read (b, tensor_of[u->generation]);
    if (u->write)
      build_write (b, tensor_of[u->generation]);
  }
}
