/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ways to change one section of a cut. */
#ifndef FERRY_SOLVER_SECTIONS_CHANGES_H
#define FERRY_SOLVER_SECTIONS_CHANGES_H

#include "solver/options/options.h"

typedef struct changing {
  const trace *t;
  const solve_options *o;
  section *at;  /* with room for two more */
  int32_t n, i; /* how many, and which is changed */
} changing;

enum { CHANGES = 12 };

/* False where the section cannot be changed so. */
extern bool (*const changes[CHANGES]) (changing *c);

void changes_insert (changing *c, int32_t at, section s);

#endif
