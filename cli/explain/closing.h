/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last line of an answer: what a step takes, how far that is from the bound, which plans the
   bound covers, and what might do better. */
#pragma once

#include <stdio.h>

#include "base/json.h"
#include "solver/ask/ask.h"

typedef struct closing {
  const plan *plan;
  ask_other others[ASK_OTHERS];
  int n_others;
} closing;

/* q: as the plan was asked for. */
bool closing_of (const trace *t, const ask *q, const allowed *most, const plan *p, closing *out,
                 error *err) MUST_CHECK;
/* The same where only the plan is known. */
bool closing_of_plan (const trace *t, const plan *p, closing *out, error *err) MUST_CHECK;

/* The plans that the bound covers, to follow "any plan" or "no plan": "", " that only swaps", ...
   */
const char *closing_whom (const plan *p, char text[COVER_TEXT]);
/* The cover of its bound. */
const char *closing_covers (const plan *p, char text[COVER_TEXT]);
/* "perhaps ..." where others might do better, and the last line behind an empty one. */
void closing_print (FILE *to, const closing *x);
/* The last line alone. */
void closing_line (FILE *to, const closing *x);
/* The member "others" of an open object. */
void closing_put (json_writer *w, const closing *x);

/* How far a step is above a bound, in percent, rounded up to a hundredth: "at most" holds. */
double closing_gap (int64_t step_ns, int64_t bound_ns);
