/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One step of an execution trace that holds several, and what its optimizer makes to keep.  Steps
   are told by ProfilerStep# marks; without them by where an optimizer ends.  Calls belong to the
   step in which they were entered, whatever their thread: backward waits for its threads. */
#include <stdlib.h>

#include "base/order.h"
#include "trace/import/common/calls.h"
#include "trace/import/et/et.h"

typedef struct step {
  int64_t from, to; /* record ids: [from, to) */
  int64_t number, calls;
} step;

typedef struct steps {
  step *at;
  int32_t count;
  int64_t room;
  const char *called; /* "ProfilerStep#" */
} steps;

static int by_from (const void *a, const void *b) {
  const step *x = a, *y = b;
  return ORDER (x->from, y->from);
}

static bool add (import_job *job, steps *s, int64_t from, int64_t number) {
  if (!GROW (job->scratch, s->at, &s->room, (int64_t)s->count + 1, job->err))
    return false;
  s->at[s->count++] = (step){ .from = from, .number = number };
  return true;
}

static bool find_marks (import_job *job, const et *e, steps *s) {
  s->called = "ProfilerStep#";
  for (int32_t i = 0; i < e->n_nodes; i++) {
    slice name = e->names.texts[e->nodes[i].name];
    int64_t number = s->count;
    if (!slice_starts (name, "ProfilerStep#"))
      continue;
    slice digits = { name.at + 13, name.size - 13, false };
    if (!slice_decimal (digits, 0, &number))
      number = s->count;
    if (!add (job, s, e->nodes[i].record_id, number))
      return false;
  }
  return true;
}

static bool is_optimizer (const et *e, int32_t node) {
  return node >= 0 && slice_starts (e->names.texts[e->nodes[node].name], "Optimizer.step");
}

/* The Optimizer.step that is around a node, or the node itself; -1: none. */
static int32_t optimizer_of (const et *e, int32_t node) {
  for (int depth = 0; node >= 0 && depth < 256; depth++, node = e->nodes[node].parent)
    if (is_optimizer (e, node))
      return node;
  return -1;
}

typedef struct entered {
  int64_t record_id;
  bool optimizer, backward;
} entered;

static int by_record (const void *a, const void *b) {
  const entered *x = a, *y = b;
  return ORDER (x->record_id, y->record_id);
}

/* A step ends with the last call of an optimizer behind which autograd runs again. */
static bool find_optimizers (import_job *job, const et *e, steps *s) {
  entered *rows = NEW (job->scratch, e->n_nodes, entered, job->err);
  if (!rows)
    return false;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    slice name = e->names.texts[e->nodes[i].name];
    bool optimizer = optimizer_of (e, i) >= 0;
    rows[i] = (entered){ e->nodes[i].record_id, optimizer,
                         !optimizer && !e->nodes[i].annotation && call_is_backward (name) };
  }
  qsort (rows, (size_t)e->n_nodes, sizeof *rows, by_record);
  s->called = "step ";
  int64_t end = -1, from = INT64_MIN;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    if (rows[i].optimizer)
      end = rows[i].record_id;
    if (rows[i].backward && end >= 0) {
      if (!add (job, s, from, s->count))
        return false;
      from = end + 1;
      end = -1;
    }
  }
  return end < 0 || add (job, s, from, s->count);
}

static void count_calls (const et *e, steps *s) {
  qsort (s->at, (size_t)s->count, sizeof *s->at, by_from);
  for (int32_t i = 0; i < s->count; i++)
    s->at[i].to = i + 1 < s->count ? s->at[i + 1].from : INT64_MAX;
  for (int32_t i = 0; i < e->n_nodes; i++)
    for (int32_t j = 0; j < s->count; j++) {
      int64_t at = e->nodes[i].record_id;
      s->at[j].calls += e->nodes[i].n_mentions && at >= s->at[j].from && at < s->at[j].to;
    }
}

/* The last that is whole: one that was cut off has far fewer calls than the largest. */
static int32_t last_whole (const steps *s) {
  int64_t most = 0;
  for (int32_t i = 0; i < s->count; i++)
    most = s->at[i].calls > most ? s->at[i].calls : most;
  int32_t at = s->count - 1;
  while (at > 0 && s->at[at].calls < most - most / 4)
    at--;
  return at;
}

/* Nodes outside go, with their mentions. */
static void keep_step (import_job *job, et *e, const step *s, int32_t *moved) {
  int32_t n = 0;
  int64_t mentions = 0;
  for (int32_t i = 0; i < e->n_nodes; i++) {
    et_node node = e->nodes[i];
    moved[i] = -1;
    if (!node.structural && (node.record_id < s->from || node.record_id >= s->to))
      continue;
    int32_t first = node.first_mention;
    node.first_mention = (int32_t)mentions;
    for (int32_t m = 0; m < node.n_mentions; m++) {
      e->mentions[mentions] = e->mentions[first + m];
      e->mentions[mentions++].node = n;
    }
    moved[i] = n;
    e->nodes[n++] = node;
  }
  for (int32_t i = 0; i < n; i++)
    if (e->nodes[i].parent >= 0)
      e->nodes[i].parent = moved[e->nodes[i].parent];
  report_warn (job, "calls of other steps left out", e->n_nodes - n, NULL);
  e->n_nodes = n;
  e->n_mentions = mentions;
}

enum { MOST_STEPS = 4096 };

bool et_choose_step (import_job *job, et *e) {
  steps s = { 0 };
  if (!find_marks (job, e, &s) || (s.count == 0 && !find_optimizers (job, e, &s)))
    return false;
  if (s.count > MOST_STEPS)
    return error_set (job->err, ERR_input, "more than %d steps", MOST_STEPS);
  if (s.count == 0 || (s.count == 1 && job->options.step < 0))
    return true;
  count_calls (e, &s);
  int32_t at = last_whole (&s);
  if (job->options.step >= 0) {
    at = 0;
    while (at < s.count && s.at[at].number != job->options.step)
      at++;
    if (at == s.count)
      return error_set (job->err, ERR_infeasible, "no step %lld: there are %d, %s%lld to %s%lld",
                        (long long)job->options.step, s.count, s.called, (long long)s.at[0].number,
                        s.called, (long long)s.at[s.count - 1].number);
  }
  job->report->iteration =
      arena_format (job->a, job->err, "%s%lld of %d step%s", s.called, (long long)s.at[at].number,
                    s.count, s.count == 1 ? "" : "s");
  int32_t *moved = NEW (job->scratch, e->n_nodes, int32_t, job->err);
  if (!moved || !job->report->iteration)
    return false;
  if (s.count > 1)
    keep_step (job, e, &s.at[at], moved);
  return true;
}

/* ---- tensors that stay ---- */

/* The outermost call below the optimizer; the node itself outside of one. */
static int32_t call_in_optimizer (const et *e, int32_t node) {
  for (int depth = 0; depth < 256; depth++) {
    int32_t parent = e->nodes[node].parent;
    if (parent < 0 || is_optimizer (e, parent) || e->walk[parent].phase != PHASE_OPT)
      return node;
    node = parent;
  }
  return node;
}

void et_mark_kept (et *e) {
  for (int32_t i = 0; i < e->generations.count; i++) {
    generation *g = &e->generations.at[i];
    if (!g->defined || e->walk[g->first_node].phase != PHASE_OPT)
      continue;
    int32_t made = call_in_optimizer (e, g->first_node);
    g->kept = call_is_factory (e->names.texts[e->nodes[made].name]) &&
              call_in_optimizer (e, g->last_node) != made;
  }
}
