/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An execution trace and the Kineto file of the same run: the calls of both are matched, times come
   from one and tensors from the other.

   A call that runs nothing on the GPU gives its reads and writes to the next op that was launched
   on its thread after it began; one whose work is on another stream uses its tensors during every
   op that runs beside that work. */
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/calls.h"
#include "trace/import/common/launches.h"
#include "trace/import/et/join.h"
#include "trace/import/kineto/numbers.h"

/* ---- ops that use a call's tensors ---- */

typedef struct placing {
  joiner *j;
  launched *by_thread, *by_time;  /* of the last kernel of each run */
  int32_t *first_run, *next_run;  /* per op its runs on the compute stream, as a chain */
  int64_t *side_start, *side_end; /* per op: its work on other streams; end 0: none */
  int32_t *first_op;              /* per generation: the op that makes it */
  et_life *lives;
  et_uses uses;
} placing;

static bool prepare (placing *p) {
  joiner *j = p->j;
  arena *s = j->job->scratch;
  error *err = j->job->err;
  int32_t n = j->it.n_runs;
  if (!ALLOC (s, p->by_thread, n, err) || !ALLOC (s, p->by_time, n, err) ||
      !ALLOC (s, p->first_run, j->k.n_ops, err) || !ALLOC (s, p->next_run, n, err) ||
      !ALLOC (s, p->side_start, j->k.n_ops, err) || !ALLOC (s, p->side_end, j->k.n_ops, err) ||
      !ALLOC (s, p->first_op, j->e.generations.count, err) ||
      !ALLOC (s, p->lives, j->e.generations.count, err))
    return false;
  for (int32_t i = 0; i < j->k.n_ops; i++)
    p->first_run[i] = NONE;
  for (int32_t i = n - 1; i >= 0; i--) {
    const kineto_run *r = &j->it.runs[i];
    p->by_thread[i] = (launched){ r->last_launch_ns, r->thread, i };
    p->by_time[i] = (launched){ r->last_launch_ns, 0, i };
    if (r->owner == NONE)
      continue;
    p->next_run[i] = p->first_run[r->owner];
    p->first_run[r->owner] = i;
  }
  launches_sort (p->by_thread, n);
  launches_sort (p->by_time, n);
  if (j->it.all) {
    launches_soonest (p->by_thread, n);
    launches_soonest (p->by_time, n);
  }
  for (int32_t i = 0; i < j->it.n_sides; i++) {
    const kineto_side *side = &j->it.sides[i];
    if (side->owner == NONE)
      continue;
    if (p->side_end[side->owner] == 0)
      p->side_start[side->owner] = side->start_ns;
    if (side->end_ns > p->side_end[side->owner])
      p->side_end[side->owner] = side->end_ns;
  }
  return true;
}

/* The op that a call without GPU work belongs to: the next that its thread launches a kernel of. */
static int32_t folded (const placing *p, const kineto_op *o) {
  int32_t n = p->j->it.n_runs;
  int32_t at = launches_first (p->by_thread, n, o->thread, o->start_ns);
  if (at < n && p->by_thread[at].thread == o->thread)
    return p->by_thread[at].run;
  at = launches_first (p->by_time, n, 0, o->start_ns);
  return at < n ? p->by_time[at].run : n - 1;
}

static int64_t end_ns (const kineto_run *runs, int32_t n, int32_t i) {
  return i + 1 < n ? runs[i + 1].start_ns - runs[i + 1].gap_ns : runs[i].start_ns + runs[i].ns;
}

/* Ops that run beside [start, end), or the next one where compute stands still meanwhile. */
static void beside (const placing *p, int32_t op, int32_t *first, int32_t *end) {
  const kineto_run *runs = p->j->it.runs;
  int32_t n = p->j->it.n_runs;
  *first = FIRST_WHERE (i, 0, n, end_ns (runs, n, i) > p->side_start[op]);
  *first = *first < n ? *first : n - 1;
  *end = *first + 1;
  while (*end < n && runs[*end].start_ns < p->side_end[op])
    ++*end;
}

/* Calls the function for each op that uses what the call names. */
static bool place_mention (placing *p, const mention *m, int32_t op, bool makes) {
  import_job *job = p->j->job;
  if (p->first_run[op] == NONE && p->side_end[op] == 0)
    return et_add_use (job, &p->uses, folded (p, &p->j->k.ops[op]), m, makes, false);
  bool one = p->first_run[op] != NONE && p->next_run[p->first_run[op]] == NONE;
  for (int32_t r = p->first_run[op]; r != NONE; r = p->next_run[r])
    if (!et_add_use (job, &p->uses, r, m, makes, one))
      return false;
  if (p->side_end[op] == 0)
    return true;
  int32_t first, end;
  beside (p, op, &first, &end);
  for (int32_t r = first; r < end; r++)
    if (!et_add_use (job, &p->uses, r, m, makes, false))
      return false;
  return true;
}

