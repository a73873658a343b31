/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GLPK aborts through one function, whose hook jumps back here; its environment (per thread) is
   then thrown away whole, since nothing in it can be trusted or freed one by one.  The jump skips
   only GLPK's frames: everything of ours lives in the caller's arena or in `job`.

   Nothing else ends its interior point method early.  So who wants to stop is asked whenever GLPK
   has a line to print, which is once an iteration, and is then helped by that same abort, raised
   from the hook of the terminal: GLPK holds no lock and is at no allocation while it prints. */
#include "solver/flow/ilp.h"

#include <assert.h>
#include <glpk.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "solver/flow/interior.h"

enum { OUT_MS = 100 };
/* The work of each method that makes a tick. */
enum {
  PIVOT_ROWS_PER_TICK = 100,
  PAIRS_PER_TICK = 425,
  ENTRIES_PER_TICK = 85,
  PRODUCTS_PER_TICK = 1000
};

typedef struct job {
  jmp_buf back;
  glp_prob *lp;
  const ilp_problem *p;
  const ilp_options *o;
  ilp_result *out;
  char line[512];
  size_t length;
  char last[256]; /* GLPK's last line: what it said before it gave up */
  int64_t product, factor_entries, iterations; /* of the interior point method */
  bool aborting;                               /* by the caller's wish */
  bool starved;                                /* GLPK said that memory is out */
  bool has_nodes; /* which are asked instead, so that the incumbent is kept */
} job;

const char *ilp_status_name (ilp_status s) {
  static const char *const names[ILP_STATUSES] = { "optimal",   "feasible", "infeasible",
                                                   "unbounded", "failed",   "stopped" };
  assert (s < ILP_STATUSES);
  return names[s];
}

static void on_abort (void *info) {
  longjmp (((job *)info)->back, 1);
}

/* The interior point method tells its cost in printed lines alone: the entries of its factor, then
   a line for each time that it is computed again. */
static void listen (job *j, const char *line) {
  static const char factor[] = "Matrix L has ";
  if (strncmp (line, factor, sizeof factor - 1) == 0)
    j->factor_entries = strtoll (line + sizeof factor - 1, NULL, 10);
  else
    j->iterations += strstr (line, ": obj = ") != NULL;
}

/* GLPK writes pieces of lines. */
static int on_text (void *info, const char *text) {
  job *j = info;
  if (j->aborting) /* the abort's own message */
    return 1;
  for (; *text; text++) {
    if (*text != '\n' && j->length + 1 < sizeof j->line) {
      j->line[j->length++] = *text;
      continue;
    }
    j->line[j->length] = '\0';
    if (j->length) {
      /* orderings of a matrix tell of missing memory by an assertion of this file's */
      j->starved |= strstr (j->line, "no memory") || strstr (j->line, "draft/glpmat.c") ||
                    strstr (j->line, "memory allocation limit");
      memcpy (j->last, j->line, sizeof j->last - 1);
      log_say (j->o->log, LOG_DETAIL, "glpk: %s", j->line);
      listen (j, j->line);
    }
    j->length = 0;
    if (!j->has_nodes && j->o->stop && j->o->stop (j->o->stop_context)) {
      j->aborting = true;
      glp_error ("stopped\n");
    }
  }
  return 1;
}

static bool is_heard (const job *j) {
  return j->o->log || j->o->stop || j->o->method == ILP_INTERIOR;
}

static int how_loud (const job *j) {
  return is_heard (j) ? GLP_MSG_ALL : GLP_MSG_OFF;
}

static int kind_of (double low, double high) {
  if (isinf (low) && isinf (high))
    return GLP_FR;
  if (isinf (low))
    return GLP_UP;
  if (isinf (high))
    return GLP_LO;
  return low == high ? GLP_FX : GLP_DB;
}

