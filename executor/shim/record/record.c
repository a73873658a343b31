/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/shim/record/again_ops.h"
#include "executor/shim/record/audit.h"
#include "executor/shim/record/order.h"
#include "executor/shim/record/words.h"

enum { BEATS = 1 << 16, REFS = 1 << 20, LIVES = 1 << 17 };

typedef struct times {
  CUevent start, end; /* made when they are first needed */
  bool timed;
  int64_t evictions; /* before it */
  int64_t link_bytes;
  bool learned; /* its digests are in the gaps around it */
  bool again;   /* it may be launched again */
} times;

struct record {
  beats beats;
  times *times;       /* of each beat that is kept */
  uint8_t *facts;     /* of each tensor of a beat that is kept: a shim_fact */
  int64_t next_timed; /* of a profile: the first beat whose time is not written */
  words out;
  cupti *cupti; /* whose records give the times; NULL: event pairs do */
  int64_t cupti_end_ns;
};

const beats *record_beats (const shim *s) {
  return &s->record->beats;
}

const char *record_last (const shim *s, int back) {
  const beats *b = &s->record->beats;
  for (int64_t i = b->n - 1; i >= 0 && b->n - i < b->capacity; i--)
    if (beats_at (b, i)->op >= 0 && --back == 0)
      return s->names[beats_at (b, i)->name];
  return "none";
}

int64_t record_evictions (const shim *s, int64_t beat) {
  return s->record->times[beat & (BEATS - 1)].evictions;
}

bool record_events (const shim *s, int64_t i, CUevent *start, CUevent *end) {
  const times *t = &s->record->times[i & (BEATS - 1)];
  *start = t->start;
  *end = t->end;
  return beats_at (&s->record->beats, i)->op >= 0 && t->timed;
}

/* ---- records ---- */

static void put_allocation (record *r, const life *l) {
  words_put (&r->out, RECORD_ALLOC, (int64_t[]){ l->number, l->bytes }, 2);
  if (l->pinned)
    words_put (&r->out, RECORD_PIN, &l->number, 1);
}

static void put_op (const shim *s, record *r, const beat *e) {
  if (r->out.file < 0)
    return;
  int64_t few[64], *words = e->n_refs + 4 > 64 ? malloc ((size_t)(e->n_refs + 4) * 8) : few;
  if (words == NULL)
    return;
  words_put_names (&r->out, s);
  words[0] = (int64_t)e->token;
  words[1] = e->name;
  words[2] = e->stream;
  words[3] = e->op;
  for (int32_t i = 0; i < e->n_refs; i++)
    words[4 + i] = beats_ref (&r->beats, e, i);
  words_put (&r->out, RECORD_OP, words, 4 + e->n_refs);
  if (words != few)
    free (words);
}

static uint8_t *fact_at (const record *r, const beat *e, int32_t i) {
  return &r->facts[(e->first_ref + i) & (REFS - 1)];
}

/* The row of an op of which anything is known. */
static void put_facts (record *r, const beat *e, const uint8_t *facts) {
  int64_t few[64], *words = e->n_refs + 1 > 64 ? malloc ((size_t)(e->n_refs + 1) * 8) : few;
  if (words == NULL)
    return;
  words[0] = e->op;
  for (int32_t i = 0; i < e->n_refs; i++)
    words[1 + i] = facts[i];
  words_put (&r->out, RECORD_FACTS, words, 1 + e->n_refs);
  if (words != few)
    free (words);
}

void record_facts (shim *s, int64_t beat, const uint8_t *facts) {
  record *r = s->record;
  const struct beat *e = beats_at (&r->beats, beat);
  for (int32_t i = 0; i < e->n_refs; i++)
    *fact_at (r, e, i) = facts[i];
  put_facts (r, e, facts);
}

void record_recall (shim *s, int64_t beat, const uint8_t *facts) {
  record *r = s->record;
  const struct beat *e = beats_at (&r->beats, beat);
  for (int32_t i = 0; i < e->n_refs; i++)
    if (facts[i] > *fact_at (r, e, i))
      *fact_at (r, e, i) = facts[i];
}

shim_fact record_fact (const shim *s, int64_t beat, int32_t i) {
  return (shim_fact)*fact_at (s->record, beats_at (&s->record->beats, beat), i);
}

/* ---- times ---- */

static bool makes_times (const shim *s, bool planned) {
  bool profile = s->block->config.mode == SHIM_PROFILE && s->record->cupti == NULL;
  return profile || (s->block->seen.evictions > 0 && planned);
}

