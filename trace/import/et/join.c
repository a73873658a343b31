/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which call of one file is which of the other: by record function id where both have it, else by
   the names in the order in which the calls of a thread began.  Ids that only look alike are not
   used: rf_id and External id agree in toys alone. */
#include "trace/import/et/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

typedef struct call {
  int64_t key; /* record id, or External id */
  int32_t index, name;
} call;

/* The calls of one thread in the order in which they began. */
typedef struct call_list {
  int64_t thread;
  call *at;
  int32_t count;
  bool taken;
} call_list;

static int by_key (const void *a, const void *b) {
  const call *x = a, *y = b;
  return ORDER (x->key, y->key) ?: ORDER (x->index, y->index);
}

static bool is_step (slice name) {
  return slice_starts (name, "ProfilerStep#");
}

/* ---- by record function id ---- */

static bool has_record_ids (const kineto *k) {
  for (int32_t i = 0; i < k->n_ops; i++)
    if (k->ops[i].record_id > 0)
      return true;
  return false;
}

static bool join_by_record_id (joiner *j) {
  id_map ops = id_map_new (j->job->scratch);
  for (int32_t i = 0; i < j->k.n_ops; i++) {
    if (j->k.ops[i].record_id <= 0)
      continue;
    int32_t *at = id_map_at (&ops, j->k.ops[i].record_id, j->job->err);
    if (!at)
      return false;
    *at = i;
  }
  int64_t other_names = 0;
  slice here = { "", 0, false }, there = here;
  for (int32_t i = 0; i < j->e.n_nodes; i++) {
    const et_node *n = &j->e.nodes[i];
    int32_t op = n->structural || n->record_id <= 0 ? NONE : id_map_find (&ops, n->record_id);
    if (op == NONE)
      continue;
    slice a = j->e.names.texts[n->name], b = j->k.names.texts[j->k.ops[op].name];
    if (a.size != b.size || memcmp (a.at, b.at, (size_t)a.size) != 0) {
      other_names++;
      here = a;
      there = b;
      continue;
    }
    j->op_of[i] = op;
    j->matched++;
  }
  j->how = "by record function id";
  if (j->matched == 0)
    return error_set (j->job->err, ERR_input,
                      "the two files are not of one run: no call has the same record function id "
                      "and name in both");
  if (other_names >= j->matched) /* these ids begin with 1 in every process */
    return error_set (j->job->err, ERR_input,
                      "the two files are not of one run: %lld calls have the same record function "
                      "id and name in both, but %lld another name, as `%.*s` / `%.*s`",
                      (long long)j->matched, (long long)other_names,
                      (int)(here.size < 80 ? here.size : 80), here.at,
                      (int)(there.size < 80 ? there.size : 80), there.at);
  if (other_names)
    report_warn (j->job, "calls with the same record function id and another name", other_names,
                 NULL);
  return true;
}

/* ---- by name sequence ---- */

/* Names of both files as numbers of one table, so that sequences compare as numbers. */
static int32_t common_name (joiner *j, intern *names, slice name) {
  return intern_add (names, name, false, j->job->err);
}

static call_list *list_of (call_list *lists, int *n, int most, int64_t thread) {
  for (int i = 0; i < *n; i++)
    if (lists[i].thread == thread)
      return &lists[i];
  if (*n == most)
    return NULL;
  lists[*n] = (call_list){ .thread = thread };
  return &lists[(*n)++];
}

enum { MOST_THREADS = 256 };

static bool too_many (joiner *j) {
  return error_set (j->job->err, ERR_input, "more than %d threads", MOST_THREADS);
}

typedef struct both_lists {
  call_list et[MOST_THREADS], kineto[MOST_THREADS];
  int n_et, n_kineto;
} both_lists;

static bool allot (joiner *j, call_list *lists, int n) {
  for (int i = 0; i < n; i++) {
    if (!ALLOC (j->job->scratch, lists[i].at, lists[i].count, j->job->err))
      return false;
    lists[i].count = 0;
  }
  return true;
}

static bool list_calls (joiner *j, intern *names, both_lists *both) {
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < j->e.n_nodes; i++) {
      const et_node *n = &j->e.nodes[i];
      slice name = j->e.names.texts[n->name];
      if (n->structural || is_step (name))
        continue;
      call_list *l = list_of (both->et, &both->n_et, MOST_THREADS, n->thread);
      if (!l)
        return too_many (j);
      if (pass)
        l->at[l->count] = (call){ n->record_id, i, common_name (j, names, name) };
      l->count++;
    }
    for (int32_t i = 0; i < j->k.n_ops; i++) {
      const kineto_op *o = &j->k.ops[i];
      call_list *l = list_of (both->kineto, &both->n_kineto, MOST_THREADS, o->thread);
      if (!l)
        return too_many (j);
      if (pass)
        l->at[l->count] =
            (call){ o->external_id, i, common_name (j, names, j->k.names.texts[o->name]) };
      l->count++;
    }
    if (pass == 0 && (!allot (j, both->et, both->n_et) || !allot (j, both->kineto, both->n_kineto)))
      return false;
  }
  for (int i = 0; i < both->n_et; i++)
    qsort (both->et[i].at, (size_t)both->et[i].count, sizeof (call), by_key);
  for (int i = 0; i < both->n_kineto; i++)
    qsort (both->kineto[i].at, (size_t)both->kineto[i].count, sizeof (call), by_key);
  return j->job->err->code == ERR_none;
}

/* The place at which the shorter sequence lies in the longer one: the last place, by Knuth, Morris
   and Pratt, so that long repetitive steps cost no more than their length.  -1: nowhere. */
