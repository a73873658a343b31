/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/follow/plans.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/again/repeat.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"

/* ---- a plan comes and goes ---- */

static void give_back (shim *s, int32_t t) {
  s->tensors[t].reserved = false;
  s->tensors[t].planned = NONE;
  if (!s->tensors[t].live)
    s->free_tensors[s->n_free++] = t;
}

/* Its address space is anybody's again. */
void plans_drop (shim *s, plans *all, const step *p) {
  int32_t i = 0;
  while (all->kept[i] != p)
    i++;
  step *gone = all->kept[i];
  memmove (all->kept + i, all->kept + i + 1, (size_t)(--all->n - i) * sizeof *all->kept);
  all->ended = all->ended == gone ? NULL : all->ended;
  for (int32_t k = 0; k < all->n; k++)
    all->kept[k]->then = all->kept[k]->then == gone ? NULL : all->kept[k]->then;
  for (int32_t k = 0; k < gone->n_tensors; k++) {
    const step_tensor *x = &gone->tensors[k];
    if (x->slot >= 0 && !x->lasts && !x->borrowed)
      give_back (s, x->slot);
  }
  for (int32_t k = 0; k < gone->n_again; k++)
    repeat_free (s, gone->again[k].launch);
  step_free (gone);
}

static int32_t tensor_numbered (const shim *s, int64_t number) {
  for (int32_t t = 0; t < s->n_tensors; t++)
    if (s->tensors[t].live && s->tensors[t].number == number)
      return t;
  return NONE;
}

static bool bind_lasting (const shim *s, step *p) {
  for (int32_t k = 0; k < p->n_tensors; k++)
    if (p->tensors[k].lasts) {
      int32_t t = tensor_numbered (s, p->tensors[k].number);
      if (t == NONE ||
          (p->tensors[k].homes != NULL && p->tensors[k].pages != s->tensors[t].n_pages))
        return false;
      p->tensors[k].slot = t;
    }
  return true;
}

/* A tensor that must stay is where it is: its granules are the chunks that it has. */
static void give_own_chunks (const shim *s, step *p, bool *given) {
  for (int32_t k = 0; k < p->n_tensors; k++) {
    const step_tensor *x = &p->tensors[k];
    if (!x->lasts || x->homes == NULL || !s->tensors[x->slot].escaped)
      continue;
    for (int32_t i = 0; i < x->pages; i++) {
      int32_t c = s->pages[s->tensors[x->slot].first_page + i].chunk;
      if (c == NONE || given[c] || p->chunk_of[x->homes[i]] != NONE)
        continue;
      p->chunk_of[x->homes[i]] = c;
      given[c] = true;
    }
  }
}

/* In their order, or strewn: neighbours are far from each other, and each has its turn. */
static int32_t chunk_in_turn (const shim *s, int32_t i) {
  enum { FAR = 7919 };
  return VARIANT (strewn) && s->n_chunks % FAR != 0 ? (int32_t)((int64_t)i * FAR % s->n_chunks) : i;
}

/* Granules are chunks, but for those of small tensors. */
static bool give_chunks (shim *s, step *p) {
  while (chunk_new (s) != NONE) {
  }
  bool *given = calloc ((size_t)s->n_chunks + 1, sizeof *given);
  p->chunk_of = calloc ((size_t)p->granules + 1, sizeof *p->chunk_of);
  if (given == NULL || p->chunk_of == NULL) {
    free (given);
    return false;
  }
  for (int32_t g = 0; g < p->granules; g++)
    p->chunk_of[g] = NONE;
  give_own_chunks (s, p, given);
  int32_t g = 0;
  for (int32_t i = 0; i < s->n_chunks && g < p->granules; i++) {
    int32_t c = chunk_in_turn (s, i);
    while (g < p->granules && p->chunk_of[g] != NONE)
      g++;
    if (g < p->granules && !s->chunks[c].small && !given[c])
      p->chunk_of[g++] = c;
  }
  while (g < p->granules && p->chunk_of[g] != NONE)
    g++;
  free (given);
  return g == p->granules;
}

static bool is_same_step (const step *p, const step *q) {
  return p->n_lasting == q->n_lasting && step_same_beats (p, q->beats, q->n_beats);
}

