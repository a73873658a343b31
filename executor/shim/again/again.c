/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/again/again.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "executor/shim/again/pairs.h"
#include "executor/shim/again/repeat.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/record/again_ops.h"
#include "executor/shim/record/last.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"

enum { STATUS_WRONG = 70 };

struct again {
  int32_t n_dropped;
  const step *paired; /* the plan that has the pairs of digests */
  bool net;           /* dropped tensors are copied as well */
};

static bool verifies (const shim *s) {
  return s->block->config.remake == REMAKE_VERIFIED || s->again->net;
}

/* With pairs of digests, for which there may be no room. NULL: there is no memory. */
static again *again_of (shim *s) {
  if (s->again == NULL)
    s->again = calloc (1, sizeof *s->again);
  (void)pairs_ready (s);
  return s->pairs == NULL ? NULL : s->again;
}

bool again_any_dropped (const shim *s) {
  return s->again != NULL && s->again->n_dropped > 0;
}

void again_end_program (shim *s, int32_t name, const char *why) {
  snprintf (s->block->remade_op, sizeof s->block->remade_op, "%s", s->names[name]);
  shim_say (s,
            "kernel `%s` was launched again, and %s: the program is ended, since this step cannot "
            "be saved; run it with --remake off",
            s->names[name], why);
  last_write (s);
  s->block->ended = 1;
  fflush (NULL); /* the program has said no wrong word so far */
  _exit (STATUS_WRONG);
}

/* ---- an op's first launch in a step ---- */

bool again_keep (shim *s, step *p, step_again *a, op *o, const CUlaunchConfig *l, CUfunction f,
                 void **params) {
  const again *g = again_of (s);
  shim_unfit why = UNFIT_SMALL;
  o->trial = NULL;
  if (g != NULL && pairs_ready (s) && o->may_repeat &&
      repeat_keep (s, o, l, f, params, &a->launch, &why)) {
    if (!p->tried && (!GUARD (still) || repeat_is_alone (s))) {
      o->trial = trial_begin (s, a, o->refs, o->n_refs);
      record_begins (s, o);
    }
    p->missed = p->missed || (!p->tried && o->trial == NULL);
    return true;
  }
  if (g != NULL && !p->tried)
    again_add_unfit (s, o->token, o->name, why);
  return !p->tried || again_is_unfit (s, o->token);
}

void again_kept (shim *s, const step_again *a, op *o) {
  if (o->trial == NULL)
    return;
  shim_unfit why = trial_end (s, a, o->trial);
  o->trial = NULL;
  if (why != UNFIT_NOT && GUARD (trial))
    again_add_unfit (s, o->token, o->name, why);
}

/* ---- a step ---- */

/* Entries with unfit ops are left out, and those for which there are no pairs. */
static void leave_out (const shim *s, step *p) {
  for (int32_t i = 0; i < p->n_actions; i++) {
    const step_span *a = &p->actions[i];
    if (a->what == ACTION_AGAIN && (p->again[a->again].pair == 0 ||
                                    again_is_unfit (s, p->beats[p->again[a->again].beat].token)))
      p->off[a->entry] = true;
  }
}

/* That of another op on its stream, where they come one behind the other. */
static int32_t pair_of_inputs (const shim *s, const step *p, int32_t i, int32_t *n) {
  for (int32_t k = 0; k < i; k++)
    if (p->beats[p->again[k].beat].stream == p->beats[p->again[i].beat].stream)
      return p->again[k].pair;
  return pairs_take (s, n);
}

/* A stream has a pair for what its ops read, and each tensor that is dropped one; of one plan at a
   time. */
static void give_pairs (shim *s, step *p) {
  again *g = s->again;
  int32_t n = 1;
  again_look (s, true);
  g->paired = p;
  p->paired = true;
  for (int32_t i = 0; i < p->n_again; i++)
    p->again[i].pair = i < PAIRS_LAUNCHES ? pair_of_inputs (s, p, i, &n) : 0;
  for (int32_t i = 0; i < p->n_actions; i++) {
    step_tensor *x = p->actions[i].remade ? &p->tensors[p->actions[i].tensor] : NULL;
    if (x != NULL && x->pair == 0)
      x->pair = pairs_take (s, &n);
  }
  leave_out (s, p);
}

