/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The launcher is told of steps that repeat, and answers with plans. */
#pragma once

#include "executor/shim/step/answer.h"
#include "executor/shim/state/shim.h"

/* The answer that is there becomes a plan that is kept. */
void asking_take (shim *s);
/* Another plan of the step that is planned: without ops that are unfit, or by a longer search. */
void asking_better (shim *s);
/* Something repeats that no plan is followed for. A longer step is looked at where there is no plan
   of a short one. */
void asking_look (shim *s);

/* The plan goes, and what is known of its ops is kept for another of the same step. */
void asking_remember (shim *s, const step *p);
