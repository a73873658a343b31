/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solver/recompute/drops.h"

#include <assert.h>
#include <string.h>

#include "solver/policy/remake.h"

/* Longer entries are worth nothing, and in an unrolled network each would go back to its beginning
   where what is dead may be kept. */
enum { MOST_CHAIN = 256 };

/* Limits on the tensors that are asked for, in a list, and for all drops that are tried alone. Most
   lists take less than one an op; in a step that is cut into tens of thousands of ops, requests
   that fail would take thousands, and minutes. */
enum { WALKS_AN_OP = 32, FIND_WALKS_AN_OP = 256 };

bool drops_find (const drops_request *q, arena *a, drop **out, int32_t *count, drops_missed *missed,
                 error *err) {
  assert (q->trace && q->over && out && count);
  const trace *t = q->trace;
  uses u;
  remake w;
  *count = 0;
  int32_t *reach = NEW (a, (int64_t)t->n_ops + 1, int32_t, err); /* ops over before op k */
  remake_rule rule = { .trace = t,
                       .uses = &u,
                       .keeps = q->keeps,
                       .keeps_first = q->keeps && q->keeps_first,
                       .most_ops = MOST_CHAIN,
                       .most_walked = (int64_t)FIND_WALKS_AN_OP * t->n_ops };
  if (!reach || !uses_of (t, a, &u, err) || !remake_begin (&w, &rule, a, err))
    return false;
  *out = NEW (a, u.offset[t->n_tensors], drop, err);
  if (!*out)
    return false;
  for (int32_t k = 0; k < t->n_ops; k++)
    reach[k + 1] = reach[k] + q->over[k];
  for (int32_t x = 0; x < t->n_tensors && !(q->stop && q->stop (q->stop_context)); x++) {
    if (t->tensors[x].persistent || t->tensors[x].pinned || t->tensors[x].again >= AGAIN_PASSES)
      continue;
    int32_t writer = NO_OP;
    for (int32_t i = u.offset[x]; i + 1 < u.offset[x + 1]; i++) {
      int32_t after = u.at[i].op, before = u.at[i + 1].op;
      if (uses_writes (&u, x, i))
        writer = after;
      if (writer == NO_OP || before - after < 2 || reach[before] == reach[after + 1] ||
          (q->cheap && !q->cheap[writer]))
        continue;
      drop d = { x, after, before, t->tensors[x].bytes, 0, 0 };
      remake_next (&w, before);
      if (!remake_request (&w, x))
        continue;
      for (int32_t j = 0; j < w.n_ops; j++) {
        int64_t ns = t->ops[w.ops[j]].ns + t->ops[w.ops[j]].gap_ns;
        d.chain_ns += ns;
        d.own_ns += list_has (&t->ops[w.ops[j]].writes, x) ? ns : 0;
      }
      (*out)[(*count)++] = d;
    }
  }
  if (missed)
    *missed = (drops_missed){ w.barred, w.revived };
  return !w.full;
}

typedef struct walk {
  remake again;
  const drop_choice *choice;
  int32_t *wanted; /* per tensor away: by this op */
  int64_t *starts; /* per op: compute before it */
} walk;

static bool start_chain (walk *w, const drop_list *list, const drop_choice *choice, arena *a,
                         error *err) {
  const trace *t = list->trace;
  remake_rule rule = { .trace = t,
                       .uses = list->uses,
                       .keeps = choice->keeps,
                       .most_ops = MOST_CHAIN,
                       .most_walked = (int64_t)WALKS_AN_OP * t->n_ops };
  *w = (walk){ .choice = choice,
               .wanted = NEW (a, t->n_tensors, int32_t, err),
               .starts = NEW (a, t->n_ops, int64_t, err) };
  if (!w->wanted || !w->starts || !remake_begin (&w->again, &rule, a, err))
    return false;
  for (int32_t k = 1; k < t->n_ops; k++)
    w->starts[k] = w->starts[k - 1] + t->ops[k - 1].ns + t->ops[k - 1].gap_ns;
  return true;
}