static int64_t find_inside (joiner *j, const call_list *inner, const call_list *outer,
                            int64_t *places) {
  int32_t *border = NEW (j->job->scratch, (int64_t)inner->count + 1, int32_t, j->job->err);
  *places = 0;
  if (!border || inner->count == 0)
    return -1;
  border[0] = -1;
  for (int32_t i = 0, b = -1; i < inner->count;) {
    while (b >= 0 && inner->at[i].name != inner->at[b].name)
      b = border[b];
    border[++i] = ++b;
  }
  int64_t found = -1;
  for (int32_t i = 0, m = 0; i < outer->count; i++) {
    while (m >= 0 && (m == inner->count || outer->at[i].name != inner->at[m].name))
      m = border[m];
    if (++m == inner->count) {
      found = (int64_t)i + 1 - m;
      ++*places;
    }
  }
  return found;
}

static bool same_names (const call_list *a, const call_list *b) {
  if (a->count != b->count)
    return false;
  for (int32_t i = 0; i < a->count; i++)
    if (a->at[i].name != b->at[i].name)
      return false;
  return true;
}

static void match (joiner *j, const call_list *et, int64_t et_from, const call_list *kineto,
                   int64_t kineto_from, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    j->op_of[et->at[et_from + i].index] = kineto->at[kineto_from + i].index;
  j->matched += n;
  j->threads++;
}

static bool refuse_thread (joiner *j, const intern *names, const call_list *et,
                           const both_lists *both) {
  /* the nearest thread of the other file: that which agrees longest */
  const call_list *best = NULL;
  int32_t best_same = -1;
  for (int i = 0; i < both->n_kineto; i++) {
    const call_list *l = &both->kineto[i];
    int32_t same = 0;
    while (same < l->count && same < et->count && l->at[same].name == et->at[same].name)
      same++;
    if (!l->taken && same > best_same) {
      best = l;
      best_same = same;
    }
  }
  if (!best)
    return error_set (j->job->err, ERR_input,
                      "the two files are not of one run: thread %lld has %d ops here and no "
                      "counterpart there",
                      (long long)et->thread, et->count);
  slice none = { "nothing", 7, false };
  slice a = best_same < et->count ? names->texts[et->at[best_same].name] : none;
  slice b = best_same < best->count ? names->texts[best->at[best_same].name] : none;
  return error_set (j->job->err, ERR_input,
                    "the two files are not of one run: thread %lld has %d ops here and %d there, "
                    "first difference at op %d (`%.*s` / `%.*s`)",
                    (long long)et->thread, et->count, best->count, best_same,
                    (int)(a.size < 80 ? a.size : 80), a.at, (int)(b.size < 80 ? b.size : 80), b.at);
}

/* Whole threads first; then one iteration of one file inside the other. */
static bool join_by_names (joiner *j) {
  both_lists *both = NEW (j->job->scratch, 1, both_lists, j->job->err);
  intern names = intern_new (j->job->scratch);
  if (!both || !list_calls (j, &names, both))
    return false;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < both->n_et; i++) {
      call_list *et = &both->et[i];
      for (int o = 0; !et->taken && o < both->n_kineto; o++) {
        call_list *kineto = &both->kineto[o];
        if (kineto->taken)
          continue;
        int64_t places = 0, et_from = 0, kineto_from = 0;
        int64_t n = et->count < kineto->count ? et->count : kineto->count;
        bool fits = pass == 0 && same_names (et, kineto);
        if (pass == 1 && et->count < kineto->count)
          fits = (kineto_from = find_inside (j, et, kineto, &places)) >= 0;
        else if (pass == 1)
          fits = (et_from = find_inside (j, kineto, et, &places)) >= 0;
        if (!fits)
          continue;
        match (j, et, et_from, kineto, kineto_from, n);
        et->taken = kineto->taken = true;
        if (places > 1)
          report_warn (j->job, "places where one file fits into the other; the last was taken",
                       places, NULL);
      }
    }
  for (int i = 0; i < both->n_et; i++)
    if (!both->et[i].taken)
      return refuse_thread (j, &names, &both->et[i], both);
  j->how = "by name sequence";
  return true;
}

bool et_join (joiner *j) {
  if (!ALLOC (j->job->scratch, j->op_of, j->e.n_nodes, j->job->err))
    return false;
  for (int32_t i = 0; i < j->e.n_nodes; i++)
    j->op_of[i] = NONE;
  if (!(has_record_ids (&j->k) ? join_by_record_id (j) : join_by_names (j)))
    return false;
  j->k.paired = true;
  /* A call that names no tensor says nothing, so nothing is lost with it: such as what the observer
     notes of process groups before the profiler begins. */
  int64_t calls = j->matched;
  for (int32_t i = 0; i < j->e.n_nodes; i++) {
    et_node *n = &j->e.nodes[i];
    if (j->op_of[i] != NONE) {
      j->k.ops[j->op_of[i]].listed = true;
      n->annotation |= j->k.ops[j->op_of[i]].annotation;
    } else
      calls += n->n_mentions && !n->structural && !is_step (j->e.names.texts[n->name]);
  }
  const char *threads = j->threads
                            ? arena_format (j->job->a, j->job->err, " on %lld thread%s",
                                            (long long)j->threads, j->threads == 1 ? "" : "s")
                            : "";
  j->job->report->joined =
      threads ? arena_format (j->job->a, j->job->err, "%lld of %lld calls%s %s",
                              (long long)j->matched, (long long)calls, threads, j->how)
              : NULL;
  j->job->facts.calls = calls;
  j->job->facts.calls_found = j->matched;
  if (j->matched < calls)
    report_warn (j->job, "calls of the execution trace without a counterpart", calls - j->matched,
                 NULL);
  return j->job->report->joined;
}
