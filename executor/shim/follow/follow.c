/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/follow/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/shim/again/again.h"
#include "executor/shim/follow/asking.h"
#include "executor/shim/follow/following.h"
#include "executor/shim/follow/learn.h"
#include "executor/shim/memory/clean.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/memory/share.h"
#include "executor/shim/record/last.h"
#include "executor/shim/record/record.h"
#include "executor/shim/state/guard.h"

/* The first planned steps may be parts of a longer one, which cannot be told without its times. */
bool follow_times (const shim *s) {
  const follow *f = s->follow;
  const shim_config *k = &s->block->config;
  return !f->on || f->in_a_row < FIRST_TIMED || k->shows_last || f->asks_again ||
         (k->time_every > 0 && f->in_a_row % k->time_every == 0);
}

/* All that are over. */
static void read_marks (shim *s) {
  follow *f = s->follow;
  for (; s->real.event_elapsed != NULL && f->read + 1 < f->marks; f->read++) {
    const mark *m = &f->mark[(f->read + 1) % MARKS];
    float ms = 0;
    if (m->predicted_ns < 0)
      continue;
    if (s->real.event_query (m->event) != CUDA_SUCCESS)
      return;
    if (s->real.event_elapsed (&ms, f->mark[f->read % MARKS].event, m->event) != CUDA_SUCCESS)
      continue;
    s->block->seen.planned_ns += (int64_t)((double)ms * 1e6);
    s->block->seen.predicted_ns += m->predicted_ns;
    s->block->seen.planned_timed++;
  }
}

void follow_finish (shim *s) {
  follow *f = s->follow;
  if (f == NULL)
    return;
  read_marks (s);
  for (int32_t at = 0, t; clean_look (s, &at, &t);) {
  }
  f->on = s->placed = false;
  if (f->wraps && s->block->seen.entries == 0)
    shim_say (
        s, "the step repeats, but at every moment of it some tensor is alive that neither lasts "
           "nor is replaced in the next step, so it stayed on demand; free it sooner (in Python: "
           "del)");
}

/* ---- in and out of the plan ---- */

/* `o`: the op at hand, NULL for an allocation; beats are those of the plan. What is dropped is made
   again first. */
static void leave (shim *s, const char *why, const op *o) {
  follow *f = s->follow;
  s->placed = false;
  f->on = false;
  if (GUARD (leaving) && !again_pay (s, f->plan, f->action, f->at))
    again_end_program (s, o == NULL ? 0 : o->name,
                       "what it made cannot be made again: there is no room for it");
  f->look = true;
  f->counts = f->names_writer = false;
  f->plan->left = ++s->block->seen.leaves; /* another one may begin with the same beat */
  snprintf (s->block->left_at, sizeof s->block->left_at, "beat %d of %d, %.60s: %s", f->at,
            f->plan->n_beats, o == NULL ? "an allocation" : s->names[o->name], why);
}

static void resizes (shim *s) {
  follow *f = s->follow;
  if (f->on)
    leave (s, "there is another room", NULL);
  for (; f->plans.n > 0; plans_drop (s, &f->plans, f->plans.kept[0]))
    asking_remember (s, f->plans.kept[0]);
  f->learned_beats = 0;
  f->told = f->failures = 0;
  f->next_ask = 0;
  f->look = true;
}

bool follow_start (shim *s) {
  follow *f = calloc (1, sizeof *f);
  s->follow = f;
  if (f == NULL)
    return false;
  s->resizes = resizes;
  f->strict_left = s->block->config.strict_steps;
  for (int i = 0; i < MARKS; i++)
    if (s->real.event_create (&f->mark[i].event, 0) != CUDA_SUCCESS)
      return false;
  return true;
}

static void begin_step (shim *s) {
  follow *f = s->follow;
  int64_t paranoid = s->block->config.paranoid;
  f->action = 0;
  f->due = -1;
  f->maps_before = s->block->seen.map_calls;
  if (!s->strict && paranoid > 0 && (s->block->seen.planned_steps + 1) % paranoid == 0) {
    strict_begin (s);
    f->strict_left = 1;
    f->in_a_row = 0;
  }
  again_begin (s, f->plan);
}

/* Somebody is still where these pages come to. */
static bool is_taken (const shim *s, int32_t first, int32_t count) {
  for (int32_t p = first; p < first + count; p++) {
    int32_t c = s->pages[p].chunk;
    if (s->pages[p].state == PAGE_AWAY && c != NONE && s->chunks[c].page != NONE &&
        s->chunks[c].page != p)
      return true;
  }
  return false;
}

/* When actions are done: right behind an op, and before the next beat. */
typedef enum moment { BEHIND, BEFORE_ALLOCATION, BEFORE_OP } moment;