/* index and coef have room for the longest column, from 1. */
static void fill (job *j, int *index, double *coef) {
  const ilp_problem *p = j->p;
  glp_set_obj_dir (j->lp, GLP_MIN);
  if (p->n_rows)
    glp_add_rows (j->lp, p->n_rows);
  if (p->n_columns)
    glp_add_cols (j->lp, p->n_columns);
  for (int32_t i = 0; i < p->n_rows; i++)
    glp_set_row_bnds (j->lp, i + 1, kind_of (p->row_low[i], p->row_high[i]), p->row_low[i],
                      p->row_high[i]);
  for (int32_t c = 0; c < p->n_columns; c++) {
    int n = 0;
    glp_set_col_bnds (j->lp, c + 1, kind_of (p->low[c], p->high[c]), p->low[c], p->high[c]);
    glp_set_obj_coef (j->lp, c + 1, p->cost[c]);
    if (p->whole && p->whole[c])
      glp_set_col_kind (j->lp, c + 1, GLP_IV);
    for (int64_t e = p->column_start[c]; e < p->column_start[c + 1]; e++) {
      index[++n] = p->entry_row[e] + 1;
      coef[n] = p->entry_coef[e];
    }
    glp_set_mat_col (j->lp, c + 1, n, index, coef);
  }
}

static ilp_status status_of (int glpk) {
  switch (glpk) {
  case GLP_OPT:
    return ILP_OPTIMAL;
  case GLP_FEAS:
    return ILP_FEASIBLE;
  case GLP_NOFEAS:
    return ILP_INFEASIBLE;
  case GLP_UNBND:
    return ILP_UNBOUNDED;
  default:
    return ILP_FAILED;
  }
}

/* For each two rows with a column in common, entries of the longer one: what the method goes
   through for the product from whose factor it solves, since rows with many neighbours come last in
   it. */
static int64_t product_work (const ilp_problem *p, const int64_t *row_start, const int32_t *columns,
                             int32_t *mark) {
  int64_t work = 0;
  for (int32_t i = 0; i < p->n_rows; i++) {
    int64_t here = row_start[i + 1] - row_start[i];
    for (int64_t e = row_start[i]; e < row_start[i + 1]; e++)
      for (int64_t f = p->column_start[columns[e]]; f < p->column_start[columns[e] + 1]; f++) {
        int32_t k = p->entry_row[f];
        if (k < i || mark[k] == i + 1)
          continue;
        int64_t there = row_start[k + 1] - row_start[k];
        mark[k] = i + 1;
        work += here > there ? here : there;
      }
  }
  return work;
}

bool ilp_rows (const ilp_problem *p, arena *a, int64_t **start, int32_t **columns, error *err) {
  int64_t entries = p->column_start[p->n_columns];
  int64_t *at = *start = NEW (a, (int64_t)p->n_rows + 2, int64_t, err);
  int32_t *of = *columns = NEW (a, entries, int32_t, err);
  if (at == NULL || of == NULL)
    return false;
  for (int64_t e = 0; e < entries; e++)
    at[p->entry_row[e] + 2]++;
  for (int32_t i = 0; i < p->n_rows; i++)
    at[i + 2] += at[i + 1];
  for (int32_t c = 0; c < p->n_columns; c++)
    for (int64_t e = p->column_start[c]; e < p->column_start[c + 1]; e++)
      of[at[p->entry_row[e] + 1]++] = c;
  return true;
}

static bool count_product (const ilp_problem *p, arena *a, int64_t *work, error *err) {
  arena_mark here = arena_here (a);
  int64_t *start;
  int32_t *columns, *mark = NEW (a, p->n_rows, int32_t, err);
  if (mark == NULL || !ilp_rows (p, a, &start, &columns, err))
    return false;
  *work = product_work (p, start, columns, mark);
  arena_back (a, here);
  return true;
}

/* An entry of the factor meets as many others as stand in its row. On programs of 3,000 to 44,000
   rows a tick was 1.0 to 1.9 us. */
static int64_t work_of (const job *j) {
  double n = (double)j->factor_entries, rows = (double)j->p->n_rows;
  return (int64_t)((double)j->iterations * (n * n / rows / PAIRS_PER_TICK + n / ENTRIES_PER_TICK +
                                            (double)j->product / PRODUCTS_PER_TICK));
}

