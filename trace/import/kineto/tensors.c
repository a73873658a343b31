/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory events of one iteration as tensors.  Birth and death are times of the CPU while the GPU
   runs later, so both are told in ops by when ops were launched: a block is born at the first op
   whose last kernel is launched on that thread after the alloc, and dies after the last op of which
   a kernel was launched before the free.

   The file does not say who reads what.  What the forward pass saves counts as used by all ops that
   may read it (readers.c); every other tensor as used as long as it lives, so it never moves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "trace/import/common/launches.h"
#include "trace/import/kineto/kineto.h"

typedef struct tensor_use {
  int32_t op, tensor;
  bool write;
} tensor_use;

typedef struct maker {
  import_job *job;
  const kineto *k;
  const kineto_iteration *it;
  const kineto_detail *details; /* per memory event, or NULL */
  trace_builder *b;
  kineto_blocks blocks;
  launched *firsts;            /* by time of the first launch: for deaths */
  launched *lasts, *by_thread; /* by time of the last one; by thread and time: for births */
  kineto_readers *readers;
  int64_t held, held_bytes, free_tensors; /* tensors that stay since nothing says who reads them */
  int64_t *side_end;                      /* per op: when its work on other streams ends */
  tensor_use *uses;
  int64_t n_uses, use_room;
  int64_t *inside, *workspace; /* per run: bytes born and freed in it, now and at most */
  int32_t n_tensors;
} maker;

static launched *sort_launches (maker *m, bool first, bool threads) {
  launched *rows = NEW (m->job->scratch, m->it->n_runs, launched, m->job->err);
  if (!rows)
    return NULL;
  for (int32_t i = 0; i < m->it->n_runs; i++) {
    const kineto_run *r = &m->it->runs[i];
    rows[i] =
        (launched){ first ? r->first_launch_ns : r->last_launch_ns, threads ? r->thread : 0, i };
  }
  launches_sort (rows, m->it->n_runs);
  if (!first && m->it->all)
    launches_soonest (rows, m->it->n_runs);
  if (first) /* the last op launched so far is the latest in the stream's order */
    for (int32_t i = 1; i < m->it->n_runs; i++)
      if (rows[i].run < rows[i - 1].run)
        rows[i].run = rows[i - 1].run;
  return rows;
}

/* NONE: nothing was launched behind it. */
static int32_t birth_run (const maker *m, const kineto_memory *e) {
  int32_t n = m->it->n_runs;
  int32_t at = launches_first (m->by_thread, n, e->thread, e->at_ns);
  if (at < n && m->by_thread[at].thread == e->thread)
    return m->by_thread[at].run;
  at = launches_first (m->lasts, n, 0, e->at_ns);
  return at < n ? m->lasts[at].run : NONE;
}

static int32_t death_run (const maker *m, const kineto_memory *e) {
  int32_t at = launches_first (m->firsts, m->it->n_runs, 0, e->at_ns + 1);
  return at ? m->firsts[at - 1].run : NONE;
}

/* Work on another stream that was launched where the block was born keeps it until it has ended. */
static int32_t not_before_side (const maker *m, int32_t around, int32_t death) {
  if (around == NONE || m->side_end[around] == 0)
    return death;
  while (death + 1 < m->it->n_runs && m->it->runs[death + 1].start_ns < m->side_end[around])
    death++;
  return death;
}

static bool use (maker *m, int32_t op, int32_t tensor, bool write) {
  if (!GROW (m->job->scratch, m->uses, &m->use_room, m->n_uses + 1, m->job->err))
    return false;
  m->uses[m->n_uses++] = (tensor_use){ op, tensor, write };
  m->job->report->reads_inferred += !write;
  return true;
}

static bool is_forward (const maker *m, int32_t run) {
  return kineto_phase (m->k, m->it->runs[run].owner) == OP_FORWARD;
}