/* A program frees a tensor behind its last op, when a copy to the same place may already be due:
   that waits for the free, that is, until the next beat; an op that runs again, for the next op. */
static bool is_early (const shim *s, const step_span *a, moment when) {
  const step *p = s->follow->plan;
  if (a->what == ACTION_AGAIN)
    return when != BEFORE_OP && again_is_early (s, p, a);
  return a->what == ACTION_IN && when == BEHIND &&
         is_taken (s, s->tensors[p->tensors[a->tensor].slot].first_page + a->first, a->count);
}

static bool act (shim *s, const step_span *a) {
  step *p = s->follow->plan;
  if (a->what == ACTION_AGAIN)
    return again_run (s, p, s->follow->action);
  if (a->what == ACTION_DROP || a->what == ACTION_GIVE)
    return again_drop (s, p, a);
  int32_t t = p->tensors[a->tensor].slot, first = s->tensors[t].first_page + a->first;
  if (a->what == ACTION_IN)
    return pages_in (s, t, first, first + a->count);
  return s->tensors[t].escaped || pages_out (s, t, first, first + a->count);
}

/* There is nothing to act upon: the tensor is not made yet, or freed and not kept. */
static bool is_absent (const shim *s, const step_span *a) {
  const step_tensor *x = a->what == ACTION_AGAIN ? NULL : &s->follow->plan->tensors[a->tensor];
  if (x == NULL)
    return false;
  const tensor *t = x->slot < 0 ? NULL : &s->tensors[x->slot];
  return t == NULL || (!t->live && !t->kept && a->what < ACTION_DROP);
}

static bool issue_due (shim *s, moment when) {
  follow *f = s->follow;
  const step *p = f->plan;
  for (; f->action < p->n_actions && p->actions[f->action].beat <= f->due; f->action++) {
    const step_span *a = &p->actions[f->action];
    if (is_absent (s, a))
      continue;
    if (is_early (s, a, when))
      return true;
    if (!act (s, a))
      return false;
  }
  return true;
}

/* Between two steps a better plan takes the place of the one that is followed. */
static void look_for_answer (shim *s) {
  follow *f = s->follow;
  if (f->asked == NULL || (f->on && !f->fresh) ||
      __atomic_load_n (&s->block->plan_ready, __ATOMIC_ACQUIRE) < s->block->step_wanted)
    return;
  if (f->effort > 0 && (!s->block->plan_good || f->asked_room != s->room_bytes)) {
    step_free (f->asked); /* no better one was found */
    f->asked = NULL;
    return;
  }
  f->on = s->placed = false;
  asking_take (s);
}

static void try_to_enter (shim *s, uint64_t token, int64_t bytes) {
  follow *f = s->follow;
  look_for_answer (s);
  step *p = f->on ? NULL : plans_find (s, &f->plans, token, bytes);
  if (p == NULL)
    return;
  s->placed = true;
  if (!plan_arrange (s, p)) {
    s->placed = false;
    shim_say (s, "the plan cannot be entered: a tensor in the device's own data must stay");
    plans_drop (s, &f->plans, p);
    return;
  }
  f->plan = p;
  f->on = true;
  f->fresh = false;
  f->at = 0;
  f->in_a_row = 0;
  f->counts = false;
  s->block->seen.entries++;
  begin_step (s);
}

/* ---- beats ---- */

static bool is_expected (const shim *s, const op *o) {
  const follow *f = s->follow;
  const step_beat *e = &f->plan->beats[f->at];
  if (e->bytes >= 0 || e->token != o->token || e->stream != o->stream_bit)
    return false;
  if (beat_is_loose (o->token) && !again_any_dropped (s))
    return true;
  if (e->n_refs != o->n_refs)
    return false;
  for (int32_t i = 0; i < o->n_refs; i++)
    if (s->tensors[o->refs[i]].planned != f->plan->refs[e->first_ref + i] ||
        s->tensors[o->refs[i]].planned == NONE)
      return false;
  return true;
}

static void mark_begin (shim *s, const op *o) {
  follow *f = s->follow;
  if (s->strict || f->in_a_row < 1 || again_is_net (s, f->plan)) {
    f->counts = false;
    return;
  }
  read_marks (s);
  if (f->marks - f->read == MARKS)
    f->read++;
  mark *m = &f->mark[f->marks++ % MARKS];
  s->real.event_record (m->event, o->stream);
  m->predicted_ns = f->counts ? f->plan->predicted_ns : -1;
  f->counts = true;
}

/* Nothing is known any more of what the plan's ops do to a tensor. */
static void forget_facts (step *p, int32_t planned) {
  for (int32_t i = 0; i < p->beats[p->n_beats - 1].first_ref + p->beats[p->n_beats - 1].n_refs; i++)
    if (p->refs[i] == planned)
      p->facts[i] = FACT_NONE;
}