void again_begin (shim *s, step *p) {
  if (p->n_again == 0 || again_of (s) == NULL)
    return;
  if (s->again->paired != p || !p->paired)
    give_pairs (s, p);
  s->again->net = s->strict || p->netted < 1;
}

bool again_is_net (const shim *s, const step *p) {
  return p->n_again > 0 && s->again != NULL && s->again->net;
}

static void release (shim *s, tensor *t, uint64_t behind, int64_t copy) {
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++) {
    page *g = &s->pages[p];
    if (g->state == PAGE_HERE) {
      chunk *c = &s->chunks[g->chunk];
      c->page = NONE;
      c->pending = behind;
      c->freed_by = copy;
      c->checked_by = 0;
      c->came_by = t->in_copy;
      s->free_chunks++;
    }
    g->state = PAGE_LAZY;
    g->in_op = NONE;
  }
  t->kept = false;
}

/* Those that the program has freed, and that are no more of use. */
static void give_all (shim *s, const step *p) {
  for (int32_t k = 0; k < p->n_tensors; k++) {
    tensor *t = p->tensors[k].slot < 0 ? NULL : &s->tensors[p->tensors[k].slot];
    if (t != NULL && !t->live)
      release (s, t, t->users, 0);
  }
}

bool again_end (shim *s, step *p) {
  again *g = s->again;
  if (p->n_again == 0 || g == NULL)
    return false;
  give_all (s, p);
  p->netted += p->tried && g->net;
  p->tried = p->tried || !p->missed;
  p->missed = false;
  again_look (s, false);
  bool more = again_more_unfit (s);
  if (more)
    leave_out (s, p);
  return more;
}

/* ---- dropped ---- */

static bool is_here (const shim *s, const tensor *t) {
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++)
    if (s->pages[p].state != PAGE_HERE)
      return false;
  return true;
}

static void unmap (shim *s, const tensor *t, int64_t copy) {
  host_wait_for (s, t->users);
  host_wait_for_copy (s, STREAM_OUT, copy);
  host_wait_for_copy (s, STREAM_IN, t->in_copy);
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++)
    if (s->pages[p].mapped)
      (void)page_unmap (s, p);
}

static bool copy_out (shim *s, tensor *t) {
  wait_for (s, s->out, STREAM_OUT, t->users);
  wait_for_copy (s, s->out, STREAM_OUT, STREAM_IN, t->in_copy);
  wait_for_copy (s, s->out, STREAM_OUT, STREAM_CHECK, t->check);
  if (!host_take (s, t) ||
      s->real.copy_out_async (t->host, t->at, (size_t)t->bytes, s->out) != CUDA_SUCCESS)
    return false;
  s->block->seen.out_bytes += t->bytes;
  t->out_copy = copy_issued (s, STREAM_OUT);
  return true;
}

/* Its digest is taken behind its users, on the stream of the op that makes it again: that of copies
   out would keep its room until they are over. In the net its bytes go to the host. */
static bool leave_trace (shim *s, tensor *t, int32_t pair, const repeat *maker) {
  const again *g = s->again;
  CUstream stream;
  int32_t bit = repeat_stream (maker, &stream);
  wait_for (s, stream, bit, t->users);
  wait_for_copy (s, stream, bit, STREAM_IN, t->in_copy);
  t->pair = pair;
  bool good = pair_digest (s, t, pair, 0, stream);
  t->users |= (uint64_t)1 << bit;
  s->work[bit]++;
  return good && (!g->net || copy_out (s, t));
}

/* Only what is whole here, and what the plan makes again; else it is copied. */
static bool may_drop (const shim *s, const step *p, const step_span *a, const tensor *t) {
  return a->remade && p->tried && repeat_is_kept (p->again[a->again].launch) && !p->off[a->entry] &&
         s->again != NULL && p->tensors[a->tensor].pair > 0 && t->holds == 0 && is_here (s, t);
}

bool again_drop (shim *s, step *p, const step_span *a) {
  int32_t i = p->tensors[a->tensor].slot;
  tensor *t = &s->tensors[i];
  if (!t->live) { /* nobody may use its address any more, wherever it stands */
    release (s, t, t->users, 0);
    if (s->strict)
      unmap (s, t, 0);
    return true;
  }
  if (t->escaped || a->what == ACTION_GIVE)
    return true;
  if (!may_drop (s, p, a, t))
    return pages_out (s, i, t->first_page, t->first_page + t->n_pages);
  if (verifies (s) && !leave_trace (s, t, p->tensors[a->tensor].pair, p->again[a->again].launch))
    return false;
  int64_t copy = s->again->net ? t->out_copy : 0;
  release (s, t, t->users, copy);
  if (s->strict)
    unmap (s, t, copy);
  t->past |= t->users; /* the granules wait for those */
  t->users = 0;
  t->dropped = true;
  s->again->n_dropped++;
  s->block->seen.dropped_bytes += t->bytes;
  s->block->seen.evictions++;
  return true;
}