/* The op at which a generation begins: that of its defining call. */
static int32_t defining_op (const placing *p, const generation *g) {
  int32_t op = p->j->op_of[g->first_node];
  if (!g->defined || op == NONE)
    return 0;
  if (p->first_run[op] != NONE)
    return p->first_run[op];
  if (p->side_end[op] == 0)
    return folded (p, &p->j->k.ops[op]);
  int32_t first, end;
  beside (p, op, &first, &end);
  return first;
}

/* Before the window, in it, or behind it: -1, 0, 1.  A call without a counterpart is taken to lie
   inside, so that no use is lost. */
static int when (const placing *p, int32_t op) {
  if (op == NONE)
    return 0;
  int64_t at = p->j->k.ops[op].start_ns;
  return at < p->j->it.window.start_ns ? -1 : at >= p->j->it.window.end_ns;
}

/* For a call that launches kernels itself: all runs of it and of the calls in it. */
typedef struct span {
  int32_t first, last;
} span;

/* Autograd nodes, custom Functions and compiled regions read what they hold beside their arguments;
   the dispatcher's own ops do not. */
static bool is_opaque (const kineto *k, const kineto_op *o) {
  slice name = k->names.texts[o->name];
  return o->sequence >= 0 && (call_is_backward (name) || !slice_holds (name, "::"));
}

typedef struct widening {
  placing *p;
  span *spans;          /* per op; first NONE: it launches nothing itself */
  kineto_numbers nodes; /* of autograd that launch kernels themselves */
} widening;

static bool find_spans (widening *w) {
  const joiner *j = w->p->j;
  if (!ALLOC (j->job->scratch, w->spans, j->k.n_ops, j->job->err))
    return false;
  for (int32_t i = 0; i < j->k.n_ops; i++)
    w->spans[i] = (span){ NONE, NONE };
  for (int32_t r = 0; r < j->it.n_runs; r++) {
    int32_t op = j->it.runs[r].owner;
    j->job->facts.ops_by_nobody += !kineto_is_listed (&j->k, op);
    for (int depth = 0; op != NONE && depth < 64; depth++, op = j->k.ops[op].parent) {
      const kineto_op *o = &j->k.ops[op];
      if (w->p->first_run[op] == NONE)
        continue;
      if (w->spans[op].first == NONE) {
        w->spans[op].first = r;
        j->job->facts.widened += is_opaque (&j->k, o);
        if (is_opaque (&j->k, o) && o->mark == MARK_BACKWARD &&
            !kineto_numbers_add (j->job, &w->nodes, (kineto_number){ o->sequence, r, op }))
          return false;
      }
      w->spans[op].last = r;
    }
  }
  kineto_numbers_sort (&w->nodes);
  return true;
}

/* The first autograd node that a call may have, or NONE; kineto_numbers_next names others. */
static int32_t first_node (const widening *w, int32_t op) {
  const kineto_op *o = &w->p->j->k.ops[op];
  return o->sequence >= 0 && o->mark == MARK_NONE
             ? kineto_numbers_behind (&w->nodes, o->sequence, w->spans[op].last)
             : NONE;
}

static bool use_span (widening *w, const mention *m, span s) {
  for (int32_t r = s.first; r != NONE && r <= s.last; r++)
    if (!et_add_use (w->p->j->job, &w->p->uses, r, m, false, false))
      return false;
  return true;
}

/* A Function of the user's may read anything that Python can reach, and so may its backward; a
   compiled region lists its inputs. */
static bool reaches_all (const kineto *k, int32_t op) {
  return k->ops[op].mark == MARK_NONE && is_opaque (k, &k->ops[op]) &&
         !slice_starts (k->names.texts[k->ops[op].name], "Compiled");
}

typedef struct life_span {
  int32_t first, last; /* uses so far; NONE: none */
} life_span;

static life_span *find_lives (placing *p) {
  life_span *lives = NEW (p->j->job->scratch, p->j->e.generations.count, life_span, p->j->job->err);
  for (int32_t i = 0; lives && i < p->j->e.generations.count; i++)
    lives[i] = (life_span){ NONE, NONE };
  for (int64_t i = 0; lives && i < p->uses.count; i++) { /* in order of ops */
    const et_use *u = &p->uses.at[i];
    if (lives[u->generation].first == NONE)
      lives[u->generation].first = u->op;
    lives[u->generation].last = u->op;
  }
  return lives;
}