/* The step that ends had digests again: who wrote what was forgotten? */
static void name_writer (shim *s) {
  const step *p = s->follow->plan;
  const beats *b = record_beats (s);
  int64_t first = b->n - p->n_beats;
  learn_end (s);
  uint8_t *now = first < 0 ? NULL : record_step_facts (s, first, b->n);
  for (int32_t k = p->n_beats - 1; now != NULL && k >= 0; k--)
    for (int32_t i = 0; i < p->beats[k].n_refs; i++) {
      int32_t at = p->beats[k].first_ref + i;
      if (p->facts[at] == FACT_NONE && now[at] == FACT_CHANGED)
        snprintf (s->block->changed_op, sizeof s->block->changed_op, "%s",
                  s->names[beats_at (b, first + k)->name]);
    }
  free (now);
}

/* Tensors changed that ops of the plan were believed to read only. The next step tells who wrote
   them. */
static void mend_facts (shim *s) {
  follow *f = s->follow;
  step *p = f->plan;
  int32_t at = 0, t = NONE;
  bool any = false;
  if (f->names_writer)
    name_writer (s);
  f->names_writer = false;
  while (p->facts != NULL && clean_look (s, &at, &t)) {
    if (s->tensors[t].planned != NONE)
      forget_facts (p, s->tensors[t].planned);
    any = true;
  }
  if (any && !f->named)
    f->named = f->names_writer = learn_again (s, p->n_beats);
}

static void end_step (shim *s) {
  follow *f = s->follow;
  shim_seen *seen = &s->block->seen;
  seen->planned_steps++;
  last_step_ended (s, f->plan->n_beats);
  if (again_end (s, f->plan)) {
    f->asks_again = true;
    f->effort = 0;
  }
  mend_facts (s);
  f->plan->good_beat = record_beats (s)->n;
  f->plan->left = 0;
  seen->strict_steps += s->strict;
  /* carried tensors take turns between two places, so that the second step maps as well */
  if (!s->strict && f->in_a_row >= (f->plan->n_pairs > 0 ? 2 : 1))
    seen->planned_map_calls += seen->map_calls - f->maps_before;
  f->in_a_row++;
  f->at = 0;
  if (s->strict && s->block->config.strict == SHIM_STRICT_FIRST && --f->strict_left <= 0) {
    s->strict = false;
    f->in_a_row = 0;
  }
  f->fresh = true;
}

/* Before a beat; what was freed since the last one is gone. */
static bool may_begin (shim *s, moment when) {
  follow *f = s->follow;
  if (!issue_due (s, when)) {
    leave (s, "a copy could not be made", NULL);
    return false;
  }
  if (!f->fresh)
    return true;
  f->fresh = false;
  if (!plan_all_last (s, f->plan)) {
    leave (s, "other tensors are alive where the step begins", NULL);
    return false;
  }
  plans_ended (&f->plans, f->plan);
  asking_better (s);
  plan_carry_over (s, f->plan);
  begin_step (s);
  return true;
}

/* A result of the step before comes to the granules that this one keeps for it. */
static bool settle_carried (shim *s, const op *o) {
  const step *p = s->follow->plan;
  for (int32_t i = 0; p->n_pairs > 0 && i < o->n_refs; i++) {
    const tensor *t = &s->tensors[o->refs[i]];
    const step_tensor *x = t->planned == NONE ? NULL : &p->tensors[t->planned];
    if (x != NULL && x->carried_in && x->slot == o->refs[i] && !t->escaped &&
        !plan_settle (s, p, x, false))
      return false;
  }
  return true;
}

static void advance (shim *s) {
  follow *f = s->follow;
  f->due = f->at;
  if (!issue_due (s, BEHIND))
    leave (s, "a copy could not be made", NULL);
  else if (++f->at == f->plan->n_beats)
    end_step (s);
}

int32_t follow_allocate (shim *s, int64_t bytes) {
  follow *f = s->follow;
  if (s->block->config.mode != SHIM_RUN)
    return NONE;
  if (!f->on || f->fresh)
    share_look (s);
  try_to_enter (s, (uint64_t)bytes * 0x9e3779b97f4a7c15u + 1, bytes);
  if (!f->on || !may_begin (s, BEFORE_ALLOCATION))
    return NONE;
  if (f->at == 0 && !issue_due (s, BEFORE_ALLOCATION)) {
    leave (s, "a copy could not be made", NULL);
    return NONE;
  }
  const step_beat *e = &f->plan->beats[f->at];
  int32_t slot = e->bytes == bytes ? f->plan->tensors[e->tensor].slot : NONE;
  if (e->bytes != bytes || (slot >= 0 && (s->tensors[slot].live || s->tensors[slot].holds > 0))) {
    leave (s, "its size or its place is another", NULL);
    return NONE;
  }
  return slot;
}