static bool is_saved (const maker *m, int32_t birth, int32_t death, bool before, bool after) {
  return !before && !after && is_forward (m, birth) &&
         kineto_phase (m->k, m->it->runs[death].owner) == OP_BACKWARD;
}

static tensor_kind kind_of (const maker *m, const kineto_block *block, int32_t birth, bool before) {
  const kineto_memory *alloc = block->alloc != NONE ? &m->k->memory[block->alloc] : NULL;
  const kineto_memory *release = block->release != NONE ? &m->k->memory[block->release] : NULL;
  op_phase phase = kineto_phase (m->k, m->it->runs[birth].owner);
  if (!alloc)
    return TENSOR_TEMPORARY;
  if (release && alloc->thread == release->thread)
    return TENSOR_TEMPORARY;
  if (release)
    return phase == OP_FORWARD && !before ? TENSOR_ACTIVATION : TENSOR_GRADIENT;
  if (before)
    return TENSOR_TEMPORARY;
  return phase == OP_BACKWARD ? TENSOR_GRADIENT
         : phase == OP_UPDATE ? TENSOR_OPTIMIZER
                              : TENSOR_TEMPORARY;
}

static const char *name_tensor (maker *m, const kineto_block *block, int32_t birth, bool before,
                                char name[160]) {
  const char *of = kineto_run_name (m->job, m->k, &m->it->runs[birth]);
  if (!of)
    return NULL;
  if (before)
    snprintf (name, 160, "before/%d", m->n_tensors);
  else if (m->details && m->details[block->alloc].bytes)
    snprintf (name, 160, "%.120s/%d", m->details[block->alloc].line, m->n_tensors);
  else
    snprintf (name, 160, "%.120s/%d", of, m->n_tensors);
  return name;
}

/* Reads of all ops from one to another, both included. */
static bool use_all (maker *m, int32_t from, int32_t to, int32_t tensor) {
  for (int32_t op = from; op <= to; op++)
    if (!use (m, op, tensor, false))
      return false;
  return true;
}

/* More uses than this are not listed: the tensor stays instead. */
#define MOST_USES ((int64_t)1 << 23)

static bool add_tensor (maker *m, const kineto_block *block, int32_t birth, int32_t death) {
  int32_t last = m->it->n_runs - 1;
  bool before = block->alloc == NONE || m->k->memory[block->alloc].at_ns < m->it->window.start_ns;
  bool after = block->release == NONE || m->k->memory[block->release].at_ns >= m->it->window.end_ns;
  char name[160];
  if (!name_tensor (m, block, birth, before, name))
    return false;
  int32_t x = build_tensor (m->b, name, block->bytes, kind_of (m, block, birth, before));
  tensor *t = build_tensor_at (m->b, x);
  m->n_tensors++;
  if (!t->persistent) {
    if (before)
      t->born_before = 0;
    if (after)
      t->dies_after = last;
  }
  kineto_spell spell = { death, death };
  if (is_saved (m, birth, death, before, after)) {
    const kineto_memory *alloc = &m->k->memory[block->alloc];
    spell = kineto_readers_of (m->readers, alloc, alloc->bytes, birth, death);
  }
  bool moves = spell.first_backward > spell.last_forward + 1 && m->n_uses < MOST_USES;
  if (!before && !use (m, birth, x, true))
    return false;
  if (moves) {
    m->free_tensors++;
    return use_all (m, birth + 1, spell.last_forward, x) &&
           use_all (m, spell.first_backward, death, x);
  }
  t->pinned = true;
  m->held++;
  m->held_bytes += block->bytes;
  return t->persistent || after || use (m, death, x, false);
}

/* A block whose life is one op belongs to it: the greatest sum at any time is its workspace. */
static void hold_inside (maker *m, int32_t run, int64_t bytes) {
  m->inside[run] += bytes;
  if (m->inside[run] > m->workspace[run])
    m->workspace[run] = m->inside[run];
}

typedef struct edge {
  int32_t event, run;
  int64_t bytes;
} edge;

