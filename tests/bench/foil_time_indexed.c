/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The obvious program, once, to see where it stops: a binary for each value and each moment, as
   Checkmate (Jain et al., 2020) and POET (Patil et al., 2022) have it, on the same solver as ours
   and under the same door.  Stage t computes op t for the first time; in each stage, per op i:

     R  computed in stage t        S  its value is on the device when t begins
     H  it is on the host when t begins         I, O  it is copied in, out, during t
     F(k, i)  freed once op k of the stage is done (Checkmate's FREE, made linear)

   and one row of memory for each op of each stage.  It pays each copy as time of its own, for that
   is how this form counts; ours may overlap, so the two optima are not compared, only who answers.
   foil_time_indexed [OPS_MOST [LIMIT_S]]: ResNet-like steps of growing length at 60 % of their
   peak. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/flow/ilp.h"
#include "solver/solve.h"
#include "tests/bench/bench.h"
#include "tests/synthetic.h"

/* ---- the step as a graph of values ---- */

typedef struct graph {
  int32_t n;
  int64_t *bytes, *ns; /* per op: what it writes that does not live for ever, and its time */
  index_list *needs, *users;
  int64_t fixed_bytes; /* persistent */
} graph;

static bool add_to (index_list *list, int32_t i, arena *a, error *err) {
  for (int32_t j = 0; j < list->count; j++)
    if (list->at[j] == i)
      return true;
  int32_t *moved = NEW (a, list->count + 1, int32_t, err);
  if (!moved)
    return false;
  for (int32_t j = 0; j < list->count; j++)
    moved[j] = list->at[j];
  moved[list->count] = i;
  *list = (index_list){ moved, list->count + 1 };
  return true;
}

/* An op needs the last writers of what it reads; inputs and persistent tensors stay put. */
static bool graph_of (const trace *t, arena *a, graph *g, error *err) {
  *g = (graph){ .n = t->n_ops };
  g->bytes = NEW (a, g->n, int64_t, err);
  g->ns = NEW (a, g->n, int64_t, err);
  g->needs = NEW (a, g->n, index_list, err);
  g->users = NEW (a, g->n, index_list, err);
  int32_t *writer = NEW (a, t->n_tensors, int32_t, err);
  if (!g->bytes || !g->ns || !g->needs || !g->users || !writer)
    return false;
  for (int32_t i = 0; i < t->n_tensors; i++) {
    writer[i] = -1;
    g->fixed_bytes += t->tensors[i].persistent ? t->tensors[i].bytes : 0;
  }
  for (int32_t k = 0; k < g->n; k++) {
    const op *o = &t->ops[k];
    g->ns[k] = o->ns + o->gap_ns;
    for (int32_t i = 0; i < o->reads.count; i++) {
      int32_t from = writer[o->reads.at[i]];
      if (from >= 0 &&
          (!add_to (&g->needs[k], from, a, err) || !add_to (&g->users[from], k, a, err)))
        return false;
    }
    for (int32_t i = 0; i < o->writes.count; i++)
      if (!t->tensors[o->writes.at[i]].persistent) {
        writer[o->writes.at[i]] = k;
        g->bytes[k] += t->tensors[o->writes.at[i]].bytes;
      }
  }
  return true;
}

/* ---- the program, row by row, then turned into columns ---- */

typedef struct entry {
  int32_t row, column;
  double coef;
} entry;

typedef struct model {
  arena *arena;
  error *err;
  entry *entries;
  int64_t n_entries, entry_room;
  double *row_low, *row_high;
  int64_t n_rows, row_room, high_room;
  int32_t n_columns;
  bool failed;
} model;

static int32_t row (model *m, double low, double high) {
  m->row_low =
      arena_grow (m->arena, m->row_low, &m->row_room, m->n_rows + 1, sizeof (double), m->err);
  m->row_high =
      arena_grow (m->arena, m->row_high, &m->high_room, m->n_rows + 1, sizeof (double), m->err);
  if (!m->row_low || !m->row_high) {
    m->failed = true;
    return 0;
  }
  m->row_low[m->n_rows] = low;
  m->row_high[m->n_rows] = high;
  return (int32_t)m->n_rows++;
}

static void put (model *m, int32_t row, int32_t column, double coef) {
  if (m->failed || coef == 0)
    return;
  m->entries =
      arena_grow (m->arena, m->entries, &m->entry_room, m->n_entries + 1, sizeof (entry), m->err);
  if (!m->entries)
    m->failed = true;
  else
    m->entries[m->n_entries++] = (entry){ row, column, coef };
}

typedef enum kind { COMPUTED, STAYS, HOST, IN, OUT, KINDS } kind;

/* Columns: KINDS squares of n x n, then a memory level for each op of each stage, then the FREEs.
 */
static int32_t at (const graph *g, kind k, int32_t t, int32_t i) {
  return ((int32_t)k * g->n + t) * g->n + i;
}

static int32_t level_at (const graph *g, int32_t t, int32_t k) {
  return KINDS * g->n * g->n + t * g->n + k;
}

/* a x <= b y + c z + d w, of which some may be absent (-1). */
static void at_most (model *m, int32_t x, int32_t y, int32_t z, int32_t w) {
  int32_t r = row (m, -HUGE_VAL, 0);
  int32_t more[] = { y, z, w };
  put (m, r, x, 1);
  for (int i = 0; i < 3; i++)
    if (more[i] >= 0)
      put (m, r, more[i], -1);
}

static void stage_rows (model *m, const graph *g, int32_t t) {
  for (int32_t i = 0; i <= t; i++) {
    for (int32_t j = 0; j < g->needs[i].count; j++)
      at_most (m, at (g, COMPUTED, t, i), at (g, COMPUTED, t, g->needs[i].at[j]),
               at (g, STAYS, t, g->needs[i].at[j]), -1);
    at_most (m, at (g, OUT, t, i), at (g, STAYS, t, i), -1, -1);
    at_most (m, at (g, IN, t, i), at (g, HOST, t, i), -1, -1);
    if (t + 1 == g->n)
      continue;
    at_most (m, at (g, STAYS, t + 1, i), at (g, STAYS, t, i), at (g, COMPUTED, t, i),
             at (g, IN, t, i));
    at_most (m, at (g, HOST, t + 1, i), at (g, HOST, t, i), at (g, OUT, t, i), -1);
  }
}

/* FREE (t, k, i): i is a need of k or k itself; 1 if k is computed in t, and no later op of the
   stage uses i, and i does not stay.  hazards = (1 - R_k) + S_next + later uses; F = 1 exactly
   where 0. */
static void free_rows (model *m, const graph *g, int32_t t, int32_t k, int32_t i, int32_t column,
                       int32_t level_row, double unit) {
  int32_t some = row (m, 0, HUGE_VAL), most = row (m, -HUGE_VAL, 0);
  int32_t later = 0;
  for (int32_t j = 0; j < g->users[i].count; j++)
    later += g->users[i].at[j] > k && g->users[i].at[j] <= t;
  double all = 2 + later;
  /* 1 - F <= hazards:  F + hazards >= 1;  hazards <= all (1 - F) */
  put (m, some, column, 1);
  put (m, most, column, all);
  put (m, some, at (g, COMPUTED, t, k), -1);
  put (m, most, at (g, COMPUTED, t, k), -1);
  m->row_low[some] = 0;
  m->row_high[most] = all - 1;
  if (t + 1 < g->n) {
    put (m, some, at (g, STAYS, t + 1, i), 1);
    put (m, most, at (g, STAYS, t + 1, i), 1);
  }
  for (int32_t j = 0; j < g->users[i].count; j++)
    if (g->users[i].at[j] > k && g->users[i].at[j] <= t) {
      put (m, some, at (g, COMPUTED, t, g->users[i].at[j]), 1);
      put (m, most, at (g, COMPUTED, t, g->users[i].at[j]), 1);
    }
  if (level_row >= 0)
    put (m, level_row, column, (double)g->bytes[i] / unit);
}

/* Memory in units of `unit` bytes.  U(t, 0) = stays + copies in + the first op's;
   U(t, k) = U(t, k - 1) + op k's - what was freed behind k - 1. */
static void memory_rows (model *m, const graph *g, int32_t t, int32_t *next, double unit) {
  int32_t first = row (m, 0, 0);
  put (m, first, level_at (g, t, 0), 1);
  put (m, first, at (g, COMPUTED, t, 0), -(double)g->bytes[0] / unit);
  for (int32_t i = 0; i < t; i++) {
    put (m, first, at (g, STAYS, t, i), -(double)g->bytes[i] / unit);
    put (m, first, at (g, IN, t, i), -(double)g->bytes[i] / unit);
  }
  for (int32_t k = 0; k <= t; k++) {
    int32_t level = -1;
    if (k < t) {
      level = row (m, 0, 0);
      put (m, level, level_at (g, t, k + 1), 1);
      put (m, level, level_at (g, t, k), -1);
      put (m, level, at (g, COMPUTED, t, k + 1), -(double)g->bytes[k + 1] / unit);
    }
    free_rows (m, g, t, k, k, (*next)++, level, unit);
    for (int32_t j = 0; j < g->needs[k].count; j++)
      free_rows (m, g, t, k, g->needs[k].at[j], (*next)++, level, unit);
  }
}

static bool to_columns (model *m, ilp_problem *p) {
  int64_t *start = NEW (m->arena, (int64_t)m->n_columns + 2, int64_t, m->err);
  int32_t *rows = NEW (m->arena, m->n_entries, int32_t, m->err);
  double *coefs = NEW (m->arena, m->n_entries, double, m->err);
  if (!start || !rows || !coefs)
    return false;
  for (int64_t i = 0; i < m->n_entries; i++)
    start[m->entries[i].column + 2]++;
  for (int32_t c = 0; c < m->n_columns; c++)
    start[c + 2] += start[c + 1];
  for (int64_t i = 0; i < m->n_entries; i++) {
    int64_t to = start[m->entries[i].column + 1]++;
    rows[to] = m->entries[i].row;
    coefs[to] = m->entries[i].coef;
  }
  p->column_start = start;
  p->entry_row = rows;
  p->entry_coef = coefs;
  return true;
}

static bool build (const graph *g, int64_t budget_bytes, const device *dev, arena *a,
                   ilp_problem *p, error *err) {
  int32_t n = g->n, frees = 0;
  for (int32_t t = 0; t < n; t++)
    for (int32_t k = 0; k <= t; k++)
      frees += 1 + g->needs[k].count;
  model m = { .arena = a, .err = err, .n_columns = (KINDS + 1) * n * n + frees };
  double unit = 1e6, room = (double)(budget_bytes - g->fixed_bytes) / unit;
  double *low = NEW (a, m.n_columns, double, err), *high = NEW (a, m.n_columns, double, err);
  double *cost = NEW (a, m.n_columns, double, err);
  bool *whole = NEW (a, m.n_columns, bool, err);
  if (!low || !high || !cost || !whole)
    return false;
  for (int32_t c = 0; c < m.n_columns; c++) {
    whole[c] = c < KINDS * n * n || c >= (KINDS + 1) * n * n;
    high[c] = whole[c] ? 1 : room;
  }
  for (int32_t t = 0; t < n; t++) {
    low[at (g, COMPUTED, t, t)] = 1;
    for (int32_t i = 0; i < n; i++) {
      int64_t link = dev->link.d2h_bytes_per_s;
      double copy_ms = (double)g->bytes[i] / (double)link * 1e3 + (double)dev->link.copy_ns / 1e6;
      cost[at (g, COMPUTED, t, i)] = (double)g->ns[i] / 1e6;
      cost[at (g, IN, t, i)] = cost[at (g, OUT, t, i)] = copy_ms;
      for (int k = 0; k < KINDS; k++)
        if (i > t || (k != COMPUTED && i == t)) /* not there yet */
          high[at (g, (kind)k, t, i)] = 0;
    }
  }
  int32_t next = (KINDS + 1) * n * n;
  for (int32_t t = 0; t < n; t++) {
    stage_rows (&m, g, t);
    memory_rows (&m, g, t, &next, unit);
  }
  *p = (ilp_problem){ .n_rows = (int32_t)m.n_rows,
                      .n_columns = m.n_columns,
                      .row_low = m.row_low,
                      .row_high = m.row_high,
                      .low = low,
                      .high = high,
                      .cost = cost,
                      .whole = whole };
  return !m.failed && next == m.n_columns && to_columns (&m, p);
}

/* ---- who answers ---- */

typedef struct task {
  int32_t ops;
  int limit_s;
} task;

typedef struct answer {
  int32_t ops, rows, columns, binaries;
  ilp_status status;
  double value_ms, bound_ms, foil_s, baseline_ms;
  double ours_s;
  int64_t step_ns, bound_ns;
} answer;

static device bench_device (void) {
  return (device){ .name = "bench",
                   .memory_bytes = (int64_t)1 << 50,
                   .granule_bytes = 2 << 20,
                   .link = { 25000000000, 25000000000, 50000000000, 10000 },
                   .host_bytes = (int64_t)1 << 50,
                   .share_ppm = 1000000 };
}

static trace *task_trace (const task *t, arena *a, int64_t *budget_bytes, error *err) {
  trace *made = synthetic (SYNTHETIC_RESNET, t->ops, 1, a, err);
  units u;
  gaps g;
  if (!made || !units_of (made, NULL, 0, 1, 0, a, &u, err) ||
      !gaps_of (&u, 1, INT64_MAX / 8, a, &g, err))
    return NULL;
  *budget_bytes = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 2;
  return made;
}

static bool ours (const void *context, void *into, error *err) {
  answer *out = into;
  device dev = bench_device ();
  arena *a = arena_new (0);
  int64_t budget_bytes = 0;
  solution s;
  trace *t = a ? task_trace (context, a, &budget_bytes, err) : NULL;
  solve_options o = { .device = &dev, .budget_bytes = budget_bytes, .host_bytes = dev.host_bytes };
  double from = bench_cpu_s ();
  bool ok = t && solve (t, &o, a, &s, err);
  out->ours_s = bench_cpu_s () - from;
  if (ok) {
    out->ops = t->n_ops;
    out->step_ns = s.plan->predicted.step_ns;
    out->bound_ns = s.bound.lower_bound_ns;
    out->baseline_ms = (double)s.plan->predicted.baseline_ns / 1e6;
  }
  arena_free (a);
  return ok;
}

/* By the time of this process, not the clock on the wall, which others' load moves. */
static bool is_late (void *context) {
  return bench_cpu_s () > *(const double *)context;
}

static bool foil (const void *context, void *into, error *err) {
  const task *want = context;
  answer *out = into;
  device dev = bench_device ();
  arena *a = arena_new (0);
  int64_t budget_bytes = 0;
  trace *t = a ? task_trace (want, a, &budget_bytes, err) : NULL;
  graph g;
  ilp_problem p;
  ilp_result r;
  if (!t || !graph_of (t, a, &g, err) || !build (&g, budget_bytes, &dev, a, &p, err))
    return false;
  out->ops = t->n_ops;
  out->rows = p.n_rows;
  out->columns = p.n_columns;
  for (int32_t c = 0; c < p.n_columns; c++)
    out->binaries += p.whole[c] && p.high[c] > 0;
  double from = bench_cpu_s (), until = from + want->limit_s;
  ilp_options o = { .method = ILP_INTEGER, .gap = 0.005, .stop = is_late, .stop_context = &until };
  bool ok = ilp_solve (&p, &o, a, &r, err);
  out->foil_s = bench_cpu_s () - from;
  out->status = r.status;
  out->value_ms = r.value;
  out->bound_ms = r.bound;
  arena_free (a);
  return ok;
}

static void print (const answer *us, const answer *it, const bench_end *end) {
  printf ("%4d ops  form: %7d binaries %7d rows  ", us->ops, it->binaries, it->rows);
  if (!end->ok)
    printf ("%-10s                                 %7.1f s",
            end->timed_out ? "no answer" : "failed", end->cpu_s);
  else if (it->status == ILP_OPTIMAL || it->status == ILP_FEASIBLE)
    printf ("%-10s %9.2f ms, bound %9.2f ms  %7.1f s", ilp_status_name (it->status), it->value_ms,
            it->bound_ms, it->foil_s);
  else
    printf ("%-10s %25s %7.1f s", "no plan", "", it->foil_s);
  double gap = 100.0 * (double)us->step_ns / (double)us->bound_ns - 100;
  printf ("   ours: %9.2f ms, gap %.3f %%  %6.2f s\n", (double)us->step_ns / 1e6, gap, us->ours_s);
  printf ("{\"bench\":\"foil\",\"ops\":%d,\"binaries\":%d,\"rows\":%d,\"answered\":%s,"
          "\"status\":\"%s\",\"foil_s\":%.2f,\"foil_ms\":%.3f,\"foil_bound_ms\":%.3f,"
          "\"ours_s\":%.3f,\"step_ns\":%lld,\"lower_bound_ns\":%lld}\n",
          us->ops, it->binaries, it->rows, end->ok ? "true" : "false",
          end->ok ? ilp_status_name (it->status) : "none", end->ok ? it->foil_s : end->cpu_s,
          it->value_ms, it->bound_ms, us->ours_s, (long long)us->step_ns, (long long)us->bound_ns);
  fflush (stdout);
}

int main (int argc, char **argv) {
  static const int32_t sizes[] = { 7, 14, 21, 28, 42, 56, 84, 140, 1400, 14000 };
  const char *most = bench_argument (argc, argv, 1), *limit = bench_argument (argc, argv, 2);
  int32_t most_ops = most ? (int32_t)strtol (most, NULL, 10) : 140;
  int limit_s = limit ? (int)strtol (limit, NULL, 10) : 60;
  bool ok = true, silent = false;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    task t = { sizes[i], limit_s };
    answer us = { 0 }, it = { 0 };
    bench_end end = { 0 };
    ok = bench_row (ours, &t, &us, sizeof us, 0).ok && ok;
    if (sizes[i] <= most_ops && !silent) /* the limit is looked at between nodes only */
      end = bench_row (foil, &t, &it, sizeof it, 2 * limit_s);
    else
      end.timed_out = true;
    print (&us, &it, &end);
    silent = silent || end.timed_out;
  }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