void follow_allocated (shim *s, int32_t t) {
  follow *f = s->follow;
  if (s->block->config.mode != SHIM_RUN)
    return;
  if (f->on) {
    step_tensor *x = &f->plan->tensors[f->plan->beats[f->at].tensor];
    bool fresh = x->slot < 0;
    x->slot = t;
    s->tensors[t].planned = f->plan->beats[f->at].tensor;
    s->tensors[t].reserved = true;
    s->tensors[t].checks = x->checks;
    if (plan_settle (s, f->plan, x, fresh))
      advance (s);
    else
      leave (s, "it has no place", NULL);
  } else if (f->asked == NULL)
    asking_look (s);
}

static bool uses_dropped (const shim *s, const op *o) {
  for (int32_t i = 0; again_any_dropped (s) && i < o->n_refs; i++)
    if (s->tensors[o->refs[i]].dropped)
      return true;
  return false;
}

void follow_keep (shim *s, op *o, const CUlaunchConfig *l, CUfunction f, void **params) {
  follow *w = s->follow;
  if (w->on && !again_keep (s, w->plan, o->again, o, l, f, params))
    leave (s, "its launch cannot be kept", o);
}

void follow_disturbed (shim *s) {
  follow *f = s->follow;
  if (f != NULL && f->on && f->plan->n_again > 0)
    leave (s, "a stream or a module goes", NULL);
}

/* An op that is to run again reads it, and none of its entry makes it before. */
static bool is_source (const shim *s, int32_t planned) {
  const step *p = s->follow->plan;
  int32_t made_by = -1;
  for (int32_t i = s->follow->action; i < p->n_actions; i++) {
    const step_span *a = &p->actions[i];
    const step_again *g = a->what == ACTION_AGAIN ? &p->again[a->again] : NULL;
    const step_beat *b = g != NULL ? &p->beats[g->beat] : NULL;
    for (int32_t k = 0; b != NULL && a->entry != made_by && k < b->n_refs; k++)
      if (p->refs[b->first_ref + k] == planned && again_uses (g, k) != USE_WRITES)
        return true;
    if (g != NULL && step_writes (p, a, planned))
      made_by = a->entry;
  }
  return false;
}

bool follow_frees (shim *s, int32_t t) {
  follow *f = s->follow;
  if (s->block->config.mode != SHIM_RUN || !f->on || f->plan->n_again == 0)
    return false;
  int32_t k = again_freed (s, t);
  const step_tensor *x = k == NONE ? NULL : &f->plan->tensors[k];
  if (x == NULL || x->slot != t || x->read_last < f->action || !is_source (s, k))
    return false;
  if (x->lasts || x->carried_in)
    leave (s, "a tensor is freed that others are made from", NULL);
  s->tensors[t].kept = f->on;
  return f->on;
}

void follow_before (shim *s, op *o) {
  follow *f = s->follow;
  if (s->block->config.mode != SHIM_RUN)
    return;
  if (!f->on || f->fresh)
    share_look (s);
  try_to_enter (s, o->token, -1);
  if (f->on && may_begin (s, BEFORE_OP) && f->at == 0 && !issue_due (s, BEFORE_OP))
    leave (s, "a copy could not be made", o);
  if (f->on && !is_expected (s, o))
    leave (s, "it is another op, or uses other tensors", o);
  if (f->on && uses_dropped (s, o))
    leave (s, "it uses a tensor that is dropped", o);
  if (f->on && !settle_carried (s, o))
    leave (s, "a result of the step before has no place", o);
  if (f->on && f->at == 0 && f->plan->beats[0].bytes < 0)
    mark_begin (s, o);
  else if (f->on && f->at > 0 && f->plan->beats[f->at - 1].bytes >= 0) {
    int32_t i = f->at - 1;
    while (i > 0 && f->plan->beats[i].bytes >= 0)
      i--;
    if (i == 0 && f->plan->beats[0].bytes >= 0)
      mark_begin (s, o);
  }
  if (f->on && f->plan->facts != NULL && !beat_is_loose (o->token))
    o->facts = f->plan->facts + f->plan->beats[f->at].first_ref;
  if (f->on && f->plan->beats[f->at].again >= 0)
    o->again = &f->plan->again[f->plan->beats[f->at].again];
  if (!s->strict && o->function != NULL && !o->function->clean) {
    strict_begin (s); /* its uses were never tried */
    f->strict_left = s->block->config.strict_steps;
  }
}

void follow_after (shim *s, const op *o) {
  (void)o;
  if (s->block->config.mode != SHIM_RUN)
    return;
  if (s->follow->on)
    advance (s);
  else if (s->follow->asked == NULL)
    asking_look (s);
}
