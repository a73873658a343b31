/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Forged proofs: duals, classes, lists, shifts and scales changed with intent, kept where they seem
   to prove more, and held against the best plan there is.  It knows the format of proofs, and takes
   nothing from the prover but its answers. */
#pragma once

#include "base/error.h"

#include <stdint.h>

typedef struct forger_tally {
  int64_t tries;   /* forged proofs */
  int64_t read;    /* that the prover evaluated */
  int64_t above;   /* of these: that show more than compute alone */
  int64_t best;    /* of these: exactly what the best plan of their class takes */
  int64_t classes; /* whose best plan was sought */
  int64_t traces;
} forger_tally;

/* Adds at least so many tries. An error: a proof passed that shows more than some plan of its class
   takes. */
bool forger_run (uint64_t seed, int64_t tries, forger_tally *n, error *err) MUST_CHECK;