static void forget (shim *s, tensor *t) {
  s->again->n_dropped -= t->dropped;
  t->dropped = false;
}

/* ---- made again ---- */

static bool compare (shim *s, const step *p, const step_again *a, int32_t pair, CUdeviceptr at) {
  pairs_launch l = { .number = (int32_t)(a - p->again), .name = repeat_name (a->launch) };
  l.bit = repeat_stream (a->launch, &l.stream);
  return pair_compare (s, pair, &l, at);
}

/* The op's inputs, before it and behind it: a sum for all of them. */
static bool digest_inputs (shim *s, const step_again *a, int32_t pair, int32_t which) {
  const int32_t *refs;
  CUstream stream;
  int32_t n = repeat_refs (a->launch, &refs);
  (void)repeat_stream (a->launch, &stream);
  bool good = pair_clear (s, pair, which, stream);
  for (int32_t i = 0; good && i < n; i++)
    if (again_uses (a, i) == USE_READS)
      good = pair_add (s, &s->tensors[refs[i]], pair, which, stream);
  return good;
}

/* The host waits, and mends what is another. */
static bool mend (shim *s, const step *p, const step_again *a, tensor *t) {
  uint64_t both[2];
  if (s->real.ctx_synchronize () != CUDA_SUCCESS || !pair_read (s, t->pair, both))
    return false;
  if (both[0] == both[1] || !GUARD (net))
    return true;
  again_add_unfit (s, p->beats[a->beat].token, repeat_name (a->launch), UNFIT_LATER);
  return s->real.copy_in (t->at, t->host, (size_t)t->bytes) == CUDA_SUCCESS;
}

/* A result that somebody waits for; an op behind it may change it once more. */
static bool is_last_of (const step *p, int32_t action, int32_t tensor) {
  const step_span *own = &p->actions[action];
  for (int32_t i = action + 1; i < p->n_actions; i++) {
    const step_span *a = &p->actions[i];
    if (a->what == ACTION_AGAIN && a->entry == own->entry && step_writes (p, a, tensor))
      return false;
  }
  return true;
}

static bool finish_results (shim *s, const step *p, int32_t action) {
  const step_again *a = &p->again[p->actions[action].again];
  const int32_t *refs;
  CUstream stream;
  int32_t n = repeat_refs (a->launch, &refs);
  bool good = true;
  (void)repeat_stream (a->launch, &stream);
  for (int32_t i = 0; good && i < n; i++) {
    tensor *t = &s->tensors[refs[i]];
    if (!t->dropped || t->planned == NONE || again_uses (a, i) == USE_READS ||
        !is_last_of (p, action, t->planned))
      continue;
    forget (s, t);
    t->last_write = s->ops;
    if (!verifies (s))
      continue;
    good =
        pair_digest (s, t, t->pair, 1, stream) &&
        (s->again->net ? mend (s, p, a, t) : !GUARD (results) || compare (s, p, a, t->pair, t->at));
  }
  return good;
}

static bool launch_shown (shim *s, const repeat *r) {
  CUstream stream;
  last_work what = { .lane = repeat_stream (r, &stream), .again = s->names[repeat_name (r)] };
  last_begins (s, &what, stream);
  bool good = repeat_launch (s, r);
  last_ends (s);
  return good;
}

static bool run_op (shim *s, const step *p, int32_t action) {
  const step_again *a = &p->again[p->actions[action].again];
  const int32_t *refs;
  int32_t pair = 0, n;
  if (!repeat_is_kept (a->launch) || !repeat_make_room (s, a->launch))
    return false;
  n = repeat_refs (a->launch, &refs);
  bool good = true;
  if (verifies (s)) {
    pair = a->pair;
    good = digest_inputs (s, a, pair, 0);
  }
  good = good && launch_shown (s, a->launch);
  again_count (s, repeat_name (a->launch));
  if (pair != 0)
    good = good && digest_inputs (s, a, pair, 1) &&
           (!GUARD (inputs) || compare (s, p, a, pair, n > 0 ? s->tensors[refs[0]].at : s->base));
  good = good && finish_results (s, p, action);
  repeat_done (s, a->launch);
  return good;
}