/* It is given up again, and made once more when it is wanted. */
static bool passes (const walk *w, int32_t x) {
  return w->again.away[x] == DROP_PASSES &&
         w->starts[w->wanted[x]] - w->starts[w->again.before] > w->choice->near_ns;
}

static bool request (walk *w, int32_t x) {
  const drop_choice *c = w->choice;
  w->again.rule.keeps_first = c->keeps && (c->keeps_first || w->again.away[x] == DROP_KEEPS);
  return remake_request (&w->again, x);
}

/* Other outputs of the copies take their places too, if they were dropped: else the copies would
   run once more for it. */
static bool is_wanted (const void *context, const remake *again, int32_t x) {
  const walk *w = context;
  const tensor *t = &again->rule.trace->tensors[x];
  return again->away[x] ? !passes (w, x)
                        : w->choice->replaces && !t->persistent && !t->pinned &&
                              t->again < AGAIN_PASSES && !remake_is_dead (again, x);
}

/* The chosen drops behind each op: first[k] and then next of each; -1 ends. */
static bool list_chosen (const drop_list *list, const drop_choice *choice, arena *a,
                         int32_t **first, int32_t **next, int32_t *n, error *err) {
  *first = NEW (a, list->trace->n_ops, int32_t, err);
  *next = NEW (a, list->count, int32_t, err);
  *n = 0;
  if (!*first || !*next)
    return false;
  for (int32_t k = 0; k < list->trace->n_ops; k++)
    (*first)[k] = -1;
  for (int32_t i = list->count - 1; i >= 0; i--)
    if (choice->chosen[i]) {
      (*next)[i] = (*first)[list->at[i].after];
      (*first)[list->at[i].after] = i;
      ++*n;
    }
  return true;
}

int64_t drops_again_ns (const trace *t, const recompute *r) {
  int64_t ns = 0;
  for (int32_t i = 0; i < r->ops.count; i++)
    ns += t->ops[r->ops.at[i]].ns + t->ops[r->ops.at[i]].gap_ns;
  return ns;
}

bool drops_entries (const drop_list *list, const drop_choice *choice, arena *a, recompute **out,
                    int32_t *count, error *err) {
  assert (list->trace && list->uses && choice->chosen);
  assert (list->count == 0 || list->at);
  const trace *t = list->trace;
  walk w;
  int32_t *first, *next, n;
  *count = 0;
  if (!list_chosen (list, choice, a, &first, &next, &n, err) ||
      !start_chain (&w, list, choice, a, err))
    return false;
  *out = NEW (a, n, recompute, err); /* an entry makes at least one of them again */
  if (!*out)
    return false;
  int64_t left_ns = choice->most_ns ? choice->most_ns : INT64_MAX;
  for (int32_t k = 0; k < t->n_ops && left_ns >= 0; k++) {
    for (int32_t i = k ? first[k - 1] : -1; i >= 0; i = next[i]) {
      w.again.away[list->at[i].tensor] = choice->chosen[i];
      w.wanted[list->at[i].tensor] = list->at[i].before;
    }
    remake_next (&w.again, k);
    const index_list *lists[] = { &t->ops[k].reads, &t->ops[k].writes };
    for (int which = 0; which < 2; which++)
      for (int32_t j = 0; j < lists[which]->count; j++) {
        int32_t x = lists[which]->at[j];
        if (w.again.away[x] && !remake_has (&w.again, x) && !request (&w, x))
          w.again.away[x] = 0;
      }
    if (w.again.n_ops == 0 || *count == n)
      continue;
    recompute *r = &(*out)[(*count)++];
    if (!remake_put (&w.again, is_wanted, &w, r, err))
      return false;
    left_ns -= drops_again_ns (t, r);
  }
  return !w.again.full;
}