/* The nodes that a Function may have, if they run while the tensor lives. */
static bool use_nodes (widening *w, const mention *m, int32_t op, int32_t last, bool before) {
  for (int32_t at = first_node (w, op); at != NONE; at = kineto_numbers_next (&w->nodes, at)) {
    span b = w->spans[w->nodes.at[at].op];
    if ((before || last >= b.first) && !use_span (w, m, b))
      return false;
  }
  return true;
}

/* All that lives while such a Function runs is used by it, and by its backward if it lives there.
 */
static bool widen_all (widening *w) {
  placing *p = w->p;
  const joiner *j = p->j;
  life_span *lives = find_lives (p);
  if (!lives)
    return false;
  for (int32_t op = 0; op < j->k.n_ops; op++) {
    span s = w->spans[op];
    if (s.first == NONE || !reaches_all (&j->k, op))
      continue;
    for (int32_t g = 0; g < j->e.generations.count; g++) {
      bool before = !j->e.generations.at[g].defined;
      if (lives[g].first == NONE || (!before && lives[g].first > s.last) ||
          (!before && lives[g].last < s.first))
        continue;
      mention m = { .generation = g };
      if (!use_span (w, &m, s) || !use_nodes (w, &m, op, lives[g].last, before))
        return false;
    }
  }
  return true;
}

/* A tensor that a call names, or a call in it, is used by every op of the call if that launches
   kernels itself; and if an autograd node of its number does so, by every op of the node. */
static bool widen (placing *p, widening *out) {
  joiner *j = p->j;
  *out = (widening){ .p = p };
  if (!find_spans (out))
    return false;
  for (int64_t i = 0; i < j->e.n_mentions; i++) {
    mention m = j->e.mentions[i];
    int32_t op = j->op_of[m.node];
    if (when (p, op) != 0)
      continue;
    m.output = m.written = false;
    for (int depth = 0; op != NONE && depth < 64; depth++, op = j->k.ops[op].parent) {
      const kineto_op *o = &j->k.ops[op];
      bool wide = out->spans[op].last > out->spans[op].first && is_opaque (&j->k, o);
      if ((wide && !use_span (out, &m, out->spans[op])) || !use_nodes (out, &m, op, NONE, true))
        return false;
    }
  }
  return true;
}

static bool place_all (placing *p) {
  joiner *j = p->j;
  for (int32_t i = 0; i < j->e.generations.count; i++) {
    const generation *g = &j->e.generations.at[i];
    int at = when (p, j->op_of[g->first_node]);
    p->first_op[i] = at < 0 ? 0 : defining_op (p, g);
  }
  int64_t lost = 0;
  for (int64_t i = 0; i < j->e.n_mentions; i++) {
    const mention *m = &j->e.mentions[i];
    const generation *g = &j->e.generations.at[m->generation];
    int32_t op = j->op_of[m->node];
    int at = when (p, op);
    et_life *life = &p->lives[m->generation];
    life->before |= at < 0;
    life->after |= at > 0;
    if (at != 0)
      continue;
    if (op == NONE) {
      lost++;
      continue;
    }
    bool makes = m->output && g->defined && g->first_node == m->node;
    bool works = p->first_run[op] != NONE || p->side_end[op] != 0;
    /* An outer call hands up what one of its parts made, unless it runs kernels itself. */
    if (m->output && g->defined && !makes && !j->e.nodes[m->node].leaf && !works)
      continue;
    life->used = true;
    if (!place_mention (p, m, op, makes))
      return false;
  }
  if (lost)
    report_warn (j->job, "mentions of tensors by calls without a counterpart", lost, NULL);
  widening w;
  if (!widen (p, &w))
    return false;
  et_sort_uses (&p->uses, p->first_op);
  if (!widen_all (&w))
    return false;
  et_sort_uses (&p->uses, p->first_op);
  return et_sum_moved (j->job, &p->uses, &j->e.generations, j->it.n_runs);
}