static int32_t slot_of (const step *p, int32_t ref) {
  return p->tensors[p->refs[ref]].slot;
}

/* Something is dropped that the entry makes, by ops that have run. */
static bool is_due (const shim *s, const step *p, int32_t entry, int32_t from, int32_t beat) {
  for (int32_t i = from; i < p->n_actions; i++) {
    const step_span *a = &p->actions[i];
    const step_again *g = a->what == ACTION_AGAIN ? &p->again[a->again] : NULL;
    if (g == NULL || a->entry != entry || g->beat >= beat)
      continue;
    for (int32_t k = 0; k < p->beats[g->beat].n_refs; k++) {
      int32_t t = slot_of (p, p->beats[g->beat].first_ref + k);
      if (t >= 0 && again_uses (g, k) != USE_READS && s->tensors[t].dropped)
        return true;
    }
  }
  return false;
}

static int32_t first_of (const step *p, int32_t action) {
  int32_t entry = p->actions[action].entry, first = action;
  for (int32_t i = action; i >= 0; i--)
    if (p->actions[i].what == ACTION_AGAIN && p->actions[i].entry == entry)
      first = i;
  return first;
}

/* Results of the entry that were copied instead. */
static bool come_back (shim *s, const step *p, const step_again *g) {
  const step_beat *b = &p->beats[g->beat];
  bool good = true;
  for (int32_t k = 0; good && k < b->n_refs; k++) {
    int32_t i = slot_of (p, b->first_ref + k);
    tensor *t = i < 0 ? NULL : &s->tensors[i];
    if (t != NULL && t->live && again_uses (g, k) != USE_READS)
      good = pages_in (s, i, t->first_page, t->first_page + t->n_pages);
  }
  return good;
}

bool again_run (shim *s, step *p, int32_t action) {
  const step_span *a = &p->actions[action];
  if (first_of (p, action) == action)
    p->due = is_due (s, p, a->entry, action, INT32_MAX) ? a->entry : -1;
  return p->due == a->entry ? run_op (s, p, action) : come_back (s, p, &p->again[a->again]);
}

bool again_pay (shim *s, step *p, int32_t action, int32_t beat) {
  bool good = true, any = again_any_dropped (s);
  int32_t due = -1, skip = -1;
  for (int32_t i = action; good && any && i < p->n_actions; i++) {
    const step_span *a = &p->actions[i];
    if (a->what != ACTION_AGAIN || p->again[a->again].beat >= beat || a->entry == skip)
      continue;
    if (a->entry != due) {
      bool is = (i > first_of (p, i) && p->due == a->entry) || is_due (s, p, a->entry, i, beat);
      due = is ? a->entry : due;
      skip = is ? skip : a->entry;
      if (!is)
        continue;
    }
    good = run_op (s, p, i);
    s->block->seen.remade_on_leaving += good;
  }
  if (p->n_again > 0)
    give_all (s, p);
  return good && !again_any_dropped (s);
}

int32_t again_freed (shim *s, int32_t t) {
  if (s->tensors[t].dropped)
    forget (s, &s->tensors[t]);
  return s->tensors[t].planned;
}

static bool is_in_the_way (const shim *s, const tensor *t) {
  for (int32_t p = t->first_page; p < t->first_page + t->n_pages; p++) {
    int32_t c = s->pages[p].chunk;
    if (s->pages[p].state != PAGE_HERE && c != NONE && s->chunks[c].page != NONE &&
        s->chunks[c].page != p)
      return true;
  }
  return false;
}

bool again_is_early (const shim *s, const step *p, const step_span *a) {
  const step_beat *b = &p->beats[p->again[a->again].beat];
  for (int32_t k = 0; k < b->n_refs; k++) {
    int32_t t = slot_of (p, b->first_ref + k);
    if (t >= 0 && is_in_the_way (s, &s->tensors[t]))
      return true;
  }
  return false;
}

/* ---- the host looks ---- */

void again_look (shim *s, bool wait) {
  int32_t name = pairs_look (s, wait);
  if (name != NONE)
    again_end_program (s, name, "a digest tells other bytes than before");
}