const step *plans_crowded (const plans *all, const step *p) {
  const step *oldest = all->kept[0];
  for (int32_t i = 0; i < all->n; i++) {
    if (is_same_step (all->kept[i], p))
      return NULL;
    oldest = all->kept[i]->good_beat < oldest->good_beat ? all->kept[i] : oldest;
  }
  return all->n < PLANS_KEPT ? NULL : oldest;
}

bool plans_add (shim *s, plans *all, step *p) {
  for (int32_t i = all->n - 1; i >= 0; i--)
    if (is_same_step (all->kept[i], p))
      plans_drop (s, all, all->kept[i]);
  if (!bind_lasting (s, p) || !give_chunks (s, p)) {
    step_free (p);
    return false;
  }
  p->good_beat = record_beats (s)->n;
  all->kept[all->n++] = p;
  return true;
}

bool plans_have (const plans *all, int64_t beats) {
  for (int32_t i = 0; i < all->n; i++)
    if (all->kept[i]->n_beats == beats)
      return true;
  return false;
}

void plans_ended (plans *all, step *p) {
  if (all->ended != NULL && all->ended != p)
    all->ended->then = p;
  all->ended = p;
}

/* The steps of the one that was followed last are over, and this one's came then; it was not tried
   since. */
static bool is_next (const plans *all, const step *p) {
  const step *last = all->ended;
  return last != NULL && last->then == p && p->left < last->left;
}

/* A step of that many beats was repeated just now. */
static bool is_repeated (const shim *s, const step *p) {
  const repeat *r = &record_beats (s)->near;
  return r->period == p->n_beats && r->run >= r->period;
}

/* The one that was followed last, or what came then, or what is repeated now; of those that were
   left since, the one that was left first, so that each has its turn. */
static bool is_likelier (const shim *s, const plans *all, const step *p, const step *q) {
  bool next = is_next (all, p), repeats = is_repeated (s, p);
  return next != is_next (all, q)           ? next
         : repeats != is_repeated (s, q)    ? repeats
         : (p->left == 0) != (q->left == 0) ? p->left == 0
         : p->left == 0                     ? p->good_beat > q->good_beat
                                            : p->left < q->left;
}

step *plans_find (const shim *s, const plans *all, uint64_t token, int64_t bytes) {
  step *best = NULL;
  for (int32_t i = all->n - 1; i >= 0; i--) {
    step *p = all->kept[i];
    if (p->beats[0].bytes == bytes && p->beats[0].token == token &&
        (best == NULL || is_likelier (s, all, p, best)) && plan_all_last (s, p))
      best = p;
  }
  return best;
}

/* A result of the step before that this one frees, by its age and its size; NONE: it is not there.
 */
static int32_t left_over (const shim *s, const step *p, const step_pair *c) {
  const beats *b = record_beats (s);
  int64_t i = b->n - c->age;
  if (i < 0 || c->age >= b->capacity || beats_at (b, i)->op >= 0)
    return NONE;
  int64_t number = beats_at (b, i)->allocation;
  int32_t t = p->tensors[c->carried_out].slot;
  if (t < 0 || !s->tensors[t].live || s->tensors[t].number != number)
    t = tensor_numbered (s, number);
  bool is_it = t != NONE && s->tensors[t].bytes == p->tensors[c->carried_in].bytes;
  return is_it && s->tensors[t].holds == 0 ? t : NONE;
}

bool plan_all_last (const shim *s, const step *p) {
  if (s->live_tensors != p->n_lasting + p->n_pairs)
    return false;
  for (int32_t k = 0; k < p->n_tensors; k++) {
    const step_tensor *x = &p->tensors[k];
    const tensor *t = x->lasts ? &s->tensors[x->slot] : NULL;
    if (t != NULL && (!t->live || t->number != x->number || t->holds > 0))
      return false;
  }
  for (int32_t i = 0; i < p->n_pairs; i++)
    if (left_over (s, p, &p->pairs[i]) == NONE)
      return false;
  return true;
}

/* Tensors that the step before carried out are carried into this one, and take their address space
   along: what replaces one gets that of the one before it, so that two take turns, with their
   granules where they stay. */