/* One event may end a block and begin another: in this order. */
static int by_event (const void *a, const void *b) {
  const edge *x = a, *y = b;
  return ORDER (x->event, y->event) ?: ORDER (x->bytes, y->bytes);
}

/* Blocks to tensors; those inside one op to edges, which are then summed in order of time. */
static bool make_tensors (maker *m, int64_t *known_before) {
  const kineto_window w = m->it->window;
  int64_t n_edges = 0;
  edge *edges = NEW (m->job->scratch, 2 * (int64_t)m->blocks.count, edge, m->job->err);
  if (!edges)
    return false;
  *known_before = 0;
  for (int32_t i = 0; i < m->blocks.count; i++) {
    const kineto_block *block = &m->blocks.at[i];
    int64_t from = block->alloc != NONE ? m->k->memory[block->alloc].at_ns : INT64_MIN;
    int64_t to = block->release != NONE ? m->k->memory[block->release].at_ns : INT64_MAX;
    if (from >= w.end_ns || to < w.start_ns)
      continue;
    bool before = from < w.start_ns, after = to >= w.end_ns;
    if (before && after)
      continue; /* part of what is resident */
    int32_t birth = before ? 0 : birth_run (m, &m->k->memory[block->alloc]);
    int32_t death = after ? m->it->n_runs - 1 : death_run (m, &m->k->memory[block->release]);
    if (before)
      *known_before += block->bytes;
    if (birth == NONE || (before && death == NONE)) {
      m->job->report->unused_tensors++;
      continue;
    }
    if (!before)
      death = not_before_side (m, m->k->memory[block->alloc].around, death);
    if (!before && !after && death <= birth) {
      edges[n_edges++] = (edge){ block->alloc, birth, block->bytes };
      edges[n_edges++] = (edge){ block->release, birth, -block->bytes };
    } else if (!add_tensor (m, block, birth, death))
      return false;
  }
  if (n_edges)
    qsort (edges, (size_t)n_edges, sizeof *edges, by_event);
  for (int64_t i = 0; i < n_edges; i++)
    hold_inside (m, edges[i].run, edges[i].bytes);
  return true;
}

static bool prepare (maker *m) {
  const kineto *k = m->k;
  m->firsts = sort_launches (m, true, false);
  m->lasts = sort_launches (m, false, false);
  m->by_thread = sort_launches (m, false, true);
  m->side_end = NEW (m->job->scratch, k->n_ops, int64_t, m->job->err);
  if (!m->firsts || !m->lasts || !m->by_thread || !m->side_end)
    return false;
  for (int32_t i = 0; i < m->it->n_sides; i++) {
    const kineto_side *s = &m->it->sides[i];
    if (s->owner != NONE && s->end_ns > m->side_end[s->owner])
      m->side_end[s->owner] = s->end_ns;
  }
  m->readers = kineto_readers_new (m->job, k, m->it, &m->blocks);
  return m->readers;
}

static int by_op (const void *a, const void *b) {
  const tensor_use *x = a, *y = b;
  return ORDER (x->op, y->op) ?: ORDER (x->tensor, y->tensor) ?: ORDER (x->write, y->write);
}

static void warn_pairs (import_job *job, const kineto_blocks *blocks) {
  if (blocks->unpaired_frees)
    report_warn (job, "frees of blocks allocated before the file began", blocks->unpaired_frees,
                 NULL);
  if (blocks->lost_frees)
    report_warn (job,
                 "allocs where a block still lay, which ends there: its free is not in the file",
                 blocks->lost_frees, NULL);
  if (blocks->breaks)
    report_warn (job, "steps of Total Allocated that differ from Bytes", blocks->breaks, NULL);
  if (blocks->size_mismatches)
    report_warn (job, "frees whose size is not that of the alloc", blocks->size_mismatches, NULL);
}

