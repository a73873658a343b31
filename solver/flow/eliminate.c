/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Approximate minimum degree (Amestoy, Davis and Duff 1996), written from its description.  A row
   that is eliminated becomes an element: the set of rows that meet through it from then on.  Rows
   that meet the same are one from then on, and are eliminated together. */
#include "solver/flow/eliminate.h"

#include <string.h>

enum { NONE = -1 };

/* The rows and elements that a row meets, or the rows of an element. */
typedef struct list {
  int32_t *at;
  int32_t rows, elements; /* of a row: elements first, rows behind them */
} list;

typedef struct state {
  int32_t n;
  arena *arena;
  list *lists;
  int32_t *weight; /* rows that are one; 0: it is in another, or eliminated */
  int32_t *degree; /* of a row about; of an element its rows, by weight; -1: it is in another */
  int32_t *head, *next, *last; /* rows by degree */
  int32_t *mark;               /* in the element at hand */
  int32_t *outside; /* of an element: rows beside those of the one at hand, behind a stamp */
  int32_t stamp, least;
  int32_t *member, *hash_next, *hash_head; /* of the element at hand */
  int32_t *child, *sibling;                /* rows that are in another */
} state;

static void put (state *s, int32_t i) {
  int32_t d = s->degree[i];
  s->next[i] = s->head[d];
  s->last[i] = NONE;
  if (s->head[d] != NONE)
    s->last[s->head[d]] = i;
  s->head[d] = i;
  if (d < s->least)
    s->least = d;
}

static void take (state *s, int32_t i) {
  if (s->last[i] != NONE)
    s->next[s->last[i]] = s->next[i];
  else
    s->head[s->degree[i]] = s->next[i];
  if (s->next[i] != NONE)
    s->last[s->next[i]] = s->last[i];
}

static void join (state *s, int32_t whole, int32_t part) {
  s->weight[whole] += s->weight[part];
  s->weight[part] = 0;
  s->sibling[part] = s->child[whole];
  s->child[whole] = part;
}

/* Its rows are those that its pivot meets, itself or through the elements that it is in. */
static bool gather (state *s, int32_t pivot, error *err) {
  list *l = &s->lists[pivot];
  int64_t most = l->rows;
  for (int32_t e = 0; e < l->elements; e++)
    most += s->lists[l->at[e]].rows;
  int32_t *at = NEW (s->arena, most, int32_t, err), n = 0, weight = 0;
  if (at == NULL)
    return false;
  s->mark[pivot] = pivot;
  for (int32_t e = 0; e <= l->elements; e++) {
    const list *from = e < l->elements ? &s->lists[l->at[e]] : l;
    int32_t first = e < l->elements ? 0 : l->elements;
    for (int32_t k = 0; k < from->rows; k++) {
      int32_t i = from->at[first + k];
      if (s->weight[i] == 0 || s->mark[i] == pivot)
        continue;
      s->mark[i] = pivot;
      take (s, i);
      at[n++] = i;
      weight += s->weight[i];
    }
    if (e < l->elements)
      s->degree[l->at[e]] = NONE;
  }
  *l = (list){ at, n, 0 };
  s->degree[pivot] = weight;
  return true;
}

/* For each element beside this one that meets it: how much of it lies outside. */
static void look_outside (state *s, int32_t pivot) {
  const list *l = &s->lists[pivot];
  for (int32_t k = 0; k < l->rows; k++) {
    const list *of = &s->lists[l->at[k]];
    for (int32_t e = 0; e < of->elements; e++) {
      int32_t element = of->at[e];
      if (s->degree[element] == NONE)
        continue;
      if (s->outside[element] < s->stamp)
        s->outside[element] = s->degree[element] + s->stamp;
      s->outside[element] -= s->weight[l->at[k]];
    }
  }
}

/* A row need not be told twice of those that it meets through the pivot. */
static void shorten (state *s, int32_t pivot, int32_t i, int32_t left) {
  list *l = &s->lists[i];
  int32_t n = 0, rows = 0, sum = 0, elements = l->elements;
  uint32_t hash = (uint32_t)pivot;
  for (int32_t e = 0; e < elements; e++) {
    int32_t element = l->at[e], beside;
    if (s->degree[element] == NONE)
      continue;
    beside = s->outside[element] - s->stamp;
    if (beside == 0) { /* all of it is in the new one */
      s->degree[element] = NONE;
      continue;
    }
    sum += beside;
    hash += (uint32_t)element;
    l->at[n++] = element;
  }
  int32_t *from = l->at + elements;
  for (int32_t k = 0; k < l->rows; k++) {
    int32_t j = from[k];
    if (s->weight[j] == 0 || s->mark[j] == pivot)
      continue;
    sum += s->weight[j];
    hash += (uint32_t)j;
    from[rows++] = j;
  }
  /* The pivot was one of these rows, or in an element that is gone: so there is room for it. */
  memmove (l->at + n + 1, from, (size_t)rows * sizeof *from);
  l->at[n] = pivot;
  l->elements = n + 1;
  l->rows = rows;
  int32_t inside = s->degree[pivot] - s->weight[i], grown = s->degree[i] + inside;
  int32_t d = sum + inside < grown ? sum + inside : grown;
  d = d < left - s->weight[i] ? d : left - s->weight[i];
  s->degree[i] = d < 0 ? 0 : d;
  int32_t bucket = (int32_t)(hash % (uint32_t)s->n);
  s->last[i] = bucket;
  s->hash_next[i] = s->hash_head[bucket];
  s->hash_head[bucket] = i;
}

