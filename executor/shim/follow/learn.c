/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "executor/shim/follow/learn.h"

#include <stdlib.h>
#include <string.h>

#include "executor/shim/digest/kernels.h"
#include "executor/shim/memory/memory.h"
#include "executor/shim/record/record.h"

enum { MOST_BYTES = 1 << 16, PART = 32, MOST_OPS = 4096, MOST_EARLY = 4096, STEPS = 2 };

/* An op whose digests are queued: two for each tensor that its call says nothing of. */
typedef struct queued {
  int64_t beat;
  int32_t slot;
} queued;

struct learn {
  CUdeviceptr at;  /* of the digests, all zero before they are queued */
  uint64_t *host;  /* a copy of them */
  int64_t cleared; /* the number of that fill */
  int32_t slots, used, round;
  queued ops[MOST_OPS];
  int32_t n_ops;
  int64_t again;       /* so many are asked for */
  int64_t early, late; /* ops that were learned before a step was seen to repeat, and then */
  bool failed;         /* nothing more is learned */
};

static int64_t bytes_of (const learn *l) {
  return l->slots * (int64_t)sizeof *l->host;
}

/* Streams that digest wait for it by its number. */
static bool clear (shim *s, learn *l) {
  bool good = s->real.set_bytes_async (l->at, 0, (size_t)bytes_of (l), s->in) == CUDA_SUCCESS;
  l->cleared = copy_issued (s, STREAM_IN);
  return good;
}

/* The buffer is a small tensor of ferry's own, as long as something is learned. */
static bool take_buffer (shim *s, learn *l) {
  int64_t bytes = s->chunk_bytes / PART < MOST_BYTES ? s->chunk_bytes / PART : MOST_BYTES;
  if (l->at != 0)
    return true;
  l->slots = (int32_t)(bytes / (int64_t)sizeof *l->host);
  l->host = l->host != NULL ? l->host : malloc ((size_t)bytes);
  if (l->host == NULL || !kernels_ready (s) ||
      (s->block->config.mode == SHIM_RUN && !small_has_room (s, bytes) &&
       (s->placed || !small_make_room (s))))
    return false;
  l->at = small_allocate (s, bytes, NULL, true);
  return l->at != 0 && clear (s, l);
}

static learn *learn_of (shim *s) {
  learn *l = s->learn;
  if (l == NULL && (l = s->learn = calloc (1, sizeof *l)) == NULL)
    return NULL;
  l->failed = l->failed || !take_buffer (s, l);
  return l;
}

/* ---- directions that a call tells ---- */

static bool holds (const tensor *t, CUdeviceptr at) {
  return at - t->at < (uint64_t)t->bytes;
}

static shim_fact told_by_call (const op *o, const tensor *t) {
  bool to = o->to != 0 && holds (t, o->to), from = o->from != 0 && holds (t, o->from);
  if (to == from)
    return FACT_NONE;
  if (from)
    return FACT_READ;
  return o->to == t->at && o->bytes >= t->bytes ? FACT_WHOLE : FACT_PART;
}

/* ---- digests ---- */

static int32_t refs_to_digest (const shim *s, const op *o) {
  int32_t n = 0;
  for (int32_t i = 0; i < o->n_refs; i++)
    n += told_by_call (o, &s->tensors[o->refs[i]]) == FACT_NONE;
  return n;
}

static void queue_all (shim *s, const op *o, int32_t slot) {
  learn *l = s->learn;
  wait_for_copy (s, o->stream, o->stream_bit, STREAM_IN, l->cleared);
  for (int32_t i = 0; i < o->n_refs; i++) {
    const tensor *t = &s->tensors[o->refs[i]];
    if (told_by_call (o, t) != FACT_NONE)
      continue;
    CUdeviceptr to = l->at + (uint64_t)slot * sizeof *l->host;
    l->failed = l->failed || !digest_queue (s, t->at, t->bytes, to, o->stream);
    slot += 2;
  }
}

/* A program that fits has no use for it; a plan that is followed was made with what is known. */
static bool is_needed (const shim *s) {
  return s->block->config.mode == SHIM_PROFILE || (s->block->seen.evictions > 0 && !s->placed);
}

/* No more than two steps of one that repeats itself, and before it does no more than so many ops.
 */