/* Another iteration of the same program allocates as often. */
static bool compare_steps (maker *m) {
  kineto_window *windows;
  int32_t n;
  kineto_peak chosen, other;
  if (!kineto_windows (m->job, m->k, m->it->device, &windows, &n))
    return false;
  kineto_sum (m->k, m->it->device, m->it->window, &chosen);
  for (int32_t i = n > 8 ? n - 8 : 0; i < n; i++) {
    kineto_sum (m->k, m->it->device, windows[i], &other);
    if (other.allocs != chosen.allocs)
      report_warn (m->job, "steps that allocate another number of times", 1, windows[i].name);
  }
  return true;
}

static bool add_resident (maker *m, int64_t known_before) {
  kineto_peak peak;
  kineto_sum (m->k, m->it->device, m->it->window, &peak);
  int64_t baseline = peak.baseline_bytes >= 0 ? peak.baseline_bytes : 0;
  m->job->report->reference_peak_bytes = kineto_peak_bytes (&peak);
  m->job->report->peak_by =
      peak.baseline_bytes >= 0 ? "memory events" : "memory events, above an unknown baseline";
  int64_t bytes = baseline - known_before;
  if (bytes > MOST_TENSOR_BYTES)
    return error_set (m->job->err, ERR_input, "Total Allocated begins at %lld bytes",
                      (long long)baseline);
  if (bytes > 0) {
    int32_t x = build_tensor (m->b, "resident", bytes, TENSOR_PARAMETER);
    build_tensor_at (m->b, x)->pinned = true;
  }
  return true;
}

/* Sizes as requested instead of padded ones. */
static void use_details (maker *m) {
  for (int32_t i = 0; m->details && i < m->blocks.count; i++) {
    kineto_block *b = &m->blocks.at[i];
    if (b->alloc != NONE && m->details[b->alloc].bytes)
      b->bytes = m->details[b->alloc].bytes;
  }
}

/* Tensors that stay because of what the file does not say. */
static void say_held (maker *m) {
  import_report *r = m->job->report;
  r->held_tensors = m->held;
  r->held_bytes = m->held_bytes;
  r->free_tensors = m->free_tensors;
}

static bool emit_ops (maker *m) {
  if (m->n_uses)
    qsort (m->uses, (size_t)m->n_uses, sizeof *m->uses, by_op);
  int64_t at = 0;
  for (int32_t i = 0; i < m->it->n_runs; i++) {
    const kineto_run *r = &m->it->runs[i];
    const char *name = kineto_run_name (m->job, m->k, r);
    if (!name)
      return false;
    int32_t index = build_op (m->b, name, kineto_phase (m->k, r->owner), r->ns);
    op *o = build_op_at (m->b, index);
    o->gap_ns = r->gap_ns;
    o->workspace_bytes = m->workspace[i];
    if (!kineto_put_stream (m->job, m->k, m->it, i, o))
      return false;
    for (; at < m->n_uses && m->uses[at].op == i; at++)
      if (m->uses[at].write)
        build_write (m->b, m->uses[at].tensor);
      else
        build_read (m->b, m->uses[at].tensor);
  }
  return true;
}

bool kineto_tensors (import_job *job, const kineto *k, const kineto_iteration *it,
                     const kineto_detail *details, trace_builder *b) {
  maker m = { .job = job, .k = k, .it = it, .details = details, .b = b };
  if (!ALLOC (job->scratch, m.inside, it->n_runs, job->err) ||
      !ALLOC (job->scratch, m.workspace, it->n_runs, job->err))
    return false;
  if (k->n_memory) {
    int64_t known_before;
    if (!kineto_pair (job, k, it->device, &m.blocks) || !prepare (&m) || !compare_steps (&m))
      return false;
    use_details (&m);
    if (!make_tensors (&m, &known_before) || !add_resident (&m, known_before))
      return false;
    warn_pairs (job, &m.blocks);
    say_held (&m);
  }
  return emit_ops (&m);
}
