/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The launcher's answer for a step: where each tensor lives, what is away between two steps, which
   copies are made behind which beat. */
#pragma once

#include "executor/shim/step/block.h"
#include "executor/shim/step/period.h"

typedef struct step_beat {
  uint64_t token;
  int64_t bytes; /* of an allocation; -1: an op */
  int32_t stream, first_ref, n_refs;
  int32_t tensor; /* of an allocation */
  int32_t again;  /* its place among the ops that are launched again; -1: it is not */
} step_beat;

typedef struct step_tensor {
  int64_t number; /* of its allocation, when the step was recorded */
  int64_t bytes;
  bool lasts;
  bool carried_in;   /* of a pair */
  bool borrowed;     /* its slot is another plan's */
  bool checks;       /* it leaves without a copy, if its digest allows that */
  int32_t read_last; /* the last action by which an op that runs again reads it; -1 */
  int32_t pair;      /* of digests, where it is dropped; 0: none */
  int32_t slot;      /* its address space in the arena; -1: none yet */
  int32_t pages;
  const int64_t *homes; /* a granule a page; NULL: it has none */
} step_tensor;

typedef struct step_span {
  int64_t beat;
  uint8_t what; /* a plan_action */
  bool remade;  /* of a drop: an op behind it writes the tensor again */
  int32_t tensor, first, count;
  int32_t again, entry; /* of ACTION_AGAIN: which op; a drop has those that make it again */
} step_span;

/* An op of the step that is launched again, as often as the plan has it. */
typedef struct step_again {
  int32_t beat;
  int64_t uses; /* an again_use for each of its tensors */
  int32_t pair; /* of digests, of what it reads; 0: none */
  struct repeat *launch;
} step_again;

/* A tensor that the step frees, which the step before made `age` beats before this one began, and
   the one that replaces it, which the next step frees. */
typedef struct step_pair {
  int32_t carried_in, carried_out;
  int64_t age;
  bool stays; /* both have granules of their own for all of the step */
} step_pair;

/* A recorded step, and its plan once there is one. */
typedef struct step {
  step_beat *beats;
  int32_t n_beats, n_tensors, n_lasting, n_aways, n_actions;
  int32_t *refs;
  uint8_t *facts; /* of each of them: a shim_fact; NULL: none is known */
  step_tensor *tensors;
  step_pair *pairs;
  int32_t n_pairs;
  int64_t *words; /* of the answer */
  int64_t predicted_ns;
  int32_t granules;
  step_span *aways, *actions;
  int32_t *chunk_of; /* of each granule, once it is kept */
  step_again *again;
  int32_t n_again, n_entries;
  bool *off;         /* of each entry: an op of it is unfit, so its tensors are copied */
  int32_t due;       /* the entry that is being made, of whose tensors some were dropped; -1 */
  bool paired;       /* with room for digests */
  bool missed;       /* in this one, not all of them */
  bool tried;        /* one step has put its ops to the test */
  int32_t netted;    /* steps in which what was dropped was copied too */
  int64_t good_beat; /* the end of its last whole step */
  int64_t left;      /* the number of the time when it was left since; 0: it was not */
  const struct step *then; /* whose steps came when its own were over, the last time; NULL */
} step;

static inline again_use again_uses (const step_again *a, int32_t ref) {
  return (again_use)(a->uses >> 2 * ref & 3);
}

/* The same ops, and allocations of the same sizes. */
bool step_same_beats (const step *s, const step_beat *beats, int32_t n);
/* The op of ACTION_AGAIN writes the tensor. */
bool step_writes (const step *s, const step_span *a, int32_t tensor);

step *step_take (const beats *b, int64_t first, int64_t end); /* NULL: no memory */
void step_free (step *s);
bool step_answer (step *s, const char *path); /* false: it is not one */
