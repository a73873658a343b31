/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that a plan drops and makes again by launching their kernels again, at the addresses that
   they had.  In a plan's first step its kernels are put to the test and nothing is dropped; in its
   strict ones what is dropped is copied to the host too, and comes from there where a result is
   another.  Later a digest tells that, and the program is ended before anybody sees a wrong byte.
   While a tensor is dropped whatever it is made from stays as it is: who leaves the plan makes it
   again first. */
#pragma once

#include "executor/shim/step/answer.h"
#include "executor/shim/state/shim.h"

/* The launch of an op that the plan repeats, before its call. false: the plan cannot be followed.
 */
bool again_keep (shim *s, step *p, step_again *a, op *o, const CUlaunchConfig *l, CUfunction f,
                 void **params);
void again_kept (shim *s, const step_again *a, op *o); /* its call has returned */
void again_begin (shim *s, step *p);                   /* a step of the plan */
bool again_is_net (const shim *s, const step *p);      /* its drops are copied as well */
bool again_end (shim *s, step *p); /* ends; true: other ops are unfit than were before */
bool again_drop (shim *s, step *p, const step_span *a);
/* An op of an entry runs again, if what the entry makes was dropped. */
bool again_run (shim *s, step *p, int32_t action);
/* All that is dropped is made again; actions from this one on, of ops before that beat. */
bool again_pay (shim *s, step *p, int32_t action, int32_t beat);
int32_t again_freed (shim *s, int32_t t); /* by the program; its place in the plan, or NONE */
bool again_any_dropped (const shim *s);
/* Would the op's room be taken from somebody who is about to leave? */
bool again_is_early (const shim *s, const step *p, const step_span *a);
/* Ends the program where a result was another one. `wait`: for the results that are queued. */
void again_look (shim *s, bool wait);
/* No way on: what the program would see is wrong. */
void again_end_program (shim *s, int32_t name, const char *why) __attribute__ ((noreturn));

/* trial.c: an op at its first launch, before and behind it; the host waits for the device. */
trial *trial_begin (shim *s, const step_again *a, const int32_t *refs, int32_t n_refs);
shim_unfit trial_end (shim *s, const step_again *a, trial *t);