static void interior (job *j) {
  glp_iptcp how;
  ilp_result *r = j->out;
  glp_init_iptcp (&how);
  how.msg_lev = how_loud (j);
  int code = glp_interior (j->lp, &how);
  r->work = work_of (j);
  r->status = code ? ILP_FAILED : status_of (glp_ipt_status (j->lp));
  /* an infeasible status of this method is a failure to converge, no proof */
  if (r->status != ILP_OPTIMAL)
    r->status = ILP_FAILED;
  if (code == GLP_EFAIL) /* no rows or columns: nothing was solved */
    return;
  r->value = glp_ipt_obj_val (j->lp);
  for (int32_t c = 0; c < j->p->n_columns; c++)
    r->x[c] = glp_ipt_col_prim (j->lp, c + 1);
  for (int32_t i = 0; i < j->p->n_rows; i++)
    r->y[i] = glp_ipt_row_dual (j->lp, i + 1);
}

static void simplex (job *j) {
  glp_smcp how;
  ilp_result *r = j->out;
  glp_init_smcp (&how);
  how.msg_lev = how_loud (j);
  how.meth = GLP_DUALP;
  how.out_frq = OUT_MS;
  how.tm_lim = j->o->limit_ms ? j->o->limit_ms : INT_MAX;
  how.it_lim = j->o->limit_ticks && j->o->limit_ticks < INT_MAX ? (int)j->o->limit_ticks : INT_MAX;
  glp_scale_prob (j->lp, GLP_SF_AUTO);
  glp_adv_basis (j->lp, 0);
  int code = glp_simplex (j->lp, &how);
  if (code && code != GLP_ETMLIM && code != GLP_EITLIM) {
    /* trouble of the dual method: once more from the plain basis by the primal one */
    glp_std_basis (j->lp);
    how.meth = GLP_PRIMAL;
    code = glp_simplex (j->lp, &how);
  }
  r->status = status_of (glp_get_status (j->lp));
  if (code || (r->status == ILP_FEASIBLE))
    r->status = ILP_FAILED;
  r->ticks = glp_get_it_cnt (j->lp);
  r->work = r->ticks * (1 + j->p->n_rows / PIVOT_ROWS_PER_TICK);
  r->value = glp_get_obj_val (j->lp);
  for (int32_t c = 0; c < j->p->n_columns; c++)
    r->x[c] = glp_get_col_prim (j->lp, c + 1);
  for (int32_t i = 0; i < j->p->n_rows; i++)
    r->y[i] = glp_get_row_dual (j->lp, i + 1);
}

static void on_node (glp_tree *tree, void *info) {
  job *j = info;
  const ilp_options *o = j->o;
  int total = 0;
  glp_ios_tree_size (tree, NULL, NULL, &total);
  j->out->nodes = total;
  j->out->ticks = glp_get_it_cnt (j->lp);
  int best = glp_ios_best_node (tree);
  if (best)
    j->out->bound = glp_ios_node_bound (tree, best);
  if (glp_ios_reason (tree) == GLP_IBINGO) {
    log_say (o->log, LOG_PROGRESS, "incumbent %.6g, bound %.6g, gap %.3f %%",
             glp_mip_obj_val (j->lp), j->out->bound, 100 * glp_ios_mip_gap (tree));
  }
  if ((o->limit_nodes && total > o->limit_nodes) ||
      (o->limit_ticks && j->out->ticks > o->limit_ticks) || (o->stop && o->stop (o->stop_context)))
    glp_ios_terminate (tree);
}

static void integer (job *j) {
  glp_iocp how;
  ilp_result *r = j->out;
  simplex (j);
  if (r->status != ILP_OPTIMAL)
    return;
  r->bound = r->value;
  glp_init_iocp (&how);
  how.msg_lev = how_loud (j);
  how.out_frq = OUT_MS;
  how.tm_lim = j->o->limit_ms ? j->o->limit_ms : INT_MAX;
  how.mip_gap = j->o->gap;
  how.cb_func = on_node;
  how.cb_info = j;
  j->has_nodes = true;
  int code = glp_intopt (j->lp, &how);
  int status = glp_mip_status (j->lp);
  r->status = status == GLP_OPT && !code                ? ILP_OPTIMAL
              : status == GLP_OPT || status == GLP_FEAS ? ILP_FEASIBLE
              : status == GLP_NOFEAS                    ? ILP_INFEASIBLE
                                                        : ILP_FAILED;
  if (r->status != ILP_OPTIMAL && r->status != ILP_FEASIBLE)
    return;
  r->value = glp_mip_obj_val (j->lp);
  if (r->status == ILP_OPTIMAL && j->o->gap <= 0)
    r->bound = r->value;
  for (int32_t c = 0; c < j->p->n_columns; c++)
    r->x[c] = glp_mip_col_val (j->lp, c + 1);
}

