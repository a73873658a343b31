/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/flow/solved.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

/* A search comes back to a program within some twenty others. */
enum { MOST = 48 };

typedef struct answer {
  char key[SHA256_TEXT];
  ilp_result result; /* x, then y: one block of its own; NULL: an empty place */
} answer;

struct solved_programs {
  pthread_mutex_t lock;
  answer at[MOST];
  int next; /* the place that is given away next */
};

solved_programs *solved_new (error *err) {
  solved_programs *s = calloc (1, sizeof *s);
  if (!s)
    error_memory (err);
  else
    pthread_mutex_init (&s->lock, NULL);
  return s;
}

void solved_free (solved_programs *s) {
  if (!s)
    return;
  for (int i = 0; i < MOST; i++)
    free (s->at[i].result.x);
  pthread_mutex_destroy (&s->lock);
  free (s);
}

static void key_of (const ilp_problem *p, char key[SHA256_TEXT]) {
  size_t rows = (size_t)p->n_rows, columns = (size_t)p->n_columns;
  size_t entries = (size_t)p->column_start[p->n_columns];
  sha256 s;
  sha256_start (&s);
  sha256_add (&s, &p->n_rows, sizeof p->n_rows);
  sha256_add (&s, &p->n_columns, sizeof p->n_columns);
  sha256_add (&s, p->row_low, rows * sizeof *p->row_low);
  sha256_add (&s, p->row_high, rows * sizeof *p->row_high);
  sha256_add (&s, p->low, columns * sizeof *p->low);
  sha256_add (&s, p->high, columns * sizeof *p->high);
  sha256_add (&s, p->cost, columns * sizeof *p->cost);
  sha256_add (&s, p->column_start, (columns + 1) * sizeof *p->column_start);
  sha256_add (&s, p->entry_row, entries * sizeof *p->entry_row);
  sha256_add (&s, p->entry_coef, entries * sizeof *p->entry_coef);
  sha256_text (&s, key);
}

static bool find (solved_programs *s, const char *key, const ilp_problem *p, ilp_result *out) {
  bool found = false;
  double *x = out->x, *y = out->y;
  pthread_mutex_lock (&s->lock);
  for (int i = 0; i < MOST && !found; i++) {
    const answer *at = &s->at[i];
    if (!at->result.x || strcmp (at->key, key) != 0)
      continue;
    found = true;
    *out = at->result;
    out->x = x;
    out->y = y;
    memcpy (x, at->result.x, (size_t)p->n_columns * sizeof *x);
    memcpy (y, at->result.y, (size_t)p->n_rows * sizeof *y);
  }
  pthread_mutex_unlock (&s->lock);
  return found;
}

/* Without memory for it, it is solved again. */
static void keep (solved_programs *s, const char *key, const ilp_problem *p, const ilp_result *r) {
  size_t columns = (size_t)p->n_columns, rows = (size_t)p->n_rows;
  double *x = malloc ((columns + rows) * sizeof *x);
  if (!x)
    return;
  memcpy (x, r->x, columns * sizeof *x);
  memcpy (x + columns, r->y, rows * sizeof *x);
  pthread_mutex_lock (&s->lock);
  answer *at = &s->at[s->next];
  s->next = (s->next + 1) % MOST;
  free (at->result.x);
  at->result = *r;
  at->result.x = x;
  at->result.y = x + columns;
  memcpy (at->key, key, SHA256_TEXT);
  pthread_mutex_unlock (&s->lock);
}

bool solved_or_solve (solved_programs *s, const ilp_problem *p, const ilp_options *o, arena *a,
                      ilp_result *out, error *err) {
  char key[SHA256_TEXT];
  assert (!p->whole || !s);
  if (!s || o->method != ILP_INTERIOR || !p->n_rows || !p->n_columns)
    return ilp_solve (p, o, a, out, err);
  *out =
      (ilp_result){ .x = NEW (a, p->n_columns, double, err), .y = NEW (a, p->n_rows, double, err) };
  if (!out->x || !out->y)
    return false;
  key_of (p, key);
  if (find (s, key, p, out))
    return true;
  if (!ilp_solve (p, o, a, out, err))
    return false;
  if (out->status != ILP_STOPPED)
    keep (s, key, p, out);
  return true;
}
