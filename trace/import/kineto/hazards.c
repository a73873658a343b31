/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waits as the trace gets them.  Ops of two streams that use one tensor, one of them writing it,
   have an order, also where no synchronization event says so: the host asked whether an event had
   passed, or the reads are only possible ones.  The later op then waits for all that had ended on
   the other stream.  If the earlier one had not ended, the later one cannot need what it does: it
   counts as none of those that use the tensor, which stays on the device. */
#include "trace/import/kineto/kineto.h"

typedef struct touches {
  import_report *report;
  kineto_iteration *it;
  trace *t;
  int32_t *known;  /* per op and stream: the last op there that has surely ended when it begins */
  int32_t *writer; /* per tensor: the last op that wrote it, or took its memory */
  int32_t *reader; /* per tensor and stream: the last since then that touches it */
  int32_t raised;  /* the last op that waits for more */
} touches;

static void learn (touches *x, int32_t op, int32_t ended) {
  int32_t n = x->it->n_streams, stream = x->it->runs[ended].stream;
  int32_t *known = &x->known[(int64_t)op * n], *more = &x->known[(int64_t)ended * n];
  for (int32_t s = 0; s < n; s++)
    known[s] = more[s] > known[s] ? more[s] : known[s];
  known[stream] = ended > known[stream] ? ended : known[stream];
}

/* False: the first op had not ended when the second began. */
static bool order (touches *x, int32_t first, int32_t second) {
  int32_t n = x->it->n_streams;
  if (first == NONE || first == second)
    return true;
  int64_t at = (int64_t)second * n + x->it->runs[first].stream;
  if (x->known[at] >= first)
    return true;
  if (x->it->seen[at] < first)
    return false;
  x->it->waits[at] = x->it->seen[at];
  learn (x, second, x->it->seen[at]);
  x->it->unexplained += x->raised != second;
  x->raised = second;
  return true;
}

/* The tensor stays where it is until the op has ended, whichever of the two uses it. */
static void keep_beside (touches *x, int32_t op, int32_t tensor_index) {
  tensor *y = &x->t->tensors[tensor_index];
  y->pinned = true;
  if (!y->persistent && y->dies_after < op)
    y->dies_after = op;
  x->it->beside++;
}

/* False: it does not, since it ran beside another that does. */
static bool touch (touches *x, int32_t op, int32_t tensor, bool writes) {
  int32_t n = x->it->n_streams, *readers = &x->reader[(int64_t)tensor * n];
  bool is_first = x->writer[tensor] == NONE && !x->t->tensors[tensor].persistent;
  bool ordered = order (x, x->writer[tensor], op);
  for (int32_t s = 0; s < n && (writes || is_first); s++)
    ordered &= order (x, readers[s], op);
  if (!ordered) {
    keep_beside (x, op, tensor);
    return false;
  }
  if (writes || is_first) {
    for (int32_t s = 0; s < n; s++)
      readers[s] = NONE;
    x->writer[tensor] = op;
  }
  readers[x->it->runs[op].stream] = op;
  return true;
}

static void touch_all (touches *x, int32_t op, index_list *list, bool writes) {
  int32_t n = 0;
  for (int32_t i = 0; i < list->count; i++)
    if (touch (x, op, list->at[i], writes))
      list->at[n++] = list->at[i];
  if (!writes && x->report->reads_inferred) /* these reads are all inferred, or none is */
    x->report->reads_inferred -= list->count - n;
  list->count = n;
}

static void go_through (touches *x) {
  int32_t n = x->it->n_streams, last[MOST_STREAMS];
  for (int32_t s = 0; s < n; s++)
    last[s] = NONE;
  for (int32_t k = 0; k < x->it->n_runs; k++) {
    int32_t stream = x->it->runs[k].stream;
    if (last[stream] != NONE)
      learn (x, k, last[stream]);
    last[stream] = k;
    for (int32_t s = 0; s < n; s++)
      if (x->it->waits[(int64_t)k * n + s] != NONE)
        learn (x, k, x->it->waits[(int64_t)k * n + s]);
    touch_all (x, k, &x->t->ops[k].reads, false);
    touch_all (x, k, &x->t->ops[k].writes, true);
  }
}

static bool explain_uses (import_job *job, kineto_iteration *it, trace *t) {
  int32_t n = it->n_streams;
  int64_t n_known = (int64_t)it->n_runs * n, n_readers = (int64_t)t->n_tensors * n;
  touches x = { .report = job->report, .it = it, .t = t, .raised = NONE };
  if (!ALLOC (job->scratch, x.known, n_known, job->err) ||
      !ALLOC (job->scratch, x.writer, t->n_tensors, job->err) ||
      !ALLOC (job->scratch, x.reader, n_readers, job->err))
    return false;
  for (int64_t i = 0; i < n_known; i++)
    x.known[i] = NONE;
  for (int32_t i = 0; i < t->n_tensors; i++)
    x.writer[i] = t->tensors[i].born_before;
  for (int64_t i = 0; i < n_readers; i++)
    x.reader[i] = NONE;
  go_through (&x);
  return it->unexplained == 0 || kineto_list_waits (job, it);
}

static bool say_rule (import_job *job, const kineto *k, const kineto_iteration *it) {
  const char *text =
      it->untold
          ? arena_format (job->a, job->err, "waits between streams: all that had ended, since %s",
                          it->untold)
          : arena_format (job->a, job->err,
                          "waits between streams: those of %d events of synchronization; %d of %d "
                          "ops wait for all that had ended, for tensors that these leave unordered",
                          k->n_syncs, it->unexplained, it->n_runs);
  report_check (job, text);
  if (!text || !it->beside)
    return text;
  text = arena_format (job->a, job->err,
                       "uses: %d by ops that ran beside one that writes the tensor are left out, "
                       "and these tensors stay",
                       it->beside);
  report_check (job, text);
  return text;
}

bool kineto_put_waits (import_job *job, const kineto *k, kineto_iteration *it, trace *t) {
  if (!it->all || !t)
    return t;
  if (!explain_uses (job, it, t))
    return false;
  int32_t n = it->after_first[it->n_runs];
  int32_t *after = NEW (job->a, n, int32_t, job->err);
  if (!after)
    return false;
  for (int32_t i = 0; i < n; i++)
    after[i] = it->after[i];
  for (int32_t i = 0; i < it->n_runs; i++) {
    int32_t from = it->after_first[i];
    t->ops[i].after = (index_list){ after + from, it->after_first[i + 1] - from };
    t->ops[i].gap_ns = it->runs[i].gap_ns;
  }
  return say_rule (job, k, it);
}