static bool is_time (const shim *s) {
  const learn *l = s->learn;
  if (s->captured > 0)
    return false;
  if (l != NULL && l->again > 0)
    return true;
  if (!s->block->config.learns || !is_needed (s))
    return false;
  const beats *b = record_beats (s);
  const repeat *r = b->near.period > 0 ? &b->near : &b->far;
  if (r->run == 0)
    return l == NULL || l->early < MOST_EARLY;
  return r->run < STEPS * r->period && (l == NULL || l->late < STEPS * r->period);
}

bool learn_again (shim *s, int64_t ops) {
  learn *l = s->block->config.learns ? learn_of (s) : NULL;
  if (l == NULL || l->failed)
    return false;
  l->again = ops;
  return true;
}

void learn_ready (shim *s) {
  if (is_time (s))
    (void)learn_of (s);
}

void learn_before (shim *s, op *o) {
  learn *l = s->learn;
  if (l == NULL || l->failed || l->at == 0 || o->n_refs == 0 || !is_time (s))
    return;
  int32_t n = 2 * refs_to_digest (s, o);
  if (l->used + n > l->slots || l->n_ops == MOST_OPS)
    learn_settle (s);
  if (l->failed || n > l->slots)
    return;
  o->learn_slot = l->used;
  o->learn_round = l->round;
  l->used += n;
  queue_all (s, o, o->learn_slot);
}

/* A call that waits without the lock may have lost one to another thread. */
static bool all_live (const shim *s, const op *o) {
  for (int32_t i = 0; i < o->n_refs; i++)
    if (!s->tensors[o->refs[i]].live)
      return false;
  return true;
}

void learn_after (shim *s, const op *o) {
  learn *l = s->learn;
  int64_t beat = o->learn_slot == NONE ? -1 : record_beat_of (s, o->number);
  if (beat < 0 || l->failed || o->learn_round != l->round || l->n_ops == MOST_OPS ||
      !all_live (s, o))
    return;
  queue_all (s, o, o->learn_slot + 1);
  uint8_t *facts = calloc ((size_t)o->n_refs + 1, 1);
  for (int32_t i = 0; facts != NULL && i < o->n_refs; i++)
    facts[i] = (uint8_t)told_by_call (o, &s->tensors[o->refs[i]]);
  if (facts != NULL)
    record_facts (s, beat, facts);
  free (facts);
  l->ops[l->n_ops++] = (queued){ beat, o->learn_slot };
  s->block->seen.learned_ops++;
  l->again -= l->again > 0;
  *(record_beats (s)->near.run > 0 || record_beats (s)->far.run > 0 ? &l->late : &l->early) += 1;
}

/* ---- the verdict ---- */

static void judge (shim *s, const learn *l, const queued *q) {
  const beats *b = record_beats (s);
  const beat *e = beats_at (b, q->beat);
  uint8_t *facts = beats_kept (b, q->beat) ? calloc ((size_t)e->n_refs + 1, 1) : NULL;
  int32_t slot = q->slot;
  if (facts == NULL)
    return;
  for (int32_t i = 0; i < e->n_refs; i++) {
    facts[i] = record_fact (s, q->beat, i);
    if (facts[i] != FACT_NONE)
      continue;
    facts[i] = l->host[slot] == l->host[slot + 1] ? FACT_SAME : FACT_CHANGED;
    slot += 2;
  }
  record_facts (s, q->beat, facts);
  free (facts);
}

void learn_settle (shim *s) {
  learn *l = s->learn;
  if (l == NULL || l->used == 0)
    return;
  shim_note (s, s->real.ctx_synchronize ());
  l->failed = l->failed ||
              s->real.copy_out (l->host, l->at, (size_t)bytes_of (l)) != CUDA_SUCCESS ||
              !clear (s, l);
  for (int32_t i = 0; i < l->n_ops && !l->failed; i++)
    judge (s, l, &l->ops[i]);
  l->n_ops = l->used = 0;
  l->round++;
}

void learn_end (shim *s) {
  learn *l = s->learn;
  learn_settle (s);
  if (l != NULL && l->at != 0) {
    host_wait_for_copy (s, STREAM_IN,
                        l->cleared); /* else every small tensor would wait for copies */
    (void)small_free (s, l->at, 0);
  }
  if (l != NULL)
    l->at = l->again = 0;
}