static bool are_alike (state *s, int32_t i, int32_t j) {
  const list *a = &s->lists[i], *b = &s->lists[j];
  if (a->elements != b->elements || a->rows != b->rows)
    return false;
  int32_t n = a->elements + a->rows;
  for (int32_t k = 0; k < n; k++)
    s->member[a->at[k]] = i;
  for (int32_t k = 0; k < n; k++)
    if (s->member[b->at[k]] != i)
      return false;
  return true;
}

static void join_alike (state *s, int32_t pivot) {
  const list *l = &s->lists[pivot];
  for (int32_t k = 0; k < l->rows; k++) {
    int32_t bucket = s->last[l->at[k]], i = s->hash_head[bucket];
    s->hash_head[bucket] = NONE;
    for (; i != NONE; i = s->hash_next[i])
      for (int32_t *link = &s->hash_next[i]; *link != NONE;) {
        int32_t j = *link;
        if (are_alike (s, i, j)) {
          s->degree[i] -= s->weight[j] < s->degree[i] ? s->weight[j] : s->degree[i];
          join (s, i, j);
          *link = s->hash_next[j];
        } else
          link = &s->hash_next[j];
      }
  }
}

/* Those that meet nothing but the pivot's element go with it, the others back among the rest. */
static void put_back (state *s, int32_t pivot, int32_t *eliminated) {
  list *l = &s->lists[pivot];
  int32_t n = 0, weight = 0;
  for (int32_t k = 0; k < l->rows; k++) {
    int32_t i = l->at[k];
    if (s->weight[i] == 0)
      continue;
    if (s->lists[i].elements == 1 && s->lists[i].rows == 0) {
      *eliminated += s->weight[i];
      join (s, pivot, i);
      continue;
    }
    weight += s->weight[i];
    l->at[n++] = i;
  }
  l->rows = n;
  s->degree[pivot] = weight;
  for (int32_t k = 0; k < n; k++)
    put (s, l->at[k]);
}

static int32_t next_pivot (state *s) {
  while (s->head[s->least] == NONE)
    s->least++;
  return s->head[s->least];
}

static bool start (state *s, const meetings *g, error *err) {
  arena *a = s->arena;
  int64_t n = g->n;
  s->lists = NEW (a, n, list, err);
  int32_t **all[] = {
    &s->weight,  &s->degree, &s->head,      &s->next,      &s->last,  &s->mark,
    &s->outside, &s->member, &s->hash_next, &s->hash_head, &s->child, &s->sibling
  };
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if ((*all[k] = NEW (a, n + 1, int32_t, err)) == NULL)
      return false;
  int32_t *at = NEW (a, g->start[n], int32_t, err);
  if (s->lists == NULL || at == NULL)
    return false;
  for (int32_t i = 0; i < g->n; i++) {
    int32_t meets = (int32_t)(g->start[i + 1] - g->start[i]);
    s->lists[i] = (list){ at, meets, 0 };
    if (meets > 0)
      memcpy (at, g->next + g->start[i], (size_t)meets * sizeof *at);
    at += meets;
    s->weight[i] = 1;
    s->degree[i] = meets;
    s->mark[i] = s->member[i] = s->child[i] = s->sibling[i] = NONE;
  }
  for (int32_t i = 0; i <= g->n; i++)
    s->head[i] = s->hash_head[i] = NONE;
  s->least = g->n;
  s->stamp = 1;
  for (int32_t i = g->n - 1; i >= 0; i--)
    put (s, i);
  return true;
}

/* A pivot, and the columns in it. */
static int32_t tell (const state *s, int32_t pivot, int32_t *order, int32_t n, int32_t *stack) {
  int32_t depth = 0;
  stack[depth++] = pivot;
  while (depth > 0) {
    int32_t i = stack[--depth];
    order[n++] = i;
    for (int32_t c = s->child[i]; c != NONE; c = s->sibling[c])
      stack[depth++] = c;
  }
  return n;
}

bool order_rows (const meetings *g, arena *a, int32_t *order, error *err) {
  state s = { .n = g->n, .arena = a };
  int32_t told = 0;
  if (!start (&s, g, err))
    return false;
  while (told < g->n) {
    int32_t pivot = next_pivot (&s), eliminated = s.weight[pivot];
    take (&s, pivot);
    if (!gather (&s, pivot, err))
      return false;
    s.weight[pivot] = 0;
    look_outside (&s, pivot);
    for (int32_t k = 0; k < s.lists[pivot].rows; k++)
      shorten (&s, pivot, s.lists[pivot].at[k], g->n - told - eliminated);
    join_alike (&s, pivot);
    put_back (&s, pivot, &eliminated);
    s.weight[pivot] = 0;
    s.stamp += g->n + 1;
    if (s.stamp > INT32_MAX / 2) {
      memset (s.outside, 0, (size_t)g->n * sizeof *s.outside);
      s.stamp = 1;
    }
    told = tell (&s, pivot, order, told, s.hash_next);
  }
  return true;
}
