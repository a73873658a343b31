/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plans that are kept, one for each step that a program was seen to repeat: training and
   evaluation, classes of lengths.  Each has address space of its own for what its step makes. */
#pragma once

#include "executor/shim/step/answer.h"
#include "executor/shim/state/shim.h"

enum { PLANS_KEPT = 8 };

typedef struct plans {
  step *kept[PLANS_KEPT];
  int32_t n;
  step *ended; /* whose step was followed to its end last; NULL: none's */
} plans;

/* The one that was followed least recently, if there is no room beside it; NULL: there is. */
const step *plans_crowded (const plans *all, const step *p);
/* Takes the step over; those of the same step go. false: it fits no more. */
bool plans_add (shim *s, plans *all, step *p);
void plans_drop (shim *s, plans *all, const step *p);
/* One whose step may begin with such a beat: bytes of an allocation, or -1 and the op's token. Of
   several the one that was followed last and not left since; else the one that came next when that
   one's steps were over the last time. NULL: none. */
step *plans_find (const shim *s, const plans *all, uint64_t token, int64_t bytes);
/* A step of it was followed, and is over: only tensors that last are left. */
void plans_ended (plans *all, step *p);
/* True if a kept plan has that number of beats. */
bool plans_have (const plans *all, int64_t beats);
/* Exactly the tensors that outlast the step are there, and those that it frees of the one before.
 */
bool plan_all_last (const shim *s, const step *p);
/* Those are known by their place in the plan, where that holds. */
void plan_carry_over (shim *s, step *p);
/* Everything goes where the plan has it between two steps, and is known by its place in it. */
bool plan_arrange (shim *s, step *p);
/* A tensor that the step has just made goes to its place. */
bool plan_settle (shim *s, const step *p, const step_tensor *x, bool fresh);
