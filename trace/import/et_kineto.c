/* An execution trace and the Kineto file of the same run: the calls of both are matched, times come
   from one and tensors from the other.

   A call that runs nothing on the GPU gives its reads and writes to the next op that was launched
   on its thread after it began; one whose work is on another stream uses its tensors during every
   op that runs beside that work. */
#include <stdlib.h>
#include <string.h>

#include "trace/import/et.h"
#include "trace/import/kineto.h"

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

typedef struct joiner {
  import_job *job;
  const import_text *et_file, *kineto_file;
  et e;
  kineto k;
  kineto_iteration it;
  int32_t *op_of; /* per node: its Kineto op, or NONE */
  int64_t matched, threads;
  bool matched_all;
  const char *how;
} joiner;

static int by_key (const void *a, const void *b) {
  const call *x = a, *y = b;
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
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
  for (int32_t i = 0; i < j->e.n_nodes; i++) {
    const et_node *n = &j->e.nodes[i];
    int32_t op = n->structural || n->record_id <= 0 ? NONE : id_map_find (&ops, n->record_id);
    if (op == NONE)
      continue;
    slice a = j->e.names.texts[n->name], b = j->k.names.texts[j->k.ops[op].name];
    if (a.size != b.size || memcmp (a.at, b.at, (size_t)a.size) != 0) {
      other_names++;
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
    lists[i].at = NEW (j->job->scratch, lists[i].count, call, j->job->err);
    if (!lists[i].at)
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

/* Where the shorter sequence lies in the longer one: the last place, by Knuth, Morris and Pratt, so
   that long repetitive steps cost no more than their length.  -1: nowhere. */
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

static bool join (joiner *j) {
  j->op_of = NEW (j->job->scratch, j->e.n_nodes, int32_t, j->job->err);
  if (!j->op_of)
    return false;
  int64_t calls = 0;
  for (int32_t i = 0; i < j->e.n_nodes; i++) {
    j->op_of[i] = NONE;
    calls += !j->e.nodes[i].structural && !is_step (j->e.names.texts[j->e.nodes[i].name]);
  }
  if (!(has_record_ids (&j->k) ? join_by_record_id (j) : join_by_names (j)))
    return false;
  const char *threads =
      j->threads ? arena_format (j->job->a, j->job->err, " on %lld threads", (long long)j->threads)
                 : "";
  j->job->report->joined =
      threads ? arena_format (j->job->a, j->job->err, "%lld of %lld calls%s %s",
                              (long long)j->matched, (long long)calls, threads, j->how)
              : NULL;
  j->matched_all = j->matched == calls;
  if (!j->matched_all)
    report_warn (j->job, "calls of the execution trace without a counterpart", calls - j->matched,
                 NULL);
  return j->job->report->joined;
}

/* ---- where a call's tensors are used ---- */

typedef struct launched {
  int64_t at_ns;
  int32_t thread, run;
} launched;

static int by_launch (const void *a, const void *b) {
  const launched *x = a, *y = b;
  if (x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  if (x->at_ns != y->at_ns)
    return x->at_ns < y->at_ns ? -1 : 1;
  return x->run < y->run ? -1 : x->run > y->run;
}

static int32_t first_launched (const launched *rows, int32_t n, int32_t thread, int64_t at_ns) {
  int32_t low = 0, high = n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const launched *r = &rows[middle];
    if (r->thread < thread || (r->thread == thread && r->at_ns < at_ns))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

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
  p->by_thread = NEW (s, n, launched, err);
  p->by_time = NEW (s, n, launched, err);
  p->first_run = NEW (s, j->k.n_ops, int32_t, err);
  p->next_run = NEW (s, n, int32_t, err);
  p->side_start = NEW (s, j->k.n_ops, int64_t, err);
  p->side_end = NEW (s, j->k.n_ops, int64_t, err);
  p->first_op = NEW (s, j->e.generations.count, int32_t, err);
  p->lives = NEW (s, j->e.generations.count, et_life, err);
  if (!p->by_thread || !p->by_time || !p->first_run || !p->next_run || !p->side_start ||
      !p->side_end || !p->first_op || !p->lives)
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
  qsort (p->by_thread, (size_t)n, sizeof (launched), by_launch);
  qsort (p->by_time, (size_t)n, sizeof (launched), by_launch);
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
  int32_t at = first_launched (p->by_thread, n, o->thread, o->start_ns);
  if (at < n && p->by_thread[at].thread == o->thread)
    return p->by_thread[at].run;
  at = first_launched (p->by_time, n, 0, o->start_ns);
  return at < n ? p->by_time[at].run : n - 1;
}

/* Ops that run beside [start, end), or the next one where compute stands still meanwhile. */
static void beside (const placing *p, int32_t op, int32_t *first, int32_t *end) {
  const kineto_run *runs = p->j->it.runs;
  int32_t n = p->j->it.n_runs, low = 0, high = n;
  while (low < high) { /* the first that ends behind the start */
    int32_t middle = low + (high - low) / 2;
    int64_t end_ns = middle + 1 < n ? runs[middle + 1].start_ns - runs[middle + 1].gap_ns
                                    : runs[middle].start_ns + runs[middle].ns;
    if (end_ns <= p->side_start[op])
      low = middle + 1;
    else
      high = middle;
  }
  *first = low < n ? low : n - 1;
  *end = *first + 1;
  while (*end < n && runs[*end].start_ns < p->side_end[op])
    ++*end;
}

/* Calls the function for each op that uses what the call names. */
static bool place_mention (placing *p, const mention *m, int32_t op, bool write) {
  import_job *job = p->j->job;
  if (p->first_run[op] == NONE && p->side_end[op] == 0)
    return et_add_use (job, &p->uses, folded (p, &p->j->k.ops[op]), m->generation, write);
  for (int32_t r = p->first_run[op]; r != NONE; r = p->next_run[r])
    if (!et_add_use (job, &p->uses, r, m->generation, write))
      return false;
  if (p->side_end[op] == 0)
    return true;
  int32_t first, end;
  beside (p, op, &first, &end);
  for (int32_t r = first; r < end; r++)
    if (!et_add_use (job, &p->uses, r, m->generation, write))
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
    bool makes = g->defined && g->first_node == m->node;
    bool works = p->first_run[op] != NONE || p->side_end[op] != 0;
    /* What an outer call hands up was made by one of its parts, unless it runs kernels itself. */
    if (m->output && g->defined && !makes && !j->e.nodes[m->node].leaf && !works)
      continue;
    life->used = true;
    if (!place_mention (p, m, op, m->written || makes))
      return false;
  }
  if (lost)
    report_warn (j->job, "mentions of tensors by calls without a counterpart", lost, NULL);
  et_sort_uses (&p->uses, p->first_op);
  return true;
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
    et_put_uses (&p.uses, &at, i, tensor_of, b);
  }
  build_source (b, "import", "execution trace and Kineto JSON",
                j->matched_all ? "exact" : "approximate: some calls have no counterpart");
  if (!kineto_samples (job, &j->k, &j->it, b))
    return false;
  *out = build_finish (b, job->err);
  return *out;
}

static void compare_with_memory (joiner *j) {
  kineto_peak peak;
  kineto_sum (&j->k, j->it.device, j->it.window, &peak);
  if (peak.allocs && peak.baseline_bytes >= 0)
    j->job->report->reference_peak_bytes = peak.baseline_bytes + peak.above_bytes;
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
  if (!join (&j) || !kineto_choose (job, &j.k, &j.it) ||
      !kineto_runs (job, &j.k, j.it.window, &j.it) || !kineto_check_span (job, &j.it) ||
      !make_trace (&j, out))
    return false;
  compare_with_memory (&j);
  job->report->peak_by = "last use";
  return true;
}
