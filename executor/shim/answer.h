/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The launcher's answer for a step: where each tensor lives, what is away between two steps, which
   copies are made behind which beat. */
#ifndef FERRY_EXECUTOR_SHIM_ANSWER_H
#define FERRY_EXECUTOR_SHIM_ANSWER_H

#include "executor/shim/period.h"

typedef struct step_beat {
  uint64_t token;
  int64_t bytes; /* of an allocation; -1: an op */
  int32_t stream, first_ref, n_refs;
  int32_t tensor; /* of an allocation */
} step_beat;

typedef struct step_tensor {
  int64_t number; /* of its allocation, when the step was recorded */
  int64_t bytes;
  bool lasts;
  bool old;      /* of a pair */
  bool borrowed; /* its slot is another plan's */
  bool checks;   /* it leaves without a copy, if its digest allows that */
  int32_t slot;  /* its address space in the arena; -1: none yet */
  int32_t pages;
  const int64_t *homes; /* a granule a page; NULL: it has none */
} step_tensor;

typedef struct step_span {
  int64_t beat;
  bool in;
  int32_t tensor, first, count;
} step_span;

/* A tensor that the step frees, made so many beats before it began, and the one that replaces it.
 */
typedef struct step_pair {
  int32_t old, heir;
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
  int64_t good_beat; /* the end of its last whole step; -1: it was left since */
} step;

step *step_take (const beats *b, int64_t first, int64_t end); /* NULL: no memory */
void step_free (step *s);
bool step_answer (step *s, const char *path); /* false: it is not one */

#endif
