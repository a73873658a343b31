/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies of ops on several streams.  The trace's waits order its own ops; for a copy they are found
   by its tensors: it begins when those that write what it reads have ended, and those that write
   what it has read, or read what it has written, wait for it. */
#include <string.h>

#include "trace/rewrite/emit.h"

typedef struct beside {
  trace *t;
  const origin *ops;
  int32_t *writer; /* per tensor: the last op that wrote it */
  int32_t *reader; /* per tensor and stream: the last since then that read it */
  int32_t *waits;  /* of the op at hand */
  int32_t n_waits;
} beside;

static void wait_for (beside *b, int32_t k, int32_t before) {
  bool copies = before != NO_OP && (b->ops[k].copy || b->ops[before].copy);
  if (!copies || b->t->ops[k].stream == b->t->ops[before].stream ||
      list_has (&b->t->ops[k].after, before))
    return;
  for (int32_t i = 0; i < b->n_waits; i++)
    if (b->waits[i] == before)
      return;
  b->waits[b->n_waits++] = before;
}

static void look (beside *b, int32_t k) {
  const op *o = &b->t->ops[k];
  for (int32_t j = 0; j < o->reads.count; j++)
    wait_for (b, k, b->writer[o->reads.at[j]]);
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t x = o->writes.at[j];
    wait_for (b, k, b->writer[x]);
    for (int32_t s = 0; s < b->t->n_streams; s++)
      wait_for (b, k, b->reader[(int64_t)x * b->t->n_streams + s]);
  }
  for (int32_t j = 0; j < o->reads.count; j++)
    b->reader[(int64_t)o->reads.at[j] * b->t->n_streams + o->stream] = k;
  for (int32_t j = 0; j < o->writes.count; j++) {
    int32_t *readers = &b->reader[(int64_t)o->writes.at[j] * b->t->n_streams];
    b->writer[o->writes.at[j]] = k;
    for (int32_t s = 0; s < b->t->n_streams; s++)
      readers[s] = NO_OP;
  }
}

static bool add_waits (beside *b, op *o, arena *a, error *err) {
  int32_t *at = NEW (a, (int64_t)o->after.count + b->n_waits, int32_t, err);
  if (!at)
    return false;
  if (o->after.count)
    memcpy (at, o->after.at, (size_t)o->after.count * sizeof *at);
  memcpy (at + o->after.count, b->waits, (size_t)b->n_waits * sizeof *at);
  o->after = (index_list){ at, o->after.count + b->n_waits };
  return true;
}

bool rewrite_wait_for_copies (rewritten *r, arena *a, error *err) {
  beside b = { .t = (trace *)r->trace, .ops = r->ops };
  int64_t n = b.t->n_tensors, most = n * b.t->n_streams;
  if (!trace_has_streams (b.t))
    return true;
  if (!ALLOC (a, b.writer, n, err) || !ALLOC (a, b.reader, most, err) ||
      !ALLOC (a, b.waits, n + most, err))
    return false;
  for (int64_t i = 0; i < n; i++)
    b.writer[i] = NO_OP;
  for (int64_t i = 0; i < most; i++)
    b.reader[i] = NO_OP;
  for (int32_t k = 0; k < b.t->n_ops; k++) {
    b.n_waits = 0;
    look (&b, k);
    if (b.n_waits && !add_waits (&b, &b.t->ops[k], a, err))
      return false;
  }
  return true;
}