/* The toolkit's stopwatch, where a profile is to have it. */
static void start_cupti (shim *s, record *r) {
  const shim_config *c = &s->block->config;
  const char *why = "";
  if (c->cupti[0] == 0)
    return;
  r->cupti = cupti_open (c->cupti, &why);
  bool good = r->cupti != NULL && (!c->audits || audit_start (s, r->cupti, &why));
  if (!good && (c->audits || strcmp (c->cupti, CUPTI_ANY) != 0))
    shim_say (s, "CUPTI cannot be used: %s", why);
  s->block->by_cupti = r->cupti != NULL;
  s->block->audit.begun = good && c->audits;
}

/* The same that event pairs would have told: the time that an op adds, and the idle time before it.
 */
static void tell_cupti (void *context, int64_t op, int64_t start_ns, int64_t end_ns) {
  record *r = context;
  int64_t before = r->cupti_end_ns, gap = before > 0 ? start_ns - before : -1;
  int64_t ns = end_ns - (before > start_ns ? before : start_ns);
  words_put (&r->out, RECORD_TIME,
             (int64_t[]){ op, ns > 0 ? ns : 0, before > 0 && gap < 0 ? 0 : gap }, 3);
  r->cupti_end_ns = end_ns > before ? end_ns : before;
}

static int64_t elapsed_ns (const shim *s, CUevent from, CUevent to) {
  float ms = 0;
  if (s->real.event_elapsed == NULL || s->real.event_elapsed (&ms, from, to) != CUDA_SUCCESS)
    return -1;
  return (int64_t)((double)ms * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

/* The time that an op adds to the time of all before it, and the idle time between. */
static void put_time (const shim *s, record *r, int64_t i, int64_t before) {
  const times *own = &r->times[i & (BEATS - 1)];
  int64_t ns = elapsed_ns (s, own->start, own->end), gap = -1;
  if (before >= 0 && s->block->config.mode == SHIM_PROFILE) {
    const times *last = &r->times[before & (BEATS - 1)];
    gap = elapsed_ns (s, last->end, own->start);
    if (gap < 0) { /* they overlap */
      int64_t more = elapsed_ns (s, last->end, own->end);
      ns = more > 0 ? more : 0;
      gap = 0;
    }
    if (own->learned || last->learned)
      gap = -1;
  }
  words_put (&r->out, RECORD_TIME, (int64_t[]){ beats_at (&r->beats, i)->op, ns > 0 ? ns : 0, gap },
             3);
}

static int64_t timed_before (const record *r, int64_t i) {
  int64_t low = i - 64 > 0 ? i - 64 : 0;
  for (i--; i >= low; i--)
    if (r->times[i & (BEATS - 1)].timed && beats_at (&r->beats, i)->op >= 0)
      return i;
  return -1;
}

static void harvest (shim *s, bool wait) {
  record *r = s->record;
  for (; r->next_timed < r->beats.n; r->next_timed++) {
    const times *t = &r->times[r->next_timed & (BEATS - 1)];
    if (!t->timed || beats_at (&r->beats, r->next_timed)->op < 0)
      continue;
    CUresult done = wait ? s->real.event_synchronize (t->end) : s->real.event_query (t->end);
    if (done != CUDA_SUCCESS)
      return;
    put_time (s, r, r->next_timed, timed_before (r, r->next_timed));
  }
}

void record_harvest (shim *s) {
  if (s->record != NULL && s->record->out.file >= 0)
    harvest (s, false);
}

/* ---- during the run ---- */

bool record_start (shim *s) {
  record *r = calloc (1, sizeof *r);
  if (r == NULL)
    return false;
  s->record = r;
  r->times = calloc (BEATS, sizeof *r->times);
  r->facts = calloc (REFS, sizeof *r->facts);
  if (!words_new (&r->out) || r->times == NULL || r->facts == NULL ||
      !beats_new (&r->beats, BEATS, REFS, LIVES))
    return false;
  if (s->block->config.mode == SHIM_PROFILE) {
    words_open (&r->out, s, SHIM_RECORD, -1);
    start_cupti (s, r);
  }
  return true;
}

void record_allocate (shim *s, int32_t t) {
  record *r = s->record;
  r->times[r->beats.n & (BEATS - 1)].timed = false;
  r->times[r->beats.n & (BEATS - 1)].evictions = s->block->seen.evictions;
  beats_allocate (&r->beats, s->tensors[t].bytes);
  s->tensors[t].number = r->beats.n_lives - 1;
  put_allocation (r, beats_life (&r->beats, s->tensors[t].number));
}

void record_free (shim *s, int32_t t) {
  beats_release (&s->record->beats, s->tensors[t].number);
  words_put (&s->record->out, RECORD_FREE, &s->tensors[t].number, 1);
}

void record_before (shim *s, op *o, bool timed) {
  record *r = s->record;
  times *t = &r->times[r->beats.n & (BEATS - 1)];
  if (r->out.file >= 0 && r->beats.n - r->next_timed > BEATS / 2)
    harvest (s, true);
  o->told = r->cupti != NULL;
  if (o->told)
    cupti_begin (r->cupti, (int)o->kind - 1, o->number);
  t->evictions = s->block->seen.evictions;
  t->link_bytes = o->link_bytes;
  order_op (s->order, r->beats.n, o->stream_bit);
  t->timed = makes_times (s, timed) &&
             (t->start != NULL || (s->real.event_create (&t->start, 0) == CUDA_SUCCESS &&
                                   s->real.event_create (&t->end, 0) == CUDA_SUCCESS));
  int64_t few[64], *refs = o->n_refs > 64 ? malloc ((size_t)o->n_refs * sizeof *refs) : few;
  if (refs == NULL)
    return;
  for (int32_t i = 0; i < o->n_refs; i++) {
    refs[i] = s->tensors[o->refs[i]].number;
    life *l = s->tensors[o->refs[i]].escaped ? beats_life (&r->beats, refs[i]) : NULL;
    if (l != NULL && !l->pinned) {
      l->pinned = true;
      words_put (&r->out, RECORD_PIN, refs + i, 1);
    }
  }
  beat e = { .token = o->token,
             .op = o->number,
             .n_refs = o->n_refs,
             .name = o->name,
             .stream = o->stream_bit };
  (void)beats_op (&r->beats, e, refs);
  const beat *own = beats_at (&r->beats, r->beats.n - 1);
  for (int32_t i = 0; i < o->n_refs; i++)
    *fact_at (r, own, i) = FACT_NONE;
  t->learned = o->learn_slot != NONE;
  t->again = o->may_repeat;
  put_op (s, r, own);
  if (t->again && r->out.file >= 0 && s->block->config.learns)
    words_put (&r->out, RECORD_AGAIN, &o->number, 1);
  if (refs != few)
    free (refs);
  record_begins (s, o);
}

void record_begins (shim *s, const op *o) {
  const times *t = &s->record->times[(s->record->beats.n - 1) & (BEATS - 1)];
  if (t->timed)
    s->real.event_record (t->start, o->stream);
}

void record_left (shim *s, op *o) {
  if (o->told)
    cupti_end (s->record->cupti, (int)o->kind - 1);
  o->told = false;
}

int64_t record_beat_of (const shim *s, int64_t op) {
  const beats *b = &s->record->beats;
  for (int64_t i = b->n - 1; i >= 0 && b->n - i < 1024; i--)
    if (beats_at (b, i)->op == op)
      return i;
  return -1;
}

void record_after (shim *s, const op *o) {
  record *r = s->record;
  int64_t i = record_beat_of (s, o->number);
  if (i >= 0 && r->times[i & (BEATS - 1)].timed)
    s->real.event_record (r->times[i & (BEATS - 1)].end, o->stream);
  if (o->waits && i >= 0) {
    order_waited (s->order, i);
    record_harvest (s);
  }
}

void record_finish (shim *s) {
  record *r = s->record;
  if (r == NULL || r->out.file < 0)
    return;
  harvest (s, true);
  if (r->cupti != NULL)
    s->block->cupti_ops = cupti_times (r->cupti, s->ops, tell_cupti, r);
  (void)words_close (&r->out);
}

/* ---- a step for the launcher ---- */

bool record_can_step (const shim *s, int64_t first, int64_t end) {
  const record *r = s->record;
  if (r->out.file >= 0)
    return false;
  for (int64_t i = first; i < end; i++)
    if (beats_at (&r->beats, i)->op >= 0 && !r->times[i & (BEATS - 1)].timed)
      return false;
  return true;
}

static int by_end (const void *x, const void *y) {
  const life *a = *(const life *const *)x, *b = *(const life *const *)y;
  return a->freed != b->freed ? (a->freed > b->freed) - (a->freed < b->freed)
                              : (a->number > b->number) - (a->number < b->number);
}

/* Which beats wait for which, and which of them use the link. */
static void put_order (const shim *s, record *r, int64_t first, int64_t end) {
  const order_edge *e;
  for (int64_t at = 0; (e = order_next (s->order, first, end, &at)) != NULL;)
    words_put (&r->out, RECORD_ORDER,
               (int64_t[]){ e->beat - first, e->behind - first, e->host + e->device }, 3);
  for (int64_t i = first; i < end; i++) {
    int64_t bytes = r->times[i & (BEATS - 1)].link_bytes;
    if (beats_at (&r->beats, i)->op >= 0 && bytes != 0)
      words_put (&r->out, RECORD_LINK, (int64_t[]){ i - first, bytes }, 2);
  }
}

/* Tensors that the step frees of the one before, each with the one that it leaves in its place. */
static void put_crossings (record *r, int64_t first, int64_t end) {
  const beats *b = &r->beats;
  int64_t from = beats_oldest_life (b);
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    const life *replaced =
        life_crossing (l, first, end) == CROSSING_OUT ? beats_replaced (b, l, end - first) : NULL;
    if (replaced != NULL)
      words_put (&r->out, RECORD_CROSSING, (int64_t[]){ replaced->number, n }, 2);
  }
}

/* Facts of this step and of the one before; the stronger one counts. false: none is known. */
static bool merge_facts (const record *r, int64_t i, int64_t period, uint8_t *out) {
  const beats *b = &r->beats;
  const beat *e = beats_at (b, i);
  bool two = i >= period && beats_kept (b, i - period) && beats_same (b, i, i - period),
       any = false;
  for (int32_t k = 0; k < e->n_refs; k++) {
    uint8_t own = *fact_at (r, e, k), before = two ? *fact_at (r, beats_at (b, i - period), k) : 0;
    out[k] = own > before ? own : before;
    any = any || out[k] != FACT_NONE;
  }
  return any;
}

uint8_t *record_step_facts (const shim *s, int64_t first, int64_t end) {
  const record *r = s->record;
  int64_t n = 0;
  for (int64_t i = first; i < end; i++)
    n += beats_at (&r->beats, i)->n_refs;
  uint8_t *facts = calloc ((size_t)n + 1, 1), *at = facts;
  for (int64_t i = first; facts != NULL && i < end; i++) {
    (void)merge_facts (r, i, end - first, at);
    at += beats_at (&r->beats, i)->n_refs;
  }
  return facts;
}

static void put_learned (record *r, int64_t i, int64_t period) {
  const beat *e = beats_at (&r->beats, i);
  uint8_t *facts = calloc ((size_t)e->n_refs + 1, 1);
  if (facts != NULL && merge_facts (r, i, period, facts))
    put_facts (r, e, facts);
  free (facts);
}

/* Lives that were there when it began, then beats, with frees between those where they were. */
static bool put_step (const shim *s, record *r, int64_t first, int64_t end) {
  const beats *b = &r->beats;
  int64_t from = beats_oldest_life (b), n_freed = 0;
  const life **freed = malloc ((size_t)(b->n_lives - from + 1) * sizeof *freed);
  if (freed == NULL)
    return false;
  words_put (&r->out, RECORD_CUT, (int64_t[]){ first, end }, 2);
  for (int64_t n = from; n < b->n_lives; n++) {
    const life *l = beats_life (b, n);
    if (life_at (l, first))
      put_allocation (r, l);
    bool frees = l->born >= first || life_crossing (l, first, end) == CROSSING_IN;
    if (frees && l->freed > first && l->freed <= end)
      freed[n_freed++] = l;
  }
  qsort (freed, (size_t)n_freed, sizeof *freed, by_end);
  for (int64_t i = first, k = 0; i < end; i++) {
    const beat *e = beats_at (b, i);
    if (e->op < 0)
      put_allocation (r, beats_life (b, e->allocation));
    else {
      put_op (s, r, e);
      s->real.event_synchronize (r->times[i & (BEATS - 1)].end);
      put_time (s, r, i, -1);
      put_learned (r, i, end - first);
      if (r->times[i & (BEATS - 1)].again && !again_is_unfit (s, e->token))
        words_put (&r->out, RECORD_AGAIN, &e->op, 1);
    }
    for (; k < n_freed && freed[k]->freed == i + 1; k++)
      words_put (&r->out, RECORD_FREE, &freed[k]->number, 1);
  }
  free (freed);
  put_crossings (r, first, end);
  put_order (s, r, first, end);
  return true;
}

bool record_step (shim *s, int64_t first, int64_t end, int32_t number) {
  record *r = s->record;
  words_open (&r->out, s, SHIM_STEP, number);
  bool good = put_step (s, r, first, end);
  return words_close (&r->out) && good;
}
