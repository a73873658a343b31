/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes through the loader of a plan: it must refuse or accept, and what it accepts must come
   back from its own text. */
#include "tests/fuzz.h"

FUZZ (A_PLAN)