static bool make_trace (joiner *j, trace **out) {
  import_job *job = j->job;
  placing p = { .j = j };
  const char *name = job_trace_name (job, j->kineto_file);
  trace_builder *b = name ? build_new (job->a, name, 1, job->err) : NULL;
  int32_t *tensor_of = NEW (job->scratch, j->e.generations.count, int32_t, job->err);
  if (!b || !tensor_of || !prepare (&p) || !place_all (&p) ||
      !et_make_tensors (job, &j->e.generations, j->e.walk, p.lives, j->it.n_runs, b, tensor_of))
    return false;
  int64_t at = 0;
  for (int32_t i = 0; i < j->it.n_runs; i++) {
    const kineto_run *r = &j->it.runs[i];
    const char *op_name = kineto_run_name (job, &j->k, r);
    if (!op_name)
      return false;
    int32_t index = build_op (b, op_name, kineto_phase (&j->k, r->owner), r->ns);
    build_op_at (b, index)->gap_ns = r->gap_ns;
    if (!kineto_put_stream (job, &j->k, &j->it, i, build_op_at (b, index)))
      return false;
    et_put_uses (&p.uses, &at, i, tensor_of, b);
  }
  const char *doubt = kineto_lacks_launches (job, &j->k, j->it.device);
  if (!doubt && 4 * job->facts.ops_by_nobody > j->it.n_runs) {
    doubt = "what more than a quarter of the ops use is not listed";
    job->report->advice = "the execution trace lacks calls of this step: record it from before the "
                          "step to behind it (docs/record.md)";
  }
  build_source (b, "import", "execution trace and Kineto JSON");
  if (doubt)
    build_confidence (b, CONFIDENCE_NOT_PLANNABLE, doubt);
  if (!kineto_samples (job, &j->k, &j->it, b))
    return false;
  *out = build_finish (b, job->err);
  return kineto_put_waits (job, &j->k, &j->it, *out);
}

static bool has_process (const kineto *k, int64_t pid) {
  char text[40];
  int length = snprintf (text, sizeof text, "%lld/", (long long)pid);
  for (int32_t i = 0; i < k->threads.count; i++)
    if (k->threads.texts[i].size >= length &&
        memcmp (k->threads.texts[i].at, text, (size_t)length) == 0)
      return true;
  return false;
}

/* Ranks of one program make the same calls in the same order, so what matches may still be two
   runs; ranks, devices and processes tell. */
static bool compare_runs (joiner *j) {
  import_facts *f = &j->job->facts;
  int64_t et_rank = name_rank (j->et_file->name);
  int64_t rank = j->k.rank >= 0 ? j->k.rank : name_rank (j->kineto_file->name);
  if (j->it.device < 64 && j->e.devices && !(j->e.devices >> j->it.device & 1))
    return error_set (j->job->err, ERR_input,
                      "the two files are not of one run: the execution trace names no tensor of "
                      "device %d, on which the Kineto file ran",
                      j->it.device);
  if (et_rank >= 0 && rank >= 0 && et_rank != rank)
    return error_set (j->job->err, ERR_input,
                      "the two files are not of one run: they are of rank %lld and rank %lld",
                      (long long)et_rank, (long long)rank);
  f->two_runs =
      j->e.pid >= 0 && !has_process (&j->k, j->e.pid)
          ? arena_format (j->job->a, j->job->err, "no thread of the Kineto file is of process %lld",
                          (long long)j->e.pid)
          : "";
  return f->two_runs;
}

static void compare_with_memory (joiner *j) {
  kineto_peak peak;
  kineto_sum (&j->k, j->it.device, j->it.window, &peak);
  if (peak.allocs && peak.baseline_bytes >= 0)
    j->job->report->reference_peak_bytes = kineto_peak_bytes (&peak);
}

bool et_kineto_import (import_job *job, const import_text *et_file, const import_text *kineto_file,
                       trace **out) {
  joiner j = { .job = job, .et_file = et_file, .kineto_file = kineto_file };
  if (!et_read (job, et_file, &j.e)) {
    error_in_file (job->err, et_file->name);
    return false;
  }
  if (!kineto_read (job, kineto_file, &j.k) || !kineto_nest (job, &j.k)) {
    error_in_file (job->err, kineto_file->name);
    return false;
  }
  if (!et_join (&j) || !kineto_choose (job, &j.k, &j.it) || !compare_runs (&j))
    return false;
  if (!et_settle (job, &j.e, j.it.device, false)) {
    error_in_file (job->err, et_file->name);
    return false;
  }
  if (!kineto_runs (job, &j.k, j.it.window, &j.it) || !kineto_check_span (job, &j.it) ||
      !make_trace (&j, out))
    return false;
  kineto_facts (job, &j.k, &j.it);
  compare_with_memory (&j);
  job->report->peak_by = "last use";
  return true;
}