/* The environment that aborted is leaked by nobody: glp_free_env gives its blocks back. */
static bool give_up (job *j, error *err) {
  glp_error_hook (NULL, NULL);
  glp_term_hook (NULL, NULL);
  glp_free_env ();
  if (j->aborting) {
    ilp_result *r = j->out;
    memset (r->x, 0, (size_t)j->p->n_columns * sizeof *r->x);
    memset (r->y, 0, (size_t)j->p->n_rows * sizeof *r->y);
    *r = (ilp_result){ .status = ILP_STOPPED, .x = r->x, .y = r->y };
    return true;
  }
  j->last[sizeof j->last - 1] = '\0';
  if (j->starved)
    return error_memory (err);
  return error_set (err, ERR_memory, "the LP solver gave up: %s",
                    j->last[0] ? j->last : "it found itself in the wrong");
}

static int32_t longest_column (const ilp_problem *p) {
  int64_t longest = 0;
  for (int32_t c = 0; c < p->n_columns; c++)
    if (p->column_start[c + 1] - p->column_start[c] > longest)
      longest = p->column_start[c + 1] - p->column_start[c];
  return (int32_t)longest;
}

static bool by_glpk (const ilp_problem *p, const ilp_options *o, arena *a, ilp_result *out,
                     error *err) {
  *out = (ilp_result){ .status = ILP_FAILED };
  out->x = NEW (a, p->n_columns, double, err);
  out->y = NEW (a, p->n_rows, double, err);
  int32_t longest = longest_column (p);
  int *index = NEW (a, (int64_t)longest + 1, int, err);
  double *coef = NEW (a, (int64_t)longest + 1, double, err);
  job *j = NEW (a, 1, job, err);
  if (!out->x || !out->y || !index || !coef || !j)
    return false;
  if (!p->n_rows || !p->n_columns) { /* GLPK's interior point refuses it */
    out->status = ILP_OPTIMAL;
    for (int32_t c = 0; c < p->n_columns; c++)
      out->value += p->cost[c] * (out->x[c] = p->cost[c] >= 0 ? p->low[c] : p->high[c]);
    return true;
  }
  *j = (job){ .p = p, .o = o, .out = out };
  if (o->method == ILP_INTERIOR && !count_product (p, a, &j->product, err))
    return false;
  if (glp_init_env () > 1) /* it would abort where nobody listens yet */
    return error_memory (err);
  if (setjmp (j->back))
    return give_up (j, err);
  glp_error_hook (on_abort, j);
  glp_term_hook (on_text, j);
  if (!is_heard (j))
    glp_term_out (GLP_OFF);
  if (o->limit_bytes)
    glp_mem_limit ((int)(o->limit_bytes >> 20 ? o->limit_bytes >> 20 : 1));
  j->lp = glp_create_prob ();
  fill (j, index, coef);
  if (o->method == ILP_INTERIOR)
    interior (j);
  else if (o->method == ILP_SIMPLEX)
    simplex (j);
  else
    integer (j);
  glp_delete_prob (j->lp);
  glp_error_hook (NULL, NULL);
  glp_term_hook (NULL, NULL);
  glp_free_env ();
  return true;
}

bool ilp_solve (const ilp_problem *p, const ilp_options *o, arena *a, ilp_result *out, error *err) {
  assert (p && out && o->limit_ms >= 0);
  if (o->method != ILP_INTERIOR || !p->n_rows || !p->n_columns)
    return by_glpk (p, o, a, out, err);
  if (!interior_solve (p, o, a, out, err))
    return false;
  int64_t work = out->work;
  if (out->status == ILP_OPTIMAL || out->status == ILP_STOPPED)
    return true;
  if (!by_glpk (p, o, a, out, err))
    return false;
  out->work += work;
  return true;
}