void plan_carry_over (shim *s, step *p) {
  for (int32_t i = 0; i < p->n_pairs; i++) {
    step_tensor *in = &p->tensors[p->pairs[i].carried_in];
    step_tensor *out = &p->tensors[p->pairs[i].carried_out];
    int32_t t = left_over (s, p, &p->pairs[i]), was = in->borrowed ? NONE : in->slot;
    s->tensors[t].planned = p->pairs[i].carried_in;
    if (in->slot == t)
      continue;
    in->slot = t;
    in->borrowed = out->slot != t && s->tensors[t].reserved;
    if (out->slot == t) {
      out->slot = was;
      const int64_t *homes = in->homes;
      in->homes = p->pairs[i].stays ? out->homes : in->homes;
      out->homes = p->pairs[i].stays ? homes : out->homes;
    } else if (was != NONE)
      give_back (s, was);
    s->tensors[t].reserved = true;
  }
}

/* ---- places ---- */

static bool is_home (const shim *s, const step_tensor *p, const int32_t *chunk_of) {
  const tensor *t = &s->tensors[p->slot];
  for (int32_t i = 0; i < p->pages; i++)
    if (s->pages[t->first_page + i].chunk != chunk_of[p->homes[i]])
      return false;
  return true;
}

static void set_home (shim *s, const step_tensor *p, const int32_t *chunk_of) {
  const tensor *t = &s->tensors[p->slot];
  for (int32_t i = 0; i < p->pages; i++)
    s->pages[t->first_page + i].chunk = chunk_of[p->homes[i]];
}

/* Between two steps they are on the host, but for those that stay. */
static bool carried_leave (shim *s, const step *p) {
  for (int32_t i = 0; i < p->n_pairs; i++) {
    int32_t t = p->tensors[p->pairs[i].carried_in].slot;
    const tensor *x = &s->tensors[t];
    if (!p->pairs[i].stays && !x->escaped &&
        !pages_out (s, t, x->first_page, x->first_page + x->n_pages))
      return false;
  }
  return true;
}

bool plan_arrange (shim *s, step *p) {
  plan_carry_over (s, p);
  if (!carried_leave (s, p))
    return false;
  for (int32_t k = 0; k < p->n_tensors; k++)
    if (p->tensors[k].slot >= 0)
      s->tensors[p->tensors[k].slot].planned = k;
  for (int32_t k = 0; k < p->n_tensors; k++)
    if (p->tensors[k].slot >= 0)
      s->tensors[p->tensors[k].slot].checks = p->tensors[k].checks;
  for (int32_t k = 0; k < p->n_tensors; k++) {
    step_tensor *x = &p->tensors[k];
    if (x->slot < 0 || x->homes == NULL || is_home (s, x, p->chunk_of))
      continue;
    if (s->tensors[x->slot].escaped || !tensor_settle (s, x->slot))
      return false;
    set_home (s, x, p->chunk_of);
  }
  for (int32_t i = 0; i < p->n_aways; i++) {
    const step_span *a = &p->aways[i];
    int32_t first = s->tensors[p->tensors[a->tensor].slot].first_page + a->first;
    if (!pages_out (s, p->tensors[a->tensor].slot, first, first + a->count))
      return false;
  }
  for (int32_t k = 0; k < p->n_tensors; k++) {
    const step_tensor *x = &p->tensors[k];
    if (!x->lasts || x->homes == NULL)
      continue;
    int32_t first = s->tensors[x->slot].first_page;
    for (int32_t i = 0; i < x->pages; i++) {
      bool away = false;
      for (int32_t a = 0; a < p->n_aways; a++)
        away = away || (p->aways[a].tensor == k && i >= p->aways[a].first &&
                        i < p->aways[a].first + p->aways[a].count);
      if (!away && s->pages[first + i].state == PAGE_AWAY &&
          !pages_in (s, x->slot, first + i, first + i + 1))
        return false;
    }
  }
  return true;
}

bool plan_settle (shim *s, const step *p, const step_tensor *x, bool fresh) {
  if (x->homes == NULL || (!fresh && is_home (s, x, p->chunk_of)))
    return true;
  if (!tensor_settle (s, x->slot))
    return false;
  set_home (s, x, p->chunk_of);
  return true;
}
