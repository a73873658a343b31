/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/follow/asking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "executor/shim/follow/following.h"
#include "executor/shim/follow/learn.h"
#include "executor/shim/memory/clean.h"
#include "executor/shim/memory/share.h"
#include "executor/shim/record/record.h"

/* The program's parent may be a shell, and whoever adopts the program any process. */
static bool launcher_lives (const shim *s) {
  char path[SHIM_PATH + 64];
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  if (!s->block->is_held)
    return getppid () != 1;
  snprintf (path, sizeof path, "%s/%s", s->block->config.folder, SHIM_BLOCK_FILE);
  int file = open (path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return errno != ENOENT;
  bool lives = fcntl (file, F_GETLK, &all) != 0 || all.l_type != F_UNLCK;
  close (file);
  return lives;
}

static void wait_for_answer (shim *s) {
  const struct timespec moment = { 0, 500000 };
  for (int i = 0;
       __atomic_load_n (&s->block->plan_ready, __ATOMIC_ACQUIRE) < s->block->step_wanted &&
       (i % 64 != 63 || launcher_lives (s));
       i++)
    nanosleep (&moment, NULL);
}

/* A step of that length ends, and may be worth a plan: one that is there already is entered again
   without a new one. */
static bool is_due (const shim *s, const repeat *r) {
  const follow *f = s->follow;
  int64_t n = record_beats (s)->n;
  return r->period > 0 && r->run >= r->period && (r->run % r->period == 0 || f->look) &&
         n >= f->next_ask && record_evictions (s, n - r->period) != s->block->seen.evictions &&
         !(plans_have (&f->plans, r->period) && r->run < 3 * r->period);
}

/* After so many, each is told once the program has become longer by that part of it: a plan takes
   the launcher's time, and one that changes for ever shall not have it all. */
static void count_told (shim *s) {
  follow *f = s->follow;
  int64_t n = record_beats (s)->n;
  if (++f->told >= STEPS_TOLD)
    f->next_ask = n + n / STEPS_TOLD;
}

/* The step [first, end) is told to the launcher. */
static void ask (shim *s, int64_t first, int64_t end) {
  follow *f = s->follow;
  const beats *b = record_beats (s);
  if (!record_can_step (s, first, end))
    return;
  learn_end (s);
  if (!record_step (s, first, end, s->block->step_wanted + 1))
    return;
  f->asked = step_take (b, first, end);
  if (f->asked == NULL)
    return;
  f->asked->facts = record_step_facts (s, first, end);
  int64_t small = 0, pages = 1;
  for (int32_t c = 0; c < s->n_chunks; c++)
    small += s->chunks[c].small;
  for (int32_t t = 0; t < s->n_tensors; t++)
    pages += s->tensors[t].n_pages;
  share_want (s, (small + pages) * s->chunk_bytes);
  count_told (s);
  f->asked_room = s->room_bytes;
  s->block->step_effort = f->effort;
  s->block->step_plan_ns = f->on ? f->plan->predicted_ns : 0;
  s->block->step_checks = f->asked->facts == NULL ? 0 : clean_room (s);
  s->block->step_granule = s->chunk_bytes;
  s->block->step_granules = s->most_chunks - small;
  __atomic_store_n (&s->block->step_wanted, s->block->step_wanted + 1, __ATOMIC_RELEASE);
  if (s->block->config.wait)
    wait_for_answer (s);
}

/* That of the same step, if there is one, else the oldest. */
static known_step *place_for (follow *f, const step *p) {
  for (int i = 0; i < PLANS_KEPT; i++)
    if (step_same_beats (p, f->known[i].beats, f->known[i].n_beats))
      return &f->known[i];
  return &f->known[f->n_known++ % PLANS_KEPT];
}

void asking_remember (shim *s, const step *p) {
  size_t refs = 0;
  if (p->facts == NULL)
    return;
  known_step *k = place_for (s->follow, p);
  for (int32_t i = 0; i < p->n_beats; i++)
    refs += (size_t)p->beats[i].n_refs;
  free (k->beats);
  free (k->facts);
  k->beats = malloc (((size_t)p->n_beats + 1) * sizeof *k->beats);
  k->facts = malloc (refs + 1);
  k->n_beats = k->beats != NULL && k->facts != NULL ? p->n_beats : 0;
  if (k->n_beats == 0)
    return;
  memcpy (k->beats, p->beats, (size_t)p->n_beats * sizeof *k->beats);
  memcpy (k->facts, p->facts, refs);
}

/* A new kind of step takes the place of an old one. */
static void make_way (shim *s, const step *p) {
  follow *f = s->follow;
  const step *goes = plans_crowded (&f->plans, p);
  if (goes == NULL)
    return;
  if (!f->crowded)
    shim_say (s,
              "more than %d kinds of step repeat, and that many plans are kept: the one that was "
              "followed longest ago goes, and its steps run on demand until they have one again",
              PLANS_KEPT);
  f->crowded = true;
  asking_remember (s, goes);
  plans_drop (s, &f->plans, goes);
}

void asking_take (shim *s) {
  follow *f = s->follow;
  char path[SHIM_PATH + 64];
  step *p = f->asked;
  snprintf (path, sizeof path, "%s/%s-%d", s->block->config.folder, SHIM_PLAN,
            s->block->step_wanted);
  f->asked = NULL;
  if (f->asked_room != s->room_bytes) { /* for another room: once more */
    f->look = true;
    asking_remember (s, p); /* it may have been a long time ago that it was learned */
    step_free (p);
    return;
  }
  if (!s->block->plan_good || !step_answer (p, path)) {
    f->failures++;
    int64_t next = record_beats (s)->n +
                   ((int64_t)p->n_beats << (f->failures + 3 < 20 ? f->failures + 3 : 20));
    f->next_ask = next > f->next_ask ? next : f->next_ask;
    step_free (p);
    return;
  }
  f->failures = 0;
  make_way (s, p);
  if (!plans_add (s, &f->plans, p))
    return;
  s->block->seen.plans++;
  if (f->effort > 0) {
    s->block->seen.better_plans++;
    s->block->seen.better_ns = s->block->step_plan_ns - p->predicted_ns;
  }
  s->block->seen.crossing_bytes = 0;
  for (int32_t i = 0; i < p->n_pairs; i++)
    s->block->seen.crossing_bytes += p->tensors[p->pairs[i].carried_in].bytes;
  f->strict_left = s->block->config.strict_steps;
}

/* The same ops with as many tensors, from the same moment on. */
static bool is_known (const shim *s, const known_step *k, int64_t first, int64_t end) {
  const beats *b = record_beats (s);
  bool good = k->n_beats > 0 && end - first == k->n_beats;
  for (int32_t i = 0; good && i < k->n_beats; i++) {
    const beat *e = beats_at (b, first + i);
    good = (e->op < 0) == (k->beats[i].bytes >= 0) &&
           (e->op < 0 || (e->token == k->beats[i].token && e->n_refs == k->beats[i].n_refs));
  }
  return good;
}

static void recall (shim *s, const known_step *k, int64_t first, int64_t end) {
  if (!is_known (s, k, first, end))
    return;
  for (int32_t i = 0; i < k->n_beats; i++)
    if (k->beats[i].bytes < 0)
      record_recall (s, first + i, k->facts + k->beats[i].first_ref);
}

/* Facts of the step that were learned before, of its plan for another room or of one that
   is kept, and was not entered since another step begins alike. */
static void recall_any (shim *s, int64_t first, int64_t end) {
  const follow *f = s->follow;
  for (int i = 0; i < PLANS_KEPT; i++)
    recall (s, &f->known[i], first, end);
  for (int32_t i = 0; i < f->plans.n; i++) {
    const step *p = f->plans.kept[i];
    if (p->facts != NULL)
      recall (s, &(known_step){ p->beats, p->facts, p->n_beats }, first, end);
  }
}

/* The plan's own step is over, and what it frees is freed: for another plan of it, with what is
   known of its ops. */
static void ask_again (shim *s) {
  follow *f = s->follow;
  const step *p = f->plan;
  int64_t end = record_beats (s)->n, first = end - p->n_beats;
  if (f->asked != NULL || first < 0)
    return;
  for (int32_t k = 0; p->facts != NULL && k < p->n_beats; k++)
    if (p->beats[k].bytes < 0)
      record_facts (s, first + k, p->facts + p->beats[k].first_ref);
  ask (s, first, end);
  f->asks_again = f->asked == NULL;
}

void asking_better (shim *s) {
  follow *f = s->follow;
  bool more = f->in_a_row >= FIRST_TIMED && !s->strict && f->effort < s->block->config.efforts;
  if (f->asked != NULL || !(f->asks_again || more))
    return;
  f->effort += !f->asks_again;
  f->asks_again = true; /* until a step has times */
  ask_again (s);
}

/* Something is known of most ops; the rest may have come before anything had to leave. */
static bool is_watched (const shim *s, int64_t first, int64_t end, int64_t *n_ops) {
  uint8_t *facts = record_step_facts (s, first, end), *at = facts;
  int64_t n_known = 0;
  *n_ops = 0;
  for (int64_t i = first; facts != NULL && i < end; i++) {
    const beat *e = beats_at (record_beats (s), i);
    bool any = false;
    for (int32_t k = 0; k < e->n_refs; k++)
      any = any || at[k] != FACT_NONE;
    *n_ops += e->op >= 0 && e->n_refs > 0;
    n_known += e->op >= 0 && any;
    at += e->n_refs;
  }
  free (facts);
  return 2 * n_known >= *n_ops;
}

/* A program that fitted at first, or has other steps by now, was not watched in time: its next
   steps are, once.  The step that is told may begin amid one of those, so that it may take two. */
static bool learns_first (shim *s, int64_t first, int64_t end) {
  enum { STEPS_LEARNED = 2 };
  follow *f = s->follow;
  int64_t ops;
  if (is_watched (s, first, end, &ops))
    return false;
  if (f->learned_beats != end - first) {
    f->learned_beats = end - first;
    f->to_learn = learn_again (s, STEPS_LEARNED * ops) ? STEPS_LEARNED : 0;
  }
  return f->to_learn-- > 0;
}

void asking_look (shim *s) {
  follow *f = s->follow;
  const beats *b = record_beats (s);
  beats_answer a = BEATS_NO, of_far = BEATS_NO;
  int64_t first, end;
  if (s->block->seen.evictions == 0) /* all of it fits so far */
    return;
  bool near = is_due (s, &b->near), far = f->plans.n == 0 && is_due (s, &b->far);
  if (!near && !far)
    return;
  f->look = false;
  if (near) {
    a = beats_step_of (b, &b->near, &first, &end);
    f->wraps = a == BEATS_WRAP && b->near.run > 3 * b->near.period && b->near.period > 16;
  }
  if (far && a != BEATS_CUT)
    of_far = beats_step_of (b, &b->far, &first, &end);
  bool cut = a == BEATS_CUT || of_far == BEATS_CUT ||
             (a == BEATS_WRAP && beats_crossing_step (b, &b->near, &first, &end)) ||
             (of_far == BEATS_WRAP && beats_crossing_step (b, &b->far, &first, &end));
  f->wraps = f->wraps && !cut;
  f->effort = cut ? 0 : f->effort;
  if (cut) {
    learn_settle (s); /* else what was watched last would seem not to be */
    recall_any (s, first, end);
    if (!learns_first (s, first, end))
      ask (s, first, end);
  }
}
